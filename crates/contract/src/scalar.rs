//! Typed values: what a field of a declared kind holds, and what a filter compares it with.
//! Dates and date-times become instants; everything else keeps its own type, and nothing is guessed across types.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    json::{self, JsonKind},
    segment,
    time::Instant,
};

crate::names! {
    /// What a declared field holds.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FieldKind {
        /// `true` or `false`.
        Boolean = "boolean",
        Integer = "integer",
        Number = "number",
        Text = "text",
        /// A text with the format `date`.
        Date = "date",
        /// A text with the format `date-time`.
        DateTime = "date_time",
        Object = "object",
        Array = "array",
        /// Several types, or none stated.
        Mixed = "mixed",
    }
}

impl FieldKind {
    /// Whether values of this kind can be compared: everything but objects, arrays and fields without one type.
    pub fn is_scalar(self) -> bool {
        !matches!(self, Self::Object | Self::Array | Self::Mixed)
    }
}

/// One comparable value. Equality is exact; values of different types are never equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    Boolean(bool),
    Integer(i64),
    /// A finite number; never negative zero.
    Number(#[serde(with = "bits")] f64),
    Text(String),
    Instant(Instant),
}

/// A filter operand that does not have the form its field needs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScalarError {
    /// The text is not a value of the field's kind.
    #[error("expected {expected}, got {}", segment::quoted(.given))]
    NotOfKind {
        /// The form that would be read, with its article.
        expected: &'static str,
        given: String,
    },
    /// Nothing can be compared with such a field.
    #[error("a field of kind '{}' cannot be compared; only a field of one scalar type can", .kind.as_str())]
    NotComparable { kind: FieldKind },
}

impl Scalar {
    /// The value of a field, from its JSON text.
    ///
    /// Nothing for `null`, a value of another type, a text that is no date, and a number that the type cannot hold.
    pub fn from_json(kind: FieldKind, raw: &str) -> Option<Self> {
        match (kind, json::kind_of(raw)) {
            (FieldKind::Boolean, JsonKind::Boolean) => raw.trim().parse().ok().map(Self::Boolean),
            (FieldKind::Integer, JsonKind::Number) => integer(raw).map(Self::Integer),
            (FieldKind::Number, JsonKind::Number) => number(raw).map(Self::Number),
            (FieldKind::Text, JsonKind::String) => {
                json::decode_string(raw).map(|text| Self::Text(text.into_owned()))
            }
            (FieldKind::Date | FieldKind::DateTime, JsonKind::String) => {
                Instant::parse(&json::decode_string(raw)?).map(Self::Instant)
            }
            _ => None,
        }
    }

    /// The operand of a filter on a field of this kind, from the text of a request.
    pub fn from_request(kind: FieldKind, text: &str) -> Result<Self, ScalarError> {
        let (read, expected) = match kind {
            FieldKind::Boolean => (text.parse().ok().map(Self::Boolean), "true or false"),
            FieldKind::Integer => (plain_integer(text).map(Self::Integer), "an integer"),
            FieldKind::Number => (
                json::is_number(text)
                    .then(|| number(text))
                    .flatten()
                    .map(Self::Number),
                "a number",
            ),
            FieldKind::Text => (Some(Self::Text(text.to_owned())), "a text"),
            FieldKind::Date | FieldKind::DateTime => (
                Instant::parse(text).map(Self::Instant),
                "a date (2026-03-01) or an RFC 3339 date-time (2026-03-01T10:00:00Z)",
            ),
            FieldKind::Object | FieldKind::Array | FieldKind::Mixed => {
                return Err(ScalarError::NotComparable { kind });
            }
        };
        read.ok_or_else(|| ScalarError::NotOfKind {
            expected,
            given: text.to_owned(),
        })
    }

    /// The order of two values of one type, texts by their bytes; nothing across types.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Instant(a), Self::Instant(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// A JSON number with a whole value, however it is written: `5`, `5.0`, `50e-1`.
fn integer(raw: &str) -> Option<i64> {
    let raw = raw.trim();
    raw.parse()
        .ok()
        .or_else(|| json::canonical_number(raw).parse().ok())
}

fn number(raw: &str) -> Option<f64> {
    let value: f64 = raw.trim().parse().ok()?;
    // Adding zero turns negative zero into zero, so that equal numbers are equal in every representation.
    value.is_finite().then_some(value + 0.0)
}

/// An optional minus and digits, nothing else (`i64::from_str` would also take a plus).
fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Numbers travel in cursors as their bits: reading a decimal back may miss the last digit, and skip a record.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde gives a reference to what it serialises"
    )]
    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}
