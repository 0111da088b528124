//! What a person types into a search box, read without ever failing: words that must all occur, `"phrases"`, `prefix*` and
//! `-excluded`. Whatever is not well-formed is read as plain words, and everything is bounded.

use crate::tokens::{TokenKind, Tokens};

/// Most clauses of one expression, wanted and excluded together.
pub const MAX_CLAUSES: usize = 32;

/// Most terms of one phrase.
pub const MAX_PHRASE_TERMS: usize = 64;

/// A parsed query: all of `all` must occur, none of `none` may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expression {
    /// What must occur.
    pub all: Vec<Clause>,
    /// What must not occur.
    pub none: Vec<Clause>,
    /// Whether something beyond [`MAX_CLAUSES`] or [`MAX_PHRASE_TERMS`] was left out.
    pub truncated: bool,
}

/// One thing to look for: a word, or a phrase of neighbouring words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Folded terms at neighbouring positions; one is a word, several are a phrase.
    pub terms: Vec<String>,
    /// Whether the last term only has to begin the word.
    pub prefix: bool,
}

impl Expression {
    /// Reads a query. A word that analyses to several terms is a phrase, one that analyses to nothing is dropped.
    pub fn parse(query: &str) -> Self {
        let mut expression = Self::default();
        let mut rest = query.trim_start();
        while !rest.is_empty() {
            let (item, after) = Item::read(rest);
            let (clause, cut) = clause_of(item.text, item.starred);
            if let Some(clause) = clause {
                if !expression.push(clause, item.excluded) {
                    expression.truncated = true;
                    break;
                }
                expression.truncated |= cut;
            }
            rest = after.trim_start();
        }
        expression
    }

    /// Whether no record can match: nothing is asked for, or only what must not occur.
    pub fn matches_nothing(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a clause unless it is there already; `false` when the expression is full.
    fn push(&mut self, clause: Clause, excluded: bool) -> bool {
        let full = self.all.len() + self.none.len() >= MAX_CLAUSES;
        let side = if excluded {
            &mut self.none
        } else {
            &mut self.all
        };
        if side.contains(&clause) {
            return true;
        }
        if !full {
            side.push(clause);
        }
        !full
    }
}

/// One word or phrase as written, without its operators.
struct Item<'q> {
    text: &'q str,
    excluded: bool,
    starred: bool,
}

impl<'q> Item<'q> {
    /// Reads the item at the start of `rest`, which begins with no white space, and returns what follows it.
    fn read(rest: &'q str) -> (Self, &'q str) {
        let (excluded, body) = match rest.strip_prefix('-') {
            Some(body) if body.starts_with(|c: char| c != '-' && !c.is_whitespace()) => {
                (true, body)
            }
            _ => (false, rest),
        };
        if let Some((text, after)) = quoted(body) {
            let (inner, inner_star) = without_star(text);
            let outer = after.trim_start_matches('*');
            let starred = inner_star || outer.len() < after.len();
            let item = Self {
                text: inner,
                excluded,
                starred,
            };
            return (item, outer);
        }
        let end = body.find(char::is_whitespace).unwrap_or(body.len());
        let (word, after) = body.split_at(end);
        let (text, starred) = without_star(word);
        // A quote that never closes takes the meaning of the minus before it away: plain words are left.
        let excluded = excluded && !word.starts_with(is_quote);
        (
            Self {
                text,
                excluded,
                starred,
            },
            after,
        )
    }
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

/// The clause a piece of text stands for, and whether terms were left out.
fn clause_of(text: &str, starred: bool) -> (Option<Clause>, bool) {
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
            // The run may go on in the text that is searched, so only its pairs are asked for.
            Some((TokenKind::Tail, _)) => {
                terms.pop();
            }
            // A single character begins a pair wherever another one follows it.
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
    let clause = (!terms.is_empty()).then_some(Clause { terms, prefix });
    (clause, cut)
}
