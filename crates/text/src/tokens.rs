//! The stream of words of a text: each with its folded term, its place in the text and its position among the others. ASCII, which is
//! most text, is cut by a table and borrowed from the source; everything else goes through the classes of `classes.rs`.

use std::ops::Range;

use crate::classes::{Class, class_of, entry, is_accent, is_complex_block};
use crate::fold::{fold_entry, fold_into};
use crate::runs::{Run, Writing};

/// Longest term in bytes; longer words are cut here on both sides, so they are still found (with whatever shares that beginning).
pub const MAX_TERM_BYTES: usize = 128;

/// A longer word needs no more folding than this: the term is cut before, and marks reorder only within a few characters.
const MAX_FOLDED_BYTES: usize = MAX_TERM_BYTES + 64;

/// One word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The folded term, never empty, at most [`MAX_TERM_BYTES`] long.
    pub term: &'a str,
    /// Where the word begins in the source, in bytes.
    pub start: usize,
    /// Where it ends, in bytes, with the marks that stand on it.
    pub end: usize,
    /// Counts the tokens of the text from 0; neighbours in a phrase have neighbouring positions.
    pub position: u32,
    /// What the token was cut from.
    pub kind: TokenKind,
}

/// What a token was cut from. Only CJK text makes a difference: its tokens overlap, and a query must know where a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A whole word or pictograph.
    Word,
    /// Two neighbouring CJK characters; the first ends at `head_end` (bytes in the source).
    Pair {
        /// End of the first of the two characters.
        head_end: usize,
    },
    /// The last character of a CJK run of several.
    Tail,
    /// A CJK character that stands alone.
    Single,
}

/// Where a term is kept until the next one is looked for.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    Source(Range<usize>),
    Folded,
    Run(Range<usize>),
}

/// A token before its term is borrowed.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) term: Term,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: TokenKind,
}

/// Reads the words of a text one after another, allocating nothing per word: [`advance`](Tokens::advance), then
/// [`token`](Tokens::token).
#[derive(Debug)]
pub struct Tokens<'t> {
    text: &'t str,
    next: usize,
    seen: u32,
    found: Found,
    folded: String,
    run: Run,
}

const SEPARATOR: u8 = 0;
// Bits, so that a word's classes can be gathered.
const PLAIN: u8 = 1;
const UPPER: u8 = 2;
const WIDE: u8 = 4;

static BYTES: [u8; 256] = byte_classes();

