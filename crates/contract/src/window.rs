//! Windows: bounded slices of one long text field.
//! All offsets count Unicode scalar values, so a window never splits one, and following `next_offset_chars` from zero
//! yields the field exactly.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::error::{ErrorCode, ReadError};

/// How many characters a window has when nothing is asked.
pub const DEFAULT_LIMIT_CHARS: usize = 4_096;
/// The longest window; more is cut to this with the warning `limit_clamped`.
pub const MAX_LIMIT_CHARS: usize = 16_384;
/// The most context on either side of a match.
pub const MAX_CONTEXT_CHARS: usize = 8_192;

/// The selectors of a window as a caller gives them, unchecked. Also part of a window handle.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct WindowSelector {
    pub offset_chars: Option<usize>,
    pub limit_chars: Option<usize>,
    /// Where to start, as the decimal text of an offset.
    pub cursor: Option<String>,
    /// A text to find, instead of an offset.
    pub q: Option<String>,
    pub before_chars: Option<usize>,
    pub after_chars: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRequest {
    start: Start,
    limit_chars: usize,
    limit_clamped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    Offset(usize),
    /// Before the first occurrence of the text.
    Match {
        q: String,
        before_chars: usize,
    },
}

/// A slice of a field, where it stands, and where to go on. The members are those of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The slice, exact.
    pub text: String,
    /// The first character of the slice.
    pub start_chars: usize,
    /// The first character after it.
    pub end_chars: usize,
    pub total_chars: usize,
    /// How long the slice could have been.
    pub limit_chars: usize,
    /// Where the searched text begins; only when one was searched.
    pub match_start_chars: Option<usize>,
    /// Where the searched text ends.
    pub match_end_chars: Option<usize>,
    /// Whether the slice is the whole field.
    pub complete: bool,
    /// Whether something follows the slice.
    pub has_more: bool,
    /// The offset that continues after the slice.
    pub next_offset_chars: Option<usize>,
    pub previous_offset_chars: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    #[error("{message}")]
    Selector {
        param: &'static str,
        message: &'static str,
    },
    /// The searched text does not occur.
    #[error("q was not found in the field")]
    QueryNotFound,
}

impl WindowError {
    /// The error as a reader answers it for this field.
    pub fn for_field(&self, field: &str) -> ReadError {
        match self {
            Self::Selector { param, message } => {
                ReadError::new(ErrorCode::InvalidWindow, *message).with_param(*param)
            }
            Self::QueryNotFound => ReadError::new(
                ErrorCode::QueryNotFound,
                format!("q was not found in field '{field}'"),
            )
            .with_param("q")
            .with_hint("read the field from its start: leave out q and pass offset_chars=0"),
        }
    }
}

impl WindowSelector {
    /// Checks the selectors and fills in the defaults.
    pub fn request(&self) -> Result<WindowRequest, WindowError> {
        let refuse = |param, message| Err(WindowError::Selector { param, message });
        if self.limit_chars == Some(0) {
            return refuse("limit_chars", "limit_chars must be at least 1");
        }
        if self.cursor.is_some() && self.offset_chars.is_some() {
            return refuse("cursor", "cursor and offset_chars exclude one another");
        }
        let has_context = self.before_chars.is_some() || self.after_chars.is_some();
        let Some(q) = &self.q else {
            if has_context {
                return refuse("q", "before_chars and after_chars require q");
            }
            let offset = match &self.cursor {
                Some(cursor) => decimal(cursor)?,
                None => self.offset_chars.unwrap_or(0),
            };
            return Ok(WindowRequest::new(
                Start::Offset(offset),
                self.limit_chars.unwrap_or(DEFAULT_LIMIT_CHARS),
            ));
        };
        if self.cursor.is_some() || self.offset_chars.is_some() {
            return refuse("q", "q excludes offset_chars and cursor");
        }
        if q.is_empty() {
            return refuse("q", "q must not be empty");
        }
        let (before_chars, after_chars) = (
            self.before_chars.unwrap_or(0),
            self.after_chars.unwrap_or(0),
        );
        if before_chars > MAX_CONTEXT_CHARS {
            return refuse("before_chars", "before_chars must be <= 8192");
        }
        if after_chars > MAX_CONTEXT_CHARS {
            return refuse("after_chars", "after_chars must be <= 8192");
        }
        let limit = match self.limit_chars {
            Some(limit) => limit,
            None if has_context => before_chars + q.chars().count() + after_chars,
            None => DEFAULT_LIMIT_CHARS,
        };
        Ok(WindowRequest::new(
            Start::Match {
                q: q.clone(),
                before_chars,
            },
            limit,
        ))
    }
}

