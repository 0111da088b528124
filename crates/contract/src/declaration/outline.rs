//! The first pass over a declaration: every stream's name and fields.
//!
//! With the outlines at hand, any reference to a stream or a field can be checked where it stands.

use super::field::{self, FieldDeclaration};
use super::references::{Reading, Schema};
use super::validate::{FieldUse, check_schema};
use crate::document::{Mistakes, Node, Object, did_you_mean, step};
use crate::id::{FieldName, StreamName};
use crate::json;

/// What the first pass learns about a stream.
pub(super) struct Outline {
    pub(super) name: Option<StreamName>,
    pub(super) fields: Vec<FieldDeclaration>,
    /// False when the schema could not be read; then nothing can be said about its fields.
    fields_known: bool,
    /// The names in `primary_key`, as far as they can be read; the second pass reports the others.
    key: Vec<String>,
    pub(super) schema: String,
}

/// The streams of the file, by position.
pub(super) struct Outlines(pub(super) Vec<Outline>);

impl Outlines {
    pub(super) fn find(&self, name: &str) -> Option<&Outline> {
        self.0.iter().find(|outline| {
            outline
                .name
                .as_ref()
                .is_some_and(|known| known.as_str() == name)
        })
    }

    /// Finds a stream that another part of the file names.
    pub(super) fn resolve(&self, node: &Node, mistakes: &mut Mistakes) -> Option<&Outline> {
        let name = node.text(mistakes)?;
        let found = self.find(&name);
        // A stream whose own name is broken may be the one meant, and is reported already.
        if found.is_none() && self.0.iter().all(|outline| outline.name.is_some()) {
            let names = self
                .0
                .iter()
                .filter_map(|outline| outline.name.as_ref().map(StreamName::as_str));
            let hint = did_you_mean(&name, names);
            mistakes.add(
                &node.path,
                format!("must name a stream of this declaration; there is no {name:?}{hint}"),
            );
        }
        found
    }
}

impl Outline {
    /// Whether the stream has that field; also where its fields are not known.
    pub(super) fn may_have(&self, name: &str) -> bool {
        !self.fields_known || self.fields.iter().any(|field| field.name.as_str() == name)
    }

    /// Whether that field alone identifies a record.
    pub(super) fn is_key(&self, name: &str) -> bool {
        matches!(self.key.as_slice(), [only] if only == name)
    }

    /// How many fields identify a record, as far as they can be read.
    pub(super) fn key_fields(&self) -> usize {
        self.key.len()
    }

    /// Reads a reference to a field of this stream and checks that the field may serve that use.
    pub(super) fn field(
        &self,
        node: &Node,
        used: FieldUse,
        mistakes: &mut Mistakes,
    ) -> Option<FieldName> {
        let name = node.text(mistakes)?;
        self.field_named(&name, &node.path, used, mistakes)
    }

    pub(super) fn field_named(
        &self,
        name: &str,
        path: &str,
        used: FieldUse,
        mistakes: &mut Mistakes,
    ) -> Option<FieldName> {
        if !self.fields_known {
            return None;
        }
        let Some(field) = self.fields.iter().find(|field| field.name.as_str() == name) else {
            let hint = did_you_mean(name, self.fields.iter().map(|field| field.name.as_str()));
            let rule = match &self.name {
                Some(stream) => format!(
                    "must be a field in schema.properties of {stream}; there is no {name:?}{hint}"
                ),
                None => format!("must be a field in schema.properties; there is no {name:?}{hint}"),
            };
            mistakes.add(path, rule);
            return None;
        };
        if let Some(rule) = used.refusal(field) {
            mistakes.add(path, rule);
        }
        Some(field.name.clone())
    }

    /// Reads an array of at least one reference, all unique.
    pub(super) fn some_fields(
        &self,
        node: &Node,
        used: FieldUse,
        mistakes: &mut Mistakes,
    ) -> Vec<FieldName> {
        let items = node.filled_array(mistakes).unwrap_or_default();
        self.fields(&items, used, mistakes)
    }

    /// Reads unique references.
    pub(super) fn fields(
        &self,
        items: &[Node],
        used: FieldUse,
        mistakes: &mut Mistakes,
    ) -> Vec<FieldName> {
        let mut names = Vec::new();
        for item in items {
            match self.field(item, used, mistakes) {
                Some(name) if names.contains(&name) => {
                    let rule = format!("fields must be unique, {:?} is repeated", name.as_str());
                    mistakes.add(&item.path, rule);
                }
                Some(name) => names.push(name),
                None => {}
            }
        }
        names
    }
}

/// The first pass over all streams.
pub(super) fn read_outlines(nodes: &[Node], reading: Reading, mistakes: &mut Mistakes) -> Outlines {
    let mut outlines = Outlines(Vec::new());
    for node in nodes {
        let mut outline = read_outline(node, reading, mistakes);
        if let Some(name) = &outline.name
            && outlines.find(name.as_str()).is_some()
        {
            mistakes.add(
                step(&node.path, "name"),
                format!("stream names must be unique, {name} is repeated"),
            );
            outline.name = None;
        }
        outlines.0.push(outline);
    }
    outlines
}

fn read_outline(node: &Node, reading: Reading, mistakes: &mut Mistakes) -> Outline {
    let mut outline = Outline {
        name: None,
        fields: Vec::new(),
        fields_known: false,
        key: Vec::new(),
        schema: String::new(),
    };
    let Some(mut stream) = node.object(mistakes) else {
        return outline;
    };
    if let Some(node) = stream.required("name", mistakes)
        && let Some(name) = node.text(mistakes)
    {
        match StreamName::parse(name) {
            Ok(name) => outline.name = Some(name),
            Err(error) => mistakes.add(&node.path, error.to_string()),
        }
    }
    if let Some(key) = stream.optional("primary_key") {
        outline.key = match json::decode_string(&key.raw) {
            Some(only) => vec![only.into_owned()],
            None => serde_json::from_str(&key.raw).unwrap_or_default(),
        };
    }
    if let Some(schema) = stream.required("schema", mistakes)
        && let Some(mut object) = schema.object(mistakes)
    {
        check_schema(&schema, mistakes);
        let mut whole = Schema::new(schema.clone(), reading, mistakes);
        outline.schema = schema.raw;
        if let Some(properties) = object.required("properties", mistakes)
            && let Some(properties) = properties.object(mistakes)
        {
            outline.fields = read_fields(&properties, &mut whole, mistakes);
            outline.fields_known = true;
        }
    }
    outline
}

fn read_fields(
    properties: &Object,
    schema: &mut Schema,
    mistakes: &mut Mistakes,
) -> Vec<FieldDeclaration> {
    let mut fields = Vec::new();
    for (name, node) in properties.members() {
        match FieldName::parse(name) {
            Ok(name) => fields.push(field::read(name, &node, schema, mistakes)),
            Err(error) => mistakes.add(&node.path, error.to_string()),
        }
    }
    fields
}
