//! The identifiers of the contract, parsed once at the edge.
//! Each is a text that obeys one rule; holding the type means the rule holds, so no code behind the edge checks again.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::segment;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} is not a valid {kind}: {rule}", segment::quoted(.value))]
pub struct IdError {
    /// What the text should have been, e.g. `stream name`.
    pub kind: &'static str,
    pub value: String,
    /// The rule it breaks, as a phrase to read after a colon.
    pub rule: &'static str,
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident($kind:literal, $check:path);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads the identifier, or says which rule the text breaks.
            pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
                let value = text.into();
                match $check(&value) {
                    Ok(()) => Ok(Self(value.into())),
                    Err(rule) => Err(IdError { kind: $kind, value, rule }),
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    )*};
}

identifiers! {
    /// The kind of a source: the last path segment of its declared `source.id`.
    ConnectorKey("connector key", check_connector_key);
    /// One configured account of a connector. Never changes; renaming a connection changes its label.
    ConnectionId("connection id", check_connection_id);
    /// A named collection of records, unique within a connection.
    StreamName("stream name", check_stream_name);
    /// A top-level member of a record. Dots and slashes are part of the name, never a path.
    FieldName("field name", check_field_name);
    /// A declared selection of fields.
    ViewId("view id", check_opaque);
    /// One immutable consent.
    GrantId("grant id", check_opaque);
    /// Several grants under one token.
    PackageId("package id", check_opaque);
    ClientId("client id", check_opaque);
    /// Content of a blob, named by its SHA-256: `blob_sha256_<64 hex digits>`.
    BlobId("blob id", check_blob_id);
}

impl ConnectionId {
    const MAX_BYTES: usize = 32;

    /// The default id of a new connection: connector and label as one lower-case word with dashes.
    ///
    /// ASCII letters and digits are kept and everything else separates, so a label in another script adds nothing and
    /// the id is the connector alone. Two connections may arrive at the same slug: see [`ConnectionId::numbered`].
    pub fn slug(connector: &ConnectorKey, name: &str) -> Self {
        let connector = slugged(connector.as_str());
        let name = slugged(name);
        let repeats = name
            .strip_prefix(connector.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        Self::from_slug(match (name.is_empty(), repeats) {
            (true, _) => &connector,
            (_, true) => &name,
            _ => return Self::from_slug(&format!("{connector}-{name}")),
        })
    }

    /// The same id with `-n` at its end, shortened so that it still is an id.
    #[must_use]
    pub fn numbered(&self, n: u32) -> Self {
        let suffix = format!("-{n}");
        let kept: String = self
            .as_str()
            .chars()
            .take(Self::MAX_BYTES - suffix.len())
            .collect();
        Self(format!("{}{suffix}", kept.trim_end_matches(['-', '_'])).into())
    }

    /// Takes lower-case ASCII words with dashes that begin with a letter or digit.
    fn from_slug(slug: &str) -> Self {
        let kept: String = slug.chars().take(Self::MAX_BYTES).collect();
        Self(kept.trim_end_matches('-').into())
    }
}

impl BlobId {
    const PREFIX: &'static str = "blob_sha256_";

    pub fn from_sha256(digest: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex(digest)).into())
    }

    /// The id of the content whose digest is written as 64 lower-case hex digits.
    pub fn from_hex(hex: &str) -> Result<Self, IdError> {
        Self::parse(format!("{}{hex}", Self::PREFIX))
    }

    /// The digest as 64 lower-case hex digits.
    pub fn hex(&self) -> &str {
        self.as_str().trim_start_matches(Self::PREFIX)
    }
}

/// Two lower-case digits for each byte.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.as_ref().iter().flat_map(digits).collect()
}

fn slugged(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

fn starts_alphanumeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
}

fn consists_of(text: &str, punctuation: &[char]) -> bool {
    text.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || punctuation.contains(&c))
}

fn check_connector_key(text: &str) -> Result<(), &'static str> {
    let valid = text.len() <= 64
        && starts_alphanumeric(text)
        && consists_of(text, &['.', '_', '-'])
        && segment::guard(text).is_ok();
    valid.then_some(()).ok_or(
        "it takes 1 to 64 lower-case letters, digits, '.', '_' or '-', begins with a letter or digit and has no '..'",
    )
}

fn check_connection_id(text: &str) -> Result<(), &'static str> {
    let valid = text.len() <= ConnectionId::MAX_BYTES
        && starts_alphanumeric(text)
        && consists_of(text, &['_', '-']);
    valid.then_some(()).ok_or(
        "it takes 1 to 32 lower-case letters, digits, '_' or '-' and begins with a letter or digit",
    )
}

fn check_stream_name(text: &str) -> Result<(), &'static str> {
    let valid =
        text.len() <= 128 && text != "*" && !text.contains(':') && segment::guard(text).is_ok();
    valid
        .then_some(())
        .ok_or("it takes 1 to 128 bytes without ':', '/', '\\', '..' or control characters, and is neither '.' nor '*'")
}

fn check_field_name(text: &str) -> Result<(), &'static str> {
    let valid = text.len() <= 256 && segment::printable(text).is_ok();
    valid
        .then_some(())
        .ok_or("it takes 1 to 256 bytes without control characters")
}

fn check_opaque(text: &str) -> Result<(), &'static str> {
    let valid = text.len() <= 256
        && segment::printable(text).is_ok()
        && !text.contains(char::is_whitespace);
    valid
        .then_some(())
        .ok_or("it takes 1 to 256 bytes without white space or control characters")
}

fn check_blob_id(text: &str) -> Result<(), &'static str> {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.strip_prefix(BlobId::PREFIX)
        .filter(|hex| hex.len() == 64 && hex.chars().all(is_hex))
        .map(|_| ())
        .ok_or("it is 'blob_sha256_' and 64 lower-case hex digits")
}
