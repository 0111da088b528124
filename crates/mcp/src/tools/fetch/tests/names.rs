//! Fields whose names some argument cannot carry.

use serde_json::{Map, Value, json};

use super::fetch;
use crate::stub::Stub;

#[test]
fn a_field_that_cannot_be_asked_for_is_named_and_left_out_of_the_call() {
    // HD-04, LG-04
    let mut data: Map<String, Value> = (0..80)
        .map(|n| (format!("f{n}"), json!("s".repeat(90))))
        .collect();
    data.insert("a,b".to_owned(), json!("z".repeat(90)));
    data.insert("text".to_owned(), json!("t"));
    let record = json!({"object":"record","id":"m1","stream":"mail","data":data});
    let stub = Stub::default().on("/v1/streams/mail/records/m1", record);
    let document = fetch(&stub, json!({"id":"c/mail:m1"}));
    let left_out = &document["metadata"]["fields_left_out"];
    assert_eq!(left_out["cannot_be_named"], json!(["a,b"]), "{left_out}");
    let asked = left_out["read"]["args"]["fields"].as_array().unwrap();
    assert!(!asked.is_empty() && !asked.contains(&json!("a,b")));
}

#[test]
fn a_document_without_a_way_on_says_so_instead_of_leading_in_circles() {
    // HD-04, LG-04
    let record = json!({"object":"record","id":"m1","stream":"mail",
        "data":{"title":"T","a/b":"word ".repeat(500)}});
    let stub = Stub::default().on("/v1/streams/mail/records/m1", record);
    for args in [
        json!({"id":"c/mail:m1"}),
        json!({"id":"c/mail:m1","fields":["a/b"]}),
    ] {
        let metadata = fetch(&stub, args)["metadata"].clone();
        assert_eq!(metadata["text_complete"], json!(false));
        assert!(
            metadata["next"]
                .as_str()
                .unwrap()
                .starts_with("no tool reads"),
            "{metadata}"
        );
        let window = &metadata["content_ladder"]["records"][0]["field_windows"][0];
        assert!(window.get("read").is_none(), "{window}");
        assert!(window["cannot_be_read"].is_string());
        assert_eq!(window["preview_status"], "truncated");
    }
}
