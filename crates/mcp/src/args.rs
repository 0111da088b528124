//! Arguments: one struct per tool, from which the JSON Schema that a host sees and the checks that a call passes are made.
//!
//! Checks are strict, because a misspelt argument that is ignored gives an answer to another question. Every refusal is
//! typed and comes before anything is asked.

mod given;
mod objects;
mod schema;

use contract::error::ErrorCode;
use contract::names::Named;
use contract::upstream::Get;
use rmcp::model::JsonObject;

pub(crate) use given::{Given, Scalar};
pub(crate) use objects::{ExpandLimits, Filter};
pub(crate) use schema::Schema;

use crate::budget;
use crate::fault::Fault;
use crate::text::plain;
use crate::tool_call::ArgValue;

/// The arguments of a tool.
pub(crate) trait Arguments: Sized {
    /// The input schema: a strict object.
    fn schema() -> Schema;
    /// Checks what a caller sent. A null is an argument that was not given.
    fn read(given: JsonObject) -> Result<Self, Fault>;
    /// Writes all arguments into a question, each in its wire form, but for those named.
    fn write(&self, question: &mut Get, but: &[&str]);
    /// All that were given, for a call that repeats them.
    fn given(&self) -> Vec<(&'static str, ArgValue)>;
}

/// What was sent, by the name of the argument.
pub(crate) struct Sent(Vec<(String, Given)>);

/// The name of an argument: that of its field, or another one, for `match` cannot name a field.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}
pub(crate) use wire_name;

/// Declares the arguments of a tool: name, type, what a model is told, and another name that callers may use but are not told
/// of. An `Option` may be left out.
macro_rules! arguments {
    ($(#[$about:meta])* $seen:vis struct $name:ident {
        $($field:ident $(as $wire:literal)?: $kind:ty = $told:expr $(, also $other:literal)?;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone)]
        $seen struct $name {
            $($seen $field: $kind,)*
        }

        impl crate::args::Arguments for $name {
            fn schema() -> crate::args::Schema {
                crate::args::input_schema([
                    $((crate::args::wire_name!($field $($wire)?), <$kind as crate::args::Slot>::REQUIRED,
                        <$kind as crate::args::Slot>::schema(), $told),)*
                ])
            }

            fn read(given: rmcp::model::JsonObject) -> Result<Self, crate::fault::Fault> {
                let known = [$(crate::args::wire_name!($field $($wire)?),)*];
                let other = [$($((stringify!($field), $other),)?)*];
                let mut sent = crate::args::Sent::new(given, &known, &other)?;
                Ok(Self {
                    $($field: crate::args::Slot::read(crate::args::wire_name!($field $($wire)?), sent.take(crate::args::wire_name!($field $($wire)?)))?,)*
                })
            }

            fn given(&self) -> Vec<(&'static str, crate::tool_call::ArgValue)> {
                let given = [$((crate::args::wire_name!($field $($wire)?), crate::args::Slot::value(&self.$field)),)*];
                given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }

            fn write(&self, question: &mut contract::upstream::Get, but: &[&str]) {
                $(if !but.contains(&crate::args::wire_name!($field $($wire)?)) {
                    crate::args::Slot::write(&self.$field, crate::args::wire_name!($field $($wire)?), question);
                })*
            }
        }
    };
}
pub(crate) use arguments;

/// A place of the struct: an argument that must be given, or one that may be left out.
pub(crate) trait Slot: Sized {
    const REQUIRED: bool;
    fn schema() -> Schema;
    fn read(name: &str, given: Option<Given>) -> Result<Self, Fault>;
    fn write(&self, name: &str, question: &mut Get);
    fn value(&self) -> Option<ArgValue>;
}

/// What an argument may be.
pub(crate) trait Argument: Sized {
    fn schema() -> Schema;
    fn read(name: &str, given: Given) -> Result<Self, Fault>;
    fn write(&self, name: &str, question: &mut Get);
    fn value(&self) -> ArgValue;
}

impl<T: Argument> Slot for T {
    const REQUIRED: bool = true;

    fn schema() -> Schema {
        T::schema()
    }

    fn read(name: &str, given: Option<Given>) -> Result<Self, Fault> {
        let missing = || invalid(name, format!("the argument {name} is required"));
        T::read(name, given.ok_or_else(missing)?)
    }

    fn write(&self, name: &str, question: &mut Get) {
        Argument::write(self, name, question);
    }

