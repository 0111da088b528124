//! SQLite databases of other programs. They are read from a copy, so that a program that runs is not disturbed and its locks do not
//! matter, together with what SQLite wrote beside the database and did not yet put into it.

use std::fs::{self, File};
use std::io::{self, BufRead};
use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::error::InputError;
use crate::exports::Companions;
use crate::importer::{Importer, Item};
use crate::importers::names_only;

const DATABASE: &[u8] = b"SQLite format 3\0";
/// The first bytes of what SQLite wrote and did not yet put into the database.
const LOG: [&[u8]; 2] = [b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"];

type Reader = Box<dyn BufRead>;

pub(crate) fn is_database(head: &[u8]) -> bool {
    head.starts_with(DATABASE)
}

pub(crate) fn is_log(head: &[u8]) -> bool {
    LOG.iter().any(|begins| head.starts_with(begins))
}

/// A copy of a database. It is deleted with its folder.
pub(crate) struct DatabaseCopy {
    pub(crate) connection: Connection,
    _folder: TempDir,
}

impl DatabaseCopy {
    pub(crate) fn open(mut database: Reader, log: Option<PathBuf>) -> Result<Self, InputError> {
        let folder = tempfile::Builder::new().prefix("pdpp-").tempdir()?;
        let copy = folder.path().join("database");
        io::copy(&mut database, &mut File::create(&copy)?)?;
        if let Some(log) = log {
            fs::copy(log, folder.path().join("database-wal"))?;
        }
        // It is a copy, and what was not yet put into it is now.
        let connection = Connection::open_with_flags(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let connection = connection.map_err(|error| damaged(&error))?;
        // Nothing that a made-up database defines is run.
        connection
            .execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA mmap_size = 0;",
            )
            .map_err(|error| damaged(&error))?;
        Ok(Self {
            connection,
            _folder: folder,
        })
    }
}

pub(crate) fn damaged(error: &rusqlite::Error) -> InputError {
    InputError::Unreadable(io::Error::other(format!(
        "the database is damaged: {error}"
    )))
}

/// Keeps what SQLite wrote beside a database until that is read.
pub(crate) struct LogKeeper<'a> {
    source: Option<Reader>,
    path: String,
    companions: &'a Companions,
}

impl<'a> LogKeeper<'a> {
    pub(crate) fn new(source: Reader, path: String, companions: &'a Companions) -> Self {
        Self {
            source: Some(source),
            path,
            companions,
        }
    }
}

impl Importer for LogKeeper<'_> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if let Some(mut source) = self.source.take() {
            let mut kept = tempfile::NamedTempFile::new()?;
            io::copy(&mut source, &mut kept)?;
            self.companions.keep(&self.path, kept.into_temp_path());
        }
        Ok(None)
    }

    fn note(&self) -> Option<String> {
        // It is read together with the database.
        Some(names_only())
    }
}
