//! The words of a search: which were found, and in which form; and why a search found nothing.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The words of a search, as far as the caller may see records with them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WordsFound {
    /// Words that occur, in one form or another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Words that occur nowhere as they were written, with the near spellings that were looked for instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub respelled: Vec<Respelled>,
    pub with_every_word: Option<u64>,
    /// There may be more with every word: counting ends at a thousand.
    pub with_every_word_or_more: Option<bool>,
    /// When nothing was found: what was asked for, and how many records have it, whatever filters were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermCount>,
    /// Beginnings of words that occur nowhere, which do occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<TermCount>,
    /// How many records would match without the filters.
    pub without_filters: Option<u64>,
    /// How many would, whatever filters were given, if no word were excluded.
    pub without_excluded: Option<u64>,
}

/// A word, and what was looked for instead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Respelled {
    pub term: String,
    pub found: Vec<String>,
}

/// A word, a phrase or a prefix, and how many records have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TermCount {
    pub term: String,
    pub count: u64,
}

impl WordsFound {
    /// What a reader of hits should know: words that are nowhere, and words looked for in another spelling.
    pub fn remarks(&self) -> Option<String> {
        let respelled = self.respelled.iter();
        let respelled =
            respelled.map(|one| format!("{} (looked for {})", one.term, one.found.join(", ")));
        let nowhere: Vec<String> = self.missing.iter().cloned().chain(respelled).collect();
        (!nowhere.is_empty()).then(|| format!("Found nowhere: {}.", nowhere.join(", ")))
    }

    /// What occurs and how often, then what to try; at most so many words, those that occur nowhere first. Nothing where the
    /// words were not counted: a page is empty for another reason then.
    pub fn summary(&self, most: usize) -> Option<String> {
        let is_found = !self.found.is_empty() || !self.respelled.is_empty();
        if is_found && self.terms.is_empty() {
            return None;
        }
        let (absent, present) = self.sorted();
        let shown: Vec<String> = absent
            .iter()
            .chain(&present)
            .take(most)
            .map(|one| format!("{} in {}", one.term, one.count))
            .collect();
        let advice = self.advice();
        if shown.is_empty() {
            return Some(advice);
        }
        let more = match self.terms.len().saturating_sub(most) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "Of the records that may be read: {}{more}. {advice}",
            shown.join(", ")
        ))
    }

    fn advice(&self) -> String {
        let (absent, present) = self.sorted();
        let mut tries = Vec::new();
        match (absent.as_slice(), present.as_slice()) {
            ([], []) => tries.push(
                "a word to look for: signs stand for nothing, and -words only leave out".to_owned(),
            ),
            ([], [_, _, ..]) => {
                tries.push("fewer of these words: no record has them all".to_owned());
            }
            ([first], [_, ..]) => tries.push(format!("leave out {}", first.term)),
            ([_, _, ..], [_, ..]) => tries.push("leave out the words that are in 0".to_owned()),
            _ => {}
        }
        if absent.iter().any(|one| one.term.starts_with('"')) {
            tries.push("the words of the phrase without quotation marks".to_owned());
        }
        if let Some(matching) = self.without_excluded.filter(|matching| *matching > 0) {
            tries.push(format!("no -words: {matching} match without them"));
        }
        let beginnings = self.suggestions.iter();
        tries.extend(beginnings.map(|one| format!("{}, which is in {}", one.term, one.count)));
        if let Some(matching) = self.without_filters.filter(|matching| *matching > 0) {
            tries.push(format!("fewer filters: {matching} match without them"));
        }
        if tries.is_empty() {
            tries.push("other words, or the beginning of one with *".to_owned());
        }
        format!("To try: {}.", tries.join("; "))
    }

    fn sorted(&self) -> (Vec<&TermCount>, Vec<&TermCount>) {
        self.terms.iter().partition(|one| one.count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(terms: &[(&str, u64)]) -> Vec<TermCount> {
        let terms = terms.iter().map(|(term, count)| TermCount {
            term: (*term).to_owned(),
            count: *count,
        });
        terms.collect()
    }

    #[test]
    fn what_is_nowhere_is_told_with_what_was_looked_for_instead() {
        let mut words = WordsFound {
            found: vec!["bridge".to_owned()],
            ..WordsFound::default()
        };
        assert_eq!(words.remarks(), None);
        words.missing = vec!["nut".to_owned()];
        words.respelled = vec![Respelled {
            term: "vendr".to_owned(),
            found: vec!["vendor".to_owned(), "vendors".to_owned()],
        }];
        let told = "Found nowhere: nut, vendr (looked for vendor, vendors).";
        assert_eq!(words.remarks().as_deref(), Some(told));
    }

    // TR-17: nothing found is told with what occurs, how often, and what can help.
    #[test]
    fn nothing_found_is_told_with_what_can_help() {
        let summary = |terms: &[(&str, u64)], suggestions: &[(&str, u64)], filters: Option<u64>| {
            let words = WordsFound {
                terms: counted(terms),
                suggestions: counted(suggestions),
                without_filters: filters,
                ..WordsFound::default()
            };
            words.summary(3).unwrap()
        };
        assert_eq!(
            summary(&[("bridge", 12), ("vendors", 0)], &[("vend*", 5)], None),
            "Of the records that may be read: vendors in 0, bridge in 12. To try: leave out vendors; vend*, which is in 5."
        );
        assert_eq!(
            summary(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)], &[], Some(0)),
            "Of the records that may be read: a in 1, b in 2, c in 3 and 1 more. To try: fewer of these words: no record has them all."
        );
        assert_eq!(
            summary(&[("a", 9)], &[], Some(3)),
            "Of the records that may be read: a in 9. To try: fewer filters: 3 match without them."
        );
        assert_eq!(
            summary(&[("a", 0)], &[], None),
            "Of the records that may be read: a in 0. To try: other words, or the beginning of one with *."
        );
        assert_eq!(
            summary(&[], &[], None),
            "To try: a word to look for: signs stand for nothing, and -words only leave out."
        );
        assert_eq!(
            summary(&[("\"rain clouds\"", 0)], &[], None),
            "Of the records that may be read: \"rain clouds\" in 0. To try: the words of the phrase without quotation marks."
        );
        let excluded = WordsFound {
            terms: counted(&[("weather", 60)]),
            without_excluded: Some(60),
            ..WordsFound::default()
        };
        assert_eq!(
            excluded.summary(3).as_deref(),
            Some(
                "Of the records that may be read: weather in 60. To try: no -words: 60 match without them."
            )
        );
        // What was found and is not shown, such as a damaged record, is no reason to look for something else.
        let found = WordsFound {
            found: vec!["bridge".to_owned()],
            ..WordsFound::default()
        };
        assert_eq!(found.summary(3), None);
    }
}
