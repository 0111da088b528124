//! The members of a page as they stand in text: how much there is, how it goes on, and what to know about it.

use std::fmt::Write as _;

use contract::page::{Page, Recall, Warning, WarningCode, Warnings as _};
use contract::words::WordsFound;

use super::plain;

use crate::budget;
use crate::tool_call::ToolCall;

/// As many words of a search that found nothing are told.
const SHOWN_WORDS: usize = 12;

/// Whether this is all, and how much there is, each with a space before it.
pub(crate) fn extent<T>(page: &Page<T>) -> String {
    let mut written = String::new();
    // Writing to a String cannot fail.
    if let Some(has_more) = page.has_more {
        let _ = write!(written, " has_more={has_more}");
    }
    let count = page.meta.as_ref().and_then(|meta| meta.count.as_option());
    if let Some(contract::page::ReportedCount::Kind(count)) = count
        && let Some(value) = count.value
    {
        let _ = write!(written, " count={}:{value}", plain::token(&count.kind));
    }
    written
}

/// The handles to go on with, each with a space before it.
pub(crate) fn way_on<T>(page: &Page<T>) -> String {
    let mut written = String::new();
    if let Some(cursor) = page.next_cursor() {
        let _ = write!(written, " next_cursor={}", plain::exact(cursor));
    }
    if let Some(bookmark) = page.next_changes_since.as_option() {
        let _ = write!(written, " next_changes_since={}", plain::exact(bookmark));
    }
    written
}

pub(crate) fn page_warnings<T>(page: &Page<T>) -> Option<String> {
    warnings(page.warnings())
}

/// The codes of all warnings on one line, each with the source it is about: `limit_clamped, source_unavailable(cin_x)`.
pub(crate) fn warnings(warnings: &[Warning]) -> Option<String> {
    let mut codes: Vec<String> = Vec::new();
    for warning in warnings {
        let code = plain::line(warning.code.as_str(), budget::LABEL);
        let written = match &warning.connection_id {
            Some(source) => format!("{code}({})", plain::line(source, budget::LABEL)),
            None => code,
        };
        if !codes.contains(&written) {
            codes.push(written);
        }
    }
    (!codes.is_empty()).then(|| plain::cut(&codes.join(", "), budget::EXCERPT).into_owned())
}

/// The call that tells what can be asked of a connection that was not searched.
pub(crate) fn skipped<T>(page: &Page<T>) -> Option<String> {
    let skipped = WarningCode::SourceSkippedNotApplicable;
    let warning = page.warnings().iter().find(|one| one.code == skipped)?;
    let call = ToolCall::new("schema").with("connection_id", warning.connection_id.as_ref()?);
    Some(format!("not searched; {call} tells what it takes"))
}

/// Why a search found nothing, or which of its words were found and which are nowhere, where the server says so.
pub(crate) fn words<T>(page: &Page<T>) -> Option<String> {
    let words = page.meta.as_ref()?.words.as_ref()?;
    if page.data.is_empty() {
        return words.summary(SHOWN_WORDS);
    }
    found(words)
}

/// Which words are nowhere and which were found; where all were, how many records hold every one of them.
fn found(words: &WordsFound) -> Option<String> {
    let or_more = match words.with_every_word_or_more {
        Some(true) => " or more",
        _ => "",
    };
    let shown = words.found.iter().filter(|word| !is_fragment(word));
    let shown: Vec<&str> = shown.map(String::as_str).collect();
    let told = match (words.remarks(), words.with_every_word) {
        (Some(nowhere), _) if shown.is_empty() => nowhere,
        (Some(nowhere), _) => format!("{nowhere} Found: {}.", shown.join(", ")),
        (None, Some(0)) => "No record has every word.".to_owned(),
        (None, Some(records)) => format!("Every word in {records}{or_more} record(s)."),
        (None, None) => return None,
    };
    Some(told)
}

/// Whether this is one of the pairs that a question without spaces is looked up by. What it says stands in no pair alone.
pub(crate) fn is_fragment(word: &str) -> bool {
    let is_unspaced = |character| matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}');
    word.chars().count() == 2 && word.chars().all(is_unspaced)
}

/// Whether the page ends because what follows matches far less well.
pub(crate) fn weaker_follow<T>(page: &Page<T>) -> bool {
    page.meta.as_ref().is_some_and(|meta| meta.weaker_follow)
}

/// A sentence for a search that could not look at everything (UP-02).
pub(crate) fn recall<T>(page: &Page<T>) -> Option<String> {
    let meta = page.meta.as_ref()?;
    let recall: &Recall = meta.recall.as_ref()?;
    if recall.complete && recall.ranking_scope != "candidate_window" {
        return None;
    }
    let mut written = String::from("recall is partial: matches may be missing");
    for (name, number) in [
        ("ranked_candidate_count", recall.ranked_candidate_count),
        ("candidate_window_limit", recall.candidate_window_limit),
        ("truncated_source_count", recall.truncated_source_count),
    ] {
        if let Some(number) = number {
            let _ = write!(written, " {name}={number}");
        }
    }
    let building = meta
        .index_maintenance
        .as_ref()
        .and_then(|index| index.percent);
    if let Some(percent) = building {
        let _ = write!(written, "; the index is being built, {percent} % are done");
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_were_found_are_told_in_few_words() {
        // FI-05
        let mut words = WordsFound {
            found: vec!["bridge".to_owned(), "vendors".to_owned()],
            with_every_word: Some(9),
            ..WordsFound::default()
        };
        let told = |words: &WordsFound| found(words).unwrap_or_default();
        assert_eq!(told(&words), "Every word in 9 record(s).");
        words.with_every_word_or_more = Some(true);
        assert_eq!(told(&words), "Every word in 9 or more record(s).");
        words.with_every_word = Some(0);
        assert_eq!(told(&words), "No record has every word.");
        words.missing = vec!["nut".to_owned()];
        assert_eq!(told(&words), "Found nowhere: nut. Found: bridge, vendors.");
        words.found = vec!["之島".to_owned(), "島の".to_owned()];
        assert_eq!(told(&words), "Found nowhere: nut.");
        assert_eq!(found(&WordsFound::default()), None);
    }

    #[test]
    fn warnings_are_named_once_with_their_source() {
        let clamped = Warning::new(WarningCode::LimitClamped, "x");
        let mut away = Warning::new(WarningCode::Other("source_unavailable".to_owned()), "");
        away.connection_id = Some("cin_x".to_owned());
        assert_eq!(
            warnings(&[clamped.clone(), away, clamped]).unwrap(),
            "limit_clamped, source_unavailable(cin_x)"
        );
        assert_eq!(warnings(&[]), None);
    }
}
