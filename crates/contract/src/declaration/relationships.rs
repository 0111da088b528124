//! Reads a stream's `relationships`: to which streams it is related, and which side holds the key of the other.

use super::outline::{Outline, Outlines};
use super::parse::objects;
use super::validate::FieldUse;
use super::{Cardinality, Pointing, Relationship};
use crate::document::{Mistakes, Node, Object, did_you_mean, step};
use crate::id::FieldName;
use crate::names::Named as _;
use crate::scalar::FieldKind;

/// The usable relationships, and the names of all of them: what refers to a broken one need not be reported as well.
pub(super) fn read(
    stream: &mut Object,
    own: &Outline,
    outlines: &Outlines,
    mistakes: &mut Mistakes,
) -> (Vec<Relationship>, Vec<String>) {
    let mut relationships: Vec<Relationship> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for mut object in objects(stream, "relationships", mistakes) {
        let name = object.required_text("name", mistakes);
        let related = object.required("stream", mistakes);
        let related = related.and_then(|node| outlines.resolve(&node, mistakes));
        let foreign_key = object.required("foreign_key", mistakes);
        let cardinality = object.required_choice("cardinality", Cardinality::NAMED, mistakes);
        let pair = related.map(|related| Pair { own, related });
        let key = pair.zip(foreign_key).zip(cardinality);
        let key = key.and_then(|((pair, node), cardinality)| {
            foreign_key_of(pair, name.as_deref(), &node, cardinality, mistakes)
        });
        let name_path = step(&object.path, "name");
        object.finish_with_extensions(mistakes);
        let Some(name) = name else { continue };
        if names.contains(&name) {
            let rule =
                format!("relationship names must be unique within a stream, {name} is repeated");
            mistakes.add(name_path, rule);
        }
        names.push(name.clone());
        let stream = related.and_then(|related| related.name.clone());
        if let (Some(stream), Some((foreign_key, pointing)), Some(cardinality)) =
            (stream, key, cardinality)
        {
            relationships.push(Relationship {
                name,
                stream,
                foreign_key,
                pointing,
                cardinality,
            });
        }
    }
    (relationships, names)
}

/// The stream of a relationship and the related one.
#[derive(Clone, Copy)]
struct Pair<'a> {
    own: &'a Outline,
    related: &'a Outline,
}

/// Finds the foreign key on either side.
///
/// Many related records can only point here. One may as well be pointed at. Where both streams have the field, it is the
/// record that points if the field is what identifies the related one and not the record, or is called after the
/// relationship, as in `message` and `message_id`.
fn foreign_key_of(
    pair: Pair<'_>,
    relationship: Option<&str>,
    node: &Node,
    cardinality: Cardinality,
    mistakes: &mut Mistakes,
) -> Option<(FieldName, Pointing)> {
    let Pair { own, related } = pair;
    let name = node.text(mistakes)?;
    let is_called_after_it = relationship.is_some_and(|it| name.strip_suffix("_id") == Some(it));
    let identifies_it = related.is_key(&name) && !own.is_key(&name);
    let pointing = match (own.may_have(&name), related.may_have(&name), cardinality) {
        (true, false, Cardinality::HasOne) => Pointing::There,
        (true, true, Cardinality::HasOne) if is_called_after_it || identifies_it => Pointing::There,
        (_, true, _) => Pointing::Here,
        (is_own, false, cardinality) => {
            mistakes.add(&node.path, nowhere(pair, &name, cardinality, is_own));
            return None;
        }
    };
    let (holder, target) = match pointing {
        Pointing::Here => (related, own),
        Pointing::There => (own, related),
    };
    let field = holder.field(node, FieldUse::ForeignKey, mistakes)?;
    let mut fields = holder.fields.iter();
    let is_text = fields.any(|known| known.name == field && known.kind == FieldKind::Text);
    if target.key_fields() > 1 && !is_text {
        mistakes.add(&node.path, too_narrow(holder, target, &name));
        return None;
    }
    Some((field, pointing))
}

fn called(outline: &Outline, otherwise: &str) -> String {
    let name = outline.name.as_ref();
    name.map_or_else(|| otherwise.to_owned(), ToString::to_string)
}

/// Why a field that is no text cannot point at a record with a compound key.
fn too_narrow(holder: &Outline, target: &Outline, name: &str) -> String {
    let (here, there) = (
        called(holder, "the stream that points"),
        called(target, "the stream it points at"),
    );
    format!(
        "a record of {there} is identified by {} fields, and only a text can hold such a key, as a JSON array of its parts; \
         {name:?} of {here} is none: make it a string, give {there} a primary_key of one field, or leave the relationship out",
        target.key_fields()
    )
}

/// Why a foreign key cannot be found.
fn nowhere(pair: Pair<'_>, name: &str, cardinality: Cardinality, is_own: bool) -> String {
    let Pair { own, related } = pair;
    let (here, there) = (
        called(own, "this stream"),
        called(related, "the other stream"),
    );
    let fields = |outline: &Outline| -> Vec<String> {
        let fields = outline.fields.iter();
        fields.map(|field| field.name.to_string()).collect()
    };
    match cardinality {
        Cardinality::HasMany if is_own => format!(
            "many records of {there} can only be told by a field of {there}, and it has no {name:?}; \
             {here} has: if a record of {here} points at one of {there}, the cardinality is has_one"
        ),
        Cardinality::HasMany => {
            let hint = did_you_mean(name, fields(related).iter().map(String::as_str));
            format!("must be a field in schema.properties of {there}; there is no {name:?}{hint}")
        }
        Cardinality::HasOne => {
            let all = [fields(own), fields(related)].concat();
            let hint = did_you_mean(name, all.iter().map(String::as_str));
            format!(
                "must be a field in schema.properties of {there}, or of {here}; neither has {name:?}{hint}"
            )
        }
    }
}
