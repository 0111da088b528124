//! What stays of a record beside the fields that were asked for, and that the documents name it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::generated::CONNECTIONS;
use crate::surface::{Surface, get};
use crate::world::{archives, whole};

const API: &str = include_str!("../../../../docs/api.md");
const MCP: &str = include_str!("../../../../docs/mcp.md");
const CLI: &str = include_str!("../../../../docs/cli.md");

/// The words in code of the paragraph that has these words.
fn listed<'a>(document: &'a str, words: &str) -> BTreeSet<&'a str> {
    let mut paragraphs = document.split("\n\n");
    let paragraph = paragraphs.find(|text| text.contains(words)).unwrap();
    paragraph.split('`').skip(1).step_by(2).collect()
}

fn names(record: &Value) -> BTreeSet<&str> {
    record
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn what_survives_a_projection_over_rest_is_documented() {
    // FE-11
    for (document, words) in [(API, "Around it stay"), (CLI, "stay in the envelope")] {
        let listed = listed(document, words);
        // What is around every answer, and the payload itself.
        let around = BTreeSet::from(["data", "links", "meta"]);
        let mut seen = BTreeSet::new();
        for target in [
            "/v1/streams/notes/records?fields=word_count&limit=1",
            "/v1/streams/notes/records/Who%20is%20who.md?fields=word_count",
            "/v1/streams/notes/records?fields=word_count&limit=1&changes_since=beginning",
        ] {
            let body = get(&whole(), target).unwrap();
            let record = body["data"].get(0).unwrap_or(&body);
            assert_eq!(names(&record["data"]), BTreeSet::from(["word_count"]));
            for name in names(record) {
                assert!(
                    listed.contains(name) || around.contains(name),
                    "{name}: {target}"
                );
                seen.insert(name.to_owned());
            }
        }
        // And nothing is documented that is never there; tombstones and hits are other cases.
        let others = BTreeSet::from([
            "deleted",
            "deleted_at",
            "record_key",
            "fields",
            "view",
            "data",
            "--fields",
            "--view",
        ]);
        for name in listed {
            assert!(seen.contains(name) || others.contains(name), "{name}");
        }
    }
}

#[test]
fn what_survives_a_projection_in_the_tools_is_documented() {
    // FE-11
    let listed = listed(MCP, "These keys survive");
    let who = archives();
    for surface in [Surface::Mcp, Surface::McpHosted] {
        let args = json!({"stream": "entries", "connection_id": CONNECTIONS[0], "limit": 3, "fields": ["size"]});
        let reply = surface.call(&who, "query_records", &args).unwrap();
        for record in reply.structured["data"]["data"].as_array().unwrap() {
            assert_eq!(names(&record["data"]), BTreeSet::from(["size"]));
            for name in names(record) {
                assert!(listed.contains(name) || name == "data", "{name}");
            }
        }
        let args = json!({"id": "archive-east/entries:plain", "fields": ["size"]});
        let reply = surface.call(&who, "fetch", &args).unwrap();
        let document = &reply.structured;
        assert_eq!(
            names(&document["metadata"]["fields"]),
            BTreeSet::from(["size"])
        );
        // The form of a document, which holds nothing but what was asked for.
        let form = BTreeSet::from([
            "title",
            "text",
            "metadata",
            "fields",
            "content_ladder",
            "text_complete",
            "text_total_chars",
        ]);
        for name in names(document)
            .into_iter()
            .chain(names(&document["metadata"]))
        {
            assert!(listed.contains(name) || form.contains(name), "{name}");
        }
    }
}
