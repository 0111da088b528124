//! How much of a field a client is shown where the field is not granted whole.
//!
//! A redaction is one text everywhere, on the wire, in flags and in forms: `first:20`, `year`, `month`, `domain`, `hash`,
//! `presence`. A value to which it cannot be applied becomes `null`, never itself.

use std::fmt;
use std::str::FromStr;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::json::{self, JsonKind};
use crate::scalar::FieldKind;
use crate::seal::HashKey;
use crate::time::Instant;

/// The most characters that a redacted text may show.
const MAX_CHARS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Redaction {
    /// The first characters of a text, at most so many.
    First(usize),
    /// The year of a time, in UTC.
    Year,
    /// The year and month of a time, in UTC.
    Month,
    /// The domain of a mail or web address.
    Domain,
    /// A hash of the value that is the same wherever the value stands, and only within one grant.
    Hash,
    /// Whether there is a value.
    Presence,
}

impl fmt::Display for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(chars) => write!(f, "first:{chars}"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Domain => f.write_str("domain"),
            Self::Hash => f.write_str("hash"),
            Self::Presence => f.write_str("presence"),
        }
    }
}

impl FromStr for Redaction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let first = || {
            let chars: usize = text.strip_prefix("first:")?.parse().ok()?;
            (1..=MAX_CHARS)
                .contains(&chars)
                .then_some(Self::First(chars))
        };
        let named = [
            Self::Year,
            Self::Month,
            Self::Domain,
            Self::Hash,
            Self::Presence,
        ];
        let named = named.into_iter().find(|one| one.to_string() == text);
        named.or_else(first).ok_or_else(|| {
            format!(
                "{text:?} is none of first:N (1 to {MAX_CHARS} characters), year, month, domain, hash and presence"
            )
        })
    }
}

impl Redaction {
    /// Those that a form offers for a field of this kind.
    pub fn offered(kind: FieldKind) -> Vec<Self> {
        let all = [
            Self::First(40),
            Self::Year,
            Self::Month,
            Self::Domain,
            Self::Hash,
            Self::Presence,
        ];
        all.into_iter().filter(|one| one.fits(kind)).collect()
    }

    /// Whether values of this kind can be shown so.
    pub fn fits(self, kind: FieldKind) -> bool {
        match self {
            Self::First(_) | Self::Domain => kind == FieldKind::Text,
            Self::Year | Self::Month => matches!(
                kind,
                FieldKind::Date | FieldKind::DateTime | FieldKind::Text
            ),
            Self::Hash => kind.is_scalar(),
            Self::Presence => true,
        }
    }

    /// Whether it shows nothing that the other does not.
    pub fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (Self::First(few), Self::First(many)) => few <= many,
            (Self::Year, Self::Month) => true,
            _ => self == other,
        }
    }

    /// What is shown of a value, both as JSON. Absent values are shown as absent, but for their presence.
    pub fn apply(self, raw: Option<&str>, key: &HashKey) -> Option<String> {
        let value = raw.filter(|raw| json::kind_of(raw) != JsonKind::Null);
        if self == Self::Presence {
            return Some(value.is_some().to_string());
        }
        raw?;
        let shown = value.and_then(|raw| match self {
            Self::First(chars) => {
                let text = json::decode_string(raw)?;
                Some(text.chars().take(chars).collect())
            }
            Self::Year => date_part(raw, 1),
            Self::Month => date_part(raw, 2),
            Self::Domain => domain(&json::decode_string(raw)?),
            Self::Hash => hash(raw, key),
            Self::Presence => None,
        });
        Some(shown.map_or(Value::Null, Value::String).to_string())
    }

    /// The JSON Schema of what is shown.
    pub fn schema(self) -> String {
        let kind = match self {
            Self::Presence => r#""boolean""#,
            _ => r#"["string","null"]"#,
        };
        format!(r#"{{"type":{kind},"x_pdpp_redacted":"{self}"}}"#)
    }
}

