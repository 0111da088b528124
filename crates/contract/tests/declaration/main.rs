//! Declarations: one good file with everything in it, a table of broken ones, and the rules of change.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of a test fail as the test does"
)]

mod arbitrary;
mod change;
mod reading;
mod references;

use contract::declaration::Declaration;
use serde_json::Value;

pub(crate) const GOOD: &str = include_str!("good.json");

pub(crate) fn good() -> Value {
    serde_json::from_str(GOOD).unwrap()
}

/// The good declaration with one place changed (`Some`) or taken out (`None`).
pub(crate) fn edited(pointer: &str, value: Option<Value>) -> String {
    let mut file = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match (file.pointer_mut(parent).unwrap(), value) {
        (Value::Object(members), Some(value)) => {
            drop(members.insert(name.replace("~1", "/"), value));
        }
        (Value::Object(members), None) => drop(members.remove(name).unwrap()),
        (Value::Array(items), Some(value)) => match name.parse::<usize>() {
            Ok(at) if at < items.len() => items[at] = value,
            _ => items.push(value),
        },
        _ => panic!("cannot edit {pointer}"),
    }
    file.to_string()
}

pub(crate) fn mistakes(text: &str) -> Vec<(String, String)> {
    let errors = Declaration::parse(text).unwrap_err();
    errors
        .0
        .into_iter()
        .map(|error| (error.path, error.rule))
        .collect()
}
