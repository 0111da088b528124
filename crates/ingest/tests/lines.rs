//! What one line of an import means, and why it may be refused.

use crate::memory::{Memory, NOW, connection, declaration, refused, refused_codes, stream};
use contract::declaration::Declaration;
use ingest::{
    Acceptor, BatchLimits, Format, Import, ImportReport, Input, JsonlImporter, LineForm,
    SingerImporter, StreamChoice, receive, singer,
};

/// Imports lines, each envelope or bare, into one stream.
fn import(store: &Memory, default: &str, lines: &[u8]) -> ImportReport {
    import_as(store, StreamChoice::Unless(stream(default)), lines)
}

fn import_as(store: &Memory, choice: StreamChoice, lines: &[u8]) -> ImportReport {
    let acceptor = store.acceptor_for(choice);
    store.import(&mut JsonlImporter::new(lines, &acceptor))
}

#[test]
fn content_is_kept_exactly_as_written() {
    let store = Memory::new(declaration());
    let written = r#"{ "id" : "n1", "size":1.0e1,  "title":"\u0041", "extra":123456789012345678901234567890.10 }"#;
    let line = format!(r#"  {{"key":"n1" , "emitted_at":"2026-01-01" ,"data": {written} }}  "#);
    assert_eq!(import(&store, "notes", line.as_bytes()).added, 1);
    assert_eq!(store.body("notes", "n1").as_deref(), Some(written));
    assert_eq!(
        store.emitted_at("notes", "n1").as_deref(),
        Some("2026-01-01")
    );

    let bare = format!("\t{}\r\n", written.replace("n1", "n2"));
    assert_eq!(import(&store, "notes", bare.as_bytes()).added, 1);
    assert_eq!(store.body("notes", "n2"), Some(written.replace("n1", "n2")));
    assert_eq!(
        store.emitted_at("notes", "n2").as_deref(),
        Some("2026-03-01T10:00:00.000Z")
    );
}

#[test]
fn the_key_of_a_bare_record_comes_from_its_primary_key_fields() {
    let store = Memory::new(declaration());
    let report = import(
        &store,
        "events",
        br#"{"number":7.0,"day":"2026-03-01","text":"x"}"#,
    );
    assert_eq!(report.added, 1);
    assert!(store.body("events", r#"["2026-03-01","7"]"#).is_some());
}

#[test]
fn a_compound_key_may_be_an_array_or_its_text() {
    let store = Memory::new(declaration());
    let lines = br#"{"key":["2026-03-01","1"],"data":{"day":"2026-03-01","number":1}}
{"key":"[ \"d\", \"2\" ]","data":{}}"#;
    assert_eq!(import(&store, "events", lines).added, 2);
    assert!(store.body("events", r#"["d","2"]"#).is_some());
}

#[test]
fn deletes_need_no_data_and_count_as_updates_of_what_was_there() {
    let store = Memory::new(declaration());
    let lines = br#"{"id":"a","title":"x"}
{"key":"a","op":"delete"}
{"key":"a","op":"delete","data":null}
{"key":"b","op":"delete"}"#;
    let report = import(&store, "notes", lines);
    assert_eq!((report.added, report.updated, report.unchanged), (1, 1, 2));
    assert!(store.records.borrow().is_empty());
}

#[test]
fn lines_may_name_their_stream_unless_one_is_prescribed() {
    let store = Memory::new(declaration());
    let line = br#"{"key":"k","stream":"settings","data":{}}"#;
    import(&store, "notes", line);
    assert!(store.body("settings", "k").is_some());
    import_as(&store, StreamChoice::Always(stream("notes")), line);
    assert!(store.body("notes", "k").is_some());

    let report = import_as(&store, StreamChoice::Named, br#"{"id":"a"}"#);
    assert_eq!(report.rejections[0].code.as_str(), "unknown_stream");
}

#[test]
fn a_stream_with_fields_named_key_and_data_is_read_with_care() {
    let cases = [
        // A whole record of the stream.
        (
            r#"{"key":"a","data":{"x":1}}"#,
            r#"{"key":"a","data":{"x":1}}"#,
        ),
        (r#"{"key":"a"}"#, r#"{"key":"a"}"#),
        // An envelope: the stream declares no `emitted_at`.
        (
            r#"{"key":"a","emitted_at":"2026-01-01","data":{"x":1}}"#,
            r#"{"x":1}"#,
        ),
        // An envelope: its data is a record with that key.
        (
            r#"{"key":"a","data":{"key":"a","data":{}}}"#,
            r#"{"key":"a","data":{}}"#,
        ),
    ];
    for (line, body) in cases {
        let store = Memory::new(declaration());
        assert_eq!(
            import(&store, "settings", line.as_bytes()).added,
            1,
            "{line}"
        );
        assert_eq!(store.body("settings", "a").as_deref(), Some(body), "{line}");
    }
}

/// A line, the code it is refused with, and words the message holds.
const FAULTS: &str = r#"
{"data":{"id":"a"}} | missing_key | no 'key'
{"key":null,"data":{}} | missing_key | no 'key'
{"title":"x"} | missing_key | 'id'
{"id":null} | missing_key | 'id'
{"key":"a","data":{},"type":"R"} | missing_key | 'type'
{"key":"a"} | missing_data | 'data'
{"key":"a","data":"text"} | missing_data | 'data'
{"key":"a","data":null} | missing_data | 'data'
{"key":"a","data":{"id":"b"}} | invalid_record_identity | 'b'
{"key":5,"data":{}} | invalid_record_identity | 'key'
{"key":["a","b"],"data":{}} | invalid_record_identity | one text
{"key":"","data":{}} | invalid_record_identity | empty
{"id":["a"]} | invalid_record_identity | 'id'
{"id":"a\u0000"} | invalid_record_identity | control
{"id":"a","size":"5"} | invalid_field_type | 'size' must be integer, got '5'
{"id":"a","size":1.5} | invalid_field_type | 'size' must be integer, got 1.5
{"id":"a","size":9223372036854775808} | invalid_field_type | 'size' must fit an integer of 64 bits, got 9223372036854775808
{"id":"a","rating":1e999} | invalid_field_type | 'rating' must fit a floating-point number of 64 bits, got 1e999
{"id":"a","title":null} | invalid_field_type | 'title' must be string, got null
{"id":"a","either":true} | invalid_field_type | integer or string
{"key":"a","data":{"tags":{}}} | invalid_field_type | 'tags'
{"id":"a","id":"a"} | duplicate_member | 'id'
{"id":"a","place":{"x":1,"x":2}} | duplicate_member | 'x'
{"id":"a" | malformed_ndjson | expected ',' or '}'
null | malformed_ndjson | object
["id"] | malformed_ndjson | object
{"key":"a","stream":"none","data":{}} | unknown_stream | 'none'
{"key":"a","stream":1,"data":{}} | unknown_stream | 'stream'
{"key":"a","emitted_at":"soon","data":{}} | invalid_emitted_at | RFC 3339
{"key":"a","emitted_at":7,"data":{}} | invalid_emitted_at | RFC 3339
{"key":"a","op":"drop","data":{}} | invalid_op | upsert
{"key":"a","op":null,"data":{}} | invalid_op | upsert
"#;

#[test]
fn each_fault_has_its_code_and_names_its_field() {
    for row in FAULTS.trim().lines() {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [line, code, says] = cells[..] else {
            panic!("{row}")
        };
        let store = Memory::new(declaration());
        let report = import(&store, "notes", line.as_bytes());
        assert_eq!((report.read, report.rejected), (1, 1), "{line}");
        assert!(store.records.borrow().is_empty(), "{line}");
        let refused = &report.rejections[0];
        assert_eq!(refused.code.as_str(), code, "{line}: {}", refused.message);
        assert!(refused.message.contains(says), "{}", refused.message);
    }
}

#[test]
fn null_is_a_value_only_where_it_is_declared() {
    let store = Memory::new(declaration());
    let lines = br#"{"id":"a","rating":null,"subtitle":null,"unknown":null}"#;
    assert_eq!(import(&store, "notes", lines).added, 1);
}

#[test]
fn bytes_that_are_no_text_are_refused_and_the_next_line_is_read() {
    let store = Memory::new(declaration());
    let report = import(&store, "notes", b"{\"id\":\"\xff\"}\n\n{\"id\":\"b\"}\n");
    assert_eq!((report.read, report.added, report.rejected), (2, 1, 1));
    assert_eq!(refused_codes(&report), ["1 invalid_utf8"]);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let store = Memory::new(declaration());
    let acceptor = store.acceptor_for(StreamChoice::Always(stream("notes")));
    let lines = b"{\"id\":\"a\",\"title\":\"0123456789\"}\n{\"id\":\"b\"}".as_slice();
    let connection = connection();
    let mut import = Import::new(&store, &connection, BatchLimits::default());
    let mut importer = JsonlImporter::with_limit(lines, &acceptor, 12);
    import.run(&mut importer, Some("f"), &mut |_| {}).unwrap();
    let report = import.into_report();
    assert_eq!((report.read, report.added, report.rejected), (2, 1, 1));
    assert_eq!(report.rejections[0].code.as_str(), "line_too_long");
    assert_eq!(report.rejections[0].file.as_deref(), Some("f"));
}

#[test]
fn a_value_that_breaks_the_declaration_is_refused_with_line_field_and_value() {
    // TR-13
    let store = Memory::new(declaration());
    let whole = r#"{"id":"a","booked":"2026-03-01","note":null"#;
    let lines = [
        format!(r#"{whole},"parties":[{{"name":"Anna","mail":"anna@example.org"}}]}}"#),
        format!(r#"{whole},"valued_at":"tomorrow"}}"#),
        format!(r#"{whole},"currency":"CHF"}}"#),
        format!(r#"{whole},"amount":-0.5}}"#),
        format!(r#"{whole},"parties":[{{"name":"Anna"}},{{"mail":"x@y.example"}}]}}"#),
        format!(r#"{whole},"parties":[{{"name":"Anna","mail":"anna"}}]}}"#),
        r#"{"id":"a","note":"x"}"#.to_owned(),
        r#"{"key":"a","data":{"id":"a","booked":"2026-02-30","note":"x"}}"#.to_owned(),
        r#"{"key":"a","op":"delete","data":{}}"#.to_owned(),
    ];
    let report = import(&store, "bookings", lines.join("\n").as_bytes());
    assert_eq!(
        refused(&report),
        [
            "2 invalid_field_value: field 'valued_at' must be a date-time such as 2026-03-01T10:00:00Z, got 'tomorrow'",
            "3 invalid_field_value: field 'currency' must be one of 'EUR', 'USD', got 'CHF'",
            "4 invalid_field_value: field 'amount' must be at least 0, got -0.5",
            "5 missing_field: field 'parties' at /1/name is required and missing",
            "6 invalid_field_value: field 'parties' at /0/mail must be an email address, got 'anna'",
            "7 missing_field: field 'booked' is required and missing",
            "8 invalid_field_value: field 'booked' must be a date such as 2026-03-01, got '2026-02-30'",
        ]
    );
    assert_eq!(report.rejections[1].field.as_deref(), Some("currency"));
    assert_eq!(report.rejections[1].value.as_deref(), Some("CHF"));
    // What is deleted need not be whole.
    assert_eq!((report.added, report.updated), (1, 1));
}

#[test]
fn append_only_streams_take_the_same_again_and_nothing_else() {
    let store = Memory::new(declaration());
    let lines = br#"{"day":"2026-03-01","number":1,"text":"x"}
{"day":"2026-03-01","number":1,"text":"y"}
not json
{"number":1.0,"day":"2026-03-01","text":"x"}"#;
    let report = import(&store, "events", lines);
    assert_eq!((report.added, report.unchanged, report.rejected), (1, 1, 2));
    let told = ["2 append_only_conflict", "3 malformed_ndjson"];
    assert_eq!(refused_codes(&report), told);
}

#[test]
fn a_receipt_names_every_refused_line_by_its_place() {
    let store = Memory::new(declaration());
    let declaration = declaration();
    let notes = stream("notes");
    let choice = StreamChoice::Always(notes.clone());
    let acceptor = Acceptor::new(&declaration, choice, LineForm::EnvelopeOnly, &NOW);
    let lines = b"{\"key\":\"a\",\"stream\":\"x\",\"data\":{},\"run\":1}\n\n{\"id\":\"b\"}\n{\"key\":\"c\",\"data\":{\"size\":\"1\"}}\n";
    let receipt = receive(
        &store,
        &connection(),
        &notes,
        (lines.as_slice(), &acceptor),
        NOW,
    )
    .unwrap();
    let json = serde_json::to_value(&receipt).unwrap();
    let counts = (receipt.records_attempted, receipt.records_accepted);
    assert_eq!((counts, receipt.records_rejected), ((3, 1), 2));
    assert_eq!(json["stream"], "notes");
    assert_eq!(json["errors"], serde_json::json!([]));
    assert_eq!(json["rejections"][0]["input_index"], 1);
    assert_eq!(json["rejections"][0]["code"], "missing_key");
    assert_eq!(json["rejections"][1]["field"], "size");
    let id = json["rejections"][1]["receipt_id"].as_str().unwrap();
    assert!(id.starts_with("rr_") && id.len() == 27, "{id}");
}

#[test]
fn records_that_a_tap_puts_into_files_are_refused_by_name() {
    let text = r#"{"type":"SCHEMA","stream":"boats","schema":{"properties":{"id":{"type":"integer"}}},"key_properties":["id"]}
{"type":"RECORD","stream":"boats","record":{"id":1}}
{"type":"ACTIVATE_VERSION","stream":"boats","version":1}
{"type":"BATCH","stream":"boats","encoding":{"format":"jsonl"},"manifest":["file:///boats.jsonl"]}
"#;
    let input = Input::of_format("tap", "tap", Format::Singer, text.as_bytes()).unwrap();
    let streams = singer::scan(input).unwrap().streams;
    let declaration = Declaration::parse(&singer::declaration("tap", "Tap", &streams)).unwrap();
    let store = Memory::new(declaration);
    let acceptor = store.acceptor();
    let mut importer = SingerImporter::new(text.as_bytes(), &acceptor, &store.declaration);
    let report = store.import(&mut importer);
    assert_eq!((report.added, report.rejected), (1, 1));
    let why = &report.rejections[0].message;
    assert!(why.contains("BATCH"), "{why}");
}
