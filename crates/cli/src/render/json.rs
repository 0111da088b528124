//! JSON on one line, its digits and members as written.

/// The text without the space between its tokens.
pub(super) fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        if inside {
            out.push(c);
            inside = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if !c.is_ascii_whitespace() {
            out.push(c);
            inside = c == '"';
            if matches!(c, ',' | ':') {
                out.push(' ');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_between_tokens_goes_and_all_else_stays() {
        let text = "{\n  \"a\" : [1.50, \"x \\\" :,\\\\\" ,null],\"b\":12345678901234567890.10\n}";
        assert_eq!(
            compact(text),
            "{\"a\": [1.50, \"x \\\" :,\\\\\", null], \"b\": 12345678901234567890.10}"
        );
    }
}
