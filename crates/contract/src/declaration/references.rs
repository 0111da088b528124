//! What a schema says through references and combinations.
//!
//! A property may say its type itself, behind a local `$ref`, or through `allOf`, `anyOf` and `oneOf`. [`Schema`] answers
//! once what types and format come of that, and writes the property so that it can be read apart from the rest: whatever
//! checks, indexes or shows a field uses these two answers.

mod shape;
mod standalone;

use std::collections::HashMap;
use std::rc::Rc;

pub(super) use shape::Shape;

use super::field::read_types;
use super::pattern;
use crate::document::{Mistakes, Node, did_you_mean};
use crate::json::{self, JsonKind};

/// How many references and combinations may stand one inside the other.
const MAX_STEPS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As declarations were read before references were followed: a field has only the types it names itself.
    Literal,
    /// References and combinations are followed.
    Following,
}

pub(super) struct Schema {
    root: Node,
    pub(super) reading: Reading,
    /// What stands inside a value, by its path.
    inside: HashMap<String, Rc<Inside>>,
    anchors: HashMap<String, Node>,
    shapes: HashMap<String, Shape>,
    /// The paths being looked at, for what leads back to itself.
    steps: Vec<String>,
}

/// The members of an object or the elements of an array.
#[derive(Default)]
struct Inside {
    nodes: Vec<(String, Node)>,
    indexes: HashMap<String, usize>,
}

impl Inside {
    fn get(&self, name: &str) -> Option<&Node> {
        let index = self.indexes.get(name)?;
        self.nodes.get(*index).map(|(_, node)| node)
    }
}

impl Schema {
    /// The schema as a whole, checked: it names nothing that is not there and nothing that cannot be followed.
    pub(super) fn new(root: Node, reading: Reading, mistakes: &mut Mistakes) -> Schema {
        let mut schema = Schema {
            root,
            reading,
            inside: HashMap::new(),
            anchors: HashMap::new(),
            shapes: HashMap::new(),
            steps: Vec::new(),
        };
        let root = schema.root.clone();
        schema.find_anchors(&root);
        schema.check(&root, mistakes);
        schema
    }

    pub(super) fn shape(&mut self, node: &Node, mistakes: &mut Mistakes) -> Shape {
        if let Some(known) = self.shapes.get(&node.path) {
            return known.clone();
        }
        self.steps.push(node.path.clone());
        let shape = self.find_shape(node, mistakes);
        self.steps.pop();
        self.shapes.insert(node.path.clone(), shape.clone());
        shape
    }

