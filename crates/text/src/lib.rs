//! How words are found. One analysis serves the index, the queries and the excerpts, so that whatever the index matches can also be
//! shown: [`Tokens`] (or [`analyze`]) cuts and folds text, [`Expression`] reads what a person typed, [`occurrences`] says which
//! clauses a field proves, [`has_words`] whether it has given words, [`is_letters`] whether a word may have other forms, [`excerpts`] cuts the evidence out of it and [`marked`] writes the highlighted form.

#![warn(clippy::indexing_slicing)]

mod classes;
mod excerpts;
mod fold;
mod function_words;
mod has_words;
mod marks;
mod matcher;
mod query;
mod runs;
mod tokens;
mod windows;

pub use classes::is_letters;
pub use excerpts::{Excerpt, ExcerptLimits, excerpts};
pub use function_words::is_function_word;
pub use has_words::{has_words, terms_of};
pub use marks::{Span, marked};
pub use matcher::{FieldMatch, Seen, occurrences};
pub use query::{Clause, Expression, Form, FormKind, MAX_CLAUSES, MAX_PHRASE_TERMS};
pub use tokens::{MAX_TERM_BYTES, Token, TokenKind, Tokens, analyze, analyze_with};

/// Version of the analysis. An index remembers the version it was built with and is rebuilt when this one differs, so any change to
/// cutting or folding must raise it.
pub const ANALYZER_VERSION: u32 = 1;
