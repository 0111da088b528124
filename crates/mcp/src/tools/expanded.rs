//! Related records inside a fetched document: a bounded preview of each, with the id that fetches it.

use contract::handle::RecordHandle;
use contract::numeral;
use serde_json::{Map, Value, json};

use super::expand::{Relation, WayOn};
use crate::budget;
use crate::evidence::identity::{Identity, text};
use crate::evidence::payload::{Payload, without_bytes};
use crate::evidence::{envelope, oversize, plain};

/// All relations together.
const ALL: usize = 16_384;
/// Records shown of one relation.
const SHOWN: usize = 10;
/// The ids of those that are not shown, where no call lists them.
const IDS: usize = 4_096;

/// The relations that were asked for, each with its records.
pub(super) fn of(
    expanded: &Map<String, Value>,
    relations: &[Relation],
    parent: &Identity,
) -> Map<String, Value> {
    let mut written = Map::new();
    let mut room = ALL;
    for relation in relations {
        let Some(related) = expanded.get(&relation.name) else {
            continue;
        };
        let one = of_relation(related, parent, &mut room);
        written.insert(relation.name.clone(), one);
    }
    written
}

/// Whether a relation holds more than is written of it.
pub(super) fn is_cut(written: &Map<String, Value>, relation: &Relation) -> bool {
    let one = written.get(&relation.name);
    one.is_some_and(|one| has_more(one) || one.get("not_shown").is_some())
}

/// Says of every relation that was cut how to read on.
pub(super) fn lead_on(
    written: &mut Map<String, Value>,
    expanded: &Map<String, Value>,
    relations: &[Relation],
    parent: &Identity,
) {
    for relation in relations {
        if !is_cut(written, relation) {
            continue;
        }
        let (Some(one), Some(related)) = (
            written.get_mut(&relation.name),
            expanded.get(&relation.name),
        ) else {
            continue;
        };
        let entries = entries(related);
        let first = entries.first().unwrap_or(&Value::Null);
        let way_on = relation.way_on(parent, first, entries.len());
        if !matches!(way_on, WayOn::List(_)) {
            let shown = one.get("records").and_then(Value::as_array);
            let hidden = entries.iter().skip(shown.map_or(0, Vec::len));
            let ids = ids(hidden, parent);
            if !ids.is_empty() {
                one["more_ids"] = json!(ids);
            }
            if !has_more(one) {
                let how = "call fetch with one of more_ids";
                let none = "no call shows the others";
                one["next"] = json!(if ids.is_empty() { none } else { how });
                continue;
            }
        }
        one["next"] = way_on.told();
    }
}

fn entries(related: &Value) -> &[Value] {
    let is_list = related.is_array() || related.get("data").is_some_and(Value::is_array);
    match related {
        Value::Null => &[],
        _ if is_list => envelope::records(related),
        _ => std::slice::from_ref(related),
    }
}

/// Whether a server says that there are more than it sent.
pub(super) fn has_more(related: &Value) -> bool {
    related.get("has_more") == Some(&Value::Bool(true))
}

fn of_relation(related: &Value, parent: &Identity, room: &mut usize) -> Value {
    let entries = entries(related);
    let mut records = Vec::new();
    for entry in entries.iter().take(SHOWN) {
        let record = record(entry, parent);
        let size = oversize::size(&record);
        if size > *room {
            break;
        }
        *room -= size;
        records.push(record);
    }
    let not_shown = entries.len() - records.len();
    let mut one = json!({"count": entries.len(), "records": records});
    if has_more(related) {
        one["has_more"] = json!(true);
    }
    if not_shown > 0 {
        one["not_shown"] = json!(not_shown);
    }
    one
}

/// Ids that fetch takes as they are, as many as there is room for.
fn ids<'a>(entries: impl Iterator<Item = &'a Value>, parent: &Identity) -> Vec<String> {
    let mut room = IDS;
    let callable = |entry| {
        let identity = identity(entry, parent)?;
        identity
            .separate_connection()
            .is_none()
            .then_some(identity.id)
    };
    entries
        .filter_map(callable)
        .take_while(|id| {
            let fits = id.len() + 3 <= room;
            room = room.saturating_sub(id.len() + 3);
            fits
        })
        .collect()
}

fn identity(entry: &Value, parent: &Identity) -> Option<Identity> {
    let connection = parent.handle.as_ref().and_then(RecordHandle::connection);
    let stream = text(entry, "stream")?;
    Identity::of_record(entry, stream, connection)
        .filter(|identity| identity.id.len() <= budget::PREVIEW)
}

fn record(entry: &Value, parent: &Identity) -> Value {
    let identity = identity(entry, parent);
    let data = match Payload::of(entry.clone(), &[]) {
        Some(payload) => Value::Object(payload.data),
        None => entry.clone(),
    };
    let written = numeral::write(&without_bytes(&data));
    let preview = plain::cut(&written, budget::PREVIEW);
    let is_whole = preview.len() == written.len();
    let mut record = json!({
        "preview_text": preview,
        "preview_status": if is_whole { "complete" } else { "truncated" },
        "size_bytes": written.len()
    });
    if let Some(identity) = identity {
        record["id"] = json!(identity.id);
        record["read"] = json!({"tool": "fetch", "args": identity.args()});
    } else if !is_whole {
        let how = "call schema with this stream to see the relation's stream, then query_records";
        record["read"] = json!(how);
    }
    record
}
