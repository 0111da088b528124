//! One consistent file with everything that cannot be derived: the records, the blobs, the sealing key, and what is collected.
//!
//! It is a plain tar archive of a data directory: unpacked into an empty folder it *is* one. The index is left out and
//! comes back by itself. What is unpacked is readable by the owner alone, whatever the folder is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use contract::id::BlobId;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use super::EmbeddedStore;
use super::blobs::is_bound;
use super::commit_mark;
use super::database::failed;
use super::directory::{BLOBS, COLLECT, DATABASE, SEALING_KEY, is_collected};
use super::inspect::unreadable;
use crate::{Backup, Result, StoreError};

impl Backup for EmbeddedStore {
    fn missing_blobs(&self) -> Result<Vec<BlobId>> {
        let ids = self.database.read(blobs_in)?;
        let is_missing = |id: &BlobId| self.blob_file(id).is_err();
        let missing: Vec<BlobId> = ids.into_iter().filter(is_missing).collect();
        // A blob that was erased since it was listed is not missing.
        self.database.read(|connection| {
            let mut missed = Vec::new();
            for id in missing {
                if is_bound(connection, &id)? {
                    missed.push(id);
                }
            }
            Ok(missed)
        })
    }

    fn backup_beside(
        &self,
        out: &mut dyn Write,
        missing: &[BlobId],
        folder: Option<&Path>,
    ) -> Result<Vec<String>> {
        self.sealing_key()?;
        let folder = self.directory.prepare(folder, self.room_to_copy()?)?;
        let copy = folder.path().join(DATABASE);
        // What waits is part of it, revocations above all; it may get into the database before the copy is made.
        let waiting = self.waiting();
        self.database.read(|connection| {
            connection.execute("VACUUM INTO ?1", [copy.to_string_lossy().as_ref()])
        })?;
        let mut connection = Connection::open(&copy).map_err(failed(&copy))?;
        self.settle_into(&mut connection, &waiting)?;
        commit_mark::uncount(&connection).map_err(failed(&copy))?;
        let mut damaged = unreadable(&connection).map_err(failed(&copy))?;
        drop(connection);
        let mut archive = tar::Builder::new(out);
        for (path, name) in [
            (&copy, DATABASE),
            (&self.directory.join(SEALING_KEY), SEALING_KEY),
        ] {
            let mut file = File::open(path).map_err(StoreError::at(path))?;
            append(&mut archive, Path::new(name), &mut file).map_err(StoreError::at(path))?;
        }
        self.append_collected(&mut archive)?;
        let mut ids = blobs_of(&copy).map_err(failed(&copy))?;
        ids.retain(|id| !missing.contains(id));
        self.append_blobs(&mut archive, &ids, &mut damaged)?;
        archive
            .finish()
            .map_err(StoreError::at(Path::new("the backup file")))?;
        Ok(damaged)
    }
}

impl EmbeddedStore {
    fn room_to_copy(&self) -> Result<u64> {
        self.database.read(|connection| {
            connection.query_row(
                "SELECT (page_count - freelist_count) * page_size
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                [],
                |row| row.get(0),
            )
        })
    }

    /// Appends the jobs that are collected and the state of each, in the order of their names.
    fn append_collected<W: Write>(&self, archive: &mut tar::Builder<W>) -> Result<()> {
        let folder = self.directory.join(COLLECT);
        let Ok(entries) = std::fs::read_dir(&folder) else {
            return Ok(());
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_collected(name)).collect();
        names.sort_unstable();
        if !names.is_empty() {
            append_folder(archive, Path::new(COLLECT)).map_err(StoreError::at(&folder))?;
        }
        for name in names {
            let path = folder.join(&name);
            let mut file = match File::open(&path) {
                // It was forgotten since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(StoreError::at(&path))?,
            };
            append(archive, &Path::new(COLLECT).join(name), &mut file)
                .map_err(StoreError::at(&path))?;
        }
        Ok(())
    }

    /// Appends the blobs that the copied records refer to, in the order of their ids, each folder before what is in it.
    /// One that was erased since is erased here too.
    fn append_blobs<W: Write>(
        &self,
        archive: &mut tar::Builder<W>,
        ids: &[BlobId],
        damaged: &mut Vec<String>,
    ) -> Result<()> {
        let mut folders = Vec::new();
        for id in ids {
            // Unchecked: one damaged file is no reason to have no backup of all the others.
            let (_, file) = match self.blob_file(id) {
                Err(StoreError::UnknownBlob(_)) if !self.is_bound(id)? => continue,
                opened => opened?,
            };
            let (folder, name) = id.hex().split_at(2);
            let folder = Path::new(BLOBS).join(folder);
            for folder in [PathBuf::from(BLOBS), folder.clone()] {
                if !folders.contains(&folder) {
                    append_folder(archive, &folder).map_err(StoreError::at(&folder))?;
                    folders.push(folder);
                }
            }
            let name = folder.join(name);
            let mut file = Hashed {
                file,
                hasher: Sha256::new(),
            };
            append(archive, &name, &mut file).map_err(StoreError::at(&name))?;
            if BlobId::from_sha256(file.hasher.finalize().into()) != *id {
                damaged.push(format!(
                    "blob {id}: its bytes are not those that were stored"
                ));
            }
        }
        Ok(())
    }

    fn is_bound(&self, id: &BlobId) -> Result<bool> {
        self.database.read(|connection| is_bound(connection, id))
    }
}

fn blobs_of(copy: &Path) -> rusqlite::Result<Vec<BlobId>> {
    blobs_in(&Connection::open_with_flags(
        copy,
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )?)
}

fn blobs_in(connection: &Connection) -> rusqlite::Result<Vec<BlobId>> {
    let mut statement = connection.prepare("SELECT id FROM blobs ORDER BY id")?;
    let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
    ids.map(|id| {
        BlobId::parse(id?).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                0,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })
    })
    .collect()
}

/// A file of which it is known afterwards what was read.
struct Hashed {
    file: File,
    hasher: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

trait AsFile {
    fn as_file(&self) -> &File;
}

impl AsFile for File {
    fn as_file(&self) -> &File {
        self
    }
}

impl AsFile for Hashed {
    fn as_file(&self) -> &File {
        &self.file
    }
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    name: &Path,
    file: &mut (impl Read + AsFile),
) -> io::Result<()> {
    let metadata = file.as_file().metadata()?;
    let mut header = tar::Header::new_gnu();
    header.set_metadata_in_mode(&metadata, tar::HeaderMode::Deterministic);
    header.set_mode(0o600);
    // Bytes appended meanwhile would not fit the header.
    archive.append_data(&mut header, name, file.take(metadata.len()))
}

fn append_folder<W: Write>(archive: &mut tar::Builder<W>, name: &Path) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o700);
    header.set_size(0);
    archive.append_data(&mut header, name.join(""), io::empty())
}
