//! AU-05..07: an owner's credential reads nothing, whatever a file called it.

use serde_json::json;
use testkit::fake::fixtures;

use crate::host::{Caller, each_way};
use crate::surface::valid_calls;

// AU-05, AU-06
#[test]
fn an_owner_credential_reads_nothing_once_it_is_known() {
    each_way(&fixtures::owner(), |caller| {
        let answer = caller.refused("schema", json!({}));
        assert_eq!(answer.code(), "owner_token_refused");
        for (tool, args, ..) in valid_calls() {
            let answer = caller.refused_unasked(tool, args);
            assert_eq!(answer.code(), "owner_token_refused");
            assert!(!answer.raw.to_string().contains("LAPTOP"));
        }
    });
}

// AU-05, AU-07: everything was read until somebody called schema.
#[test]
fn an_owner_credential_reads_nothing_even_at_first() {
    for (tool, args, ..) in valid_calls() {
        let caller = Caller::of_an_agent(fixtures::owner());
        let (answer, calls) = caller.asked(tool, args);
        assert_eq!(answer.code(), "owner_token_refused", "{tool}");
        assert!(!answer.raw.to_string().contains("LAPTOP"));
        assert_eq!(calls.len(), 1, "{tool}: {calls:?}");
        assert_eq!(calls[0].path, "/v1/schema", "{tool}");
    }
    let caller = Caller::of_an_agent(fixtures::owner());
    let error = caller.resource("pdpp://stream/orders").unwrap_err();
    assert_eq!(error["data"]["error"]["code"], "owner_token_refused");
    assert!(
        caller
            .rs
            .calls()
            .iter()
            .all(|call| call.path == "/v1/schema")
    );
}

// AU-06
#[test]
fn a_grants_credential_is_asked_about_once() {
    let caller = Caller::of_an_agent(fixtures::multi());
    for round in 0..2 {
        for (tool, args, path, _) in valid_calls().into_iter().skip(1) {
            let (answer, calls) = caller.asked(tool, args);
            assert!(!answer.is_error, "{tool}: {}", answer.text);
            let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
            if (round, tool) == (0, "search") {
                assert_eq!(paths, ["/v1/schema", path]);
            } else {
                assert_eq!(paths, [path], "{tool}");
            }
        }
    }
}
