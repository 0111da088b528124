//! Records in order: pages, filters, projections, counts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::answer::{Id, Page, Record};
use crate::generated::{CONNECTIONS, entry, hard_keys, keys};
use crate::surface::{Ask, Surface, plain};
use crate::world::{Grant, archives, only, whole};

pub(crate) fn all(surface: Surface, who: &Grant, stream: &str, ask: &Ask) -> Vec<Page> {
    let mut pages = vec![surface.page(who, stream, ask.clone())];
    while let Some(cursor) = pages[pages.len() - 1].cursor.clone() {
        let ask = ask.clone().cursor(&cursor);
        pages.push(surface.page(who, stream, ask));
        assert!(pages.len() < 100, "pages without end");
    }
    pages
}

fn records(pages: &[Page]) -> Vec<&Record> {
    pages.iter().flat_map(|page| &page.records).collect()
}

fn number(record: &Record, field: &str) -> i64 {
    record.data[field].as_i64().unwrap()
}

pub(crate) fn pages_lead_to_the_end_with_every_record_once(surface: Surface) {
    let who = only("bank");
    let ask = plain().limit(100).fields(&["number", "booked_on"]);
    let pages = all(surface, &who, "transactions", &ask);
    let records = records(&pages);
    let once: BTreeSet<&str> = records.iter().map(|one| one.id.record.as_str()).collect();
    assert_eq!(once.len(), records.len());
    let counted = surface.figures(&who, "transactions", "count", plain());
    assert_eq!(counted.value, Some(records.len().into()));
    assert_eq!(pages.len(), records.len().div_ceil(100));
    let short = pages.iter().filter(|page| page.records.len() < 100);
    assert!(short.count() <= 1);
}

pub(crate) fn keys_of_any_form_are_listed_and_fetched(surface: Surface) {
    // ID-26, HD-04, PA-01
    let who = archives();
    for (place, connection) in CONNECTIONS.into_iter().enumerate() {
        let ask = plain()
            .connection(connection)
            .limit(25)
            .fields(&["id", "size"]);
        let pages = all(surface, &who, "entries", &ask);
        let found: BTreeSet<String> = records(&pages)
            .iter()
            .map(|record| record.id.record.clone())
            .collect();
        assert_eq!(found, keys().into_iter().collect());
        let hard = hard_keys();
        // Both have the same keys, so every one is fetched from one of them.
        for key in hard.iter().skip(place).step_by(2) {
            let id = Id::new(connection, "entries", key);
            let ask = plain().fields(&["id", "size"]);
            let record = surface.record(&who, &id, ask);
            assert_eq!(record.id, id);
            let expected = entry(key, place);
            assert_eq!(record.data["id"], key.as_str());
            assert_eq!(record.data["size"], expected["size"], "{key}");
            let window = surface.window(&who, &id, "kind", plain());
            assert_eq!(
                (window.id, window.text.into()),
                (id, expected["kind"].clone())
            );
        }
    }
}

pub(crate) fn filters_keep_exactly_what_matches(surface: Surface) {
    let who = archives();
    let whole: Vec<Value> = keys().iter().map(|key| entry(key, 1)).collect();
    let west = || plain().connection(CONNECTIONS[1]).limit(100);
    let cases = [
        (west().filter("kind", "memo"), "kind", Value::from("memo")),
        (west().filter("size", 74), "size", Value::from(74)),
        (
            west().filter("id", "quote'\"`"),
            "id",
            Value::from("quote'\"`"),
        ),
        (
            west().filter("id", "$HOME $(id)"),
            "id",
            Value::from("$HOME $(id)"),
        ),
        (
            west().filter("title", "Entry 3 of 1"),
            "title",
            Value::from("Entry 3 of 1"),
        ),
    ];
    for (ask, field, value) in cases {
        let page = surface.page(&who, "entries", ask);
        let found: BTreeSet<String> = page.keys().iter().map(ToString::to_string).collect();
        let expected = whole.iter().filter(|one| one[field] == value);
        let expected: BTreeSet<String> = expected
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        assert!(!expected.is_empty(), "{field}");
        assert_eq!(found, expected, "{field}={value}");
    }
    // The same moment, written another way.
    let ask = west().filter("at", "2026-01-01T02:00:00+02:00");
    let page = surface.page(&who, "entries", ask);
    assert_eq!(page.keys(), ["plain"]);
}

pub(crate) fn arrays_are_filtered_and_grouped_by_their_items(surface: Surface) {
    let who = only("notes");
    let ask = || plain().limit(100);
    let groups = surface.figures(&who, "notes", "count", ask().with("group_by", "tags"));
    let groups = groups.groups.unwrap();
    let groups = groups.iter().filter(|(key, ..)| !key.is_null());
    let mut several = 0;
    for (key, count, _) in groups.take(4) {
        let page = surface.page(&who, "notes", ask().range("tags", "contains", key.clone()));
        assert_eq!(page.records.len() as u64, *count, "{key}");
        for record in &page.records {
            let tags = record.data["tags"].as_array().unwrap();
            assert!(tags.contains(key), "{key} {tags:?}");
            several += usize::from(tags.len() > 1);
        }
    }
    assert!(several > 0, "a record stands in several groups");
    let refused = surface.query(&who, "notes", ask().filter("tags", "x"));
    assert_eq!(refused.unwrap_err().code, "invalid_request");
}

