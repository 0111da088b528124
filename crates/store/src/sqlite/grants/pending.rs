//! What cannot reach the database now, because an erasure or a long change holds it or the disk is full: disclosures, and
//! what was revoked. It waits in a file of its own, durable at once, and goes into the database with the next that can be
//! written, or at the next start.
//!
//! The file has its room ahead of time and is written over, so that a full disk cannot keep anything from it until that
//! room is used up. Batches are numbered, and the database keeps the number of the last one it took, so that none is taken
//! twice.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use contract::id::GrantId;
use contract::time::Instant;
use rusqlite::{OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk_space;
use crate::grants::{Disclosure, LoggedDisclosure, Revocation, RevocationReason, TokenUse};
use crate::sqlite::database::Database;
use crate::sqlite::directory::{DataDirectory, PENDING};
use crate::{Result, StoreError};

const TAKEN: &str = "disclosures_taken";
/// A batch is framed by its length and the beginning of its hash: what a crash cut off is no batch.
const FRAME_BYTES: usize = 4 + 8;
/// How much room the file has ahead of time: some two thousand disclosures.
const AHEAD_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Pending {
    path: PathBuf,
    file: Option<File>,
    batches: Vec<Batch>,
    /// The number of the last batch that was ever written.
    last: u64,
    /// Where the next batch goes.
    end: u64,
    length: u64,
    /// What was revoked and could not even be written here: it holds for as long as this process lives.
    unwritten: Vec<Ended>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Batch {
    number: u64,
    pub(super) disclosures: Vec<Disclosure>,
    pub(super) uses: Vec<TokenUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ended: Vec<Ended>,
}

/// Something that was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(super) what: EndedKind,
    pub(super) id: String,
    pub(super) at: Instant,
    #[serde(default = "by_owner", skip_serializing_if = "is_by_owner")]
    pub(super) reason: RevocationReason,
}

fn by_owner() -> RevocationReason {
    RevocationReason::Owner
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the serializer hands it over like this"
)]
fn is_by_owner(reason: &RevocationReason) -> bool {
    *reason == RevocationReason::Owner
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EndedKind {
    Grant,
    Package,
    Token,
}

impl Ended {
    pub(super) fn revocation(&self) -> Revocation {
        Revocation {
            at: self.at,
            reason: self.reason,
        }
    }

    pub(super) fn is(&self, what: EndedKind, id: &str) -> bool {
        self.what == what && self.id == id
    }
}

impl Pending {
    /// The batches that an earlier process left and the database does not have.
    pub(in crate::sqlite) fn open_beside(
        directory: &DataDirectory,
        database: &Database,
    ) -> Result<Self> {
        let path = directory.join(PENDING);
        let taken = database.read(taken)?;
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(StoreError::at(&path))?,
        };
        let (mut batches, end) = framed(&bytes);
        let last = batches.last().map_or(0, |batch| batch.number).max(taken);
        batches.retain(|batch| batch.number > taken);
        let mut pending = Self {
            path,
            file: None,
            end: if batches.is_empty() { 0 } else { end },
            batches,
            last,
            length: bytes.len() as u64,
            unwritten: Vec::new(),
        };
        pending.allocate();
        Ok(pending)
    }

    /// With a path at which nothing can be written.
    #[cfg(test)]
    pub(super) fn nowhere(folder: &Path) -> Self {
        Self {
            path: folder.to_owned(),
            file: None,
            batches: Vec::new(),
            last: 0,
            end: 0,
            length: 0,
            unwritten: Vec::new(),
        }
    }

    /// Gives the file its room, if there is any.
    pub(super) fn allocate(&mut self) {
        let ahead = AHEAD_BYTES as u64;
        let missing = ahead.saturating_sub(self.length);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if missing == 0 || disk_space::free(folder).is_some_and(|free| free < ahead) {
            return;
        }
        let zeros = vec![0; usize::try_from(missing).unwrap_or(AHEAD_BYTES)];
        let at = self.length;
        // Without it nothing is lost, only refused earlier.
        if self
            .file()
            .is_ok_and(|file| file.write_all_at(&zeros, at).is_ok())
        {
            self.length = ahead;
        }
    }

    /// How many bytes can be written here whatever becomes of the disk.
    pub(super) fn room(&self) -> u64 {
        self.length.saturating_sub(self.end)
    }

    fn file(&mut self) -> std::io::Result<&File> {
        if self.file.is_none() {
            let opened = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&self.path)?;
            let folder = self.path.parent().unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all())?;
            self.file = Some(opened);
        }
        self.file
            .as_ref()
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.unwritten.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.batches
            .iter()
            .map(|batch| batch.disclosures.len())
            .sum()
    }

    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// What was revoked and waits here, written or not.
    pub(in crate::sqlite) fn ended(&self) -> impl Iterator<Item = &Ended> {
        let written = self.batches.iter().flat_map(|batch| &batch.ended);
        written.chain(&self.unwritten)
    }

    /// What was revoked and is in no file.
    pub(super) fn unwritten(&self) -> &[Ended] {
        &self.unwritten
    }

    /// Notes what was revoked, to be written with the next batch.
    pub(super) fn end(&mut self, ended: Ended) {
        self.unwritten.push(ended);
    }

    /// Writes a batch, with what was revoked and not written yet, so that no crash takes it away.
    pub(super) fn append(&mut self, disclosures: &[Disclosure], uses: &[TokenUse]) -> Result<()> {
        let batch = Batch {
            number: self.last + 1,
            disclosures: disclosures.to_vec(),
            uses: uses.to_vec(),
            ended: self.unwritten.clone(),
        };
        let framed = batch.framed(&self.path)?;
        let (at, length) = (self.end, self.length);
        let end = at + framed.len() as u64;
        let written = self.file().and_then(|file| {
            let written = file
                .write_all_at(&framed, at)
                .and_then(|()| file.sync_data());
            if written.is_err() && end > length {
                // The next batch is written over what there is of this one; the room must not grow by it.
                let _ = file.set_len(length);
            }
            written
        });
        written.map_err(StoreError::at(&self.path))?;
        self.end = end;
        self.length = length.max(end);
        self.last = batch.number;
        self.batches.push(batch);
        self.unwritten.clear();
        Ok(())
    }

    /// Records in the database which batches it takes.
    pub(super) fn note_taken(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction
            .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
            .execute((TAKEN, self.last))
            .map(drop)
    }

    /// Forgets what the database has taken.
    pub(super) fn clear(&mut self) {
        self.batches.clear();
        self.unwritten.clear();
        // What stays in the file after a crash has a number the database knows.
        let used = std::mem::take(&mut self.end).min(self.length);
        let ahead = AHEAD_BYTES as u64;
        let Ok(file) = self.file() else { return };
        let zeros = vec![0; usize::try_from(used.min(ahead)).unwrap_or_default()];
        let _ = file.write_all_at(&zeros, 0);
        if self.length > ahead && self.file().is_ok_and(|file| file.set_len(ahead).is_ok()) {
            self.length = ahead;
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
    pub(super) fn is_after(&self, number: u64) -> bool {
        self.number > number
    }

    fn framed(&self, path: &Path) -> Result<Vec<u8>> {
        let text = serde_json::to_vec(self).map_err(|error| {
            StoreError::engine(path, format!("a disclosure cannot be written: {error}"))
        })?;
        let length = u32::try_from(text.len())
            .map_err(|_| StoreError::engine(path, "too many disclosures at once"))?;
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

/// The whole batches at the beginning of a file, and where the last one ends. What follows with a lower number is left over
/// from before.
fn framed(file: &[u8]) -> (Vec<Batch>, u64) {
    let mut bytes = file;
    let mut batches: Vec<Batch> = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((expected, rest)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let Some((text, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let Some(batch) = (sum(text) == *expected)
            .then(|| serde_json::from_slice::<Batch>(text).ok())
            .flatten()
        else {
            break;
        };
        if batches
            .last()
            .is_some_and(|last| batch.number <= last.number)
        {
            break;
        }
        batches.push(batch);
        bytes = rest;
    }
    (batches, (file.len() - bytes.len()) as u64)
}
