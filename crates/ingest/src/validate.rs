//! Holding a record against the declaration of its stream: its identity, the fields it must have, and what may stand in
//! each of them ([`value`]).
//!
//! `null` is a value only where the schema says so. A whole number beyond 64 bits in an integer field, and a number no
//! double can hold in a number field, are of the wrong type too: they could be neither compared nor summed. Fields the
//! schema does not name are kept as they are.

pub(crate) mod value;

use std::collections::HashMap;
use std::sync::OnceLock;

use contract::declaration::{FieldDeclaration, StreamDeclaration};
use contract::json::{self, JsonKind, RecordBody};
use contract::key::{KeyError, RecordKey};
use contract::scalar::{FieldKind, Scalar};

use crate::rejection::{Given, Rejection, RejectionCode, quoted};
use value::{Fault, ValueRules, shorten};

type Checked<T> = Result<T, Rejection>;

/// The rules of one stream, ready to be asked for every record.
#[derive(Debug, Clone)]
pub struct StreamRules<'a> {
    /// What the source says about the stream.
    pub declaration: &'a StreamDeclaration,
    fields: HashMap<&'a str, &'a FieldDeclaration>,
    /// Read when the first record comes: one request writes to one of many streams.
    demands: OnceLock<Demands>,
}

#[derive(Debug, Clone)]
struct Demands {
    required: Vec<String>,
    values: HashMap<String, (FieldKind, ValueRules)>,
}

/// What the values of a record are called where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    /// Members of a JSON object.
    Fields,
    /// Columns of a table, in which an empty cell is no value.
    Columns,
}

impl<'a> StreamRules<'a> {
    pub fn new(declaration: &'a StreamDeclaration) -> Self {
        Self {
            declaration,
            fields: declaration
                .fields
                .iter()
                .map(|field| (field.name.as_str(), field))
                .collect(),
            demands: OnceLock::new(),
        }
    }

    pub fn field(&self, name: &str) -> Option<&'a FieldDeclaration> {
        self.fields.get(name).copied()
    }

    pub(crate) fn required(&self) -> &[String] {
        &self.demands().required
    }

    /// Whether null may stand in a field.
    pub(crate) fn takes_null(&self, name: &str) -> bool {
        let rules = self.demands().values.get(name);
        rules.is_some_and(|(_, rules)| rules.check("null").is_ok())
    }

    fn demands(&self) -> &Demands {
        self.demands.get_or_init(|| Demands {
            required: value::required(&self.declaration.schema),
            values: self
                .fields
                .iter()
                .map(|(name, field)| {
                    (
                        (*name).to_owned(),
                        (field.kind, ValueRules::from_declaration(field)),
                    )
                })
                .collect(),
        })
    }

    /// Checks that every required field is there and that every declared one holds what it may.
    pub(crate) fn check_values(&self, body: &RecordBody, cells: Cells) -> Checked<()> {
        let demands = self.demands();
        for (name, raw) in body.members() {
            if let Some((kind, rules)) = demands.values.get(name) {
                let checked = rules.check(raw).and_then(|()| check_size(*kind, raw));
                checked.map_err(|fault| cells.rejection(name, fault))?;
            }
        }
        match demands.required.iter().find(|it| body.get(it).is_none()) {
            Some(name) => Err(cells.missing(name)),
            None => Ok(()),
        }
    }

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
                shorten(raw)
            );
            Err(Rejection::new(RejectionCode::InvalidRecordIdentity, message).in_field(name))
        }
    }
}

/// Checks that a number fits the column it is compared and summed in.
fn check_size(kind: FieldKind, raw: &str) -> Result<(), Fault> {
    let rule = match kind {
        FieldKind::Integer => "must fit an integer of 64 bits",
        FieldKind::Number => "must fit a floating-point number of 64 bits",
        _ => return Ok(()),
    };
    let is_number = json::kind_of(raw) == JsonKind::Number;
    if !is_number || Scalar::from_json(kind, raw).is_some() {
        return Ok(());
    }
    Err(Fault {
        code: RejectionCode::InvalidFieldType,
        at: String::new(),
        rule: rule.to_owned(),
        value: Some(Given::json(raw)),
    })
}

impl Cells {
    /// A rejection that names the field, the rule and the value.
    pub(crate) fn rejection(self, name: &str, fault: Fault) -> Rejection {
        let (noun, name_shown, rule) = (self.noun(), quoted(name), &fault.rule);
        let at = match fault.at.as_str() {
            "" => String::new(),
            at => format!(" at {at}"),
        };
        let got = fault.value.as_ref();
        let got = got.map(|value| format!(", got {}", value.shown()));
        let got = got.unwrap_or_default();
        let message = format!("{noun} {name_shown}{at} {rule}{got}");
        let rejection = Rejection::new(fault.code, message).in_field(name);
        match fault.value {
            Some(value) => rejection.with_value(value),
            None => rejection,
        }
    }

    fn missing(self, name: &str) -> Rejection {
        let (why, value) = match self {
            Self::Fields => ("is required and missing", None),
            Self::Columns => ("is required and its cell is empty", Some(Given::text(""))),
        };
        let message = format!("{} {} {why}", self.noun(), quoted(name));
        let rejection = Rejection::new(RejectionCode::MissingField, message).in_field(name);
        match value {
            Some(value) => rejection.with_value(value),
            None => rejection,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Fields => "field",
            Self::Columns => "column",
        }
    }
}
