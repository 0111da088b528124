//! Arguments: one table per tool gives the JSON Schema a host sees and the checks a call passes.
//!
//! Checks are strict, because a misspelt argument that is ignored gives an answer to another question. Every refusal is
//! typed and comes before anything is asked.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde_json::{Map, Value, json};

use crate::budget;
use crate::evidence::plain;
use crate::fault::Fault;

/// One argument of a tool.
pub(crate) struct Arg {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
    /// The argument this is another name of. Accepted, never advertised.
    stands_for: Option<&'static str>,
}

/// What an argument may be.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A text that is not empty.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number within bounds.
    Whole { least: u64, most: u64 },
    /// A list of texts.
    Texts,
    /// `{field: value}` or `{field: {gte, gt, lte, lt}}`.
    Filter,
    /// `{relation: number}`.
    Limits,
}

const RANGE: [&str; 4] = ["gte", "gt", "lte", "lt"];

impl Arg {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            about,
            stands_for: None,
        }
    }

    /// Another name of an argument, which callers may use but are not told of.
    pub(crate) const fn standing_for(mut self, name: &'static str) -> Self {
        self.stands_for = Some(name);
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({"type": "string", "minLength": 1}),
            Kind::Choice(words) => json!({"type": "string", "enum": words}),
            Kind::Whole { least, most } => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Kind::Texts => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
            Kind::Filter => {
                let value = crate::tools::one_of(&["string", "number", "boolean", "object"]);
                json!({"type": "object", "additionalProperties": value})
            }
            Kind::Limits => json!({
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 1}
            }),
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }
}

