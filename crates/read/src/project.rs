//! What of a record is shown: members exactly as written, in the order asked for, and the envelope around them.

use contract::error::{ErrorCode, ReadError};
use contract::id::{FieldName, ViewId};
use contract::json::{self, JsonKind, RecordBody};
use contract::key::RecordKey;
use contract::query::Projection;
use contract::record::Record;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ambiguity::label;
use crate::conditions::refused;
use crate::enforce::Row;
use crate::failure::{Failure, Result, parse_stored};
use crate::route;

/// The member that points at bytes.
pub(crate) const BLOB_REF: &str = "blob_ref";

/// Which members of a record are shown.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Everything the row shows, in the order written.
    Visible,
    /// These, in this order.
    Listed(Vec<FieldName>),
}

fn unknown_view(row: &Row, id: &ViewId) -> ReadError {
    let views: Vec<&str> = row.views().map(|view| view.id.as_str()).collect();
    let hint = match views.as_slice() {
        [] => "this stream has no view; pass fields instead".to_owned(),
        views => format!("pass one of {}, or fields instead", views.join(", ")),
    };
    refused("view", format!("Unknown view: {id}")).with_hint(hint)
}

impl Shape {
    /// Checks what was asked against what the row shows.
    pub(crate) fn new(row: &Row, projection: &Projection) -> Result<Self, ReadError> {
        match projection {
            Projection::All => Ok(Self::Visible),
            Projection::Fields(names) => {
                let refused = names
                    .iter()
                    .find_map(|name| row.shown_field(name.as_str(), "fields").err());
                if let Some(refused) = refused {
                    // One consent is enough for all that the call needs.
                    let beyond = names
                        .iter()
                        .filter(|name| row.shown_field(name.as_str(), "fields").is_err());
                    let beyond: Vec<String> = beyond.map(ToString::to_string).collect();
                    return Err(row.beyond(refused, |named| named.fields = Some(beyond)));
                }
                Ok(Self::Listed(names.clone()))
            }
            // A view that is not wholly granted does not exist for the client: a partial one would reveal its other fields.
            Projection::View(id) => row
                .views()
                .find(|view| view.id == *id)
                .map(|view| Self::Listed(view.fields.clone()))
                .ok_or_else(|| unknown_view(row, id)),
        }
    }

    pub(crate) fn names(&self, row: &Row) -> Vec<String> {
        match self {
            Self::Visible => row.fields().map(|field| field.name.to_string()).collect(),
            Self::Listed(names) => names.iter().map(ToString::to_string).collect(),
        }
    }

    fn members<'b>(&'b self, row: &'b Row, body: &'b RecordBody) -> Vec<(&'b str, &'b str)> {
        match self {
            Self::Visible => {
                let members = body.members();
                members.filter(|(name, _)| row.sees_member(name)).collect()
            }
            Self::Listed(names) => {
                let names = names.iter().map(FieldName::as_str);
                names
                    .filter_map(|name| body.get(name).map(|raw| (name, raw)))
                    .collect()
            }
        }
    }

    fn is_everything(&self, row: &Row) -> bool {
        matches!(self, Self::Visible) && row.is_owner()
    }

    /// The members shown, as one JSON object.
    pub(crate) fn project(&self, row: &Row, body: &RecordBody) -> String {
        if self.is_everything(row) {
            return body.as_str().to_owned();
        }
        object(self.members(row, body))
    }

    /// The members shown, with the address of the bytes they point at.
    pub(crate) fn serve(&self, row: &Row, body: RecordBody) -> Result<Box<RawValue>> {
        let text = match body.get(BLOB_REF).and_then(with_fetch_url) {
            // A record may be large, and is not copied where it is shown whole.
            None if self.is_everything(row) => body.into_string(),
            None => self.project(row, &body),
            Some(blob_ref) => {
                let members = self.members(row, &body).into_iter();
                object(members.map(|(name, raw)| match name {
                    BLOB_REF => (name, blob_ref.as_str()),
                    _ => (name, raw),
                }))
            }
        };
        raw_json(text)
    }

    pub(crate) fn record(
        &self,
        row: &Row,
        key: &RecordKey,
        emitted_at: &str,
        body: RecordBody,
    ) -> Result<Record> {
        let mut record = Record::new(row.stream().name.as_str(), key.as_str(), emitted_at);
        record.data = Some(self.serve(row, body)?);
        Ok(in_envelope(row, record))
    }
}

/// Names the connection a record or a tombstone belongs to, and what kind of source that is.
pub(crate) fn in_envelope(row: &Row, record: Record) -> Record {
    let mut record = record.in_connection(row.connection().id.as_str());
    record.connector_key = Some(row.connection().connector.to_string());
    record.display_name = label(row.connection());
    record
}

pub(crate) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let members: Vec<(&str, &str)> = members.into_iter().collect();
    // A record may be large: a text that grows takes up to three times its room meanwhile.
    let bytes = members.iter().map(|(name, raw)| name.len() + raw.len() + 4);
    let mut text = String::with_capacity(2 + bytes.sum::<usize>());
    text.push('{');
    for (name, raw) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(raw);
    }
    text.push('}');
    text
}

/// The id a `blob_ref` names.
pub(crate) fn blob_id_in(raw: &str) -> Option<String> {
    if json::kind_of(raw) != JsonKind::Object {
        return None;
    }
    let inner = RecordBody::parse(raw).ok()?;
    let id = inner.text("blob_id")?.into_owned();
    (!id.is_empty()).then_some(id)
}

/// A `blob_ref` with the path its bytes are at. A path that the source wrote is not ours to pass on.
fn with_fetch_url(raw: &str) -> Option<String> {
    let id = blob_id_in(raw)?;
    let inner = RecordBody::parse(raw).ok()?;
    let url = serde_json::to_string(&route::blob(&id)).ok()?;
    let kept = inner.members().filter(|(name, _)| *name != "fetch_url");
    Some(object(kept.chain([("fetch_url", url.as_str())])))
}

/// Text that is JSON by construction, as a value of an answer.
pub(crate) fn raw_json(text: String) -> Result<Box<RawValue>> {
    RawValue::from_string(text).map_err(|_| {
        // Stored records are parsed before, so this cannot happen with them; the parse error says where it went wrong.
        Failure::from(ReadError::internal())
    })
}

/// The record key a caller means; a text that cannot be a key names no record.
pub(crate) fn key_of(row: &Row, record_id: &str) -> Result<RecordKey, ReadError> {
    RecordKey::from_wire(record_id, row.stream().primary_key.len()).map_err(|_| record_not_found())
}

/// Missing, deleted and not granted look alike.
pub(crate) fn record_not_found() -> ReadError {
    ReadError::new(ErrorCode::NotFound, "Record not found")
}

/// A record as the row shows it, if it shows it.
pub(crate) fn admitted(row: &Row, key: &RecordKey, body: String) -> Result<Option<RecordBody>> {
    let body = parse_stored(body)?;
    if !row.admits(key, &body) {
        return Ok(None);
    }
    Ok(Some(row.redacted(body)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_record_is_projected_into_a_text_of_its_size() {
        // TR-38: a text that grows would take up to three times its room.
        let large = format!("\"{}\"", "x".repeat(1_000_000));
        let text = object([("id", "\"a\""), ("body", large.as_str())]);
        assert_eq!(text.len(), large.len() + r#"{"id":"a","body":}"#.len());
        assert!(text.capacity() < text.len() + 64);
    }
}
