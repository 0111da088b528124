//! A condition on the value of one field: what filters and the rules of grants test.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::scalar::Scalar;

#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Typed equality; times as instants.
    Equals(Scalar),
    /// Any of these values. An empty list allows nothing.
    OneOf(Vec<Scalar>),
    Range(Bound<Scalar>, Bound<Scalar>),
    /// A text that begins so.
    Prefix(String),
    /// A text with all these words.
    Words(String),
    /// An array, of which one item is one of these.
    Contains(Vec<Scalar>),
}

/// Whether a text has all the words of another, as a search finds them. This crate has no analysis of words.
pub type HasWords = fn(text: &str, words: &str) -> bool;

impl Test {
    /// Whether it holds of a value; of an item, where arrays are tested.
    pub fn holds(&self, value: &Scalar, has_words: HasWords) -> bool {
        let text = match value {
            Scalar::Text(text) => Some(text.as_str()),
            _ => None,
        };
        match self {
            Self::Prefix(beginning) => text.is_some_and(|text| text.starts_with(beginning)),
            Self::Words(words) => text.is_some_and(|text| has_words(text, words)),
            Self::Equals(wanted) => wanted == value,
            Self::OneOf(wanted) | Self::Contains(wanted) => wanted.contains(value),
            Self::Range(low, high) => {
                let compare = |bound: &Scalar| value.compare(bound);
                let above = match low {
                    Bound::Unbounded => true,
                    Bound::Included(bound) => compare(bound).is_some_and(Ordering::is_ge),
                    Bound::Excluded(bound) => compare(bound).is_some_and(Ordering::is_gt),
                };
                let below = match high {
                    Bound::Unbounded => true,
                    Bound::Included(bound) => compare(bound).is_some_and(Ordering::is_le),
                    Bound::Excluded(bound) => compare(bound).is_some_and(Ordering::is_lt),
                };
                above && below
            }
        }
    }
}
