//! Keys that can stand in a handle: no separators, no dot segments, at most 64 characters.

use sha2::{Digest as _, Sha256};

const LONGEST: usize = 64;
const KEPT: usize = 48;

/// The text itself where it can be a key, else its beginning made so, with a hash of the whole.
pub(crate) fn readable_key(text: &str) -> String {
    if is_readable(text) {
        return text.to_owned();
    }
    shortened(text, KEPT)
}

/// So many characters of a text, made so that they can be part of a key, with a hash of the whole.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        let c = if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '=') {
            c
        } else {
            '-'
        };
        let repeats = matches!(c, '-' | '.') && kept.ends_with(['-', '.']);
        if !repeats {
            kept.push(c);
        }
        if kept.chars().count() >= most {
            break;
        }
    }
    let kept = kept.trim_matches(['-', '.']);
    let hash = short_hash(text);
    if kept.is_empty() {
        return hash;
    }
    format!("{kept}-{hash}")
}

/// Whether a text can stand in a handle as it is.
pub(crate) fn is_readable(text: &str) -> bool {
    contract::segment::guard(text).is_ok() && text.trim() == text && text.chars().count() <= LONGEST
}

/// Whether a key may have been made of a text that could be none.
pub(crate) fn may_be_made(key: &str) -> bool {
    let hash = key.rsplit('-').next().unwrap_or_default();
    hash.len() == 10 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Ten hexadecimal digits.
pub(crate) fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    format!("{:010x}", u64::from_be_bytes(first) >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_as_they_are_where_that_is_possible() {
        for same in ["a", "CAF+x=y@mail.example", "Über uns", "1700000000.000100"] {
            assert_eq!(readable_key(same), same);
        }
    }

    #[test]
    fn other_keys_become_readable_and_stay_apart() {
        let long = "x".repeat(100);
        let others = ["a/b", "a\\b", "a..b", "..", "", " a", "a\nb", long.as_str()];
        let mut keys: Vec<String> = others.iter().map(|other| readable_key(other)).collect();
        for key in &keys {
            assert!(is_readable(key), "{key}");
        }
        assert_eq!(keys[0], "a-b-c14cddc033");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), others.len());
    }
}
