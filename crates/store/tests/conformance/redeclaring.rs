//! A declaration may change (decision 27): what is refused, and how records become findable by what is new.

use contract::declaration::{Declaration, Reading};
use serde_json::{Value as Json, json};
use store::StoreError;
use store::catalog::Declared;
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{AggregateRequest, Grouping, Metric, Test, Value};

use crate::fixture::{
    MAIL, Work, add_mail, compute, field, filtered, found, found_sorted, instant, message,
    message_with, messages, on_every_backend, on_every_mailbox, scope, search, stream, write,
};

/// The mail declaration with another version and one more change to its first stream.
fn changed(version: &str, change: impl Fn(&mut Json)) -> Declaration {
    let mut document: Json = serde_json::from_str(MAIL).unwrap();
    document["declaration_version"] = json!(version);
    change(&mut document["streams"][0]);
    Declaration::parse(&document.to_string()).unwrap()
}

fn with_lexical_sender(version: &str) -> Declaration {
    changed(version, |stream| {
        stream["query"]["search"]["lexical_fields"] = json!(["subject", "body", "from_email"]);
    })
}

#[test]
fn the_same_version_with_other_content_is_refused() {
    on_every_mailbox(|store| {
        let error = store.declare(&with_lexical_sender("1")).unwrap_err();
        let StoreError::Declaration(errors) = &error else {
            panic!("{error}")
        };
        assert_eq!(errors.0[0].path, "/declaration_version");
    });
}

#[test]
fn a_version_that_was_replaced_comes_back_only_with_the_content_it_had() {
    on_every_mailbox(|store| {
        let returned = |version| store.declare(&with_lexical_sender(version));
        let replaced = Declared::Updated {
            reindexed: 0,
            returned: false,
            damaged: Vec::new(),
        };
        assert_eq!(returned("2").unwrap(), replaced);
        let error = returned("1").unwrap_err();
        let StoreError::Declaration(errors) = &error else {
            panic!("{error}")
        };
        assert_eq!(errors.0[0].path, "/declaration_version");
        assert!(errors.0[0].rule.contains("\"1\" was registered before"));
        let mail = "mail".parse().unwrap();
        assert_eq!(store.declaration(&mail).unwrap().declaration_version, "2");

        // The same content, however it is laid out.
        let document: Json = serde_json::from_str(MAIL).unwrap();
        let first = Declaration::parse(&document.to_string()).unwrap();
        let back = Declared::Updated {
            reindexed: 0,
            returned: true,
            damaged: Vec::new(),
        };
        assert_eq!(store.declare(&first).unwrap(), back);
        assert_eq!(store.declaration(&mail).unwrap().declaration_version, "1");
        assert_eq!(store.declare(&first).unwrap(), Declared::Unchanged);
    });
}

