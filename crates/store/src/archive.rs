//! The file that a backup is: a plain tar archive of a data directory. Unpacked into an empty folder it *is* one, whichever
//! store wrote it. The index is left out and comes back by itself. What is unpacked is readable by the owner alone, whatever the
//! folder is.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use contract::id::BlobId;
use sha2::{Digest as _, Sha256};
use tar::EntryType;

use crate::sqlite::directory::{BLOBS, COLLECT, DATABASE, SEALING_KEY, is_collected};
use crate::{Result, StoreError};

/// A fixed time for every member: two backups of the same content are the same bytes. Some readers take 0 for none.
const MODIFIED: u64 = 1_153_704_088;

pub(crate) struct Archive<W: Write> {
    tar: tar::Builder<W>,
    /// The folders that are in it already.
    folders: Vec<PathBuf>,
}

impl<W: Write> Archive<W> {
    /// Begins with the database, which is at this path, and the key that seals cursors.
    pub(crate) fn begin(out: W, database: &Path, sealing_key: [u8; 32]) -> Result<Self> {
        let mut archive = Self {
            tar: tar::Builder::new(out),
            folders: Vec::new(),
        };
        archive
            .append_file(Path::new(DATABASE), File::open(database))
            .map_err(StoreError::at(database))?;
        let key = Path::new(SEALING_KEY);
        archive
            .append(key, sealing_key.len() as u64, &mut sealing_key.as_slice())
            .map_err(StoreError::at(key))?;
        Ok(archive)
    }

    /// Appends the jobs that are collected and the state of each, in the order of their names.
    pub(crate) fn append_collected(&mut self, folder: &Path) -> Result<()> {
        let Ok(entries) = fs::read_dir(folder) else {
            return Ok(());
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_collected(name)).collect();
        names.sort_unstable();
        if !names.is_empty() {
            self.append_folder(Path::new(COLLECT))?;
        }
        for name in names {
            let path = folder.join(&name);
            match self.append_file(&Path::new(COLLECT).join(name), File::open(&path)) {
                // It was forgotten since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                appended => appended.map_err(StoreError::at(&path))?,
            }
        }
        Ok(())
    }

    /// Appends a blob, after the folders that it is in. Returns whether its bytes are those that its id names: one that is damaged is
    /// no reason to have no backup of all the others.
    pub(crate) fn append_blob(
        &mut self,
        id: &BlobId,
        size_bytes: u64,
        bytes: impl Read,
    ) -> Result<bool> {
        let (folder, name) = id.hex().split_at(2);
        let folder = Path::new(BLOBS).join(folder);
        self.append_folder(Path::new(BLOBS))?;
        self.append_folder(&folder)?;
        let name = folder.join(name);
        let mut hashed = Hashed {
            bytes,
            hasher: Sha256::new(),
        };
        self.append(&name, size_bytes, &mut hashed)
            .map_err(StoreError::at(&name))?;
        Ok(BlobId::from_sha256(hashed.hasher.finalize().into()) == *id)
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        let finished = self.tar.finish();
        finished.map_err(StoreError::at(Path::new("the backup file")))
    }

    fn append_file(&mut self, name: &Path, file: io::Result<File>) -> io::Result<()> {
        let mut file = file?;
        let size_bytes = file.metadata()?.len();
        self.append(name, size_bytes, &mut file)
    }

    fn append(&mut self, name: &Path, size_bytes: u64, bytes: &mut dyn Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o600);
        header.set_mtime(MODIFIED);
        header.set_size(size_bytes);
        // Bytes that were appended meanwhile would not fit the header.
        self.tar
            .append_data(&mut header, name, bytes.take(size_bytes))
    }

    fn append_folder(&mut self, name: &Path) -> Result<()> {
        if self.folders.iter().any(|folder| folder == name) {
            return Ok(());
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o700);
        header.set_size(0);
        self.tar
            .append_data(&mut header, name.join(""), io::empty())
            .map_err(StoreError::at(name))?;
        self.folders.push(name.to_owned());
        Ok(())
    }
}

/// Bytes of which it is known afterwards what was read.
struct Hashed<R> {
    bytes: R,
    hasher: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
