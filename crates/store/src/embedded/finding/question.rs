//! A question as it is looked up: for each of its clauses, the words and phrases that answer it, and how much each counts.

use tantivy::Term;
use tantivy::query::Bm25Weight;
use tantivy::schema::Field;
use text::{Clause, Expression};

use super::forms::{forms, spellings};
use super::prefix::Expansions;
use super::statistics::Statistics;
use crate::stop;

/// How much another form of a word counts beside the word itself.
const FORM_FACTOR: f32 = 0.5;

/// What a clause can be answered by.
pub(super) enum What {
    /// One word.
    Word(String),
    /// Words at neighbouring positions.
    Phrase(Vec<String>),
    /// Any word that begins so.
    Prefix(String),
}

/// One way in which a clause can occur.
pub(super) struct Alternative {
    pub(super) what: What,
    /// For each searched field, what an occurrence scores.
    pub(super) weights: Vec<Bm25Weight>,
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
    base: Vec<Bm25Weight>,
}

impl<'s> Question<'s> {
    pub(in crate::embedded) fn new(
        expression: &Expression,
        statistics: &'s Statistics<'s>,
        row_field: Field,
    ) -> tantivy::Result<Self> {
        let fields = 0..statistics.searched.fields.len();
        let base = fields.map(|field| {
            let average = statistics.average(field);
            Bm25Weight::for_one_term_without_explain(0, 1, average)
        });
        let mut question = Self {
            statistics,
            expression: expression.clone(),
            wanted: Vec::with_capacity(expression.wanted.len()),
            excluded: Vec::with_capacity(expression.none.len()),
            required: 0,
            prefix_truncated: false,
            row_field,
            base: base.collect(),
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
        let frequency = self.statistics.frequency(&word)?;
        let mut related = forms(&word, self.statistics)?;
        if frequency == 0 {
            let known: Vec<String> = related.iter().map(|one| one.form.term.clone()).collect();
            let spelled = spellings(&word, self.statistics)?.into_iter();
            related.extend(spelled.filter(|one| !known.contains(&one.form.term)));
        }
        let mut lookup = Lookup::default();
        let most = related.iter().map(|one| one.frequency).max().unwrap_or(0);
        let decisive = if frequency > 0 { frequency } else { most };
        if decisive > 0 {
            lookup.rarity = self.statistics.rarity(decisive);
        }
        if frequency > 0 {
            let rarity = self.statistics.rarity(frequency);
            lookup
                .alternatives
                .push(self.alternative(What::Word(word), rarity, 1.0));
        }
        for one in related {
            let rarity = self.statistics.rarity(one.frequency);
            let what = What::Word(one.form.term.clone());
            lookup
                .alternatives
                .push(self.alternative(what, rarity, FORM_FACTOR));
            clause.forms.push(one.form);
        }
        Ok(lookup)
    }

    /// A clause that is looked up as it is written.
    fn strict(&self, clause: &Clause, expansions: &mut Expansions) -> tantivy::Result<Lookup> {
        let statistics = self.statistics;
        let whole = clause.terms.len() - usize::from(clause.prefix);
        let mut rarity = 0.0;
        for term in clause.terms.iter().take(whole) {
            match statistics.frequency(term)? {
                0 => return Ok(Lookup::default()),
                frequency => rarity += statistics.rarity(frequency),
            }
        }
        let mut found = Vec::new();
        match (clause.terms.as_slice(), clause.prefix) {
            ([], _) => {}
            ([word], false) => found.push(What::Word(word.clone())),
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
                .map(|what| self.alternative(what, rarity, 1.0))
                .collect(),
            rarity,
        })
    }

    fn alternative(&self, what: What, rarity: f32, factor: f32) -> Alternative {
        // The rarity in the base weights, which are made for a word that none of one document has.
        let base = 4.0_f32.ln();
        let weights = self.base.iter();
        Alternative {
            what,
            weights: weights
                .map(|weight| weight.boost_by(rarity / base))
                .collect(),
            factor,
        }
    }

    /// In how many admitted documents a word begins so, in the field that has it most often.
    fn prefix_frequency(&self, start: &str) -> tantivy::Result<u64> {
        let mut most = 0;
        for field in &self.statistics.searched.fields {
            let mut sum = 0;
            for gate in &self.statistics.searched.gates {
                sum += super::lists::beginning(gate, field, start)?.len() as u64;
            }
            most = most.max(sum);
        }
        Ok(most)
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