    fn find_shape(&mut self, node: &Node, mistakes: &mut Mistakes) -> Shape {
        if node.raw.trim() == "false" {
            return Shape::nothing();
        }
        let members = self.inside(node);
        let mut shape = Shape {
            types: members.get("type").map(|types| read_types(types, mistakes)),
            format: members
                .get("format")
                .and_then(|format| json::decode_string(&format.raw).map(String::from)),
        };
        // What could not be read is reported, and says nothing.
        shape.types = shape.types.filter(|types| !types.is_empty());
        if self.reading == Reading::Literal {
            return shape;
        }
        if let Some(reference) = members.get("$ref")
            && let Some(target) = self.target(reference)
        {
            shape = shape.and(self.step(&target, reference, mistakes));
        }
        for (name, is_union) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
            let Some(list) = members.get(name).filter(|list| is_array(list)) else {
                continue;
            };
            let branches: Vec<Shape> = self
                .inside(list)
                .nodes
                .iter()
                .map(|(_, branch)| self.step(branch, list, mistakes))
                .collect();
            if is_union {
                shape = shape.and(Shape::any_of(branches));
            } else {
                shape = branches.into_iter().fold(shape, Shape::and);
            }
        }
        shape
    }

    /// Goes from one schema on to another that applies to the same value.
    fn step(&mut self, to: &Node, from: &Node, mistakes: &mut Mistakes) -> Shape {
        if self.steps.contains(&to.path) {
            let rule = format!(
                "leads back to itself and so says nothing; name a type instead, {}",
                from.found()
            );
            mistakes.add(&from.path, rule);
            return Shape::default();
        }
        if self.steps.len() >= MAX_STEPS {
            let rule = format!("more than {MAX_STEPS} references lead on from here; shorten them");
            mistakes.add(&from.path, rule);
            return Shape::default();
        }
        self.shape(to, mistakes)
    }

    /// Where a local reference points, if there is anything.
    fn target(&mut self, reference: &Node) -> Option<Node> {
        let text = json::decode_string(&reference.raw)?;
        let fragment = percent_decoded(text.strip_prefix('#')?)?;
        if fragment.is_empty() {
            return Some(self.root.clone());
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.anchors.get(&fragment).cloned();
        };
        let mut node = self.root.clone();
        for name in pointer.split('/') {
            let name = name.replace("~1", "/").replace("~0", "~");
            node = self.inside(&node).get(&name)?.clone();
        }
        let is_schema = matches!(
            json::kind_of(&node.raw),
            JsonKind::Object | JsonKind::Boolean
        );
        is_schema.then_some(node)
    }

    /// What stands inside an object or an array; nothing inside anything else.
    fn inside(&mut self, node: &Node) -> Rc<Inside> {
        if let Some(known) = self.inside.get(&node.path) {
            return Rc::clone(known);
        }
        // What is no array and no object is reported elsewhere, if it matters.
        let ignored = &mut Mistakes::default();
        let nodes = match json::kind_of(&node.raw) {
            JsonKind::Object => node.object(ignored).map(|object| object.members()),
            JsonKind::Array => node.array(ignored).map(|items| {
                let numbered = items.into_iter().enumerate();
                numbered.map(|(at, item)| (at.to_string(), item)).collect()
            }),
            _ => None,
        };
        let nodes: Vec<(String, Node)> = nodes.unwrap_or_default();
        let indexes = nodes
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (name.clone(), at));
        let inside = Rc::new(Inside {
            indexes: indexes.collect(),
            nodes,
        });
        self.inside.insert(node.path.clone(), Rc::clone(&inside));
        inside
    }

    fn find_anchors(&mut self, schema: &Node) {
        for (name, value) in &self.inside(schema).nodes {
            match Keyword::from_name(name) {
                Keyword::Data => {}
                Keyword::Anchor => {
                    if let Some(anchor) = json::decode_string(&value.raw) {
                        self.anchors.insert(anchor.into_owned(), schema.clone());
                    }
                }
                Keyword::Named => {
                    for (_, subschema) in &self.inside(value).nodes {
                        self.find_anchors(subschema);
                    }
                }
                _ => self.find_anchors(value),
            }
        }
    }

    /// Visits every subschema.
    fn check(&mut self, schema: &Node, mistakes: &mut Mistakes) {
        for (name, value) in &self.inside(schema).nodes {
            match Keyword::from_name(name) {
                Keyword::Data | Keyword::Anchor => {}
                Keyword::Reference => self.check_reference(name, value, schema, mistakes),
                Keyword::Named => {
                    for (_, subschema) in &self.inside(value).nodes {
                        self.check(subschema, mistakes);
                    }
                }
                Keyword::Pattern if self.reading == Reading::Following => {
                    if let Some(fault) =
                        json::decode_string(&value.raw).and_then(|text| pattern::fault(&text))
                    {
                        let rule =
                            format!("must be a regular expression: {fault}, {}", value.found());
                        mistakes.add(&value.path, rule);
                    }
                }
                Keyword::Pattern | Keyword::Other => self.check(value, mistakes),
            }
        }
    }

    fn check_reference(
        &mut self,
        name: &str,
        reference: &Node,
        schema: &Node,
        mistakes: &mut Mistakes,
    ) {
        let text = json::decode_string(&reference.raw).unwrap_or_default();
        if !text.starts_with('#') {
            let rule = format!(
                "a reference must stay inside this schema (begin with \"#\"), {}",
                reference.found()
            );
            mistakes.add(&reference.path, rule);
        } else if name != "$ref" || self.reading == Reading::Literal {
            // Where a dynamic reference leads depends on the way to it, so nothing is taken from it.
        } else if self.target(reference).is_none() {
            let hint = self.near(&text);
            let rule = format!("must point at a schema in here; there is no {text:?}{hint}");
            mistakes.add(&reference.path, rule);
        } else {
            self.shape(schema, mistakes);
        }
    }

    /// The definition that was probably meant.
    fn near(&mut self, reference: &str) -> String {
        let root = self.root.clone();
        let Some(definitions) = self.inside(&root).get("$defs").cloned() else {
            return String::new();
        };
        let names: Vec<String> = self
            .inside(&definitions)
            .nodes
            .iter()
            .map(|(name, _)| format!("#/$defs/{name}"))
            .collect();
        did_you_mean(reference, names.iter().map(String::as_str))
    }
}

enum Keyword {
    Reference,
    Anchor,
    /// Values, not schemas.
    Data,
    Named,
    Pattern,
    Other,
}

impl Keyword {
    fn from_name(name: &str) -> Keyword {
        match name {
            "$ref" | "$dynamicRef" | "$recursiveRef" => Keyword::Reference,
            "$anchor" | "$dynamicAnchor" => Keyword::Anchor,
            "enum" | "const" | "default" | "examples" => Keyword::Data,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                Keyword::Named
            }
            "pattern" => Keyword::Pattern,
            _ => Keyword::Other,
        }
    }
}

fn is_array(node: &Node) -> bool {
    json::kind_of(&node.raw) == JsonKind::Array
}

/// A fragment as it is meant; nothing if its escapes are broken.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
