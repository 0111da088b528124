//! The one grammar of ids: what is read, what is refused before anything is asked, and that printing reads back.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use contract::{
    ErrorCode, Handle, HandleError, ReadError, RecordHandle, WindowHandle, WindowSelector,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parts(text: &str) -> Result<Parts, HandleError> {
    let handle = RecordHandle::parse(text)?;
    Ok((
        handle.connection().map(str::to_owned),
        handle.stream().to_owned(),
        handle.record().to_owned(),
    ))
}

type Parts = (Option<String>, String, String);

fn named(connection: Option<&str>, stream: &str, record: &str) -> Parts {
    (
        connection.map(str::to_owned),
        stream.to_owned(),
        record.to_owned(),
    )
}

fn uri(kind: &str, payload: &Value) -> String {
    format!(
        "pdpp://{kind}/{}",
        URL_SAFE_NO_PAD.encode(payload.to_string())
    )
}

fn record_uri(connection: &str, stream: &str, record: &str) -> String {
    let payload = json!({"v":1,"kind":"record","connection_id":connection,"stream":stream,"record_id":record});
    uri("record", &payload)
}

fn percent_encoded(bytes: &[u8]) -> String {
    let hex = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| ['%', hex(byte >> 4), hex(byte & 15)])
        .collect()
}

fn is_invalid_id(text: &str) -> bool {
    RecordHandle::parse(text).is_err_and(|error| error.code() == ErrorCode::InvalidId)
}

#[test]
fn composed_and_legacy_ids_are_read() {
    assert_eq!(
        parts("cin_4f2a/orders:o1"),
        Ok(named(Some("cin_4f2a"), "orders", "o1"))
    );
    assert_eq!(parts("orders:o1"), Ok(named(None, "orders", "o1")));
    assert_eq!(
        parts("cin/orders:m 1,2[x]"),
        Ok(named(Some("cin"), "orders", "m 1,2[x]"))
    );
}

#[test]
fn the_stream_ends_at_the_first_colon() {
    // ID-14
    assert_eq!(parts("orders:a:b:c"), Ok(named(None, "orders", "a:b:c")));
    assert_eq!(
        parts("cin/orders:a:b"),
        Ok(named(Some("cin"), "orders", "a:b"))
    );
    assert_eq!(parts("orders::a"), Ok(named(None, "orders", ":a")));
}

#[test]
fn every_id_with_a_missing_part_is_refused() {
    // ID-22
    for id in [
        "",
        "noseparator",
        "orders:",
        ":o1",
        "cin_a/",
        "/orders:o1",
        "cin_a/orders",
        "cin_a/:o1",
        "cin_a/orders:",
        "/",
        ":",
        "/:",
    ] {
        assert!(is_invalid_id(id), "{id}");
    }
}

#[test]
fn every_id_with_too_many_parts_is_refused() {
    // ID-23
    for id in [
        "cin_a/x/orders:o1",
        "cin_a/extra/orders:o1",
        "cin_a/orders:a/b",
        "cin_a//orders:o1",
        "https://example.test/1:2",
        "pdpp://unknown/x:y",
    ] {
        assert!(is_invalid_id(id), "{id}");
    }
}

