//! Walks the JSON of authorization details and collects every mistake with its JSON Pointer.
//!
//! Objects are closed: a member that was not read by name before the object is finished is a mistake.

use std::collections::HashSet;

use contract::json::{self, JsonKind, RecordBody};
use serde_json::value::RawValue;

use super::{Mistakes, Named};

/// A JSON value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) raw: String,
    pub(super) path: String,
}

impl Node {
    fn refuse(&self, wanted: &str, mistakes: &mut Mistakes) {
        let shown: String = self.raw.chars().take(40).collect();
        let more = if shown.len() < self.raw.len() {
            "…"
        } else {
            ""
        };
        mistakes.add(&self.path, format!("must be {wanted}, found {shown}{more}"));
    }

    /// A non-empty text.
    pub(super) fn text(&self, mistakes: &mut Mistakes) -> Option<Named> {
        match json::decode_string(&self.raw) {
            Some(text) if !text.trim().is_empty() => Some(Named {
                path: self.path.clone(),
                text: text.into_owned(),
            }),
            _ => {
                self.refuse("a non-empty string", mistakes);
                None
            }
        }
    }

    /// An array of at least one element.
    pub(super) fn elements(&self, mistakes: &mut Mistakes) -> Option<Vec<Node>> {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&self.raw) else {
            self.refuse("an array", mistakes);
            return None;
        };
        if items.is_empty() {
            mistakes.add(
                &self.path,
                "is empty, and an empty selection grants nothing; name something or leave it out",
            );
            return None;
        }
        let node = |(at, item): (usize, &&RawValue)| Node {
            raw: item.get().to_owned(),
            path: format!("{}/{at}", self.path),
        };
        Some(items.iter().enumerate().map(node).collect())
    }

    /// An array of at least one text, none of them twice.
    pub(super) fn texts(&self, mistakes: &mut Mistakes) -> Option<Vec<Named>> {
        let mut texts: Vec<Named> = Vec::new();
        let mut known = HashSet::new();
        for element in self.elements(mistakes)? {
            let text = element.text(mistakes)?;
            if known.insert(text.text.clone()) {
                texts.push(text);
            } else {
                mistakes.add(&text.path, format!("names {:?} a second time", text.text));
            }
        }
        Some(texts)
    }

    pub(super) fn object(&self, mistakes: &mut Mistakes) -> Option<Members> {
        if json::kind_of(&self.raw) != JsonKind::Object {
            self.refuse("an object", mistakes);
            return None;
        }
        match RecordBody::parse(self.raw.clone()) {
            Ok(body) => Some(Members {
                body,
                path: self.path.clone(),
                known: Vec::new(),
            }),
            Err(error) => {
                mistakes.add(&self.path, error.to_string());
                None
            }
        }
    }

    /// One of a fixed set of words.
    pub(super) fn choice<T: Copy>(
        &self,
        options: &[(&str, T)],
        mistakes: &mut Mistakes,
    ) -> Option<T> {
        let text = json::decode_string(&self.raw);
        let found = options
            .iter()
            .find(|(name, _)| text.as_deref() == Some(*name));
        if found.is_none() {
            let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
            self.refuse(&format!("one of {}", names.join(", ")), mistakes);
        }
        found.map(|(_, value)| *value)
    }
}

/// The members of an object, all accounted for.
#[derive(Debug)]
pub(super) struct Members {
    body: RecordBody,
    pub(super) path: String,
    known: Vec<&'static str>,
}

impl Members {
    /// A member that may be absent.
    pub(super) fn optional(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        Some(Node {
            raw: self.body.get(name)?.trim().to_owned(),
            path: format!("{}/{name}", self.path),
        })
    }

    /// A member that must be there.
    pub(super) fn required(&mut self, name: &'static str, mistakes: &mut Mistakes) -> Option<Node> {
        let node = self.optional(name);
        if node.is_none() {
            mistakes.add(&self.path, format!("{name} is required and missing"));
        }
        node
    }

    /// Reports the members that were not read.
    pub(super) fn finish(self, mistakes: &mut Mistakes) {
        for (name, _) in self.body.members() {
            if !self.known.contains(&name) {
                let allowed = self.known.join(", ");
                mistakes.add(
                    format!(
                        "{}/{}",
                        self.path,
                        name.replace('~', "~0").replace('/', "~1")
                    ),
                    format!("unknown member {name:?}; allowed here: {allowed}"),
                );
            }
        }
    }
}
