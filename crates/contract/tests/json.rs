//! JSON as written: what is accepted, what is refused and why, and when two values are the same.

use contract::json::{
    JsonErrorCode, JsonKind, MAX_DEPTH, RecordBody, decode_string, kind_of, same_value,
};
use proptest::prelude::*;
use serde_json::Value;

fn refused(text: &str) -> (JsonErrorCode, usize) {
    let error = RecordBody::parse(text).expect_err(text);
    (error.code, error.offset)
}

#[test]
fn a_body_keeps_its_text_and_knows_its_members() {
    let text =
        " {\"b\" : 1.10, \"a\":[1, {\"x\":null}],\"t\\u0065xt\":\"caf\\u00e9 \\ud83d\\ude00\" }\n";
    let body = RecordBody::parse(text).unwrap();
    assert_eq!(body.as_str(), text);
    let members: Vec<_> = body.members().collect();
    assert_eq!(
        members,
        [
            ("b", "1.10"),
            ("a", "[1, {\"x\":null}]"),
            ("text", "\"caf\\u00e9 \\ud83d\\ude00\"")
        ]
    );
    assert_eq!(body.get("b"), Some("1.10"));
    assert_eq!(body.get("c"), None);
    assert_eq!(body.text("text").as_deref(), Some("café 😀"));
    assert_eq!(body.text("b"), None);
    assert_eq!(RecordBody::parse("{}").unwrap().members().len(), 0);
    assert_eq!(body.into_string(), text);
}

