//! What a page of records answers, over canned servers.

mod arguments;

use serde_json::{Value, json};

use crate::stub::{Stub, printed_args};

const MAIL: &str = "/v1/streams/mail/records";

fn query(stub: &Stub, args: Value) -> (String, Value) {
    let reply = stub.call("query_records", args).unwrap();
    (reply.text, reply.structured.into_json())
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn record(key: &str, data: Value) -> Value {
    json!({"object":"record","id":key,"stream":"mail","connection_id":"c1","connector_key":"gmail","data":data})
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn over(records: Vec<Value>) -> Stub {
    Stub::default().on(
        MAIL,
        json!({"object": "list", "data": records, "has_more": false}),
    )
}

#[test]
fn a_page_shows_its_handles_its_count_and_its_rows() {
    // QR-01, ID-27, FE-13
    let body = json!({"object":"list","data":[record("o1", json!({"id":"o1","total":12.50})), record("o2", json!({"id":"o2"}))],
        "has_more":true,"next_cursor":"cur_2","next_changes_since":"chg_2","meta":{"count":{"kind":"exact","value":42},
        "warnings":[{"code":"limit_clamped","message":"x"}]}});
    let stub = Stub::default().on(MAIL, body.clone());
    let (text, structured) = query(&stub, json!({"stream": "mail"}));
    insta::assert_snapshot!("page", text);
    for handle in [
        r#"next_cursor="cur_2""#,
        r#"next_changes_since="chg_2""#,
        "count=exact:42",
        "warnings=limit_clamped",
    ] {
        assert!(text.contains(handle), "{handle}");
    }
    assert_eq!(structured["data"], body);
    assert_eq!(structured["content_ladder"]["kind"], "record_set");
    assert_eq!(
        structured["content_ladder"]["records"][0]["id"],
        "c1/mail:o1"
    );
    assert_eq!(structured["request_id"], "req_1");
    assert_eq!(stub.asked(), ["/v1/streams/mail/records?limit=10"]);
}

#[test]
fn a_page_too_large_to_be_taken_is_asked_for_again_as_one_row() {
    // LG-01, LG-05
    let one = json!({"object": "list", "data": [record("o1", json!({"id": "o1"}))], "has_more": true, "next_cursor": "c"});
    let stub = Stub::default()
        .overflowing("/v1/streams/mail/records?limit=100")
        .on("/v1/streams/mail/records?limit=1", one);
    let (text, structured) = query(&stub, json!({"stream": "mail", "limit": 100}));
    assert!(text.contains(" page_shortened=1of100 "), "{text}");
    assert_eq!(
        structured["page_shortened"],
        json!({"asked": 100, "shown": 1})
    );
    assert_eq!(stub.asked().len(), 2);
    // What is too large as one row stays an error, and is asked for once.
    let stub = Stub::default().overflowing(MAIL);
    let fault = stub.call("query_records", json!({"stream": "mail", "limit": 1}));
    assert_eq!(fault.unwrap_err().code(), "rs_bad_response");
    assert_eq!(stub.asked().len(), 1);
}

#[test]
fn no_rows_and_one_row_are_fine() {
    let (text, structured) = query(&over(vec![]), json!({"stream": "mail"}));
    insta::assert_snapshot!("empty", text);
    assert!(structured.get("content_ladder").is_none());
    let (text, _) = query(
        &over(vec![record(
            "m1",
            json!({"id":"m1","subject":"Hi\nthere \u{202e}x","n":null}),
        )]),
        json!({"stream": "mail"}),
    );
    insta::assert_snapshot!("one", text);
}

#[test]
fn a_page_of_ordinary_rows_is_visible_whole() {
    // QR-04
    let rows = (0..10).map(|i| {
        record(&format!("m{i}"), json!({"id":format!("m{i}"),"sender":"ann@example.org","subject":format!("Lunch {i}"),"sent_at":"2026-01-01T12:00:00Z"}))
    });
    let (text, _) = query(&over(rows.collect()), json!({"stream": "mail"}));
    assert!(text.len() < 1_800);
    for i in 0..10 {
        assert!(
            text.contains(&format!(r#""subject":"Lunch {i}""#)),
            "{text}"
        );
    }
    assert!(!text.contains("incomplete") && !text.contains("not_shown"));
}

#[test]
fn a_row_shows_what_it_is_called_by_whom_and_when_before_anything_else() {
    // AN-17
    let rows: Vec<Value> = (0..6)
        .map(|i| {
            let subject = format!("{i}: a subject of the usual length, and then a few words more than fit");
            record(&format!("m{i}"), json!({"id":format!("m{i}"),"faden":"t-1596","antwort_auf":"m-04873","ordner":"Eingang",
                "betreff":subject,"absender":"Lucía Fernández de la Vega","gesendet":"2026-01-01T12:00:00Z","text":"words ".repeat(80)}))
        })
        .collect();
    let roles = json!({"title": "betreff", "author": "absender", "time": "gesendet"});
    let body = json!({"object": "list", "data": rows, "has_more": false, "meta": {"roles": roles}});
    let (text, _) = query(&Stub::default().on(MAIL, body), json!({"stream": "mail"}));
    assert!(text.len() < 1_800);
    for i in 0..5 {
        // A long title is cut, and takes nothing from author and time.
        let row = format!(r#"id=c1/mail:m{i} {{"betreff":"{i}: a subject of the usual"#);
        let row = text.lines().find(|line| line.contains(&row)).unwrap();
        let who_and_when =
            r#"…","absender":"Lucía Fernández de la Vega","gesendet":"2026-01-01T12:00:00Z""#;
        assert!(row.contains(who_and_when), "{text}");
    }
}

#[test]
fn a_row_that_is_cut_keeps_the_beginning_of_its_text_and_does_not_repeat_its_key() {
    // AN-17
    let rows: Vec<Value> = (0..6)
        .map(|i| {
            record(&format!("m-0487{i}"), json!({"id":format!("m-0487{i}"),"thread_id":"t-1596","in_reply_to":"m-04860",
                "subject":"Workshop","from_email":"mara.keller@tidewater.example","folder":"sent","seen":true,"size_bytes":765,
                "received_at":"2026-10-28T17:42:00Z","body":"Two remarks on the drawing. ".repeat(20)}))
        })
        .collect();
    let roles = json!({"title": "subject", "author": "from_email", "time": "received_at"});
    let body = json!({"object": "list", "data": rows, "has_more": false, "meta": {"roles": roles}});
    let (text, _) = query(&Stub::default().on(MAIL, body), json!({"stream": "mail"}));
    assert!(text.len() < 1_800);
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" {\"subject\""))
        .collect();
    assert!(rows.len() >= 5, "{text}");
    // The last has what the others left.
    for row in &rows[..5] {
        assert!(
            row.contains(r#""body":"Two remarks"#) && !row.contains(r#""id":"m-"#),
            "{text}"
        );
    }
}

#[test]
fn changes_show_what_is_gone() {
    let gone = json!({"object":"record","id":"m2","stream":"mail","connection_id":"c1","deleted":true,"deleted_at":"2026-02-01T00:00:00Z"});
    let (text, structured) = query(
        &over(vec![gone, record("m1", json!({"id":"m1"}))]),
        json!({"stream": "mail", "changes_since": "beginning"}),
    );
    insta::assert_snapshot!("tombstone", text);
    assert!(text.starts_with(
        r#"records from stream "mail": 2 record(s). has_more=false first_fetch_id=c1/mail:m1"#
    ));
    assert_eq!(
        structured["content_ladder"]["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_record_whose_id_leaves_no_room_is_named_once_and_its_page_leads_on() {
    // BU-03, HD-01: it was called not shown, and the call to show it was the one that had been made.
    for (key, cursor) in [(510, 940), (510, 1_100), (300, 900), (700, 300)] {
        let rows = [record(&"k".repeat(key), json!({"id": "x", "title": "T"}))];
        for more in 0..2 {
            let rows: Vec<Value> = rows.iter().cycle().take(1 + 4 * more).cloned().collect();
            let body = json!({"object":"list","data":rows,"has_more":true,"next_cursor":"c".repeat(cursor)});
            let stub = Stub::default().on(MAIL, body);
            let limit = rows.len();
            let args = json!({"stream":"mail","connection_id":"c1","limit":limit,"cursor":"d".repeat(120)});
            let (text, _) = query(&stub, args.clone());
            let most = 1_800.max(key + cursor + 320);
            assert!(text.len() < most, "{}: {text}", text.len());
            assert!(
                !printed_args(&text, "query_records").contains(&args),
                "{text}"
            );
            assert!(!text.contains("rows_not_shown=1 "), "{text}");
            assert!(text.contains("\n1. "), "{text}");
            assert!(
                text.ends_with("pass next_cursor as cursor")
                    || text.ends_with("next_cursor as cursor.")
            );
        }
    }
}

#[test]
fn a_key_that_no_handle_can_carry_is_shown_as_one_that_cannot_be_fetched() {
    // HD-04
    let rows = vec![
        record("..", json!({"title": "up"})),
        record("m1", json!({"title": "T"})),
    ];
    let (text, _) = query(&over(rows), json!({"stream": "mail"}));
    assert!(text.contains("\n1. ref=.. (cannot be fetched) {"), "{text}");
    assert!(text.contains("first_fetch_id=c1/mail:m1\n"), "{text}");
}

/// FX-BIG.
fn big(key: &str) -> Value {
    record(
        key,
        json!({"id":key,"body":"word ".repeat(40_000),"profile":{"about":"x".repeat(40_000)},
        "attachment":{"object":"blob_ref","blob_id":"b1","mime_type":"image/png","size_bytes":81_234},
        "raw":"QUJDREVGR0hJSktM".repeat(512)}),
    )
}

#[test]
fn a_large_record_is_cut_openly_and_leads_on() {
    // HD-01, LG-02, LG-03, LG-04
    let (text, structured) = query(&over(vec![big("m1")]), json!({"stream": "mail"}));
    insta::assert_snapshot!("cut", text);
    assert!(text.len() < 1_800);
    assert!(!text.contains("QUJDREVG"), "no bytes in text");
    assert!(text.contains("image/png") && text.contains("81234"));
    assert!(text.contains("incomplete size=248338 bytes"), "{text}");
    assert_eq!(
        printed_args(&text, "read_record_field"),
        [json!({"id":"c1/mail:m1","field_path":"body","offset_chars":0,"limit_chars":4096})]
    );
    let rung = &structured["content_ladder"]["records"][0];
    assert_eq!(rung["json_fields"][0]["field_path"], "profile");
    assert_eq!(rung["binary_fields"].as_array().unwrap().len(), 2);
    // AN-41: a row that is too large alone shows first windows, marked, each with the call that reads on.
    let body = &structured["data"]["data"][0]["data"]["body"];
    assert_eq!(
        (&body["truncated"], &body["size"]),
        (&json!(true), &json!(200_000))
    );
    assert_eq!(body["read"]["tool"], "read_record_field");
    assert!(structured.to_string().len() <= 8_192);
}

#[test]
fn a_hundred_large_records_are_bounded_counted_and_reachable() {
    // LG-01, LG-05
    let rows: Vec<Value> = (0..100).map(|i| big(&format!("m{i}"))).collect();
    let (text, structured) = query(&over(rows), json!({"stream": "mail", "limit": 100}));
    insta::assert_snapshot!("many", text);
    assert!(text.len() < 1_800, "{}", text.len());
    assert!(structured.to_string().len() + text.len() * 2 < 1_048_576);
    let rows = structured["data"]["data"].as_array().unwrap();
    assert_eq!(rows.len(), 100);
    let body = &rows[99]["data"]["body"];
    assert_eq!(
        (&body["truncated"], &body["size"]),
        (&json!(true), &json!(200_000))
    );
    assert_eq!(body["read"]["args"]["id"], "c1/mail:m99");
    assert_eq!(
        rows[0]["data"]["profile"]["read"]["args"]["fields"],
        json!(["profile"])
    );
    let again = &printed_args(&text, "query_records")[0];
    let shown = again["limit"].as_u64().unwrap();
    assert!(text.contains(&format!("rows_not_shown={} ", 100 - shown)));
    assert!(
        text.contains(&format!("c1/mail:m{}\n", shown - 1)),
        "{text}"
    );
}

#[test]
fn rows_too_many_and_too_small_to_shorten_are_replaced_whole() {
    let wide = |i: usize| {
        let data: serde_json::Map<String, Value> = (0..200)
            .map(|field| (format!("field_{field}"), json!("v".repeat(100))))
            .collect();
        record(&format!("m{i}"), Value::Object(data))
    };
    let (text, structured) = query(
        &over((0..100).map(wide).collect()),
        json!({"stream": "mail", "limit": 100}),
    );
    assert!(structured.to_string().len() + text.len() * 2 < 1_048_576);
    let row = &structured["data"]["data"][99];
    assert_eq!(row["id"], "m99");
    assert_eq!(
        row["data"]["read"],
        json!({"tool": "fetch", "args": {"id": "c1/mail:m99"}})
    );
}

#[test]
fn no_server_can_make_the_text_too_long() {
    // BU-03
    for filler in ["word ", "日本語", "👩‍👧‍👦🎉", "\u{202e}\n\"\\"] {
        for key_chars in [1, 60, 260] {
            let long = |chars: usize| filler.chars().cycle().take(chars).collect::<String>();
            let rows: Vec<Value> = (0..40)
                .map(|i| {
                    record(
                        &format!("{i}{}", "k".repeat(key_chars)),
                        json!({long(40): long(300), "deep": [[long(90)]], "b": long(5_000)}),
                    )
                })
                .collect();
            let body = json!({"object":"list","data":rows,"has_more":true,"next_cursor":"c".repeat(300),"next_changes_since":"d".repeat(200)});
            let stub = Stub::default().on(MAIL, body);
            let (text, _) = query(&stub, json!({"stream": "mail", "limit": 100}));
            assert!(
                text.len() < 1_800,
                "{filler} {key_chars}: {} {text}",
                text.len()
            );
            assert!(text.contains("\n1. id=c1/mail:0k"), "{text}");
            assert!(!text.contains("k…"), "no id is cut: {text}");
            assert!(!text.contains(['\u{202e}', '\u{200d}']));
        }
    }
}

#[test]
fn a_cursor_longer_than_the_budget_still_stands_whole() {
    let cursor = "c".repeat(4_000);
    let body = json!({"data":[big("m1"), big("m2")],"has_more":true,"next_cursor":cursor});
    let stub = Stub::default().on(MAIL, body);
    let (text, _) = query(&stub, json!({"stream": "mail"}));
    assert!(text.contains(&format!("\"{cursor}\"")));
    assert!(text.len() < 4_000 + 600, "{}", text.len());
    assert!(text.contains("first_fetch_id=c1/mail:m1 "));
}

#[test]
fn window_uris_around_records_are_dropped_and_what_people_wrote_is_not() {
    // HD-08
    let mut row = record("m1", json!({"note": "pdpp://field-window/mine"}));
    row["resource_uri"] = json!("pdpp://field-window/zzz");
    row["links"] = json!({"window": "pdpp://field-window/yyy", "self": "/v1"});
    let (_, structured) = query(&over(vec![row]), json!({"stream": "mail"}));
    let row = &structured["data"]["data"][0];
    assert!(row.get("resource_uri").is_none());
    assert_eq!(row["links"], json!({"self": "/v1"}));
    assert_eq!(row["data"]["note"], "pdpp://field-window/mine");
}

#[test]
fn related_records_are_shown_with_their_record() {
    let mut row = record("m1", json!({"id": "m1"}));
    row["expanded"] =
        json!({"thread": {"object": "list", "data": [record("t1", json!({"topic": "Lunch"}))]}});
    let schema = json!({"connectors":[{"streams":[{"name":"mail","expand_capabilities":[{"name":"thread"}]}]}]});
    let stub = over(vec![row]).on("/v1/schema", schema);
    let args =
        json!({"stream":"mail","expand":["thread"],"expand_limit":{"thread":5},"fields":["id"]});
    let (text, structured) = query(&stub, args);
    assert!(
        text.contains(r#"{"id":"m1","expanded":{"thread":[{"topic":"Lunch"}]}}"#),
        "{text}"
    );
    assert_eq!(
        structured["data"]["data"][0]["expanded"]["thread"]["data"][0]["data"]["topic"],
        "Lunch"
    );
    // UP-04
    assert_eq!(
        stub.asked(),
        [
            "/v1/schema?view=compact&stream=mail",
            "/v1/streams/mail/records?fields=id&limit=10&expand=thread&expand_limit[thread]=5"
        ]
    );
}