#[test]
fn traversal_is_refused_in_every_form() {
    // ID-24, ID-25
    for id in [
        "../cin/orders:o1",
        "cin/..:o1",
        "cin/orders:..",
        "cin/orders:.",
        "cin/.:o1",
        "./orders:o1",
        "cin/orders:../../etc/passwd",
        "orders:../../x",
        "orders:../../etc/passwd",
        "cin\\x/orders:o1",
        "cin/or\\ders:o1",
        "cin/orders:a\\b",
        "cin/orders:a..b",
        "ci..n/orders:o1",
        "cin/orders:a\0b",
        "cin/ord\ners:o1",
    ] {
        assert!(is_invalid_id(id), "{id}");
        assert!(
            is_invalid_id(&format!("pdpp://record/{}", percent_encoded(id.as_bytes()))),
            "{id}"
        );
        assert!(
            is_invalid_id(&format!("pdpp://record/{id}")),
            "{id} unencoded"
        );
    }
    for (connection, stream, record) in [
        ("..", "orders", "o1"),
        ("../cin", "orders", "o1"),
        ("a/b", "orders", "o1"),
        ("cin\\x", "orders", "o1"),
        ("a:b", "orders", "o1"),
        ("", "orders", "o1"),
        ("cin", "..", "o1"),
        ("cin", "or/ders", "o1"),
        ("cin", "or\\ders", "o1"),
        ("cin", "", "o1"),
        ("cin", "orders", ""),
        ("cin", "orders", "."),
        ("cin", "orders", ".."),
        ("cin", "orders", "../../etc/passwd"),
        ("cin", "orders", "a/../b"),
        ("cin", "orders", "a\\..\\b"),
        ("cin", "orders", "a/."),
        ("cin", "orders", "a\0"),
        ("cin", "orders", "a\r\nb"),
    ] {
        let id = record_uri(connection, stream, record);
        assert!(is_invalid_id(&id), "{connection:?} {stream:?} {record:?}");
    }
    assert!(is_invalid_id("pdpp://record/cin%2F..%2Forders:o1"));
    assert!(is_invalid_id("pdpp://record/cin%2Forders%3A..%2Fx"));
}

#[test]
fn a_key_with_a_separator_is_never_read_as_another_record() {
    // ID-26
    assert!(is_invalid_id("messages:a/b:c"));
    let handle = RecordHandle::new(Some("cin_slack"), "messages", "a/b:c").unwrap();
    let printed = handle.to_string();
    assert!(printed.starts_with("pdpp://record/"), "{printed}");
    assert_eq!(RecordHandle::parse(&printed), Ok(handle));
}

#[test]
fn uris_carry_a_payload_or_an_encoded_id() {
    let expected = Ok(named(Some("cin_a"), "orders", "o1"));
    assert_eq!(parts(&record_uri("cin_a", "orders", "o1")), expected);
    assert_eq!(parts("pdpp://record/cin_a%2Forders%3Ao1"), expected);
    assert_eq!(parts("pdpp://record/cin_a/orders:o1"), expected);
    let padded = base64::engine::general_purpose::URL_SAFE.encode(
        json!({"v":1,"kind":"record","connection_id":"cin_a","stream":"orders","record_id":"o1"})
            .to_string(),
    );
    assert_eq!(parts(&format!("pdpp://record/{padded}")), expected);
    let open = uri(
        "record",
        &json!({"v":1,"kind":"record","stream":"orders","record_id":"a/b"}),
    );
    assert_eq!(parts(&open), Ok(named(None, "orders", "a/b")));
}

#[test]
fn uris_of_another_version_kind_or_shape_are_refused() {
    let record = json!({"v":1,"kind":"record","connection_id":"c","stream":"s","record_id":"r"});
    for (member, value) in [
        ("v", json!(2)),
        ("v", json!("1")),
        ("kind", json!("field-window")),
        ("stream", json!(null)),
        ("record_id", json!(7)),
        ("connection_id", json!(["c"])),
    ] {
        let mut broken = record.clone();
        broken[member] = value;
        assert!(is_invalid_id(&uri("record", &broken)), "{broken}");
    }
    for rest in [
        "",
        "%",
        "%2",
        "%zz",
        "%ff%fe",
        "e30",
        "e30=",
        "eyJ2Ijox",
        "bm90anNvbg",
        "pdpp://record/s:r",
    ] {
        assert!(is_invalid_id(&format!("pdpp://record/{rest}")), "{rest}");
    }
    assert!(is_invalid_id(&"s:r".repeat(10_000)));
}

