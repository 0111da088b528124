//! What is refused, with the same code everywhere.

use std::fmt::Debug;

use crate::answer::{Id, SurfaceResult};
use crate::generated::{CONNECTIONS, entry};
use crate::surface::{Surface, plain};
use crate::world::{MANY, archives, life, many, only, whole};

pub(crate) fn refused<T: Debug>(told: SurfaceResult<T>, code: &str) {
    assert_eq!(told.unwrap_err().code, code);
}

pub(crate) fn a_stream_outside_the_grant_is_refused_whether_it_exists_or_not(surface: Surface) {
    let who = only("notes");
    for stream in ["messages", "no-such-stream"] {
        let code = "grant_stream_not_allowed";
        refused(surface.query(&who, stream, plain()), code);
        refused(surface.aggregate(&who, stream, "count", plain()), code);
        let streams = plain().with("streams", vec![stream]);
        refused(surface.search(&who, "bridge", streams), code);
        let id = Id::new("notes", stream, "x");
        refused(surface.fetch(&who, &id, plain()), code);
        refused(surface.read(&who, &id, "body", plain()), code);
    }
}

pub(crate) fn a_field_outside_the_grant_is_refused_wherever_it_is_named(surface: Surface) {
    let who = life().grant("--connection notes --stream notes --fields id,title,updated_at");
    let id = Id::new("notes", "notes", "Who is who.md");
    for field in ["body", "no_such_field"] {
        let code = "field_not_granted";
        refused(
            surface.query(&who, "notes", plain().fields(&["id", field])),
            code,
        );
        refused(
            surface.query(&who, "notes", plain().filter(field, "x")),
            code,
        );
        refused(surface.fetch(&who, &id, plain().fields(&[field])), code);
        refused(surface.read(&who, &id, field, plain()), code);
        let ask = plain().with("field", field);
        refused(surface.aggregate(&who, "notes", "sum", ask), code);
        let ask = plain().with("group_by", field);
        refused(surface.aggregate(&who, "notes", "count", ask), code);
    }
}

pub(crate) fn a_question_that_is_too_long_to_be_sent_is_refused(surface: Surface) {
    let told = surface.search(&only("notes"), &"bridge ".repeat(12_000), plain());
    let code = told.unwrap_err().code;
    // The server refuses a request by itself; the arguments of a tool or command are refused before they are sent.
    assert!(
        ["invalid_request", "invalid_arguments"].contains(&code.as_str()),
        "{code}"
    );
}

pub(crate) fn cursors_hold_for_their_question_only(surface: Surface) {
    let who = archives();
    let east = || plain().connection(CONNECTIONS[0]).limit(2);
    let page = surface.page(&who, "entries", east());
    let cursor = page.cursor.unwrap();
    let again = surface.query(&who, "entries", east().cursor(&cursor));
    assert_eq!(again.unwrap().records.len(), 2);
    let hits = surface.found(&who, "Entry", plain().limit(2));
    let of_search = hits.cursor.unwrap();
    let west = plain().connection(CONNECTIONS[1]);
    let code = "invalid_cursor";
    for ask in [
        east().cursor("nonsense"),
        east().cursor(&of_search),
        east().filter("kind", "memo").cursor(&cursor),
        east().with("order", "asc").cursor(&cursor),
        west.cursor(&cursor),
        east().with("changes_since", "nonsense"),
    ] {
        refused(surface.query(&who, "entries", ask), code);
    }
    for (words, cursor) in [
        ("Entry", "nonsense"),
        ("Entry", cursor.as_str()),
        ("Neutral", of_search.as_str()),
    ] {
        refused(surface.search(&who, words, plain().cursor(cursor)), code);
    }
}

pub(crate) fn a_cursor_of_another_grant_is_refused(surface: Surface) {
    let ask = || plain().connection(CONNECTIONS[0]).limit(2);
    let page = surface.page(&archives(), "entries", ask());
    let cursor = page.cursor.unwrap();
    let other = only(CONNECTIONS[0]);
    let told = surface.query(&other, "entries", ask().cursor(&cursor));
    refused(told, "invalid_cursor");
}

