//! The fields of a granted row of which only a part is shown.

use std::collections::BTreeMap;

use contract::grant::{GrantedRow, Redaction};
use contract::id::FieldName;
use contract::json::{JsonError, RecordBody};
use contract::seal::{HashKey, SealingKey};

use crate::project::object;

#[derive(Debug)]
pub(super) struct Redactions {
    fields: BTreeMap<FieldName, Redaction>,
    key: HashKey,
}

impl Redactions {
    pub(super) fn new(row: &GrantedRow, sealing_key: &SealingKey) -> Self {
        Self {
            fields: row.redact.clone(),
            key: sealing_key.hash_key(row.grant_id.as_str()),
        }
    }

    pub(super) fn of_field(&self, name: &str) -> Option<Redaction> {
        let mut fields = self.fields.iter();
        fields
            .find(|(field, _)| field.as_str() == name)
            .map(|(_, redaction)| *redaction)
    }

    /// The record with what is shown of its redacted members. Nothing else of them is left.
    pub(super) fn apply(&self, body: RecordBody) -> Result<RecordBody, JsonError> {
        if self.fields.is_empty() {
            return Ok(body);
        }
        let shown: Vec<(&str, Option<String>)> = self
            .fields
            .iter()
            .map(|(field, redaction)| {
                let name = field.as_str();
                (name, redaction.apply(body.get(name), &self.key))
            })
            .collect();
        let of = |name: &str| shown.iter().find(|(field, _)| *field == name);
        let written = body.members().filter_map(|(name, raw)| match of(name) {
            None => Some((name, raw)),
            Some((_, shown)) => Some((name, shown.as_deref()?)),
        });
        let absent = shown.iter().filter(|(name, _)| body.get(name).is_none());
        let absent = absent.filter_map(|(name, shown)| Some((*name, shown.as_deref()?)));
        RecordBody::parse(object(written.chain(absent)))
    }
}
