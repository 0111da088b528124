//! Receipts: the disclosure log as signed statements, which anybody with the public key can check without the server.
//!
//! A file is lines of JSON, each a statement with its Ed25519 signature. The first says whose key it is and what the file
//! covers, each other one what one call disclosed, and the last one that nothing follows. Each names the digest of the one
//! before, so no statement can be changed, taken out, put in or moved. Records are named by digests of their handles: whoever
//! knows a handle can find it, and nobody else learns it.

use std::io::{self, BufRead, Write};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use contract::id::{ClientId, GrantId, hex};
use contract::seal::SealingKey;
use contract::time::Instant;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use store::grants::LoggedDisclosure;
use store::{Store, StoreError};
use thiserror::Error;

use crate::documents::text;

const VERSION: u32 = 1;
/// What keeps these signatures apart from any other use of the key.
const DOMAIN: &[u8] = b"pdpp receipt 1\0";
/// Entries of the log that are read at a time.
const PAGE: usize = 1_000;

#[derive(Debug, Serialize, Deserialize)]
struct Signed {
    statement: Box<RawValue>,
    signature: String,
}

/// What one line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Statement {
    Begin {
        version: u32,
        /// The public key, which also signs this line.
        key: String,
        issued_at: String,
        /// The only grant the file is about; `None` for all.
        grant_id: Option<GrantId>,
    },
    Disclosed {
        previous: String,
        sequence: u64,
        at: String,
        client_id: ClientId,
        grant_ids: Vec<GrantId>,
        operation: String,
        fields: Vec<String>,
        /// SHA-256 of each record's handle, in hex digits.
        records: Vec<String>,
    },
    End {
        previous: String,
        disclosures: u64,
    },
}

/// What a file of receipts was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedReceipts {
    pub key: String,
    pub issued_at: String,
    pub disclosures: u64,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReceiptError {
    #[error("line {0} is not a receipt")]
    Unreadable(usize),
    #[error("line {0} was not signed with the key of the file")]
    Signature(usize),
    #[error("line {0} does not follow the one before it")]
    Order(usize),
    #[error("the file ends before its last statement")]
    Cut,
    #[error("the file was signed with another key, {0}")]
    OtherKey(String),
}

/// The key that signs receipts. It is made of the sealing key of the data directory, so backups have it.
struct Signer(Ed25519KeyPair);

impl Signer {
    fn new(key: &SealingKey) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(&key.receipt_seed())
            .ok()
            .map(Self)
    }

    fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref())
    }

    /// The line of a statement, and the digest that the next one names.
    fn line(&self, statement: &Statement) -> (String, String) {
        let statement = text(statement);
        let signature = self.0.sign(&signed_bytes(&statement));
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        let digest = digest(&statement);
        (
            format!(r#"{{"statement":{statement},"signature":"{signature}"}}"#),
            digest,
        )
    }
}

fn signed_bytes(statement: &str) -> Vec<u8> {
    [DOMAIN, statement.as_bytes()].concat()
}

fn digest(statement: &str) -> String {
    hex(Sha256::digest(statement.as_bytes()))
}

/// The digest by which receipts name a record.
pub fn record_digest(handle: &str) -> String {
    digest(handle)
}

/// Why receipts could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Output(#[from] io::Error),
    #[error("there is no key to sign with")]
    NoKey,
}

/// Writes the disclosure log, of one grant or of all, as signed statements: one line each, oldest first.
pub fn write_receipts(
    store: &dyn Store,
    key: &SealingKey,
    grant: Option<&GrantId>,
    now: Instant,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let signer = Signer::new(key).ok_or(WriteError::NoKey)?;
    let begin = Statement::Begin {
        version: VERSION,
        key: signer.public(),
        issued_at: now.to_rfc3339_millis(),
        grant_id: grant.cloned(),
    };
    let (line, mut previous) = signer.line(&begin);
    writeln!(out, "{line}")?;
    let mut disclosures = 0;
    // The log is read newest first and written oldest first; of what is not being written only the ends of pages are held.
    for before in page_ends(store, grant)?.into_iter().rev() {
        for entry in store
            .disclosures(grant, Some(before), PAGE)?
            .into_iter()
            .rev()
        {
            let (line, digest) = signer.line(&disclosed(entry, previous));
            writeln!(out, "{line}")?;
            previous = digest;
            disclosures += 1;
        }
    }
    let (line, _) = signer.line(&Statement::End {
        previous,
        disclosures,
    });
    Ok(writeln!(out, "{line}")?)
}

/// The sequence numbers before which each page of the log begins, newest first.
fn page_ends(store: &dyn Store, grant: Option<&GrantId>) -> Result<Vec<u64>, StoreError> {
    let mut ends = Vec::new();
    let mut before = None;
    loop {
        let page = store.disclosures(grant, before, PAGE)?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            return Ok(ends);
        };
        // What is logged from now on is not in these receipts.
        ends.push(before.unwrap_or(first.sequence.saturating_add(1)));
        before = Some(last.sequence);
    }
}

fn disclosed(entry: LoggedDisclosure, previous: String) -> Statement {
    let LoggedDisclosure {
        sequence,
        disclosure,
    } = entry;
    let records = disclosure.records.iter();
    Statement::Disclosed {
        previous,
        sequence,
        at: disclosure.at.to_rfc3339_millis(),
        client_id: disclosure.client_id,
        grant_ids: disclosure.grant_ids,
        operation: disclosure.operation,
        fields: disclosure.fields,
        records: records.map(|handle| record_digest(handle)).collect(),
    }
}

