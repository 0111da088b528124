//! One record that was damaged on the disk keeps nobody from the others, and is named.

use contract::page::WarningCode;
use contract::query::{ChangesSince, Count, ListOptions, Reading};
use serde_json::{Value, json};

use crate::fixture::{MAIL, World, ids, limited, words};

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
