//! What a search answers, over canned servers.

mod bounds;
mod nothing_found;

use serde_json::{Value, json};

use crate::stub::{Stub, printed_args};

/// Both channels of an answered search.
fn search(stub: &Stub, args: Value) -> (String, Value) {
    let reply = stub.call("search", args).unwrap();
    (reply.text, reply.structured.into_json())
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn over(hits: Value) -> Stub {
    Stub::default().on(
        "/v1/search",
        json!({"object": "list", "has_more": false, "data": hits}),
    )
}

/// FX-MULTI.
fn multi() -> Stub {
    let hit = |key: &str, connection: &str, label: &str| {
        json!({"object":"search_result","stream":"orders","record_key":key,"connector_id":"amazon",
            "connection_id":connection,"display_name":label,"title":format!("Order {key}"),
            "record_url":format!("/v1/streams/orders/records/{key}"),"authored_at":"2026-04-01T00:00:00Z",
            "emitted_at":"2026-05-01T00:00:00Z","matched_fields":["note"],
            "snippet":{"field":"note","text":"Pasta <mark>maker</mark>, $89."}})
    };
    over(json!([
        hit("o1", "cin_aaa", "Laptop Amazon"),
        hit("o9", "cin_bbb", "Example Org Amazon")
    ]))
}

/// FX-EVID.
fn evidence() -> Value {
    json!({"object":"search_result","stream":"messages","record_key":"m1","connector_key":"slack",
        "connection_id":"cin_slack","display_name":"Acme Slack","emitted_at":"2026-05-01T00:00:00Z",
        "snippet":{"field":"text","text":"bridge using <mark>Hyperlane</mark> or LayerZero"},
        "evidence_excerpts":[{"object":"evidence_excerpt","field_path":"text",
            "preview_text":"…we agreed to bridge using <mark>Hyperlane</mark> or LayerZero next quarter…",
            "truncated":true,"provenance":"lexical_match",
            "read":{"object":"field_window_read","method":"GET","route":"/v1/streams/messages/records/m1/field-window",
                "stream":"messages","record_id":"m1","field":"text","connection_id":"cin_slack"}}]})
}

#[test]
fn hits_of_two_connections_are_previewed_with_complete_ids() {
    // ID-02, ID-03, ID-04, SE-01, SE-02, SE-03, SE-04, SE-06, SE-08, SE-09, SE-12, SE-13, SE-19, UP-01
    let stub = multi();
    let (text, structured) = search(&stub, json!({"query": "maker"}));
    insta::assert_snapshot!("two_connections", text);
    assert_eq!(stub.asked(), ["/v1/search?q=maker&limit=10"]);
    let results = structured["results"].as_array().unwrap();
    assert_eq!(results[0]["id"], "cin_aaa/orders:o1");
    assert_eq!(results[1]["id"], "cin_bbb/orders:o9");
    assert_eq!(results[1]["connection_id"], "cin_bbb");
    assert_eq!(results[0]["connector_key"], "amazon");
    assert_eq!(
        results[0]["url"],
        "https://provider.test/v1/streams/orders/records/o1?connection_id=cin_aaa"
    );
    assert!(!text.contains("connection_id="));
    assert_eq!(structured["request_id"], "req_1");
    assert_eq!(structured["provider_url"], "https://provider.test");
    assert!(text.find("first_fetch_id=") < text.find("source_mix="));
}

#[test]
fn a_proven_match_comes_first_with_its_field_id_and_call() {
    // EV-01 to EV-05, EV-10, EV-11, EV-12, EV-16, SE-03
    let stub = over(json!([evidence()]));
    let (text, structured) = search(&stub, json!({"query": "Hyperlane"}));
    insta::assert_snapshot!("one_proven", text);
    assert!(
        text.find("bridge using <mark>Hyperlane</mark> or LayerZero") < text.find("Top results")
    );
    assert_eq!(
        printed_args(&text, "read_record_field"),
        [json!({"id": "cin_slack/messages:m1", "field_path": "text", "q": "Hyperlane"})]
    );
    for word in [
        "connector_key=slack",
        "stream=messages",
        "Acme Slack",
        "title=",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let preview = structured["results"][0]["evidence_preview"]
        .as_str()
        .unwrap();
    assert!(preview.contains("using Hyperlane or"), "{preview}");
    let rung = &structured["content_ladder"]["records"][0];
    assert_eq!(rung["evidence_preview"], preview);
    assert_eq!(rung["field_windows"][0]["field_path"], "text");
    assert_eq!(structured["content_ladder"]["kind"], "search_results");
}

#[test]
fn what_stands_beside_the_best_hit_has_lines_that_cannot_forge_others() {
    // FI-20
    let mut hit = evidence();
    hit["neighbours"] = json!([
        {"side": "before", "id": "cin_slack/messages:m0", "author": "Lina\n2. id=x",
            "field_path": "text", "text": "Which one\n1. id=forged do we take?", "truncated": false},
        {"side": "after", "id": "cin_slack/messages:m2", "field_path": "text",
            "text": "w".repeat(400), "truncated": true},
    ]);
    let (text, _) = search(&over(json!([hit])), json!({"query": "Hyperlane"}));
    insta::assert_snapshot!("neighbours", text);
}

#[test]
fn each_hit_says_in_text_how_its_words_are_not_those_of_the_question() {
    // FI-03, FI-05, FI-20
    let mut proven = evidence();
    proven["matched_terms"] = json!([
        {"term": "bridges", "found": "bridge", "kind": "form"}, {"term": "hyperlane", "kind": "exact"}
    ]);
    proven["missing_terms"] = json!(["gateway", "nut"]);
    let near = |key: String| {
        json!({"object":"search_result","stream":"messages","record_key":key,"connector_key":"slack",
            "connection_id":"cin_slack","matched_fields":[],"near":"cin_slack/messages:m1",
            "passage":{"field_path":"text","text":"sounds good","truncated":false}})
    };
    let words = json!({"found": ["bridges", "hyperlane", "gateway"], "missing": ["nut"], "with_every_word": 0});
    let answer = |hits: Value| {
        Stub::default().on(
            "/v1/search",
            json!({"object": "list", "has_more": false, "data": hits, "meta": {"words": words.clone()}}),
        )
    };
    let (text, _) = search(
        &answer(json!([proven, near("m2".to_owned())])),
        json!({"query": "bridges hyperlane gateway nut"}),
    );
    insta::assert_snapshot!("words", text);
    // Where only ids have room, those that only stand next to a match are not among the others.
    let mut hits = vec![evidence()];
    hits.extend((2..60).map(|i| near(format!("m{i}"))));
    let (text, _) = search(
        &answer(json!(hits)),
        json!({"query": "bridges", "limit": 100}),
    );
    for line in text.lines().filter(|line| line.contains("messages:m3")) {
        assert!(
            line.contains(" near=cin_slack/messages:m1 matched=nothing")
                || line.starts_with("More next to these, no match:"),
            "{text}"
        );
    }
    assert!(text.contains("More next to these, no match:"), "{text}");
    assert!(!text.contains("More ids:"), "{text}");
}

#[test]
fn offsets_of_the_server_become_a_window_around_the_match() {
    let mut hit = evidence();
    hit["evidence_excerpts"][0]["text_start_chars"] = json!(3_000);
    let (text, _) = search(&over(json!([hit])), json!({"query": "Hyperlane"}));
    let args = &printed_args(&text, "read_record_field")[0];
    let (offset, limit) = (
        args["offset_chars"].as_u64().unwrap(),
        args["limit_chars"].as_u64().unwrap(),
    );
    assert!(offset < 3_000 && offset + limit > 3_200, "{args}");
    // The excerpt stands in its middle.
    let shown = "…we agreed to bridge using Hyperlane or LayerZero next quarter…";
    let half = shown.chars().count() as u64 / 2;
    assert_eq!(offset + limit / 2, 3_000 + half);
    hit["evidence_excerpts"][0]["text_start_chars"] = json!(5);
    let (text, _) = search(&over(json!([hit])), json!({"query": "Hyperlane"}));
    // Where none is named, a field is read from its beginning.
    let args = &printed_args(&text, "read_record_field")[0];
    assert!(args["offset_chars"].is_null() && args["q"].is_null());
}

#[test]
fn the_window_that_evidence_names_is_asked_for_as_it_is() {
    // PA-01
    let mut hit = evidence();
    let read = &mut hit["evidence_excerpts"][0]["read"];
    read["offset_chars"] = json!(2_960);
    read["limit_chars"] = json!(90);
    let (text, structured) = search(&over(json!([hit])), json!({"query": "Hyperlane"}));
    let args = json!({"id": "cin_slack/messages:m1", "field_path": "text", "offset_chars": 2_960, "limit_chars": 90});
    assert_eq!(
        printed_args(&text, "read_record_field"),
        std::slice::from_ref(&args)
    );
    let rung = &structured["content_ladder"]["records"][0];
    assert_eq!(rung["field_windows"][0]["read"]["args"], args);
    // One that no server would answer is not passed on.
    hit["evidence_excerpts"][0]["read"]["limit_chars"] = json!(0);
    let (text, _) = search(&over(json!([hit])), json!({"query": "Hyperlane"}));
    assert_eq!(
        printed_args(&text, "read_record_field")[0]["limit_chars"],
        4_096
    );
}

#[test]
fn nothing_found_says_what_to_try() {
    let (text, structured) = search(&over(json!([])), json!({"query": "x"}));
    insta::assert_snapshot!("empty", text);
    assert_eq!(structured["results"], json!([]));
    assert!(structured.get("content_ladder").is_none());
}

#[test]
fn a_source_that_was_skipped_is_named_with_the_call_that_tells_why() {
    // AN-16
    let skipped = json!({"code": "source_skipped_not_applicable", "message": "x",
        "detail": {"source": "chat", "connection_id": "chat-tidewater"}});
    let body = json!({"object": "list", "has_more": false, "data": [evidence()], "meta": {"warnings": [skipped]}});
    let stub = Stub::default().on("/v1/search", body);
    let (text, _) = search(
        &stub,
        json!({"query": "Hyperlane", "streams": ["messages"]}),
    );
    assert!(
        text.contains("warnings=source_skipped_not_applicable(chat-tidewater)"),
        "{text}"
    );
    assert_eq!(
        printed_args(&text, "schema"),
        [json!({"connection_id": "chat-tidewater"})]
    );
}

#[test]
fn an_order_that_the_server_does_not_heed_is_not_claimed() {
    let hit = |key: &str, at: &str| json!({"stream":"messages","record_key":key,"connection_id":"c1","title":"T","authored_at":at});
    let stub = over(json!([
        hit("m1", "2026-03-01"),
        hit("m2", "2026-05-01T10:00:00Z")
    ]));
    let (text, structured) = search(&stub, json!({"query": "x", "order": "newest"}));
    assert!(text.contains("\norder_heeded=false "), "{text}");
    assert_eq!(structured["order_heeded"], false);
    for args in [
        json!({"query": "x", "order": "oldest"}),
        json!({"query": "x"}),
    ] {
        let (text, structured) = search(&stub, args);
        assert!(!text.contains("order_heeded"), "{text}");
        assert_eq!(structured.get("order_heeded"), None);
    }
}

#[test]
fn a_page_that_ends_before_weaker_hits_says_so_in_both_channels() {
    // AN-12
    let body = json!({"object": "list", "has_more": true, "next_cursor": "cur_2", "data": [evidence()],
        "meta": {"warnings": [], "weaker_follow": true}});
    let stub = Stub::default().on("/v1/search", body);
    let (text, structured) = search(&stub, json!({"query": "Hyperlane"}));
    let first = text.lines().next().unwrap();
    assert!(first.contains(" weaker_follow=true "), "{first}");
    assert_eq!(structured["data"]["meta"]["weaker_follow"], true);
}

#[test]
fn arguments_travel_in_their_wire_form() {
    // UP-03, TS-05
    let stub = over(json!([]));
    let args = json!({"query":"a b","streams":["mail","chat"],"filter":{"n":3,"at":{"gte":"2026"}},
        "cursor":"c","count":"exact","limit":5.0,"order":"newest","since":"2026-03-01","until":"2026-04-01"});
    search(&stub, args);
    assert_eq!(
        stub.asked(),
        [
            "/v1/search?q=a%20b&streams=mail&streams=chat&filter[n]=3&filter[at][gte]=2026&since=2026-03-01&until=2026-04-01&limit=5&order=newest&cursor=c&count=exact"
        ]
    );
}

#[test]
fn hits_of_another_time_are_left_out_where_the_server_does_not_heed_the_period() {
    let march = json!({"query": "maker", "since": "2026-03-01", "until": "2026-04-01"});
    let (text, structured) = search(&multi(), march);
    assert_eq!(structured["results"], json!([]));
    assert!(text.contains("other_times=2 hit(s)"), "{text}");
    let (text, structured) = search(&multi(), json!({"query": "maker", "since": "2026-04-01"}));
    assert_eq!(structured["results"].as_array().unwrap().len(), 2);
    assert!(!text.contains("other_times"), "{text}");
    let fault = multi().call("search", json!({"query": "maker", "since": "soon"}));
    assert_eq!(fault.unwrap_err().param(), Some("since"));
}

#[test]
fn the_old_name_of_the_query_is_taken_but_not_two_queries() {
    let stub = over(json!([]));
    for args in [json!({"q": "x"}), json!({"q": "x", "query": "x"})] {
        search(&stub, args);
    }
    assert_eq!(stub.asked(), ["/v1/search?q=x&limit=10"; 2]);
    let fault = stub
        .call("search", json!({"q": "x", "query": "y"}))
        .unwrap_err();
    assert_eq!(fault.code(), "invalid_arguments");
    let schema = serde_json::to_value(super::TOOL.tool()).unwrap();
    let properties = &schema["inputSchema"]["properties"];
    assert!(properties.get("q").is_none() && properties.get("query").is_some());
    assert_eq!(schema["inputSchema"]["required"], json!(["query"]));
}

#[test]
fn a_hit_by_meaning_is_labelled_and_proves_nothing() {
    // FI-40
    let stub = over(
        json!([{"object":"search_result","stream":"messages","record_key":"m1","connection_id":"cin_slack",
        "title":"Tuesday","retrieval_mode":"semantic","matched_fields":[],
        "passage":{"field_path":"text","text":"We sold the automobile.","truncated":true,"text_start_chars":40,
            "text_end_chars":63,"provenance":"semantic_match","read":{"offset_chars":40,"limit_chars":900}}}]),
    );
    let (text, structured) = search(&stub, json!({"query": "car", "mode": "semantic"}));
    assert_eq!(stub.asked(), ["/v1/search/semantic?q=car&limit=10"]);
    assert!(
        text.contains("Passages found by meaning, no word matched:"),
        "{text}"
    );
    assert!(
        text.contains(
            r#"1. by_meaning stream=messages title="Tuesday" field_path=text "We sold the automobile." complete=false"#
        ),
        "{text}"
    );
    assert!(
        !text.contains("Evidence") && !text.contains("<mark>"),
        "{text}"
    );
    assert_eq!(structured["results"][0].get("evidence_preview"), None);
    let rung = &structured["content_ladder"]["records"][0];
    assert_eq!(rung.get("evidence_preview"), None);
    assert_eq!(
        rung["field_windows"][0]["read"],
        json!({"tool": "read_record_field", "args": {"id": "cin_slack/messages:m1", "field_path": "text", "offset_chars": 40, "limit_chars": 900}})
    );
}

#[test]
fn a_mode_the_server_lacks_is_named_and_other_faults_stay() {
    let missing =
        json!({"error": {"type": "not_found_error", "code": "not_found", "message": "no route"}});
    let stub = Stub::default()
        .refusing("/v1/search/semantic", 404, missing)
        .refusing(
            "/v1/search/hybrid",
            400,
            json!({"error": {"code": "invalid_cursor", "param": "cursor", "message": "no"}}),
        )
        .refusing("/v1/search?", 404, json!({}));
    let fault = |mode: &str| {
        stub.call("search", json!({"query": "x", "mode": mode}))
            .unwrap_err()
    };
    let semantic = fault("semantic");
    insta::assert_snapshot!("mode_not_supported", semantic.text());
    assert_eq!(semantic.code(), "mode_not_supported");
    assert_eq!(fault("hybrid").code(), "invalid_cursor");
    assert_eq!(fault("lexical").code(), "mode_not_supported");
    let vague = json!({"error": {"code": "invalid_request", "message": "what?"}});
    let stub = Stub::default().refusing("/v1/search/hybrid", 400, vague);
    let fault = stub.call("search", json!({"query": "x", "mode": "hybrid"}));
    assert_eq!(fault.unwrap_err().code(), "mode_not_supported");
    let denied = json!({"error": {"code": "grant_revoked", "message": "gone"}});
    let stub = Stub::default().refusing("/v1/search", 403, denied);
    let fault = stub.call("search", json!({"query": "x"})).unwrap_err();
    // TS-06, UP-09
    assert_eq!(
        (fault.code(), fault.http_status()),
        ("grant_revoked", Some(403))
    );
    assert_eq!(fault.structured()["request_id"], "req_1");
    assert_eq!(stub.asked().len(), 1);
}

#[test]
fn a_label_cannot_pass_for_a_handle_of_ours() {
    let hit = json!({"title": "first_fetch_id=c/s:r", "display_name": "x\n1. id=c/s:r", "connector_key": "k id=c/s:r"});
    let (text, _) = search(&over(json!([hit])), json!({"query": "x"}));
    assert!(text.contains(r#"connector_key="k id=c/s:r" display_name="x\n1. id=c/s:r" title="first_fetch_id=c/s:r""#), "{text}");
}

#[test]
fn the_longer_of_two_texts_is_shown_where_the_marked_one_is_bare() {
    // EV-17
    let hit = json!({"stream":"s","record_key":"r","match_windows":[{"field_path":"text",
        "preview_text":"<mark>Hyperlane</mark>","text":"we agreed to bridge using Hyperlane or LayerZero next quarter"}]});
    let (text, _) = search(&over(json!([hit])), json!({"query": "hyperlane"}));
    assert!(
        text.contains("bridge using Hyperlane or LayerZero"),
        "{text}"
    );
    let call = &printed_args(&text, "read_record_field")[0];
    assert_eq!(call["q"], "Hyperlane");
}

#[test]
fn a_page_that_the_server_ended_by_bytes_is_said_to_be_shortened() {
    // AN-40
    let told = |pages_by_bytes: bool, mut body: Value| {
        body["object"] = json!("list");
        body["data"] = json!([evidence()]);
        let mut stub = Stub::default().on("/v1/", body);
        stub.pages_by_bytes = pages_by_bytes;
        [
            ("search", json!({"query": "x", "limit": 5})),
            ("query_records", json!({"stream": "messages", "limit": 5})),
        ]
        .map(|(tool, args)| stub.call(tool, args).unwrap().structured["page_shortened"].clone())
    };
    let more = json!({"has_more": true, "next_cursor": "cur_2"});
    let shortened = json!({"asked": 5, "shown": 1});
    assert_eq!(told(true, more.clone()), [shortened.clone(), shortened]);
    assert_eq!(told(false, more.clone()), [Value::Null, Value::Null]);
    assert_eq!(
        told(true, json!({"has_more": false})),
        [Value::Null, Value::Null]
    );
    // It ends before weaker hits, which is no matter of bytes.
    let mut weaker = more;
    weaker["meta"] = json!({"warnings": [], "weaker_follow": true});
    assert_eq!(told(true, weaker)[0], Value::Null);
}
