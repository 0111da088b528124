//! A folder that every node sees, such as a mount of NFS.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::{Listed, Objects, Opened, is_old};
use crate::blobs::{ARRIVING, Received, receive};
use crate::sqlite::blobs::{entries, name_of, remove};
use crate::sqlite::directory::{create_private, sync_folder};
use crate::{Result, StoreError};

pub(super) struct Folder {
    pub(super) root: PathBuf,
}

impl Objects for Folder {
    fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn receive(&self, bytes: &mut dyn Read) -> Result<Received> {
        let received = receive(&self.root, bytes)?;
        let file = received.file.as_file();
        file.sync_all()
            .map_err(StoreError::at(received.file.path()))?;
        Ok(received)
    }

    /// By a link, which a name then takes at once: the bytes may be needed again.
    fn put(&self, name: &str, received: &Received) -> Result<()> {
        let path = self.place(name);
        let folder = path.parent().unwrap_or(&self.root);
        create_private(folder)?;
        let link = tempfile::Builder::new()
            .prefix(ARRIVING)
            .make_in(&self.root, |link| {
                linked_or_copied(received.file.path(), link)
            })
            .map_err(StoreError::at(&path))?;
        link.persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
        sync_folder(folder)?;
        sync_folder(&self.root)
    }

    fn size_of(&self, name: &str) -> Result<Option<u64>> {
        let path = self.place(name);
        match path.metadata() {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(&path, error)),
        }
    }

    fn open(&self, name: &str) -> Result<Option<Opened>> {
        let path = self.place(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(StoreError::at(&path))?,
        };
        let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
        Ok(Some((size_bytes, Box::new(file))))
    }

    fn remove(&self, name: &str) -> Result<()> {
        remove(&self.place(name))
    }

    fn remove_all(&self, prefix: &str) -> Result<()> {
        for listed in self.list(prefix)? {
            self.remove(&listed.name)?;
        }
        // An empty folder is in nobody's way.
        let _ = fs::remove_dir(self.place(prefix));
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut found = Vec::new();
        list_into(&self.place(prefix), prefix, &mut found)?;
        Ok(found)
    }

    fn sweep(&self) -> Result<()> {
        for path in entries(&self.root)? {
            if name_of(&path).starts_with(ARRIVING) && is_left(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Not everything that is mounted as a folder has links.
fn linked_or_copied(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            io::copy(&mut File::open(from)?, &mut File::create_new(to)?)?;
            File::open(to)?.sync_all()
        }
        linked => linked,
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
    modified.is_ok_and(is_old)
}
