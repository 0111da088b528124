//! What is asked of the server, and which arguments never get so far.

use serde_json::json;

use super::{over, query};

/// Beside a bookmark, a foreign server passes over the cursor and begins anew.
#[test]
fn a_cursor_goes_on_with_the_feed_it_came_from() {
    // QR-04
    let stub = over(vec![]);
    let feed = json!({"stream":"mail","changes_since":"beginning","limit":3});
    let mut next = feed.clone();
    next["cursor"] = json!("c");
    query(&stub, feed);
    query(&stub, next);
    let records = "/v1/streams/mail/records?limit=3";
    let [first, second] = ["changes_since=beginning", "cursor=c"];
    assert_eq!(
        stub.asked(),
        [format!("{records}&{first}"), format!("{records}&{second}")]
    );
}

#[test]
fn arguments_travel_in_their_wire_form_and_bad_ones_do_not_travel() {
    // TS-05, TS-07, UP-03
    let stub = over(vec![]);
    query(
        &stub,
        json!({"stream":"mail","connection_id":"c1","filter":{"sender":"ann","sent_at":{"gte":"2026-01-01"}},
        "view":"v","sort":"-sent_at","order":"desc","limit":3,"cursor":"c","count":"exact"}),
    );
    assert_eq!(
        stub.asked(),
        [
            "/v1/streams/mail/records?connection_id=c1&filter[sender]=ann&filter[sent_at][gte]=2026-01-01\
          &view=v&sort=-sent_at&order=desc&limit=3&cursor=c&count=exact"
        ]
    );
}

#[test]
fn names_that_would_be_taken_for_several_are_refused_unasked() {
    // UP-03, FE-10: the server gave both fields, and neither was the one that had been asked for.
    let stub = over(vec![]);
    for (tool, name, args) in [
        (
            "query_records",
            "fields",
            json!({"stream":"mail","fields":["id,title"]}),
        ),
        (
            "query_records",
            "expand",
            json!({"stream":"mail","expand":["a,b"]}),
        ),
        (
            "fetch",
            "fields",
            json!({"id":"c1/mail:m1","fields":["id","a,b"]}),
        ),
        (
            "search",
            "streams",
            json!({"query":"x","streams":["mail,chat"]}),
        ),
    ] {
        let fault = stub.call(tool, args).unwrap_err();
        assert_eq!(fault.code(), "invalid_arguments");
        assert_eq!(fault.structured()["error"]["param"], name);
        assert!(
            fault.text().contains("an entry of its own"),
            "{}",
            fault.text()
        );
    }
    assert!(stub.asked().is_empty());
}

#[test]
fn a_whole_number_is_the_same_however_it_is_written() {
    // UP-03
    let stub = over(vec![]);
    let filter = json!({"n":3.0,"m":{"gte":-1.0,"lt":2.5},"big":1e300,"id":"3.0","exact":9_007_199_254_740_993_u64});
    query(&stub, json!({"stream":"mail","filter":filter}));
    assert_eq!(
        stub.asked(),
        [
            "/v1/streams/mail/records?filter[n]=3&filter[m][gte]=-1&filter[m][lt]=2.5&filter[big]=1e%2B300&filter[id]=3.0&filter[exact]=9007199254740993&limit=10"
        ]
    );
}
