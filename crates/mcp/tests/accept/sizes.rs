//! LG: large and binary values.

use serde_json::{Value, json};
use testkit::fake::fixtures;

use crate::host::each_way;
use crate::paging::ids;
use crate::windows::walk;

const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgABiVBORw0KGgo";

// LG-02, LG-03, LG-06, HD-01; LG-07, because every answer is held to have no part but text
#[test]
fn each_kind_of_value_is_told_with_its_size_and_a_way_on() {
    let state = fixtures::big_of(2, 200_000);
    let record = state.world.records[1].clone();
    each_way(&state, |caller| {
        let read = |field: &str| {
            caller.ok(
                "read_record_field",
                json!({"id": "c1/mail:m1", "field_path": field}),
            )
        };
        let body = read("body");
        assert!(body.text.contains("total_chars=200000") && body.text.contains("complete=false"));
        assert_eq!(body.printed("read_record_field").len(), 1);

        let profile = read("profile");
        let written = record.data["profile"].to_string();
        assert!(
            profile
                .text
                .contains(&format!("size_bytes={}", written.len())),
            "{}",
            profile.text
        );
        let whole = walk(
            caller,
            json!({"id": "c1/mail:m1", "field_path": "profile", "offset_chars": 0}),
        );
        assert_eq!(
            serde_json::from_str::<Value>(&whole).unwrap(),
            record.data["profile"]
        );
    });
}

// LG-02, LG-03
#[test]
fn bytes_are_told_by_size_and_type_with_a_way_to_get_them() {
    each_way(&fixtures::big_of(2, 500), |caller| {
        let read = |field: &str| {
            let args = json!({"id": "c1/mail:m1", "field_path": field});
            caller.ok("read_record_field", args)
        };
        let attachment = read("attachment");
        for told in ["image/png", "81234", "complete=false", "/v1/blobs/b1"] {
            assert!(
                attachment.text.contains(told),
                "{told}: {}",
                attachment.text
            );
        }
        let raw = read("raw");
        assert!(
            raw.text.contains("size_chars=8192") && raw.text.contains("base64"),
            "{}",
            raw.text
        );
        for answer in [&attachment, &raw] {
            assert!(answer.text.contains("export: GET /v1/"), "{}", answer.text);
        }
        // fetch tells more of a blob; of bytes in the record it leads here, so it is no way on.
        let document = caller.ok("fetch", attachment.printed("fetch").remove(0));
        assert!(document.text.contains("81234"), "{}", document.text);
        assert!(raw.printed("fetch").is_empty(), "{}", raw.text);
        let document = caller.ok("fetch", json!({"id": "c1/mail:m1", "fields": ["raw"]}));
        assert!(!document.text.contains(BASE64), "no bytes in text");
        let ladder = &document.structured["metadata"]["content_ladder"];
        let read = &ladder["records"][0]["binary_fields"][0]["read"];
        assert_eq!(read["tool"], "read_record_field", "{ladder}");
        // The route that is named gives the value.
        let route = raw
            .text
            .split("export: GET ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        assert_eq!(
            route,
            "/v1/streams/mail/records/m1?connection_id=c1&fields=raw"
        );
    });
}

// LG-02: no bytes in any text, whichever tool shows the record.
#[test]
fn bytes_stand_in_no_text() {
    each_way(&fixtures::big_of(3, 500), |caller| {
        let calls = [
            ("query_records", json!({"stream": "mail"})),
            (
                "query_records",
                json!({"stream": "mail", "fields": ["raw"]}),
            ),
            ("search", json!({"query": "sentence"})),
            ("fetch", json!({"id": "c1/mail:m1"})),
            (
                "fetch",
                json!({"id": "c1/mail:m1", "fields": ["raw", "attachment"]}),
            ),
            (
                "read_record_field",
                json!({"id": "c1/mail:m1", "field_path": "raw"}),
            ),
            (
                "read_record_field",
                json!({"id": "c1/mail:m1", "field_path": "attachment"}),
            ),
        ];
        for (tool, args) in calls {
            let answer = caller.ok(tool, args.clone());
            assert!(!answer.text.contains(BASE64), "{tool} {args}");
        }
        assert!(
            !caller
                .resource("pdpp://record/c1%2Fmail%3Am1")
                .unwrap()
                .contains(BASE64)
        );
    });
}

// LG-04: complete is said only of what is complete, at sizes around every limit.
#[test]
fn nothing_is_called_complete_that_is_not() {
    for chars in [
        1, 255, 1_024, 4_095, 4_096, 4_097, 99_999, 100_000, 100_001, 120_000,
    ] {
        let state = fixtures::big_of(1, chars);
        let body = state.world.records[0].data["body"]
            .as_str()
            .unwrap()
            .to_owned();
        each_way(&state, |caller| {
            let document = caller.ok("fetch", json!({"id": "c1/mail:m0"}));
            let is_whole = document.structured["text"] == json!(body);
            assert_eq!(
                document.structured["metadata"]["text_complete"], is_whole,
                "{chars}"
            );
            assert_eq!(is_whole, chars <= 100_000, "{chars}");
            assert_eq!(document.structured["metadata"]["text_total_chars"], chars);
            let window = caller.ok(
                "read_record_field",
                json!({"id": "c1/mail:m0", "field_path": "body"}),
            );
            let is_whole = window.structured["window"]["text"] == json!(body);
            assert_eq!(window.structured["window"]["complete"], is_whole, "{chars}");
            assert!(window.text.contains(&format!("complete={is_whole}")));
            let page = caller.ok("query_records", json!({"stream": "mail"}));
            let is_shown = page.text.contains(&body);
            assert!(
                is_shown || page.text.contains("incomplete size="),
                "{chars}: {}",
                page.text
            );
            assert_eq!(ids(&page.text), ["c1/mail:m0"]);
        });
    }
}
