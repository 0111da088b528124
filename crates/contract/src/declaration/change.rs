//! What replacing a declaration by another means for the data already stored.
//!
//! Some changes are refused whatever the data: identity, primary keys, semantics, and other content under the same
//! version. Others depend on the records, which only the store can look at; those are listed with their paths.

use super::field::{FieldDeclaration, JsonType};
use super::{Declaration, DeclarationError, DeclarationErrors, StreamDeclaration};
use crate::document::step;
use crate::id::{FieldName, StreamName};
use crate::json;
use crate::scalar::FieldKind;

/// What has to happen before a new declaration can take effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclarationChange {
    /// Same version, same content: nothing to do.
    pub unchanged: bool,
    /// Fields whose values were free or wider before. Refuse the change if a stored record holds a value the new
    /// type does not accept. Newly declared fields are listed too: records may already carry them.
    pub retyped: Vec<Retyped>,
    /// Streams and fields that are gone. Refuse the change if there is data in them.
    pub removed: Vec<Removed>,
    /// Kept streams whose indexed fields or field kinds changed: rebuild their index.
    pub reindex: Vec<StreamName>,
    /// Kept streams with another `cursor_field`: their records are in a new order.
    pub reordered: Vec<StreamName>,
}

/// A field that accepts fewer values than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retyped {
    /// JSON Pointer inside the new declaration.
    pub path: String,
    pub stream: StreamName,
    pub field: FieldName,
}

/// A stream or a field that the new declaration no longer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// JSON Pointer inside the new declaration to where it would have to stand.
    pub path: String,
    pub stream: StreamName,
    /// The field; `None` when the whole stream is gone.
    pub field: Option<FieldName>,
}

/// Compares two declarations of one connector.
pub fn plan_change(
    old: &Declaration,
    new: &Declaration,
) -> Result<DeclarationChange, DeclarationErrors> {
    if old.declaration_version == new.declaration_version {
        if !json::same_value(old.as_str(), new.as_str()) {
            let rule = format!(
                "version {:?} is already registered with other content; raise declaration_version",
                new.declaration_version
            );
            return Err(DeclarationErrors::one("/declaration_version", rule));
        }
        // The same file may mean more than when it was registered.
        if old.reading() == new.reading() {
            return Ok(DeclarationChange {
                unchanged: true,
                ..DeclarationChange::default()
            });
        }
    }
    let mut refusals = Vec::new();
    if old.source.id != new.source.id {
        let rule = format!(
            "the connector key {} already belongs to {:?}; a source keeps its id, found {:?}",
            old.connector_key(),
            old.source.id,
            new.source.id
        );
        refusals.push(DeclarationError {
            path: "/source/id".to_owned(),
            rule,
        });
    }
    let mut change = DeclarationChange::default();
    for stream in &old.streams {
        let kept = new
            .streams
            .iter()
            .enumerate()
            .find(|(_, candidate)| candidate.name == stream.name);
        let Some((at, kept)) = kept else {
            change.removed.push(Removed {
                path: "/streams".to_owned(),
                stream: stream.name.clone(),
                field: None,
            });
            continue;
        };
        let path = format!("/streams/{at}");
        refuse_identity_change(stream, kept, &path, &mut refusals);
        compare_fields(stream, kept, &path, &mut change);
        if stream.cursor_field != kept.cursor_field {
            change.reordered.push(kept.name.clone());
        }
        if is_indexed_differently(stream, kept) {
            change.reindex.push(kept.name.clone());
        }
    }
    if refusals.is_empty() {
        Ok(change)
    } else {
        Err(DeclarationErrors(refusals))
    }
}

fn refuse_identity_change(
    old: &StreamDeclaration,
    new: &StreamDeclaration,
    path: &str,
    refusals: &mut Vec<DeclarationError>,
) {
    if old.primary_key != new.primary_key {
        let names = |fields: &[FieldName]| {
            fields
                .iter()
                .map(FieldName::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (before, after) = (names(&old.primary_key), names(&new.primary_key));
        let rule = format!(
            "the primary key of {} cannot change from [{before}] to [{after}]; declare a new stream",
            old.name
        );
        refusals.push(DeclarationError {
            path: step(path, "primary_key"),
            rule,
        });
    }
    if old.semantics != new.semantics {
        let rule = format!(
            "the semantics of {} cannot change; declare a new stream",
            old.name
        );
        refusals.push(DeclarationError {
            path: step(path, "semantics"),
            rule,
        });
    }
}

fn compare_fields(
    old: &StreamDeclaration,
    new: &StreamDeclaration,
    path: &str,
    change: &mut DeclarationChange,
) {
    let field_path = |name: &FieldName| step(&format!("{path}/schema/properties"), name.as_str());
    for field in &old.fields {
        if new.field(field.name.as_str()).is_none() {
            let (stream, name) = (new.name.clone(), field.name.clone());
            change.removed.push(Removed {
                path: field_path(&name),
                stream,
                field: Some(name),
            });
        }
    }
    for field in &new.fields {
        let before = old
            .field(field.name.as_str())
            .map_or(&[][..], |known| known.types.as_slice());
        if is_narrower(before, &field.types) {
            let (stream, name) = (new.name.clone(), field.name.clone());
            change.retyped.push(Retyped {
                path: field_path(&name),
                stream,
                field: name,
            });
        }
    }
}

/// Whether some value the old types accept is refused by the new ones. No types at all accept everything.
fn is_narrower(old: &[JsonType], new: &[JsonType]) -> bool {
    if new.is_empty() {
        return false;
    }
    let old = if old.is_empty() { &JsonType::ALL } else { old };
    old.iter()
        .any(|before| !new.iter().any(|after| after.covers(*before)))
}

fn is_indexed_differently(old: &StreamDeclaration, new: &StreamDeclaration) -> bool {
    old.query.lexical_fields != new.query.lexical_fields
        || old.query.range_filters != new.query.range_filters
        || old.query.aggregations != new.query.aggregations
        || old.consent_time_field != new.consent_time_field
        || compared_kinds(&old.fields) != compared_kinds(&new.fields)
}

/// What fields, or their items, are compared as, in an order that does not depend on the file.
fn compared_kinds(fields: &[FieldDeclaration]) -> Vec<(&FieldName, FieldKind)> {
    let kinds = fields.iter().filter_map(|field| {
        let kind = field.items.unwrap_or(field.kind);
        kind.is_scalar().then_some((&field.name, kind))
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(|(name, _)| name.as_str());
    kinds
}