/// The input schema of a tool: a strict object.
pub(crate) fn input_schema(args: &[Arg]) -> Map<String, Value> {
    let properties: Map<String, Value> = args
        .iter()
        .filter(|arg| arg.stands_for.is_none())
        .map(|arg| (arg.name.to_owned(), arg.schema()))
        .collect();
    let required: Vec<&str> = args
        .iter()
        .filter(|arg| arg.required)
        .map(|arg| arg.name)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// Arguments that passed their checks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args(Map<String, Value>);

impl Args {
    /// Checks what a caller sent. A null is an argument that was not given.
    pub(crate) fn read(given: Map<String, Value>, known: &[Arg]) -> Result<Self, Fault> {
        let mut read = Map::new();
        for (name, value) in given {
            let Some(arg) = known.iter().find(|arg| arg.name == name) else {
                return Err(unknown(&name, known));
            };
            if value.is_null() {
                continue;
            }
            check(arg, &value)?;
            let value = plainly(arg.kind, value);
            let name = arg.stands_for.map_or(name, str::to_owned);
            if read.get(&name).is_some_and(|other| *other != value) {
                let message = format!("{name} was given twice, under two names, with two values");
                return Err(invalid(&name, message).with_next(format!("pass {name} only")));
            }
            read.insert(name, value);
        }
        let missing = known
            .iter()
            .find(|arg| arg.required && !read.contains_key(arg.name));
        if let Some(arg) = missing {
            let message = format!("the argument {} is required", arg.name);
            return Err(invalid(arg.name, message));
        }
        Ok(Self(read))
    }

    /// A text argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A whole number.
    pub(crate) fn whole(&self, name: &str) -> Option<u64> {
        whole(self.0.get(name)?)
    }

    /// A list of texts; empty when not given.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let given = self.0.get(name).and_then(Value::as_array);
        given.map_or_else(Vec::new, |texts| {
            texts.iter().filter_map(Value::as_str).collect()
        })
    }

    /// Refuses a list that was given without anything in it: read as "no restriction" it would widen the question.
    pub(crate) fn refuse_empty(&self, names: &[&str]) -> Result<(), Fault> {
        let is_empty = |name: &&&str| {
            let given = self.0.get(**name).and_then(Value::as_array);
            given.is_some_and(Vec::is_empty)
        };
        match names.iter().find(is_empty) {
            Some(name) => Err(invalid(
                name,
                format!("{name} is empty; leave it out instead"),
            )),
            None => Ok(()),
        }
    }

    /// Whether the argument was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What was given, to be written into a continuation.
    pub(crate) fn given(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Writes the named arguments into a question, each in its wire form.
    pub(crate) fn write(&self, names: &[&str], question: &mut Get) {
        for name in names {
            match (*name, self.0.get(*name)) {
                (_, None) => {}
                ("filter", Some(Value::Object(filter))) => write_filter(filter, question),
                ("expand_limit", Some(Value::Object(limits))) => {
                    for (relation, limit) in limits {
                        question.push(format!("expand_limit[{relation}]"), scalar_text(limit));
                    }
                }
                (_, Some(Value::Array(texts))) => {
                    for text in texts {
                        question.push(*name, scalar_text(text));
                    }
                }
                (_, Some(value)) => question.push(*name, scalar_text(value)),
            }
        }
    }
}

fn write_filter(filter: &Map<String, Value>, question: &mut Get) {
    for (field, value) in filter {
        match value {
            Value::Object(range) => {
                for (operator, bound) in range {
                    question.push(format!("filter[{field}][{operator}]"), scalar_text(bound));
                }
            }
            value => question.push(format!("filter[{field}]"), scalar_text(value)),
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A whole number, also when it was written like `5.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and within what a double holds exactly"
        )]
        (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
    })
}

/// Whole numbers in the form servers read: `5`, also where a host wrote `5.0`.
fn plainly(kind: Kind, mut value: Value) -> Value {
    match (kind, &mut value) {
        (Kind::Whole { .. }, number) => whole(number).map_or(value, Value::from),
        (Kind::Limits, Value::Object(limits)) => {
            for (_, limit) in limits.iter_mut() {
                *limit = whole(limit).map_or_else(|| limit.take(), Value::from);
            }
            value
        }
        (Kind::Filter, Value::Object(tests)) => {
            for (_, test) in tests.iter_mut() {
                match test {
                    Value::Object(range) => range.values_mut().for_each(plain_number),
                    test => plain_number(test),
                }
            }
            value
        }
        _ => value,
    }
}

/// `3.0` is the number `3`, which is what servers of integers read. Larger ones are left as they were written.
fn plain_number(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_written_whole = value.is_i64() || value.is_u64();
    let Some(number) = value.as_f64().filter(|_| !is_written_whole) else {
        return;
    };
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and within what a double holds exactly"
        )]
        let whole = number as i64;
        *value = Value::from(whole);
    }
}

fn check(arg: &Arg, value: &Value) -> Result<(), Fault> {
    let name = arg.name;
    match arg.kind {
        Kind::Text => match value.as_str() {
            Some("") => Err(invalid(name, format!("{name} must not be empty"))),
            Some(_) => Ok(()),
            None => Err(wrong_type(name, "a string")),
        },
        Kind::Choice(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            _ => Err(invalid(
                name,
                format!("{name} must be one of {}", words.join(", ")),
            )),
        },
        Kind::Whole { least, most } => match whole(value) {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            Some(_) => Err(out_of_range(name, least, most)),
            None if value.is_number() => Err(out_of_range(name, least, most)),
            None => Err(wrong_type(name, "an integer")),
        },
        Kind::Texts => {
            let is_list = value.as_array().is_some_and(|list| {
                list.iter()
                    .all(|one| one.as_str().is_some_and(|text| !text.is_empty()))
            });
            if !is_list {
                return Err(wrong_type(name, "an array of non-empty strings"));
            }
            let mut names = value.as_array().into_iter().flatten();
            match names.find_map(|one| one.as_str().filter(|text| !can_be_listed(text))) {
                None => Ok(()),
                Some(joined) => Err(several_names(name, joined)),
            }
        }
        Kind::Filter => check_filter(name, value),
        Kind::Limits => check_limits(name, value),
    }
}

fn out_of_range(name: &str, least: u64, most: u64) -> Fault {
    let message = format!("{name} must be between {least} and {most}");
    Fault::refused(ErrorCode::LimitOutOfRange, name, message)
}

/// Whether this name can stand in a list: on the wire, names are separated by commas.
pub(crate) fn can_be_listed(name: &str) -> bool {
    !name.contains(',')
}

/// Whether a field of this name can be filtered: on the wire its name stands in brackets.
pub(crate) fn is_filter_name(field: &str) -> bool {
    !field.is_empty() && !field.contains(['[', ']'])
}

fn check_filter(name: &str, value: &Value) -> Result<(), Fault> {
    let refused = |message: &str| {
        Fault::refused(ErrorCode::InvalidFilter, name, message)
            .with_next(r#"pass an object such as {"sender":"ann"} or {"sent_at":{"gte":"2026-01-01","lt":"2026-02-01"}}"#)
    };
    let Value::Object(filter) = value else {
        return Err(refused("filter must be an object, not text or a list"));
    };
    if filter.is_empty() {
        return Err(refused("filter names no field; leave it out instead"));
    }
    for (field, test) in filter {
        if !is_filter_name(field) {
            return Err(refused(
                "filter keys are plain field names, without brackets",
            ));
        }
        match test {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {}
            Value::Object(range) if range.is_empty() => {
                return Err(refused("a range needs at least one of gte, gt, lte, lt"));
            }
            Value::Object(range) => {
                for (operator, bound) in range {
                    if !RANGE.contains(&operator.as_str()) {
                        return Err(refused("a range knows only gte, gt, lte and lt"));
                    }
                    if !matches!(bound, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
                        return Err(refused("a range bound is a string, number or boolean"));
                    }
                }
            }
            _ => {
                return Err(refused(
                    "a filter value is a string, number, boolean or range object",
                ));
            }
        }
    }
    Ok(())
}

fn check_limits(name: &str, value: &Value) -> Result<(), Fault> {
    let refused = |message: &str| {
        Fault::refused(ErrorCode::InvalidExpand, name, message)
            .with_next(r#"pass an object such as {"thread":5} beside expand:["thread"]"#)
    };
    let Value::Object(limits) = value else {
        return Err(refused("expand_limit must be an object"));
    };
    if limits.is_empty() {
        return Err(refused(
            "expand_limit names no relation; leave it out instead",
        ));
    }
    for (relation, limit) in limits {
        if relation.is_empty() || relation.contains(['[', ']']) {
            return Err(refused("expand_limit keys are plain relation names"));
        }
        if whole(limit).is_none_or(|limit| limit == 0) {
            return Err(refused("an expand limit is a whole number above zero"));
        }
    }
    Ok(())
}

fn invalid(name: &str, message: impl Into<String>) -> Fault {
    Fault::refused(ErrorCode::InvalidArguments, name, message)
}

/// Sent on, it would be taken for several names, and the answer held against one that nobody has.
fn several_names(name: &str, given: &str) -> Fault {
    let shown = plain::quoted(given, budget::LABEL);
    let message = format!("{name} holds {shown}, but a name in it cannot contain a comma");
    let next = format!("pass each name as an entry of its own, as {name}:[\"a\",\"b\"]");
    invalid(name, message).with_next(next)
}

fn wrong_type(name: &str, expected: &str) -> Fault {
    invalid(name, format!("{name} must be {expected}"))
}

fn unknown(name: &str, known: &[Arg]) -> Fault {
    let names: Vec<&str> = known
        .iter()
        .filter(|arg| arg.stands_for.is_none())
        .map(|arg| arg.name)
        .collect();
    let shown = plain::cut(name, 64);
    let message = format!(
        "the argument {} is not known; known are {}",
        plain::quoted(&shown, 80),
        names.join(", ")
    );
    invalid(&shown, message)
}
