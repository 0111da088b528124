//! Whole records: what is shown, and which ids are refused.

mod names;
mod shapes;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::budget;
use crate::record_server::RecordServer;
use crate::stub::Stub;

/// Ids that are no record's, whoever is asked.
pub(in crate::tools) fn refused_ids() -> Vec<String> {
    let plain = [
        "noseparator",
        "orders:",
        ":o1",
        "/orders:o1",
        "cin_a/:o1",
        "cin_a/orders:",
        "cin_a/orders",
        "cin_a/",
        "cin_a/x/orders:o1",
        "cin_a/orders:a/b",
        "cin_a//orders:o1",
        "../cin/orders:o1",
        "cin/..:o1",
        "cin/orders:..",
        "cin/orders:../../etc/passwd",
        "orders:../../x",
        "cin\\x/orders:o1",
        "cin/or\\ders:o1",
        "./orders:o1",
        "cin/orders:a..b",
        "a:b/orders:o1",
    ];
    let encoded = |text: &str| {
        let escaped =
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
        format!("pdpp://record/{escaped}")
    };
    let mut ids: Vec<String> = plain.iter().map(|id| (*id).to_owned()).collect();
    ids.extend(plain.iter().map(|id| encoded(id)));
    // The payloads {"v":1,"kind":"record",…} with "..", "../x" or "a/b" in one part or another.
    for (connection, stream, record) in [
        ("..", "orders", "o1"),
        ("a/b", "orders", "o1"),
        ("c", "..", "o1"),
        ("c", "a/b", "o1"),
        ("c", "orders", "../x"),
        ("c", "orders", ".."),
        ("c", "orders", "a\\..\\b"),
    ] {
        let payload = json!({"v":1,"kind":"record","connection_id":connection,"stream":stream,"record_id":record});
        ids.push(format!(
            "pdpp://record/{}",
            base64url(payload.to_string().as_bytes())
        ));
    }
    ids.push("pdpp://record/".to_owned());
    ids.push("pdpp://record/%zz".to_owned());
    ids
}

pub(in crate::tools) fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut written = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            written.push(char::from(ALPHABET[index as usize]));
        }
    }
    written
}

const ID: &str = "cin_slack/messages:m1";

