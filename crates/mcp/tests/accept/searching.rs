//! SE, BU-02/03, UP-01/02: what a search shows.

use serde_json::{Value, json};
use testkit::fake::fixtures::{self, Script};
use testkit::fake::{Quirk, SearchShape, State};

use crate::host::{Caller, each_way};
use crate::paging::{ids, shown};

// SE-02, SE-03, SE-04, SE-06, SE-08, SE-09, SE-13, SE-19, UP-01
#[test]
fn a_preview_tells_what_and_where_from() {
    each_way(&fixtures::multi(), |caller| {
        let hits = caller.ok("search", json!({"query": "maker"}));
        for (number, result) in hits.results().iter().enumerate() {
            let start = format!("{}. ", number + 1);
            let line = hits
                .text
                .lines()
                .find(|line| line.starts_with(&start))
                .unwrap();
            for name in ["id", "connector_key", "display_name", "stream", "title"] {
                assert!(
                    line.contains(result[name].as_str().unwrap()),
                    "{name}: {line}"
                );
            }
            for name in ["id", "title", "url"] {
                assert!(!result[name].as_str().unwrap().is_empty());
            }
        }
        assert!(!hits.text.contains("connection_id="), "{}", hits.text);
        assert!(serde_json::from_str::<Value>(&hits.text).is_err());
        assert!(!hits.text.contains("\"object\":") && !hits.text.contains("\n  "));
        assert!(hits.text.contains("call fetch with a shown id as-is"));
        assert!(
            hits.text
                .contains("connection_id only when it is shown separately")
        );
        assert!(
            hits.text.contains("source_mix=cin_aaa:1|cin_bbb:1"),
            "{}",
            hits.text
        );
        assert_eq!(shown(&hits, "first_fetch_id").unwrap(), "cin_aaa/orders:o1");
        assert!(hits.text.find("first_fetch_id=") < hits.text.find("source_mix="));
    });
    let empty = fixtures::multi().with_hits(Vec::new());
    each_way(&empty, |caller| {
        let hits = caller.ok("search", json!({"query": "nothing"}));
        assert!(hits.results().is_empty());
        assert!(!hits.text.contains("first_fetch_id"), "{}", hits.text);
        assert!(!hits.text.contains("source_mix"));
    });
}

// SE-12
#[test]
fn every_result_says_where_it_comes_from() {
    each_way(&fixtures::multi(), |caller| {
        for result in caller.ok("search", json!({"query": "maker"})).results() {
            let (connection, key) = (
                result["connection_id"].as_str().unwrap(),
                result["record_key"].as_str().unwrap(),
            );
            assert_eq!(result["id"], format!("{connection}/orders:{key}"));
            assert_eq!(result["connector_key"], "amazon");
            assert_eq!(result["stream"], "orders");
            assert!(result["display_name"].as_str().unwrap().contains("Amazon"));
        }
    });
}

// SE-07, EV-06
#[test]
fn the_servers_answer_is_kept_whole_beside_it() {
    for (state, limit) in [
        (fixtures::multi(), 10),
        (fixtures::many(200), 100),
        (fixtures::evidence(), 1),
    ] {
        each_way(&state, |caller| {
            let hits = caller.ok("search", json!({"query": "maker", "limit": limit}));
            let sent = state.search_hits.as_ref().unwrap();
            let kept = hits.structured["data"]["data"].as_array().unwrap();
            assert_eq!(kept[..], sent[..kept.len()]);
            // AN-40
            let shown = json!({"asked": limit, "shown": kept.len()});
            let is_shortened = kept.len() < sent.len().min(limit);
            let told = is_shortened.then_some(&shown);
            assert_eq!(hits.structured.get("page_shortened"), told);
            assert_eq!(hits.structured["data"]["object"], "list");
            assert_eq!(hits.results().len(), kept.len());
        });
    }
}

