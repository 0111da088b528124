//! Record keys: the primary key of a record in one canonical text.
//! A single key is its text; a compound key is a minified JSON array of strings. Beside that wire text every key has an
//! ordering form whose byte order is the order of the key's parts.

use std::fmt;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// Separates parts in the ordering form. Keys hold no control characters, so it sorts below everything they hold.
const PART_END: char = '\u{1}';

/// The longest canonical text, in bytes.
const MAX_BYTES: usize = 512;

/// The primary key of one record within its stream. Ordered by parts, each part in byte order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// First, so that the derived order is the order of the parts.
    ordering: String,
    /// The JSON array of a compound key; a single key's text is its ordering form.
    array: Option<String>,
}

/// Why a text or a list of parts is no record key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("the record key is empty; give it a non-empty text")]
    Empty,
    /// The canonical text is too long.
    #[error("the record key takes {bytes} bytes; at most {MAX_BYTES} are allowed")]
    TooLong { bytes: usize },
    #[error("the record key contains a control character")]
    Control,
    /// The stream has another number of primary key fields.
    #[error("the record key must {}", shape_of(*expected))]
    WrongParts {
        /// How many primary key fields the stream declares.
        expected: usize,
    },
}

fn shape_of(parts: usize) -> String {
    match parts {
        1 => "be one text, for the stream has one primary key field".to_owned(),
        parts => format!("have {parts} parts, as a JSON array of {parts} strings"),
    }
}

impl RecordKey {
    /// The key of a record with one primary key field.
    pub fn single(text: impl Into<String>) -> Result<Self, KeyError> {
        let ordering = text.into();
        if ordering.is_empty() {
            return Err(KeyError::Empty);
        }
        check(&ordering, ordering.len())?;
        Ok(Self {
            ordering,
            array: None,
        })
    }

    /// The key of a record with several primary key fields. A part may be empty, the whole may not.
    pub fn compound(parts: &[String]) -> Result<Self, KeyError> {
        if parts.len() < 2 {
            return Err(KeyError::WrongParts { expected: 2 });
        }
        if parts.iter().all(String::is_empty) {
            return Err(KeyError::Empty);
        }
        let array = json_array(parts);
        parts.iter().try_for_each(|part| check(part, array.len()))?;
        Ok(Self {
            ordering: parts.join("\u{1}"),
            array: Some(array),
        })
    }

    /// Reads the wire text of a key in a stream with `parts` primary key fields.
    ///
    /// A compound key may be any JSON array of that many strings: white space and escapes are normalised.
    pub fn from_wire(text: &str, parts: usize) -> Result<Self, KeyError> {
        if parts < 2 {
            return Self::single(text);
        }
        match serde_json::from_str::<Vec<String>>(text) {
            Ok(read) if read.len() == parts => Self::compound(&read),
            _ => Err(KeyError::WrongParts { expected: parts }),
        }
    }

    /// The inverse of [`RecordKey::ordering_form`], for text that came from it.
    pub fn from_ordering_form(form: &str) -> Self {
        let array = form
            .contains(PART_END)
            .then(|| json_array(&form.split(PART_END).collect::<Vec<_>>()));
        Self {
            ordering: form.to_owned(),
            array,
        }
    }

    pub fn as_str(&self) -> &str {
        self.array.as_deref().unwrap_or(&self.ordering)
    }

    /// The values of the primary key fields, in declared order.
    pub fn parts(&self) -> Vec<String> {
        self.ordering.split(PART_END).map(str::to_owned).collect()
    }

    /// The parts joined by U+0001: comparing these texts byte by byte compares the keys part by part.
    pub fn ordering_form(&self) -> String {
        self.ordering.clone()
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordKey({:?})", self.as_str())
    }
}

impl Serialize for RecordKey {
    /// As the canonical wire text. There is no `Deserialize`: reading needs the number of parts, see `from_wire`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn check(part: &str, canonical_bytes: usize) -> Result<(), KeyError> {
    if part.chars().any(char::is_control) {
        return Err(KeyError::Control);
    }
    if canonical_bytes > MAX_BYTES {
        return Err(KeyError::TooLong {
            bytes: canonical_bytes,
        });
    }
    Ok(())
}

fn json_array<S: AsRef<str>>(parts: &[S]) -> String {
    let mut text = String::from("[");
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push('"');
        for c in part.as_ref().chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
    }
    text.push(']');
    text
}
