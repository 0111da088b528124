//! Other words that stand for a word of a question: other forms of it, and near spellings of a word that is nowhere.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use tantivy_fst::Automaton;
use text::FormKind;

use super::dictionary::{Known, Pattern};
use super::prepared::Prepared;
use super::statistics::Statistics;
use crate::stop;

/// How many words of the index are kept at most, for all words that were asked for.
const KEPT: usize = 65_536;
/// Of how many questions it is kept how many records hold every word.
const KEPT_COUNTS: usize = 4096;
/// The most other words for one word.
const MOST: usize = 128;
/// So many letters at the end may differ between forms of a word, and so many at its beginning may not.
const ENDING: usize = 3;
const LEAST_STEM: usize = 4;
/// Shorter words have no other forms.
const LEAST_WORD: usize = 3;
/// Up to so many letters, forms may share less than the beginning that others share.
const LONGEST_SHORT_WORD: usize = 6;
/// So many letters a form has at most after the common beginning.
const LONGEST_ENDING: usize = 5;
/// A spelling may differ in one letter; in two where the word has so many letters.
const TWO_EDITS_FROM: usize = 8;

/// A word of a question with the words that stand for it.
pub(super) struct Family {
    /// The word itself, if it occurs.
    pub(super) exact: Option<Known>,
    pub(super) others: Vec<(FormKind, Known)>,
    /// What is known of the family in each segment.
    pub(super) prepared: Prepared,
}

/// What is known of words and questions that were asked for, by the key of what is searched, for as long as the index stays as it is.
#[derive(Default)]
pub(in crate::index) struct Families(Mutex<KeptFamilies>);

#[derive(Default)]
struct KeptFamilies {
    by_word: HashMap<(u64, String), Arc<Family>>,
    /// How many words these are together.
    size: usize,
    /// How many records hold every word of a question, by the key of what is searched and the name of the question.
    with_every_word: HashMap<(u64, u64), u64>,
}

impl Families {
    fn get(&self, name: &(u64, String)) -> Option<Arc<Family>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_word.get(name).cloned()
    }

    pub(super) fn with_every_word(&self, name: (u64, u64)) -> Option<u64> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.with_every_word.get(&name).copied()
    }

    pub(super) fn keep_with_every_word(&self, name: (u64, u64), count: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.with_every_word.len() >= KEPT_COUNTS {
            kept.with_every_word.clear();
        }
        kept.with_every_word.insert(name, count);
    }

    fn keep(&self, name: (u64, String), family: &Arc<Family>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = family.others.iter().map(|(_, one)| one);
        let words = family.exact.iter().chain(others);
        let size: usize = words.map(|one| one.entries.len()).sum();
        let size = size + family.prepared.segments() + 1;
        if kept.size + size > KEPT {
            kept.by_word.clear();
            kept.size = 0;
        }
        kept.size += size;
        kept.by_word.insert(name, Arc::clone(family));
    }
}