// BU-02, SE-10, SE-11
#[test]
fn two_hundred_hits_stay_within_1800_bytes() {
    each_way(&fixtures::many(200), |caller| {
        let hits = caller.ok("search", json!({"query": "lorem", "limit": 100}));
        assert!(hits.text.len() < 1_800, "{}", hits.text.len());
        assert!(hits.structured.to_string().len() <= 24_576);
        assert!(hits.results().len() > 20, "{}", hits.results().len());
        assert!(hits.text.contains("of100"), "{}", hits.text);
        assert!(shown(&hits, "next_cursor").is_some());
    });
}

// BU-03
#[test]
fn long_labels_in_any_script_stay_within_their_budget() {
    for script in [Script::Latin, Script::Cjk, Script::Emoji] {
        each_way(&fixtures::many_fat(200, script), |caller| {
            for limit in [1, 10, 100] {
                let hits = caller.ok("search", json!({"query": "lorem", "limit": limit}));
                let carried = shown(&hits, "next_cursor").unwrap().len()
                    + shown(&hits, "first_fetch_id").unwrap().len();
                assert!(hits.text.len() < 1_800 + carried, "{}", hits.text.len());
                assert!(!ids(&hits.text).is_empty());
                // Valid UTF-8 by its type; nothing was cut inside a character.
                assert!(!hits.text.contains('\u{fffd}'));
            }
        });
    }
}

// SE-11, SE-17, SE-18
#[test]
fn limit_and_connection_hold_whatever_the_server_does() {
    let states = [
        fixtures::multi(),
        fixtures::multi().with(Quirk::IgnoresLimit),
        fixtures::multi()
            .with(Quirk::IgnoresLimit)
            .with(Quirk::IgnoresSearchConnection),
    ];
    for state in states {
        each_way(&state, |caller| {
            assert_eq!(
                caller
                    .ok("search", json!({"query": "maker", "limit": 1}))
                    .results()
                    .len(),
                1
            );
            let args = json!({"query": "maker", "connection_id": "cin_bbb", "limit": 5});
            let (hits, calls) = caller.asked("search", args);
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].values("connection_id"), ["cin_bbb"]);
            assert_eq!(hits.results().len(), 1);
            for result in hits.results() {
                assert_eq!(result["connection_id"], "cin_bbb", "{}", hits.text);
            }
            assert!(!hits.text.contains("cin_aaa"), "{}", hits.text);
        });
    }
    each_way(&fixtures::many(200).with(Quirk::IgnoresLimit), |caller| {
        assert!(
            caller
                .ok("search", json!({"query": "lorem"}))
                .results()
                .len()
                <= 25
        );
        for limit in [1, 3, 99, 100] {
            let hits = caller.ok("search", json!({"query": "lorem", "limit": limit}));
            assert!(hits.results().len() <= limit);
        }
    });
}

fn marks_are_paired(text: &str) -> bool {
    let (mut depth, mut rest) = (0, text);
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if rest.starts_with("<mark>") {
            depth += 1;
        } else if rest.starts_with("</mark>") {
            depth -= 1;
        }
        if !(0..=1).contains(&depth) {
            return false;
        }
        rest = &rest[1..];
    }
    depth == 0
}

// SE-14: marks at every offset around the cut, of one and of many bytes.
#[test]
fn marks_stay_paired_wherever_the_cut_falls() {
    let caller = Caller::posting(fixtures::multi(), "2025-11-25");
    for unit in ["x", "é", "会", "😀"] {
        for at in (0..700).step_by(if unit == "x" { 7 } else { 53 }) {
            let snippet = format!(
                "{}<mark>needle</mark>{}",
                unit.repeat(at),
                unit.repeat(700 - at)
            );
            let mut hit = fixtures::multi().search_hits.unwrap().remove(0);
            hit["snippet"]["text"] = json!(snippet);
            hit["evidence_excerpts"] =
                json!([{"field_path": "note", "preview_text": snippet, "truncated": true}]);
            caller
                .rs
                .change(|state| state.search_hits = Some(vec![hit]));
            let hits = caller.ok("search", json!({"query": "needle"}));
            let result = &hits.results()[0];
            let mut texts = vec![hits.text.as_str()];
            texts.extend(
                ["snippet", "evidence_preview"]
                    .iter()
                    .filter_map(|name| result[name].as_str()),
            );
            for text in texts {
                assert!(marks_are_paired(text), "{unit} at {at}: {text}");
                for sentinel in ["**", "[[", "]]", ">>>"] {
                    assert!(!text.contains(sentinel), "{text}");
                }
            }
            assert!(
                hits.text.contains("<mark>needle</mark>"),
                "{unit} at {at}: {}",
                hits.text
            );
        }
    }
}

