//! SE, BU-02/03, UP-01/02: what a search shows.

use serde_json::json;
use testkit::fake::{Quirk, fixtures};

use crate::host::each_way;

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
