//! Rules on rows: which records of a granted stream may be seen, by the values of their fields.
//!
//! Operands are kept as the texts of a request, as filters have them, and become typed against the declaration of the
//! stream. A rule that the declaration does not allow has no typed form, and then nothing of the stream may be seen.

use std::cmp::Ordering;
use std::ops::Bound;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::condition::Test;
use crate::declaration::{RangeOperator, StreamDeclaration};
use crate::id::FieldName;
use crate::scalar::{FieldKind, Scalar};

/// A condition on one declared field. The field need not be granted. Null and absent values never meet it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleDocument", into = "RuleDocument")]
pub struct RowRule(RuleDocument);

/// A rule as written, unchecked: one of `eq`, `in`, or one or two bounds. [`RowRule::try_from`] is the way to a rule.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleDocument {
    pub field: FieldName,
    pub eq: Option<String>,
    #[serde(rename = "in")]
    pub one_of: Option<Vec<String>>,
    pub gte: Option<String>,
    pub gt: Option<String>,
    pub lte: Option<String>,
    pub lt: Option<String>,
}

/// What is wrong with a rule, and in which of its members.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{rule}")]
pub struct RuleMistake {
    /// The steps of a JSON Pointer within the rule; empty for the whole.
    pub path: String,
    pub rule: String,
}

impl RuleMistake {
    fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
        }
    }
}

impl RuleDocument {
    pub fn new(field: FieldName) -> Self {
        Self {
            field,
            eq: None,
            one_of: None,
            gte: None,
            gt: None,
            lte: None,
            lt: None,
        }
    }

    pub fn bound(&self, operator: RangeOperator) -> Option<&str> {
        match operator {
            RangeOperator::Gte => self.gte.as_deref(),
            RangeOperator::Gt => self.gt.as_deref(),
            RangeOperator::Lte => self.lte.as_deref(),
            RangeOperator::Lt => self.lt.as_deref(),
        }
    }

    pub fn bound_mut(&mut self, operator: RangeOperator) -> &mut Option<String> {
        match operator {
            RangeOperator::Gte => &mut self.gte,
            RangeOperator::Gt => &mut self.gt,
            RangeOperator::Lte => &mut self.lte,
            RangeOperator::Lt => &mut self.lt,
        }
    }
}

impl TryFrom<RuleDocument> for RowRule {
    type Error = RuleMistake;

    fn try_from(document: RuleDocument) -> Result<Self, RuleMistake> {
        let bounded = RangeOperator::ALL
            .iter()
            .any(|operator| document.bound(*operator).is_some());
        let tests = [document.eq.is_some(), document.one_of.is_some(), bounded];
        if tests.iter().filter(|given| **given).count() != 1 {
            let rule = "a rule needs exactly one of eq, in, or bounds (gte or gt, lte or lt)";
            return Err(RuleMistake::new("", rule));
        }
        for (one, other) in [("gte", "gt"), ("lte", "lt")] {
            let given = |name| RangeOperator::parse(name).and_then(|name| document.bound(name));
            if given(one).is_some() && given(other).is_some() {
                let rule = format!("a rule takes one of {one} and {other}");
                return Err(RuleMistake::new(format!("/{other}"), rule));
            }
        }
        let values = document.one_of.as_deref().unwrap_or_default();
        if document.one_of.is_some() && values.is_empty() {
            let rule = "is empty, and an empty list allows nothing; name a value";
            return Err(RuleMistake::new("/in", rule));
        }
        for (at, value) in values.iter().enumerate() {
            if values.iter().take(at).any(|known| known == value) {
                let rule = format!("names {value:?} a second time");
                return Err(RuleMistake::new(format!("/in/{at}"), rule));
            }
        }
        Ok(Self(document))
    }
}

impl From<RowRule> for RuleDocument {
    fn from(rule: RowRule) -> Self {
        rule.0
    }
}

impl RowRule {
    pub fn document(&self) -> &RuleDocument {
        &self.0
    }

    pub fn field(&self) -> &FieldName {
        &self.0.field
    }

    /// The kind of the field and the test of its value, or why the declaration does not allow the rule.
    pub fn typed(&self, stream: &StreamDeclaration) -> Result<(FieldKind, Test), RuleMistake> {
        let name = &self.0.field;
        let Some(field) = stream.field(name.as_str()) else {
            let rule = format!(
                "stream {:?} has no field {:?}",
                stream.name.as_str(),
                name.as_str()
            );
            return Err(RuleMistake::new("/field", rule));
        };
        if !field.kind.is_scalar() {
            let rule = format!("{:?} is not a field of one scalar type", name.as_str());
            return Err(RuleMistake::new("/field", rule));
        }
        let operand = |path: String, text: &str| {
            Scalar::from_request(field.kind, text)
                .map_err(|error| RuleMistake::new(path, error.to_string()))
        };
        let test = if let Some(text) = &self.0.eq {
            Test::Equals(operand("/eq".to_owned(), text)?)
        } else if let Some(texts) = &self.0.one_of {
            let texts = texts.iter().enumerate();
            let values = texts.map(|(at, text)| operand(format!("/in/{at}"), text));
            Test::OneOf(values.collect::<Result<_, _>>()?)
        } else {
            let bound = |operator: RangeOperator| {
                let Some(text) = self.0.bound(operator) else {
                    return Ok(None);
                };
                let path = format!("/{operator}");
                let declared = stream.query.range_filters.get(name);
                if !declared.is_some_and(|declared| declared.contains(&operator)) {
                    let rule = format!(
                        "the range operator '{operator}' is not declared for {:?}",
                        name.as_str()
                    );
                    return Err(RuleMistake::new(path, rule));
                }
                operand(path, text).map(Some)
            };
            let either = |included: Option<Scalar>, excluded: Option<Scalar>| match included {
                Some(value) => Bound::Included(value),
                None => excluded.map_or(Bound::Unbounded, Bound::Excluded),
            };
            let low = either(bound(RangeOperator::Gte)?, bound(RangeOperator::Gt)?);
            let high = either(bound(RangeOperator::Lte)?, bound(RangeOperator::Lt)?);
            if is_empty(&low, &high) {
                return Err(RuleMistake::new("", "no value lies between the bounds"));
            }
            Test::Range(low, high)
        };
        Ok((field.kind, test))
    }
}

fn is_empty(low: &Bound<Scalar>, high: &Bound<Scalar>) -> bool {
    let (least, most, both) = match (low, high) {
        (Bound::Included(least), Bound::Included(most)) => (least, most, true),
        (
            Bound::Included(least) | Bound::Excluded(least),
            Bound::Included(most) | Bound::Excluded(most),
        ) => (least, most, false),
        _ => return false,
    };
    match least.compare(most) {
        Some(Ordering::Less) => false,
        Some(Ordering::Equal) => !both,
        _ => true,
    }
}
