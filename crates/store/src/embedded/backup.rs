//! One consistent file with everything that cannot be derived: the records, the blobs and the sealing key.
//!
//! It is a plain tar archive of a data directory: unpacked into an empty folder it *is* one. The index is left out and
//! comes back by itself. What is unpacked is readable by the owner alone, whatever the folder is.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::EmbeddedStore;
use super::directory::{BLOBS, DATABASE, SEALING_KEY};
use crate::{Backup, Result, StoreError};

impl Backup for EmbeddedStore {
    fn backup(&self, out: &mut dyn Write) -> Result<()> {
        self.sealing_key()?;
        let folder = tempfile::tempdir_in(self.path()).map_err(StoreError::at(self.path()))?;
        let copy = folder.path().join(DATABASE);
        self.database.read(|connection| {
            connection.execute("VACUUM INTO ?1", [copy.to_string_lossy().as_ref()])
        })?;
        let mut archive = tar::Builder::new(out);
        append(&mut archive, &copy, Path::new(DATABASE))?;
        let key = self.directory.join(SEALING_KEY);
        append(&mut archive, &key, Path::new(SEALING_KEY))?;
        let blobs = self.directory.join(BLOBS);
        if blobs.exists() {
            append(&mut archive, &blobs, Path::new(BLOBS))?;
        }
        archive
            .finish()
            .map_err(StoreError::at(Path::new("the backup file")))
    }
}

/// Appends a file, or a folder with all that is in it.
fn append<W: Write>(archive: &mut tar::Builder<W>, path: &Path, name: &Path) -> Result<()> {
    let file = File::open(path).map_err(StoreError::at(path))?;
    let metadata = file.metadata().map_err(StoreError::at(path))?;
    let mut header = tar::Header::new_gnu();
    header.set_metadata_in_mode(&metadata, tar::HeaderMode::Deterministic);
    if !metadata.is_dir() {
        header.set_mode(0o600);
        // What was added to it meanwhile would not fit its header.
        let appended = archive.append_data(&mut header, name, file.take(metadata.len()));
        return appended.map_err(StoreError::at(path));
    }
    header.set_mode(0o700);
    archive
        .append_data(&mut header, name.join(""), io::empty())
        .map_err(StoreError::at(path))?;
    for entry in fs::read_dir(path).map_err(StoreError::at(path))? {
        let entry = entry.map_err(StoreError::at(path))?;
        append(archive, &entry.path(), &name.join(entry.file_name()))?;
    }
    Ok(())
}