#[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
const fn byte_classes() -> [u8; 256] {
    let mut table = [SEPARATOR; 256];
    let mut byte: u8 = 0;
    loop {
        table[byte as usize] = if byte >= 0x80 {
            WIDE
        } else if byte.is_ascii_uppercase() {
            UPPER
        } else if byte.is_ascii_alphanumeric() {
            PLAIN
        } else {
            SEPARATOR
        };
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

/// The class of a byte.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
fn class_of_byte(byte: u8) -> u8 {
    BYTES[usize::from(byte)]
}

impl<'t> Tokens<'t> {
    /// Begins at the start of `text`.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            next: 0,
            seen: 0,
            found: Found {
                term: Term::Source(0..0),
                start: 0,
                end: 0,
                kind: TokenKind::Word,
            },
            folded: String::new(),
            run: Run::default(),
        }
    }

    /// Goes to the next word; `false` at the end of the text.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if let Some(found) = self.run.next() {
            return self.keep(found);
        }
        let bytes = self.text.as_bytes();
        loop {
            let mut at = self.next;
            while let Some(&byte) = bytes.get(at)
                && class_of_byte(byte) == SEPARATOR
            {
                at += 1;
            }
            match bytes.get(at) {
                None => {
                    self.next = at;
                    return false;
                }
                Some(byte) if byte.is_ascii() => {
                    if self.ascii_word(at) {
                        return true;
                    }
                }
                Some(_) => {
                    if let Some(found) = self.wide_word(at) {
                        return self.keep(found);
                    }
                }
            }
        }
    }

    /// The word last advanced to.
    #[inline]
    pub fn token(&self) -> Token<'_> {
        let term = match &self.found.term {
            Term::Source(range) => &self.text[range.clone()],
            Term::Folded => cut(&self.folded),
            Term::Run(range) => cut(self.run.slice(range.clone())),
        };
        Token {
            term,
            start: self.found.start,
            end: self.found.end,
            position: self.seen.saturating_sub(1),
            kind: self.found.kind,
        }
    }

    #[inline]
    fn keep(&mut self, found: Found) -> bool {
        self.found = found;
        self.seen = self.seen.saturating_add(1);
        true
    }

    /// A word that begins with an ASCII letter or digit; borrowed from the source when it is lower case already.
    #[inline]
    fn ascii_word(&mut self, start: usize) -> bool {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut seen = 0;
        while let Some(&byte) = bytes.get(at) {
            let class = class_of_byte(byte);
            seen |= class;
            if class == SEPARATOR || class == WIDE {
                break;
            }
            at += 1;
        }
        if seen & WIDE != 0 {
            return match self.mixed_word(start, at) {
                Some(found) => self.keep(found),
                None => false,
            };
        }
        self.next = at;
        let range = start..at.min(start + MAX_TERM_BYTES);
        self.found.start = start;
        self.found.end = at;
        self.found.kind = TokenKind::Word;
        self.found.term = if seen & UPPER != 0 {
            self.folded.clear();
            self.folded.push_str(&self.text[range]);
            self.folded.make_ascii_lowercase();
            Term::Folded
        } else {
            Term::Source(range)
        };
        self.seen = self.seen.saturating_add(1);
        true
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Whatever begins with a character beyond ASCII; `None` when that is no word, with `next` behind it.
    fn wide_word(&mut self, at: usize) -> Option<Found> {
        let c = self.char_at(at)?;
        let after = at + c.len_utf8();
        self.next = after;
        match class_of(c) {
            Class::Separator | Class::Invisible | Class::Extender => None,
            Class::Mark if is_accent(c) => None,
            Class::Mark if self.has_complex_mark(at) => self.run_of(Writing::Unspaced, at),
            Class::Mark | Class::Word => self.mixed_word(at, at),
            Class::Cjk => self.run_of(Writing::Pairs, at),
            Class::Complex => self.run_of(Writing::Unspaced, at),
            class @ (Class::Pictograph | Class::Flag) => Some(self.pictograph(c, class, at)),
        }
    }

    /// Whether one of the marks that begin here, on no letter, is of a script without spaces: any, for their order may be written
    /// otherwise.
    fn has_complex_mark(&self, at: usize) -> bool {
        let rest = self.text[at..].chars();
        rest.take_while(|c| class_of(*c) == Class::Mark)
            .any(is_complex_block)
    }

    fn run_of(&mut self, writing: Writing, at: usize) -> Option<Found> {
        self.next = self.run.read(self.text, at, writing);
        self.run.next()
    }

    /// A word of `start..at` in ASCII that goes on with something else.
    fn mixed_word(&mut self, start: usize, at: usize) -> Option<Found> {
        self.folded.clear();
        let ascii = &self.text[start..at.min(start + MAX_FOLDED_BYTES)];
        self.folded.push_str(ascii);
        self.folded.make_ascii_lowercase();
        let mut end = at;
        let mut length = at - start;
        for c in self.text[at..].chars() {
            let entry = entry(c);
            let class = entry.map_or_else(|| class_of(c), |entry| entry.class);
            match class {
                Class::Word | Class::Mark => {
                    if self.folded.len() < MAX_FOLDED_BYTES {
                        match entry {
                            Some(entry) => fold_entry(c, entry, &mut self.folded),
                            None => fold_into(c, &mut self.folded),
                        }
                    }
                    end = start + length + c.len_utf8();
                }
                Class::Extender => end = start + length + c.len_utf8(),
                Class::Invisible => {}
                _ => break,
            }
            length += c.len_utf8();
        }
        self.next = start + length;
        (!self.folded.is_empty()).then_some(Found {
            term: Term::Folded,
            start,
            end,
            kind: TokenKind::Word,
        })
    }

    /// One symbol, or the two halves of a flag, with whatever dresses it.
    fn pictograph(&mut self, symbol: char, class: Class, start: usize) -> Found {
        self.folded.clear();
        self.folded.push(symbol);
        let mut end = start + symbol.len_utf8();
        let mut awaits_half = class == Class::Flag;
        for c in self.text[end..].chars() {
            match class_of(c) {
                Class::Extender | Class::Mark => {}
                Class::Flag if awaits_half => {
                    self.folded.push(c);
                    awaits_half = false;
                }
                _ => break,
            }
            end += c.len_utf8();
        }
        self.next = end;
        Found {
            term: Term::Folded,
            start,
            end,
            kind: TokenKind::Word,
        }
    }
}

/// The term without what is beyond [`MAX_TERM_BYTES`].
#[inline]
fn cut(term: &str) -> &str {
    if term.len() <= MAX_TERM_BYTES {
        return term;
    }
    &term[..term.floor_char_boundary(MAX_TERM_BYTES)]
}

/// Calls `each` for every word of `text`, in order.
pub fn analyze(text: &str, each: &mut dyn FnMut(Token<'_>)) {
    analyze_with(text, each);
}

/// [`analyze`], compiled for the given closure: the fast form for indexing.
#[inline]
pub fn analyze_with(text: &str, mut each: impl FnMut(Token<'_>)) {
    let mut tokens = Tokens::new(text);
    while tokens.advance() {
        each(tokens.token());
    }
}
