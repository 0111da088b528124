//! Pages and their cursors: they reach every record once, and open for nothing but what they continue.

use contract::error::ErrorCode;
use contract::query::{ChangesSince, Filter, ListOptions, Order, Reading, RecordsQuery};
use contract::search::{SearchOrder, SearchQuery};
use serde_json::json;

use crate::fixture::*;

fn world() -> World {
    let world = World::mail();
    world.connect(MAIL, "home", "Home");
    for connection in ["work", "home"] {
        for at in 0..9 {
            world.put(
                connection,
                "messages",
                &json!({"id": format!("m{at}"), "subject": "tea", "seen": at % 2 == 0,
                    "received_at": format!("2026-03-0{}T00:00:00Z", at / 3 + 1)}),
            );
        }
    }
    world
}

fn client(world: &World, id: &str) -> Reader {
    let streams = json!([{"name": "messages", "instance_ids": ["work", "home"], "fields": ["id", "subject", "seen", "received_at"]}]);
    let granted =
        contract::grant::GrantedAuthority::from_grant(&grant(id, "demo_mail", streams)).unwrap();
    world.reader(contract::grant::Authority::Granted(granted))
}

fn in_work(limit: u32) -> RecordsQuery {
    let mut query = limited("messages", limit);
    query.connection_id = Some("work".to_owned());
    query
}

fn with_cursor(mut query: RecordsQuery, cursor: &str) -> RecordsQuery {
    if let Reading::List(options) = &mut query.reading {
        options.cursor = Some(cursor.to_owned());
    }
    query
}

#[test]
fn every_record_comes_once_however_pages_are_cut() {
    let world = world();
    let reader = client(&world, "grt_1");
    let whole = reader.keys(in_work(100));
    assert_eq!(whole.len(), 9);
    for limit in [1, 2, 4, 8, 9] {
        assert_eq!(reader.keys(in_work(limit)), whole);
    }
    let mut query = in_work(2);
    query.filters = vec![Filter::exact(field("seen"), "true")];
    assert_eq!(reader.keys(query), ["m8", "m6", "m4", "m2", "m0"]);
}

#[test]
fn a_list_cursor_is_bound_to_what_it_continues() {
    let world = world();
    let reader = client(&world, "grt_1");
    let page = reader.records(in_work(2)).unwrap();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert!(reader.records(with_cursor(in_work(5), cursor)).is_ok());

    let mut other_connection = in_work(2);
    other_connection.connection_id = Some("home".to_owned());
    let mut other_filter = in_work(2);
    other_filter.filters = vec![Filter::exact(field("seen"), "true")];
    let mut other_order = in_work(2);
    other_order.reading = Reading::List(ListOptions {
        order: Some(Order::Ascending),
        ..ListOptions::default()
    });
    for query in [other_connection, other_filter, other_order] {
        assert_eq!(
            code(reader.records(with_cursor(query, cursor))),
            ErrorCode::InvalidCursor
        );
    }
    let mut as_bookmark = in_work(2);
    as_bookmark.reading = Reading::Changes(ChangesSince::Bookmark(cursor.to_owned()));
    assert_eq!(code(reader.records(as_bookmark)), ErrorCode::InvalidCursor);
    for another in [client(&world, "grt_2"), world.owner()] {
        assert_eq!(
            code(another.records(with_cursor(in_work(2), cursor))),
            ErrorCode::InvalidCursor
        );
    }
    // The same grant under another token goes on.
    assert!(
        client(&world, "grt_1")
            .records(with_cursor(in_work(2), cursor))
            .is_ok()
    );
    for garbage in ["", "x", "AAAA", &"A".repeat(20_000)] {
        assert_eq!(
            code(reader.records(with_cursor(in_work(2), garbage))),
            ErrorCode::InvalidCursor
        );
    }
}

#[test]
fn a_cursor_of_another_stream_or_kind_does_not_open() {
    let world = world();
    let owner = world.owner();
    for number in ["1", "2"] {
        world.put(
            "work",
            "events",
            &json!({"day": "d", "number": number, "note": "tea"}),
        );
    }
    let mut query = limited("events", 1);
    query.connection_id = Some("work".to_owned());
    let events = owner.records(query).unwrap();
    let mut search = words("tea");
    search.limit = contract::query::PageLimit::new(1);
    let hits = owner.search(search).unwrap();
    for page in [events, hits] {
        let cursor = page["next_cursor"].as_str().unwrap();
        assert_eq!(
            code(owner.records(with_cursor(in_work(1), cursor))),
            ErrorCode::InvalidCursor
        );
    }
}

