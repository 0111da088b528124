//! The free space on the disk, what is refused without it, and a small reserve.
//!
//! A full disk must not prevent reading, revoking and logging disclosures. So an empty file takes some space while there is
//! plenty, and is removed when the disk is full.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::sqlite::directory::RESERVE;
use crate::{Result, StoreError};

/// With less than this no records are written: the log, the index and the disclosures need some.
const LEAST_BYTES: u64 = 16 * 1024 * 1024;
const KEPT_BYTES: usize = 2 * 1024 * 1024;
/// With less than this what was kept back is needed.
const TIGHT_BYTES: u64 = 1024 * 1024;

/// How many bytes this user may still write where the path is; none where the system does not say.
pub(crate) fn free(path: &Path) -> Option<u64> {
    #[cfg(test)]
    if let Some(pretended) = pretended::FREE.get() {
        return Some(pretended);
    }
    // What is not there yet will be on the disk of its folder.
    let disk = path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        rustix::fs::statvfs(path).ok()
    })?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Refuses what needs more room than there is, and says how much that is.
pub(crate) fn require(path: &Path, bytes: u64) -> Result<()> {
    let needed = bytes.saturating_add(LEAST_BYTES);
    match free(path) {
        Some(free) if free < needed => Err(StoreError::NoRoom {
            path: path.to_owned(),
            needed,
            free,
        }),
        _ => Ok(()),
    }
}

/// What is told where there was no room to write: the figure, where the disk tells it and no quota or limit was met.
pub(crate) fn full(path: PathBuf) -> StoreError {
    match free(&path) {
        Some(free) if free < LEAST_BYTES => StoreError::NoRoom {
            path,
            needed: LEAST_BYTES,
            free,
        },
        _ => StoreError::Full { path },
    }
}

/// The error where an engine failed to write and did not say why.
pub(crate) fn unable(path: &Path, detail: &str) -> StoreError {
    match free(path) {
        Some(free) if free < LEAST_BYTES => StoreError::NoRoom {
            path: path.to_owned(),
            needed: LEAST_BYTES,
            free,
        },
        _ => StoreError::engine(path, detail),
    }
}

/// Keeps some room back while it lives, and also for whoever opens the folder next: what was given back while the disk
/// was full is often free again when the log of the database goes.
#[derive(Debug)]
pub(crate) struct Reserve {
    folder: PathBuf,
}

impl Reserve {
    pub(crate) fn keep(folder: &Path) -> Self {
        keep_back(folder, LEAST_BYTES);
        Self {
            folder: folder.to_owned(),
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        keep_back(&self.folder, KEPT_BYTES as u64);
    }
}

/// Keeps some room back, if there is as much as that.
fn keep_back(folder: &Path, least: u64) {
    let path = folder.join(RESERVE);
    if path.exists() || free(folder).is_none_or(|free| free < least) {
        return;
    }
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(&vec![0; KEPT_BYTES]));
    if made.is_err() {
        // A reserve that could not be filled is of no use.
        let _ = fs::remove_file(&path);
    }
}

/// Gives back what was kept, if there is hardly anything else.
pub(crate) fn give_back(folder: &Path) {
    if free(folder).is_some_and(|free| free < TIGHT_BYTES) {
        let _ = fs::remove_file(folder.join(RESERVE));
    }
}

/// A disk of any fullness, for tests.
#[cfg(test)]
pub(crate) mod pretended {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static FREE: Cell<Option<u64>> = const { Cell::new(None) };
        /// Whether the database can write nothing.
        pub(crate) static DATABASE_IS_FULL: Cell<bool> = const { Cell::new(false) };
        /// Whether the disk of the database gives errors.
        pub(crate) static DATABASE_FAILS: Cell<bool> = const { Cell::new(false) };
    }

    pub(crate) fn refuse(path: &std::path::Path) -> crate::Result<()> {
        if DATABASE_FAILS.get() {
            return Err(crate::StoreError::DiskFailed {
                path: path.to_owned(),
                detail: "I/O error".to_owned(),
            });
        }
        if DATABASE_IS_FULL.get() {
            return Err(super::full(path.to_owned()));
        }
        Ok(())
    }
}