pub(crate) fn filters_that_cannot_be_are_refused(surface: Surface) {
    let who = only("bank");
    let code = "invalid_request";
    for ask in [
        plain().filter("amount_cents", "abc"),
        plain().range("counterparty", "gte", "a"),
        plain().range("booked_on", "gte", "yesterday"),
    ] {
        refused(surface.query(&who, "transactions", ask.clone()), code);
        refused(surface.aggregate(&who, "transactions", "count", ask), code);
    }
    // A filter of a search is about one stream.
    let ask = plain().filter("folder", "inbox");
    refused(surface.search(&whole(), "bridge", ask), code);
}

pub(crate) fn what_is_not_there_is_not_found(surface: Surface) {
    let who = whole();
    let id = Id::new("notes", "notes", "no such note");
    refused(surface.fetch(&who, &id, plain()), "not_found");
    refused(surface.read(&who, &id, "body", plain()), "not_found");
    let nowhere = || plain().connection("no-such-connection");
    let code = "connection_not_found";
    refused(surface.query(&who, "notes", nowhere()), code);
    refused(surface.search(&who, "bridge", nowhere()), code);
    let id = Id::new("no-such-connection", "notes", "Who is who.md");
    refused(surface.fetch(&who, &id, plain()), code);
}

pub(crate) fn an_ambiguous_read_lists_the_connections_and_works_with_one(surface: Surface) {
    // AM-01, AM-03, AM-04
    let who = whole();
    let query = surface.query(&who, "messages", plain()).unwrap_err();
    let figures = surface
        .aggregate(&who, "messages", "count", plain())
        .unwrap_err();
    let ask = plain().with("changes_since", "beginning");
    let changes = surface.query(&who, "messages", ask).unwrap_err();
    for refused in [query, figures, changes] {
        assert_eq!(refused.code, "ambiguous_connection");
        assert_eq!(refused.retry_with.as_deref(), Some("connection_id"));
        let mut listed = refused.connections.clone();
        listed.sort_unstable();
        assert_eq!(listed, ["chat-tidewater", "mail-private", "mail-work"]);
        assert_eq!(refused.total, Some(3));
        for connection in &refused.connections {
            let ask = plain().connection(connection).limit(1);
            let page = surface.page(&who, "messages", ask);
            assert_eq!(page.records[0].id.connection.as_ref(), Some(connection));
        }
    }
}

pub(crate) fn a_long_choice_is_cut_and_counted(surface: Surface) {
    // AM-05, AM-06
    let who = many();
    let refused = surface.query(&who, "entries", plain()).unwrap_err();
    assert_eq!(refused.code, "ambiguous_connection");
    assert_eq!((refused.connections.len(), refused.total), (12, Some(MANY)));
    let index = surface.streams(&who, plain());
    assert_eq!(index[0].connections.len() as u64, MANY);
}

pub(crate) fn windows_of_what_is_no_text_are_refused(surface: Surface) {
    let who = archives();
    let id = Id::new(CONNECTIONS[0], "entries", "e-001");
    if surface.is_tools() {
        // No handle of the tools is a dead end: what is no text is shown as it is written.
        let window = surface.window(&who, &id, "size", plain());
        let size = &entry("e-001", 0)["size"];
        assert_eq!(window.text, size.to_string());
        return;
    }
    refused(surface.read(&who, &id, "size", plain()), "field_not_text");
    refused(surface.read(&who, &id, "marks", plain()), "field_not_text");
}

pub(crate) fn an_order_that_is_not_declared_is_refused(surface: Surface) {
    let who = only("bank");
    let ask = plain().with("sort", "-amount_cents");
    refused(surface.query(&who, "transactions", ask), "invalid_sort");
}
