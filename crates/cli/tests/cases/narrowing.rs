//! What a grant leaves out is not there: in the schema, in lists, in searches, in records, in figures.

use std::collections::BTreeSet;

use crate::answer::{Id, SurfaceResult};
use crate::generated::{CONNECTIONS, SECRET};
use crate::refusing::refused;
use crate::surface::{Named, Step, Surface, plain};
use crate::world::{life, only};

fn code<T: std::fmt::Debug>(told: SurfaceResult<T>) -> String {
    told.unwrap_err().code
}

pub(crate) fn a_field_that_is_not_granted_is_nowhere(surface: Surface) {
    // PA-03, PA-08, FW-09
    let who = life().grant(&format!(
        "--connection {} --stream entries --fields id,title,text,size",
        CONNECTIONS[0]
    ));
    let granted = BTreeSet::from(["id", "size", "text", "title"]);
    let shown = surface.streams(&who, plain().with("stream", "entries"));
    let names: BTreeSet<&str> = shown[0].fields.keys().map(String::as_str).collect();
    assert_eq!(names, granted);
    let page = surface.page(&who, "entries", plain().limit(100));
    for record in &page.records {
        assert!(
            record
                .data
                .keys()
                .all(|name| granted.contains(name.as_str()))
        );
    }
    let id = Id::new(CONNECTIONS[0], "entries", "e-001");
    for step in [
        Step::Query("entries"),
        Step::Search("Entry"),
        Step::Fetch(Named::Parts(&id)),
        Step::Schema,
    ] {
        let shown = surface.shown(&who, &step, &plain()).unwrap();
        for hidden in [SECRET, "\"marks\"", "\"secret\"", "memo"] {
            assert!(!shown.contains(hidden), "{hidden} in {shown}");
        }
    }
    assert!(surface.found(&who, SECRET, plain()).hits.is_empty());
    refused(
        surface.read(&who, &id, "secret", plain()),
        "field_not_granted",
    );
    let ask = plain().with("group_by", "kind");
    refused(
        surface.aggregate(&who, "entries", "count", ask),
        "field_not_granted",
    );
    // Where the order's own field is not granted, the order does not show it either.
    refused(
        surface.query(&who, "entries", plain().with("sort", "at")),
        "field_not_granted",
    );
    let keys = page.keys();
    assert!(
        keys.is_sorted_by(|a, b| a >= b) || keys.is_sorted(),
        "{keys:?}"
    );
}

pub(crate) fn a_time_that_is_not_granted_is_nowhere(surface: Surface) {
    let who = life().grant("--connection bank --since 2026-06-01 --until 2026-07-01");
    let whole = only("bank");
    let page = surface.page(
        &who,
        "transactions",
        plain().limit(100).with("count", "exact"),
    );
    for record in &page.records {
        let day = record.data["booked_on"].as_str().unwrap();
        assert!(day.starts_with("2026-06-"), "{day}");
    }
    let ask =
        plain()
            .range("booked_on", "gte", "2026-06-01")
            .range("booked_on", "lt", "2026-07-01");
    let month = surface.figures(&whole, "transactions", "count", ask);
    let seen = surface.figures(&who, "transactions", "count", plain());
    assert_eq!((seen.records, page.count), (month.records, month.records));
    // A record of another month is not there, though its key is right.
    let may = surface.page(
        &whole,
        "transactions",
        plain().limit(1).range("booked_on", "lt", "2026-06-01"),
    );
    let id = &may.records[0].id;
    assert!(surface.fetch(&whole, id, plain()).is_ok());
    refused(surface.fetch(&who, id, plain()), "not_found");
    refused(surface.read(&who, id, "counterparty", plain()), "not_found");
    let counterparty = may.records[0].data["counterparty"].as_str().unwrap();
    let found = surface.found(&who, counterparty, plain().limit(100));
    assert!(!found.ids().contains(id));
}

pub(crate) fn a_stream_that_is_not_granted_is_nowhere(surface: Surface) {
    let who = life().grant("--connection shop-kueche --stream orders");
    let index = surface.streams(&who, plain());
    let names: Vec<&str> = index.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["orders"]);
    refused(
        surface.query(&who, "items", plain()),
        "grant_stream_not_allowed",
    );
    let id = Id::new("shop-kueche", "items", "[\"KK-7662\",\"1\"]");
    refused(
        surface.fetch(&who, &id, plain()),
        "grant_stream_not_allowed",
    );
    let ask = plain().with("streams", vec!["items"]);
    refused(
        surface.search(&who, "pasta", ask),
        "grant_stream_not_allowed",
    );
    let found = surface.found(&who, "pasta", plain().limit(100));
    assert!(found.ids().iter().all(|id| id.stream == "orders"));
    let ask = plain().limit(1).with("expand", vec!["items"]);
    let refused = code(surface.query(&who, "orders", ask));
    assert!(
        ["insufficient_scope", "invalid_expand"].contains(&refused.as_str()),
        "{refused}"
    );
}

pub(crate) fn a_connection_that_is_not_granted_is_nowhere(surface: Surface) {
    // ID-10
    let who = only(CONNECTIONS[0]);
    // With one connection granted nothing is ambiguous.
    let page = surface.page(&who, "entries", plain().limit(3));
    assert!(
        page.records
            .iter()
            .all(|record| record.id.connection.as_deref() == Some(CONNECTIONS[0]))
    );
    let other = Id::new(CONNECTIONS[1], "entries", "plain");
    let elsewhere = plain().connection(CONNECTIONS[1]);
    for refused in [
        code(surface.query(&who, "entries", elsewhere.clone())),
        code(surface.search(&who, "Entry", elsewhere)),
        code(surface.fetch(&who, &other, plain())),
        code(surface.read(&who, &other, "kind", plain())),
    ] {
        assert_eq!(refused, "connection_not_found");
    }
    let found = surface.found(&who, "Entry", plain().limit(100));
    assert!(
        found
            .ids()
            .iter()
            .all(|id| id.connection.as_deref() == Some(CONNECTIONS[0]))
    );
}

pub(crate) fn a_grant_that_was_ended_reads_nothing(surface: Surface) {
    // Made for this surface, because it is ended.
    let day = format!("2020-01-0{}", surface as u8 + 1);
    let who = life().grant(&format!("--connection bank --since {day}"));
    assert!(
        surface
            .query(&who, "transactions", plain().limit(1))
            .is_ok()
    );
    who.world.run(&["grant", "revoke", &who.id]).succeeds();
    let expected = match surface {
        Surface::McpHosted => "invalid_token",
        _ => "grant_revoked",
    };
    let id = Id::new("bank", "transactions", "x");
    for refused in [
        code(surface.query(&who, "transactions", plain().limit(1))),
        code(surface.search(&who, "rent", plain())),
        code(surface.schema(&who, plain())),
        code(surface.fetch(&who, &id, plain())),
    ] {
        assert_eq!(refused, expected);
    }
}
