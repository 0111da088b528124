//! A search by time: which time counts, and that nothing else shows in the order.

use contract::error::ErrorCode;
use contract::query::PageLimit;
use contract::search::{SearchOrder, SearchQuery, parse_period};
use serde_json::{Value, json};

use crate::fixture::*;
use crate::leaks::cases;

fn world() -> World {
    let world = World::mail();
    world.connect(CHAT, "chat", "Chat");
    // Neither keys nor the order of arrival are those of the times.
    for (id, sent, received) in [
        ("c", Some("2026-02-03T00:00:00Z"), "2026-05-01T00:00:00Z"),
        ("a", Some("2026-02-01T00:00:00Z"), "2026-05-02T00:00:00Z"),
        ("d", None, "2026-02-02T00:00:00Z"),
        ("b", Some("2026-02-03T00:00:00Z"), "2026-05-03T00:00:00Z"),
        ("e", None, "not a time"),
    ] {
        let mut record = json!({"id": id, "subject": "tea", "received_at": received});
        if let Some(sent) = sent {
            record["sent_at"] = json!(sent);
        }
        world.message(&record);
    }
    let late = json!({"id": "z", "text": "tea", "sent_at": "2026-02-04T00:00:00+01:00"});
    world.put("chat", "messages", &late);
    world
}

fn query(order: SearchOrder, limit: u32) -> SearchQuery {
    let mut query = words("tea");
    query.order = order;
    query.limit = PageLimit::new(limit);
    query
}

fn keys(page: &Value) -> Vec<String> {
    let hits = page["data"].as_array().unwrap().iter();
    hits.map(|hit| hit["record_key"].as_str().unwrap().to_owned())
        .collect()
}

fn all(reader: &Reader, order: SearchOrder, limit: u32) -> String {
    let mut query = query(order, limit);
    let mut found = Vec::new();
    loop {
        let page = reader.search(query.clone()).unwrap();
        assert_eq!(page["meta"]["warnings"], json!([]));
        found.extend(keys(&page));
        query.cursor = page["next_cursor"].as_str().map(str::to_owned);
        if query.cursor.is_none() {
            return found.concat();
        }
    }
}

#[test]
fn hits_come_by_the_time_they_show_with_exact_pages() {
    // AN-01, AN-02
    let world = world();
    let owner = world.owner();
    for limit in [1, 2, 100] {
        assert_eq!(all(&owner, SearchOrder::Newest, limit), "zbcdae");
        assert_eq!(all(&owner, SearchOrder::Oldest, limit), "adbcze");
    }
    let page = owner.search(query(SearchOrder::Newest, 5)).unwrap();
    let shown = page["data"].as_array().unwrap().iter();
    let shown: Vec<&str> = shown
        .map(|hit| hit["authored_at"].as_str().unwrap())
        .collect();
    assert_eq!(
        shown[1..4],
        [
            "2026-02-03T00:00:00Z",
            "2026-02-03T00:00:00Z",
            "2026-02-02T00:00:00Z"
        ]
    );
    // A score would say nothing about this order.
    assert!(page["data"][0].get("score").is_none());
}

#[test]
fn only_times_that_are_granted_order_a_search() {
    // AN-03
    let world = world();
    let granted = |fields: Value| {
        let streams = json!([{"name": "messages", "instance_ids": ["work"], "fields": fields}]);
        world.mail_client(streams)
    };
    let both = granted(json!(["id", "subject", "sent_at", "received_at"]));
    assert_eq!(all(&both, SearchOrder::Newest, 2), "bcdae");
    let received = granted(json!(["id", "subject", "received_at"]));
    assert_eq!(all(&received, SearchOrder::Newest, 2), "bacde");
    let sent = granted(json!(["id", "subject", "sent_at"]));
    assert_eq!(all(&sent, SearchOrder::Oldest, 2), "abcde");
    // Without a time the keys are left, and not the order of arrival, which may be that of a hidden time.
    let none = granted(json!(["id", "subject"]));
    assert_eq!(all(&none, SearchOrder::Newest, 2), "abcde");
    assert_eq!(all(&none, SearchOrder::Oldest, 3), "abcde");
}

#[test]
fn a_page_by_time_says_when_something_that_is_seen_changed() {
    // AN-01
    let world = world();
    let owner = world.owner();
    let mut query = query(SearchOrder::Newest, 2);
    let page = owner.search(query.clone()).unwrap();
    query.cursor = page["next_cursor"].as_str().map(str::to_owned);
    let newer = json!({"id": "n", "subject": "tea", "sent_at": "2026-03-01T00:00:00Z"});
    world.message(&newer);
    let page = owner.search(query).unwrap();
    assert_eq!(keys(&page), ["c", "d"]);
    assert_eq!(page["meta"]["warnings"][0]["code"], "ranking_changed");
}

