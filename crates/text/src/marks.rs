//! The highlighted form of an excerpt: `<mark>` around each match, always balanced, and never confused with a `<mark` that the source
//! itself contains.

/// A stretch of characters (Unicode scalar values) of a whole field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First character.
    pub start_chars: usize,
    /// One behind the last character.
    pub end_chars: usize,
}

/// Writes `text`, which begins at character `excerpt_start_chars` of its field, with `<mark>` and `</mark>` around `matches` (absolute
/// spans, sorted). Spans are clipped to the text, overlapping ones continue each other, and a `<mark` or `</mark` of the source, in any
/// case, is written with `&lt;`.
pub fn marked(text: &str, excerpt_start_chars: usize, matches: &[Span]) -> String {
    let mut out = String::with_capacity(text.len() + matches.len() * 13);
    let mut spans = matches.iter();
    let mut span = spans.next();
    let mut open = false;
    for (index, (at, c)) in text.char_indices().enumerate() {
        let place = excerpt_start_chars + index;
        while span.is_some_and(|span| span.end_chars <= place) {
            if open {
                out.push_str("</mark>");
                open = false;
            }
            span = spans.next();
        }
        if !open && span.is_some_and(|span| span.start_chars <= place) {
            out.push_str("<mark>");
            open = true;
        }
        if c == '<' && opens_a_mark(&text[at + 1..]) {
            out.push_str("&lt;");
        } else {
            out.push(c);
        }
    }
    if open {
        out.push_str("</mark>");
    }
    out
}

fn opens_a_mark(after_bracket: &str) -> bool {
    let name = after_bracket.strip_prefix('/').unwrap_or(after_bracket);
    name.as_bytes()
        .get(..4)
        .is_some_and(|bytes| bytes.eq_ignore_ascii_case(b"mark"))
}
