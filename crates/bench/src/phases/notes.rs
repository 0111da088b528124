//! What writing the corpus cost, kept beside the data as a small JSON file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BenchError, BenchOptions};

const FILE: &str = "bench.json";
const SERVED_FILE: &str = "served.json";

/// What writing the corpus on one side cost.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct WriteFigures {
    /// Until everything was durable and searchable and the index at rest.
    pub(super) elapsed: Duration,
    /// Processor time for it, background merges included.
    pub(super) cpu: Duration,
    pub(super) bytes: u64,
}

/// The notes of a folder whose corpus is complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    records: u64,
    seed: u64,
    batch: usize,
    pub(super) ours: WriteFigures,
    pub(super) raw: WriteFigures,
    pub(super) seldom: WriteFigures,
    pub(super) plain: WriteFigures,
}

impl Notes {
    pub(super) fn new(
        options: &BenchOptions,
        [ours, raw, seldom, plain]: [WriteFigures; 4],
    ) -> Self {
        Self {
            records: options.records,
            seed: options.seed,
            batch: options.batch,
            ours,
            raw,
            seldom,
            plain,
        }
    }

    /// Written last: a folder without notes was not filled to the end.
    pub(super) fn keep(&self, folder: &Path) -> Result<(), BenchError> {
        let path = path(folder);
        std::fs::write(&path, serde_json::to_vec(self)?).map_err(BenchError::file(&path))
    }

    /// The notes of an earlier run with the same options; none for an empty folder.
    pub(super) fn earlier(
        options: &BenchOptions,
        folder: &Path,
    ) -> Result<Option<Self>, BenchError> {
        let path = path(folder);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut entries = std::fs::read_dir(folder).map_err(BenchError::file(folder))?;
                return match entries.next() {
                    None => Ok(None),
                    Some(_) => Err(BenchError::ForeignFolder(folder.to_owned())),
                };
            }
            Err(error) => return Err(BenchError::file(&path)(error)),
        };
        let notes: Self = serde_json::from_slice(&text)?;
        let asked = (options.records, options.seed, options.batch);
        if (notes.records, notes.seed, notes.batch) == asked {
            Ok(Some(notes))
        } else {
            Err(BenchError::ForeignFolder(folder.to_owned()))
        }
    }
}

/// The notes of a folder that holds our side only, for the runs that measure a surface.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServedNotes {
    records: u64,
    seed: u64,
}

impl ServedNotes {
    fn new(options: &BenchOptions) -> Self {
        Self {
            records: options.records,
            seed: options.seed,
        }
    }

    /// Written last, as the other notes are.
    pub(super) fn keep(options: &BenchOptions, folder: &Path) -> Result<(), BenchError> {
        let path = folder.join(SERVED_FILE);
        let text = serde_json::to_vec(&Self::new(options))?;
        std::fs::write(&path, text).map_err(BenchError::file(&path))
    }

    /// Whether an earlier run left such a corpus.
    pub(super) fn has_earlier(options: &BenchOptions, folder: &Path) -> Result<bool, BenchError> {
        let path = folder.join(SERVED_FILE);
        match std::fs::read(&path) {
            Ok(text) if serde_json::from_slice::<Self>(&text)? == Self::new(options) => Ok(true),
            Ok(_) => Err(BenchError::ForeignFolder(folder.to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(BenchError::file(&path)(error)),
        }
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
