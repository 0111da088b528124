//! What goes in comes out, byte for byte, and nothing else is touched.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Numbers that a value changes or refuses.
const ODD: [&str; 14] = [
    "1E400",
    "-1e400",
    "123456789012345678901234567890",
    "18446744073709551616",
    "-9223372036854775809",
    "0.12345678901234567890123",
    "2.50",
    "1e5",
    "1E-7",
    "0.00000001",
    "-0",
    "0e0",
    "1.0E+2",
    "100000000000000000000.0",
];

/// Numbers that it holds.
const PLAIN: [&str; 13] = [
    "0",
    "7",
    "-1",
    "18446744073709551615",
    "-9223372036854775808",
    "9007199254740993",
    "0.0",
    "-0.0",
    "1.0",
    "2.5",
    "-12.75",
    "0.1",
    "1e-8",
];

#[test]
fn a_number_comes_out_as_it_went_in() {
    // Decision 23
    for number in ODD {
        let value = read(number).unwrap();
        assert_eq!(digits(&value), Some(number));
        assert_eq!(write(&value), number);
    }
    for number in PLAIN {
        let value = read(number).unwrap();
        assert!(value.is_number(), "{number}");
        assert_eq!(write(&value), number);
    }
}

#[test]
fn numerals_come_out_of_texts_in_texts() {
    let value = read(r#"{"a":[1E400,{"b":2.50}],"c":"[2.50]"}"#).unwrap();
    let once = json!({ "text": value.to_string() });
    let twice = json!({ "text": once.to_string(), "beside": value });
    let written: Value = serde_json::from_str(&write(&once)).unwrap();
    assert_eq!(written["text"], r#"{"a":[1E400,{"b":2.50}],"c":"[2.50]"}"#);
    let text = write(&twice);
    assert!(!text.contains(MARK.as_str()), "{text}");
    assert!(text.ends_with(r#""beside":{"a":[1E400,{"b":2.50}],"c":"[2.50]"}}"#));
}

#[test]
fn what_only_looks_like_a_numeral_stays() {
    let mark = MARK.as_str();
    let other = "\u{7f}0123456789abcdef0123456789abcdef";
    for value in [
        json!([format!("{other}12")]),
        json!(["\u{7f}", "\u{7f}\u{7f}12"]),
        json!([format!("{mark}12"), "two"]),
        json!({ "text": format!("{mark}12") }),
    ] {
        assert_eq!(write(&value), value.to_string());
        assert_eq!(surplus(&json!([[value]])), 0);
    }
}

#[test]
fn what_is_no_json_does_not_become_any() {
    for text in [
        "",
        "[1.50",
        "{2.50:1}",
        "[1.]",
        "[01.50]",
        "[1.50 2]",
        "[1.50-2]",
        "[-]",
        "1e",
        "\"1.50",
        "\"\\",
        "<p>2.50</p>",
        "[2.50] x",
    ] {
        let error = read(text).unwrap_err();
        let plain = serde_json::from_str::<Value>(text).unwrap_err();
        assert_eq!(error.to_string(), plain.to_string(), "{text}");
    }
}

#[test]
fn the_deepest_record_is_read_in_its_envelope() {
    let depth = crate::json::MAX_DEPTH - 1;
    let record = format!("{}1E400{}", "[".repeat(depth), "]".repeat(depth));
    let page = format!(r#"{{"data":[{{"data":{{"a":{record}}}}}]}}"#);
    assert_eq!(write(&read(&page).unwrap()), page);
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,30})",
        "-?(0|[1-9][0-9]{0,18})\\.[0-9]{1,20}",
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?[eE][-+]?[0-9]{1,4}",
        any::<f64>()
            .prop_filter("a number", |float| float.is_finite())
            .prop_map(|float| format!("{float:?}")),
        any::<i64>().prop_map(|whole| whole.to_string()),
    ]
}

/// Compact JSON as a serializer writes it, but for its numbers.
fn document() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        any::<String>(),
        "[0-9.eE\\[\\]\"\\\\\u{7f}-]{0,24}",
        number()
    ];
    let quoted = text.prop_map(|text| json!(text).to_string());
    let leaf = prop_oneof![number(), quoted.clone(), Just("null".to_owned())];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..5)
            .prop_map(|entries| format!("[{}]", entries.join(",")));
        let object = prop::collection::btree_map(quoted.clone(), inner, 0..5).prop_map(|members| {
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{name}:{value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![list, object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_document_comes_out_as_it_went_in(text in document()) {
        let value = read(&text).unwrap();
        prop_assert_eq!(&write(&value), &text);
        prop_assert_eq!(value.to_string().len() - surplus(&value), text.len());
        // As a part of a message, and as a text in one.
        let message = json!({"structured": value, "text": value.to_string()});
        let bytes = message.to_string();
        let sent = restored(bytes.as_bytes());
        let expected = format!(r#"{{"structured":{text},"text":{}}}"#, json!(text));
        prop_assert_eq!(std::str::from_utf8(&sent).unwrap(), expected);
    }

    #[test]
    fn a_document_whose_numbers_survive_is_read_as_ever(text in document()) {
        let plain = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let written = plain.to_string();
        if written == text {
            prop_assert_eq!(read(&text).unwrap(), plain);
        }
    }
}
