//! A question as it is looked up: for each of its clauses, the words and phrases that answer it, and how much each counts.

use tantivy::Term;
use tantivy::schema::Field;
use text::{Clause, Expression, Form};

use super::dictionary::{Entry, Frequencies, Known, by_stream};
use super::forms::{Family, exact, family};
use super::lists::beginning;
use super::prefix::Expansions;
use super::statistics::{Statistics, most};
use crate::stop;

/// How much another form of a word counts beside the word itself.
const FORM_FACTOR: f32 = 0.5;

/// What a clause can be answered by.
pub(super) enum What {
    /// One word, wherever it is listed.
    Word(Vec<Entry>),
    /// Words at neighbouring positions.
    Phrase(Vec<String>),
    /// Any word that begins so.
    Prefix(String),
}

/// One way in which a clause can occur.
pub(super) struct Alternative {
    pub(super) what: What,
    /// The most it can score in a field.
    pub(super) most: f32,
    pub(super) factor: f32,
}

/// A clause with everything that answers it. The best alternative counts, not the sum.
#[derive(Default)]
pub(super) struct Lookup {
    pub(super) alternatives: Vec<Alternative>,
    /// How rare it is: its share in the whole question.
    pub(super) rarity: f32,
}

/// A question over what may be searched.
pub(in crate::embedded) struct Question<'s> {
    pub(super) statistics: &'s Statistics<'s>,
    /// The question with the other words that stand for its words.
    pub(in crate::embedded) expression: Expression,
    pub(super) wanted: Vec<Lookup>,
    pub(super) excluded: Vec<Lookup>,
    /// The clauses that must occur, one bit each.
    pub(super) required: u64,
    /// Whether a prefix stood for more words than are looked for.
    pub(in crate::embedded) prefix_truncated: bool,
    /// The field that holds the rows of records.
    pub(super) row_field: Field,
}

impl<'s> Question<'s> {
    pub(in crate::embedded) fn new(
        expression: &Expression,
        statistics: &'s Statistics<'s>,
        row_field: Field,
    ) -> tantivy::Result<Self> {
        let mut question = Self {
            statistics,
            expression: expression.clone(),
            wanted: Vec::with_capacity(expression.wanted.len()),
            excluded: Vec::with_capacity(expression.none.len()),
            required: 0,
            prefix_truncated: false,
            row_field,
        };
        let mut expansions = Expansions::default();
        for (at, clause) in expression.wanted.iter().enumerate() {
            let mut clause = clause.clone();
            question.required |= u64::from(clause.required) << (at % 64);
            let lookup = question.lookup(&mut clause, &mut expansions)?;
            question.wanted.push(lookup);
            if let Some(known) = question.expression.wanted.get_mut(at) {
                *known = clause;
            }
            if stop::asked() {
                break;
            }
        }
        for clause in &expression.none {
            if stop::asked() {
                break;
            }
            let lookup = question.strict(clause, &mut expansions)?;
            question.excluded.push(lookup);
        }
        question.prefix_truncated = expansions.cut;
        Ok(question)
    }

    /// Whether a record can match at all.
    pub(super) fn can_match(&self) -> bool {
        let is_found = |(at, lookup): (usize, &Lookup)| {
            !lookup.alternatives.is_empty() || self.required >> (at % 64) & 1 == 0
        };
        self.wanted.iter().enumerate().all(is_found)
            && self.wanted.iter().any(|one| !one.alternatives.is_empty())
    }

    /// Which wanted clauses occur anywhere that may be seen.
    pub(in crate::embedded) fn occurring(&self) -> Vec<bool> {
        let wanted = self.wanted.iter();
        wanted.map(|one| !one.alternatives.is_empty()).collect()
    }

    /// The share of the question that a set of clauses is, each by how rare it is.
    pub(super) fn coverage(&self, clauses: u64) -> f32 {
        let (mut found, mut all) = (0.0, 0.0);
        for (at, lookup) in self.wanted.iter().enumerate() {
            all += lookup.rarity;
            if clauses >> (at % 64) & 1 == 1 {
                found += lookup.rarity;
            }
        }
        if all > 0.0 { found / all } else { 0.0 }
    }

