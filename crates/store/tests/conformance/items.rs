//! Arrays of scalars: filtered, grouped and searched by their items where the declaration says so, also in a store that had
//! them before it did.

use contract::declaration::Declaration;
use contract::scalar::Scalar;
use serde_json::{Value as Json, json};
use store::Store;
use store::search::{Metric, Scope, Test, Value};

use crate::aggregates::{by, counted, counts, number};
use crate::fixture::{
    MAIL, Work, compute, field, filtered, found_sorted, message_with, messages, on_every_mailbox,
    scope,
};

/// Adds messages, and declares what may be asked of their arrays only then. There are more arrays than a new index has
/// places for.
fn add_arrays(store: &dyn Store) {
    store.put(vec![
        message_with("a", r#""size_bytes":1,"labels":["work","travel","work"]"#),
        message_with("b", r#""size_bytes":20,"labels":["travel"]"#),
        message_with("c", r#""size_bytes":300,"labels":[]"#),
    ]);
    store.settle_index().unwrap();
    let mut document: Json = serde_json::from_str(MAIL).unwrap();
    document["declaration_version"] = json!("2");
    let stream = &mut document["streams"][0];
    stream["query"]["range_filters"]["labels"] = json!(["contains"]);
    stream["query"]["search"]["lexical_fields"] = json!(["subject", "body", "labels"]);
    let grouped = stream["query"]["aggregations"]["group_by"].as_array_mut();
    grouped.unwrap().extend([json!("labels"), json!("pages")]);
    stream["query"]["aggregations"]["count_distinct"] = json!(["labels"]);
    for number in 0..9 {
        let name = format!("list{number}");
        stream["schema"]["properties"][&name] =
            json!({"type": "array", "items": {"type": "string"}});
        stream["query"]["range_filters"][&name] = json!(["contains"]);
    }
    for (name, items) in [
        ("pages", json!({"type": "integer"})),
        ("days", json!({"type": "string", "format": "date-time"})),
    ] {
        stream["schema"]["properties"][name] = json!({"type": "array", "items": items});
        stream["query"]["range_filters"][name] = json!(["contains"]);
    }
    let declaration = Declaration::parse(&document.to_string()).unwrap();
    store.declare(&declaration).unwrap();
    store.put(vec![
        message_with(
            "d",
            r#""size_bytes":4000,"labels":["Work travel"],"pages":[7,7.0,12]"#,
        ),
        message_with(
            "e",
            r#""days":["2026-03-01T10:00:00Z","2026-03-02"],"list8":["x"]"#,
        ),
    ]);
}

fn containing(name: &str, items: &[Scalar]) -> Scope {
    filtered(messages("work"), name, Test::Contains(items.to_vec()))
}

fn text(text: &str) -> Scalar {
    Scalar::Text(text.to_owned())
}

fn keys(store: &dyn Store, scope: &Scope) -> String {
    use store::records::{Direction, OrderBy, PageRequest};
    let request = PageRequest::first(OrderBy::Key, Direction::Ascending, 100);
    let page = store.select(scope, &request).unwrap();
    let keys: Vec<String> = page.records.iter().map(|one| one.key.to_string()).collect();
    keys.join(" ")
}

#[test]
fn records_are_filtered_by_the_items_of_an_array() {
    on_every_mailbox(|store| {
        add_arrays(store);
        let day = contract::time::Instant::parse("2026-03-01T11:00:00+01:00").unwrap();
        for (name, items, expected) in [
            ("labels", vec![text("travel")], "a b"),
            ("labels", vec![text("work"), text("Work travel")], "a d"),
            ("labels", vec![text("wor")], ""),
            ("labels", vec![], ""),
            ("pages", vec![Scalar::Integer(12)], "d"),
            ("days", vec![Scalar::Instant(day)], "e"),
            ("list8", vec![text("x")], "e"),
        ] {
            let scope = containing(name, &items);
            assert_eq!(keys(store, &scope), expected, "{name} {items:?}");
            let count = compute(store, scope, Metric::Count, None).matched;
            assert_eq!(count, expected.split_whitespace().count() as u64);
        }
        let mut except = messages("work");
        except.rules.except = containing("labels", &[text("travel")]).filters;
        assert_eq!(keys(store, &except), "c d e");
    });
}

#[test]
fn a_record_counts_in_the_group_of_each_item() {
    on_every_mailbox(|store| {
        add_arrays(store);
        let all = counts(store, by("labels", 10));
        assert_eq!(counted(&all.groups), "travel=2 none=2 Work travel=1 work=1");
        assert_eq!((all.matched, all.other_count), (5, 0));
        let some = counts(store, by("labels", 1));
        assert_eq!(
            (counted(&some.groups).as_str(), some.other_count),
            ("travel=2", 4)
        );
        assert_eq!(counted(&counts(store, by("pages", 2)).groups), "none=4 7=1");
        let distinct = number(store, Metric::CountDistinct(field("labels")));
        assert_eq!(distinct, Value::Integer(3));
        let sums = compute(
            store,
            messages("work"),
            Metric::Sum(field("size_bytes")),
            Some(by("labels", 10)),
        );
        let sums = sums.groups.iter().map(|group| group.value.clone().unwrap());
        let expected = [21, 300, 4000, 1].map(Value::Integer);
        assert_eq!(sums.collect::<Vec<_>>(), expected);
    });
}

#[test]
fn words_are_found_in_the_items_of_an_array() {
    on_every_mailbox(|store| {
        add_arrays(store);
        let labels = || vec![scope("work", "messages", &["labels"])];
        assert_eq!(found_sorted(store, "travel", labels()), ["a", "b", "d"]);
        assert_eq!(found_sorted(store, "work travel", labels()), ["a", "d"]);
    });
}
