//! Arguments that are objects: filters, and limits of relations.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::{Argument, is_filter_name, whole};
use crate::fault::Fault;

/// `{field: value}` or `{field: {gte, gt, lte, lt}}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Filter(Map<String, Value>);

const RANGE: [&str; 4] = ["gte", "gt", "lte", "lt"];

impl Filter {
    /// A filter on one field.
    pub(crate) fn on(field: &str, value: impl Serialize) -> Self {
        Self::and(None, field, value)
    }

    /// The same filter with a condition more.
    pub(crate) fn and(filter: Option<&Self>, field: &str, value: impl Serialize) -> Self {
        let mut filter = filter.map_or_else(Map::new, |filter| filter.0.clone());
        filter.insert(field.to_owned(), json!(value));
        Self(filter)
    }

    /// The same filter, from this value of a field on. None where the field must equal something.
    pub(crate) fn from(filter: Option<&Self>, field: &str, start: &str) -> Option<Self> {
        let mut filter = filter.map_or_else(Map::new, |filter| filter.0.clone());
        let mut range = match filter.get(field) {
            Some(Value::Object(range)) => range.clone(),
            Some(_) => return None,
            None => Map::new(),
        };
        range.remove("gt");
        range.insert("gte".to_owned(), json!(start));
        filter.insert(field.to_owned(), Value::Object(range));
        Some(Self(filter))
    }
}

impl Argument for Filter {
    fn schema() -> Value {
        let value = crate::tools::one_of(&["string", "number", "boolean", "object"]);
        json!({"type": "object", "additionalProperties": value})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        let refused = |message: &str| {
            Fault::refused(ErrorCode::InvalidFilter, name, message)
                .with_next(r#"pass an object such as {"sender":"ann"} or {"sent_at":{"gte":"2026-01-01","lt":"2026-02-01"}}"#)
        };
        let Value::Object(mut filter) = given else {
            return Err(refused("filter must be an object, not text or a list"));
        };
        if filter.is_empty() {
            return Err(refused("filter names no field; leave it out instead"));
        }
        for (field, test) in &mut filter {
            if !is_filter_name(field) {
                return Err(refused(
                    "filter keys are plain field names, without brackets",
                ));
            }
            match test {
                Value::Object(range) => check_range(range).map_err(refused)?,
                value if is_bound(value) => plain_number(value),
                _ => {
                    return Err(refused(
                        "a filter value is a string, number, boolean or range object",
                    ));
                }
            }
        }
        Ok(Self(filter))
    }

    fn write(&self, name: &str, question: &mut Get) {
        for (field, value) in &self.0 {
            match value {
                Value::Object(range) => {
                    for (operator, bound) in range {
                        question.push(format!("{name}[{field}][{operator}]"), scalar_text(bound));
                    }
                }
                value => question.push(format!("{name}[{field}]"), scalar_text(value)),
            }
        }
    }
}

fn check_range(range: &mut Map<String, Value>) -> Result<(), &'static str> {
    if range.is_empty() {
        return Err("a range needs at least one of gte, gt, lte, lt");
    }
    for (operator, bound) in range {
        if !RANGE.contains(&operator.as_str()) {
            return Err("a range knows only gte, gt, lte and lt");
        }
        if !is_bound(bound) {
            return Err("a range bound is a string, number or boolean");
        }
        plain_number(bound);
    }
    Ok(())
}

fn is_bound(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `{relation: number}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct ExpandLimits(Map<String, Value>);

impl ExpandLimits {
    pub(crate) fn new(relation: &str, limit: u64) -> Self {
        Self(Map::from_iter([(relation.to_owned(), json!(limit))]))
    }
}

impl Argument for ExpandLimits {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        let refused = |message: &str| {
            Fault::refused(ErrorCode::InvalidExpand, name, message)
                .with_next(r#"pass an object such as {"thread":5} beside expand:["thread"]"#)
        };
        let Value::Object(mut limits) = given else {
            return Err(refused("expand_limit must be an object"));
        };
        if limits.is_empty() {
            return Err(refused(
                "expand_limit names no relation; leave it out instead",
            ));
        }
        for (relation, limit) in &mut limits {
            if relation.is_empty() || relation.contains(['[', ']']) {
                return Err(refused("expand_limit keys are plain relation names"));
            }
            match whole(limit).filter(|limit| *limit > 0) {
                Some(number) => *limit = json!(number),
                None => return Err(refused("an expand limit is a whole number above zero")),
            }
        }
        Ok(Self(limits))
    }

    fn write(&self, name: &str, question: &mut Get) {
        for (relation, limit) in &self.0 {
            question.push(format!("{name}[{relation}]"), limit.to_string());
        }
    }
}

/// `3.0` is the number `3`, which is what servers of integers read. Larger ones are left as they were written.
fn plain_number(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Some(number) = value.as_number().and_then(Number::as_f64) else {
        return;
    };
    if value.is_f64() && number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and within what a double holds exactly"
        )]
        let whole = number as i64;
        *value = Value::from(whole);
    }
}
