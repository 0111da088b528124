//! Text with what was looked for set apart: excerpts of a search, and windows of a field.

use std::ops::Range;

use contract::search::EvidenceExcerpt;

use super::value::{one_line, tabbed};
use crate::style::Style;

/// A text in pieces, each found or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marked(Vec<(String, bool)>);

impl Marked {
    /// A text and where in it something was found, in characters.
    fn from_ranges(text: &str, found: &[Range<usize>]) -> Self {
        let mut pieces: Vec<(String, bool)> = Vec::new();
        for (at, c) in text.chars().enumerate() {
            let is_found = found.iter().any(|range| range.contains(&at));
            match pieces.last_mut() {
                Some((piece, same)) if *same == is_found => piece.push(c),
                _ => pieces.push((c.to_string(), is_found)),
            }
        }
        Self(pieces)
    }

    pub(crate) fn from_tags(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("<mark>") {
            let (found, after) = after.split_once("</mark>").unwrap_or((after, ""));
            pieces.push((before.to_owned(), false));
            pieces.push((found.to_owned(), true));
            rest = after;
        }
        pieces.push((rest.to_owned(), false));
        // Servers write a tag of the source so that it is none.
        for (piece, _) in &mut pieces {
            *piece = piece.replace("&lt;mark", "<mark");
        }
        pieces.retain(|(piece, _)| !piece.is_empty());
        Self(pieces)
    }

    pub(crate) fn first_found(&self) -> Option<&str> {
        let mut pieces = self.0.iter();
        pieces
            .find(|(_, found)| *found)
            .map(|(piece, _)| piece.as_str())
    }

    /// On one line, nothing set apart.
    pub(crate) fn unmarked(&self) -> String {
        let pieces: Vec<&str> = self.0.iter().map(|(piece, _)| piece.as_str()).collect();
        one_line(&pieces.concat())
    }

    pub(crate) fn one_line(&self, style: Style) -> String {
        let mut text = String::new();
        for (piece, found) in &self.0 {
            // Space at the edges of a piece divides words.
            let (starts, ends) = (
                piece.starts_with(char::is_whitespace),
                piece.ends_with(char::is_whitespace),
            );
            let words = one_line(piece);
            if starts && !text.ends_with(' ') && !text.is_empty() {
                text.push(' ');
            }
            if !words.is_empty() {
                text.push_str(&if *found {
                    style.highlight(&words)
                } else {
                    words
                });
                if ends {
                    text.push(' ');
                }
            }
        }
        text.trim_end().to_owned()
    }

    /// As it was set.
    fn lines(&self, style: Style) -> String {
        let mut text = String::new();
        for (piece, found) in &self.0 {
            for (place, line) in piece.split('\n').enumerate() {
                if place > 0 {
                    text.push('\n');
                }
                let line = tabbed(line.strip_suffix('\r').unwrap_or(line));
                text.push_str(&if *found && !line.is_empty() {
                    style.highlight(&line)
                } else {
                    line
                });
            }
        }
        text
    }
}

/// An excerpt on one line, with its matches, and dots where the field goes on.
pub(crate) fn excerpt(excerpt: &EvidenceExcerpt, style: Style) -> Option<(String, Marked)> {
    let start = excerpt
        .text_start_chars
        .and_then(|at| usize::try_from(at).ok());
    let marked = match (&excerpt.text, start, &excerpt.matches) {
        (Some(text), Some(start), Some(matches)) => {
            let place = |at: u64| usize::try_from(at).ok()?.checked_sub(start);
            let ranges: Vec<Range<usize>> = matches
                .iter()
                .filter_map(|span| Some(place(span.start_chars)?..place(span.end_chars)?))
                .collect();
            Marked::from_ranges(text, &ranges)
        }
        _ => Marked::from_tags(
            excerpt
                .preview_text
                .as_deref()
                .or(excerpt.text.as_deref())?,
        ),
    };
    let before = if start.is_some_and(|at| at > 0) {
        "\u{2026} "
    } else {
        ""
    };
    let after = if excerpt.truncated == Some(true) {
        " \u{2026}"
    } else {
        ""
    };
    Some((format!("{before}{}{after}", marked.one_line(style)), marked))
}

/// The text of a window as it was set, with what was looked for.
pub(crate) fn window_text(text: &str, found: Option<(usize, usize)>, style: Style) -> String {
    let found = found.map(|(start, end)| start..end);
    Marked::from_ranges(text, found.as_slice()).lines(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_marks_and_a_source_tag_stays_text() {
        let marked = Marked::from_tags("a &lt;mark&gt; <mark>bridge</mark> and <mark>two</mark>");
        assert_eq!(
            marked.one_line(Style::new(false)),
            "a <mark&gt; [bridge] and [two]"
        );
        assert_eq!(marked.first_found(), Some("bridge"));
        assert_eq!(
            Marked::from_tags("<mark>open").one_line(Style::new(false)),
            "[open]"
        );
    }

    #[test]
    fn offsets_count_characters_and_lines_are_kept_where_wanted() {
        let found = std::iter::once(6..13).collect::<Vec<_>>();
        let marked = Marked::from_ranges("\u{e9}t\u{e9}\r\n\tb\u{1b}ridge x", &found);
        let plain = Style::new(false);
        assert_eq!(marked.lines(plain), "\u{e9}t\u{e9}\n\t[b\\u{1b}ridge] x");
        assert_eq!(marked.one_line(plain), "\u{e9}t\u{e9} [b\\u{1b}ridge] x");
    }
}
