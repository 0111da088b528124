//! What an agent reads of a schema, and what it can do with it.

mod fixtures;
mod full;
mod index;
mod scoped;

use serde_json::Value;

/// Whether any object inside has a member of this name.
fn holds(value: &Value, member: &str) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| name == member || holds(inner, member)),
        Value::Array(items) => items.iter().any(|inner| holds(inner, member)),
        _ => false,
    }
}

/// The calls a text ends with: tool and arguments of each.
fn next(text: &str) -> Vec<(String, Value)> {
    let last = text.lines().last().unwrap();
    let calls = last
        .strip_prefix("next: ")
        .unwrap_or_else(|| panic!("no next call: {last}"));
    let call = |call: &str| {
        let (tool, args) = call.split_once(' ').unwrap();
        let args = serde_json::from_str(args).unwrap_or_else(|error| panic!("{args}: {error}"));
        (tool.to_owned(), args)
    };
    calls.split(" or ").map(call).collect()
}
