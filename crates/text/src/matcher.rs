//! Finds the clauses of an expression in one text, in one pass over its tokens and without allocating per token. A phrase is followed
//! by a bit per term: bit `i` is set while its first `i + 1` terms have just been read. Other forms belong to clauses of one
//! term only, so they share its bit.

use crate::query::{Clause, Expression, MAX_PHRASE_TERMS};
use crate::tokens::{Token, TokenKind, Tokens};

/// How a clause occurs; the first is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// As it was asked for.
    Exact,
    /// As one of its [`Clause::forms`].
    Form(usize),
}

/// What one field proves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMatch {
    /// For each clause of [`Expression::wanted`], how it occurs in the field at best.
    pub clauses: Vec<Option<Seen>>,
    /// Whether a clause of [`Expression::none`] occurs in the field.
    pub excluded: bool,
}

impl FieldMatch {
    /// How many wanted clauses the field contains.
    pub fn count(&self) -> usize {
        self.clauses.iter().flatten().count()
    }
}

/// Which clauses occur in `text`. Stops reading as soon as the answer is known.
pub fn occurrences(text: &str, expression: &Expression) -> FieldMatch {
    let wanted = expression.wanted.len();
    let mut result = FieldMatch {
        clauses: vec![None; wanted],
        excluded: false,
    };
    let mut missing = wanted;
    let mut matcher = Matcher::new(expression.wanted.iter().chain(&expression.none));
    let mut tokens = Tokens::new(text);
    let excludes = !expression.none.is_empty();
    while (missing > 0 || (excludes && !result.excluded)) && tokens.advance() {
        matcher.feed(&tokens.token(), |found| {
            match result.clauses.get_mut(found.clause) {
                Some(best) if best.is_none_or(|best| found.seen < best) => {
                    *best = Some(found.seen);
                    missing -= usize::from(found.seen == Seen::Exact);
                }
                Some(_) => {}
                None => result.excluded = true,
            }
        });
    }
    result
}

/// One place where a clause occurs, in bytes of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) clause: usize,
    pub(crate) seen: Seen,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

struct Needle<'e> {
    term: &'e str,
    prefix: bool,
    clause: usize,
    bit: u64,
    seen: Seen,
}

#[derive(Clone, Copy)]
struct Progress {
    length: usize,
    /// Bytes of the last term when that is a prefix.
    prefix_length: Option<usize>,
    reached: u64,
    fits: u64,
    /// How the last term fitted.
    seen: Seen,
}

/// Follows all clauses through a stream of tokens.
pub(crate) struct Matcher<'e> {
    /// Sorted by first byte; `buckets` holds where each first byte begins.
    needles: Vec<Needle<'e>>,
    buckets: Box<[usize; 257]>,
    progress: Vec<Progress>,
    /// Starts of the last tokens, for the beginning of a phrase.
    starts: [usize; MAX_PHRASE_TERMS],
    seen: usize,
    /// Whether a phrase is under way.
    under_way: bool,
}

impl<'e> Matcher<'e> {
    pub(crate) fn new(clauses: impl Iterator<Item = &'e Clause>) -> Self {
        let mut needles = Vec::new();
        let mut progress = Vec::new();
        for (index, clause) in clauses.enumerate() {
            let length = clause.terms.len().min(MAX_PHRASE_TERMS);
            progress.push(Progress {
                length,
                prefix_length: clause
                    .terms
                    .last()
                    .filter(|_| clause.prefix)
                    .map(String::len),
                reached: 0,
                fits: 0,
                seen: Seen::Exact,
            });
            for (place, term) in clause.terms.iter().take(length).enumerate() {
                needles.push(Needle {
                    term,
                    prefix: clause.prefix && place + 1 == clause.terms.len(),
                    clause: index,
                    bit: 1 << place,
                    seen: Seen::Exact,
                });
            }
            for (at, form) in clause.forms.iter().enumerate() {
                needles.push(Needle {
                    term: &form.term,
                    prefix: false,
                    clause: index,
                    bit: 1,
                    seen: Seen::Form(at),
                });
            }
        }
        // A term cannot be empty; one made by hand simply never occurs.
        needles.retain(|needle| !needle.term.is_empty());
        needles.sort_by_key(|needle| needle.term.as_bytes().first().copied());
        Self {
            buckets: bucket_starts(&needles),
            needles,
            progress,
            starts: [0; MAX_PHRASE_TERMS],
            seen: 0,
            under_way: false,
        }
    }

    /// Reads the next token and reports the clauses that end with it.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a byte is less than 256, and the starts are a ring"
    )]
    pub(crate) fn feed(&mut self, token: &Token<'_>, report: impl FnMut(Occurrence)) {
        self.starts[self.seen % MAX_PHRASE_TERMS] = token.start;
        self.seen += 1;
        let first = usize::from(token.term.as_bytes().first().copied().unwrap_or(0));
        let (from, to) = (self.buckets[first], self.buckets[first + 1]);
        if from < to || self.under_way {
            self.compare(token, from..to, report);
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "buckets are ranges of the needles, each needle has a clause, and the starts are a ring"
    )]
    fn compare(
        &mut self,
        token: &Token<'_>,
        bucket: std::ops::Range<usize>,
        mut report: impl FnMut(Occurrence),
    ) {
        for needle in &self.needles[bucket] {
            let fits = if needle.prefix {
                token.term.starts_with(needle.term)
            } else {
                token.term == needle.term
            };
            if fits {
                let progress = &mut self.progress[needle.clause];
                progress.fits |= needle.bit;
                progress.seen = needle.seen;
            }
        }
        self.under_way = false;
        for (clause, progress) in self.progress.iter_mut().enumerate() {
            progress.reached = ((progress.reached << 1) | 1) & progress.fits;
            progress.fits = 0;
            if progress.reached == 0 {
                continue;
            }
            self.under_way = true;
            if progress.reached >> (progress.length - 1) & 1 == 1 {
                let first = (self.seen - progress.length) % MAX_PHRASE_TERMS;
                report(Occurrence {
                    clause,
                    seen: progress.seen,
                    start: self.starts[first],
                    end: end_of(token, progress.prefix_length),
                });
            }
        }
    }
}

/// Where a match ends: with its word, but after one character when only the first of a CJK pair was asked for.
fn end_of(token: &Token<'_>, prefix_length: Option<usize>) -> usize {
    match (token.kind, prefix_length) {
        (TokenKind::Pair { head_end }, Some(length)) if length < token.term.len() => head_end,
        _ => token.end,
    }
}

#[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
fn bucket_starts(sorted: &[Needle<'_>]) -> Box<[usize; 257]> {
    let mut starts = Box::new([0; 257]);
    for needle in sorted {
        let first = usize::from(needle.term.as_bytes().first().copied().unwrap_or(0));
        starts[first + 1] += 1;
    }
    let mut before = 0;
    for start in starts.iter_mut() {
        before += *start;
        *start = before;
    }
    starts
}
