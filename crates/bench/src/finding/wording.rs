//! Three ways to put a question: as it was asked, its three rarest words, and those with one letter wrong.

use std::collections::{HashMap, HashSet};

use text::{TokenKind, analyze_with, is_function_word};

/// How many words are left of a question.
const FEW: usize = 3;

contract::names! {
    /// How a question is put.
    pub(super) enum Wording {
        /// As it was asked.
        Asked = "as asked",
        /// Its three rarest words.
        Rarest = "three rarest words",
        /// These with one letter wrong.
        Misspelt = "one letter wrong",
    }
}

/// In how many documents each word occurs.
#[derive(Debug, Default)]
pub(super) struct Frequencies {
    documents: HashMap<String, u32>,
}

/// A word of a question.
struct Word<'q> {
    written: &'q str,
    start: usize,
    documents: u32,
}

impl Frequencies {
    pub(super) fn count<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut frequencies = Self::default();
        let mut seen = HashSet::new();
        for text in texts {
            seen.clear();
            analyze_with(text, |token| {
                if seen.contains(token.term) {
                    return;
                }
                seen.insert(token.term.to_owned());
                match frequencies.documents.get_mut(token.term) {
                    Some(documents) => *documents += 1,
                    None => {
                        frequencies.documents.insert(token.term.to_owned(), 1);
                    }
                }
            });
        }
        frequencies
    }

    /// A question put in one of the three ways.
    pub(super) fn put(&self, question: &str, wording: Wording) -> String {
        match wording {
            Wording::Asked => question.to_owned(),
            Wording::Rarest => self.rarest(question),
            Wording::Misspelt => self.misspelt(&self.rarest(question)),
        }
    }

    /// The rarest words that some document has, function words aside, in the order of the question; the whole question where
    /// there is none.
    fn rarest(&self, question: &str) -> String {
        let mut words = Vec::new();
        let mut seen = HashSet::new();
        analyze_with(question, |token| {
            let Some(written) = question.get(token.start..token.end) else {
                return;
            };
            let documents = self.documents.get(token.term).copied();
            // The last character of a CJK run is a part of the pair before it.
            let is_whole = token.kind != TokenKind::Tail;
            if let Some(documents) = documents
                && is_whole
                && !is_function_word(written)
                && seen.insert(token.term.to_owned())
            {
                words.push(Word {
                    written,
                    start: token.start,
                    documents,
                });
            }
        });
        words.sort_by_key(|word| word.documents);
        words.truncate(FEW);
        words.sort_by_key(|word| word.start);
        if words.is_empty() {
            return question.to_owned();
        }
        let words: Vec<&str> = words.iter().map(|word| word.written).collect();
        words.join(" ")
    }

    /// The same words, with another letter in the middle of the longest, so that no document has it.
    fn misspelt(&self, words: &str) -> String {
        let length = |word: &&str| word.chars().count();
        // The first of the longest: `max_by_key` would take the last.
        let Some(longest) = words.split(' ').rev().max_by_key(length) else {
            return words.to_owned();
        };
        let middle = longest.chars().count() / 2;
        let Some((at, right)) = longest.char_indices().nth(middle) else {
            return words.to_owned();
        };
        let (head, tail) = longest.split_at(at);
        let tail = &tail[right.len_utf8()..];
        let mut wrong = other_letters(right).map(|letter| format!("{head}{letter}{tail}"));
        match wrong.find(|wrong| !self.is_known(wrong)) {
            Some(wrong) => words.replacen(longest, &wrong, 1),
            None => words.to_owned(),
        }
    }

    fn is_known(&self, word: &str) -> bool {
        let mut is_known = false;
        analyze_with(word, |token| {
            is_known |= self.documents.contains_key(token.term);
        });
        is_known
    }
}

/// Other letters of the same script: those that follow, and for Latin letters the whole alphabet in turn.
fn other_letters(letter: char) -> impl Iterator<Item = char> {
    let lower = letter.to_ascii_lowercase();
    let latin = lower.is_ascii_lowercase().then(|| {
        let following = (lower..='z').chain('a'..lower);
        following.skip(1)
    });
    let others = (letter..char::MAX).skip(1).take(64);
    let others = others.filter(|other| other.is_alphanumeric());
    let others = latin.is_none().then_some(others);
    latin
        .into_iter()
        .flatten()
        .chain(others.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies() -> Frequencies {
        let texts = [
            "The bridge over the river",
            "The river is wide, the bridge is old, the vendors agreed",
            "A bridge again",
            "briege",
            "納期は明日",
            "мост и река",
        ];
        Frequencies::count(texts.into_iter())
    }

    #[test]
    fn the_rarest_words_that_occur_are_left_in_their_order() {
        let rarest = |question| frequencies().put(question, Wording::Rarest);
        assert_eq!(
            rarest("Which Vendors of the old bridge are at the river, and what vendors?"),
            "Vendors old river"
        );
        assert_eq!(rarest("Where's the bridge?"), "bridge");
        assert_eq!(rarest("What about a ferry?"), "What about a ferry?");
        assert_eq!(rarest("納期は"), "納期 期は");
    }

    #[test]
    fn the_longest_word_gets_a_letter_that_makes_it_unknown() {
        let misspelt = |question| frequencies().put(question, Wording::Misspelt);
        assert_eq!(misspelt("the old bridge"), "old brifge");
        assert_eq!(misspelt("the wide river"), "wide riwer");
        assert_eq!(misspelt("мост"), "мотт");
        assert_eq!(misspelt("納期"), "納朠");
    }

    #[test]
    fn the_question_as_asked_is_left_alone() {
        let asked = "  Which \"bridge\", -river? ";
        assert_eq!(frequencies().put(asked, Wording::Asked), asked);
    }
}
