//! One record that was damaged on the disk keeps nobody from the others, and is named.

use contract::aggregate::{GroupBy, Grouping, Metric};
use contract::page::WarningCode;
use contract::query::{ChangesSince, Count, ListOptions, Reading};
use serde_json::{Value, json};

use crate::fixture::{MAIL, World, aggregate, field, ids, limited, words};

/// Four messages, the second of which is damaged.
fn damaged() -> World {
    let world = World::mail();
    for (id, subject) in [
        ("a", "heron"),
        ("b", "zyzzyva"),
        ("c", "heron"),
        ("d", "heron"),
    ] {
        let received = "2026-03-01T00:00:00Z";
        let record =
            json!({"id": id, "subject": format!("{subject} everyword"), "received_at": received});
        world.message(&record);
    }
    world.store.settle_index().unwrap();
    world.with_a_changed_letter("zyzzyva")
}

/// The messages of the warnings that a record was damaged.
fn told(page: &Value) -> Vec<String> {
    let warnings = page["meta"]["warnings"].as_array().unwrap().iter();
    let code = WarningCode::RecordDamaged;
    let damaged = warnings.filter(|one| one["code"] == code.as_str());
    damaged
        .map(|one| one["message"].as_str().unwrap().to_owned())
        .collect()
}

// TR-35: pages, feeds and searches leave a damaged record out and name it; everything else is given.
#[test]
fn a_damaged_record_is_left_out_and_named_and_nothing_else_is_missing() {
    let world = damaged();
    let owner = world.owner();
    for limit in [1, 2, 3, 10] {
        assert_eq!(owner.keys(limited("messages", limit)), ["d", "c", "a"]);
    }
    let page = owner.list("messages", ListOptions::default()).unwrap();
    let [named] = told(&page).try_into().unwrap();
    assert!(named.contains("'b' of work/messages"), "{named}");
    assert!(named.contains("importing it again"), "{named}");

    let mut changes = limited("messages", 10);
    changes.reading = Reading::Changes(ChangesSince::Beginning);
    let page = owner.records(changes).unwrap();
    assert_eq!(ids(&page), ["a", "c", "d"]);
    assert_eq!(told(&page).len(), 1);

    let page = owner.search(words("everyword")).unwrap();
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    assert!(told(&page)[0].contains("'b' of work/messages"), "{page}");
    let page = owner.search(words("heron")).unwrap();
    assert!(told(&page).is_empty());
}

/// Three letters of different days and sizes, of which the latest and largest is damaged.
fn with_a_damaged_largest() -> World {
    let world = World::mail();
    for (id, subject, day, size) in [
        ("a", "heron", 2, 20),
        ("b", "zyzzyva", 9, 90),
        ("c", "heron", 3, 30),
    ] {
        let received = format!("2026-03-0{day}T00:00:00Z");
        let record = json!({"id": id, "subject": subject, "received_at": received, "size_bytes": size, "seen": true});
        let emitted = format!("2026-04-0{day}T00:00:00Z");
        let key = contract::key::RecordKey::single(id).unwrap();
        let body = contract::json::RecordBody::parse(record.to_string()).unwrap();
        let op = store::records::ChangeOp::Upsert(body);
        world.change_at(&emitted, ("work", "messages"), key, op);
    }
    world.store.settle_index().unwrap();
    world.with_a_changed_letter("zyzzyva")
}

// TR-35: the smallest and largest value, the span of a page and the schema are made from the others, and a figure says so.
#[test]
fn figures_are_made_without_a_damaged_record_and_say_so() {
    let world = with_a_damaged_largest();
    let owner = world.owner();
    let by_seen = Grouping::new(GroupBy::Field(field("seen")), None).unwrap();
    for (metric, figure) in [
        (Metric::Max(field("size_bytes")), json!(30)),
        (
            Metric::Max(field("received_at")),
            json!("2026-03-03T00:00:00Z"),
        ),
        (Metric::Min(field("size_bytes")), json!(20)),
    ] {
        let is_min = matches!(metric, Metric::Min(_));
        let answer = owner.aggregate(aggregate(metric.clone(), None)).unwrap();
        assert_eq!(answer["value"], figure, "{answer}");
        if is_min {
            assert_eq!(answer["filtered_record_count"], 3, "{answer}");
            assert!(
                answer["meta"]["warnings"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
            );
            continue;
        }
        assert!(
            told(&answer)[0].contains("'b' of work/messages"),
            "{answer}"
        );
        let grouped = owner
            .aggregate(aggregate(metric, Some(by_seen.clone())))
            .unwrap();
        assert_eq!(grouped["groups"][0]["value"], figure, "{grouped}");
        assert_eq!(told(&grouped).len(), 1);
    }
    let spanning = ListOptions {
        time_span: true,
        ..ListOptions::default()
    };
    let page = owner.list("messages", spanning).unwrap();
    assert_eq!(
        page["meta"]["window"]["latest_at"],
        "2026-03-03T00:00:00.000Z"
    );
    assert_eq!(told(&page).len(), 1, "{page}");
    let schema = owner
        .schema(contract::schema::SchemaQuery::default())
        .unwrap();
    assert!(schema.to_string().contains("2026-04-03"), "{schema}");
}

#[test]
fn who_may_see_only_some_records_is_not_told_which_one_it_was() {
    let world = damaged();
    let fields = json!(["id", "subject", "received_at"]);
    let whole = json!([{"name": "messages", "instance_ids": ["work"], "fields": fields}]);
    let whole = world.mail_client(whole);
    let page = whole.list("messages", ListOptions::default()).unwrap();
    assert!(told(&page)[0].contains("'b' of work/messages"), "{page}");
    let range = json!({"field": "received_at", "since": "2026-01-01"});
    let some = json!([{"name": "messages", "instance_ids": ["work"], "fields": fields, "time_constraint": range}]);
    let some = world.mail_client(some);
    let page = some.list("messages", ListOptions::default()).unwrap();
    assert_eq!(ids(&page), ["d", "c", "a"]);
    let [named] = told(&page).try_into().unwrap();
    assert!(
        !named.contains("'b'") && named.contains("disk: 1"),
        "{named}"
    );
}

// TR-31, TR-32: while the index is behind, a count is not called exact, and how far it is, is told.
#[test]
fn a_count_of_an_index_that_is_behind_is_not_called_exact() {
    let world = World::mail();
    for number in 0..4 {
        let record = json!({"id": format!("m{number}"), "subject": "everyword", "from_email": "a@b.example"});
        world.message(&record);
    }
    let counted = || {
        let mut query = words("everyword");
        query.count = Count::Exact;
        world.owner().search(query).unwrap()["meta"].clone()
    };
    let meta = counted();
    assert_eq!(
        (&meta["count"], &meta["count_accuracy"]),
        (&json!(4), &json!("exact"))
    );
    let mut declared: Value = serde_json::from_str(MAIL).unwrap();
    declared["declaration_version"] = json!("2");
    let fields = &mut declared["streams"][0]["query"]["search"]["lexical_fields"];
    fields.as_array_mut().unwrap().push(json!("from_email"));
    let declared = contract::declaration::Declaration::parse(&declared.to_string()).unwrap();
    world.store.declare(&declared).unwrap();
    let meta = counted();
    assert_eq!(meta["count_accuracy"], "estimated", "{meta}");
    assert_eq!(meta["index_maintenance"]["percent"], 0, "{meta}");
    let warnings = meta["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|one| one["code"] == "count_downgraded"),
        "{meta}"
    );
    world.store.settle_index().unwrap();
    let meta = counted();
    assert_eq!(meta["count_accuracy"], "exact", "{meta}");
}
