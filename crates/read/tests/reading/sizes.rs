//! Pages end by the bytes they show, and go on exactly; what is hidden decides nothing.

use contract::query::{ChangesSince, ExpandRequest, ListOptions, Reading, RecordsQuery};
use contract::search::{SearchOrder, SearchQuery};
use serde_json::{Value, json};
use store::records::PAGE_BYTES;

use crate::fixture::*;

const MIB: usize = 1024 * 1024;
const SIZES: [usize; 7] = [MIB, MIB, 3 * MIB, 6 * MIB, 10, 10, 3 * MIB];

/// Messages with a large body, or a large secret.
fn world(large: &str) -> World {
    let world = World::mail();
    for (at, size) in SIZES.into_iter().enumerate() {
        let mut record =
            json!({"id": format!("m{at}"), "subject": "tea", "body": "", "secret": ""});
        record[large] = Value::from("a".repeat(size));
        world.message(&record);
    }
    world
}

fn client(world: &World) -> Reader {
    let fields = ["id", "subject", "body"];
    let streams = json!([{"name": "messages", "instance_ids": ["work"], "fields": fields}]);
    world.mail_client(streams)
}

/// The pages of a question, each no larger than a page may be.
fn pages(reader: &Reader, mut query: RecordsQuery) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = reader.records(query.clone()).unwrap();
        let bytes = page.to_string().len();
        let shown = ids(&page);
        assert!(bytes <= PAGE_BYTES || shown.len() == 1, "{bytes}");
        pages.push(shown);
        let Some(cursor) = page["next_cursor"].as_str() else {
            assert_eq!(page["has_more"], false);
            return pages;
        };
        query.reading = Reading::List(ListOptions {
            cursor: Some(cursor.to_owned()),
            ..ListOptions::default()
        });
    }
}

fn changes() -> RecordsQuery {
    let mut query = limited("messages", 100);
    query.reading = Reading::Changes(ChangesSince::Beginning);
    query
}

#[test]
fn pages_end_by_their_bytes_and_go_on_exactly() {
    // TR-38: at most 4 MiB unless one record is larger, for lists and for changes.
    let world = world("body");
    for reader in [world.owner(), client(&world)] {
        let forth = pages(&reader, changes());
        let expected: [&[&str]; 4] = [&["m0", "m1"], &["m2"], &["m3"], &["m4", "m5", "m6"]];
        assert_eq!(forth, expected);
        let back = pages(&reader, limited("messages", 100));
        let expected: [&[&str]; 4] = [&["m6", "m5", "m4"], &["m3"], &["m2"], &["m1", "m0"]];
        assert_eq!(back, expected);
        let fewer = pages(&reader, limited("messages", 2));
        assert_eq!(fewer.concat(), back.concat());
    }
    let noted = world.notes.0.lock().unwrap();
    let first = noted.first().unwrap();
    assert_eq!(first.records.len(), 2, "only what was shown is noted");
}

#[test]
fn what_is_hidden_ends_no_page() {
    // TR-38: the size of hidden fields is not told by where a page ends.
    let world = world("secret");
    let reader = client(&world);
    assert_eq!(pages(&reader, limited("messages", 100)).len(), 1);
    assert_eq!(pages(&reader, changes()).len(), 1);
    let page = reader.search(words("tea")).unwrap();
    assert_eq!(page["data"].as_array().unwrap().len(), SIZES.len());
    assert_eq!(page["has_more"], false);
}

#[test]
fn hits_of_large_records_are_all_found() {
    // TR-38: a page of hits is whole although the records behind it are read a few at a time.
    let world = world("body");
    let mut query = words("tea");
    query.limit = contract::query::PageLimit::new(5);
    let mut found = Vec::new();
    loop {
        let page = world.owner().search(query.clone()).unwrap();
        let hits = page["data"].as_array().unwrap();
        assert!(hits.len() == 5 || page["has_more"] == false);
        let key = |hit: &Value| hit["record_key"].as_str().unwrap().to_owned();
        found.extend(hits.iter().map(key));
        match page["next_cursor"].as_str() {
            Some(cursor) => query.cursor = Some(cursor.to_owned()),
            None => break,
        }
    }
    found.sort();
    assert_eq!(found, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
}

#[test]
fn a_clear_answer_ends_a_search_and_the_rest_follows_exactly() {
    // AN-12: only where the caller left the number of hits open, only by match, and only before what matches far less.
    let world = World::mail();
    let padded = |words: &str| format!("{words} {}", "x ".repeat(200));
    let bodies = [
        "ferry to Oslo",
        "Oslo",
        &padded("Oslo"),
        &padded("ferry"),
        "soup",
    ];
    for (at, body) in bodies.iter().enumerate() {
        world.message(&json!({"id": format!("m{at}"), "body": body}));
    }
    let mut query = words("ferry Oslo");
    let shown = |reader: &Reader, query: &SearchQuery| {
        let page = reader.search(query.clone()).unwrap();
        let key = |hit: &Value| hit["record_key"].as_str().unwrap().to_owned();
        let keys: Vec<String> = page["data"].as_array().unwrap().iter().map(key).collect();
        (keys, page)
    };
    let (all, page) = shown(&world.owner().bounded(8_000), &query);
    assert_eq!(
        (all.len(), &page["meta"]["weaker_follow"]),
        (4, &Value::Null)
    );
    for (clear, expected) in [(1, 1), (2, 2), (4, 4)] {
        let reader = world.owner().clear_after(8_000, clear);
        query.cursor = None;
        let (mut found, page) = shown(&reader, &query);
        assert_eq!(
            (found.len(), &page["has_more"]),
            (expected, &json!(expected < 4))
        );
        let weaker = if expected < 4 {
            json!(true)
        } else {
            Value::Null
        };
        assert_eq!(page["meta"]["weaker_follow"], weaker);
        let mut next = page["next_cursor"].as_str().map(str::to_owned);
        while next.is_some() {
            query.cursor = next;
            let (more, page) = shown(&reader, &query);
            assert!(!more.is_empty());
            found.extend(more);
            next = page["next_cursor"].as_str().map(str::to_owned);
        }
        assert_eq!(found, all);
    }
    query.cursor = None;
    query.order = SearchOrder::Newest;
    let (newest, _) = shown(&world.owner().clear_after(8_000, 1), &query);
    assert_eq!(newest.len(), 4, "an order by time knows no weaker hits");
}

#[test]
fn related_records_end_by_their_bytes() {
    // TR-38: a record comes with as many of its children as a page holds, and says that there are more.
    let world = World::mail();
    for id in ["m0", "m1"] {
        world.message(&json!({"id": id, "subject": "tea"}));
        for (at, size) in [MIB, 2 * MIB, 2 * MIB].into_iter().enumerate() {
            let record =
                json!({"id": format!("{id}-{at}"), "message_id": id, "name": "a".repeat(size)});
            world.attachment(&record);
        }
    }
    let mut query = limited("messages", 10);
    query.reading = Reading::List(ListOptions {
        expand: vec![ExpandRequest {
            name: "attachments".to_owned(),
            limit: Some(5),
        }],
        ..ListOptions::default()
    });
    let page = world.owner().records(query).unwrap();
    assert_eq!(
        (ids(&page), &page["has_more"]),
        (vec!["m1".to_owned()], &json!(true))
    );
    let attachments = &page["data"][0]["expanded"]["attachments"];
    assert_eq!(ids(attachments), ["m1-0", "m1-1"]);
    assert_eq!(attachments["has_more"], true);
}