/// Changes that would lose or break a record, and the path each is refused with.
fn refused_changes() -> [(&'static str, Declaration); 6] {
    [
        (
            "/streams/0/primary_key",
            changed("2", |stream| stream["primary_key"] = json!(["id", "body"])),
        ),
        (
            "/streams/0/semantics",
            changed("2", |stream| stream["semantics"] = json!("append_only")),
        ),
        (
            "/streams/0/schema/properties/size_bytes",
            changed("2", |stream| {
                stream["schema"]["properties"]["size_bytes"] = json!({ "type": "boolean" });
                stream["query"] = json!({});
            }),
        ),
        (
            "/streams/0/schema/properties/labels",
            changed("2", |stream| {
                stream["schema"]["properties"]["labels"] = json!({ "type": "string" });
            }),
        ),
        (
            "/streams/0/schema/properties/due_on",
            changed("2", |stream| {
                stream["schema"]["properties"]
                    .as_object_mut()
                    .unwrap()
                    .remove("due_on");
            }),
        ),
        ("/streams", without_messages("2")),
    ]
}

#[test]
fn a_change_that_would_lose_or_break_records_is_refused_with_its_path() {
    on_every_mailbox(|store| {
        store.put(vec![message_with(
            "m1",
            r#""size_bytes":7,"labels":["a"],"due_on":"2026-01-01""#,
        )]);
        for (path, declaration) in refused_changes() {
            let error = store.declare(&declaration).unwrap_err();
            let StoreError::Declaration(errors) = &error else {
                panic!("{error}")
            };
            assert_eq!(errors.0[0].path, path, "{error}");
            if path == "/streams" {
                assert!(error.to_string().contains("\"messages\""), "{error}");
            }
        }
        assert_eq!(
            store
                .declaration(&"mail".parse().unwrap())
                .unwrap()
                .declaration_version,
            "1"
        );
        assert_eq!(
            crate::fixture::all(store, &stream("work", "messages")).len(),
            1
        );
    });
}

fn without_messages(version: &str) -> Declaration {
    let mut document: Json = serde_json::from_str(MAIL).unwrap();
    document["declaration_version"] = json!(version);
    document["streams"].as_array_mut().unwrap().remove(0);
    Declaration::parse(&document.to_string()).unwrap()
}

#[test]
fn what_holds_no_data_may_go() {
    on_every_mailbox(|store| {
        store.put(vec![message("m1", "x", "")]);
        store.put(vec![crate::fixture::delete("messages", "m1")]);
        let updated = store.declare(&without_messages("2")).unwrap();
        assert!(matches!(updated, Declared::Updated { .. }));
        let error = store
            .get(&stream("work", "messages"), &crate::fixture::key("m1"))
            .unwrap_err();
        assert!(matches!(error, StoreError::UnknownStream { .. }), "{error}");
        // It may also come back, empty.
        store.declare(&changed("3", |_| {})).unwrap();
        assert!(crate::fixture::all(store, &stream("work", "messages")).is_empty());
        store.put(vec![message("m1", "again", "")]);
        assert_eq!(store.found("again"), ["m1"]);
    });
}

#[test]
fn a_new_lexical_field_is_announced_and_then_found() {
    on_every_mailbox(|store| {
        store.put(vec![message_with(
            "m1",
            r#""from_email":"anna@example.org","subject":"hello""#,
        )]);
        let updated = store.declare(&with_lexical_sender("2")).unwrap();
        let expected = Declared::Updated {
            reindexed: 1,
            returned: false,
            damaged: Vec::new(),
        };
        assert_eq!(updated, expected);
        let wide = || {
            vec![scope(
                "work",
                "messages",
                &["subject", "body", "from_email"],
            )]
        };
        let before = search(store, "hello", wide());
        assert_eq!(before.rebuilding, [stream("work", "messages")]);
        assert_eq!(before.hits.len(), 1);
        assert_eq!(store.index_status().unwrap().rebuilding, 1);
        // What is written from now on is found at once.
        store.put(vec![message_with(
            "m2",
            r#""from_email":"anna@example.com""#,
        )]);
        assert!(found(store, "anna", wide()).contains(&"m2".to_owned()));
        store.settle_index().unwrap();
        assert_eq!(store.index_status().unwrap().rebuilding, 0);
        let after = search(store, "anna", wide());
        assert!(after.rebuilding.is_empty());
        assert_eq!(found_sorted(store, "anna", wide()), ["m1", "m2"]);
        assert!(store.found("anna").is_empty());
    });
}

#[test]
fn a_field_that_is_no_longer_lexical_is_not_found_any_more() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("m1", "open", "hidden")]);
        store.settle_index().unwrap();
        store
            .declare(&changed("2", |stream| {
                stream["query"]["search"]["lexical_fields"] = json!(["subject"]);
            }))
            .unwrap();
        let event = crate::fixture::put_at(
            "events",
            crate::fixture::compound(&["a", "b"]),
            r#"{"note":"hidden"}"#,
        );
        write(store, "home", vec![event]);
        let everything = || vec![messages("work"), scope("home", "events", &["note"])];
        for _ in 0..2 {
            assert_eq!(found(store, "hidden", everything()), [r#"["a","b"]"#]);
            assert_eq!(found(store, "open -hidden", everything()), ["m1"]);
            store.settle_index().unwrap();
        }
    });
}

