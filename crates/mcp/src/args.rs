//! Arguments: one struct per tool, from which the JSON Schema that a host sees and the checks that a call passes are made.
//!
//! Checks are strict, because a misspelt argument that is ignored gives an answer to another question. Every refusal is
//! typed and comes before anything is asked.

mod objects;

use contract::aggregate::{Granularity, MetricKind};
use contract::error::ErrorCode;
use contract::query::Count;
use contract::search::{SearchMode, SearchOrder};
use contract::upstream::Get;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(crate) use objects::{ExpandLimits, Filter};

use crate::budget;
use crate::fault::Fault;
use crate::text::plain;

/// The arguments of a tool.
pub(crate) trait Arguments: Serialize + Sized {
    /// The input schema: a strict object.
    fn schema() -> Map<String, Value>;
    /// Checks what a caller sent. A null is an argument that was not given.
    fn read(given: Map<String, Value>) -> Result<Self, Fault>;
    /// Writes all arguments into a question, each in its wire form, but for those named.
    fn write(&self, question: &mut Get, but: &[&str]);
}

/// Declares the arguments of a tool: name, type, what a model is told, and another name that callers may use but are not told
/// of. An `Option` may be left out.
macro_rules! arguments {
    ($(#[$about:meta])* $seen:vis struct $name:ident {
        $($field:ident: $kind:ty = $told:expr $(, also $other:literal)?;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Serialize)]
        $seen struct $name {
            $(#[serde(skip_serializing_if = "crate::args::is_absent")] $seen $field: $kind,)*
        }

        impl crate::args::Arguments for $name {
            fn schema() -> serde_json::Map<String, serde_json::Value> {
                crate::args::input_schema([
                    $((stringify!($field), <$kind as crate::args::Slot>::REQUIRED,
                        crate::args::told(<$kind as crate::args::Slot>::schema(), $told)),)*
                ])
            }

            fn read(
                mut given: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, crate::fault::Fault> {
                let known = [$(stringify!($field),)*];
                let other = [$($((stringify!($field), $other),)?)*];
                crate::args::prepare(&mut given, &known, &other)?;
                Ok(Self {
                    $($field: crate::args::Slot::read(stringify!($field), given.shift_remove(stringify!($field)))?,)*
                })
            }

            fn write(&self, question: &mut contract::upstream::Get, but: &[&str]) {
                $(if !but.contains(&stringify!($field)) {
                    crate::args::Slot::write(&self.$field, stringify!($field), question);
                })*
            }
        }
    };
}
pub(crate) use arguments;

/// A place of the struct: an argument that must be given, or one that may be left out.
pub(crate) trait Slot: Sized {
    const REQUIRED: bool;
    fn schema() -> Value;
    fn read(name: &str, given: Option<Value>) -> Result<Self, Fault>;
    fn write(&self, name: &str, question: &mut Get);
}

/// What an argument may be.
pub(crate) trait Argument: Sized {
    fn schema() -> Value;
    fn read(name: &str, given: Value) -> Result<Self, Fault>;
    fn write(&self, name: &str, question: &mut Get);
}

impl<T: Argument> Slot for T {
    const REQUIRED: bool = true;

    fn schema() -> Value {
        T::schema()
    }

    fn read(name: &str, given: Option<Value>) -> Result<Self, Fault> {
        let missing = || invalid(name, format!("the argument {name} is required"));
        T::read(name, given.ok_or_else(missing)?)
    }

    fn write(&self, name: &str, question: &mut Get) {
        Argument::write(self, name, question);
    }
}

impl<T: Argument> Slot for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        T::schema()
    }

    fn read(name: &str, given: Option<Value>) -> Result<Self, Fault> {
        given.map(|given| T::read(name, given)).transpose()
    }

    fn write(&self, name: &str, question: &mut Get) {
        if let Some(value) = self {
            value.write(name, question);
        }
    }
}

/// Whether an argument was left out, for the calls that repeat it.
pub(crate) fn is_absent<T: Slot + Serialize>(value: &T) -> bool {
    !T::REQUIRED && serde_json::to_value(value).is_ok_and(|value| value.is_null())
}

pub(crate) fn told(mut schema: Value, about: &str) -> Value {
    if !about.is_empty() {
        schema["description"] = json!(about);
    }
    schema
}

