//! The boundary where text of records, labels and servers becomes text for a model.
//!
//! What passes here stands on one line, inside quotes or as one word, and shows characters that steer a display instead
//! of carrying them: it cannot end our line, forge a handle, or hide. Exact texts (field windows, fetched bodies) do
//! not pass here; they are framed where they are printed.

use std::borrow::Cow;
use std::fmt::Write as _;

pub(crate) use contract::steering::is_steering;

/// The text cut to so many bytes at a character, with `…` where something is missing.
pub(crate) fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let mark = '…';
    let end = text.floor_char_boundary(bytes.saturating_sub(mark.len_utf8()));
    let mut shown = String::with_capacity(end + mark.len_utf8());
    shown.push_str(text.get(..end).unwrap_or_default());
    shown.push(mark);
    Cow::Owned(shown)
}

/// A text in double quotes, cut to so many bytes before escaping. The result is a JSON string.
pub(crate) fn quoted(text: &str, bytes: usize) -> String {
    exact(&cut(text, bytes))
}

/// The whole text as a JSON string on one line, with characters that steer a display escaped.
pub(crate) fn exact(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    push_exact(&mut written, text);
    written
}

/// The same, written behind a text.
pub(crate) fn push_exact(written: &mut String, text: &str) {
    written.push('"');
    let mut rest = text;
    loop {
        // What needs no look at single characters is copied at once.
        let ascii = rest.bytes().position(|byte| !is_plain_ascii(byte));
        let (plain, behind) = rest.split_at(ascii.unwrap_or(rest.len()));
        written.push_str(plain);
        let mut characters = behind.chars();
        let Some(character) = characters.next() else {
            break;
        };
        push_escaped(written, character);
        rest = characters.as_str();
    }
    written.push('"');
}

/// A character that stands for itself in a JSON string and steers nothing.
fn is_plain_ascii(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn push_escaped(written: &mut String, character: char) {
    match character {
        '"' => written.push_str("\\\""),
        '\\' => written.push_str("\\\\"),
        '\n' => written.push_str("\\n"),
        '\t' => written.push_str("\\t"),
        '\r' => written.push_str("\\r"),
        other if is_steering(other) => {
            let mut units = [0_u16; 2];
            for unit in other.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(written, "\\u{unit:04x}");
            }
        }
        other => written.push(other),
    }
}

/// JSON with characters that steer a display escaped. It reads back as the same value.
pub(crate) fn json(written: &str) -> Cow<'_, str> {
    if !written.chars().any(is_steering) {
        return Cow::Borrowed(written);
    }
    let mut escaped = String::with_capacity(written.len() + 16);
    // Outside of strings JSON has no such characters, so every one of them may be escaped.
    for character in written.chars() {
        if is_steering(character) {
            push_escaped(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// A handle, name or cursor: as it is where it is one plain word, else as a JSON string. Never cut.
pub(crate) fn token(text: &str) -> Cow<'_, str> {
    let is_plain_word = |byte: u8| is_plain_ascii(byte) && !matches!(byte, b' ' | b'\'' | b'`');
    let is_word = !text.is_empty()
        && (text.bytes().all(is_plain_word)
            || text.chars().all(|character| {
                !character.is_whitespace()
                    && !is_steering(character)
                    && !matches!(character, '"' | '\'' | '`' | '\\')
            }));
    if is_word {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(exact(text))
    }
}

/// A sentence of somebody else on one line, without quotes, cut to so many bytes.
pub(crate) fn line(text: &str, bytes: usize) -> String {
    let quoted = quoted(text, bytes);
    let inner = quoted
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'));
    inner.unwrap_or_default().replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character_and_says_that_it_is_one() {
        assert_eq!(cut("日本語", 9), "日本語");
        assert_eq!(cut("日本語x", 9), "日本…");
        assert_eq!(cut("abc", 2), "…");
    }

    #[test]
    fn quoted_text_is_one_line_of_json_that_reads_back() {
        let hostile = "a\"b\\\n\u{202e}\u{200b}next: fetch 👩\u{200d}👧 \u{7}\u{e0041}";
        let written = quoted(hostile, 1_000);
        assert!(!written.contains(['\n', '\u{202e}', '\u{200b}', '\u{200d}', '\u{7}']));
        let read: String = serde_json::from_str(&written).unwrap();
        assert_eq!(read, hostile);
    }

    #[test]
    fn json_is_one_line_that_reads_back_and_steers_nothing() {
        let hostile = serde_json::json!({"a\u{202e}": ["\n\u{200b}", 1.5, null, "\u{e0041}"]});
        let source = hostile.to_string();
        let written = json(&source);
        assert!(!written.chars().any(is_steering), "{written}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&written).unwrap(),
            hostile
        );
    }

    #[test]
    fn a_token_is_a_word_or_a_json_string() {
        // ID-06
        assert_eq!(token("cin/mail:a,b[x]"), "cin/mail:a,b[x]");
        assert_eq!(token("cin/mail:m 1"), "\"cin/mail:m 1\"");
        assert_eq!(token(""), "\"\"");
        assert_eq!(token("東京:ключ"), "東京:ключ");
        assert_eq!(token("a\u{202e}b"), "\"a\\u202eb\"");
    }

    #[test]
    fn a_foreign_sentence_cannot_start_a_line_of_its_own() {
        assert_eq!(line("first\nnext: \"evil\"", 100), "first\\nnext: \"evil\"");
    }
}
