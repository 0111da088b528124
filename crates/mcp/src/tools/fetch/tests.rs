//! Whole records: what is shown, and which ids are refused.

mod names;
mod shapes;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::budget;
use crate::record_server::RecordServer;
use crate::stub::Stub;

const ID: &str = "cin_slack/messages:m1";

/// FX-MULTI, one record of it.
fn multi() -> Stub {
    let record = json!({"object":"record","id":"o1","stream":"orders","connection_id":"cin_aaa","connector_key":"amazon",
        "display_name":"Laptop Amazon","emitted_at":"2026-05-01T00:00:00Z","data":{"id":"o1","text":"LAPTOP"}});
    let route = "/v1/streams/orders/records/o1?connection_id=cin_aaa";
    Stub::default().on(route, record)
}

#[test]
fn a_record_that_says_it_is_another_is_not_passed_off_as_the_one_asked_for() {
    // ID-26
    for answer in [
        json!({"object":"record","id":"o2","stream":"orders","connection_id":"cin_aaa","data":{"text":"STOLEN"}}),
        json!({"object":"record","id":"o1","stream":"orders","connection_id":"cin_bbb","data":{"text":"STOLEN"}}),
        json!({"object":"record","id":"o1","stream":"mail","data":{"text":"STOLEN"}}),
    ] {
        let stub = Stub::default().on("/v1/streams/orders/records/o1", answer);
        let given = json!({"id": "cin_aaa/orders:o1"});
        let fault = stub.call("fetch", given).unwrap_err();
        assert_eq!(fault.code(), "rs_bad_response");
        assert!(!fault.text().contains("STOLEN"), "{}", fault.text());
    }
}

fn fetch(stub: &Stub, args: Value) -> Value {
    let reply = stub.call("fetch", args).unwrap();
    checked(&reply);
    reply.structured.into_json()
}

/// Five members, mirrored exactly, within the ceiling of a result.
fn checked(reply: &Reply) {
    // FE-01, FE-02, FE-03, LG-01
    let members: Vec<&String> = reply.structured.as_object().unwrap().keys().collect();
    assert_eq!(members, ["id", "title", "text", "url", "metadata"]);
    let mirror: Value = serde_json::from_str(&reply.text).unwrap();
    assert_eq!(mirror, *reply.structured);
    assert_eq!(reply.text, reply.structured.to_string());
    let both = json!([reply.text, *reply.structured]).to_string();
    assert!(both.len() < budget::RESULT, "{}", both.len());
}