pub(crate) fn input_schema<const N: usize>(slots: [(&str, bool, Value); N]) -> Map<String, Value> {
    let required: Vec<&str> = slots
        .iter()
        .filter(|slot| slot.1)
        .map(|slot| slot.0)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    let properties = slots
        .into_iter()
        .map(|(name, _, schema)| (name.to_owned(), schema));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// Takes nulls out, gives arguments under another name their own, and refuses names that are not known.
pub(crate) fn prepare(
    given: &mut Map<String, Value>,
    known: &[&str],
    other: &[(&str, &str)],
) -> Result<(), Fault> {
    let is_known =
        |name: &str| known.contains(&name) || other.iter().any(|(_, also)| *also == name);
    if let Some(name) = given.keys().find(|name| !is_known(name)) {
        return Err(unknown(name, known));
    }
    given.retain(|_, value| !value.is_null());
    for (name, also) in other {
        let Some(value) = given.shift_remove(*also) else {
            continue;
        };
        if given.get(*name).is_some_and(|twin| *twin != value) {
            let message = format!("{name} was given twice, under two names, with two values");
            return Err(invalid(name, message).with_next(format!("pass {name} only")));
        }
        given.insert((*name).to_owned(), value);
    }
    Ok(())
}

/// A text that is not empty.
impl Argument for String {
    fn schema() -> Value {
        json!({"type": "string", "minLength": 1})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        match given {
            Value::String(text) if text.is_empty() => {
                Err(invalid(name, format!("{name} must not be empty")))
            }
            Value::String(text) => Ok(text),
            _ => Err(wrong_type(name, "a string")),
        }
    }

    fn write(&self, name: &str, question: &mut Get) {
        question.push(name, self.as_str());
    }
}

/// One of a few words.
pub(crate) trait Choice: Copy + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

impl<T: Choice> Argument for Chosen<T> {
    fn schema() -> Value {
        let words: Vec<&str> = T::ALL.iter().map(|one| one.word()).collect();
        json!({"type": "string", "enum": words})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        let given = given.as_str().unwrap_or_default();
        let found = T::ALL.iter().find(|one| one.word() == given);
        found.copied().map(Self).ok_or_else(|| {
            let words: Vec<&str> = T::ALL.iter().map(|one| one.word()).collect();
            invalid(name, format!("{name} must be one of {}", words.join(", ")))
        })
    }

    fn write(&self, name: &str, question: &mut Get) {
        question.push(name, self.0.word());
    }
}

/// The word that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<T>(pub(crate) T);

impl<T: Choice> Serialize for Chosen<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

macro_rules! choices {
    ($($kind:ty),*) => {$(
        impl Choice for $kind {
            const ALL: &'static [Self] = &<$kind>::ALL;

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )*};
}

choices!(Count, Granularity, MetricKind, SearchMode, SearchOrder);

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub(crate) u64);

/// How many entries a page may have.
pub(crate) type Limit = Whole<1, { budget::MAX_LIMIT }>;

impl<const LEAST: u64, const MOST: u64> Argument for Whole<LEAST, MOST> {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        match whole(&given) {
            Some(number) if (LEAST..=MOST).contains(&number) => Ok(Self(number)),
            None if !given.is_number() => Err(wrong_type(name, "an integer")),
            _ => {
                let message = format!("{name} must be between {LEAST} and {MOST}");
                Err(Fault::refused(ErrorCode::LimitOutOfRange, name, message))
            }
        }
    }

    fn write(&self, name: &str, question: &mut Get) {
        question.push(name, self.0.to_string());
    }
}

/// A list of names, which is not empty: read as "no restriction" an empty one would widen the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Names {
    /// The names of an argument that may have been left out.
    pub(crate) fn given(names: Option<&Self>) -> Vec<&str> {
        names.map_or_else(Vec::new, |names| {
            names.0.iter().map(String::as_str).collect()
        })
    }
}

impl Argument for Names {
    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "string", "minLength": 1}})
    }

    fn read(name: &str, given: Value) -> Result<Self, Fault> {
        let names: Option<Vec<String>> = match given {
            Value::Array(list) => list.into_iter().map(non_empty).collect(),
            _ => None,
        };
        let names = names.ok_or_else(|| wrong_type(name, "an array of non-empty strings"))?;
        if names.is_empty() {
            return Err(invalid(
                name,
                format!("{name} is empty; leave it out instead"),
            ));
        }
        match names.iter().find(|one| !can_be_listed(one)) {
            Some(joined) => Err(several_names(name, joined)),
            None => Ok(Self(names)),
        }
    }

    fn write(&self, name: &str, question: &mut Get) {
        for one in &self.0 {
            question.push(name, one.as_str());
        }
    }
}

fn non_empty(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
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

/// Whether this name can stand in a list: on the wire, names are separated by commas.
pub(crate) fn can_be_listed(name: &str) -> bool {
    !name.contains(',')
}

/// Whether a field of this name can be filtered: on the wire its name stands in brackets.
pub(crate) fn is_filter_name(field: &str) -> bool {
    !field.is_empty() && !field.contains(['[', ']'])
}

fn invalid(name: &str, message: impl Into<String>) -> Fault {
    Fault::refused(ErrorCode::InvalidArguments, name, message)
}

/// Sent on, it would be taken for several names, and the answer held against one that no record has.
fn several_names(name: &str, given: &str) -> Fault {
    let shown = plain::quoted(given, budget::LABEL);
    let message = format!("{name} holds {shown}, but a name in it cannot contain a comma");
    let next = format!("pass each name as an entry of its own, as {name}:[\"a\",\"b\"]");
    invalid(name, message).with_next(next)
}

fn wrong_type(name: &str, expected: &str) -> Fault {
    invalid(name, format!("{name} must be {expected}"))
}

fn unknown(name: &str, known: &[&str]) -> Fault {
    let shown = plain::cut(name, 64);
    let message = format!(
        "the argument {} is not known; known are {}",
        plain::quoted(&shown, 80),
        known.join(", ")
    );
    invalid(&shown, message)
}
