//! A question as it is looked up: for each of its clauses, the words and phrases that answer it, and how much each counts.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use siphasher::sip::SipHasher13;
use tantivy::schema::Field;
use tantivy::{DocId, Term};
use text::{Clause, Expression, Form, FormKind};

use super::dictionary::{Entry, Frequencies, Known, by_stream};
use super::forms::{Family, alone, family};
use super::levels::MARGIN;
use super::lookups::beginning;
use super::prefix::Expansions;
use super::prepared::SegmentWord;
use super::scores::FieldScores;
use super::statistics::{Statistics, most};
use crate::search::Part;
use crate::stop;

/// Documents by number of the segment and of the field.
type DocumentsOf = HashMap<(usize, usize), Vec<DocId>>;

/// How much another form of a word counts beside the word itself.
const FORM_FACTOR: f32 = 0.5;

/// What a clause can be answered by.
pub(super) enum What {
    /// One word, wherever it is listed.
    Word(Arc<[Entry]>),
    /// Words at neighbouring positions.
    Phrase(Vec<String>),
    /// Any word that begins alike: the documents by number of the segment and of the field.
    Prefix(HashMap<(usize, usize), Vec<DocId>>),
}

/// One way in which a clause can occur.
pub(super) struct Alternative {
    pub(super) what: What,
    /// The most it can score in a field.
    most: f32,
    factor: f32,
}

impl Alternative {
    /// What it scores in a document, divided by the document's share.
    pub(super) fn weight(&self) -> f32 {
        self.most * self.factor
    }
}

/// A clause with everything that answers it. The best alternative counts, not the sum.
#[derive(Default)]
pub(super) struct Lookup {
    pub(super) alternatives: Vec<Alternative>,
    /// How rare it is: its share in the whole question.
    pub(super) rarity: f32,
    /// Whether the first alternative is the word itself, and the others are forms of it.
    has_forms: bool,
    /// The words it was made of, where they are all of a family.
    family: Option<Arc<Family>>,
}

impl Lookup {
    /// The alternatives, with or without forms of a word that occurs itself.
    pub(super) fn alternatives(&self, with_forms: bool) -> &[Alternative] {
        let all = self.alternatives.as_slice();
        if self.has_forms && !with_forms {
            all.get(..1).unwrap_or(all)
        } else {
            all
        }
    }

    /// The most that a document scores by another form of the word: as it was looked up, or what no document can exceed, where
    /// something that scores one in every field scores so much in all of them together.
    fn most_by_forms(&self, fields: f32) -> f32 {
        if !self.has_forms {
            return 0.0;
        }
        let weight_of = |number: usize| {
            let alternative = self.alternatives.get(number);
            alternative.map_or(0.0, Alternative::weight)
        };
        let prepared = self.family.as_ref().map(|family| &family.prepared);
        let known = prepared.and_then(|prepared| prepared.most_by_forms(weight_of));
        known.unwrap_or_else(|| {
            let forms = (1..self.alternatives.len()).map(weight_of);
            forms.fold(0.0, f32::max) * fields
        })
    }

    /// What is known of these alternatives in a segment, where that is kept.
    pub(super) fn prepared(
        &self,
        segment: usize,
        with_forms: bool,
    ) -> Option<&OnceLock<SegmentWord>> {
        let family = self.family.as_ref()?;
        family.prepared.of(segment, with_forms || !self.has_forms)
    }
}

/// What is asked, before it is looked up.
pub(in crate::index) struct AskedWords<'e> {
    pub(in crate::index) expression: &'e Expression,
    pub(in crate::index) left_out: &'e [Part],
    pub(in crate::index) row_field: Field,
}