#[test]
fn new_columns_are_exact_at_once_in_aggregates() {
    on_every_mailbox(|store| {
        let sized = |at: usize| {
            message_with(
                &format!("m{at}"),
                &format!("\"pages\":{},\"subject\":\"x\"", at % 3),
            )
        };
        store.put((0..30).map(sized).collect());
        store.settle_index().unwrap();
        store
            .declare(&changed("2", |stream| {
                stream["schema"]["properties"]["pages"] = json!({ "type": "integer" });
                stream["query"]["range_filters"]["pages"] = json!(["gte"]);
                stream["query"]["aggregations"]["sum"] = json!(["pages"]);
                stream["query"]["aggregations"]["group_by"] = json!(["pages"]);
            }))
            .unwrap();
        let request = |metric, grouping| AggregateRequest {
            scope: messages("work"),
            metric,
            grouping,
        };
        let sum = store
            .aggregate(&request(Metric::Sum(field("pages")), None))
            .unwrap();
        assert_eq!(sum.value, Value::Integer(30));
        let grouping = Grouping::Values {
            field: field("pages"),
            limit: 10,
        };
        let groups = store
            .aggregate(&request(Metric::Count, Some(grouping)))
            .unwrap();
        assert!(
            groups.groups.iter().all(|group| group.count == 10),
            "{groups:?}"
        );
        let two = Test::Equals(contract::scalar::Scalar::Integer(2));
        let scope = filtered(messages("work"), "pages", two);
        assert_eq!(
            compute(store, scope.clone(), Metric::Count, None).matched,
            10
        );
        assert_eq!(found(store, "x", vec![scope]).len(), 10);
    });
}

