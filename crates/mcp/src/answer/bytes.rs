//! Bytes that travel as text: told from what people write, and never shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

/// Shorter texts are never taken for base64.
const BASE64_FROM: usize = 256;

/// Bytes that travel as text: base64, also in lines or inside a `data:` address.
pub(crate) fn is_bytes(text: &str) -> bool {
    let is_inline = || {
        let head = text.get(..128).unwrap_or_default();
        text.len() > 256 && text.starts_with("data:") && head.contains(";base64,")
    };
    is_base64(text) || is_inline() || is_base64_in_lines(text)
}

/// Part of a longer text that is bytes: a window has no say in where base64 is cut.
pub(crate) fn is_part_of_bytes(text: &str) -> bool {
    is_bytes(text) || (text.len() >= 256 && is_mixed_base64(text))
}

/// Base64 as mail carries it: lines of one length. The first and the last may be cut.
fn is_base64_in_lines(text: &str) -> bool {
    let mut lines: Vec<&str> = text.trim_end().split('\n').collect();
    for line in &mut lines {
        *line = line.trim_end_matches('\r');
    }
    let [first, width, .., last] = lines.as_slice() else {
        return false;
    };
    let width = width.len();
    let inner = lines.get(1..lines.len() - 1).unwrap_or_default();
    lines.len() >= 4
        && (60..=80).contains(&width)
        && first.len() <= width
        && last.len() <= width
        && inner.iter().all(|line| line.len() == width)
        && is_mixed_base64(&lines.concat())
}

/// Nothing but the base64 alphabet, with capitals, small letters and digits: neither words nor hexadecimal digits.
fn is_mixed_base64(text: &str) -> bool {
    let is_alphabet =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    text.bytes().all(is_alphabet) && is_mixed(text)
}

/// The value with its size in place of every text that is bytes.
pub(super) fn without_bytes(value: &Value) -> Value {
    match value {
        Value::String(text) if is_bytes(text) => {
            json!({"encoding": "base64", "size_chars": text.len(), "left_out": true})
        }
        Value::Array(list) => Value::Array(list.iter().map(without_bytes).collect()),
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(name, value)| (name.clone(), without_bytes(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Long texts of nothing but the base64 alphabet, as varied as bytes are or with words behind them. A long word of prose is
/// shorter than this.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    // Without padding every length but one occurs.
    let is_whole = match padding {
        0 => text.len() % 4 != 1,
        1 | 2 => text.len().is_multiple_of(4),
        _ => false,
    };
    if text.len() < BASE64_FROM || !is_whole {
        return false;
    }
    let mut seen = [false; 128];
    let mut distinct = 0;
    for byte in body.bytes() {
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')) {
            return false;
        }
        let seen = &mut seen[usize::from(byte & 127)];
        distinct += usize::from(!*seen);
        *seen = true;
    }
    (distinct >= 12 && is_mixed(body)) || encodes_words(body)
}

/// Bytes of any length have capitals, small letters and digits; a word or an alphabet repeated has not.
fn is_mixed(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.bytes().any(|byte| test(&byte));
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

/// Whether what it encodes begins with readable characters. What people write in this alphabet encodes none.
fn encodes_words(text: &str) -> bool {
    let start = text.get(..BASE64_FROM).unwrap_or_default();
    let start = start.replace('-', "+").replace('_', "/");
    let is_readable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    STANDARD_NO_PAD
        .decode(start)
        .is_ok_and(|bytes| !bytes.is_empty() && bytes.iter().all(is_readable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_replaced_wherever_they_stand() {
        // LG-02
        let bytes = "QUJDREVGR0hJSktM".repeat(40);
        let inline = format!("data:image/png;base64,{bytes}");
        let shown = without_bytes(&json!({"a":[{"b":bytes}],"c":inline,"d":"text"})).to_string();
        assert!(!shown.contains("QUJD"), "{shown}");
        assert!(shown.contains(r#""size_chars":640"#) && shown.contains(r#""d":"text""#));
    }

    #[test]
    fn base64_in_lines_is_bytes_and_lists_of_words_are_not() {
        // LG-02
        let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0";
        let mail = format!("{}QUJD=", format!("{line}\r\n").repeat(8));
        assert!(is_bytes(&mail) && is_part_of_bytes(&mail[30..500]));
        for text in [
            "Alice1\nBob2\nCarol3\nDave4\n".repeat(40),
            "words of prose ".repeat(40),
            "0af3".repeat(100),
        ] {
            assert!(!is_bytes(&text) && !is_part_of_bytes(&text), "{text}");
        }
    }

    #[test]
    fn long_prose_is_not_taken_for_bytes() {
        assert!(!is_base64(&"word ".repeat(100)));
        assert!(!is_base64(&"a".repeat(400)));
        assert!(!is_base64(&"abcdefghijklmnopqrstuvwxyz".repeat(40)));
        assert!(!is_base64(&"0123456789".repeat(40)));
        assert!(is_base64(&"QUJDREVGR0hJSktM".repeat(40)));
    }

    #[test]
    fn lines_of_several_lengths_are_no_bytes() {
        let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0";
        let ragged = format!("{line}\n{line}\n{}\n{line}\n{}", &line[..40], &line[..20]);
        assert!(!is_bytes(&ragged));
    }
}
