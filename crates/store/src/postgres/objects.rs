//! The bytes of an owner that all nodes share: blobs, and copies of the index.
//!
//! Each has a name with slashes in it. What gets a name is there whole, and is what was handed over.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::blobs::{ARRIVING, Received, receive};
use crate::sqlite::blobs::{entries, name_of, remove};
use crate::sqlite::directory::{create_private, sync_folder};
use crate::{Result, StoreError};

/// After so long nobody is about to refer to bytes that nothing refers to.
const LEFT_AFTER: Duration = Duration::from_hours(24);

/// Bytes to be read, and how many.
pub(super) type Opened = (u64, Box<dyn Read + Send>);

/// A name, and whether its bytes have not been written for long, by the clock of whoever keeps them.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) is_left: bool,
}

/// A folder that every node sees.
pub(super) struct Objects {
    root: PathBuf,
}

impl Objects {
    pub(super) fn in_folder(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where something is, for people.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Takes bytes that have no name yet, and their hash. What never gets a name is swept.
    pub(super) fn receive(&self, bytes: &mut dyn Read) -> Result<Received> {
        let received = receive(&self.root, bytes)?;
        let file = received.file.as_file();
        file.sync_all()
            .map_err(StoreError::at(received.file.path()))?;
        Ok(received)
    }

    /// Gives bytes a name, in place of those that have it.
    pub(super) fn put(&self, name: &str, received: Received) -> Result<()> {
        let path = self.place(name);
        let folder = path.parent().unwrap_or(&self.root);
        create_private(folder)?;
        received
            .file
            .persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
        sync_folder(folder)?;
        sync_folder(&self.root)
    }

    /// The bytes of a name as they are, damaged or not; `None` where there are none.
    pub(super) fn open(&self, name: &str) -> Result<Option<Opened>> {
        let path = self.place(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(StoreError::at(&path))?,
        };
        let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
        Ok(Some((size_bytes, Box::new(file))))
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        remove(&self.place(name))
    }

    /// Removes everything whose name begins so, up to a slash.
    pub(super) fn remove_all(&self, prefix: &str) -> Result<()> {
        for listed in self.list(prefix)? {
            self.remove(&listed.name)?;
        }
        // An empty folder is in nobody's way.
        let _ = fs::remove_dir(self.place(prefix));
        Ok(())
    }

    /// Everything whose name begins so, up to a slash.
    pub(super) fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut found = Vec::new();
        list_into(&self.place(prefix), prefix, &mut found)?;
        Ok(found)
    }

    /// Removes bytes that never got a name, left by a process that was killed.
    pub(super) fn sweep(&self) -> Result<()> {
        for path in entries(&self.root)? {
            if name_of(&path).starts_with(ARRIVING) && is_left(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

fn list_into(folder: &Path, prefix: &str, found: &mut Vec<Listed>) -> Result<()> {
    for path in entries(folder)? {
        let name = format!("{prefix}{}", name_of(&path));
        if path.is_dir() {
            list_into(&path, &format!("{name}/"), found)?;
        } else {
            let is_left = is_left(&path);
            found.push(Listed { name, is_left });
        }
    }
    Ok(())
}

fn is_left(path: &Path) -> bool {
    let modified = path.metadata().and_then(|found| found.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= LEFT_AFTER)
}
