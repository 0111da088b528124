//! Identifiers, record keys and typed values.

use std::collections::BTreeMap;

use contract::{
    BlobId, ClientId, ConnectionId, ConnectorKey, FieldKind, FieldName, Instant, RecordKey, Scalar,
    StreamName,
};
use proptest::prelude::*;

fn owned(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

#[test]
fn connector_keys_are_lower_case_words() {
    for good in ["gmail", "0x", "a.b_c-d", &"a".repeat(64)] {
        assert_eq!(ConnectorKey::parse(good).unwrap(), good);
    }
    for bad in [
        "",
        "Gmail",
        ".a",
        "-a",
        "a..b",
        "a/b",
        "a b",
        "é",
        &"a".repeat(65),
    ] {
        assert!(ConnectorKey::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn connection_ids_fit_every_place_an_id_stands() {
    for good in ["a", "gmail-work_2", &"a".repeat(32)] {
        assert!(ConnectionId::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "A", "_a", "a.b", "a:b", "a/b", &"a".repeat(33)] {
        assert!(ConnectionId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_default_connection_id_is_a_slug_of_connector_and_name() {
    let slug = |connector: &str, name: &str| {
        ConnectionId::slug(&ConnectorKey::parse(connector).unwrap(), name).to_string()
    };
    assert_eq!(slug("gmail", "Work"), "gmail-work");
    assert_eq!(slug("gmail", "Gmail (work) 2"), "gmail-work-2");
    assert_eq!(slug("gmail", "Gmail"), "gmail");
    assert_eq!(slug("gmail", "gmailish"), "gmail-gmailish");
    assert_eq!(slug("my.mail", "私"), "my-mail");
    assert_eq!(slug("gmail", ""), "gmail");
    assert_eq!(
        slug("a", &"long name ".repeat(9)),
        "a-long-name-long-name-long-name"
    );
    let id = ConnectionId::parse("a".repeat(32)).unwrap();
    assert_eq!(id.numbered(12).as_str(), format!("{}-12", "a".repeat(29)));
}

#[test]
fn stream_names_can_stand_in_a_record_id() {
    for good in ["messages", "Messages sent", "a.b", "é"] {
        assert!(StreamName::parse(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "*",
        ".",
        "..",
        "a..b",
        "a/b",
        "a\\b",
        "a:b",
        "a\nb",
        &"a".repeat(129),
    ] {
        assert!(StreamName::parse(bad).is_err(), "{bad}");
    }
    let error = StreamName::parse("a:b").unwrap_err().to_string();
    assert!(
        error.starts_with("'a:b' is not a valid stream name: "),
        "{error}"
    );
}

#[test]
fn field_names_and_foreign_ids_are_nearly_free() {
    assert!(FieldName::parse("a.b/c \"d\"").is_ok());
    assert!(FieldName::parse("").is_err() && FieldName::parse("a\0").is_err());
    assert!(ClientId::parse("https://app.test/client.json").is_ok());
    assert!(ClientId::parse("a b").is_err());
}

#[test]
fn blob_ids_name_their_digest() {
    let id = BlobId::from_sha256([0xab; 32]);
    assert_eq!(id.hex(), "ab".repeat(32));
    assert_eq!(BlobId::parse(id.to_string()), Ok(id.clone()));
    for bad in [
        "",
        "blob_sha256_",
        "blob_sha256_zz",
        &id.as_str().to_uppercase(),
        &format!("{id}0"),
    ] {
        assert!(BlobId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn identifiers_travel_as_texts_and_are_checked_on_the_way_in() {
    let id = ConnectionId::parse("mail").unwrap();
    let text = serde_json::to_string(&id).unwrap();
    assert_eq!(text, "\"mail\"");
    assert_eq!(serde_json::from_str::<ConnectionId>(&text).unwrap(), id);
    assert!(serde_json::from_str::<ConnectionId>("\"Mail\"").is_err());
    let map = BTreeMap::from([(id, 1)]);
    assert_eq!(map.get("mail"), Some(&1));
}

#[test]
fn a_single_key_is_its_text() {
    for text in ["m1", "a/b", "..", "[\"x\"]", "é 😀", &"k".repeat(512)] {
        let key = RecordKey::single(text).unwrap();
        assert_eq!(key.as_str(), text);
        assert_eq!(key.parts(), [text]);
        assert_eq!(RecordKey::from_wire(text, 1), Ok(key));
    }
    for bad in ["", "a\nb", "\u{1}", "\u{85}", &"k".repeat(513)] {
        assert!(RecordKey::single(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_compound_key_is_a_minified_array_of_strings() {
    let key = RecordKey::compound(&owned(&["x", "1"])).unwrap();
    assert_eq!(key.as_str(), r#"["x","1"]"#);
    assert_eq!(key.parts(), ["x", "1"]);
    for spelling in [r#"["x","1"]"#, r#" [ "x" , "1" ] "#, r#"["\u0078","1"]"#] {
        assert_eq!(
            RecordKey::from_wire(spelling, 2),
            Ok(key.clone()),
            "{spelling}"
        );
    }
    for bad in [
        "x",
        r#"["x"]"#,
        r#"["x","1","2"]"#,
        r#"["x",1]"#,
        r#"["",""]"#,
        r#"["a","\n"]"#,
        "[",
        "",
    ] {
        assert!(RecordKey::from_wire(bad, 2).is_err(), "{bad}");
    }
    assert!(RecordKey::compound(&owned(&["x"])).is_err());
    assert!(RecordKey::compound(&["k".repeat(300), "k".repeat(300)]).is_err());
    assert_eq!(
        RecordKey::compound(&owned(&["", "1"])).unwrap().as_str(),
        r#"["","1"]"#
    );
}

#[test]
fn scalars_are_read_by_the_kind_of_their_field() {
    use FieldKind as K;
    let instant = |text: &str| Instant::parse(text).map(Scalar::Instant);
    for (kind, raw, expected) in [
        (K::Boolean, "true", Some(Scalar::Boolean(true))),
        (K::Boolean, "\"true\"", None),
        (K::Integer, "5", Some(Scalar::Integer(5))),
        (K::Integer, "5.0", Some(Scalar::Integer(5))),
        (K::Integer, "50e-1", Some(Scalar::Integer(5))),
        (
            K::Integer,
            "9223372036854775807",
            Some(Scalar::Integer(i64::MAX)),
        ),
        (K::Integer, "9223372036854775808", None),
        (K::Integer, "1e999999999", None),
        (K::Integer, "5.5", None),
        (K::Integer, "\"5\"", None),
        (K::Number, "5", Some(Scalar::Number(5.0))),
        (K::Number, "1e999", None),
        (K::Text, "\"a\\u00e9\"", Some(Scalar::Text("aé".to_owned()))),
        (K::Text, "5", None),
        (K::Text, "null", None),
        (K::Date, "\"2026-03-01\"", instant("2026-03-01T00:00:00Z")),
        (
            K::DateTime,
            "\"2026-03-01T12:00:00+02:00\"",
            instant("2026-03-01T10:00:00Z"),
        ),
        (K::DateTime, "\"soon\"", None),
        (K::DateTime, "1772359200", None),
        (K::Object, "{}", None),
        (K::Mixed, "5", None),
    ] {
        assert_eq!(Scalar::from_json(kind, raw), expected, "{kind:?} {raw}");
    }
    // Negative zero is zero, also in its bits.
    let zero = |raw: &str| serde_json::to_string(&Scalar::from_json(K::Number, raw)).unwrap();
    assert_eq!(zero("-0.0"), zero("0"));
}

#[test]
fn operands_are_read_strictly_and_errors_name_the_form() {
    use FieldKind as K;
    let read = |kind, text: &str| Scalar::from_request(kind, text);
    assert_eq!(read(K::Integer, "-12"), Ok(Scalar::Integer(-12)));
    assert_eq!(read(K::Number, "1.5e1"), Ok(Scalar::Number(15.0)));
    assert_eq!(read(K::Boolean, "false"), Ok(Scalar::Boolean(false)));
    assert_eq!(read(K::Text, ""), Ok(Scalar::Text(String::new())));
    assert!(read(K::Date, "2026-03-01").is_ok());
    for (kind, text) in [
        (K::Integer, "abc"),
        (K::Integer, ""),
        (K::Integer, "-"),
        (K::Integer, "+1"),
        (K::Integer, "1.0"),
        (K::Integer, " 1"),
        (K::Integer, "٣"),
        (K::Integer, "9223372036854775808"),
        (K::Number, "inf"),
        (K::Number, "NaN"),
        (K::Number, "1e999"),
        (K::Number, ".5"),
        (K::Boolean, "True"),
        (K::Boolean, "1"),
        (K::Date, "yesterday"),
        (K::Object, "{}"),
        (K::Mixed, "1"),
    ] {
        assert!(read(kind, text).is_err(), "{kind:?} {text}");
    }
    assert_eq!(
        read(K::Integer, "abc").unwrap_err().to_string(),
        "expected an integer, got 'abc'"
    );
    assert_eq!(
        read(K::Boolean, "1").unwrap_err().to_string(),
        "expected true or false, got '1'"
    );
}

#[test]
fn kinds_have_the_names_they_serialise_to() {
    use FieldKind as K;
    for kind in [
        K::Boolean,
        K::Integer,
        K::Number,
        K::Text,
        K::Date,
        K::DateTime,
        K::Object,
        K::Array,
        K::Mixed,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        let comparable = !matches!(kind, K::Object | K::Array | K::Mixed);
        assert_eq!(kind.is_scalar(), comparable);
    }
}

/// A key part: anything without control characters.
fn part() -> impl Strategy<Value = String> {
    "[a-c\"\\\\\\[\\],/. é😀]{0,6}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn keys_round_trip_through_wire_and_ordering_form(parts in prop::collection::vec(part(), 1..4)) {
        let key = match parts.as_slice() {
            [only] => RecordKey::single(only.clone()),
            _ => RecordKey::compound(&parts),
        };
        if let Ok(key) = key {
            prop_assert_eq!(key.parts(), parts.clone());
            prop_assert_eq!(&RecordKey::from_wire(key.as_str(), parts.len()), &Ok(key.clone()));
            prop_assert_eq!(RecordKey::from_ordering_form(&key.ordering_form()), key);
        }
    }

    #[test]
    fn the_ordering_form_sorts_as_the_tuple_does(a in prop::collection::vec(part(), 2), b in prop::collection::vec(part(), 2)) {
        if let (Ok(left), Ok(right)) = (RecordKey::compound(&a), RecordKey::compound(&b)) {
            prop_assert_eq!(left.ordering_form().as_bytes().cmp(right.ordering_form().as_bytes()), a.cmp(&b));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }
    }

    #[test]
    fn a_slug_is_always_a_connection_id(connector in "[a-z0-9][a-z0-9._-]{0,40}", name in "\\PC{0,40}", n: u32) {
        if let Ok(connector) = ConnectorKey::parse(connector) {
            let id = ConnectionId::slug(&connector, &name);
            prop_assert_eq!(ConnectionId::parse(id.as_str()), Ok(id.clone()));
            let numbered = id.numbered(n);
            prop_assert_eq!(ConnectionId::parse(numbered.as_str()), Ok(numbered.clone()));
        }
    }

    #[test]
    fn no_text_makes_an_identifier_key_or_scalar_panic(text in "\\PC{0,40}|[\\x00-\\x20\\[\\]\",\\\\]{0,20}") {
        let _ = (ConnectorKey::parse(text.as_str()), StreamName::parse(text.as_str()), BlobId::parse(text.as_str()));
        let _ = (RecordKey::from_wire(&text, 1), RecordKey::from_wire(&text, 2), RecordKey::from_ordering_form(&text));
        for kind in [FieldKind::Boolean, FieldKind::Integer, FieldKind::Number, FieldKind::Text, FieldKind::DateTime] {
            let _ = (Scalar::from_json(kind, &text), Scalar::from_request(kind, &text));
        }
    }

    #[test]
    fn scalars_survive_serialisation_to_the_last_bit(bits: u64) {
        let number = f64::from_bits(bits);
        if number.is_finite() {
            let text = serde_json::to_string(&Scalar::Number(number)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scalar>(&text).unwrap(), Scalar::Number(number));
        }
    }
}