/// FX-MULTI, the records of it.
fn multi() -> Stub {
    let record = |connection: &str, text: &str| {
        json!({"object":"record","id":"o1","stream":"orders","connection_id":connection,"connector_key":"amazon",
            "display_name":"Laptop Amazon","emitted_at":"2026-05-01T00:00:00Z","data":{"id":"o1","text":text}})
    };
    let ambiguous = json!({"error":{"type":"api_error","code":"ambiguous_connection","message":"two","retry_with":"connection_id",
        "available_connections":[{"connection_id":"cin_aaa"},{"connection_id":"cin_bbb"}]}});
    let route = "/v1/streams/orders/records/o1";
    Stub::default()
        .refusing(route, 409, ambiguous)
        .on(
            &format!("{route}?connection_id=cin_aaa"),
            record("cin_aaa", "LAPTOP"),
        )
        .on(
            &format!("{route}?connection_id=cin_bbb"),
            record("cin_bbb", "ORG"),
        )
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
    // ID-07, ID-08, ID-09, ID-11, FE-04, FE-14
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

#[test]
fn legacy_ids_mean_what_they_meant() {
    // ID-07, ID-12, ID-13, ID-21, AM-08
    let stub = multi();
    let fault = stub.call("fetch", json!({"id":"orders:o1"})).unwrap_err();
    assert_eq!(
        (fault.code(), fault.http_status()),
        ("ambiguous_connection", Some(409))
    );
    let told = fault.structured();
    assert_eq!(
        told["error"]["available_connections"][1]["connection_id"],
        "cin_bbb"
    );
    assert_eq!(told["error"]["retry_with"], "connection_id");
    let document = fetch(&stub, json!({"id":"orders:o1","connection_id":"cin_bbb"}));
    assert_eq!(
        (&document["id"], &document["text"]),
        (&json!("orders:o1"), &json!("ORG"))
    );
    let entry = &document["metadata"]["content_ladder"]["records"][0];
    assert_eq!(
        entry["id"], "cin_bbb/orders:o1",
        "continuations stand alone"
    );
    fetch(
        &stub,
        json!({"id":"cin_aaa/orders:o1","connection_id":"cin_aaa"}),
    );
    let route = "/v1/streams/orders/records/o1";
    let queries = ["", "?connection_id=cin_bbb", "?connection_id=cin_aaa"];
    assert_eq!(stub.asked(), queries.map(|query| format!("{route}{query}")));
}

#[test]
fn two_connections_that_disagree_are_refused() {
    // ID-20
    let stub = multi();
    let args = json!({"id":"cin_aaa/orders:o1","connection_id":"cin_bbb"});
    let fault = stub.call("fetch", args).unwrap_err();
    assert_eq!(fault.code(), "conflicting_connection_id");
    for word in ["cin_aaa", "cin_bbb", "leave out connection_id"] {
        assert!(fault.text().contains(word), "{}", fault.text());
    }
    assert!(stub.asked().is_empty());
}

#[test]
fn what_is_no_id_is_refused_before_anything_is_asked() {
    // ID-22, ID-23, ID-24, ID-25
    let stub = multi();
    for id in refused_ids() {
        let fault = stub.call("fetch", json!({"id":id})).unwrap_err();
        assert_eq!(fault.code(), "invalid_id", "{id}");
        assert!(fault.text().contains("\nnext: "));
    }
    let fault = stub.call("fetch", json!({"id":""})).unwrap_err();
    assert_eq!(fault.code(), "invalid_arguments");
    assert!(stub.asked().is_empty());
}

#[test]
fn a_key_is_one_segment_and_a_handle_reads_its_own_record_only() {
    // ID-14, ID-26, HD-05
    let stub = Stub::default().on("/v1/streams/", json!({"id":"x","data":{"text":"t"}}));
    for (id, path) in [
        ("orders:a:b:c", "/v1/streams/orders/records/a%3Ab%3Ac"),
        (
            "cin/orders:a:b",
            "/v1/streams/orders/records/a%3Ab?connection_id=cin",
        ),
    ] {
        fetch(&stub, json!({"id":id}));
        assert_eq!(stub.asked().pop().unwrap(), path);
    }
    let odd = RecordHandle::new(Some("cin_slack"), "messages", "a/b:c").unwrap();
    let document = fetch(&stub, json!({"id":odd.to_string()}));
    assert_eq!(document["id"], odd.to_string(), "no other id can be formed");
    let asked = "/v1/streams/messages/records/a%2Fb%3Ac?connection_id=cin_slack";
    assert_eq!(stub.asked().pop().unwrap(), asked);
}

#[test]
fn a_record_uri_comes_back_as_a_self_contained_id() {
    // HD-05, HD-11, FE-09
    let server = RecordServer::new(json!({"text":"x"}));
    let uri = RecordHandle::parse(ID).unwrap().to_uri();
    for id in [
        uri.as_str(),
        "pdpp://record/cin_slack%2Fmessages%3Am1",
        "pdpp://record/messages%3Am1",
    ] {
        let reply = server.call("fetch", &json!({"id":id})).unwrap();
        assert_eq!(reply.structured["id"], ID, "{id}");
        assert!(!reply.text.contains("pdpp://"));
    }
}

#[test]
fn a_projection_leaves_nothing_else_anywhere() {
    // FE-05, FE-06, FE-07, FE-08
    let record = |data: Value| {
        json!({"object":"record","id":"m1","stream":"mail","connection_id":"c1","connector_key":"gmail",
            "metadata":{"mood":"SECRET2"},"secret_top":"SECRET1","data":data})
    };
    for data in [
        json!({"id":"m1","subject":"S","body":"SECRET3","title":"SECRET4"}),
        json!({"subject":"S"}),
    ] {
        let stub = Stub::default().on("/v1/streams/mail/records/m1", record(data));
        let args = json!({"id":"c1/mail:m1","fields":["subject"]});
        let reply = stub.call("fetch", args).unwrap();
        checked(&reply);
        assert!(!format!("{reply:?}").contains("SECRET"), "{reply:?}");
        assert_eq!(reply.structured["title"], "S");
        assert_eq!(reply.structured["text"], r#"{"subject":"S"}"#);
        let metadata = &reply.structured["metadata"];
        assert_eq!(metadata["stream"], "mail");
        assert_eq!(metadata["connection_id"], "c1");
        assert_eq!(metadata["connector_key"], "gmail");
        assert!(reply.text.len() < 2_500);
        assert_eq!(
            stub.asked(),
            ["/v1/streams/mail/records/m1?connection_id=c1&fields=subject"]
        );
    }
}

#[test]
fn the_description_names_every_key_that_survives_a_projection() {
    // FE-11
    for name in crate::answer::FETCHED_MEMBERS {
        assert!(TOOL.description.contains(name), "{name}");
    }
}

#[test]
fn definitions_stay_small() {
    // BU-01, TS-03
    for name in ["fetch", "read_record_field"] {
        let tool = crate::tools::find(name).unwrap().tool();
        let size = serde_json::to_string(&tool).unwrap().len();
        assert!(size <= 2_100, "{name}: {size}");
    }
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
fn a_long_text_is_cut_openly_and_read_on_to_its_end() {
    // LG-01, LG-02, LG-03, LG-04, HD-02
    let server = big();
    let reply = server.call("fetch", &json!({"id":ID})).unwrap();
    checked(&reply);
    let metadata = &reply.structured["metadata"];
    assert_eq!(metadata["text_complete"], false);
    assert_eq!(metadata["text_total_chars"], 200_000);
    let mut read = reply.structured["text"].as_str().unwrap().to_owned();
    assert_eq!(read.chars().count(), budget::FETCH_TEXT_CHARS);
    assert!(!reply.text.contains("QUJD"), "no bytes");
    let mut next = Some(metadata["next"].clone());
    while let Some(call) = next {
        let page = server.follow(&call).unwrap();
        read.push_str(page.structured["window"]["text"].as_str().unwrap());
        next = page.structured.get("next").cloned();
    }
    let source: String = "日本語 and words 👩. "
        .chars()
        .cycle()
        .take(200_000)
        .collect();
    assert!(read == source, "the pages are the text");
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

    #[test]
    fn a_legacy_id_is_its_stream_and_its_key(stream in "[a-z][a-z_-]{0,8}", key in "[a-zA-Z0-9 :,%日-]{1,12}") {
        // ID-15
        let stub = Stub::default().on("/v1/", json!({"id":"x","data":{"text":"t"}}));
        let id = format!("{stream}:{key}");
        let document = fetch(&stub, json!({"id":id}));
        prop_assert_eq!(&document["id"], &json!(id));
        let expected = Get::v1(["streams", stream.as_str(), "records", key.as_str()]).target();
        prop_assert_eq!(stub.asked(), [expected]);
    }
}
