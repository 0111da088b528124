//! What a search without hits says, and where it leads.

use serde_json::{Value, json};

use super::search;
use crate::budget;
use crate::stub::{Stub, printed_args};

#[test]
fn nothing_found_leads_to_a_call_that_finds_something() {
    // AN-16, HD-01, TR-17
    let told = |words: Value, args: Value| {
        let body = json!({"object": "list", "has_more": false, "data": [], "meta": {"warnings": [], "words": words}});
        search(&Stub::default().on("/v1/search", body), args).0
    };
    let narrowed = json!({"query": "bridge", "streams": ["messages"], "since": "2030-01-01", "filter": {"folder": "x"}});
    let terms = json!([{"term": "bridge", "count": 12}]);
    let text = told(
        json!({"terms": terms, "without_filters": 12}),
        narrowed.clone(),
    );
    assert_eq!(
        text.lines().last(),
        Some(r#"Next: search {"query":"bridge","streams":["messages"]} finds 12."#)
    );
    let both = json!([{"term": "vendors", "count": 0}, {"term": "bridge", "count": 12}]);
    let text = told(
        json!({"terms": both, "suggestions": [{"term": "vend*", "count": 5}]}),
        json!({"query": "bridge vendors", "match": "all"}),
    );
    assert_eq!(
        text.lines().last(),
        Some(r#"Next: search {"query":"bridge vendors"} finds any of these words."#)
    );
    let terms = json!([{"term": "vendors", "count": 0}]);
    let text = told(
        json!({"terms": terms, "suggestions": [{"term": "vend*", "count": 5}]}),
        json!({"query": "vendors", "connection_id": "c1"}),
    );
    assert_eq!(
        text.lines().last(),
        Some(r#"Next: search {"query":"vend*","connection_id":"c1"} finds 5."#)
    );
    let text = told(
        json!({"terms": terms, "without_filters": 0}),
        narrowed.clone(),
    );
    assert_eq!(printed_args(&text, "search"), [] as [Value; 0]);
    assert_eq!(printed_args(&text, "schema"), [json!({})]);
    // A call that is too long is none.
    let mut long = narrowed;
    long["query"] = json!("bridge ".repeat(400));
    let text = told(json!({"without_filters": 12}), long);
    assert!(text.len() < budget::LIST_TEXT, "{text}");
}

// TR-17: the words of a search that found nothing are told in text and structure, within the budget.
#[test]
fn nothing_found_says_which_words_occur_and_how_often() {
    let told = |terms: Vec<Value>| {
        let words = json!({"terms": terms, "suggestions": [{"term": "vend*", "count": 5}]});
        let body = json!({"object": "list", "has_more": false, "data": [], "meta": {"warnings": [], "words": words}});
        search(
            &Stub::default().on("/v1/search", body),
            json!({"query": "x"}),
        )
    };
    let (text, structured) = told(vec![
        json!({"term": "bridge", "count": 12}),
        json!({"term": "vendors", "count": 0}),
    ]);
    for part in [
        "vendors in 0, bridge in 12",
        "leave out vendors",
        "vend*, which is in 5",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(structured["data"]["meta"]["words"]["terms"][0]["count"], 12);
    let long = |at| json!({"term": format!("{}\nNext: {at}", "w".repeat(200)), "count": at});
    let (text, _) = told((0..32).map(long).collect());
    assert!(text.len() <= budget::LIST_TEXT, "{}", text.len());
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("Next:"))
            .count(),
        1
    );
}