#[test]
fn the_other_connection_is_a_conflict_that_names_both() {
    // ID-20, ID-21
    let handle = RecordHandle::parse("cin_aaa/orders:o1").unwrap();
    assert_eq!(
        handle.clone().with_connection(Some("cin_aaa")),
        Ok(handle.clone())
    );
    assert_eq!(handle.clone().with_connection(None), Ok(handle.clone()));
    let error = handle.with_connection(Some("cin_bbb")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConflictingConnectionId);
    let error = ReadError::from(error);
    assert!(error.message.contains("cin_aaa") && error.message.contains("cin_bbb"));
    assert!(
        error
            .hint
            .is_some_and(|hint| hint.contains("leave out connection_id"))
    );
    let legacy = RecordHandle::parse("orders:o1").unwrap();
    let joined = legacy.with_connection(Some("cin_bbb")).unwrap();
    assert_eq!(joined.connection(), Some("cin_bbb"));
    assert_eq!(joined.to_string(), "cin_bbb/orders:o1");
}

#[test]
fn a_connection_outside_the_grammar_stays_beside_the_id() {
    // ID-17
    for connection in ["weird/conn", "a:b", "a\\b", "..", "x..y"] {
        let handle = RecordHandle::new(Some(connection), "messages", "m1").unwrap();
        assert!(!handle.embeds_connection());
        assert_eq!(handle.to_string(), "messages:m1");
        let back = RecordHandle::parse("messages:m1").unwrap();
        assert_eq!(back.with_connection(Some(connection)), Ok(handle));
    }
    let handle = RecordHandle::new(Some("c1"), "messages", "m1").unwrap();
    assert!(handle.embeds_connection());
    // ID-19
    let handle = RecordHandle::new(None, "messages", "m2").unwrap();
    assert!(!handle.embeds_connection());
    assert_eq!(handle.to_string(), "messages:m2");
}

#[test]
fn errors_say_which_part_and_why() {
    let message = |id: &str| RecordHandle::parse(id).unwrap_err().to_string();
    assert_eq!(
        message("cin/..:o1"),
        "the stream in the record id is '.' or contains '..': '..'"
    );
    assert_eq!(
        message("/orders:o1"),
        "the connection id in the record id is empty: ''"
    );
    assert!(message("orders").contains("no ':'"));
    let error = ReadError::from(RecordHandle::parse("orders").unwrap_err());
    assert_eq!(error.param.as_deref(), Some("id"));
    assert_eq!(error.code, ErrorCode::InvalidId);
}

#[test]
fn window_handles_carry_record_field_and_selectors() {
    let record = RecordHandle::parse("cin/messages:m1").unwrap();
    let selector = WindowSelector {
        offset_chars: Some(5),
        limit_chars: Some(400),
        ..WindowSelector::default()
    };
    let window = WindowHandle::new(record, "text", selector).unwrap();
    let printed = window.to_string();
    let payload = printed.strip_prefix("pdpp://field-window/").unwrap();
    let payload: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    assert_eq!(
        payload,
        json!({"v":1,"kind":"field-window","connection_id":"cin","stream":"messages","record_id":"m1",
               "field_path":"text","offset_chars":5,"limit_chars":400})
    );
    assert_eq!(
        Handle::parse(&printed),
        Ok(Handle::Window(Box::new(window)))
    );
    assert!(RecordHandle::parse(&printed).is_err());
}

#[test]
fn broken_window_handles_are_refused() {
    let good = json!({"v":1,"kind":"field-window","stream":"s","record_id":"r","field_path":"f"});
    assert!(Handle::parse(&uri("field-window", &good)).is_ok());
    for (member, value) in [
        ("v", json!(0)),
        ("kind", json!("record")),
        ("stream", json!("..")),
        ("record_id", json!("../x")),
        ("field_path", json!(null)),
        ("field_path", json!("")),
        ("field_path", json!("../x")),
        ("offset_chars", json!(-1)),
        ("offset_chars", json!(1.5)),
        ("q", json!(1)),
    ] {
        let mut broken = good.clone();
        broken[member] = value;
        assert!(
            Handle::parse(&uri("field-window", &broken)).is_err(),
            "{broken}"
        );
    }
    assert!(Handle::parse("pdpp://field-window/").is_err());
    assert!(Handle::parse("pdpp://field-window/s:r").is_err());
}

