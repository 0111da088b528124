//! Other words that stand for a word of a question: other forms of it, and near spellings of a word that is nowhere. They come
//! from the words of the index itself, as far as an admitted document has them in a searched field.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy_fst::Automaton;
use text::{Form, FormKind};

use super::prefix::starting;
use super::statistics::{Statistics, count_entries};
use crate::stop;

/// The most other words for one word.
const MOST: usize = 128;
/// So many letters at the end may differ between forms of a word, and so many at its beginning may not.
const ENDING: usize = 3;
const LEAST_STEM: usize = 4;
/// So many letters a form has at most after the common beginning.
const LONGEST_ENDING: usize = 5;
/// A spelling may differ in one letter; in two where the word has so many letters.
const TWO_EDITS_FROM: usize = 8;
/// Shorter words have no near spellings: one letter of three makes any other word.
const LEAST_SPELLED: usize = 4;

/// Another word, and in how many admitted documents it stands.
pub(super) struct Related {
    pub(super) form: Form,
    pub(super) frequency: u64,
}

/// The other forms of a word.
pub(super) fn forms(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Vec<Related>> {
    let letters = word.chars().count();
    if letters < LEAST_STEM || !word.chars().all(char::is_alphabetic) {
        return Ok(Vec::new());
    }
    let kept = letters.saturating_sub(ENDING).max(LEAST_STEM);
    let stem: String = word.chars().take(kept).collect();
    let is_form = |other: &str| {
        let rest = other.get(stem.len()..).unwrap_or_default();
        other != word
            && rest.chars().count() <= LONGEST_ENDING
            && rest.chars().all(char::is_alphabetic)
    };
    let found = gather(statistics, &mut |index, each| {
        let mut words = starting(index, &stem)?;
        while words.advance() {
            if let Ok(other) = std::str::from_utf8(words.key())
                && is_form(other)
                && !each(other, words.value())?
            {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    Ok(chosen(found, FormKind::Form, |_| 0))
}

/// The near spellings of a word.
pub(super) fn spellings(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Vec<Related>> {
    let letters = word.chars().count();
    if letters < LEAST_SPELLED || !word.chars().all(char::is_alphabetic) {
        return Ok(Vec::new());
    }
    let builder = if letters < TWO_EDITS_FROM {
        &*ONE_EDIT
    } else {
        &*TWO_EDITS
    };
    let near = builder.build_dfa(word);
    let found = gather(statistics, &mut |index, each| {
        let mut words = index.terms().search(Near(&near)).into_stream()?;
        while words.advance() {
            if let Ok(other) = std::str::from_utf8(words.key())
                && !each(other, words.value())?
            {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    Ok(chosen(found, FormKind::Spelling, |other| {
        near.eval(other).to_u8()
    }))
}

static ONE_EDIT: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true));
static TWO_EDITS: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true));

/// The near spellings of a word, as the dictionary asks for them.
struct Near<'d>(&'d DFA);

impl Automaton for Near<'_> {
    type State = u32;

    fn start(&self) -> u32 {
        self.0.initial_state()
    }

    fn is_match(&self, state: &u32) -> bool {
        matches!(self.0.distance(*state), Distance::Exact(_))
    }

    fn can_match(&self, state: &u32) -> bool {
        *state != SINK_STATE
    }

    fn accept(&self, state: &u32, byte: u8) -> u32 {
        self.0.transition(*state, byte)
    }
}

/// Takes a word of a segment and where its documents are listed; returns whether to go on.
type EachWord<'e> = &'e mut dyn FnMut(&str, &TermInfo) -> tantivy::Result<bool>;

/// Adds up, for each word that `find` names in a segment and a field, in how many admitted documents it stands: in the field
/// that has it most often.
fn gather(
    statistics: &Statistics<'_>,
    find: &mut dyn FnMut(&InvertedIndexReader, EachWord<'_>) -> tantivy::Result<bool>,
) -> tantivy::Result<BTreeMap<String, u64>> {
    let mut most: BTreeMap<String, u64> = BTreeMap::new();
    for field in &statistics.searched.fields {
        let mut here: BTreeMap<String, u64> = BTreeMap::new();
        for gate in &statistics.searched.gates {
            let index = gate.segment.reader.inverted_index(field.field)?;
            let goes_on = find(&index, &mut |word, info| {
                let Some(count) = count_entries(gate, field, &index, info)? else {
                    return Ok(false);
                };
                if count > 0 {
                    *here.entry(word.to_owned()).or_default() += u64::from(count);
                }
                Ok(!stop::asked())
            })?;
            if !goes_on {
                return Ok(most);
            }
        }
        for (word, count) in here {
            let known = most.entry(word).or_default();
            *known = count.max(*known);
        }
    }
    Ok(most)
}

/// The most frequent ones, the nearest first.
fn chosen(
    found: BTreeMap<String, u64>,
    kind: FormKind,
    distance: impl Fn(&str) -> u8,
) -> Vec<Related> {
    let mut found: Vec<_> = found
        .into_iter()
        .map(|(term, frequency)| {
            (
                distance(&term),
                Related {
                    form: Form { term, kind },
                    frequency,
                },
            )
        })
        .collect();
    // The sort is stable, and the words come in their own order.
    found.sort_by_key(|(distance, one)| (*distance, std::cmp::Reverse(one.frequency)));
    found.truncate(MOST);
    found.into_iter().map(|(_, one)| one).collect()
}
