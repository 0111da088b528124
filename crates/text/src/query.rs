//! What a person types into a search box, read without ever failing: words of which any may occur, `"phrases"`, `prefix*` and
//! `+required` words that must, and `-excluded` ones that must not. Whatever is not well-formed is read as plain words, and
//! everything is bounded.

use crate::function_words::is_function_word;
use crate::tokens::{TokenKind, Tokens};

/// Most clauses of one expression, wanted and excluded together. A set of clauses fits the bits of a `u64`.
pub const MAX_CLAUSES: usize = 64;

/// Most terms of one phrase.
pub const MAX_PHRASE_TERMS: usize = 64;

/// A parsed query: every required clause of `wanted` must occur, and at least one of `wanted`; none of `none` may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expression {
    /// What is looked for.
    pub wanted: Vec<Clause>,
    /// What must not occur.
    pub none: Vec<Clause>,
    /// Whether something beyond [`MAX_CLAUSES`] or [`MAX_PHRASE_TERMS`] was left out.
    pub truncated: bool,
}

/// One thing to look for: a word, or a phrase of neighbouring words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clause {
    /// Folded terms at neighbouring positions; one is a word, several are a phrase.
    pub terms: Vec<String>,
    /// Whether the last term only has to begin the word.
    pub prefix: bool,
    /// Whether a record must have it.
    pub required: bool,
    /// Other words that stand for it. Parsing leaves this empty: which words there are only an index knows.
    pub forms: Vec<Form>,
}

/// Another word that stands for a word of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The folded term.
    pub term: String,
    /// How it is related.
    pub kind: FormKind,
}

/// How a found word is related to the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormKind {
    /// Another form of it, such as the plural.
    Form,
    /// Nearly the same letters.
    Spelling,
}

impl Clause {
    /// The word, if this is one whole word whose other forms count as well.
    pub fn flexible_word(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [only] if !self.prefix && !self.required => Some(only),
            _ => None,
        }
    }
}

impl Expression {
    /// Whether something must occur, or must not.
    pub fn is_strict(&self) -> bool {
        !self.none.is_empty() || self.wanted.iter().any(|clause| clause.required)
    }

    /// Reads a query of which any word may occur. Function words are left out unless there is nothing else, and a word that
    /// analyses to several terms stands for each of them.
    pub fn parse(query: &str) -> Self {
        let mut expression = Self::default();
        let mut function_words = Self::default();
        for item in Items(query) {
            if item.excluded || item.required {
                expression.push_strict(&item);
                continue;
            }
            let mut tokens = Tokens::new(item.text);
            while tokens.advance() {
                let token = tokens.token();
                // The run may go on in the text that is searched, so only its pairs are asked for.
                if token.kind == TokenKind::Tail {
                    continue;
                }
                let word = item.text.get(token.start..token.end).unwrap_or_default();
                let after = item.text.get(token.end..).unwrap_or_default();
                let is_function = is_function_word(word) || is_negated_verb(word, after);
                let side = if is_function {
                    &mut function_words
                } else {
                    &mut expression
                };
                side.push(Clause {
                    terms: vec![token.term.to_owned()],
                    // A single character begins a pair wherever another one follows it.
                    prefix: token.kind == TokenKind::Single,
                    ..Clause::default()
                });
                if side.truncated {
                    break;
                }
            }
        }
        if expression.wanted.is_empty() {
            expression.wanted = function_words.wanted;
            expression.truncated |= function_words.truncated;
        }
        expression
    }

    /// Reads a query of which every word must occur, function words included. A word that analyses to several terms is a
    /// phrase.
    pub fn parse_all(query: &str) -> Self {
        let mut expression = Self::default();
        for item in Items(query) {
            expression.push_strict(&item);
        }
        expression
    }

    /// Whether no record can match: nothing is asked for, or only what must not occur.
    pub fn matches_nothing(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds an item as it is written, as one clause that must occur, or must not.
    fn push_strict(&mut self, item: &Item<'_>) {
        let (clause, cut) = strict_clause(item.text, item.starred);
        let Some(clause) = clause else {
            return;
        };
        self.truncated |= cut;
        if item.excluded {
            self.exclude(clause);
        } else {
            self.push(clause);
        }
    }

    fn push(&mut self, clause: Clause) {
        if self.wanted.contains(&clause) {
            return;
        }
        if self.is_full() {
            self.truncated = true;
        } else {
            self.wanted.push(clause);
        }
    }

    fn exclude(&mut self, clause: Clause) {
        if self.none.contains(&clause) {
            return;
        }
        if self.is_full() {
            self.truncated = true;
        } else {
            self.none.push(clause);
        }
    }

    fn is_full(&self) -> bool {
        self.wanted.len() + self.none.len() >= MAX_CLAUSES
    }
}

/// One word or phrase as written, without its operators.
struct Item<'q> {
    text: &'q str,
    excluded: bool,
    /// Marked with a plus, quoted, or with a star at its end.
    required: bool,
    starred: bool,
}

