//! The schema of one property, written so that it can be read apart from the rest.

use super::{Keyword, MAX_STEPS, Reading, Schema, Shape};
use crate::document::{Mistakes, Node};
use crate::json::{self, JsonKind};

/// How large a property may become when what it refers to is written in place.
const MAX_WRITTEN: usize = 64 * 1024;

impl Schema {
    /// The schema of a property, readable apart from the rest: what it refers to stands in place, and its types at the top.
    /// Of what refers to itself, becomes too large, or stands among other properties, only the types are said.
    pub(in crate::declaration) fn standalone(&mut self, node: &Node, shape: &Shape) -> String {
        let refers = self.refers(node);
        if self.reading == Reading::Literal {
            return if refers {
                "{}".to_owned()
            } else {
                node.raw.clone()
            };
        }
        let members = self.inside(node);
        let is_typed = members.get("type").is_some() || shape.types.is_none();
        if !refers && (is_typed || json::kind_of(&node.raw) != JsonKind::Object) {
            return node.raw.clone();
        }
        let mut writing = Writing::default();
        let written = self.write_node(node, &mut writing);
        if writing.size > MAX_WRITTEN {
            return shape.to_json();
        }
        if members_of(&written).iter().any(|(name, _)| name == "type") {
            return written;
        }
        merged(&shape.to_json(), &written).unwrap_or(written)
    }

    /// Whether the schema itself is a reference, whatever stands inside it.
    pub(in crate::declaration) fn refers_itself(&mut self, node: &Node) -> bool {
        self.inside(node).get("$ref").is_some()
    }

    fn refers(&mut self, node: &Node) -> bool {
        self.inside(node).nodes.iter().any(|(name, value)| {
            match Keyword::from_name(name) {
                Keyword::Reference => true,
                Keyword::Data => false,
                // Names of properties are no keywords.
                Keyword::Named => self
                    .inside(value)
                    .nodes
                    .iter()
                    .any(|(_, subschema)| self.refers(subschema)),
                _ => self.refers(value),
            }
        })
    }

    fn write_node(&mut self, node: &Node, writing: &mut Writing) -> String {
        writing.size += node.path.len().min(16);
        match json::kind_of(&node.raw) {
            JsonKind::Array => {
                let items = self.inside(node);
                let items = items.nodes.iter();
                let items: Vec<String> = items
                    .map(|(_, item)| self.write_node(item, writing))
                    .collect();
                format!("[{}]", items.join(","))
            }
            JsonKind::Object => self.written_object(node, writing),
            _ => {
                writing.size += node.raw.len();
                node.raw.clone()
            }
        }
    }

    fn written_object(&mut self, node: &Node, writing: &mut Writing) -> String {
        let mut members = Vec::new();
        let mut referred = None;
        for (name, value) in &self.inside(node).nodes {
            let text = match Keyword::from_name(name) {
                Keyword::Reference => {
                    if name == "$ref" {
                        referred = Some(self.written_target(value, writing));
                    }
                    continue;
                }
                // Everything they serve stands in place.
                Keyword::Anchor => continue,
                Keyword::Named if name == "$defs" || name == "definitions" => continue,
                Keyword::Named => {
                    let named: Vec<String> = self
                        .inside(value)
                        .nodes
                        .iter()
                        .map(|(name, subschema)| member(name, &self.write_node(subschema, writing)))
                        .collect();
                    format!("{{{}}}", named.join(","))
                }
                Keyword::Data => {
                    writing.size += value.raw.len();
                    value.raw.clone()
                }
                Keyword::Pattern | Keyword::Other => self.write_node(value, writing),
            };
            writing.size += name.len();
            members.push(member(name, &text));
        }
        let own = format!("{{{}}}", members.join(","));
        match referred {
            None => own,
            Some(target) if members.is_empty() => target,
            Some(target) => {
                merged(&own, &target).unwrap_or_else(|| format!("{{\"allOf\":[{own},{target}]}}"))
            }
        }
    }

    fn written_target(&mut self, reference: &Node, writing: &mut Writing) -> String {
        let Some(target) = self.target(reference) else {
            return "{}".to_owned();
        };
        let shape = self.shape(&target, &mut Mistakes::default());
        let definitions = ["/$defs/", "/definitions/"]
            .map(|definitions| format!("{}{definitions}", self.root.path));
        let is_definition = definitions
            .iter()
            .any(|definitions| target.path.starts_with(definitions));
        if !is_definition
            || writing.size > MAX_WRITTEN
            || writing.targets.len() >= MAX_STEPS
            || writing.targets.contains(&target.path)
        {
            return shape.to_json();
        }
        writing.targets.push(target.path.clone());
        let written = self.write_node(&target, writing);
        writing.targets.pop();
        written
    }
}

/// What was written so far, and inside of which targets.
#[derive(Default)]
struct Writing {
    size: usize,
    targets: Vec<String>,
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", serde_json::Value::from(name))
}

fn members_of(object: &str) -> Vec<(String, String)> {
    let Ok(body) = json::RecordBody::parse(object) else {
        return Vec::new();
    };
    let members = body.members();
    members
        .map(|(name, raw)| (name.to_owned(), raw.to_owned()))
        .collect()
}

/// The members of both objects in one, unless they disagree about any.
fn merged(one: &str, other: &str) -> Option<String> {
    if json::kind_of(other) != JsonKind::Object {
        return None;
    }
    let mut members = members_of(one);
    for (name, value) in members_of(other) {
        match members.iter().find(|(known, _)| *known == name) {
            None => members.push((name, value)),
            Some((_, known)) if json::same_value(known, &value) => {}
            Some(_) => return None,
        }
    }
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| member(name, value))
        .collect();
    Some(format!("{{{}}}", members.join(",")))
}
