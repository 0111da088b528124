//! Citations: short texts that name which characters of which version of a field were shown under which grant, so that a
//! quotation can be checked later.
//!
//! A citation is a range, a keyed digest of the whole text of the field, and a keyed digest of all that and of where it was
//! shown. The last one is checked before anything is looked up: a citation that was made for another grant, record or field is
//! refused without asking the store, so neither the answer nor the time it takes says anything about the store.

use std::fmt;
use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{FieldName, StreamName};
use crate::page::{Links, Meta};
use crate::seal::SealingKey;
use crate::window::Window;
use crate::wire::ObjectTag;

/// Bytes of each digest. A guess is right once in 2^40 requests, and a hit must stay small.
const DIGEST_BYTES: usize = 5;
/// Longer texts are no citation: two numbers of ten bytes, two digests.
const MAX_CHARS: usize = 40;

type Digest = [u8; DIGEST_BYTES];

/// A field of a record, as a grant or the owner sees it.
#[derive(Debug, Clone, Copy)]
pub struct CitedField<'a> {
    /// `None` for the owner.
    pub grant: Option<&'a str>,
    pub connection: &'a str,
    pub stream: &'a str,
    pub record: &'a str,
    pub field: &'a str,
}

/// Characters of a version of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    start_chars: u64,
    length_chars: u64,
    /// Of the whole text of the field.
    text: Digest,
    /// Of all the above and of the field it belongs to.
    seal: Digest,
}

impl CitedField<'_> {
    /// Cites characters of the text of this field.
    pub fn cite(&self, key: &SealingKey, text: &str, chars: Range<u64>) -> Citation {
        let mut citation = Citation {
            start_chars: chars.start,
            length_chars: chars.end.saturating_sub(chars.start),
            text: self.text_digest(key, text),
            seal: [0; DIGEST_BYTES],
        };
        citation.seal = self.seal(key, &citation);
        citation
    }

    /// Whether this server made the citation for this field.
    pub fn made(&self, key: &SealingKey, citation: &Citation) -> bool {
        key.accepted()
            .any(|key| same(self.seal(key, citation), citation.seal))
    }

    /// Whether the citation is of this text.
    pub fn says(&self, key: &SealingKey, citation: &Citation, text: &str) -> bool {
        key.accepted()
            .any(|key| same(self.text_digest(key, text), citation.text))
    }

    fn text_digest(&self, key: &SealingKey, text: &str) -> Digest {
        let field = [self.connection, self.stream, self.record, self.field, text];
        cut(key.digest("cited text", field.map(str::as_bytes)))
    }

    fn seal(&self, key: &SealingKey, citation: &Citation) -> Digest {
        let (kind, grant) = match self.grant {
            Some(grant) => (b"grant".as_slice(), grant),
            None => (b"owner".as_slice(), ""),
        };
        cut(key.digest(
            "citation",
            [
                kind,
                grant.as_bytes(),
                self.connection.as_bytes(),
                self.stream.as_bytes(),
                self.record.as_bytes(),
                self.field.as_bytes(),
                &citation.start_chars.to_le_bytes(),
                &citation.length_chars.to_le_bytes(),
                &citation.text,
            ],
        ))
    }
}

impl Citation {
    /// Reads a citation; `None` where a text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_CHARS {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (rest, seal) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
        let (mut rest, text) = rest.split_last_chunk::<DIGEST_BYTES>()?;
        let citation = Self {
            start_chars: take_number(&mut rest)?,
            length_chars: take_number(&mut rest)?,
            text: *text,
            seal: *seal,
        };
        rest.is_empty().then_some(citation)
    }

    /// The characters of the field that were shown.
    pub fn chars(&self) -> Range<u64> {
        self.start_chars..self.start_chars.saturating_add(self.length_chars)
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(16);
        push_number(&mut bytes, self.start_chars);
        push_number(&mut bytes, self.length_chars);
        bytes.extend_from_slice(&self.text);
        bytes.extend_from_slice(&self.seal);
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// Seven bits a byte, the lowest first; the high bit says that more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn cut(digest: [u8; 32]) -> Digest {
    let mut short = [0; DIGEST_BYTES];
    short
        .iter_mut()
        .zip(digest)
        .for_each(|(to, from)| *to = from);
    short
}

/// Compares every byte, so that the time tells nothing.
fn same(one: Digest, other: Digest) -> bool {
    let pairs = one.into_iter().zip(other);
    pairs.fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

/// Whether what was quoted still stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyQuery {
    pub stream: StreamName,
    /// The record key in canonical form.
    pub record_id: String,
    pub connection_id: Option<String>,
    /// The field; without it, every field that may be seen is tried.
    pub field: Option<FieldName>,
    pub citation: String,
}

