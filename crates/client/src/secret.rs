//! A token in memory: never printed, and removed from what a server sends back.

use std::fmt;

const HIDDEN: &str = "[hidden]";

/// Shorter secrets are not replaced: they would match ordinary words.
const SHORTEST_SOUGHT: usize = 8;

/// A token. Using it takes [`Secret::expose`]; `Debug` and `Display` show nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Accepts text that can stand in a header: visible ASCII without quotes and backslashes.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let usable = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        (!text.is_empty() && text.bytes().all(usable)).then_some(Self(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces this secret in a text, should a server have repeated it.
    pub(crate) fn hide_in(&self, text: String) -> String {
        if self.0.len() < SHORTEST_SOUGHT || !text.contains(&self.0) {
            return text;
        }
        text.replace(&self.0, HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_by_nothing() {
        // UP-12
        let secret = Secret::new("tok_0123456789").unwrap();
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "[hidden] [hidden] Some([hidden])"
        );
        let echo = secret.hide_in("you sent tok_0123456789!".to_owned());
        assert_eq!(echo, "you sent [hidden]!");
    }

    #[test]
    fn a_text_that_cannot_stand_in_a_header_is_no_secret() {
        for text in ["", "a b", "a\n", "a\"b", "a\\b", "é", "a\u{7f}"] {
            assert!(Secret::new(text).is_none(), "{text:?}");
        }
    }
}
