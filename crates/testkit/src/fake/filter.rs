//! Filters: only what the schema advertises, values read by the type of the field.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use super::call::Call;
use super::reply::Failure;
use super::world::{Field, Record, Stream};

#[derive(Debug)]
pub(crate) struct Filter<'a> {
    field: &'a str,
    operator: &'a str,
    value: &'a str,
}

/// The conditions of a question, all of which the stream must advertise.
pub(crate) fn filters<'a>(call: &'a Call, stream: &Stream) -> Result<Vec<Filter<'a>>, Failure> {
    let mut filters = Vec::new();
    for (brackets, value) in call.bracketed("filter") {
        let (name, operator) = match brackets.as_slice() {
            [name] => (*name, "eq"),
            [name, operator] => (*name, *operator),
            _ => continue,
        };
        let field = granted(stream, name)?;
        let is_advertised = match operator {
            "eq" => brackets.len() == 1 && field.exact,
            operator => field.range.contains(&operator),
        };
        if !is_advertised || field.unusable.is_some() {
            return Err(Failure::invalid(
                "filter",
                format!("Filter {operator} is not declared for '{name}'"),
            ));
        }
        if !is_readable(field, value) {
            return Err(Failure::invalid(
                "filter",
                format!("'{value}' is no value of '{name}'"),
            ));
        }
        filters.push(Filter {
            field: name,
            operator,
            value,
        });
    }
    Ok(filters)
}

/// The field, or the refusal that does not tell whether it exists.
pub(crate) fn granted<'a>(stream: &'a Stream, name: &str) -> Result<&'a Field, Failure> {
    stream.granted(name).ok_or_else(|| {
        Failure::new(
            403,
            "field_not_granted",
            format!("field '{name}' is not within the grant"),
        )
        .with("param", name)
    })
}

impl Filter<'_> {
    pub(crate) fn keeps(&self, record: &Record) -> bool {
        let order = record
            .data
            .get(self.field)
            .and_then(|value| against(value, self.value));
        order.is_some_and(|order| match self.operator {
            "gte" => order.is_ge(),
            "gt" => order.is_gt(),
            "lte" => order.is_le(),
            "lt" => order.is_lt(),
            _ => order.is_eq(),
        })
    }
}

fn is_readable(field: &Field, value: &str) -> bool {
    match (field.json_type, field.presentation) {
        ("number" | "integer", _) => value.parse::<f64>().is_ok(),
        ("boolean", _) => value.parse::<bool>().is_ok(),
        (_, Some("timestamp")) => instant(value).is_some(),
        _ => true,
    }
}

/// How a stored value stands to a written one.
fn against(stored: &Value, written: &str) -> Option<Ordering> {
    match stored {
        Value::Number(number) => number.as_f64()?.partial_cmp(&written.parse().ok()?),
        Value::Bool(stored) => Some(stored.cmp(&written.parse().ok()?)),
        Value::String(stored) => Some(texts(stored, written)),
        _ => None,
    }
}

/// How two stored values stand, for ordering and for the smallest and largest.
pub(crate) fn values(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one
            .as_f64()
            .partial_cmp(&other.as_f64())
            .unwrap_or(Ordering::Equal),
        (Value::String(one), Value::String(other)) => texts(one, other),
        _ => one.to_string().cmp(&other.to_string()),
    }
}

fn texts(one: &str, other: &str) -> Ordering {
    match (instant(one), instant(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}

/// A date-time, or a date as its midnight.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    let whole = text.parse().ok();
    whole.or_else(|| format!("{text}T00:00:00Z").parse().ok())
}