/// The words and phrases of a query, in order.
struct Items<'q>(&'q str);

impl<'q> Iterator for Items<'q> {
    type Item = Item<'q>;

    fn next(&mut self) -> Option<Item<'q>> {
        let rest = self.0.trim_start();
        if rest.is_empty() {
            return None;
        }
        let (item, after) = Item::read(rest);
        self.0 = after;
        Some(item)
    }
}

impl<'q> Item<'q> {
    /// Reads the item at the start of `rest`, which begins with no white space, and returns what follows it.
    fn read(rest: &'q str) -> (Self, &'q str) {
        let operator = |sign: char| {
            let body = rest.strip_prefix(sign)?;
            body.starts_with(|c: char| c != sign && !c.is_whitespace())
                .then_some(body)
        };
        let (excluded, plus, body) = match (operator('-'), operator('+')) {
            (Some(body), _) => (true, false, body),
            (None, Some(body)) => (false, true, body),
            (None, None) => (false, false, rest),
        };
        if let Some((text, after)) = quoted(body) {
            let (inner, inner_star) = without_star(text);
            let outer = after.trim_start_matches('*');
            let item = Self {
                text: inner,
                excluded,
                required: true,
                starred: inner_star || outer.len() < after.len(),
            };
            return (item, outer);
        }
        let end = body.find(char::is_whitespace).unwrap_or(body.len());
        let (word, after) = body.split_at(end);
        let (text, starred) = without_star(word);
        // A quote that never closes takes the meaning of the sign before it away: plain words are left.
        let open = word.starts_with(is_quote);
        let item = Self {
            text,
            excluded: excluded && !open,
            required: (plus && !open) || starred,
            starred,
        };
        (item, after)
    }
}

/// Whether a word and what follows it are a negated auxiliary: `don't`, `won’t`. Without its end such a word may mean anything.
fn is_negated_verb(word: &str, after: &str) -> bool {
    let ending = after.strip_prefix(['\'', '’']);
    let ending = ending.and_then(|ending| ending.strip_prefix(['t', 'T']));
    word.ends_with(['n', 'N'])
        && ending.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The text between a quote at the start of `body` and the next one, and what follows.
fn quoted(body: &str) -> Option<(&str, &str)> {
    let inside = body.strip_prefix(is_quote)?;
    let end = inside.find(is_quote)?;
    let after = inside.get(end..)?.strip_prefix(is_quote)?;
    Some((inside.get(..end)?, after))
}

/// Phones write the typographic ones.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '‟' | '＂')
}

fn without_star(text: &str) -> (&str, bool) {
    let stem = text.trim_end_matches('*');
    (stem, stem.len() < text.len())
}

/// The clause a piece of text stands for as it is written, and whether terms were left out.
fn strict_clause(text: &str, starred: bool) -> (Option<Clause>, bool) {
    let mut terms: Vec<String> = Vec::new();
    let mut last = None;
    let mut tokens = Tokens::new(text);
    // One more than allowed: the tail of a CJK run may have to go again.
    while terms.len() <= MAX_PHRASE_TERMS && tokens.advance() {
        let token = tokens.token();
        terms.push(token.term.to_owned());
        last = Some((token.kind, token.end));
    }
    let complete = !tokens.advance();
    let mut prefix = false;
    if complete {
        match last {
            Some((TokenKind::Tail, _)) => {
                terms.pop();
            }
            Some((TokenKind::Single, _)) => prefix = true,
            Some((_, end)) => prefix = starred && end == text.len(),
            None => {}
        }
    }
    let cut = !complete || terms.len() > MAX_PHRASE_TERMS;
    if terms.len() > MAX_PHRASE_TERMS {
        terms.truncate(MAX_PHRASE_TERMS);
        prefix = false;
    }
    let clause = (!terms.is_empty()).then_some(Clause {
        terms,
        prefix,
        required: true,
        forms: Vec::new(),
    });
    (clause, cut)
}
