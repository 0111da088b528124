//! No input makes the parser panic.

use contract::declaration::Declaration;
use proptest::prelude::*;
use serde_json::json;

use crate::{GOOD, edited};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        drop(Declaration::parse(&text));
    }

    #[test]
    fn json_like_text_never_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\"streams\"", "\"schema\"", "\"a\"", "1e9", "-", "null", "é", "\n",
        "\"name\":\"a\"", "\"properties\":{}",
    ]), 0..40)) {
        drop(Declaration::parse(&parts.concat()));
    }

    #[test]
    fn a_good_file_cut_anywhere_or_with_one_byte_changed_never_panics(at in 0..GOOD.len(), byte in 0x20u8..0x7f) {
        drop(Declaration::parse(&GOOD[..at]));
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes[at] = byte;
        drop(Declaration::parse(&String::from_utf8(bytes).unwrap()));
    }

    #[test]
    fn any_value_in_any_place_never_panics(
        pointer in prop::sample::select(vec![
            "/source", "/streams", "/streams/0", "/streams/0/schema", "/streams/0/schema/properties",
            "/streams/0/schema/properties/id", "/streams/0/query", "/streams/0/query/expand", "/streams/0/views",
            "/streams/0/relationships", "/selection_presets", "/extensions", "/streams/0/primary_key",
        ]),
        value in prop::sample::select(vec![
            json!(null), json!(true), json!(1e300), json!(""), json!([]), json!({}), json!([[]]), json!([{}]),
            json!({"type": [null]}), json!({"a": {"$ref": "#"}}),
        ]),
    ) {
        drop(Declaration::parse(&edited(pointer, Some(value))));
    }
}
