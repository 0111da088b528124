//! Whether what is stored still is what was written.

use std::path::PathBuf;

use crate::Result;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What can be told without reading much: whether an erasure was finished, and whether the index has every record.
    Glance,
    /// Everything: every page and every record, the checksums of the index, and every byte of every blob.
    Thorough,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file or folder concerned.
    pub path: PathBuf,
    /// What is wrong with it.
    pub detail: String,
}

/// What was looked at and found. Of each kind of damage the first few are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// How many records there are.
    pub records: u64,
    /// How many blobs there are.
    pub blobs: u64,
    /// What is wrong with the records: only a backup helps.
    pub damaged_records: Vec<Damage>,
    /// What is wrong with blobs: a backup helps, or the same bytes sent again.
    pub damaged_blobs: Vec<Damage>,
    /// What is wrong with the index: it is derived anew.
    pub damaged_index: Vec<Damage>,
    /// Whether something was erased of which bytes may still be on the disk.
    pub traces_left: bool,
}

/// The port for looking after what is stored.
pub trait Inspect {
    /// Looks whether what is stored still is what was written. Changes nothing; damage is no error, but an answer.
    fn inspect(&self, depth: Depth) -> Result<Inspection>;
}
