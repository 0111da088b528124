//! Whether a text has given words, in any order, found as the index finds them.

use crate::tokens::{TokenKind, Tokens};

/// The terms that a text must have to have these words. The last character of a CJK run says nothing that the pairs before
/// it do not.
pub fn terms_of(words: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    let mut tokens = Tokens::new(words);
    while tokens.advance() {
        let token = tokens.token();
        if token.kind != TokenKind::Tail && !terms.iter().any(|known| known == token.term) {
            terms.push(token.term.to_owned());
        }
    }
    terms
}

/// Whether a text has all these words; never where there are none.
pub fn has_words(text: &str, words: &str) -> bool {
    let mut missing = terms_of(words);
    if missing.is_empty() {
        return false;
    }
    let mut tokens = Tokens::new(text);
    while !missing.is_empty() && tokens.advance() {
        let token = tokens.token();
        missing.retain(|term| term != token.term);
    }
    missing.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_folded_and_in_any_order() {
        for (text, words, has) in [
            ("Dinner with Zoë at eight", "zoe", true),
            ("Dinner with Zoë at eight", "EIGHT dinner", true),
            ("Dinners", "dinner", false),
            ("Dinner", "dinner lunch", false),
            ("東京都庁", "東京", true),
            ("京東", "東京", false),
            ("anything", "!", false),
        ] {
            assert_eq!(has_words(text, words), has, "{text:?} {words:?}");
        }
    }
}
