//! Holding a record against the declaration of its stream: the types of its fields and its identity.
//!
//! Types are the JSON types of the schema; formats are not types, so any text may stand in a date field. `null` is a
//! value only where the schema says so. A whole number beyond 64 bits in an integer field, and a number no double can
//! hold in a number field, are of the wrong type too: they could be neither compared nor summed. Fields the schema does
//! not name are kept as they are.

use std::collections::HashMap;

use contract::declaration::{FieldDeclaration, StreamDeclaration};
use contract::json::{self, JsonKind, RecordBody};
use contract::key::{KeyError, RecordKey};
use contract::scalar::{FieldKind, Scalar};

use crate::rejection::{Rejection, RejectionCode, quoted};

type Checked<T> = Result<T, Rejection>;

/// The rules of one stream, ready to be asked for every record.
#[derive(Debug, Clone)]
pub struct StreamRules<'a> {
    /// What the source says about the stream.
    pub declaration: &'a StreamDeclaration,
    fields: HashMap<&'a str, &'a FieldDeclaration>,
}

impl<'a> StreamRules<'a> {
    /// The rules that follow from a declaration.
    pub fn new(declaration: &'a StreamDeclaration) -> Self {
        Self {
            declaration,
            fields: declaration
                .fields
                .iter()
                .map(|field| (field.name.as_str(), field))
                .collect(),
        }
    }

    /// The declared field of that name.
    pub fn field(&self, name: &str) -> Option<&'a FieldDeclaration> {
        self.fields.get(name).copied()
    }

    /// Checks the type of every declared field.
    pub fn check_types(&self, body: &RecordBody) -> Checked<()> {
        body.members()
            .try_for_each(|(name, raw)| match self.field(name) {
                Some(field) => check_type(field, raw),
                None => Ok(()),
            })
    }

    /// The key of a record, from its primary key fields.
    pub fn key_of(&self, body: &RecordBody) -> Checked<RecordKey> {
        let mut parts = Vec::with_capacity(self.declaration.primary_key.len());
        for field in &self.declaration.primary_key {
            let name = field.as_str();
            match body.get(name) {
                Some(raw) if json::kind_of(raw) != JsonKind::Null => {
                    parts.push(key_part(name, raw)?);
                }
                _ => {
                    let message = format!("the primary key field {} is missing", quoted(name));
                    return Err(Rejection::new(RejectionCode::MissingKey, message).in_field(name));
                }
            }
        }
        key_from_parts(parts).map_err(|error| self.bad_key(&error))
    }

    /// The key an envelope gives: a text, or an array of texts for several primary key fields.
    pub fn key_given(&self, raw: Option<&str>) -> Checked<RecordKey> {
        let parts = self.declaration.primary_key.len();
        let missing = || Rejection::new(RejectionCode::MissingKey, "the line has no 'key'");
        let raw = raw.ok_or_else(missing)?;
        let key = match json::kind_of(raw) {
            JsonKind::Null => return Err(missing()),
            JsonKind::String => {
                let text = json::decode_string(raw).unwrap_or_default();
                RecordKey::from_wire(&text, parts)
            }
            JsonKind::Array => match serde_json::from_str::<Vec<String>>(raw) {
                Ok(given) if given.len() == parts => key_from_parts(given),
                _ => Err(KeyError::WrongParts { expected: parts }),
            },
            JsonKind::Boolean | JsonKind::Number | JsonKind::Object => {
                return Err(Rejection::new(
                    RejectionCode::InvalidRecordIdentity,
                    "'key' must be a text, or an array of texts",
                ));
            }
        };
        key.map_err(|error| self.bad_key(&error))
    }

    /// Checks that the primary key fields a record holds say what its key says.
    pub fn check_identity(&self, key: &RecordKey, body: &RecordBody) -> Checked<()> {
        let fields = self.declaration.primary_key.iter();
        for (field, part) in fields.zip(key.parts()) {
            let name = field.as_str();
            let Some(raw) = body.get(name) else { continue };
            let held = key_part(name, raw)?;
            if held != part {
                let message = format!(
                    "'key' says {} and the primary key field {} says {}",
                    quoted(&part),
                    quoted(name),
                    quoted(&held)
                );
                return Err(
                    Rejection::new(RejectionCode::InvalidRecordIdentity, message).in_field(name),
                );
            }
        }
        Ok(())
    }

    fn bad_key(&self, error: &KeyError) -> Rejection {
        let rejection = Rejection::new(RejectionCode::InvalidRecordIdentity, error.to_string());
        match self.declaration.primary_key.as_slice() {
            [only] => rejection.in_field(only.as_str()),
            _ => rejection,
        }
    }
}

fn key_from_parts(mut parts: Vec<String>) -> Result<RecordKey, KeyError> {
    if parts.len() > 1 {
        return RecordKey::compound(&parts);
    }
    RecordKey::single(parts.pop().unwrap_or_default())
}

/// What a primary key field contributes to the key. Numbers count by value, so `5` and `5.0` are one key: `5`.
fn key_part(name: &str, raw: &str) -> Checked<String> {
    match json::kind_of(raw) {
        JsonKind::String => Ok(json::decode_string(raw).unwrap_or_default().into_owned()),
        JsonKind::Number => Ok(json::canonical_number(raw)),
        JsonKind::Boolean => Ok(raw.to_owned()),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => {
            let message = format!(
                "the primary key field {} must be a text or a number, got {}",
                quoted(name),
                described(raw)
            );
            Err(Rejection::new(RejectionCode::InvalidRecordIdentity, message).in_field(name))
        }
    }
}

fn check_type(field: &FieldDeclaration, raw: &str) -> Checked<()> {
    let name = field.name.as_str();
    let wrong = |message: String| {
        Err(Rejection::new(RejectionCode::InvalidFieldType, message).in_field(name))
    };
    if !field.accepts(raw) {
        return wrong(format!(
            "field {} must be {}, got {}",
            quoted(name),
            allowed(field),
            described(raw)
        ));
    }
    let is_number = json::kind_of(raw) == JsonKind::Number;
    match field.kind {
        FieldKind::Integer if is_number && Scalar::from_json(field.kind, raw).is_none() => wrong(
            format!("field {} does not fit an integer of 64 bits", quoted(name)),
        ),
        FieldKind::Number if is_number && Scalar::from_json(field.kind, raw).is_none() => {
            wrong(format!("field {} is too large for a number", quoted(name)))
        }
        _ => Ok(()),
    }
}

/// The declared types in words: `integer or null`.
pub(crate) fn allowed(field: &FieldDeclaration) -> String {
    let names: Vec<&str> = field.types.iter().map(|one| one.as_str()).collect();
    names.join(" or ")
}

/// A value in words, without its content.
fn described(raw: &str) -> &'static str {
    match json::kind_of(raw) {
        JsonKind::Null => "null",
        JsonKind::Boolean => "boolean",
        JsonKind::Number if raw.contains(['.', 'e', 'E']) => "number",
        JsonKind::Number => "integer",
        JsonKind::String => "string",
        JsonKind::Array => "array",
        JsonKind::Object => "object",
    }
}
