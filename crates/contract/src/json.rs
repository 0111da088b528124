//! JSON kept as written.
//! A record's text is checked once and then carried unchanged: numbers keep all their digits and members their order.
//! What code needs from it (a member, a decoded text, equality as JSON values) is read from slices of that text.

mod compare;
mod number;
mod scan;

use std::{borrow::Cow, fmt, ops::Range};

use serde_json::value::RawValue;
use thiserror::Error;

pub use compare::same_value;
pub use number::canonical_number;
pub use scan::{MAX_DEPTH, decode_string, is_number};

use scan::Scanner;

/// One JSON object, exactly as written, known to be valid and to repeat no member name at any depth.
#[derive(Clone)]
pub struct RecordBody {
    text: String,
    members: Vec<Member>,
}

/// A top-level member: where its value stands in the text.
#[derive(Clone)]
struct Member {
    name: Name,
    value: Range<usize>,
}

/// A member name: a slice of the text unless it was written with escapes.
#[derive(Clone)]
enum Name {
    Written(Range<usize>),
    Decoded(Box<str>),
}

/// Why a text is not an acceptable record body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (at byte {offset})")]
pub struct JsonError {
    /// Where in the text, in bytes.
    pub offset: usize,
    pub message: String,
    pub code: JsonErrorCode,
}

/// The kinds of fault a [`JsonError`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonErrorCode {
    /// Not JSON as RFC 8259 has it, or a string that is no Unicode text.
    Malformed,
    /// Two members of one object have the same name.
    DuplicateMember,
    /// Valid so far, but not an object.
    NotAnObject,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    Number,
    String,
    Array,
    Object,
}

/// The type of a value, by its first character. The text must be one valid JSON value.
pub fn kind_of(raw: &str) -> JsonKind {
    match raw.trim_start_matches(scan::WHITE_SPACE).as_bytes().first() {
        Some(b'n') => JsonKind::Null,
        Some(b't' | b'f') => JsonKind::Boolean,
        Some(b'"') => JsonKind::String,
        Some(b'[') => JsonKind::Array,
        Some(b'{') => JsonKind::Object,
        _ => JsonKind::Number,
    }
}

/// The elements of an array, as JSON text; none of anything else.
pub fn elements(raw: &str) -> impl Iterator<Item = &str> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    elements.into_iter().map(RawValue::get)
}

impl RecordBody {
    /// Checks that the text is one JSON object and nothing else, without changing it.
    ///
    /// Refused are repeated member names at any depth (names are compared decoded), escapes that are half a surrogate
    /// pair, nesting beyond [`MAX_DEPTH`], and anything but white space around the object.
    pub fn parse(text: impl Into<String>) -> Result<Self, JsonError> {
        let text = text.into();
        let members = Scanner::new(&text)
            .record()?
            .into_iter()
            .map(|seen| Member {
                name: match seen.name {
                    Cow::Borrowed(name) => {
                        Name::Written(seen.offset + 1..seen.offset + 1 + name.len())
                    }
                    Cow::Owned(name) => Name::Decoded(name.into()),
                },
                value: seen.value,
            })
            .collect();
        Ok(Self { text, members })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn into_string(self) -> String {
        self.text
    }

    /// The value of a member, as JSON text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members()
            .find(|(found, _)| *found == name)
            .map(|(_, raw)| raw)
    }

    /// Names and values in the order written; names decoded, values as JSON text.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.members.iter().map(|member| {
            let name = match &member.name {
                Name::Written(range) => self.slice(range),
                Name::Decoded(name) => name,
            };
            (name, self.slice(&member.value))
        })
    }

    /// The decoded text of a member that is a JSON string.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        decode_string(self.get(name)?)
    }

    /// The text in which words are found: a string, or the strings of an array, each on its own line.
    pub fn searched_text(&self, name: &str) -> Option<Cow<'_, str>> {
        let raw = self.get(name)?;
        if kind_of(raw) != JsonKind::Array {
            return decode_string(raw);
        }
        let texts: Vec<_> = elements(raw).filter_map(decode_string).collect();
        (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n")))
    }

    /// Whether both are the same JSON value. See [`same_value`].
    pub fn same_value(&self, other: &Self) -> bool {
        same_value(&self.text, &other.text)
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        // The scanner only reports ranges of this text, so there is always something to return.
        self.text.get(range.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for RecordBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordBody").field(&self.text).finish()
    }
}
