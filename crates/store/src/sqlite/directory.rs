//! The data directory: what lies where in it, who may open it, and how to tell it from a folder of another program.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use contract::id::hex;

use super::random;
use crate::disk_space;
use crate::{Result, StoreError};

/// The truth: catalog, records, history.
pub const DATABASE: &str = "records.db";
/// The derived search index. May be deleted at any time; it comes back by itself.
pub const INDEX: &str = "index";
/// The sentence model that the owner added.
pub const MODEL: &str = "model";
/// What the model made of the records; derived like the index.
pub const VECTORS: &str = "vectors";
/// Content-addressed files.
pub const BLOBS: &str = "blobs";
/// The programs and folders that are collected, and how far each has come.
pub const COLLECT: &str = "collect";
pub const SEALING_KEY: &str = "cursor.key";
/// How far the database had come, recorded outside it.
pub const MARK: &str = "commits.mark";
/// Disclosures that wait until the database can be written.
pub(crate) const PENDING: &str = "disclosures.pending";
/// Reserves some disk space; it has no content.
pub(crate) const RESERVE: &str = "reserve";
/// Where a running server answers its owner.
pub const OWNER_SOCKET: &str = "owner.sock";
pub(crate) const TIME: &str = "latest.time";
/// Credentials for other servers, which may be there before any record is.
const CREDENTIALS: &str = "clients";
/// Whether a file of [`COLLECT`] is one that cannot be made anew: a job, its state, or what a tap said of its streams. Logs and output can.
pub(crate) fn is_collected(name: &str) -> bool {
    let stem = [".job.json", ".state.json", ".streams.json"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    stem.is_some_and(|stem| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !stem.is_empty() && stem.bytes().all(is_plain)
    })
}

/// Says that the folder is a node's, and which: its records are in a database that several nodes share.
pub const NODE: &str = "node";
/// Held by the process that has the directory open; its text says which one.
pub const LOCK: &str = "pdpp.lock";
/// How the names of folders begin in which a backup is prepared.
const PREPARED: &str = ".backup-";
/// The same, of folders into which a model is copied.
pub(crate) const MODEL_PREPARED: &str = ".model-";

/// An opened data directory. While this value lives, no other process opens the directory.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Creates the directory if need be and takes it for `holder`.
    pub(crate) fn open(path: &Path, holder: &str) -> Result<Self> {
        create_private(path)?;
        refuse_node(path)?;
        refuse_foreign(path)?;
        let lock = take_lock(path, holder)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The same for a node, which keeps only what is derived in it.
    ///
    /// Also answers what tells this folder from any other.
    pub(crate) fn open_for_node(path: &Path, holder: &str, node: &str) -> Result<(Self, String)> {
        create_private(path)?;
        if path.join(DATABASE).exists() {
            return Err(StoreError::HoldsRecords {
                path: path.to_owned(),
            });
        }
        let mark = path.join(NODE);
        if !mark.exists() {
            refuse_foreign(path)?;
        }
        let lock = take_lock(path, holder)?;
        let found = fs::read_to_string(&mark).unwrap_or_default();
        let (known_as, id) = found.trim_end().split_once('\n').unwrap_or_default();
        let id = match id {
            "" => hex(random()?),
            id => id.to_owned(),
        };
        if known_as != node {
            write_durably(&mark, format!("{node}\n{id}\n").as_bytes())?;
        }
        let directory = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        Ok((directory, id))
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes backups that were being prepared when a process was killed: they are whole copies of the records.
    pub(crate) fn sweep(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREPARED) || name.starts_with(MODEL_PREPARED) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// The sealing key, made on first use.
    pub(crate) fn sealing_key(&self) -> Result<[u8; 32]> {
        let path = self.join(SEALING_KEY);
        match fs::read(&path) {
            Ok(bytes) => <[u8; 32]>::try_from(bytes).map_err(|bytes| StoreError::Corrupt {
                path,
                detail: format!("a sealing key has 32 bytes, this file {}", bytes.len()),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(|error| {
                    StoreError::engine(&path, format!("no randomness: {error}"))
                })?;
                write_durably(&path, &key)?;
                Ok(key)
            }
            Err(error) => Err(StoreError::io(path, error)),
        }
    }
}

/// Creates a folder and its parents, readable by the owner alone.
pub(crate) fn create_private(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(StoreError::Foreign {
            path: path.to_owned(),
            reason: "it is a file".to_owned(),
        }),
        Err(_) => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(StoreError::at(path)),
    }
}

/// Creates an empty file that is readable by the owner alone, unless there is one.
pub(crate) fn create_private_file(path: &Path) -> Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    made.map(drop).map_err(StoreError::at(path))
}

