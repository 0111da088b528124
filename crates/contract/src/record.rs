//! One record as served: identity in the envelope, payload as written.

use std::ops::Not;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::page::{Links, Meta};
use crate::time::Instant;
use crate::window::Window;
use crate::wire::{ObjectTag, OrderedMap};

/// Fields that hold the author's own time of a record, the most specific first.
const AUTHORED: [&str; 10] = [
    "sent_at",
    "sentAt",
    "authored_at",
    "authoredAt",
    "created_at",
    "createdAt",
    "source_created_at",
    "sourceCreatedAt",
    "occurred_at",
    "occurredAt",
];
/// Fields that hold the time of the last change, for a record without a better one.
const CHANGED: [&str; 2] = ["updated_at", "updatedAt"];

/// The fields that may hold the time of a record, the first with a value decides: by their names, else the stream's declared
/// time fields (`consent_time_field`, then `cursor_field`), else the time of its last change.
pub fn time_fields(declared: [Option<&str>; 2]) -> impl Iterator<Item = &str> {
    let declared = declared.into_iter().flatten();
    AUTHORED.into_iter().chain(declared).chain(CHANGED)
}

/// The time of a record as its source states it, and the field that holds it: by its name, else by the stream's declaration
/// (`consent_time_field`, then `cursor_field`). The time of the import is never used.
pub fn own_time(
    declared: [Option<&str>; 2],
    text: impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let said = |name: &str| Some((name.to_owned(), text(name).filter(|text| !text.is_empty())?));
    // A stream may be ordered by a field that is no time.
    let is_time = |(_, text): &(String, String)| Instant::parse(text).is_some();
    let mut declared = declared.into_iter().flatten();
    let named = AUTHORED.into_iter().find_map(said);
    let declared = || declared.find_map(|name| said(name).filter(is_time));
    named
        .or_else(declared)
        .or_else(|| CHANGED.into_iter().find_map(said))
}

/// A record, or the tombstone of one.
///
/// Ids are plain text: another server's are opaque.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Record {
    /// `record`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    /// The record key in canonical form.
    pub id: String,
    /// The stream; empty when a server did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stream: String,
    /// When the source emitted it, or where it does not say when it was imported; empty when a server did not say. When what it
    /// tells happened is [`own_time`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub emitted_at: String,
    pub connection_id: Option<String>,
    /// The deprecated twin of `connection_id`; not sent by us.
    pub connector_instance_id: Option<String>,
    pub connector_key: Option<String>,
    pub display_name: Option<String>,
    /// The projected payload, numbers and member order as written. Absent on tombstones.
    pub data: Option<Box<RawValue>>,
    /// Whether this is a tombstone.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub deleted: bool,
    pub deleted_at: Option<String>,
    /// The size of the projected payload as JSON.
    pub record_json_bytes: Option<u64>,
    pub citation_url: Option<String>,
    /// When the record is the whole answer: the [`Citation`](crate::citation::Citation) of each text, by field.
    pub cite: Option<OrderedMap<String>>,
    /// Related records, by relationship.
    pub expanded: Option<OrderedMap<Expanded>>,
    /// The request, when the record is the whole answer.
    pub links: Option<Links>,
    /// What to know, when the record is the whole answer.
    pub meta: Option<Meta>,
}

impl Record {
    pub fn new(
        stream: impl Into<String>,
        id: impl Into<String>,
        emitted_at: impl Into<String>,
    ) -> Record {
        Record {
            object: ObjectTag::RECORD,
            id: id.into(),
            stream: stream.into(),
            emitted_at: emitted_at.into(),
            ..Record::default()
        }
    }

    /// What stands in a changes feed for a record that is gone, for whatever reason.
    pub fn tombstone(
        stream: impl Into<String>,
        id: impl Into<String>,
        deleted_at: impl Into<String>,
    ) -> Record {
        let deleted_at = deleted_at.into();
        Record {
            deleted: true,
            deleted_at: Some(deleted_at.clone()),
            ..Record::new(stream, id, deleted_at)
        }
    }

    #[must_use]
    pub fn in_connection(mut self, connection_id: impl Into<String>) -> Record {
        self.connection_id = Some(connection_id.into());
        self
    }
}

/// Related records a read brought along.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Expanded {
    /// A `has_many` relationship.
    Many(ExpandedList),
    /// A `has_one` relationship with a record.
    One(Box<Record>),
    /// A `has_one` relationship without one.
    None,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExpandedList {
    /// `list`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub data: Vec<Record>,
    #[serde(default)]
    pub has_more: bool,
}

// An untagged enum buffers its input, and a payload as written cannot be read from a buffer; so the text is looked at first.
impl<'de> Deserialize<'de> for Expanded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Peek {
            #[serde(default)]
            object: ObjectTag,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let peeked: Result<Option<Peek>, _> = serde_json::from_str(text);
        let read = peeked.and_then(|peek| match peek {
            None => Ok(Expanded::None),
            Some(peek) if peek.object == ObjectTag::LIST => {
                serde_json::from_str(text).map(Expanded::Many)
            }
            Some(_) => serde_json::from_str(text).map(|record| Expanded::One(Box::new(record))),
        });
        read.map_err(serde::de::Error::custom)
    }
}

/// A window of one text field, as served.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FieldWindow {
    /// `field_window`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub stream: String,
    pub record_id: String,
    pub connection_id: Option<String>,
    pub url: Option<String>,
    pub field: WindowField,
    pub window: Window,
    /// The [`Citation`](crate::citation::Citation) of the window.
    pub cite: Option<String>,
    pub links: Option<Links>,
    pub meta: Option<Meta>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowField {
    /// The field name, literally.
    pub path: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_record_is_its_sources() {
        // TR-15
        let time_of = |declared: [Option<&str>; 2], fields: &[(&str, &str)]| {
            let text = |name: &str| {
                let (_, text) = fields.iter().find(|(known, _)| *known == name)?;
                Some((*text).to_owned())
            };
            own_time(declared, text).map(|(name, _)| name)
        };
        let declared = [Some("booked_on"), Some("position")];
        let booked = ("booked_on", "2026-03-01");
        for (fields, expected) in [
            (&[booked, ("sent_at", "2026-02-01")][..], Some("sent_at")),
            (&[booked, ("updated_at", "2026-04-01")], Some("booked_on")),
            (&[("updated_at", "2026-04-01")], Some("updated_at")),
            (
                &[("booked_on", ""), ("position", "2026-05-01")],
                Some("position"),
            ),
            // What orders a stream need not be a time.
            (&[("position", "0007")], None),
            (&[], None),
        ] {
            assert_eq!(time_of(declared, fields).as_deref(), expected, "{fields:?}");
        }
    }
}
