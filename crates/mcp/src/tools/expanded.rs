//! Related records inside a fetched document: a bounded preview of each, with the id that fetches it.

use contract::handle::RecordHandle;
use serde_json::{Map, Value, json};

use crate::budget;
use crate::evidence::identity::{Identity, text};
use crate::evidence::payload::{Payload, without_bytes};
use crate::evidence::{envelope, plain};

/// All relations together.
const ALL: usize = 16_384;
/// Records shown of one relation.
const SHOWN: usize = 10;

/// The relations that were asked for, each with its records.
pub(super) fn of(
    expanded: &Map<String, Value>,
    relations: &[&str],
    parent: &Identity,
) -> Map<String, Value> {
    let mut written = Map::new();
    let mut room = ALL;
    for relation in relations {
        let Some(related) = expanded.get(*relation) else {
            continue;
        };
        let one = of_relation(related, parent, &mut room);
        written.insert((*relation).to_owned(), one);
    }
    written
}

fn of_relation(related: &Value, parent: &Identity, room: &mut usize) -> Value {
    let alone = std::slice::from_ref(related);
    let is_list = related.is_array() || related.get("data").is_some_and(Value::is_array);
    let entries = match related {
        Value::Null => &[],
        _ if is_list => envelope::records(related),
        _ => alone,
    };
    let mut records = Vec::new();
    for entry in entries.iter().take(SHOWN) {
        let record = record(entry, parent);
        let size = record.to_string().len();
        if size > *room {
            break;
        }
        *room -= size;
        records.push(record);
    }
    let not_shown = entries.len() - records.len();
    let has_more = related.get("has_more") == Some(&Value::Bool(true));
    let mut one = json!({"count": entries.len(), "records": records});
    if has_more {
        one["has_more"] = json!(true);
    }
    if not_shown > 0 {
        one["not_shown"] = json!(not_shown);
    }
    if not_shown > 0 || has_more {
        let next = entries.first().and_then(|entry| list_call(entry, parent));
        one["next"] = next.unwrap_or_else(|| {
            json!("call schema with this stream to see the relation's stream, then query_records")
        });
    }
    one
}

/// The call that lists the stream the related records are from.
fn list_call(entry: &Value, parent: &Identity) -> Option<Value> {
    let mut args = Map::new();
    args.insert("stream".to_owned(), json!(text(entry, "stream")?));
    if let Some(connection) = parent.handle.as_ref().and_then(RecordHandle::connection) {
        args.insert("connection_id".to_owned(), json!(connection));
    }
    Some(json!({"tool": "query_records", "args": args}))
}

fn record(entry: &Value, parent: &Identity) -> Value {
    let connection = parent.handle.as_ref().and_then(RecordHandle::connection);
    let identity = text(entry, "stream")
        .and_then(|stream| Identity::of_record(entry, stream, connection))
        .filter(|identity| identity.id.len() <= budget::PREVIEW);
    let data = match Payload::of(entry.clone(), &[]) {
        Some(payload) => Value::Object(payload.data),
        None => entry.clone(),
    };
    let written = without_bytes(&data).to_string();
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