#[test]
fn a_search_is_paged_to_its_end_with_one_ranking() {
    let world = world();
    let reader = client(&world, "grt_1");
    let mut query = words("tea");
    query.limit = contract::query::PageLimit::new(4);
    query.count = contract::query::Count::Exact;
    let mut handles = Vec::new();
    loop {
        let page = reader.search(query.clone()).unwrap();
        assert_eq!(page["meta"]["count"], 18);
        assert_eq!(page["meta"]["count_accuracy"], "exact");
        assert_eq!(page["meta"]["recall"]["ranked_candidate_count"], 18);
        assert_eq!(page["meta"]["recall"]["sources_searched_count"], 2);
        for hit in page["data"].as_array().unwrap() {
            handles.push(format!("{}/{}", hit["connection_id"], hit["record_key"]));
        }
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        query.cursor = Some(cursor.to_owned());
    }
    handles.sort();
    handles.dedup();
    assert_eq!(handles.len(), 18);
}

// AN-04: a cursor continues one order.
#[test]
fn a_search_cursor_is_bound_to_query_and_grant_and_survives_a_moving_index() {
    let world = world();
    let reader = client(&world, "grt_1");
    let mut query = words("tea");
    query.limit = contract::query::PageLimit::new(3);
    let page = reader.search(query.clone()).unwrap();
    query.cursor = page["next_cursor"].as_str().map(str::to_owned);
    let mut other_words = query.clone();
    other_words.q = "TEA".to_owned();
    let mut other_streams = query.clone();
    other_streams.streams = vec![stream("messages")];
    let mut other_connection = query.clone();
    other_connection.connection_id = Some("work".to_owned());
    let mut other_order = query.clone();
    other_order.order = SearchOrder::Newest;
    for other in [other_words, other_streams, other_connection, other_order] {
        assert_eq!(code(reader.search(other)), ErrorCode::InvalidCursor);
    }
    assert_eq!(
        code(world.owner().search(query.clone())),
        ErrorCode::InvalidCursor
    );
    let page = reader.search(query.clone()).unwrap();
    assert_eq!(page["meta"]["warnings"], json!([]));
    world.message(&json!({"id": "new", "subject": "coffee"}));
    let page = reader.search(query).unwrap();
    assert_eq!(page["meta"]["warnings"][0]["code"], "ranking_changed");
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
}

/// Decisions 12 and 15: a page tells that its ranking moved on only where something that is seen changed.
#[test]
fn a_search_goes_on_without_a_word_when_only_hidden_things_changed() {
    let world = World::mail();
    world.connect(CHAT, "chat", "Chat");
    let put = |id: &str, subject: &str, secret: &str, day: &str| {
        let record = json!({"id": id, "subject": subject, "secret": secret, "received_at": day});
        world.message(&record);
    };
    for at in 0..5 {
        put(&format!("m{at}"), "tea", "1", "2026-02-01");
    }
    let granted =
        json!({"name": "messages", "instance_ids": ["work"], "fields": ["id", "subject"]});
    let client = |member: &str, limit: serde_json::Value| {
        let mut granted = granted.clone();
        granted[member] = limit;
        world.mail_client(json!([granted]))
    };
    let few = client("resources", json!(["m0", "m1", "m2", "m3", "m4"]));
    let recent = client(
        "time_constraint",
        json!({"field": "received_at", "since": "2026-01-01"}),
    );
    let mut query = words("tea");
    query.limit = contract::query::PageLimit::new(2);
    let begin = |reader: &Reader| {
        let mut query = query.clone();
        let page = reader.search(query.clone()).unwrap();
        query.cursor = page["next_cursor"].as_str().map(str::to_owned);
        query
    };
    let warned = |reader: &Reader, query: &SearchQuery| {
        let page = reader.search(query.clone()).unwrap();
        assert_eq!(page["data"].as_array().unwrap().len(), 2);
        page["meta"]["warnings"][0]["code"] == "ranking_changed"
    };
    let owner = world.owner();
    let cursors = [begin(&few), begin(&recent), begin(&owner)];
    let answer = || {
        [
            warned(&few, &cursors[0]),
            warned(&recent, &cursors[1]),
            warned(&owner, &cursors[2]),
        ]
    };
    assert_eq!(answer(), [false; 3]);
    // Something else, something of theirs that is hidden, and a record that is not theirs.
    world.attachment(&json!({"id": "x", "message_id": "m0"}));
    assert_eq!(answer()[..2], [false; 2]);
    put("m0", "tea", "2", "2026-02-01");
    put("old", "tea", "1", "2025-02-01");
    assert_eq!(answer(), [false, false, true]);
    put("m5", "coffee", "1", "2026-02-01");
    assert_eq!(answer(), [false, true, true]);
    put("m4", "tea", "1", "2025-02-01");
    assert_eq!(answer(), [false, true, true]);
    put("m4", "milk", "1", "2025-02-01");
    assert!(answer()[0]);
}