/// A word, its forms, and, where it does not occur, its near spellings.
pub(super) fn family(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Arc<Family>> {
    kept(word.to_owned(), statistics, || look_up(word, statistics))
}

fn kept(
    name: String,
    statistics: &Statistics<'_>,
    look_up: impl FnOnce() -> tantivy::Result<Family>,
) -> tantivy::Result<Arc<Family>> {
    let searched = statistics.searched;
    let name = (searched.key, name);
    if let Some(known) = searched.view.families.get(&name) {
        return Ok(known);
    }
    let family = Arc::new(look_up()?);
    // A search that is stopped has not seen all of them.
    if !stop::asked() {
        searched.view.families.keep(name, &family);
    }
    Ok(family)
}

/// A word alone, as it is written.
pub(super) fn alone(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Arc<Family>> {
    // No word begins so.
    kept(format!("={word}"), statistics, || {
        Ok(Family {
            exact: exact(word, statistics)?,
            others: Vec::new(),
            prepared: Prepared::new(statistics.searched.gates.len()),
        })
    })
}

fn look_up(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Family> {
    let segments = statistics.searched.gates.len();
    let letters = word.chars().count();
    if letters < LEAST_WORD || !text::is_letters(word) {
        return Ok(Family {
            exact: exact(word, statistics)?,
            others: Vec::new(),
            prepared: Prepared::new(segments),
        });
    }
    // Of shorter words one letter makes any other word.
    let is_long = letters >= LEAST_STEM;
    let pattern = if is_long {
        Pattern::Stem(stem(word))
    } else {
        Pattern::Word(word.to_owned())
    };
    let mut forms = statistics.words(&pattern)?;
    for other in other_number(word) {
        if forms.iter().all(|one| one.word != other) {
            forms.extend(exact(&other, statistics)?);
        }
    }
    let at = forms.iter().position(|one| one.word == word);
    let exact = at.map(|at| forms.swap_remove(at));
    let forms = most_frequent(forms, |_| 0);
    let mut others: Vec<_> = (forms.into_iter())
        .map(|one| (FormKind::Form, one))
        .collect();
    if exact.is_none() && is_long {
        let near = automaton(word);
        let mut spelled = statistics.words(&Pattern::Near(word.to_owned()))?;
        spelled.retain(|one| others.iter().all(|(_, form)| form.word != one.word));
        let spelled = most_frequent(spelled, |other| near.eval(other).to_u8());
        others.extend(spelled.into_iter().map(|one| (FormKind::Spelling, one)));
    }
    Ok(Family {
        exact,
        others,
        prepared: Prepared::new(segments),
    })
}

/// A word as it is written.
fn exact(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Option<Known>> {
    Ok(statistics.words(&Pattern::Word(word.to_owned()))?.pop())
}

/// The beginning that all forms of a word share.
fn stem(word: &str) -> String {
    let letters = word.chars().count();
    let kept = letters.saturating_sub(ENDING).max(LEAST_STEM);
    word.chars().take(kept).collect()
}

/// How a short word may be written if there are several of what it names, or only one: `dog` and `dogs`, `city` and `cities`,
/// `mes` and `meses`. Longer ones share their stem.
fn other_number(word: &str) -> Vec<String> {
    if word.chars().count() > LONGEST_SHORT_WORD {
        return Vec::new();
    }
    let with = |beginning: &str, ending: &str| format!("{beginning}{ending}");
    let mut others = vec![with(word, "s"), with(word, "es")];
    for (ending, other) in [("s", ""), ("es", ""), ("y", "ies"), ("ies", "y")] {
        let beginning = word.strip_suffix(ending);
        others.extend(beginning.map(|beginning| with(beginning, other)));
    }
    others.retain(|other| other.chars().count() >= LEAST_WORD);
    others
}

/// Whether a word that begins with a stem may be a form of the words with that stem.
pub(super) fn is_form(stem: &str, word: &[u8]) -> bool {
    let ending = word.get(stem.len()..).unwrap_or_default();
    std::str::from_utf8(ending)
        .is_ok_and(|ending| ending.chars().count() <= LONGEST_ENDING && text::is_letters(ending))
}

static ONE_EDIT: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true));
static TWO_EDITS: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true));

fn automaton(word: &str) -> DFA {
    let builder = if word.chars().count() < TWO_EDITS_FROM {
        &*ONE_EDIT
    } else {
        &*TWO_EDITS
    };
    builder.build_dfa(word)
}

/// The near spellings of a word, as the dictionary asks for them.
pub(super) struct Near(DFA);

pub(super) fn near(word: &str) -> Near {
    Near(automaton(word))
}

impl Automaton for Near {
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

/// The most frequent words, the nearest first.
fn most_frequent(words: Vec<Known>, distance: impl Fn(&str) -> u8) -> Vec<Known> {
    let words = words.into_iter().map(|one| (distance(&one.word), one));
    let mut words: Vec<(u8, Known)> = words.collect();
    words.sort_unstable_by(|(near, one), (far, other)| {
        let by_frequency = other.frequency.cmp(&one.frequency);
        near.cmp(far)
            .then(by_frequency)
            .then_with(|| one.word.cmp(&other.word))
    });
    words.truncate(MOST);
    words.into_iter().map(|(_, one)| one).collect()
}