/// The first parts of a date.
fn date_part(raw: &str, parts: usize) -> Option<String> {
    let moment = Instant::parse(&json::decode_string(raw)?)?.to_rfc3339_millis();
    let (sign, digits) = match moment.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", moment.as_str()),
    };
    let parts: Vec<&str> = digits.split('-').take(parts).collect();
    Some(format!("{sign}{}", parts.join("-")))
}

fn domain(address: &str) -> Option<String> {
    let (_, rest) = address
        .rsplit_once('@')
        .or_else(|| address.split_once("://"))?;
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '-';
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let host = rest.get(..end)?.to_lowercase();
    (!host.is_empty()).then_some(host)
}

/// Equal values have equal hashes, however they are written.
fn hash(raw: &str, key: &HashKey) -> Option<String> {
    let (kind, value) = match json::kind_of(raw) {
        JsonKind::String => ("text", json::decode_string(raw)?.into_owned()),
        JsonKind::Number => ("number", json::canonical_number(raw)),
        JsonKind::Boolean => ("boolean", raw.trim().to_owned()),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => return None,
    };
    let hash = key.hash([kind, value.as_str()]);
    Some(format!("hash:{}", URL_SAFE_NO_PAD.encode(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::SealingKey;

    // GM-07: what a redaction shows of a value, and nothing else.
    #[test]
    fn only_the_granted_part_of_a_value_is_shown() {
        let key = SealingKey::from_bytes([7; 32]).hash_key("grant");
        for (how, value, shown) in [
            ("first:3", r#""Zoë's""#, r#""Zoë""#),
            ("first:9", r#""ab""#, r#""ab""#),
            ("first:3", "12345", "null"),
            ("year", r#""2026-03-31T23:30:00-01:00""#, r#""2026""#),
            ("month", r#""2026-03-31T23:30:00-01:00""#, r#""2026-04""#),
            ("month", r#""2026-03-31""#, r#""2026-03""#),
            ("year", r#""soon""#, "null"),
            (
                "domain",
                r#""Ada <ada@Mail.Example.org>""#,
                r#""mail.example.org""#,
            ),
            (
                "domain",
                r#""https://a.example:80/secret""#,
                r#""a.example""#,
            ),
            ("domain", r#""ada""#, "null"),
            ("presence", r#""x""#, "true"),
            ("presence", "null", "false"),
            ("hash", "null", "null"),
            ("hash", "[1]", "null"),
        ] {
            let how: Redaction = how.parse().unwrap();
            assert_eq!(
                how.apply(Some(value), &key).as_deref(),
                Some(shown),
                "{how} {value}"
            );
            assert_eq!(how.to_string().parse(), Ok(how));
        }
        assert_eq!(Redaction::Hash.apply(None, &key), None);
        assert_eq!(
            Redaction::Presence.apply(None, &key).as_deref(),
            Some("false")
        );
        for wrong in ["first:0", "first:", "first:10001", "whole", "day", ""] {
            assert!(wrong.parse::<Redaction>().is_err(), "{wrong}");
        }
    }

    // GM-07: a hash is the same for equal values of one grant, and different for all else.
    #[test]
    fn a_hash_is_stable_within_a_grant() {
        let sealing = SealingKey::from_bytes([7; 32]);
        let hash = |grant: &str, value: &str| {
            Redaction::Hash
                .apply(Some(value), &sealing.hash_key(grant))
                .unwrap()
        };
        assert_eq!(hash("a", r#""tea""#), hash("a", "\"t\\u0065a\""));
        assert_eq!(hash("a", "1.0"), hash("a", "1"));
        assert_ne!(hash("a", "1"), hash("a", r#""1""#));
        assert_ne!(hash("a", r#""tea""#), hash("b", r#""tea""#));
        assert_eq!(hash("a", "1").len(), hash("a", r#""a long text""#).len());
    }
}
