//! Other words that stand for a word of a question: other forms of it, and near spellings of a word that is nowhere.

use std::sync::LazyLock;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use tantivy_fst::Automaton;
use text::FormKind;

use super::dictionary::{Known, Pattern};
use super::statistics::Statistics;

/// The most other words for one word.
const MOST: usize = 128;
/// So many letters at the end may differ between forms of a word, and so many at its beginning may not.
const ENDING: usize = 3;
const LEAST_STEM: usize = 4;
/// So many letters a form has at most after the common beginning.
const LONGEST_ENDING: usize = 5;
/// A spelling may differ in one letter; in two where the word has so many letters.
const TWO_EDITS_FROM: usize = 8;

/// A word of a question with the words that stand for it.
pub(super) struct Family {
    /// The word itself, if it occurs.
    pub(super) exact: Option<Known>,
    pub(super) others: Vec<(FormKind, Known)>,
}

/// Looks up a word, its forms, and, where it does not occur, its near spellings.
pub(super) fn family(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Family> {
    // Of shorter words one letter makes any other word.
    let has_others = word.chars().count() >= LEAST_STEM && word.chars().all(char::is_alphabetic);
    if !has_others {
        return Ok(Family {
            exact: exact(word, statistics)?,
            others: Vec::new(),
        });
    }
    let mut forms = statistics.words(&Pattern::Stem(stem(word)))?;
    let at = forms.iter().position(|one| one.word == word);
    let exact = at.map(|at| forms.swap_remove(at));
    let forms = most_frequent(forms, |_| 0);
    let mut others: Vec<_> = (forms.into_iter())
        .map(|one| (FormKind::Form, one))
        .collect();
    if exact.is_none() {
        let near = automaton(word);
        let mut spelled = statistics.words(&Pattern::Near(word.to_owned()))?;
        spelled.retain(|one| others.iter().all(|(_, form)| form.word != one.word));
        let spelled = most_frequent(spelled, |other| near.eval(other).to_u8());
        others.extend(spelled.into_iter().map(|one| (FormKind::Spelling, one)));
    }
    Ok(Family { exact, others })
}

/// A word as it is written.
pub(super) fn exact(word: &str, statistics: &Statistics<'_>) -> tantivy::Result<Option<Known>> {
    Ok(statistics.words(&Pattern::Word(word.to_owned()))?.pop())
}

/// The beginning that all forms of a word share.
fn stem(word: &str) -> String {
    let letters = word.chars().count();
    let kept = letters.saturating_sub(ENDING).max(LEAST_STEM);
    word.chars().take(kept).collect()
}

/// Whether a word that begins with a stem may be a form of the words with that stem.
pub(super) fn is_form(stem: &str, word: &[u8]) -> bool {
    let ending = word.get(stem.len()..).unwrap_or_default();
    std::str::from_utf8(ending).is_ok_and(|ending| {
        ending.chars().count() <= LONGEST_ENDING && ending.chars().all(char::is_alphabetic)
    })
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
