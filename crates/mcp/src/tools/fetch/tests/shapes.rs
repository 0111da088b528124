//! Records of other shapes: of bytes, with relations, flat, with much beside the payload, with names of any size.

use super::*;

#[test]
fn related_records_are_shown_and_those_that_are_not_are_named_where_no_call_lists_them() {
    // LG-04, HD-01
    let related: Vec<Value> = (0..30)
        .map(|n| json!({"object":"record","id":format!("a{n}"),"stream":"files","data":{"name":"x".repeat(700)}}))
        .collect();
    let record = json!({"object":"record","id":"m1","stream":"mail","data":{"text":"t"},
        "expanded":{"files":{"object":"list","data":related,"has_more":false},"secret":{"data":[{"x":"SECRET"}]}}});
    let schema = json!({"streams":[{"name":"mail","expand_capabilities":[{"name":"files"}]}]});
    let stub = Stub::default()
        .on("/v1/schema", schema)
        .on("/v1/streams/mail/records/m1", record);
    let args = json!({"id":"c1/mail:m1","expand":["files"],"expand_limit":{"files":30}});
    let document = fetch(&stub, args);
    let files = &document["metadata"]["expanded"]["files"];
    assert_eq!(
        (&files["count"], &files["not_shown"]),
        (&json!(30), &json!(20))
    );
    assert_eq!(files["records"][0]["read"]["args"]["id"], "c1/files:a0");
    assert_eq!(files["records"][0]["preview_status"], "truncated");
    assert_eq!(files["more_ids"][0], "c1/files:a10");
    assert_eq!(files["more_ids"].as_array().unwrap().len(), 20);
    assert!(files["next"].as_str().unwrap().contains("more_ids"));
    assert!(!document.to_string().contains("SECRET"));
    let asked = "/v1/streams/mail/records/m1?connection_id=c1&expand=files&expand_limit[files]=30";
    assert_eq!(stub.asked()[1], asked);
}

#[test]
fn a_flat_record_is_a_document_like_any_other() {
    let record = json!({"id":"m1","stream":"mail","display_name":"Work","name":"N","message":"hello",
        "record_uri":"pdpp://record/x"});
    let stub = Stub::default().on("/v1/streams/mail/records/m1", record);
    let document = fetch(&stub, json!({"id":"mail:m1"}));
    assert_eq!(
        (&document["title"], &document["text"]),
        (&json!("N"), &json!("hello"))
    );
    assert_eq!(document["metadata"]["display_name"], "Work");
    assert!(!document.to_string().contains("pdpp://"), "{document}");
}

#[test]
fn what_stands_beside_the_payload_is_shown_or_named() {
    // LG-04
    let record = json!({"object":"record","id":"m1","metadata":{"mood":"fine"},"version":3,"nested":{"a":1},
        "resource_uri":"pdpp://field-window/zzz","data":{"text":"t"}});
    let stub = Stub::default().on("/v1/streams/mail/records/m1", record);
    let document = fetch(&stub, json!({"id":"c/mail:m1"}));
    let metadata = &document["metadata"];
    assert_eq!(metadata["other"], json!({"version":3,"mood":"fine"}));
    assert_eq!(metadata["other_left_out"], json!(["nested"]));
    assert!(!document.to_string().contains("field-window"), "HD-08");
}

#[test]
fn names_and_ids_of_any_size_do_not_break_the_ceiling() {
    // LG-01
    let long = "k".repeat(12_000);
    let data: Map<String, Value> = (0..40)
        .map(|n| {
            (
                format!("{n}{}", "n".repeat(20_000)),
                json!("word ".repeat(2_000)),
            )
        })
        .collect();
    let record = json!({"object":"record","id":long,"display_name":"d".repeat(100_000),"citation_url":"https://x.test/".repeat(9_000),
        "data":data});
    let stub = Stub::default().on("/v1/streams/mail/", record);
    let document = fetch(&stub, json!({"id":format!("c/mail:{long}")}));
    assert_eq!(document["metadata"]["text_complete"], false);
    assert!(
        document["url"]
            .as_str()
            .unwrap()
            .starts_with("https://provider.test/")
    );
}

#[test]
fn a_result_fits_whatever_a_text_is_made_of() {
    // LG-01
    for unit in ["\u{1}", "\"\\", "\u{1f600}", "x\n"] {
        let source: String = unit.chars().cycle().take(150_000).collect();
        let server = RecordServer::new(json!({"text":source}));
        let reply = server.call("fetch", &json!({"id":ID})).unwrap();
        checked(&reply);
        let shown = reply.structured["text"].as_str().unwrap().chars().count();
        assert!(shown >= 50_000, "{unit:?}: {shown}");
        let next = &reply.structured["metadata"]["next"]["args"]["offset_chars"];
        assert_eq!(*next, json!(shown));
    }
}
