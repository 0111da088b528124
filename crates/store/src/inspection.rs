//! Whether what is stored still is what was written.

use std::fmt;
use std::path::{Path, PathBuf};

use contract::time::Instant;
use serde::{Deserialize, Serialize, Serializer};

/// How many damaged things of a kind are listed.
pub(crate) const TOLD: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What needs little reading: whether an erasure was finished, and whether the index has every record.
    Glance,
    /// Everything: every page and every record, the checksums of the index, and every byte of every blob.
    Thorough,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    #[serde(serialize_with = "as_shown")]
    pub path: PathBuf,
    pub detail: String,
}

/// A path need not be text.
fn as_shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What was inspected and found. Of each kind of damage only the first few are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Inspection {
    pub records: u64,
    pub blobs: u64,
    /// What is wrong with the records: only a backup helps.
    pub damaged_records: Vec<Damage>,
    /// What is wrong with blobs: a backup helps, or the same bytes sent again.
    pub damaged_blobs: Vec<Damage>,
    /// What is wrong with the index: it is derived anew.
    pub damaged_index: Vec<Damage>,
    /// Whether something was erased of which bytes may still be on the disk.
    pub traces_left: bool,
    /// The nodes on whose disks they may be.
    pub traces_on: Vec<String>,
    /// How many blobs and copies of the index that nodes share they may be in.
    pub traces_in: SharedTraces,
    /// The tables of the database whose old pages they may be in. Only its administrator has tables written anew.
    pub traces_in_tables: Vec<String>,
    /// When something was erased last from a database, whose log and backups of before may hold it.
    pub erased_at: Option<Instant>,
    /// How many bytes of room it takes to finish that.
    pub room_to_erase: u64,
    /// The rollback of the store that the owner has not accepted yet, in words.
    pub rolled_back: Option<String>,
    /// Why a rollback could not be detected at the next start.
    pub unmarked: Option<String>,
    /// Disclosures that are on disk and not in the log yet.
    pub waiting: u64,
    /// Revocations that hold only for as long as this process lives.
    pub ended_in_memory: u64,
    /// Why nothing can be written, as it was tried.
    pub unwritable: Option<String>,
}

/// What all nodes share that may still hold bytes of what was erased. Any node that runs removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SharedTraces {
    pub blobs: u64,
    pub copies: u64,
}

/// A store that is older than what was acknowledged last: its newest part is lost, and with it perhaps revocations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// How many transactions are lost; `None` where that is unknown.
    pub commits: Option<u64>,
    /// How many changes of records were among them; `None` where that is unknown.
    pub changes: Option<u64>,
    /// The time of the last transaction that is present.
    pub last_kept: Option<Instant>,
    /// The time of the last transaction that is lost.
    pub last_lost: Option<Instant>,
    pub reason: String,
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store went back in time: {}. ", self.reason)?;
        match (self.commits, self.changes) {
            (Some(1), _) => write!(f, "1 transaction is missing")?,
            (Some(commits), _) => write!(f, "{commits} transactions are missing")?,
            (None, _) => write!(f, "How much is missing cannot be told")?,
        }
        if let Some(changes) = self.changes {
            write!(f, ", with {changes} changes of records")?;
        }
        if let Some(kept) = self.last_kept {
            write!(f, "; the last one that is there is of {kept}")?;
        }
        if let Some(lost) = self.last_lost {
            write!(f, "; the last one that was acknowledged is of {lost}")?;
        }
        write!(f, ". Grants and revocations may be among what is missing")
    }
}

/// The port for looking after what is stored.
pub trait Inspect {
    /// The rollback, until the owner has accepted it. Takes no time.
    fn rolled_back(&self) -> Option<Rollback>;
    /// Accepts the store as it is. Returns what was accepted.
    fn accept_rollback(&self) -> crate::Result<Option<Rollback>>;
    /// Checks whether everything stored is still what was written, and whether it can be written. Changes nothing; damage is a
    /// result, not an error.
    fn inspect(&self, depth: Depth) -> crate::Result<Inspection>;
}