/// Whether something on the way could resolve this text to another place.
fn leads_away(text: &str) -> bool {
    text.is_empty()
        || text
            .split(['/', '\\'])
            .any(|part| part == "." || part == "..")
        || text.contains(char::is_control)
}

/// ID-16, ID-26: what a search calls a hit without a record must not read the record of a stream of that name.
#[test]
fn a_place_in_a_list_of_results_is_no_record() {
    for place in ["result:1", "result:27", "pdpp://record/result%3A1"] {
        assert!(RecordHandle::parse(place).is_err(), "{place}");
    }
    assert_eq!(RecordHandle::parse("c1/result:1").unwrap().record(), "1");
    assert_eq!(RecordHandle::parse("result:a1").unwrap().record(), "a1");
    let record = RecordHandle::new(None, "result", "1").unwrap();
    assert_eq!(RecordHandle::parse(&record.to_string()), Ok(record));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn legacy_ids_without_separators_read_as_their_parts(stream in "[a-zA-Z0-9_%+ é-]{1,12}", record in "[a-zA-Z0-9_:%+ \\[\\]é😀-]{1,12}") {
        // ID-15
        prop_assert_eq!(parts(&format!("{stream}:{record}")), Ok(named(None, &stream, &record)));
    }

    #[test]
    fn every_handle_reads_back_from_what_it_prints(
        connection in prop::option::of("[a-z0-9_-]{1,8}"),
        stream in "[a-z:._]{1,6}",
        record in "[a-z/:.\\\\\\[\\]\" %😀]{1,12}",
    ) {
        if let Ok(handle) = RecordHandle::new(connection.as_deref(), &stream, &record) {
            prop_assert_eq!(RecordHandle::parse(&handle.to_string()), Ok(handle.clone()));
            prop_assert_eq!(RecordHandle::parse(&handle.to_uri()), Ok(handle));
        }
    }

    #[test]
    fn any_text_is_read_without_panic_and_never_leads_away(
        text in "\\PC{0,40}|[a-c./\\\\:%25efEF\\x00-\\x02]{0,24}|pdpp://(record|field-window)/[a-zA-Z0-9_%./:=-]{0,60}",
    ) {
        if let Ok(handle) = Handle::parse(&text) {
            let record = handle.record();
            prop_assert!(!leads_away(record.record()) && !leads_away(record.stream()));
            prop_assert!(!record.stream().contains(['/', '\\']) && !record.stream().contains(".."));
            if let Some(connection) = record.connection() {
                prop_assert!(!leads_away(connection) && !connection.contains(['/', '\\', ':']));
            }
            prop_assert_eq!(Handle::parse(&handle.to_string()), Ok(handle));
        }
    }

    #[test]
    fn any_payload_is_read_without_panic_and_never_leads_away(
        connection in "[a./\\\\:\\x00]{0,5}", stream in "[a./\\\\:\\x00]{0,5}", record in "[a./\\\\:\\x00]{0,6}",
    ) {
        if let Ok(handle) = RecordHandle::parse(&record_uri(&connection, &stream, &record)) {
            prop_assert!(![&connection, &stream, &record].into_iter().any(|part| leads_away(part)));
            prop_assert!(!connection.contains(['/', '\\', ':']) && !stream.contains(['/', '\\']));
            prop_assert_eq!(RecordHandle::parse(&handle.to_string()), Ok(handle));
        }
    }

    #[test]
    fn any_bytes_in_a_uri_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for kind in ["record", "field-window"] {
            let _ = Handle::parse(&format!("pdpp://{kind}/{}", URL_SAFE_NO_PAD.encode(&bytes)));
            let encoded = percent_encoded(&bytes);
            let _ = Handle::parse(&format!("pdpp://{kind}/{encoded}"));
        }
        let _ = Handle::parse(&String::from_utf8_lossy(&bytes));
    }
}
