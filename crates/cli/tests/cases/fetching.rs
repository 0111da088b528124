//! One record, whole or in part, by any of its names.

use contract::handle::RecordHandle;
use serde_json::{Map, Value};

use crate::answer::Id;
use crate::generated::{CONNECTIONS, SECRET, entry};
use crate::surface::{Named, Step, Surface, plain};
use crate::world::{archives, only, whole};

/// What a document of the tools shows of a record: all but fields that hold nothing.
fn present(data: &Map<String, Value>) -> Map<String, Value> {
    let members = data.iter().filter(|(_, value)| !value.is_null());
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(crate) fn a_record_is_fetched_as_it_was_imported(surface: Surface) {
    let who = archives();
    for key in ["plain", "e-012", "a/b/c", "ключ"] {
        for (place, connection) in CONNECTIONS.into_iter().enumerate() {
            let id = Id::new(connection, "entries", key);
            let record = surface.record(&who, &id, plain());
            let imported = entry(key, place);
            assert_eq!(
                present(&record.data),
                present(imported.as_object().unwrap()),
                "{key}"
            );
            assert_eq!(record.id, id);
        }
    }
}

pub(crate) fn a_projected_record_leaks_nothing(surface: Surface) {
    // FE-06, FE-07
    let who = archives();
    let id = Id::new(CONNECTIONS[0], "entries", "e-012");
    let step = Step::Fetch(Named::Parts(&id));
    for fields in [&["size"][..], &["id", "kind"], &["marks"]] {
        let ask = plain().fields(fields);
        let record = surface.record(&who, &id, ask.clone());
        let names: Vec<&str> = record.data.keys().map(String::as_str).collect();
        assert_eq!(names, fields);
        let shown = surface.shown(&who, &step, &ask).unwrap();
        for hidden in [SECRET, "Neutral words", "Entry 31"] {
            assert!(!shown.contains(hidden), "{hidden} in {shown}");
        }
        assert!(shown.contains(CONNECTIONS[0]));
    }
}

pub(crate) fn a_record_without_its_connection_is_found_where_only_one_has_the_stream(
    surface: Surface,
) {
    // ID-07
    let who = only("notes");
    let full = Id::new("notes", "notes", "Who is who.md");
    let found = surface.record(&who, &full.bare(), plain());
    assert_eq!(found.id, full);
    let window = surface.window(&who, &full.bare(), "title", plain());
    assert_eq!(window.text, "Who is who");
    let beside = plain().connection("notes");
    let found = surface.record(&who, &full.bare(), beside);
    assert_eq!(found.id, full);
}

pub(crate) fn a_record_without_its_connection_is_ambiguous_where_two_have_the_stream(
    surface: Surface,
) {
    // AM-01, AM-04, ID-12, ID-13
    let who = archives();
    let full = Id::new(CONNECTIONS[1], "entries", "plain");
    let fetch = surface.fetch(&who, &full.bare(), plain()).unwrap_err();
    let read = surface
        .read(&who, &full.bare(), "kind", plain())
        .unwrap_err();
    for refused in [fetch, read] {
        assert_eq!(refused.code, "ambiguous_connection");
        assert_eq!(refused.connections, CONNECTIONS);
        assert_eq!(refused.retry_with.as_deref(), Some("connection_id"));
    }
    let beside = plain().connection(CONNECTIONS[1]);
    let found = surface.record(&who, &full.bare(), beside);
    assert_eq!(found.id, full);
}

pub(crate) fn a_handle_is_taken_in_every_form(surface: Surface) {
    // HD-05, HD-10, ID-20, ID-21, ID-22, ID-24
    let who = whole();
    for key in ["plain", "a/b/c", "👩\u{200d}👩\u{200d}👧"] {
        let id = Id::new(CONNECTIONS[0], "entries", key);
        let handle = RecordHandle::new(Some(CONNECTIONS[0]), "entries", key).unwrap();
        for written in [handle.to_string(), handle.to_uri()] {
            let ask = plain().fields(&["id"]);
            let record = surface
                .fetch_named(&who, Named::Written(&written), ask)
                .unwrap();
            assert_eq!(record.id, id, "{written}");
            let window = surface
                .read_named(&who, Named::Written(&written), "kind", plain())
                .unwrap();
            assert_eq!(window.id, id, "{written}");
        }
    }
    if surface == Surface::Rest {
        // A route names a connection once.
        return;
    }
    let written = format!("{}/entries:plain", CONNECTIONS[0]);
    let named = || Named::Written(&written);
    let other = plain().connection(CONNECTIONS[1]);
    let refused = surface.fetch_named(&who, named(), other).unwrap_err();
    assert_eq!(refused.code, "conflicting_connection_id");
    let same = plain().connection(CONNECTIONS[0]).fields(&["id"]);
    assert!(surface.fetch_named(&who, named(), same).is_ok());
    for broken in [
        "plain",
        "/entries:plain",
        "archive-east/entries:",
        "a/../b:c",
    ] {
        let refused = surface.fetch_named(&who, Named::Written(broken), plain());
        assert_eq!(refused.unwrap_err().code, "invalid_id", "{broken}");
    }
}
