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
}

impl Test {
    pub fn holds(&self, value: &Scalar) -> bool {
        match self {
            Self::Equals(wanted) => wanted == value,
            Self::OneOf(wanted) => wanted.contains(value),
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