pub(crate) fn ranges_may_be_open_or_closed(surface: Surface) {
    let who = archives();
    let east = || plain().connection(CONNECTIONS[0]).limit(100);
    let sizes = |ask: Ask| {
        let page = surface.page(&who, "entries", ask);
        let mut sizes: Vec<i64> = page.records.iter().map(|one| number(one, "size")).collect();
        sizes.sort_unstable();
        sizes
    };
    let mut all = sizes(east());
    assert_eq!(all.len(), keys().len());
    all.retain(|size| (20..74).contains(size));
    let ask = east().range("size", "gte", 20).range("size", "lt", 74);
    assert_eq!(sizes(ask), all);
    let ask = east().range("size", "gt", 19).range("size", "lte", 73);
    assert_eq!(sizes(ask), all);
    let ask =
        east()
            .range("at", "gte", "2026-03-01T00:00:00Z")
            .range("at", "lt", "2026-04-01T00:00:00Z");
    let page = surface.page(&who, "entries", ask);
    let inside = |one: &Record| one.data["at"].as_str().unwrap().starts_with("2026-03-");
    assert!(!page.records.is_empty() && page.records.iter().all(inside));
}

pub(crate) fn order_is_kept_in_both_directions(surface: Surface) {
    let who = only("calendar");
    let keys = |ask: Ask| {
        let pages = all(surface, &who, "events", &ask.limit(60).fields(&["title"]));
        let records = records(&pages);
        records
            .iter()
            .map(|record| record.id.record.clone())
            .collect::<Vec<_>>()
    };
    let shown = surface.streams(&who, plain().with("stream", "events"));
    assert!(shown[0].fields.contains_key("starts_at"));
    let newest = keys(plain());
    assert_eq!(keys(plain().with("sort", "-starts_at")), newest);
    assert_eq!(keys(plain().with("order", "desc")), newest);
    let oldest: Vec<String> = newest.into_iter().rev().collect();
    assert_eq!(keys(plain().with("sort", "starts_at")), oldest);
    assert_eq!(keys(plain().with("order", "asc")), oldest);
}

pub(crate) fn a_projection_leaves_exactly_the_named_fields(surface: Surface) {
    // FE-10, FE-12
    let who = whole();
    let ask = plain().limit(3).fields(&["word_count"]);
    let page = surface.page(&who, "notes", ask);
    for record in &page.records {
        let names: Vec<&String> = record.data.keys().collect();
        assert_eq!(names, ["word_count"]);
        assert_eq!(record.id.connection.as_deref(), Some("notes"));
        assert_eq!(record.label.as_deref(), Some("Mara's notes"));
    }
}

pub(crate) fn a_view_is_a_named_projection(surface: Surface) {
    let who = archives();
    let ask = plain()
        .connection(CONNECTIONS[0])
        .limit(2)
        .with("view", "short");
    let page = surface.page(&who, "entries", ask);
    for record in &page.records {
        let names: BTreeSet<&str> = record.data.keys().map(String::as_str).collect();
        assert_eq!(names, BTreeSet::from(["id", "title"]));
    }
}

pub(crate) fn all_that_match_are_counted_when_asked(surface: Surface) {
    let who = only("bank");
    let ask = plain().limit(1).filter("category", "rent");
    let page = surface.page(&who, "transactions", ask.clone().with("count", "exact"));
    let counted = surface.figures(
        &who,
        "transactions",
        "count",
        plain().filter("category", "rent"),
    );
    assert_eq!(page.count.map(Value::from), counted.value);
    assert!(page.count > Some(1) && page.records.len() == 1);
    let page = surface.page(&who, "transactions", ask);
    assert_eq!(page.count, None);
}

pub(crate) fn related_records_come_along(surface: Surface) {
    let who = only("shop-kueche");
    let ask = plain().limit(2).with("expand", vec!["items"]);
    let page = surface.page(&who, "orders", ask);
    for order in &page.records {
        let items = &order.related["items"];
        assert!(!items.is_empty(), "{order:?}");
        for item in items {
            let id = Id::new("shop-kueche", "items", item);
            let item = surface.record(&who, &id, plain());
            assert_eq!(item.data["order_id"], order.id.record.as_str());
        }
    }
}

pub(crate) fn a_page_may_be_of_another_size_than_the_last(surface: Surface) {
    let who = archives();
    let ask = plain().connection(CONNECTIONS[0]).fields(&["id"]);
    let whole = surface.page(&who, "entries", ask.clone().limit(100));
    let first = surface.page(&who, "entries", ask.clone().limit(3));
    let cursor = first.cursor.clone().unwrap();
    let rest = surface.page(&who, "entries", ask.limit(100).cursor(&cursor));
    let keys = [first.keys(), rest.keys()].concat();
    assert_eq!(keys, whole.keys());
}
