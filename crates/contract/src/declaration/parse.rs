//! Reads a declaration file into types.
//!
//! Two passes: the first reads every stream's name and schema, so that the second can check each reference to a
//! field or a stream where it stands and report the exact place.

use std::collections::BTreeMap;

use super::document::open;
use super::outline::{Outline, Outlines, read_outlines};
use super::references::Reading;
use super::validate::{FieldUse, connector_key_of};
use super::{
    Declaration, DeclarationErrors, PROTOCOL_VERSION, PresetPart, PresetStream, Selection,
    SelectionPreset, Semantics, Source, SourceKind, StreamDeclaration, View, query, relationships,
};
use crate::document::{Mistakes, Node, Object, did_you_mean, step};
use crate::id::{ConnectorKey, FieldName, ViewId};
use crate::names::Named as _;

pub(super) fn parse(text: &str, reading: Reading) -> Result<Declaration, DeclarationErrors> {
    let mut mistakes = Mistakes::default();
    let mut file = open(text)?;
    let form = Form::detect(&file);
    let identity = match form {
        Form::Declaration => read_identity(&mut file, &mut mistakes),
        Form::Manifest => read_manifest(&mut file, &mut mistakes),
    };
    let stream_nodes = file
        .required("streams", &mut mistakes)
        .and_then(|node| node.filled_array(&mut mistakes))
        .unwrap_or_default();
    let outlines = read_outlines(&stream_nodes, reading, &mut mistakes);
    let mut streams = Vec::new();
    for (node, outline) in stream_nodes.iter().zip(&outlines.0) {
        streams.extend(read_stream(node, form, outline, &outlines, &mut mistakes));
    }
    let selection_presets = read_presets(&mut file, &outlines, &streams, &mut mistakes);
    let extensions = read_extensions(&mut file, &mut mistakes);
    if form == Form::Declaration {
        file.finish_with_extensions(&mut mistakes);
    }
    mistakes.unless_any(())?;
    // Whatever leaves the identity unread has been reported, so this arm is only ever a second line of defence.
    let Some(identity) = identity else {
        return Err(DeclarationErrors::one(
            "",
            "the declaration has no identity",
        ));
    };
    Ok(Declaration {
        publisher_id: identity
            .publisher_id
            .unwrap_or_else(|| identity.source.id.clone()),
        display_name: identity
            .display_name
            .unwrap_or_else(|| identity.connector_key.to_string()),
        source: identity.source,
        declaration_version: identity.declaration_version,
        streams,
        selection_presets,
        extensions,
        connector_key: identity.connector_key,
        reading,
        text: text.to_owned(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As described here: whatever it says beyond is a mistake.
    Declaration,
    /// As the reference implementation keeps its connectors: beside the streams it says how to run them, which is passed
    /// over.
    Manifest,
}

impl Form {
    fn detect(file: &Object) -> Form {
        if !file.has("source") && file.has("connector_id") && file.has("version") {
            Form::Manifest
        } else {
            Form::Declaration
        }
    }
}

struct Identity {
    source: Source,
    connector_key: ConnectorKey,
    declaration_version: String,
    publisher_id: Option<String>,
    display_name: Option<String>,
}

fn read_identity(file: &mut Object, mistakes: &mut Mistakes) -> Option<Identity> {
    file.required_choice("protocol_version", &[(PROTOCOL_VERSION, ())], mistakes);
    let source = file
        .required("source", mistakes)
        .and_then(|node| read_source(&node, mistakes));
    let version = file.required_text("declaration_version", mistakes);
    let publisher_id = read_only_member(file, "publisher", "id", mistakes);
    let display_name = read_only_member(file, "display", "name", mistakes);
    let (source, connector_key) = source?;
    Some(Identity {
        source,
        connector_key,
        declaration_version: version?,
        publisher_id,
        display_name,
    })
}

fn read_manifest(file: &mut Object, mistakes: &mut Mistakes) -> Option<Identity> {
    file.required_choice("protocol_version", &[(PROTOCOL_VERSION, ())], mistakes);
    let node = match file.optional("manifest_uri") {
        Some(node) => Some(node),
        None => file.required("connector_id", mistakes),
    };
    let source = node.and_then(|node| read_source_id(&node, mistakes));
    let version = file.required_text("version", mistakes);
    let display_name = file.text("display_name", mistakes);
    let (id, connector_key) = source?;
    if let Some(node) = file.optional("connector_key")
        && node.text(mistakes)? != connector_key.as_str()
    {
        let rule = format!(
            "must be the last path segment of the manifest's URI, which is {:?}, {}",
            connector_key.as_str(),
            node.found()
        );
        mistakes.add(&node.path, rule);
    }
    let kind = SourceKind::Connector;
    Some(Identity {
        source: Source { kind, id },
        connector_key,
        declaration_version: version?,
        publisher_id: None,
        display_name,
    })
}

fn read_source_id(node: &Node, mistakes: &mut Mistakes) -> Option<(String, ConnectorKey)> {
    let id = node.text(mistakes)?;
    match connector_key_of(&id) {
        Ok(key) => Some((id, key)),
        Err(rule) => {
            mistakes.add(&node.path, rule);
            None
        }
    }
}

fn read_source(node: &Node, mistakes: &mut Mistakes) -> Option<(Source, ConnectorKey)> {
    let mut object = node.object(mistakes)?;
    let kind = object.required_choice("kind", SourceKind::NAMED, mistakes);
    let id = object
        .required("id", mistakes)
        .and_then(|node| read_source_id(&node, mistakes));
    object.finish_with_extensions(mistakes);
    let (id, key) = id?;
    Some((Source { kind: kind?, id }, key))
}

/// Reads an optional object with one string member, such as `publisher {id}`.
fn read_only_member(
    file: &mut Object,
    name: &'static str,
    member: &'static str,
    mistakes: &mut Mistakes,
) -> Option<String> {
    let mut object = file.object(name, mistakes)?;
    let text = object.required_text(member, mistakes);
    object.finish_with_extensions(mistakes);
    text
}

fn read_extensions(file: &mut Object, mistakes: &mut Mistakes) -> BTreeMap<String, String> {
    let object = file.object("extensions", mistakes);
    let members = object.map(|object| object.members()).unwrap_or_default();
    members
        .into_iter()
        .map(|(uri, node)| (uri, node.raw))
        .collect()
}

/// Reads everything but name and schema. `None` when the stream cannot be used, which has then been reported.
fn read_stream(
    node: &Node,
    form: Form,
    outline: &Outline,
    outlines: &Outlines,
    mistakes: &mut Mistakes,
) -> Option<StreamDeclaration> {
    // The first pass has already reported a stream that is no object.
    let mut stream = node.object(&mut Mistakes::default())?;
    stream.optional("name");
    stream.optional("schema");
    let semantics = [
        ("append_only", Semantics::AppendOnly),
        ("mutable_state", Semantics::MutableState),
        // How manifests in the wild spell it.
        ("append", Semantics::AppendOnly),
        ("immutable_log", Semantics::AppendOnly),
    ];
    let semantics = stream.required_choice("semantics", &semantics, mistakes);
    let primary_key = read_primary_key(&mut stream, outline, mistakes);
    let description = stream.text("description", mistakes);
    let label = read_label(&mut stream, mistakes);
    let mut single = |name, used, mistakes: &mut Mistakes| {
        let node = stream.optional(name)?;
        outline.field(&node, used, mistakes)
    };
    let cursor_field = single("cursor_field", FieldUse::Cursor, mistakes);
    let consent_time_field = single("consent_time_field", FieldUse::ConsentTime, mistakes);
    let selection = read_selection(&mut stream, mistakes);
    let views = read_views(&mut stream, outline, mistakes);
    let (relationships, relationship_names) =
        relationships::read(&mut stream, outline, outlines, mistakes);
    let query = query::read(&mut stream, outline, &relationship_names, mistakes);
    if form == Form::Declaration {
        stream.finish_with_extensions(mistakes);
    }
    Some(StreamDeclaration {
        name: outline.name.clone()?,
        semantics: semantics?,
        description,
        label,
        primary_key,
        cursor_field,
        consent_time_field,
        selection,
        views,
        relationships,
        query,
        fields: outline.fields.clone(),
        schema: outline.schema.clone(),
    })
}

/// `"id"` is read as `["id"]`.
fn read_primary_key(
    stream: &mut Object,
    outline: &Outline,
    mistakes: &mut Mistakes,
) -> Vec<FieldName> {
    let Some(node) = stream.required("primary_key", mistakes) else {
        return Vec::new();
    };
    if node.raw.starts_with('"') {
        return outline
            .field(&node, FieldUse::PrimaryKey, mistakes)
            .into_iter()
            .collect();
    }
    outline.some_fields(&node, FieldUse::PrimaryKey, mistakes)
}

fn read_label(stream: &mut Object, mistakes: &mut Mistakes) -> Option<String> {
    let mut display = stream.object("display", mistakes)?;
    let label = display.text("label", mistakes);
    display.text("detail", mistakes);
    display.finish_with_extensions(mistakes);
    label
}

fn read_selection(stream: &mut Object, mistakes: &mut Mistakes) -> Selection {
    let mut selection = Selection::default();
    let Some(mut object) = stream.object("selection", mistakes) else {
        return selection;
    };
    if let Some(fields) = object.boolean("fields", mistakes) {
        selection.fields = fields;
    }
    if let Some(resources) = object.boolean("resources", mistakes) {
        selection.resources = resources;
    }
    object.finish_with_extensions(mistakes);
    selection
}

/// The elements of an optional array of objects.
pub(super) fn objects(
    parent: &mut Object,
    name: &'static str,
    mistakes: &mut Mistakes,
) -> Vec<Object> {
    let items = parent.array(name, mistakes).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.object(mistakes))
        .collect()
}

fn read_views(stream: &mut Object, outline: &Outline, mistakes: &mut Mistakes) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    for mut object in objects(stream, "views", mistakes) {
        let id = object.required("id", mistakes).and_then(|node| {
            let parsed = ViewId::parse(node.text(mistakes)?);
            parsed
                .map_err(|error| mistakes.add(&node.path, error.to_string()))
                .ok()
        });
        let label = object.text("label", mistakes);
        let fields = object.required("fields", mistakes);
        let fields = fields
            .map(|node| outline.some_fields(&node, FieldUse::Shown, mistakes))
            .unwrap_or_default();
        let id_path = step(&object.path, "id");
        object.finish_with_extensions(mistakes);
        let Some(id) = id else { continue };
        if views.iter().any(|view| view.id == id) {
            mistakes.add(
                id_path,
                format!("view ids must be unique within a stream, {id} is repeated"),
            );
        }
        let label = label.unwrap_or_else(|| id.to_string());
        views.push(View { id, label, fields });
    }
    views
}

fn read_presets(
    file: &mut Object,
    outlines: &Outlines,
    streams: &[StreamDeclaration],
    mistakes: &mut Mistakes,
) -> Vec<SelectionPreset> {
    let mut presets: Vec<SelectionPreset> = Vec::new();
    for mut object in objects(file, "selection_presets", mistakes) {
        let id = object.required_text("id", mistakes);
        let label = object.text("label", mistakes);
        let parts = object
            .required("streams", mistakes)
            .and_then(|node| node.filled_array(mistakes));
        let mut selected: Vec<PresetStream> = Vec::new();
        for node in parts.unwrap_or_default() {
            let Some(part) = read_preset_stream(&node, outlines, streams, mistakes) else {
                continue;
            };
            if selected.iter().any(|known| known.name == part.name) {
                let rule = format!("a preset names each stream once, {} is repeated", part.name);
                mistakes.add(step(&node.path, "name"), rule);
            }
            selected.push(part);
        }
        let id_path = step(&object.path, "id");
        object.finish_with_extensions(mistakes);
        let Some(id) = id else { continue };
        if presets.iter().any(|preset| preset.id == id) {
            mistakes.add(
                id_path,
                format!("preset ids must be unique, {id} is repeated"),
            );
        }
        let label = label.unwrap_or_else(|| id.clone());
        presets.push(SelectionPreset {
            id,
            label,
            streams: selected,
        });
    }
    presets
}

fn read_preset_stream(
    node: &Node,
    outlines: &Outlines,
    streams: &[StreamDeclaration],
    mistakes: &mut Mistakes,
) -> Option<PresetStream> {
    let mut object = node.object(mistakes)?;
    let outline = object
        .required("name", mistakes)
        .and_then(|node| outlines.resolve(&node, mistakes));
    let fields = object.optional("fields");
    let view = object.optional("view");
    object.finish_with_extensions(mistakes);
    if fields.is_some() && view.is_some() {
        mistakes.add(
            &node.path,
            "fields and view are mutually exclusive; keep one",
        );
    }
    let outline = outline?;
    let name = outline.name.clone()?;
    let part = match (fields, view) {
        (Some(fields), _) => {
            PresetPart::Fields(outline.some_fields(&fields, FieldUse::Shown, mistakes))
        }
        (None, None) => PresetPart::Whole,
        (None, Some(view)) => {
            let id = view.text(mistakes)?;
            // A stream that did not read through has been reported; its views are unknown.
            let stream = streams.iter().find(|stream| stream.name == name)?;
            let Some(found) = stream.view(&id) else {
                let hint = did_you_mean(&id, stream.views.iter().map(|view| view.id.as_str()));
                mistakes.add(
                    &view.path,
                    format!("must be a view of {name}; there is no {id:?}{hint}"),
                );
                return None;
            };
            PresetPart::View(found.id.clone())
        }
    };
    Some(PresetStream { name, part })
}
