//! Walks a JSON document while collecting every mistake in it: declarations and authorization details are read with it.
//!
//! A [`Node`] is a value with its JSON Pointer; an [`Object`] is a closed set of members: a member that was not read by name
//! before the object is finished is a mistake. Reading goes on after a mistake, so one pass reports them all.

use std::fmt;

use serde_json::value::RawValue;

use crate::json::{self, JsonKind, RecordBody};

/// The longest name that a suggestion is looked for, in characters; comparing takes the product of both lengths.
const MAX_SUGGESTED: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {rule}", if path.is_empty() { "(whole file)" } else { path.as_str() })]
pub struct Mistake {
    /// JSON Pointer inside the document, or the flag; empty for the whole.
    pub path: String,
    /// The rule that is broken, with the value that breaks it.
    pub rule: String,
}

/// Every mistake found in a document, in the order of reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    pub fn one(path: impl Into<String>, rule: impl Into<String>) -> Mistakes {
        let mut mistakes = Mistakes::default();
        mistakes.add(path, rule);
        mistakes
    }

    pub fn add(&mut self, path: impl Into<String>, rule: impl Into<String>) {
        self.0.push(Mistake {
            path: path.into(),
            rule: rule.into(),
        });
    }

    /// Keeps a value that a list may hold once, or says which one is there already.
    pub fn push_unique<T: PartialEq + fmt::Display>(
        &mut self,
        list: &mut Vec<T>,
        value: T,
        path: impl Into<String>,
        rule: &str,
    ) {
        if list.contains(&value) {
            self.add(path, format!("{rule}, {value} is repeated"));
        } else {
            list.push(value);
        }
    }

    pub fn unless_any<T>(self, value: T) -> Result<T, Mistakes> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Extends a JSON Pointer by one step.
pub fn step(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A JSON value and its JSON Pointer.
#[derive(Debug, Clone)]
pub struct Node {
    pub raw: String,
    pub path: String,
}

impl Node {
    /// The beginning of the value, for a message.
    pub fn found(&self) -> String {
        let shown: String = self.raw.chars().take(40).collect();
        let more = if shown.len() < self.raw.len() {
            "…"
        } else {
            ""
        };
        format!("found {shown}{more}")
    }

    fn refuse(&self, wanted: &str, mistakes: &mut Mistakes) {
        mistakes.add(&self.path, format!("must be {wanted}, {}", self.found()));
    }

    pub fn text(&self, mistakes: &mut Mistakes) -> Option<String> {
        match json::decode_string(&self.raw) {
            Some(text) if !text.trim().is_empty() => Some(text.into_owned()),
            _ => {
                self.refuse("a non-empty string", mistakes);
                None
            }
        }
    }

    pub fn boolean(&self, mistakes: &mut Mistakes) -> Option<bool> {
        match self.raw.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.refuse("true or false", mistakes);
                None
            }
        }
    }

    /// An integer above zero.
    pub fn positive(&self, mistakes: &mut Mistakes) -> Option<u32> {
        match self.raw.trim().parse::<u32>() {
            Ok(number) if number > 0 => Some(number),
            _ => {
                self.refuse("a positive integer", mistakes);
                None
            }
        }
    }

    pub fn array(&self, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&self.raw) {
            let node = |(at, item): (usize, &&RawValue)| Node {
                raw: item.get().to_owned(),
                path: format!("{}/{at}", self.path),
            };
            return Some(items.iter().enumerate().map(node).collect());
        }
        self.refuse("an array", mistakes);
        None
    }

    pub fn filled_array(&self, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        let items = self.array(mistakes)?;
        if items.is_empty() {
            mistakes.add(&self.path, "must name at least one element, found []");
        }
        Some(items)
    }

    /// An object without repeated members.
    pub fn object(&self, mistakes: &mut Mistakes) -> Option<Object> {
        if json::kind_of(&self.raw) != JsonKind::Object {
            self.refuse("an object", mistakes);
            return None;
        }
        match RecordBody::parse(self.raw.clone()) {
            Ok(body) => Some(Object::new(body, self.path.clone())),
            Err(error) => {
                mistakes.add(&self.path, error.to_string());
                None
            }
        }
    }

    /// One of a fixed set of words.
    pub fn choice<T: Copy>(&self, options: &[(&str, T)], mistakes: &mut Mistakes) -> Option<T> {
        let text = json::decode_string(&self.raw);
        let is_it = |(name, _): &&(&str, T)| text.as_deref() == Some(*name);
        if let Some((_, value)) = options.iter().find(is_it) {
            return Some(*value);
        }
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let hint = text.map_or_else(String::new, |text| {
            did_you_mean(&text, names.iter().copied())
        });
        self.refuse(&format!("one of {}{hint}", names.join(", ")), mistakes);
        None
    }
}

