//! One value of a record.

use serde_json::value::RawValue;

use super::json;
use crate::moment;
use crate::output::visible;

pub(super) struct Value {
    pub(super) lines: Vec<String>,
    /// The characters shown and all there are, where some are missing.
    pub(super) cut: Option<(usize, usize)>,
    pub(super) is_text: bool,
}

impl Value {
    /// A value, at most so many characters of it. Where lines are kept, a text is shown as it was set.
    pub(super) fn new(raw: &RawValue, most: usize, keep_lines: bool) -> Self {
        let raw = raw.get();
        let text: Option<String> = serde_json::from_str(raw).ok();
        let is_text = text.is_some();
        let whole = match text {
            Some(text) => moment::to_local(&text).unwrap_or(text),
            None => json::compact(raw),
        };
        let all = whole.chars().count();
        let mut shown: String = whole.chars().take(most).collect();
        let cut = (all > most).then_some((most, all));
        if cut.is_some() {
            shown.push('\u{2026}');
        }
        let lines = if keep_lines && is_text {
            shown.lines().map(tabbed).collect()
        } else {
            vec![one_line(&shown)]
        };
        Self {
            lines,
            cut,
            is_text,
        }
    }
}

pub(crate) fn short_value(raw: &RawValue) -> String {
    Value::new(raw, super::LISTED_CHARS, false).lines.concat()
}

/// A text on one line, each run of space as one.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" "))
}

/// A line of a text that is shown as it was set; tabs stay, for they only move on.
pub(super) fn tabbed(line: &str) -> String {
    let pieces: Vec<String> = line.split('\t').map(visible).collect();
    pieces.join("\t")
}
