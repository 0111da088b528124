//! Grants with rules on rows: what is seen, what leaves, and what closes.

use contract::error::ErrorCode;
use contract::query::{ChangesSince, Reading};
use serde_json::{Value, json};

use crate::fixture::{Reader, World, code, every, ids, list, one, window, words};

fn under(world: &World, rules: &Value) -> Reader {
    let mut stream = json!({"name": "messages", "fields": ["id", "body"]});
    let members = stream.as_object_mut().unwrap();
    members.extend(rules.as_object().unwrap().clone());
    world.mail_client(json!([stream]))
}

fn filled() -> World {
    let world = World::mail();
    for (id, from, size, subject) in [
        ("a", "ada", 1, "Tea"),
        ("b", "bob", 5, "The Café"),
        ("c", "cleo", 9, "Café, milk"),
    ] {
        world.message(&json!({"id": id, "body": "tea", "from_email": from, "size_bytes": size, "subject": subject}));
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
{"where":[{"field":"from_email","prefix":"c"}]} | c
{"where":[{"field":"from_email","prefix":"d"}]} |
{"except":[{"field":"from_email","prefix":"b"}]} | a c d
{"where":[{"field":"subject","word":"CAFE"}]} | b c
{"where":[{"field":"subject","word":"milk cafe"}]} | c
{"where":[{"field":"subject","word":"caf"}]} |
{"except":[{"field":"subject","word":"café"}]} | a d
{"except":[{"field":"subject","word":"nowhere"}]} | a b c d
"#;

/// Lists, searches and single records show what is seen under each of the rules; no stream tells of `hidden`.
fn decided_by(world: &World, table: &str, hidden: &str) {
    for row in table.trim().lines() {
        let (rules, seen) = row.split_once(" |").unwrap();
        let reader = under(world, &serde_json::from_str(rules).unwrap());
        let seen: Vec<&str> = seen.split_whitespace().collect();
        let mut found = ids(&reader.records(every()).unwrap());
        found.sort_unstable();
        assert_eq!(found, seen, "{rules}");
        let answer = reader.search(words("tea")).unwrap();
        let hits = answer["data"].as_array().unwrap();
        assert_eq!(hits.len(), seen.len(), "{rules}");
        for id in ["a", "b", "c", "d"] {
            let record = reader.record(one(id));
            assert_eq!(record.is_ok(), seen.contains(&id), "{rules} {id}");
        }
        let streams = reader.streams(None).unwrap().to_string();
        assert!(!streams.contains(hidden), "{streams}");
    }
}

// GM-01: every surface shows the records that meet every rule and no exception, whatever fields are granted.
#[test]
fn rules_decide_on_every_surface() {
    decided_by(&filled(), RULES, "from_email");
}

/// A world in which messages are filtered, grouped and searched by their labels.
fn labelled() -> World {
    let world = World::mail();
    let mut declared: Value = serde_json::from_str(include_str!("mail.json")).unwrap();
    declared["declaration_version"] = json!("with labels");
    let streams = declared["streams"].as_array_mut().unwrap();
    let messages = streams.iter_mut().find(|one| one["name"] == "messages");
    let query = &mut messages.unwrap()["query"];
    query["range_filters"]["labels"] = json!(["contains"]);
    let searched = query["search"]["lexical_fields"].as_array_mut().unwrap();
    searched.push(json!("labels"));
    let declared = contract::declaration::Declaration::parse(&declared.to_string()).unwrap();
    world.store.declare(&declared).unwrap();
    for (id, labels) in [
        ("a", json!(["work", "travel"])),
        ("b", json!(["travel"])),
        ("c", json!([])),
    ] {
        world.message(&json!({"id": id, "body": "tea", "labels": labels}));
    }
    world.message(&json!({"id": "d", "body": "tea"}));
    world
}

/// Rules on the items of an array, and the records that are seen under them.
const ARRAY_RULES: &str = r#"
{"where":[{"field":"labels","contains":"travel"}]} | a b
{"where":[{"field":"labels","contains":"travel"},{"field":"labels","contains":"work"}]} | a
{"where":[{"field":"labels","in":["work","none"]}]} | a
{"where":[{"field":"labels","eq":"work"}]} | a
{"where":[{"field":"labels","contains":"trav"}]} |
{"except":[{"field":"labels","contains":"work"}]} | b c d
{"where":[{"field":"labels","contains":"travel"}],"except":[{"field":"labels","in":["work"]}]} | b
"#;

#[test]
fn rules_on_arrays_ask_for_an_item() {
    let world = labelled();
    decided_by(&world, ARRAY_RULES, "labels");
    for rule in [
        json!({"field": "labels", "gte": "work"}),
        json!({"field": "labels", "word": "work"}),
        json!({"field": "body", "contains": "tea"}),
    ] {
        let reader = under(&world, &json!({"where": [rule]}));
        assert_eq!(
            code(reader.records(every())),
            ErrorCode::GrantStreamNotAllowed,
            "{rule}"
        );
    }
}

#[test]
fn a_match_in_an_array_is_proven_and_can_be_read() {
    let world = labelled();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id", "labels"]}]));
    let hits = reader.find("travel");
    assert_eq!(hits.len(), 2);
    let hit = hits.iter().find(|hit| hit["record_key"] == "a").unwrap();
    let excerpt = &hit["evidence_excerpts"][0];
    assert_eq!(excerpt["field_path"], "labels");
    assert_eq!(excerpt["preview_text"], "work\n<mark>travel</mark>");
    let text = reader.window(window(
        "a",
        "labels",
        contract::window::WindowSelector::default(),
    ));
    assert_eq!(text.unwrap()["window"]["text"], "work\ntravel");
    assert!(world.owner().find("work").len() == 1);
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

fn parts_of_letters(world: &World, rules: &Value) -> Reader {
    let mut stream = json!({"name": "attachments", "fields": ["id", "name"]});
    let members = stream.as_object_mut().unwrap();
    members.extend(rules.as_object().unwrap().clone());
    world.mail_client(json!([stream]))
}

fn feed_since(mark: Option<&str>) -> contract::query::RecordsQuery {
    let mut feed = list("attachments", contract::query::ListOptions::default());
    feed.reading = Reading::Changes(match mark {
        None => ChangesSince::Beginning,
        Some(mark) => ChangesSince::Bookmark(mark.to_owned()),
    });
    feed
}

fn mark_of(reader: &Reader) -> String {
    let page = reader.records(feed_since(None)).unwrap();
    page["next_changes_since"].as_str().unwrap().to_owned()
}

// GM-04: a rule on the record that a foreign key names follows that record, though the stream itself does not change.
#[test]
fn a_rule_on_related_records_follows_them() {
    let world = filled();
    for (id, letter) in [("x", "a"), ("y", "b"), ("z", "none")] {
        world.attachment(&json!({"id": id, "message_id": letter, "name": "tea"}));
    }
    let only = json!({"where": [{"via": "message_id", "field": "from_email", "eq": "ada"}]});
    let except = json!({"except": [{"via": "message_id", "field": "from_email", "prefix": "a"}]});
    let (only, except) = (
        parts_of_letters(&world, &only),
        parts_of_letters(&world, &except),
    );
    let seen = |reader: &Reader| {
        let mut found = ids(&reader
            .records(list("attachments", contract::query::ListOptions::default()))
            .unwrap());
        let hits = reader.search(words("tea")).unwrap();
        assert_eq!(hits["data"].as_array().unwrap().len(), found.len());
        found.sort_unstable();
        found
    };
    assert_eq!(seen(&only), ["x"]);
    assert_eq!(seen(&except), ["y", "z"]);
    let marks = (mark_of(&only), mark_of(&except));
    // What is hidden changes, and nothing of it shows.
    world.message(&json!({"id": "e", "body": "tea", "from_email": "eve"}));
    world.attachment(&json!({"id": "w", "message_id": "e", "name": "tea"}));
    world.message(&json!({"id": "e", "body": "tea", "from_email": "ada"}));
    world.delete("work", "attachments", "w");
    world.message(&json!({"id": "f", "body": "tea", "from_email": "ada"}));
    let page = only.records(feed_since(Some(&marks.0))).unwrap();
    assert_eq!(ids(&page), Vec::<String>::new());
    // The letter of one moves: the part that was seen is not any more, so what a client keeps of it must be read anew.
    world.message(&json!({"id": "a", "body": "tea", "from_email": "bob"}));
    assert_eq!(seen(&only), Vec::<String>::new());
    assert_eq!(seen(&except), ["x", "y", "z"]);
    for (reader, mark) in [(&only, &marks.0), (&except, &marks.1)] {
        let refused = reader.records(feed_since(Some(mark)));
        assert_eq!(code(refused), ErrorCode::CursorExpired);
    }
    assert_eq!(ids(&except.records(feed_since(None)).unwrap()).len(), 3);
}

// GM-03: a rule through a relationship that is not declared any more closes the stream.
#[test]
fn a_rule_through_a_removed_relationship_closes_the_stream() {
    let world = filled();
    world.attachment(&json!({"id": "x", "message_id": "a", "name": "tea"}));
    let except = json!({"except": [{"via": "message_id", "field": "from_email", "eq": "nobody"}]});
    let reader = parts_of_letters(&world, &except);
    let all = || reader.records(list("attachments", contract::query::ListOptions::default()));
    assert_eq!(ids(&all().unwrap()), ["x"]);
    let mut declared: Value = serde_json::from_str(include_str!("mail.json")).unwrap();
    declared["declaration_version"] = json!("without attachments of letters");
    declared["streams"][0]["relationships"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    declared["streams"][0]["query"]["expand"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    let declared = contract::declaration::Declaration::parse(&declared.to_string()).unwrap();
    world.store.declare(&declared).unwrap();
    assert_eq!(code(all()), ErrorCode::GrantStreamNotAllowed);
}

// GM-04: a record that is written after its related record left the rule is never shown.
#[test]
fn what_is_written_after_a_related_record_left_is_never_shown() {
    let world = World::mail();
    let only = json!({"where": [{"via": "message_id", "field": "from_email", "eq": "ada"}]});
    let reader = parts_of_letters(&world, &only);
    let write = |at: usize| {
        let inside = at.is_multiple_of(2);
        let from = if inside { "ada" } else { "eve" };
        if inside {
            world.attachment(&json!({"id": "x", "message_id": "a", "name": "tea inside"}));
        }
        world.message(&json!({"id": "a", "body": "tea", "from_email": from}));
        if !inside {
            world.attachment(&json!({"id": "x", "message_id": "a", "name": "tea outside"}));
        }
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..100).for_each(write);
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let search = reader.search(words("tea"));
            let list = reader.records(crate::fixture::limited("attachments", 3));
            for answer in [search, list].into_iter().flatten() {
                assert!(!answer.to_string().contains("outside"));
            }
        }
    });
}

// GM-08: of a redacted field the granted part is shown, and nothing is found, ordered, grouped or filtered by it.
#[test]
fn a_redacted_field_is_shown_in_part_and_asked_about_by_nobody() {
    let world = World::mail();
    world.message(&json!({"id": "a", "subject": "tea", "body": "biscuits for tea", "from_email": "ada@x.example",
        "received_at": "2026-03-04T10:00:00Z", "secret": "pin"}));
    let reader = world.mail_client(json!([{
        "name": "messages",
        "fields": ["id", "subject", "body", "from_email", "received_at", "secret", "size_bytes"],
        "redact": {"body": "first:4", "from_email": "domain", "received_at": "month", "secret": "hash", "size_bytes": "presence"}
    }]));
    let shown = reader.record(one("a")).unwrap()["data"].clone();
    let hash = shown["secret"].as_str().unwrap().to_owned();
    assert!(hash.starts_with("hash:"), "{hash}");
    let expected = json!({"id": "a", "subject": "tea", "body": "bisc", "from_email": "x.example",
        "received_at": "2026-03", "secret": hash, "size_bytes": false});
    assert_eq!(shown, expected);
    assert_eq!(
        reader.record(one("a")).unwrap()["data"],
        shown,
        "a hash is stable"
    );
    for word in ["biscuits", "bisc", "pin"] {
        let found = reader.search(words(word)).unwrap();
        assert_eq!(found["data"].as_array().unwrap().len(), 0, "{word}");
    }
    assert_eq!(
        reader.search(words("tea")).unwrap()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for name in ["body", "from_email", "received_at", "secret", "size_bytes"] {
        let filter = contract::query::Filter::exact(crate::fixture::field(name), "1");
        let asked = reader.records(crate::fixture::filtered("messages", vec![filter]));
        assert_eq!(code(asked), ErrorCode::FieldNotGranted, "{name}");
    }
    let told = reader.stream("messages").unwrap();
    assert_eq!(told["cursor_field"], Value::Null);
    assert_eq!(
        told["schema"]["properties"]["body"],
        json!({"type": ["string", "null"], "x_pdpp_redacted": "first:4"})
    );
    assert_eq!(
        told["field_capabilities"]["from_email"]["exact_filter"]["usable"],
        json!(false),
        "{told}"
    );
    assert!(!told["query"].to_string().contains("from_email"), "{told}");
}
