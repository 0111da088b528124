//! Reads what the tools answer. Identity, evidence and continuations are taken from what the tools themselves say, not
//! from the envelope they keep beside it, and both channels are held against each other.

use std::collections::BTreeMap;

use contract::handle::RecordHandle;
use serde_json::{Map, Value};

use crate::answer::{Excerpt, Found, Hit, Id, Page, Read, Record, WINDOW, Window};
use crate::body::{self, text};

pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) structured: Value,
}

impl Reply {
    pub(crate) fn from_result(result: &Value) -> Self {
        let parts = result["content"].as_array().unwrap();
        assert_eq!(parts.len(), 1, "{result}");
        Self {
            text: text(&parts[0], "text").unwrap(),
            structured: result["structuredContent"].clone(),
        }
    }

    fn list(&self, pointer: &str) -> &[Value] {
        let list = self.structured.pointer(pointer).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Whether the text has these words or says that it does not show everything.
    fn says(&self, words: &str) -> bool {
        // What cannot be seen is written by its number.
        let visible = words.replace('\u{200d}', "\\u200d");
        let quoted = Value::from(words).to_string();
        let quoted = quoted.trim_matches('"').replace('\u{200d}', "\\u200d");
        let shown = [visible, quoted];
        shown.iter().any(|form| self.text.contains(form)) || self.text.contains("not_shown")
    }
}

pub(crate) fn named(args: &Value) -> Id {
    let handle = RecordHandle::parse(args["id"].as_str().unwrap()).unwrap();
    let handle = handle.with_connection(args["connection_id"].as_str());
    let handle = handle.unwrap();
    Id {
        connection: handle.connection().map(str::to_owned),
        stream: handle.stream().to_owned(),
        record: handle.record().to_owned(),
    }
}

fn parts(record: &Value) -> Id {
    Id {
        connection: text(record, "connection_id"),
        stream: text(record, "stream").unwrap(),
        record: text(record, "record_id").unwrap(),
    }
}

pub(crate) fn page(reply: &Reply) -> Page {
    let page = body::page(&reply.structured["data"]);
    let live = page.records.iter().filter(|record| !record.deleted);
    let live: Vec<Id> = live.map(|record| record.id.clone()).collect();
    for (entry, expected) in reply.list("/content_ladder/records").iter().zip(&live) {
        assert_eq!(named(entry), *expected);
    }
    for handle in [&page.cursor, &page.bookmark].into_iter().flatten() {
        assert!(reply.text.contains(handle.as_str()), "{}", reply.text);
    }
    page
}

/// The window that a rung offers, held against the excerpt that the server sent.
fn check_window(window: &Value, sent: &Excerpt) {
    let read = &window["read"];
    assert_eq!(read["tool"], "read_record_field", "{window}");
    let args = &read["args"];
    let offered = Read {
        id: named(args),
        field: text(args, "field_path").unwrap(),
        offset: args["offset_chars"].as_u64().unwrap_or(0),
        limit: args["limit_chars"].as_u64().unwrap_or(WINDOW),
    };
    assert_eq!(offered, sent.read);
    assert_eq!(window["field_path"], sent.field);
}

pub(crate) fn hits(reply: &Reply) -> Found {
    let results = reply.list("/results");
    let mut found = body::hits(&reply.structured["data"]);
    let sent = reply.list("/data/data");
    assert_eq!(results.len(), sent.len());
    let rungs = reply.list("/content_ladder/records");
    for ((entry, result), hit) in rungs.iter().zip(results).zip(&found.hits) {
        // EV-05
        assert_eq!(entry["id"], result["id"]);
        assert_eq!(entry["evidence_preview"], result["evidence_preview"]);
        let windows = entry["field_windows"].as_array().unwrap();
        assert_eq!(windows.len(), hit.excerpts.len());
        for (window, excerpt) in windows.iter().zip(&hit.excerpts) {
            check_window(window, excerpt);
        }
        let first = hit.excerpts.first();
        let first = first.map(|one| one.preview.replace("<mark>", "").replace("</mark>", ""));
        // A long one is shortened around its match.
        let is_short = first.as_ref().is_none_or(|first| first.len() <= 40);
        let preview = result["evidence_preview"].as_str();
        assert!(
            preview == first.as_deref() || !is_short,
            "{preview:?} of {first:?}"
        );
    }
    let hit = |((result, sent), read): ((&Value, &Value), &Hit)| {
        assert!(reply.says(result["id"].as_str().unwrap()), "{}", reply.text);
        Hit {
            id: Id {
                connection: text(result, "connection_id"),
                stream: text(result, "stream").unwrap(),
                record: text(result, "record_key").unwrap(),
            },
            connector: text(result, "connector_key").unwrap(),
            label: text(result, "display_name"),
            // Where a record has no title, the tools name it by its source and time.
            title: text(result, "title").filter(|_| sent["title"].is_string()),
            excerpts: read.excerpts.clone(),
        }
    };
    found.hits = (results.iter().zip(sent).zip(&found.hits))
        .map(hit)
        .collect();
    if let Some(cursor) = &found.cursor {
        assert!(reply.text.contains(cursor.as_str()), "{}", reply.text);
    }
    found
}

pub(crate) fn window(reply: &Reply) -> Window {
    let answer = &reply.structured;
    let id = parts(&answer["record"]);
    let echoed = named(&answer["record"]);
    assert!(echoed == id || echoed == id.bare(), "{answer}");
    let field = text(&answer["field"], "path").unwrap();
    let window = body::window_of(id, field, &answer["window"]);
    assert!(reply.text.contains(&window.text), "{}", reply.text);
    let next = answer["next"]["args"]["offset_chars"].as_u64();
    assert_eq!(next, window.next);
    // The call that goes back ends where this window starts.
    let back = &answer["previous"]["args"];
    let number = |name: &str| back[name].as_u64();
    let ends = number("offset_chars").zip(number("limit_chars"));
    assert_eq!(ends.is_some(), window.previous.is_some());
    assert!(ends.is_none_or(|(offset, limit)| offset + limit == window.start));
    window
}

/// The record behind a document: its text is one field, the others stand in the metadata.
pub(crate) fn record(reply: &Reply) -> Record {
    let document = &reply.structured;
    let mirror: Value = serde_json::from_str(&reply.text).unwrap();
    assert_eq!(mirror, *document);
    let metadata = &document["metadata"];
    let mut data: Map<String, Value> = metadata["fields"].as_object().cloned().unwrap_or_default();
    if let Some(field) = text(metadata, "text_field") {
        data.insert(field, document["text"].clone());
    }
    let ladder = &metadata["content_ladder"]["records"][0];
    for field in ladder["json_fields"].as_array().into_iter().flatten() {
        assert_eq!(field["preview_status"], "complete", "{field}");
        let value = serde_json::from_str(field["preview_text"].as_str().unwrap()).unwrap();
        data.insert(text(field, "field_path").unwrap(), value);
    }
    let id = Id {
        connection: text(metadata, "connection_id"),
        stream: text(metadata, "stream").unwrap(),
        record: text(metadata, "record_id").unwrap(),
    };
    // An id without its connection is echoed as it was passed (ID-13).
    let echoed = named(document);
    assert!(echoed == id || echoed == id.bare(), "{document}");
    Record {
        id,
        label: text(metadata, "display_name"),
        deleted: false,
        data,
        related: BTreeMap::new(),
    }
}