crate::names! {
    /// What has become of a quoted text.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CitationStatus {
        /// The field says it now.
        Current = "current",
        /// The field said it once, and now says something else.
        Changed = "changed",
        /// The record cannot be seen any more.
        Gone = "gone",
        /// This server made no such citation for this reader. Whether it made it for another one is not said.
        NotYoursToKnow = "not_yours_to_know",
    }
}

impl CitationStatus {
    /// The same in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Current => "The record says this now.",
            Self::Changed => "The record said this once, and was changed since.",
            Self::Gone => "The record this was quoted from is gone.",
            Self::NotYoursToKnow => {
                "Not yours to know: no citation that was made for you of this record."
            }
        }
    }
}

/// The answer about a citation. Without a text to show it has its status alone.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CitationCheck {
    /// `citation_check`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub status: CitationStatus,
    pub field_path: Option<String>,
    /// The quoted characters, in the version that was quoted, where that may be seen.
    pub window: Option<Window>,
    /// When that version came to be, where it is not the present one.
    pub emitted_at: Option<String>,
    pub links: Option<Links>,
    pub meta: Option<Meta>,
}

impl CitationCheck {
    pub fn new(status: CitationStatus) -> Self {
        Self {
            object: ObjectTag::CITATION_CHECK,
            status,
            field_path: None,
            window: None,
            emitted_at: None,
            links: None,
            meta: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: CitedField<'static> = CitedField {
        grant: Some("g1"),
        connection: "work",
        stream: "mail",
        record: "m1",
        field: "body",
    };

    fn key() -> SealingKey {
        SealingKey::from_bytes([7; 32])
    }

    // GM-20: a citation of an excerpt is short, and reads back as it was made.
    #[test]
    fn a_citation_is_short_and_reads_back() {
        for (chars, most) in [
            (0..9, 16),
            (3_000..3_160, 19),
            (0..100_000, 19),
            (9..u64::MAX, 40),
        ] {
            let citation = FIELD.cite(&key(), "tea at four", chars.clone());
            let text = citation.to_string();
            assert!(text.len() <= most, "{text}");
            assert_eq!(Citation::parse(&text), Some(citation.clone()));
            assert_eq!(citation.chars(), chars);
            assert!(FIELD.made(&key(), &citation));
            assert!(FIELD.says(&key(), &citation, "tea at four"));
            assert!(!FIELD.says(&key(), &citation, "tea at five"));
        }
    }

    // GM-21: a citation holds for the grant, record, field and range that it was made for, and no other.
    #[test]
    fn a_citation_holds_for_nothing_else() {
        let citation = FIELD.cite(&key(), "tea", 0..3);
        for other in [
            CitedField {
                grant: Some("g2"),
                ..FIELD
            },
            CitedField {
                grant: None,
                ..FIELD
            },
            CitedField {
                connection: "home",
                ..FIELD
            },
            CitedField {
                stream: "notes",
                ..FIELD
            },
            CitedField {
                record: "m2",
                ..FIELD
            },
            CitedField {
                field: "subject",
                ..FIELD
            },
        ] {
            assert!(!other.made(&key(), &citation), "{other:?}");
        }
        assert!(!FIELD.made(&SealingKey::from_bytes([8; 32]), &citation));
        let replaced = SealingKey::from_bytes([8; 32]).accepting(key());
        assert!(FIELD.made(&replaced, &citation) && FIELD.says(&replaced, &citation, "tea"));
        let longer = Citation {
            length_chars: 4,
            ..citation.clone()
        };
        assert!(!FIELD.made(&key(), &longer));
        let text = citation.to_string();
        for (at, _) in text.char_indices() {
            let mut other = text.clone();
            let letter = if other.remove(at) == 'A' { 'B' } else { 'A' };
            other.insert(at, letter);
            let forged = Citation::parse(&other);
            let forged = forged.filter(|forged| *forged != citation);
            assert!(
                forged.is_none_or(|forged| !FIELD.made(&key(), &forged)),
                "{other}"
            );
        }
    }

    #[test]
    fn what_cannot_be_a_citation_is_none() {
        for text in [
            "",
            "A",
            "AAAAAAAAAAAAA",
            "no/such=text",
            &"A".repeat(41),
            &"_".repeat(40),
        ] {
            assert_eq!(Citation::parse(text), None, "{text}");
        }
    }
}