#[test]
fn repeated_members_are_refused_at_any_depth_and_named() {
    let error = RecordBody::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap_err();
    assert_eq!(error.code, JsonErrorCode::DuplicateMember);
    assert_eq!(error.offset, 13);
    assert!(error.to_string().contains("'a'"), "{error}");
    for text in [
        r#"{"x":[{"a":1,"a":1}]}"#,
        r#"{"x":{"y":{"a":1,"\u0061":2}}}"#,
        r#"{"/":1,"\/":2}"#,
        r#"{"":1,"":2}"#,
    ] {
        assert_eq!(refused(text).0, JsonErrorCode::DuplicateMember, "{text}");
    }
    assert!(RecordBody::parse(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#).is_ok());
}

#[test]
fn repeated_members_are_found_among_many() {
    let many: Vec<String> = (0..500).map(|n| format!("\"m{n}\":{n}")).collect();
    let unique = format!("{{{}}}", many.join(","));
    assert_eq!(RecordBody::parse(unique).unwrap().members().len(), 500);
    let repeated = format!("{{{},\"m77\":0,\"m3\":0}}", many.join(","));
    let error = RecordBody::parse(repeated.clone()).unwrap_err();
    assert_eq!(error.code, JsonErrorCode::DuplicateMember);
    assert!(error.message.contains("'m77'"), "{error}");
    assert_eq!(
        repeated.get(error.offset..error.offset + 5),
        Some("\"m77\"")
    );
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":NaN}",
        "{\"a\":tru}",
        "{\"a\":truex}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"",
        "{\"a\":\"\\\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u+123\"}",
        "\u{feff}{}",
        "{\"a\":1\u{a0}}",
    ] {
        assert_eq!(refused(text).0, JsonErrorCode::Malformed, "{text}");
    }
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for escape in [
        "\\ud800",
        "\\udc00",
        "\\ud800x",
        "\\ud800\\n",
        "\\ud800\\ud800",
        "\\ud800\\u0041",
        "\\udfff\\ud800",
    ] {
        let text = format!("{{\"a\":\"{escape}\"}}");
        assert_eq!(refused(&text).0, JsonErrorCode::Malformed, "{text}");
        let text = format!("{{\"{escape}\":1}}");
        assert_eq!(refused(&text).0, JsonErrorCode::Malformed, "{text}");
    }
}

#[test]
fn only_an_object_is_a_record() {
    for text in ["[]", "1", "null", "\"x\"", "true", "[{}]"] {
        assert_eq!(refused(text).0, JsonErrorCode::NotAnObject, "{text}");
    }
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(RecordBody::parse(nested(MAX_DEPTH - 1)).is_ok());
    assert_eq!(refused(&nested(MAX_DEPTH)).0, JsonErrorCode::TooDeep);
    let bottomless = "{\"a\":".repeat(1_000_000);
    assert_eq!(refused(&bottomless).0, JsonErrorCode::TooDeep);
    assert!(!same_value(&"[".repeat(1_000_000), "[]"));
}

#[test]
fn values_are_the_same_whatever_their_spelling() {
    for (a, b) in [
        ("1", "1.0"),
        ("1", "10e-1"),
        ("-0.0", "0"),
        (r#"{"a":1,"b":[1,2]}"#, r#" { "b":[ 1.0,2 ] , "a" : 1 } "#),
        (r#""café""#, r#""caf\u00e9""#),
        (r#"{"\u0061":null}"#, r#"{"a":null}"#),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890.000",
        ),
    ] {
        assert!(same_value(a, b) && same_value(b, a), "{a} {b}");
    }
    for (a, b) in [
        ("9007199254740993", "9007199254740992"),
        ("1", "\"1\""),
        ("true", "1"),
        ("null", "{}"),
        ("[1,2]", "[2,1]"),
        ("[]", "{}"),
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
        (r#"{"a":1}"#, r#"{"b":1}"#),
        ("x", "y"),
        ("1", "1 1"),
    ] {
        assert!(!same_value(a, b) && !same_value(b, a), "{a} {b}");
    }
    let left = RecordBody::parse(r#"{"a":1,"b":2}"#).unwrap();
    let right = RecordBody::parse(r#"{"b":2.0,"a":1}"#).unwrap();
    assert!(left.same_value(&right));
}

#[test]
fn kinds_and_strings_are_read_from_raw_values() {
    for (raw, kind) in [
        ("null", JsonKind::Null),
        ("false", JsonKind::Boolean),
        ("-1", JsonKind::Number),
        (" \"x\"", JsonKind::String),
        ("[]", JsonKind::Array),
        ("{}", JsonKind::Object),
    ] {
        assert_eq!(kind_of(raw), kind);
    }
    assert_eq!(
        decode_string(r#""\"\\\/\b\f\n\r\t""#).as_deref(),
        Some("\"\\/\u{8}\u{c}\n\r\t")
    );
    assert_eq!(decode_string("1"), None);
    assert_eq!(decode_string("\"a\" \"b\""), None);
}

/// Any JSON value, small but nested, with names that collide when escapes are decoded.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\x00-\\x7f😀é\\\\\"]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c\\\\\"é]{0,3}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_is_read_without_panic_and_as_a_json_parser_reads_it(text in "\\PC{0,60}|[\\[\\]{}\",:\\\\u0-9a-f \\x00-\\x1f]{0,60}") {
        let ours = RecordBody::parse(text.as_str());
        if ours.is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()));
        }
        let wrapped = format!("{{\"a\":\"{text}\"}}");
        let theirs = serde_json::from_str::<serde_json::Map<String, Value>>(&wrapped);
        match RecordBody::parse(wrapped.as_str()) {
            Ok(body) => {
                let theirs = theirs.expect("a second parser accepts what we accept");
                let decoded = body.text("a");
                prop_assert_eq!(decoded.as_deref(), theirs.get("a").and_then(Value::as_str));
            }
            Err(error) => prop_assert!(theirs.is_err() || error.code == JsonErrorCode::DuplicateMember),
        }
        let _ = (decode_string(&text), kind_of(&text), same_value(&text, &wrapped));
    }

    #[test]
    fn every_written_value_is_accepted_and_same_as_itself_rewritten(value in any_value()) {
        let text = serde_json::json!({ "value": value }).to_string();
        let body = RecordBody::parse(text.as_str()).unwrap();
        let raw = body.get("value").unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(raw).unwrap(), &value);
        let pretty = serde_json::to_string_pretty(&serde_json::json!({ "value": value })).unwrap();
        prop_assert!(body.same_value(&RecordBody::parse(pretty).unwrap()));
    }

    #[test]
    fn different_values_are_never_the_same(a in any_value(), b in any_value()) {
        prop_assert_eq!(same_value(&a.to_string(), &b.to_string()), a == b);
    }

    #[test]
    fn cutting_a_record_anywhere_is_an_error(value in any_value(), at in any::<prop::sample::Index>()) {
        let text = serde_json::json!({ "value": value }).to_string();
        let cut: String = text.chars().take(at.index(text.chars().count())).collect();
        prop_assert!(RecordBody::parse(cut).is_err());
    }
}
