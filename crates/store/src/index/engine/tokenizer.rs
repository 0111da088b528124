//! Our text analysis as the engine's tokenizer.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use text::Tokens;

/// The name under which the index schema refers to it.
pub(crate) const NAME: &str = "pdpp";

/// Splits text into the words of [`text::Tokens`].
#[derive(Debug, Clone, Default)]
pub struct WordTokenizer {
    // Lives on from text to text, so that its buffer is allocated once.
    token: Token,
}

pub struct Words<'a> {
    tokens: Tokens<'a>,
    token: &'a mut Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = Words<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Words<'a> {
        Words {
            tokens: Tokens::new(text),
            token: &mut self.token,
        }
    }
}

impl TokenStream for Words<'_> {
    fn advance(&mut self) -> bool {
        if !self.tokens.advance() {
            return false;
        }
        let word = self.tokens.token();
        self.token.text.clear();
        self.token.text.push_str(word.term);
        self.token.offset_from = word.start;
        self.token.offset_to = word.end;
        self.token.position = word.position as usize;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
