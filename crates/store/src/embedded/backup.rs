//! One consistent file with everything that cannot be derived: the records, the blobs and the sealing key.
//!
//! It is a plain tar archive of a data directory: unpacked into an empty folder it *is* one. The index is left out and
//! comes back by itself.

use std::fs::File;
use std::io::Write;
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
        archive.mode(tar::HeaderMode::Deterministic);
        append(&mut archive, &copy, DATABASE)?;
        append(&mut archive, &self.directory.join(SEALING_KEY), SEALING_KEY)?;
        let blobs = self.directory.join(BLOBS);
        if blobs.exists() {
            archive
                .append_dir_all(BLOBS, &blobs)
                .map_err(StoreError::at(&blobs))?;
        }
        archive
            .finish()
            .map_err(StoreError::at(Path::new("the backup file")))
    }
}

fn append<W: Write>(archive: &mut tar::Builder<W>, path: &Path, name: &str) -> Result<()> {
    let mut file = File::open(path).map_err(StoreError::at(path))?;
    archive
        .append_file(name, &mut file)
        .map_err(StoreError::at(path))
}