// SE-15, SE-16
#[test]
fn an_untitled_hit_is_named_by_source_stream_and_time() {
    let untitled = |members: Value| {
        let mut hit = fixtures::multi().search_hits.unwrap().remove(0);
        for name in ["title", "authored_at", "emitted_at"] {
            hit.as_object_mut().unwrap().remove(name);
        }
        hit.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        hit
    };
    let emitted = "2026-05-01T00:00:00Z";
    let cases = [
        (
            json!({"authored_at": "2026-04-01T00:00:00Z", "emitted_at": emitted}),
            "2026-04-01",
        ),
        (
            json!({"sent_at": "2026-03-01T00:00:00Z", "emitted_at": emitted}),
            "2026-03-01",
        ),
        (
            json!({"data": {"sent_at": "2026-02-01T00:00:00Z"}, "emitted_at": emitted}),
            "2026-02-01",
        ),
        (
            json!({"data": {"authored_at": "2026-01-01T00:00:00Z"}, "emitted_at": emitted}),
            "2026-01-01",
        ),
        (json!({"emitted_at": emitted}), "2026-05-01"),
    ];
    for (members, time) in cases {
        each_way(
            &fixtures::multi().with_hits(vec![untitled(members)]),
            |caller| {
                let hits = caller.ok("search", json!({"query": "maker"}));
                let result = &hits.results()[0];
                let title = result["title"].as_str().unwrap();
                for part in ["Laptop Amazon", "orders", time] {
                    assert!(title.contains(part), "{part}: {title}");
                }
                assert!(
                    time == "2026-05-01" || !title.contains("2026-05-01"),
                    "{title}"
                );
                assert_ne!(result["title"], result["snippet"]);
            },
        );
    }
}

// UP-02
#[test]
fn a_search_that_looked_at_a_part_says_so() {
    for recall in [
        json!({"ranking_scope": "candidate_window"}),
        json!({"complete": false}),
    ] {
        let mut state = fixtures::multi();
        state.recall = Some(recall.clone());
        each_way(&state, |caller| {
            let hits = caller.ok("search", json!({"query": "maker"}));
            let text = hits.text.to_lowercase();
            assert!(
                text.contains("recall") || text.contains("not all"),
                "{text}"
            );
            assert_eq!(hits.structured["data"]["meta"]["recall"], recall);
        });
    }
    each_way(&fixtures::multi(), |caller| {
        assert!(
            !caller
                .ok("search", json!({"query": "maker"}))
                .text
                .contains("recall")
        );
    });
}

// A server may put its hits in any of five places.
#[test]
fn hits_are_found_in_every_known_shape() {
    let shapes = [
        SearchShape::Data,
        SearchShape::Results,
        SearchShape::Hits,
        SearchShape::DataResults,
        SearchShape::DataData,
    ];
    for shape in shapes {
        let mut state: State = fixtures::multi();
        state.search_shape = shape;
        each_way(&state, |caller| {
            let hits = caller.ok("search", json!({"query": "maker"}));
            assert_eq!(
                ids(&hits.text),
                ["cin_aaa/orders:o1", "cin_bbb/orders:o9"],
                "{shape:?}"
            );
        });
    }
}

// A mode the server does not have is named, not guessed.
#[test]
fn a_missing_mode_is_told() {
    each_way(&fixtures::multi(), |caller| {
        for mode in ["semantic", "hybrid"] {
            let answer = caller.refused("search", json!({"query": "maker", "mode": mode}));
            assert_eq!(answer.code(), "mode_not_supported");
        }
    });
}