// FI-11: pages of a search lose and repeat nothing while records are written that the grant does not see.
#[test]
fn walks_under_hidden_writes_lose_and_repeat_nothing() {
    let world = World::mail();
    let put = |id: &str, day: &str, at: usize| {
        let texts = [
            "bridge",
            "bridge vendors",
            "vendor of a bridge",
            "the vendors",
            "bridges",
        ];
        let subject = format!("{} {}", texts[at % texts.len()], "x ".repeat(at % 7));
        world.message(&json!({"id": id, "received_at": day, "subject": subject}));
    };
    for at in 0..25 {
        put(&format!("m{at:02}"), "2026-02-01", at);
    }
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id", "subject"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]));
    let whole = walk(&reader, "bridge vendors", 100, &mut |_| ());
    assert_eq!(whole.len(), 25);
    for number in 0..cases(40) as usize {
        let limit = u32::try_from(3 + number % 9).unwrap();
        let seen = walk(&reader, "bridge vendors", limit, &mut |seen| {
            // New ones, changed ones, and some that are deleted.
            let at = (number * 31 + seen) % 40;
            let id = format!("h{at:02}");
            if at.is_multiple_of(7) {
                world.delete("work", "messages", &id);
            } else {
                put(&id, "2025-02-01", number + seen);
            }
        });
        assert_eq!(seen, whole, "walk {number}");
    }
}

/// The records of all pages of a search. Between two of them, something is done with how many there were.
pub(crate) fn walk(
    reader: &Reader,
    q: &str,
    limit: u32,
    between: &mut dyn FnMut(usize),
) -> Vec<String> {
    let (mut seen, mut query) = (Vec::new(), words(q));
    query.limit = PageLimit::new(limit);
    loop {
        let page = reader.search(query.clone()).unwrap();
        let hits = page["data"].as_array().unwrap().iter();
        seen.extend(hits.map(|hit| format!("{} {}", hit["record_key"], hit["near"])));
        query.cursor = page["next_cursor"].as_str().map(str::to_owned);
        if query.cursor.is_none() {
            return seen;
        }
        between(seen.len());
    }
}

fn of_period(since: Option<&str>, until: Option<&str>) -> SearchQuery {
    let mut query = words("tea");
    query.order = SearchOrder::Oldest;
    query.period = parse_period(since, until).unwrap();
    query
}

#[test]
fn a_period_holds_in_every_stream_by_the_time_that_orders_hits() {
    let world = world();
    let owner = world.owner();
    let found = |since, until| keys(&owner.search(of_period(since, until)).unwrap());
    assert_eq!(found(Some("2026-02-02"), None), ["d", "b", "c", "z"]);
    assert_eq!(found(None, Some("2026-02-03")), ["a", "d"]);
    // What begins it belongs to it, and what ends it does not; no time is in no period.
    assert_eq!(found(Some("2026-02-02"), Some("2026-02-03")), ["d"]);
    assert_eq!(found(Some("1900-01-01"), None).len(), 5);
    // Pages go on in the period.
    let mut query = of_period(Some("2026-02-02"), None);
    query.limit = PageLimit::new(3);
    let first = owner.search(query.clone()).unwrap();
    query.cursor = first["next_cursor"].as_str().map(str::to_owned);
    assert_eq!(keys(&owner.search(query.clone()).unwrap()), ["z"]);
    query.period = parse_period(Some("2026-02-03"), None).unwrap();
    assert_eq!(code(owner.search(query)), ErrorCode::InvalidCursor);
    for (since, until, param) in [
        (Some("yesterday"), None, "since"),
        (None, Some("x"), "until"),
        (Some("2026-02-02"), Some("2026-02-02"), "until"),
    ] {
        let error = parse_period(since, until).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param));
    }
}

#[test]
fn a_period_is_not_searched_by_a_time_that_is_not_granted() {
    let world = world();
    let client = world.mail_client(json!([{"name": "messages", "fields": ["id", "subject"]}]));
    assert_eq!(keys(&client.search(words("tea")).unwrap()).len(), 5);
    let (code, param) = refusal(client.search(of_period(Some("2026-02-02"), None)));
    assert_eq!(
        (code, param.as_deref()),
        (ErrorCode::InvalidRequest, Some("since"))
    );
}