/// An offset in decimal digits. One that no field can reach is as good as the largest.
fn decimal(cursor: &str) -> Result<usize, WindowError> {
    if cursor.is_empty() || !cursor.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WindowError::Selector {
            param: "cursor",
            message: "cursor must be a decimal character offset",
        });
    }
    Ok(cursor.parse().unwrap_or(usize::MAX))
}

impl WindowRequest {
    fn new(start: Start, limit: usize) -> Self {
        Self {
            start,
            limit_chars: limit.min(MAX_LIMIT_CHARS),
            limit_clamped: limit > MAX_LIMIT_CHARS,
        }
    }

    /// The window that starts here, with the default length.
    pub fn at(offset_chars: usize) -> Self {
        Self::new(Start::Offset(offset_chars), DEFAULT_LIMIT_CHARS)
    }

    pub fn limit_clamped(&self) -> bool {
        self.limit_clamped
    }

    pub fn limit_chars(&self) -> usize {
        self.limit_chars
    }
}

pub fn cut(text: &str, request: &WindowRequest) -> Result<Window, WindowError> {
    let total_chars = text.chars().count();
    let (start, found) = match &request.start {
        Start::Offset(offset) => (*offset, None),
        Start::Match { q, before_chars } => {
            let at = find(text, q).ok_or(WindowError::QueryNotFound)?;
            (
                at.saturating_sub(*before_chars),
                Some((at, at + q.chars().count())),
            )
        }
    };
    let start_chars = start.min(total_chars);
    let end_chars = start_chars
        .saturating_add(request.limit_chars)
        .min(total_chars);
    let has_more = end_chars < total_chars;
    Ok(Window {
        text: slice(text, total_chars, start_chars, end_chars).to_owned(),
        start_chars,
        end_chars,
        total_chars,
        limit_chars: request.limit_chars,
        match_start_chars: found.map(|(at, _)| at),
        match_end_chars: found.map(|(_, end)| end),
        complete: start_chars == 0 && !has_more,
        has_more,
        next_offset_chars: has_more.then_some(end_chars),
        previous_offset_chars: (start_chars > 0)
            .then(|| start_chars.saturating_sub(request.limit_chars)),
    })
}

fn slice(text: &str, total_chars: usize, start: usize, end: usize) -> &str {
    let range = if total_chars == text.len() {
        // All ASCII: characters are bytes, and a deep offset costs nothing.
        start..end
    } else {
        let byte_of = |text: &str, chars: usize| {
            text.char_indices()
                .nth(chars)
                .map_or(text.len(), |(at, _)| at)
        };
        let from = byte_of(text, start);
        from..from + byte_of(text.get(from..).unwrap_or_default(), end - start)
    };
    text.get(range).unwrap_or_default()
}

/// Where `q` first occurs, in characters, ignoring case.
///
/// Case is folded character by character, so offsets are those of the original. The search never looks at a character
/// twice (Knuth, Morris, Pratt): a repetitive text and query cannot make it slow.
fn find(text: &str, q: &str) -> Option<usize> {
    let pattern: Vec<char> = q.chars().map(folded).collect();
    let mut fallback = Vec::with_capacity(pattern.len());
    let mut matched = 0;
    for (index, c) in pattern.iter().enumerate() {
        if index > 0 {
            matched = advance(&pattern, &fallback, matched, *c);
        }
        fallback.push(matched);
    }
    matched = 0;
    for (index, c) in text.chars().enumerate() {
        matched = advance(&pattern, &fallback, matched, folded(c));
        if matched == pattern.len() {
            return Some(index + 1 - matched);
        }
    }
    None
}

/// The length of the matched prefix of the pattern after one more character.
fn advance(pattern: &[char], fallback: &[usize], mut matched: usize, c: char) -> usize {
    loop {
        if pattern.get(matched) == Some(&c) {
            return matched + 1;
        }
        match matched.checked_sub(1).and_then(|last| fallback.get(last)) {
            Some(shorter) => matched = *shorter,
            None => return 0,
        }
    }
}

/// The lower case of one character as one character: the simple mapping of Unicode.
fn folded(c: char) -> char {
    if c.is_ascii() {
        c.to_ascii_lowercase()
    } else {
        c.to_lowercase().next().unwrap_or(c)
    }
}
