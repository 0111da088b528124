//! ID, AM-05/07/08: what an id says, and what is refused of it.

use serde_json::json;
use testkit::fake::{Quirk, fixtures};

use crate::host::each_way;
use crate::paging::{ids, shown};

// ID-07, ID-08, ID-09, ID-13, ID-21, FE-14
#[test]
fn an_embedded_connection_is_sent_once_and_as_it_is() {
    each_way(&fixtures::multi(), |caller| {
        let calls = [
            (
                json!({"id": "cin_aaa/orders:o1"}),
                "cin_aaa",
                "LAPTOP",
                "cin_aaa/orders:o1",
            ),
            (
                json!({"id": "cin_aaa/orders:o1", "connection_id": "cin_aaa"}),
                "cin_aaa",
                "LAPTOP",
                "cin_aaa/orders:o1",
            ),
            (
                json!({"id": "orders:o1", "connection_id": "cin_bbb"}),
                "cin_bbb",
                "ORG",
                "orders:o1",
            ),
        ];
        for (args, connection, text, id) in calls {
            let (answer, calls) = caller.asked("fetch", args);
            assert_eq!(answer.structured["text"], text);
            assert_eq!(answer.structured["id"], id);
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].path, "/v1/streams/orders/records/o1");
            assert_eq!(calls[0].values("connection_id"), [connection]);
        }
    });
}

// ID-09, ID-12, AM-08
#[test]
fn an_ambiguous_legacy_id_is_told_as_the_server_told_it() {
    for state in [
        fixtures::multi(),
        fixtures::multi().with(Quirk::RetryWithObject),
    ] {
        each_way(&state, |caller| {
            let (answer, calls) = caller.asked("fetch", json!({"id": "orders:o1"}));
            assert_eq!(answer.code(), "ambiguous_connection");
            assert_eq!(answer.structured["http_status"], 409);
            let error = &answer.structured["error"];
            assert_eq!(error["retry_with"], "connection_id");
            let listed = error["available_connections"].as_array().unwrap();
            assert_eq!(listed.len(), 2);
            assert_eq!(listed[1]["connection_id"], "cin_bbb");
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].value("connection_id"), None);
            for connection in listed {
                let retry =
                    json!({"id": "orders:o1", "connection_id": connection["connection_id"]});
                caller.ok("fetch", retry);
            }
        });
    }
}

// AM-05, AM-07 for a server that lists everything
#[test]
fn a_long_list_of_connections_is_capped_and_counted() {
    for n in [12, 25, 1_000] {
        each_way(&fixtures::shared(n), |caller| {
            for (tool, args) in [
                ("query_records", json!({"stream": "repos"})),
                ("aggregate", json!({"stream": "repos", "metric": "count"})),
                ("fetch", json!({"id": "repos:r1"})),
                (
                    "read_record_field",
                    json!({"id": "repos:r1", "field_path": "text"}),
                ),
            ] {
                let answer = caller.refused(tool, args);
                assert_eq!(answer.code(), "ambiguous_connection", "{tool}");
                let error = &answer.structured["error"];
                assert_eq!(error["available_connections"].as_array().unwrap().len(), 12);
                let is_cut = n > 12;
                assert_eq!(
                    error.get("available_connection_count"),
                    is_cut.then_some(&json!(n))
                );
                assert_eq!(error["available_connections_truncated"] == true, is_cut);
                assert!(
                    !is_cut || answer.text.contains("call schema"),
                    "{}",
                    answer.text
                );
                let bytes = answer.raw.to_string().len();
                assert!(bytes <= 6_144, "{tool}: {bytes} bytes");
            }
        });
    }
    // AM-06 for one grant: the schema then names them all.
    each_way(&fixtures::shared(25), |caller| {
        let index = caller.ok("schema", json!({}));
        for i in 0..25 {
            assert!(
                index.text.contains(&format!("gh_{i} ")),
                "{i}: {}",
                index.text
            );
        }
    });
}

// ID-16
#[test]
fn a_hit_without_identity_is_no_fetch_handle() {
    each_way(&fixtures::odd(&[1, 2]), |caller| {
        let hits = caller.ok("search", json!({"query": "u"}));
        assert_eq!(hits.results().len(), 2);
        assert_eq!(shown(&hits, "first_fetch_id"), None);
        assert_eq!(ids(&hits.text), [""; 0]);
        assert!(!hits.text.contains("call fetch"), "{}", hits.text);
        assert_eq!(hits.results()[0]["url"], "https://x.test/1");
        for result in hits.results() {
            assert!(!result["id"].as_str().unwrap().starts_with("c1/"));
            assert!(!result["url"].as_str().unwrap().contains("/v1/streams/"));
        }
    });
}

// ID-17, ID-18, ID-19, SE-05
#[test]
fn an_id_is_prefixed_only_where_that_can_be_read_back() {
    each_way(&fixtures::odd(&[3, 4, 5, 6]), |caller| {
        let hits = caller.ok("search", json!({"query": "w"}));
        let id = |place: usize| hits.results()[place]["id"].as_str().unwrap();
        assert_eq!(
            [id(0), id(1), id(2), id(3)],
            [
                "messages:m1",
                "messages:m1",
                "cin_z/orders:o7",
                "messages:m2"
            ]
        );
        let told = hits.raw.to_string();
        for malformed in ["weird/conn/", "a:b/"] {
            assert!(!told.contains(malformed), "{malformed}");
        }
        let line = |number: usize| {
            let start = format!("{number}. ");
            hits.text
                .lines()
                .find(|line| line.starts_with(&start))
                .unwrap()
        };
        assert!(line(1).contains("connection_id=weird/conn"));
        assert!(line(2).contains("connection_id=a:b"));
        for number in [3, 4] {
            assert!(!line(number).contains("connection_id="), "{}", line(number));
        }
        for (place, text) in [(0, "text of m1 in weird/conn"), (1, "text of m1 in a:b")] {
            let result = &hits.results()[place];
            let args = json!({"id": result["id"], "connection_id": result["connection_id"]});
            assert_eq!(caller.ok("fetch", args).structured["text"], text);
        }
        assert_eq!(
            caller.ok("fetch", json!({"id": id(2)})).structured["text"],
            "text of o7 in cin_z"
        );
    });
}

// ID-05, ID-06, ID-26, HD-06
#[test]
fn odd_keys_are_named_whole_and_lead_to_their_record() {
    each_way(&fixtures::odd(&[7, 8, 9]), |caller| {
        let hits = caller.ok("search", json!({"query": "w"}));
        let visible = ids(&hits.text);
        let results: Vec<&str> = hits
            .results()
            .iter()
            .map(|one| one["id"].as_str().unwrap())
            .collect();
        assert_eq!(visible, results);
        assert_eq!(results[1], "cin_slack/messages:m 1,2[x]");
        assert!(results[2].ends_with(&"k".repeat(260)));
        assert!(results.iter().all(|id| !id.contains('…')));
        for (id, key) in visible.iter().zip(["a/b:c", "m 1,2[x]", &"k".repeat(260)]) {
            let (document, calls) = caller.asked("fetch", json!({"id": id}));
            assert_eq!(
                document.structured["text"],
                format!("text of {key} in cin_slack")
            );
            assert!(calls.iter().all(|call| call.segments[2] == "messages"));
            // Where a URI is visible, a tool that takes it is named.
            assert!(!id.starts_with("pdpp://") || hits.text.contains("call fetch"));
        }
    });
}
