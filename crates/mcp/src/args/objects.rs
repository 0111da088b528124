//! Arguments that are objects: filters, and limits of relations.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde::Serialize;

use super::{Argument, Given, Scalar, Schema, is_filter_name};
use crate::fault::Fault;
use crate::reply::Members;
use crate::tool_call::ArgValue;

/// `{field: value}`, `{field: {gte, gt, lte, lt}}` or `{field: {contains}}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Filter(Members<String, Condition>);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Condition {
    Equals(Scalar),
    /// Operators and their operands.
    Range(Members<String, Scalar>),
}

const OPERATORS: [&str; 5] = ["gte", "gt", "lte", "lt", "contains"];

impl Filter {
    /// The same filter with a condition more.
    pub(crate) fn and(mut self, field: &str, value: impl Into<Scalar>) -> Self {
        self.0.set(field, Condition::Equals(value.into()));
        self
    }

    /// The same filter, from this value of a field on. None where the field must equal something.
    pub(crate) fn from(mut self, field: &str, start: &str) -> Option<Self> {
        let mut range = match self.0.get(field) {
            Some(Condition::Range(range)) => range.clone(),
            Some(Condition::Equals(_)) => return None,
            None => Members::default(),
        };
        range.0.retain(|(operator, _)| operator != "gt");
        range.set("gte", start.into());
        self.0.set(field, Condition::Range(range));
        Some(self)
    }

    /// The same filter, where an array contains this value. None where the field has a condition already.
    pub(crate) fn containing(mut self, field: &str, item: Scalar) -> Option<Self> {
        if self.0.get(field).is_some() {
            return None;
        }
        let contains = Members(vec![("contains".to_owned(), item)]);
        self.0.set(field, Condition::Range(contains));
        Some(self)
    }

    /// A filter with one bound.
    pub(crate) fn bound(field: &str, operator: &str, bound: Scalar) -> Self {
        let range = Members(vec![(operator.to_owned(), bound)]);
        Self(Members(vec![(field.to_owned(), Condition::Range(range))]))
    }
}

impl Argument for Filter {
    fn schema() -> Schema {
        Schema::of_members(Schema::one_of(&["string", "number", "boolean", "object"]))
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        let refused = |message: &str| {
            Fault::refused(ErrorCode::InvalidFilter, name, message)
                .with_next(r#"pass an object such as {"sender":"ann"} or {"sent_at":{"gte":"2026-01-01","lt":"2026-02-01"}} or {"labels":{"contains":"work"}}"#)
        };
        let Ok(given) = given.members() else {
            return Err(refused("filter must be an object, not text or a list"));
        };
        if given.is_empty() {
            return Err(refused("filter names no field; leave it out instead"));
        }
        let mut filter = Vec::new();
        for (field, test) in given {
            if !is_filter_name(&field) {
                return Err(refused(
                    "filter keys are plain field names, without brackets",
                ));
            }
            let condition = match test.members() {
                Ok(range) => Condition::Range(checked_range(range).map_err(refused)?),
                Err(value) => Condition::Equals(value.scalar().ok_or_else(|| {
                    refused("a filter value is a string, number, boolean or range object")
                })?),
            };
            filter.push((field, condition));
        }
        Ok(Self(Members(filter)))
    }

    fn write(&self, name: &str, question: &mut Get) {
        for (field, condition) in &self.0.0 {
            match condition {
                Condition::Equals(value) => {
                    question.push(format!("{name}[{field}]"), value.to_param());
                }
                Condition::Range(range) => {
                    for (operator, bound) in &range.0 {
                        question.push(format!("{name}[{field}][{operator}]"), bound.to_param());
                    }
                }
            }
        }
    }

    fn value(&self) -> ArgValue {
        self.clone().into()
    }
}

fn checked_range(range: Vec<(String, Given)>) -> Result<Members<String, Scalar>, &'static str> {
    if range.is_empty() {
        return Err("a filter object needs at least one of gte, gt, lte, lt, contains");
    }
    let checked = range.into_iter().map(|(operator, bound)| {
        if !OPERATORS.contains(&operator.as_str()) {
            return Err("a filter object knows only gte, gt, lte, lt and contains");
        }
        let bound = bound.scalar();
        Ok((
            operator,
            bound.ok_or("a range bound is a string, number or boolean")?,
        ))
    });
    Ok(Members(checked.collect::<Result<_, _>>()?))
}

/// `{relation: number}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct ExpandLimits(Members<String, u64>);

impl ExpandLimits {
    pub(crate) fn new(relation: &str, limit: u64) -> Self {
        Self(Members(vec![(relation.to_owned(), limit)]))
    }
}

impl Argument for ExpandLimits {
    fn schema() -> Schema {
        Schema::of_members(Schema {
            minimum: Some(1),
            ..Schema::new("integer")
        })
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        let refused = |message: &str| {
            Fault::refused(ErrorCode::InvalidExpand, name, message)
                .with_next(r#"pass an object such as {"thread":5} beside expand:["thread"]"#)
        };
        let Ok(given) = given.members() else {
            return Err(refused("expand_limit must be an object"));
        };
        if given.is_empty() {
            return Err(refused(
                "expand_limit names no relation; leave it out instead",
            ));
        }
        let mut limits = Vec::new();
        for (relation, limit) in given {
            if relation.is_empty() || relation.contains(['[', ']']) {
                return Err(refused("expand_limit keys are plain relation names"));
            }
            match limit.whole().filter(|limit| *limit > 0) {
                Some(limit) => limits.push((relation, limit)),
                None => return Err(refused("an expand limit is a whole number above zero")),
            }
        }
        Ok(Self(Members(limits)))
    }

    fn write(&self, name: &str, question: &mut Get) {
        for (relation, limit) in &self.0.0 {
            question.push(format!("{name}[{relation}]"), limit.to_string());
        }
    }

    fn value(&self) -> ArgValue {
        self.clone().into()
    }
}
