//! Grants with rules on rows: what is seen, what leaves, and what closes.

use contract::error::ErrorCode;
use contract::query::{ChangesSince, Reading};
use serde_json::{Value, json};

use crate::fixture::{Reader, World, code, every, ids, list, one, words};

fn under(world: &World, rules: &Value) -> Reader {
    let mut stream = json!({"name": "messages", "fields": ["id", "body"]});
    let members = stream.as_object_mut().unwrap();
    members.extend(rules.as_object().unwrap().clone());
    world.mail_client(json!([stream]))
}

fn filled() -> World {
    let world = World::mail();
    for (id, from, size) in [("a", "ada", 1), ("b", "bob", 5), ("c", "cleo", 9)] {
        world.message(&json!({"id": id, "body": "tea", "from_email": from, "size_bytes": size}));
    }
    world.message(&json!({"id": "d", "body": "tea", "from_email": null}));
    world
}

/// Rules, and the records that are seen under them.
const RULES: &str = r#"
{"where":[{"field":"from_email","eq":"ada"}]} | a
{"where":[{"field":"from_email","in":["ada","cleo","nobody"]}]} | a c
{"where":[{"field":"from_email","eq":"nobody"}]} |
{"where":[{"field":"size_bytes","gte":"5"}]} | b c
{"where":[{"field":"size_bytes","gte":"2","lte":"5"}]} | b
{"where":[{"field":"size_bytes","gte":"2"},{"field":"from_email","eq":"cleo"}]} | c
{"except":[{"field":"from_email","eq":"ada"}]} | b c d
{"except":[{"field":"from_email","eq":"ada"},{"field":"size_bytes","gte":"9"}]} | b d
{"except":[{"field":"size_bytes","gte":"2","lte":"5"}]} | a c d
{"where":[{"field":"from_email","eq":"ada"}],"except":[{"field":"from_email","in":["ada"]}]} |
{"where":[{"field":"from_email","in":["ada","bob"]}],"except":[{"field":"size_bytes","lte":"1"}]} | b
"#;

// GM-01: every surface shows the records that meet every rule and no exception, whatever fields are granted.
#[test]
fn rules_decide_on_every_surface() {
    let world = filled();
    for row in RULES.trim().lines() {
        let (rules, seen) = row.split_once(" |").unwrap();
        let reader = under(&world, &serde_json::from_str(rules).unwrap());
        let seen: Vec<&str> = seen.split_whitespace().collect();
        let mut found = ids(&reader.records(every()).unwrap());
        found.sort_unstable();
        assert_eq!(found, seen, "{rules}");
        let answer = reader.search(words("tea")).unwrap();
        assert_eq!(
            answer["data"].as_array().unwrap().len(),
            seen.len(),
            "{rules}"
        );
        for id in ["a", "b", "c", "d"] {
            let record = reader.record(one(id));
            assert_eq!(record.is_ok(), seen.contains(&id), "{rules} {id}");
        }
        let streams = reader.streams(None).unwrap().to_string();
        assert!(!streams.contains("from_email"), "{streams}");
    }
}

// GM-02: a record that leaves a rule becomes a tombstone in the feed, and comes back as a record.
#[test]
fn a_record_that_leaves_a_rule_leaves_the_feed_as_a_deletion() {
    let world = filled();
    let reader = under(
        &world,
        &json!({"except": [{"field": "from_email", "eq": "eve"}]}),
    );
    let mut feed = list("messages", contract::query::ListOptions::default());
    feed.reading = Reading::Changes(ChangesSince::Beginning);
    let page = reader.records(feed.clone()).unwrap();
    let mark = page["next_changes_since"].as_str().unwrap().to_owned();
    feed.reading = Reading::Changes(ChangesSince::Bookmark(mark));
    let hidden = json!({"id": "a", "body": "milk", "from_email": "eve"});
    world.message(&hidden);
    let page = reader.records(feed.clone()).unwrap();
    assert_eq!(ids(&page), ["a"]);
    assert!(page.to_string().contains("deleted") && !page.to_string().contains("milk"));
    world.delete("work", "messages", "a");
    let gone = reader.records(feed.clone()).unwrap();
    assert_eq!(
        gone["data"], page["data"],
        "it cannot be told from a deletion"
    );
    world.message(&json!({"id": "a", "body": "milk", "from_email": "ada"}));
    assert!(reader.records(feed).unwrap().to_string().contains("milk"));
}

// GM-03: where the declaration does not allow a rule any more, nothing of the stream is seen.
#[test]
fn a_rule_that_the_declaration_does_not_allow_closes_the_stream() {
    let world = filled();
    let limited = under(
        &world,
        &json!({"except": [{"field": "size_bytes", "gte": "9"}]}),
    );
    let other = under(
        &world,
        &json!({"except": [{"field": "from_email", "eq": "ada"}]}),
    );
    assert_eq!(ids(&limited.records(every()).unwrap()).len(), 3);
    let mut declared: Value = serde_json::from_str(include_str!("mail.json")).unwrap();
    declared["declaration_version"] = json!("with other ranges");
    let streams = declared["streams"].as_array_mut().unwrap();
    let messages = streams
        .iter_mut()
        .find(|one| one["name"] == "messages")
        .unwrap();
    let ranges = messages["query"]["range_filters"].as_object_mut().unwrap();
    ranges.remove("size_bytes").unwrap();
    let declared = contract::declaration::Declaration::parse(&declared.to_string()).unwrap();
    world.store.declare(&declared).unwrap();
    assert_eq!(
        code(limited.records(every())),
        ErrorCode::GrantStreamNotAllowed
    );
    assert_eq!(
        code(limited.record(one("a"))),
        ErrorCode::GrantStreamNotAllowed
    );
    assert_eq!(ids(&other.records(every()).unwrap()).len(), 3);
}