/// A node's folder holds no records, and must not get any.
fn refuse_node(path: &Path) -> Result<()> {
    match fs::read_to_string(path.join(NODE)) {
        Ok(text) => Err(StoreError::OfNode {
            path: path.to_owned(),
            node: text.lines().next().unwrap_or_default().to_owned(),
        }),
        Err(_) => Ok(()),
    }
}

/// A folder that has files but no database of ours is not taken over.
fn refuse_foreign(path: &Path) -> Result<()> {
    if path.join(DATABASE).exists() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(StoreError::at(path))? {
        let name = entry.map_err(StoreError::at(path))?.file_name();
        let name = name.to_string_lossy();
        // One that has only its room is made before anything waits in it.
        let waits = name == PENDING && !is_blank(&path.join(PENDING));
        if waits || [INDEX, BLOBS, MARK].contains(&name.as_ref()) {
            return Err(StoreError::corrupt(
                path.join(DATABASE),
                format!("it is missing, although {name} is there"),
            ));
        }
        if ![LOCK, SEALING_KEY, TIME, CREDENTIALS, RESERVE, PENDING].contains(&name.as_ref()) {
            return Err(StoreError::Foreign {
                path: path.to_owned(),
                reason: format!("it holds '{name}' and no {DATABASE}"),
            });
        }
    }
    Ok(())
}

/// Whether a file begins with nothing.
fn is_blank(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_err() || start == [0; 4])
}

fn take_lock(directory: &Path, holder: &str) -> Result<File> {
    let path = directory.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StoreError::at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.read_to_string(&mut text);
            let holder = match (read, text.trim()) {
                (Ok(_), named) if !named.is_empty() => named.to_owned(),
                _ => "another process".to_owned(),
            };
            return Err(StoreError::Held {
                path: directory.to_owned(),
                holder,
            });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io(path, error)),
    }
    // Advisory only: the lock is what counts, the text says which process the next opener must wait for.
    let text = format!("{holder} (process {})\n", std::process::id());
    // On a full disk there may be no room for it.
    let written = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.write_all(text.as_bytes()))
        .and_then(|()| file.set_len(text.len() as u64));
    drop(written);
    Ok(file)
}

/// A folder to prepare a backup of this size in, removed with the value; inside `within`, if it can be created there,
/// else inside the store's own.
pub(crate) fn prepare_copy(
    own: &Path,
    within: Option<&Path>,
    bytes: u64,
) -> Result<tempfile::TempDir> {
    let make = |folder: &Path| tempfile::Builder::new().prefix(PREPARED).tempdir_in(folder);
    let require = |folder: &Path| match disk_space::require(folder, bytes) {
        Err(StoreError::NoRoom { path, needed, free }) => {
            Err(StoreError::NoRoomForCopy { path, needed, free })
        }
        there_is => there_is,
    };
    if let Some(folder) = within {
        match make(folder) {
            Ok(prepared) => {
                require(folder)?;
                return Ok(prepared);
            }
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                require(folder)?;
                return Err(StoreError::io(folder, error));
            }
            // It may belong to somebody else.
            Err(_) => {}
        }
    }
    require(own)?;
    make(own).map_err(StoreError::at(own))
}

/// Writes a whole file so that after a crash it is there entirely or not at all.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(StoreError::at(folder))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(StoreError::at(path))?;
    file.persist(path)
        .map_err(|error| StoreError::io(path, error.error))?;
    sync_folder(folder)
}

/// Makes a rename or creation inside a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::at(folder))
}