/// A question over what may be searched.
pub(in crate::index) struct Question<'s> {
    pub(super) statistics: &'s Statistics<'s>,
    /// The question with the other words that stand for its words.
    pub(in crate::index) expression: Expression,
    pub(super) wanted: Vec<Lookup>,
    pub(super) excluded: Vec<Lookup>,
    /// The clauses that must occur, one bit each.
    pub(super) required: u64,
    /// Whether a prefix stood for more words than are looked for.
    pub(in crate::index) prefix_truncated: bool,
    /// The field that holds the rows of records.
    pub(super) row_field: Field,
    left_out: &'s [Part],
}

impl<'s> Question<'s> {
    pub(in crate::index) fn new(
        asked: &AskedWords<'s>,
        statistics: &'s Statistics<'s>,
    ) -> tantivy::Result<Self> {
        let expression = asked.expression;
        let mut question = Self {
            statistics,
            expression: expression.clone(),
            wanted: Vec::with_capacity(expression.wanted.len()),
            excluded: Vec::with_capacity(expression.none.len()),
            required: 0,
            prefix_truncated: false,
            row_field: asked.row_field,
            left_out: asked.left_out,
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

    /// Names what is looked up, where that is words only.
    pub(super) fn fingerprint(&self) -> Option<u64> {
        let lookups = self.wanted.iter().chain(&self.excluded);
        let mut all = lookups.flat_map(|lookup| &lookup.alternatives);
        if !all.all(|one| matches!(one.what, What::Word(_))) {
            return None;
        }
        let mut hasher = SipHasher13::new();
        let Expression { wanted, none, .. } = &self.expression;
        for (side, clauses) in [wanted, none].into_iter().enumerate() {
            for clause in clauses {
                let forms = clause.forms.iter().map(|form| &form.term);
                (side, &clause.terms, forms.collect::<Vec<_>>()).hash(&mut hasher);
            }
        }
        Some(hasher.finish())
    }

    /// Which wanted clauses occur anywhere that may be seen.
    pub(in crate::index) fn occurring(&self) -> Vec<bool> {
        let wanted = self.wanted.iter();
        wanted.map(|one| !one.alternatives.is_empty()).collect()
    }

    /// The share of the question that a set of clauses is, each by how rare it is.
    pub(super) fn coverage(&self, clauses: u64) -> f32 {
        if !self.has(Part::Coverage) {
            return if clauses == 0 { 0.0 } else { 1.0 };
        }
        let (mut found, mut all) = (0.0, 0.0);
        for (at, lookup) in self.wanted.iter().enumerate() {
            all += lookup.rarity;
            if clauses >> (at % 64) & 1 == 1 {
                found += lookup.rarity;
            }
        }
        if all > 0.0 { found / all } else { 0.0 }
    }

    /// What something that scores one in every field scores in all of them together.
    fn fields(&self) -> f32 {
        let fields = self.statistics.searched.fields.iter();
        let factors = fields.map(|field| field.factors.largest());
        factors
            .fold(FieldScores::default(), FieldScores::and)
            .together()
    }

    /// More than any document scores, coverage aside.
    pub(super) fn most_score(&self) -> f32 {
        let clauses = self.wanted.iter().map(|lookup| {
            let all = lookup.alternatives.iter();
            all.map(Alternative::weight).fold(0.0, f32::max)
        });
        clauses.sum::<f32>() * self.fields()
    }

    /// Whether a word that occurs has other forms.
    pub(super) fn has_forms(&self) -> bool {
        self.wanted.iter().any(|one| one.has_forms)
    }

    /// The clauses, one bit each, of which another form can bring a document to this score, where the words themselves score so
    /// much at most.
    pub(super) fn forms_that_matter(&self, ceilings: &[f32], threshold: f32) -> u64 {
        let fields = self.fields();
        let clauses = self.wanted.iter().zip(ceilings);
        let clauses: Vec<(f32, f32)> = clauses
            .map(|(lookup, ceiling)| (lookup.most_by_forms(fields), *ceiling))
            .collect();
        let all: f32 = clauses.iter().map(|one| one.0.max(one.1)).sum();
        let mut matter = 0;
        for (number, (forms, ceiling)) in clauses.iter().enumerate() {
            let most = all - forms.max(*ceiling) + forms;
            matter |= u64::from(*forms > 0.0 && most * MARGIN >= threshold) << (number % 64);
        }
        matter
    }

    fn has(&self, part: Part) -> bool {
        !self.left_out.contains(&part)
    }

    fn lookup(&self, clause: &mut Clause, expansions: &mut Expansions) -> tantivy::Result<Lookup> {
        let Some(word) = clause.flexible_word().map(str::to_owned) else {
            return self.strict(clause, expansions);
        };
        let family = family(&word, self.statistics)?;
        let others = family.others.iter().filter(|(kind, _)| match kind {
            FormKind::Form => self.has(Part::Forms),
            FormKind::Spelling => self.has(Part::Spellings),
        });
        let mut lookup = Lookup::default();
        let mut spelled = others.clone().filter(|one| one.0 == FormKind::Spelling);
        let nearest = spelled.next().map(|one| &one.1);
        let most_frequent = others.clone().map(|(_, one)| one.frequency).max();
        let exact = family.exact.as_ref();
        if let Some(frequency) = exact.map(|one| one.frequency).or(most_frequent) {
            lookup.rarity = self.statistics.rarity(frequency);
        }
        if let Some(exact) = exact {
            lookup.alternatives.push(self.word(exact, 1.0));
        }
        let ceiling = |kind: FormKind| match (exact, kind, nearest) {
            // A form counts half of the word, however rare the form is.
            (Some(exact), ..) => self.statistics.rarity(exact.frequency),
            // And so does a spelling beside the likeliest one.
            (None, FormKind::Spelling, Some(nearest)) => self.statistics.rarity(nearest.frequency),
            _ => f32::INFINITY,
        };
        for (kind, other) in others {
            let term = other.word.clone();
            clause.forms.push(Form { term, kind: *kind });
            let mut form = self.word(other, FORM_FACTOR);
            form.most = form.most.min(most(ceiling(*kind)));
            lookup.alternatives.push(form);
        }
        lookup.has_forms = exact.is_some() && lookup.alternatives.len() > 1;
        lookup.family = self.left_out.is_empty().then(|| Arc::clone(&family));
        Ok(lookup)
    }

    fn word(&self, word: &Known, factor: f32) -> Alternative {
        let rarity = self.statistics.rarity(word.frequency);
        Alternative {
            what: What::Word(Arc::clone(&word.entries)),
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
            let word = alone(term, statistics)?;
            let Some(known) = &word.exact else {
                return Ok(Lookup::default());
            };
            rarity += statistics.rarity(known.frequency);
            words.push(word);
        }
        let (mut found, mut family) = (Vec::new(), None);
        match (clause.terms.as_slice(), clause.prefix) {
            ([], _) => {}
            ([_], false) => {
                family = words.pop();
                let known = family.as_ref().and_then(|word| word.exact.as_ref());
                found.extend(known.map(|known| What::Word(Arc::clone(&known.entries))));
            }
            ([start], true) => {
                let (documents, frequency) = self.beginning(start)?;
                rarity = statistics.rarity(frequency);
                if frequency > 0 {
                    found.push(What::Prefix(documents));
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
            has_forms: false,
            family,
        })
    }

    /// The admitted documents with a word that begins so, and how many there are.
    fn beginning(&self, start: &str) -> tantivy::Result<(DocumentsOf, u64)> {
        let (mut found, mut frequencies) = (HashMap::new(), Frequencies::default());
        for (number, field) in self.statistics.searched.fields.iter().enumerate() {
            for (segment, gate) in self.statistics.searched.gates.iter().enumerate() {
                let (documents, mut counts) = (beginning(gate, field, start)?, Vec::new());
                by_stream(gate, documents.iter().copied(), &mut counts);
                frequencies.add(number, &counts);
                found.insert((segment, number), documents);
            }
        }
        Ok((found, frequencies.documents()))
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
