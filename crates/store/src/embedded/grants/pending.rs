//! Disclosures that cannot reach the database now, because an erasure or a long change holds it: they wait in a file of
//! their own, durable at once, and are moved into the database with the next write, or at the next start.
//!
//! Batches are numbered, and the database keeps the number of the last one it took, so that none is taken twice.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use contract::id::GrantId;
use rusqlite::{OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::embedded::directory::{DataDirectory, PENDING, sync_folder};
use crate::embedded::sqlite::Database;
use crate::grants::{Disclosure, LoggedDisclosure, TokenUse};
use crate::{Result, StoreError};

const TAKEN: &str = "disclosures_taken";
/// A batch is framed by its length and the beginning of its hash: what a crash cut off is no batch.
const FRAME_BYTES: usize = 4 + 8;

/// The waiting batches.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    file: Option<File>,
    batches: Vec<Batch>,
    /// The number of the last batch that was ever written.
    last: u64,
}

/// Disclosures that were noted together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Batch {
    number: u64,
    pub(super) disclosures: Vec<Disclosure>,
    pub(super) uses: Vec<TokenUse>,
}

impl Pending {
    /// The batches that an earlier process left and the database does not have.
    pub(in crate::embedded) fn open_beside(
        directory: &DataDirectory,
        database: &Database,
    ) -> Result<Self> {
        let path = &directory.join(PENDING);
        let taken = database.read(taken)?;
        let batches = match File::open(path) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(StoreError::at(path))?;
                framed(&bytes)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StoreError::io(path, error)),
        };
        let last = batches.last().map_or(0, |batch| batch.number).max(taken);
        Ok(Self {
            file: None,
            batches: batches
                .into_iter()
                .filter(|batch| batch.number > taken)
                .collect(),
            last,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// How many disclosures wait.
    pub(super) fn len(&self) -> usize {
        self.batches
            .iter()
            .map(|batch| batch.disclosures.len())
            .sum()
    }

    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Writes a batch durably.
    pub(super) fn append(
        &mut self,
        path: &Path,
        disclosures: &[Disclosure],
        uses: &[TokenUse],
    ) -> Result<()> {
        let batch = Batch {
            number: self.last + 1,
            disclosures: disclosures.to_vec(),
            uses: uses.to_vec(),
        };
        let framed = batch.framed(path)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let made = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(path)
                    .map_err(StoreError::at(path))?;
                sync_folder(path.parent().unwrap_or(Path::new(".")))?;
                none.insert(made)
            }
        };
        let before = file.metadata().map_err(StoreError::at(path))?.len();
        let written = file.write_all(&framed).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Half a batch would hide those after it.
            let _ = file.set_len(before);
            return Err(StoreError::io(path, error));
        }
        self.last = batch.number;
        self.batches.push(batch);
        Ok(())
    }

    /// Records in the database which batches it takes.
    pub(super) fn note_taken(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction
            .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
            .execute((TAKEN, self.last))
            .map(drop)
    }

    /// Removes the batches that the database has taken, durably.
    pub(super) fn clear(&mut self, path: &Path) {
        self.batches.clear();
        // A batch that stays in the file has a number the database knows.
        match &self.file {
            Some(file) => drop(file.set_len(0)),
            None => drop(std::fs::remove_file(path)),
        }
    }

    /// The waiting disclosures, newest first, numbered as they will be after this sequence number.
    pub(super) fn logged(&self, after: u64, grant: Option<&GrantId>) -> Vec<LoggedDisclosure> {
        let all = self.batches.iter().flat_map(|batch| &batch.disclosures);
        let numbered = (after + 1..).zip(all);
        let mut found: Vec<LoggedDisclosure> = numbered
            .filter(|(_, one)| grant.is_none_or(|grant| one.grant_ids.contains(grant)))
            .map(|(sequence, disclosure)| LoggedDisclosure {
                sequence,
                disclosure: disclosure.clone(),
            })
            .collect();
        found.reverse();
        found
    }
}

impl Batch {
    fn framed(&self, path: &Path) -> Result<Vec<u8>> {
        let text = serde_json::to_vec(self).map_err(|error| StoreError::Engine {
            path: path.to_owned(),
            detail: format!("a disclosure cannot be written: {error}"),
        })?;
        let length = u32::try_from(text.len()).map_err(|_| StoreError::Engine {
            path: path.to_owned(),
            detail: "too many disclosures at once".to_owned(),
        })?;
        let mut framed = Vec::with_capacity(FRAME_BYTES + text.len());
        framed.extend_from_slice(&length.to_be_bytes());
        framed.extend_from_slice(&sum(&text));
        framed.extend_from_slice(&text);
        Ok(framed)
    }
}

/// The number of the last batch that the database took.
pub(super) fn taken(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([TAKEN], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

fn sum(text: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    for (to, from) in sum.iter_mut().zip(Sha256::digest(text)) {
        *to = from;
    }
    sum
}

/// The whole batches at the beginning of a file.
fn framed(mut bytes: &[u8]) -> Vec<Batch> {
    let mut batches = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((expected, rest)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let Some((text, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let Some(batch) = (sum(text) == *expected)
            .then(|| serde_json::from_slice(text).ok())
            .flatten()
        else {
            break;
        };
        batches.push(batch);
        bytes = rest;
    }
    batches
}