/// Checks receipts line by line, against a known public key where one is given.
pub fn verify_receipts(
    file: impl BufRead,
    known_key: Option<&str>,
) -> Result<CheckedReceipts, ReceiptError> {
    let mut lines = file.lines().zip(1..);
    let (first, _) = lines.next().ok_or(ReceiptError::Cut)?;
    let signed = signed_line(first, 1)?;
    let Ok(Statement::Begin { key, issued_at, .. }) = serde_json::from_str(signed.statement.get())
    else {
        return Err(ReceiptError::Unreadable(1));
    };
    if known_key.is_some_and(|known| known != key) {
        return Err(ReceiptError::OtherKey(key));
    }
    let public = URL_SAFE_NO_PAD.decode(&key);
    let public = public.map_err(|_| ReceiptError::Unreadable(1))?;
    let public = UnparsedPublicKey::new(&ED25519, public);
    let mut expected = check(&public, &signed, 1)?;
    let (mut disclosures, mut last, mut is_over) = (0, 0, false);
    for (line, number) in lines {
        if is_over {
            return Err(ReceiptError::Order(number));
        }
        let signed = signed_line(line, number)?;
        let digest = check(&public, &signed, number)?;
        let statement = serde_json::from_str(signed.statement.get());
        match statement.map_err(|_| ReceiptError::Unreadable(number))? {
            Statement::Disclosed {
                previous, sequence, ..
            } if previous == expected && sequence > last => {
                (expected, last) = (digest, sequence);
                disclosures += 1;
            }
            Statement::End {
                previous,
                disclosures: count,
            } if previous == expected && count == disclosures => {
                is_over = true;
            }
            _ => return Err(ReceiptError::Order(number)),
        }
    }
    if !is_over {
        return Err(ReceiptError::Cut);
    }
    Ok(CheckedReceipts {
        key,
        issued_at,
        disclosures,
    })
}

fn signed_line(line: io::Result<String>, number: usize) -> Result<Signed, ReceiptError> {
    let line = line.map_err(|_| ReceiptError::Unreadable(number))?;
    serde_json::from_str(&line).map_err(|_| ReceiptError::Unreadable(number))
}

/// Checks the signature of a line, and gives the digest that the next one must name.
fn check(
    public: &UnparsedPublicKey<Vec<u8>>,
    signed: &Signed,
    number: usize,
) -> Result<String, ReceiptError> {
    let statement = signed.statement.get();
    let signature = URL_SAFE_NO_PAD.decode(&signed.signature);
    let signature = signature.map_err(|_| ReceiptError::Signature(number))?;
    let holds = public.verify(&signed_bytes(statement), &signature);
    holds.map_err(|_| ReceiptError::Signature(number))?;
    Ok(digest(statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(count: u64) -> Vec<String> {
        let signer = Signer::new(&SealingKey::from_bytes([5; 32])).unwrap();
        let (line, mut previous) = signer.line(&Statement::Begin {
            version: VERSION,
            key: signer.public(),
            issued_at: "2026-06-01T12:00:00.000Z".to_owned(),
            grant_id: None,
        });
        let mut lines = vec![line];
        for sequence in 1..=count {
            let (line, digest) = signer.line(&Statement::Disclosed {
                previous,
                sequence,
                at: "2026-06-01T11:00:00.000Z".to_owned(),
                client_id: ClientId::parse("longview").unwrap(),
                grant_ids: Vec::new(),
                operation: "search".to_owned(),
                fields: vec!["body".to_owned()],
                records: vec![record_digest("work/mail:m1")],
            });
            lines.push(line);
            previous = digest;
        }
        let (line, _) = signer.line(&Statement::End {
            previous,
            disclosures: count,
        });
        lines.push(line);
        lines
    }

    // GM-27: receipts are checked without a server, and nothing in them can be changed, left out, added or moved.
    #[test]
    fn whatever_is_done_to_a_file_of_receipts_shows() {
        let lines = file(4);
        let whole = lines.join("\n");
        let checked = verify_receipts(whole.as_bytes(), None).unwrap();
        assert_eq!(checked.disclosures, 4);
        assert_eq!(
            verify_receipts(whole.as_bytes(), Some(&checked.key)),
            Ok(checked.clone())
        );
        assert!(matches!(
            verify_receipts(whole.as_bytes(), Some("another")),
            Err(ReceiptError::OtherKey(_))
        ));
        for at in 0..lines.len() {
            let mut without = lines.clone();
            without.remove(at);
            assert!(
                verify_receipts(without.join("\n").as_bytes(), None).is_err(),
                "without line {at}"
            );
            let mut twice = lines.clone();
            twice.insert(at, lines[at].clone());
            assert!(
                verify_receipts(twice.join("\n").as_bytes(), None).is_err(),
                "line {at} twice"
            );
            for other in at + 1..lines.len() {
                let mut swapped = lines.clone();
                swapped.swap(at, other);
                assert!(
                    verify_receipts(swapped.join("\n").as_bytes(), None).is_err(),
                    "{at} and {other} swapped"
                );
            }
        }
        for (at, byte) in whole.bytes().enumerate().filter(|(_, byte)| *byte != b'\n') {
            let mut changed = whole.clone().into_bytes();
            changed[at] = if byte == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(
                verify_receipts(changed.as_bytes(), Some(&checked.key)).is_err(),
                "byte {at}"
            );
        }
        // A line of another file of the same key does not fit.
        let mut mixed = file(3);
        mixed[1] = lines[2].clone();
        assert_eq!(
            verify_receipts(mixed.join("\n").as_bytes(), None),
            Err(ReceiptError::Order(2))
        );
    }
}