#[test]
fn a_filter_on_a_new_column_is_exact_at_once_in_search() {
    on_every_mailbox(|store| {
        store.put(vec![message_with("m1", r#""pages":2,"subject":"x""#)]);
        store.settle_index().unwrap();
        store
            .declare(&changed("2", |stream| {
                stream["schema"]["properties"]["pages"] = json!({ "type": "integer" });
            }))
            .unwrap();
        let two = Test::Equals(contract::scalar::Scalar::Integer(2));
        assert_eq!(
            found(store, "x", vec![filtered(messages("work"), "pages", two)]),
            ["m1"]
        );
    });
}

#[test]
fn a_text_that_becomes_a_date_time_is_compared_as_one() {
    on_every_mailbox(|store| {
        store.put(vec![
            message_with("m1", r#""from_email":"2026-03-01T12:00:00+02:00""#),
            message_with("m2", r#""from_email":"nobody""#),
        ]);
        store
            .declare(&changed("2", |stream| {
                stream["schema"]["properties"]["from_email"] =
                    json!({ "type": "string", "format": "date-time" });
                stream["query"] = json!({ "aggregations": { "count": true } });
            }))
            .unwrap();
        let at = Test::Equals(contract::scalar::Scalar::Instant(instant(
            "2026-03-01T10:00:00Z",
        )));
        assert_eq!(
            compute(
                store,
                filtered(messages("work"), "from_email", at),
                Metric::Count,
                None
            )
            .matched,
            1
        );
    });
}

#[test]
fn another_cursor_field_puts_the_records_into_its_order() {
    on_every_mailbox(|store| {
        store.put(vec![
            message_with("a", r#""received_at":"2026-01-01","size_bytes":3"#),
            message_with("b", r#""received_at":"2026-01-02","size_bytes":1"#),
            message_with("c", r#""received_at":"2026-01-03","size_bytes":2"#),
        ]);
        store
            .declare(&changed("2", |stream| {
                stream["cursor_field"] = json!("size_bytes");
            }))
            .unwrap();
        store.put(vec![message_with("d", r#""size_bytes":0"#)]);
        let request = PageRequest::first(OrderBy::Cursor, Direction::Ascending, 10);
        let page = store.page(&stream("work", "messages"), &request).unwrap();
        let keys: Vec<&str> = page
            .records
            .iter()
            .map(|record| record.key.as_str())
            .collect();
        assert_eq!(keys, ["d", "b", "c", "a"]);
    });
}

#[test]
fn a_declaration_read_literally_is_read_anew_when_it_is_declared_again() {
    on_every_backend(|store| {
        let referring = changed("1", |stream| {
            stream["schema"]["properties"]["stars"] = json!({ "$ref": "#/$defs/stars" });
            stream["schema"]["$defs"] = json!({ "stars": { "type": "integer" } });
        });
        let literal = Declaration::parse_as(referring.as_str(), Reading::Literal).unwrap();
        assert_eq!(store.declare(&literal).unwrap(), Declared::Added);
        assert_eq!(store.declare(&literal).unwrap(), Declared::Unchanged);
        store
            .add_connection(store::catalog::NewConnection {
                connector: "mail".parse().unwrap(),
                name: "Work".to_owned(),
                id: Some("work".parse().unwrap()),
            })
            .unwrap();
        store.put(vec![message_with("m1", r#""stars":5"#)]);

        let anew = Declared::Updated {
            reindexed: 1,
            returned: false,
            damaged: Vec::new(),
        };
        assert_eq!(store.declare(&referring).unwrap(), anew);
        assert_eq!(store.declare(&referring).unwrap(), Declared::Unchanged);
        let equals = Test::Equals(contract::scalar::Scalar::Integer(5));
        assert_eq!(
            compute(
                store,
                filtered(messages("work"), "stars", equals),
                Metric::Count,
                None
            )
            .matched,
            1
        );
    });
}

#[test]
fn a_stream_may_have_far_more_fields_than_usual() {
    on_every_mailbox(|store| {
        store.put(vec![message("m0", "early", "bird")]);
        assert_eq!(store.found("early"), ["m0"]);
        let names: Vec<String> = (0..40).map(|at| format!("text{at}")).collect();
        let wide = changed("2", |stream| {
            let mut lexical = vec!["subject".to_owned(), "body".to_owned()];
            for (at, name) in names.iter().enumerate() {
                stream["schema"]["properties"][name] = json!({ "type": "string" });
                stream["schema"]["properties"][format!("size{at}")] = json!({ "type": "integer" });
                stream["schema"]["properties"][format!("rate{at}")] = json!({ "type": "number" });
            }
            lexical.extend(names.clone());
            stream["query"]["search"]["lexical_fields"] = json!(lexical);
        });
        store.declare(&wide).unwrap();
        let members: Vec<String> = (0..40)
            .map(|at| format!("\"text{at}\":\"word{at}\",\"size{at}\":{at},\"rate{at}\":{at}.5"))
            .collect();
        store.put(vec![message_with("m1", &members.join(","))]);
        for at in [0, 13, 14, 39] {
            let name = format!("text{at}");
            let narrow = || vec![scope("work", "messages", &[name.as_str()])];
            assert_eq!(found(store, &format!("word{at}"), narrow()), ["m1"]);
            assert!(found(store, &format!("word{}", at + 1), narrow()).is_empty());
            let equals = Test::Equals(contract::scalar::Scalar::Integer(at));
            let sized = filtered(messages("work"), &format!("size{at}"), equals);
            let answer = compute(store, sized, Metric::Sum(field(&format!("rate{at}"))), None);
            assert_eq!(answer.matched, 1);
        }
        assert_eq!(store.found("early bird"), ["m0"]);
        store.settle_index().unwrap();
        assert_eq!(store.found("early bird"), ["m0"]);
    });
}