#[test]
fn a_self_contained_id_is_all_a_fetch_needs() {
    // ID-07, ID-08, ID-09, ID-11, FE-01 to FE-04, FE-14
    let stub = multi();
    let document = fetch(&stub, json!({"id":"cin_aaa/orders:o1"}));
    assert_eq!(
        stub.asked(),
        ["/v1/streams/orders/records/o1?connection_id=cin_aaa"]
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r#"
    {
      "id": "cin_aaa/orders:o1",
      "title": "Laptop Amazon / orders / 2026-05-01T00:00:00Z",
      "text": "LAPTOP",
      "url": "https://provider.test/v1/streams/orders/records/o1?connection_id=cin_aaa",
      "metadata": {
        "stream": "orders",
        "record_id": "o1",
        "connection_id": "cin_aaa",
        "connector_key": "amazon",
        "display_name": "Laptop Amazon",
        "emitted_at": "2026-05-01T00:00:00Z",
        "fields": {
          "id": "o1"
        },
        "content_ladder": {
          "kind": "record",
          "read_tool": "read_record_field",
          "records": [
            {
              "id": "cin_aaa/orders:o1",
              "field_windows": [
                {
                  "field_path": "text",
                  "size_chars": 6,
                  "preview_status": "complete",
                  "read": {
                    "tool": "read_record_field",
                    "args": {
                      "id": "cin_aaa/orders:o1",
                      "field_path": "text",
                      "offset_chars": 0,
                      "limit_chars": 4096
                    }
                  }
                }
              ]
            }
          ]
        },
        "text_field": "text",
        "text_complete": true,
        "text_total_chars": 6
      }
    }
    "#);
    assert!(document.to_string().len() < 804);
}

/// FX-BIG
fn big() -> RecordServer {
    let body: String = "日本語 and words 👩. "
        .chars()
        .cycle()
        .take(200_000)
        .collect();
    let profile: Vec<String> = (0..4_000).map(|n| format!("entry{n}")).collect();
    RecordServer::new(json!({
        "body": body, "profile": profile,
        "attachment": {"object":"blob_ref","blob_id":"b1","mime_type":"image/png","size_bytes":81_234},
        "raw": "QUJDREVGR0hJSktM".repeat(500), "n": 1.5}))
}

#[test]
fn a_record_without_a_text_is_its_json_with_a_way_on() {
    // LG-03, HD-01
    let server = big();
    let args = json!({"id":ID,"fields":["profile","attachment","raw"]});
    let reply = server.call("fetch", &args).unwrap();
    checked(&reply);
    let text = reply.structured["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), budget::FETCH_JSON_CHARS);
    assert!(
        text.ends_with("metadata says how to read each field)"),
        "{text}"
    );
    assert!(!reply.text.contains("QUJD"));
    let metadata = &reply.structured["metadata"];
    assert_eq!(metadata["text_complete"], false);
    let page = server.follow(&metadata["next"]).unwrap();
    assert!(
        page.text.contains("field=profile type=array"),
        "{}",
        page.text
    );
    let entry = &metadata["content_ladder"]["records"][0];
    assert_eq!(entry["binary_fields"].as_array().unwrap().len(), 2);
}

#[test]
fn every_call_a_document_prints_can_be_made() {
    // HD-04, LG-06
    fn calls(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Object(object) if object.contains_key("tool") => found.push(value.clone()),
            Value::Object(object) => object.values().for_each(|value| calls(value, found)),
            Value::Array(list) => list.iter().for_each(|value| calls(value, found)),
            _ => {}
        }
    }
    let mut data = json!({"body":"b".repeat(150_000),"odd/name":"x ".repeat(3_000),"profile":{"a":vec!["z"; 900]}});
    for n in 0..80 {
        data[format!("scalar{n}")] = json!(format!("{n} {}", "v ".repeat(60)));
    }
    let server = RecordServer::new(data);
    let reply = server.call("fetch", &json!({"id":ID})).unwrap();
    let mut found = Vec::new();
    calls(&reply.structured, &mut found);
    assert!(found.len() >= 5, "{found:?}");
    for call in found {
        assert!(server.follow(&call).is_ok(), "{call}");
    }
}

#[test]
fn a_list_is_no_record() {
    let stub = Stub::default().on("/v1/streams/mail/records/m1", json!([1, 2]));
    let fault = stub.call("fetch", json!({"id":"mail:m1"})).unwrap_err();
    assert_eq!(fault.code(), "rs_bad_response");
}

fn field() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(|number| json!(number)),
        "[a-z日\u{1f600} \"\n]{0,40}".prop_map(|text| json!(text)),
        (1_usize..4_000).prop_map(|size| json!("word ".repeat(size))),
        (1_usize..400).prop_map(|size| json!(vec!["entry"; size])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_field_is_shown_or_accounted_for(
        data in proptest::collection::btree_map("[a-z]{1,8}", field(), 0..60),
    ) {
        // LG-04
        let server = RecordServer::new(json!(data));
        let reply = server.call("fetch", &json!({"id":ID})).unwrap();
        checked(&reply);
        let metadata = &reply.structured["metadata"];
        let mut known: Vec<String> = Vec::new();
        known.extend(metadata["text_field"].as_str().map(str::to_owned));
        if let Some(fields) = metadata["fields"].as_object() {
            known.extend(fields.keys().cloned());
        }
        let entry = &metadata["content_ladder"]["records"][0];
        for list in ["field_windows", "json_fields", "binary_fields"] {
            for one in entry[list].as_array().into_iter().flatten() {
                known.push(one["field_path"].as_str().unwrap().to_owned());
            }
        }
        let left = metadata["fields_left_out"]["names"].as_array();
        known.extend(left.into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()));
        for name in data.keys() {
            prop_assert!(known.contains(name), "{} is lost", name);
        }
        let text = reply.structured["text"].as_str().unwrap();
        if metadata["text_complete"] == true && metadata["text_field"].is_null() {
            prop_assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!(data));
        }
    }
}