/// A JSON object, and which of its members were read.
#[derive(Debug)]
pub struct Object {
    body: RecordBody,
    pub path: String,
    known: Vec<&'static str>,
}

impl Object {
    /// An object of which nothing was read yet.
    pub fn new(body: RecordBody, path: String) -> Object {
        Object {
            body,
            path,
            known: Vec::new(),
        }
    }

    /// Whether there is such a member, whether it is asked for or not.
    pub fn has(&self, name: &str) -> bool {
        self.body.get(name).is_some()
    }

    pub fn optional(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        let raw = self.body.get(name)?.to_owned();
        Some(Node {
            raw,
            path: step(&self.path, name),
        })
    }

    pub fn required(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Node> {
        let node = self.optional(name);
        if node.is_none() {
            mistakes.add(&self.path, format!("{name} is required and missing"));
        }
        node
    }

    pub fn required_text(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<String> {
        self.required(name, mistakes)?.text(mistakes)
    }

    pub fn required_choice<T: Copy>(
        &mut self,
        name: &'static str,
        options: &[(&str, T)],
        mistakes: &mut Mistakes,
    ) -> Option<T> {
        self.required(name, mistakes)?.choice(options, mistakes)
    }

    // The members that may be missing, by what they hold.

    pub fn text(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<String> {
        self.optional(name)?.text(mistakes)
    }

    pub fn boolean(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<bool> {
        self.optional(name)?.boolean(mistakes)
    }

    pub fn positive(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<u32> {
        self.optional(name)?.positive(mistakes)
    }

    pub fn array(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        self.optional(name)?.array(mistakes)
    }

    pub fn object(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Object> {
        self.optional(name)?.object(mistakes)
    }

    /// Every member, for objects whose names are free.
    pub fn members(&self) -> Vec<(String, Node)> {
        let node = |(name, raw): (&str, &str)| {
            (
                name.to_owned(),
                Node {
                    raw: raw.to_owned(),
                    path: step(&self.path, name),
                },
            )
        };
        self.body.members().map(node).collect()
    }

    /// Reports the members that were not read.
    pub fn finish(self, mistakes: &mut Mistakes) {
        self.report(mistakes, |_| false, "");
    }

    /// Reports the members that were not read, except those beginning with `x_`.
    pub fn finish_with_extensions(self, mistakes: &mut Mistakes) {
        let is_extension = |name: &str| name.starts_with("x_");
        self.report(mistakes, is_extension, ", and names beginning with x_");
    }

    fn report(self, mistakes: &mut Mistakes, is_allowed: fn(&str) -> bool, besides: &str) {
        for (name, _) in self.body.members() {
            if is_allowed(name) || self.known.contains(&name) {
                continue;
            }
            let hint = did_you_mean(name, self.known.iter().copied());
            let allowed = self.known.join(", ");
            let rule = format!("unknown member {name:?}{hint}; allowed here: {allowed}{besides}");
            mistakes.add(step(&self.path, name), rule);
        }
    }
}

/// ` (did you mean "…"?)` when one of the candidates is close enough to be a typing error.
pub fn did_you_mean<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    let given_length = given.chars().count();
    if given_length == 0 || given_length > MAX_SUGGESTED {
        return String::new();
    }
    let allowed = (given_length / 3).clamp(1, 3);
    let near = candidates
        .filter(|candidate| candidate.chars().count() <= MAX_SUGGESTED)
        .map(|candidate| (strsim::osa_distance(given, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min();
    near.map_or_else(String::new, |(_, name)| {
        format!(" (did you mean {name:?}?)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_named_and_a_different_word_is_not() {
        let names = ["cursor_field", "primary_key"];
        assert_eq!(
            did_you_mean("cursor_feild", names.into_iter()),
            " (did you mean \"cursor_field\"?)"
        );
        assert_eq!(did_you_mean("colour", names.into_iter()), "");
        assert_eq!(did_you_mean("", names.into_iter()), "");
    }
}