    fn value(&self) -> Option<ArgValue> {
        Some(Argument::value(self))
    }
}

impl<T: Argument> Slot for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> Schema {
        T::schema()
    }

    fn read(name: &str, given: Option<Given>) -> Result<Self, Fault> {
        given.map(|given| T::read(name, given)).transpose()
    }

    fn write(&self, name: &str, question: &mut Get) {
        if let Some(value) = self {
            value.write(name, question);
        }
    }

    fn value(&self) -> Option<ArgValue> {
        self.as_ref().map(Argument::value)
    }
}

/// The schema of arguments: name, whether it must be given, what it is, and what a model is told of it.
pub(crate) fn input_schema<const N: usize>(
    slots: [(&'static str, bool, Schema, &'static str); N],
) -> Schema {
    let required = slots.iter().filter(|slot| slot.1).map(|slot| slot.0);
    let required = required.collect();
    let properties = slots.into_iter().map(|(name, _, mut schema, about)| {
        schema.description = about;
        (name, schema)
    });
    Schema::of_object(properties.collect(), required).strict()
}

impl Sent {
    /// Takes nulls out, gives arguments under another name their own, and refuses names that are not known.
    pub(crate) fn new(
        given: JsonObject,
        known: &[&str],
        other: &[(&str, &str)],
    ) -> Result<Self, Fault> {
        let is_known =
            |name: &str| known.contains(&name) || other.iter().any(|(_, also)| *also == name);
        if let Some(name) = given.keys().find(|name| !is_known(name)) {
            return Err(unknown(name, known));
        }
        let given = given.into_iter();
        let given = given.filter_map(|(name, value)| Some((name, Given::new(value)?)));
        let mut sent = Self(given.collect());
        for (name, also) in other {
            let Some(value) = sent.take(also) else {
                continue;
            };
            if sent.take(name).is_some_and(|twin| twin != value) {
                let message = format!("{name} was given twice, under two names, with two values");
                return Err(invalid(name, message).with_next(format!("pass {name} only")));
            }
            sent.0.push(((*name).to_owned(), value));
        }
        Ok(sent)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Given> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// A text that is not empty.
impl Argument for String {
    fn schema() -> Schema {
        Schema {
            min_length: Some(1),
            ..Schema::new("string")
        }
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        match given.text() {
            Some(text) if text.is_empty() => {
                Err(invalid(name, format!("{name} must not be empty")))
            }
            Some(text) => Ok(text),
            None => Err(wrong_type(name, "a string")),
        }
    }

    fn write(&self, name: &str, question: &mut Get) {
        question.push(name, self.as_str());
    }

    fn value(&self) -> ArgValue {
        self.into()
    }
}

impl<T: Named> Argument for Chosen<T> {
    fn schema() -> Schema {
        Schema {
            words: T::NAMED.iter().map(|(name, _)| *name).collect(),
            ..Schema::new("string")
        }
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        let given = given.text().unwrap_or_default();
        let found = T::NAMED.iter().find(|(word, _)| *word == given);
        found.map(|(_, one)| Self(*one)).ok_or_else(|| {
            let words: Vec<&str> = T::NAMED.iter().map(|(word, _)| *word).collect();
            invalid(name, format!("{name} must be one of {}", words.join(", ")))
        })
    }

    fn write(&self, name: &str, question: &mut Get) {
        question.push(name, self.0.name());
    }

    fn value(&self) -> ArgValue {
        self.0.name().into()
    }
}

/// The word that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<T>(pub(crate) T);

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub(crate) u64);

/// How many entries a page may have.
pub(crate) type Limit = Whole<1, { budget::MAX_LIMIT }>;

impl<const LEAST: u64, const MOST: u64> Argument for Whole<LEAST, MOST> {
    fn schema() -> Schema {
        Schema {
            minimum: Some(LEAST),
            maximum: Some(MOST),
            ..Schema::new("integer")
        }
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        match given.whole() {
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

    fn value(&self) -> ArgValue {
        self.0.into()
    }
}

/// A list of names, which is not empty: read as "no restriction" an empty one would widen the question.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    fn schema() -> Schema {
        Schema {
            items: Some(Box::new(<String as Argument>::schema())),
            ..Schema::new("array")
        }
    }

    fn read(name: &str, given: Given) -> Result<Self, Fault> {
        let names = given.names();
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

    fn value(&self) -> ArgValue {
        self.0.as_slice().into()
    }
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
