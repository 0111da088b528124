//! A short name for a JSON value: equal values have equal fingerprints, however they are spelled.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use contract::json::{self, JsonKind};
use serde_json::value::RawValue;

/// The fingerprint of a JSON text. Texts that are equal as JSON have the same one.
pub(crate) fn fingerprint(raw: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(raw, &mut hasher);
    hasher.finish()
}

/// Record bodies nest at most [`json::MAX_DEPTH`] deep, so this recursion is bounded.
fn feed(raw: &str, hasher: &mut DefaultHasher) {
    let kind = json::kind_of(raw);
    (kind as u8).hash(hasher);
    match kind {
        JsonKind::Null => {}
        JsonKind::Boolean => raw.trim().hash(hasher),
        JsonKind::Number => json::canonical_number(raw.trim()).hash(hasher),
        JsonKind::String => json::decode_string(raw).hash(hasher),
        JsonKind::Array => {
            // Bodies are valid JSON. If one were not, its text would stand for it, and not an empty list.
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else {
                return raw.hash(hasher);
            };
            items.len().hash(hasher);
            for item in items {
                feed(item.get(), hasher);
            }
        }
        JsonKind::Object => {
            let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw) else {
                return raw.hash(hasher);
            };
            members.len().hash(hasher);
            for (name, value) in members {
                name.hash(hasher);
                feed(value.get(), hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_and_content_does() {
        let one = fingerprint(r#"{"a":[1,{"b":null}],"c":"\u0064"}"#);
        assert_eq!(
            one,
            fingerprint(r#"{ "c" : "d", "a": [1.0, {"b":null} ] }"#)
        );
        for other in [
            r#"{"a":[1,{"b":null}],"c":"e"}"#,
            r#"{"a":[1,{"b":false}],"c":"d"}"#,
            r#"{"a":[{"b":null},1],"c":"d"}"#,
            r#"{"a":[1,{"b":null}]}"#,
        ] {
            assert_ne!(one, fingerprint(other), "{other}");
        }
    }
}