    fn lookup(&self, clause: &mut Clause, expansions: &mut Expansions) -> tantivy::Result<Lookup> {
        let Some(word) = clause.flexible_word().map(str::to_owned) else {
            return self.strict(clause, expansions);
        };
        let Family { exact, others } = family(&word, self.statistics)?;
        let mut lookup = Lookup::default();
        let most = others.iter().map(|(_, one)| one.frequency).max();
        if let Some(frequency) = exact.as_ref().map(|one| one.frequency).or(most) {
            lookup.rarity = self.statistics.rarity(frequency);
        }
        if let Some(exact) = exact {
            lookup.alternatives.push(self.word(exact, 1.0));
        }
        for (kind, other) in others {
            let term = other.word.clone();
            clause.forms.push(Form { term, kind });
            lookup.alternatives.push(self.word(other, FORM_FACTOR));
        }
        Ok(lookup)
    }

    fn word(&self, word: Known, factor: f32) -> Alternative {
        let rarity = self.statistics.rarity(word.frequency);
        Alternative {
            what: What::Word(word.entries),
            most: most(rarity),
            factor,
        }
    }

    /// A clause that is looked up as it is written.
    fn strict(&self, clause: &Clause, expansions: &mut Expansions) -> tantivy::Result<Lookup> {
        let statistics = self.statistics;
        let whole = clause.terms.len() - usize::from(clause.prefix);
        let (mut rarity, mut words) = (0.0, Vec::new());
        for term in clause.terms.iter().take(whole) {
            let Some(known) = exact(term, statistics)? else {
                return Ok(Lookup::default());
            };
            rarity += statistics.rarity(known.frequency);
            words.push(known);
        }
        let mut found = Vec::new();
        match (clause.terms.as_slice(), clause.prefix) {
            ([], _) => {}
            ([_], false) => found.extend(words.pop().map(|word| What::Word(word.entries))),
            ([start], true) => {
                let frequency = self.prefix_frequency(start)?;
                rarity = statistics.rarity(frequency);
                if frequency > 0 {
                    found.push(What::Prefix(start.clone()));
                }
            }
            (phrase, false) => found.push(What::Phrase(phrase.to_vec())),
            ([before @ .., start], true) => {
                for word in self.expanded(before, start, expansions)? {
                    let mut phrase = before.to_vec();
                    phrase.push(word);
                    found.push(What::Phrase(phrase));
                }
            }
        }
        let alternatives = found.into_iter();
        Ok(Lookup {
            alternatives: alternatives
                .map(|what| Alternative {
                    what,
                    most: most(rarity),
                    factor: 1.0,
                })
                .collect(),
            rarity,
        })
    }

    /// In how many admitted documents a word begins so.
    fn prefix_frequency(&self, start: &str) -> tantivy::Result<u64> {
        let mut frequencies = Frequencies::default();
        for (number, field) in self.statistics.searched.fields.iter().enumerate() {
            for gate in &self.statistics.searched.gates {
                let (documents, mut counts) = (beginning(gate, field, start)?, Vec::new());
                by_stream(gate, documents.into_iter(), &mut counts);
                frequencies.add(number, &counts);
            }
        }
        Ok(frequencies.documents())
    }

    /// The words that end a phrase, in all fields.
    fn expanded(
        &self,
        before: &[String],
        start: &str,
        expansions: &mut Expansions,
    ) -> tantivy::Result<Vec<String>> {
        let mut all = Vec::new();
        for field in &self.statistics.searched.fields {
            let terms: Vec<Term> = before
                .iter()
                .map(|word| Term::from_field_text(field.field, word))
                .collect();
            let words = expansions.expand(&terms, start, self.statistics.searched, field)?;
            all.extend(words);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}
