//! Decision 23, ID-27: a number reaches the caller with all its digits, whichever way it takes.

use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::fake::{Call, Reply, State, fixtures};

use crate::host::{Caller, each_way};
use crate::wire::CURRENT;

fn data(number: &Value, text: &str) -> Value {
    json!({"n": number, "o": {"e": number, "list": [number, text]}, "t": text})
}

fn record(number: &Value, text: &str) -> Value {
    json!({"object": "record", "id": "r", "stream": "s", "connection_id": "c", "data": data(number, text)})
}

/// A server with one record. The number is the record's `n`, its largest, and a key to group by.
fn server(number: &Value, text: &str) -> State {
    let (number, record) = (number.clone(), record(number, text));
    fixtures::multi().on("/v1/streams/s/", move |call: &Call| {
        let body = match call.segments[3..] {
            [_] if call.path.ends_with("/records") => {
                json!({"object": "list", "has_more": false, "data": [record, record]})
            }
            [_, _] => record.clone(),
            [_, _, _] => {
                let error = json!({"code": "field_not_text", "message": "no text"});
                return Reply::json(422, &json!({ "error": error }));
            }
            _ if call.value("group_by").is_some() => {
                json!({"groups": [{"key": number, "count": 2}], "other_count": 0})
            }
            _ => json!({"object": "aggregation", "value": number}),
        };
        Reply::json(200, &body)
    })
}

/// Asks everything that tells the number, and holds what came against the record. Numbers are equal if their digits are.
fn reaches_the_caller(caller: &Caller, number: &Value, text: &str) {
    let (data, record) = (data(number, text), record(number, text));
    for args in [
        json!({"stream": "s"}),
        json!({"stream": "s", "changes_since": "beginning"}),
    ] {
        let page = caller.ok("query_records", args);
        assert_eq!(page.structured["data"]["data"], json!([record, record]));
        let shown = format!(r#"{{"n":{number},"o":{{"e":{number},"list":[{number},"#);
        assert!(page.text.contains(&shown), "{shown}: {}", page.text);
    }
    let document = caller.ok("fetch", json!({"id": "c/s:r"}));
    assert_eq!(document.structured["metadata"]["fields"]["n"], *number);
    assert!(document.text.contains(&json!(data.to_string()).to_string()));
    let projected = caller.ok("fetch", json!({"id": "c/s:r", "fields": ["n"]}));
    assert_eq!(projected.structured["text"], format!(r#"{{"n":{number}}}"#));
    let read = caller.resource("pdpp://record/c%2Fs%3Ar").unwrap();
    assert_eq!(read, record.to_string());
    for field in ["n", "o"] {
        let args = json!({"id": "c/s:r", "field_path": field});
        let window = caller.ok("read_record_field", args);
        let written = data[field].to_string();
        assert_eq!(window.structured["window"]["text"], written);
        assert_eq!(window.structured["field"]["size_bytes"], written.len());
        assert!(window.text.contains(&written), "{}", window.text);
    }
    let args = json!({"stream": "s", "metric": "max", "field": "n"});
    let largest = caller.ok("aggregate", args);
    assert_eq!(largest.structured["data"]["value"], *number);
    assert!(largest.text.contains(&format!("= {number}")));
    let args = json!({"stream": "s", "metric": "count", "group_by": "n"});
    let groups = caller.ok("aggregate", args);
    assert_eq!(groups.structured["data"]["groups"][0]["key"], *number);
    assert!(groups.text.contains(&format!("\n{number}=2")));
}

#[test]
fn a_number_keeps_its_digits_everywhere() {
    // ID-27
    for number in [
        "1E400",
        "123456789012345678901234567890",
        "0.12345678901234567890123",
        "2.50",
        "7",
        "-0",
    ] {
        let number: Value = serde_json::from_str(number).unwrap();
        each_way(&server(&number, "plain"), |caller| {
            reaches_the_caller(caller, &number, "plain");
        });
    }
}

/// A number is at most so long before texts about it are cut.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,40})",
        "-?(0|[1-9][0-9]{0,18})\\.[0-9]{1,20}",
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?[eE][-+]?[0-9]{1,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_number_reaches_the_caller_with_all_its_digits(number in number(), text in "[0-9.eE\\[\\]-]{0,24}") {
        let number: Value = serde_json::from_str(&number).unwrap();
        let caller = Caller::posting(server(&number, &text), CURRENT);
        reaches_the_caller(&caller, &number, &text);
    }
}

#[test]
fn a_number_as_long_as_a_text_is_bounded_like_one() {
    // LG-01
    let number: Value = serde_json::from_str(&"7".repeat(300_000)).unwrap();
    each_way(&server(&number, "plain"), |caller| {
        for (tool, args) in [
            ("query_records", json!({"stream": "s"})),
            ("fetch", json!({"id": "c/s:r"})),
            (
                "read_record_field",
                json!({"id": "c/s:r", "field_path": "n"}),
            ),
            (
                "aggregate",
                json!({"stream": "s", "metric": "max", "field": "n"}),
            ),
        ] {
            let params = json!({"name": tool, "arguments": args});
            let told = caller.request("tools/call", params);
            assert!(told.to_string().len() < 1_048_576, "{tool}");
            let text = told["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.len() < 16_384, "{tool} {}", text.len());
        }
    });
}
