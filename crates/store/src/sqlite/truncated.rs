//! A database file that was cut, which its headers tell before the engine reads it, and the write-ahead log beside it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::directory::INDEX;
use crate::{Result, StoreError};

/// `SQLite` notices a truncated file only when it reads past the end, and takes an empty one for a new database even when
/// its log holds everything; the headers show it at once. Nothing is changed here.
pub(super) fn refuse_truncated(path: &Path) -> Result<()> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let length = file.metadata().map_err(StoreError::at(path))?.len();
    let corrupt = |detail: String| StoreError::Corrupt {
        path: path.to_owned(),
        detail,
    };
    let log = Log::beside(path);
    if length == 0 {
        let in_use = log.is_some() || path.with_file_name(INDEX).exists();
        return if in_use {
            Err(corrupt("it is empty".to_owned()))
        } else {
            Ok(())
        };
    }
    let mut header = [0; 100];
    match file.read_exact(&mut header) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            return Err(StoreError::io(path, error));
        }
        Ok(()) if header.starts_with(b"SQLite format 3\0") => {}
        _ => return Err(corrupt("it is not a database file".to_owned())),
    }
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes).max(512),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let present = length / page_bytes;
    let expected = u64::from(pages);
    if present >= expected {
        return Ok(());
    }
    // A checkpoint that was interrupted leaves pages that only the log has yet.
    let in_log = log.map_or_else(HashSet::new, |log| log.pages(page_bytes));
    if (present + 1..=expected).all(|page| in_log.contains(&page)) {
        return Ok(());
    }
    Err(corrupt(format!(
        "it should have {} bytes and has {length}",
        expected * page_bytes
    )))
}

/// The write-ahead log beside a database.
pub(super) struct Log {
    file: File,
}

impl Log {
    const HEADER: u64 = 32;
    const FRAME_HEADER: u64 = 24;

    pub(super) fn beside(path: &Path) -> Option<Self> {
        let file = File::open(format!("{}-wal", path.display())).ok()?;
        (file.metadata().ok()?.len() > Self::HEADER).then_some(Self { file })
    }

    fn pages(mut self, page_bytes: u64) -> HashSet<u64> {
        let mut pages = HashSet::new();
        let mut at = Self::HEADER;
        let mut number = [0; 4];
        while self.file.seek(SeekFrom::Start(at)).is_ok()
            && self.file.read_exact(&mut number).is_ok()
        {
            pages.insert(u64::from(u32::from_be_bytes(number)));
            at += Self::FRAME_HEADER + page_bytes;
        }
        pages
    }
}
