//! Restores a backup into a data directory: unpacked beside its target, inspected, and only then moved there.
//!
//! A backup may come from anywhere, so nothing in it is trusted: only the members that a backup of ours has are taken, by
//! their names, and each must be an ordinary file.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions as FileOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use contract::time::Instant;
use tar::EntryType;
use tempfile::TempDir;
use thiserror::Error;

use super::directory::{
    BLOBS, COLLECT, DATABASE, LOCK, SEALING_KEY, create_private, is_collected, sync_folder,
};
use super::{EmbeddedStore, OpenOptions};
use crate::StoreError;
use crate::blobs::filled;
use crate::inspection::{Damage, Depth, Inspect as _, Inspection};

/// How the names of folders begin in which something is being restored.
const RESTORING: &str = ".restoring-";
/// The most bytes of extended headers before a member; nothing of them is needed.
const MOST_ASIDE: u64 = 64 * 1024;
const KEY_BYTES: u64 = 32;

pub struct Restore<'a> {
    /// Where: a folder that is empty, or not there yet.
    pub to: &'a Path,
    /// How the folder is opened to look through it.
    pub options: OpenOptions,
    /// Whether grants, tokens, sessions and pending requests are ended.
    pub without_grants: bool,
    /// Whether damaged content of the backup is restored as it is.
    pub accept_damage: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub inspection: Inspection,
    pub live_grants: u64,
    pub ended_grants: u64,
}

/// Why a backup was not restored. Nothing is left at the target.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The folder is in use.
    #[error("{} is not empty: it holds '{holds}'", path.display())]
    NotEmpty { path: PathBuf, holds: String },
    /// The file cannot be read to its end.
    #[error("the backup cannot be read: {0}")]
    Unreadable(io::Error),
    /// The file is something else, or was tampered with.
    #[error("this is no backup of pdpp: {0}")]
    NotABackup(String),
    #[error("the backup is damaged")]
    Damaged(Vec<Damage>),
    /// The data directory cannot be made or opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Result<T, E = RestoreError> = std::result::Result<T, E>;

impl Restore<'_> {
    /// Restores a backup, which is a tar archive.
    ///
    /// # Errors
    ///
    /// When the folder is not empty, or the archive is not a whole backup.
    pub fn run(&self, archive: impl Read) -> Result<Restored> {
        let is_there = refuse_filled(self.to)?;
        let parent = match self.to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // A folder that exists may be a mount point, and cannot be replaced then.
        let around = if is_there { self.to } else { parent };
        create_private(around)?;
        let staging = tempfile::Builder::new()
            .prefix(RESTORING)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(around)
            .map_err(StoreError::at(around))?;
        unpack(archive, staging.path())?;
        let restored = self.look_through(staging.path())?;
        if is_there {
            move_into(staging.path(), self.to)?;
        } else {
            settle(staging, self.to)?;
        }
        sync_folder(around)?;
        Ok(restored)
    }

    /// Inspects what was unpacked, and ends the grants that should not be live.
    fn look_through(&self, folder: &Path) -> Result<Restored> {
        let store = EmbeddedStore::open(folder, self.options.clone()).map_err(named(folder))?;
        let inspection = store.inspect(Depth::Thorough).map_err(named(folder))?;
        let damages = [&inspection.damaged_records, &inspection.damaged_blobs];
        let damages: Vec<Damage> = damages.into_iter().flatten().map(within(folder)).collect();
        if !damages.is_empty() && !self.accept_damage {
            return Err(RestoreError::Damaged(damages));
        }
        let now = self.options.clock.now();
        let ended_grants = if self.without_grants {
            store.end_all_grants(now)?
        } else {
            0
        };
        let live_grants = store.live_grants(now)?;
        Ok(Restored {
            inspection: Inspection {
                damaged_records: inspection
                    .damaged_records
                    .iter()
                    .map(within(folder))
                    .collect(),
                damaged_blobs: inspection
                    .damaged_blobs
                    .iter()
                    .map(within(folder))
                    .collect(),
                ..inspection
            },
            live_grants,
            ended_grants,
        })
    }
}

/// The damage, by the name in the backup: the folder it was found in will be gone.
fn within(folder: &Path) -> impl Fn(&Damage) -> Damage + '_ {
    move |damage| Damage {
        path: damage
            .path
            .strip_prefix(folder)
            .unwrap_or(&damage.path)
            .to_owned(),
        detail: damage.detail.clone(),
    }
}

/// A database that cannot be opened means a damaged backup.
fn named(folder: &Path) -> impl Fn(StoreError) -> RestoreError + '_ {
    move |error| match error {
        StoreError::Corrupt { path, detail } => {
            RestoreError::Damaged(vec![within(folder)(&Damage { path, detail })])
        }
        StoreError::Foreign { reason, .. } => RestoreError::NotABackup(reason),
        other => other.into(),
    }
}

/// Whether the folder exists; it must be empty then. The remains of a restore that was killed are removed.
fn refuse_filled(path: &Path) -> Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io(path, error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(StoreError::at(path))?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort_unstable();
    if let Some(holds) = names.iter().find(|name| !name.starts_with(RESTORING)) {
        return Err(RestoreError::NotEmpty {
            path: path.to_owned(),
            holds: holds.clone(),
        });
    }
    for name in names {
        fs::remove_dir_all(path.join(name)).map_err(StoreError::at(path))?;
    }
    Ok(true)
}

fn unpack(archive: impl Read, folder: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(archive);
    let mut seen = HashSet::new();
    // Raw entries: extensions that name other paths or sizes are not followed.
    let entries = archive.entries().map_err(RestoreError::Unreadable)?;
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(RestoreError::Unreadable)?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XHeader | EntryType::XGlobalHeader)
            && entry.size() <= MOST_ASIDE
        {
            continue;
        }
        let name = entry.path_bytes().into_owned();
        let shown = String::from_utf8_lossy(&name).into_owned();
        let refuse = |why: &str| RestoreError::NotABackup(format!("its member {shown:?} {why}"));
        let Some(member) = Member::from_name(&shown) else {
            return Err(refuse("is none that a backup has"));
        };
        match (kind, &member) {
            (EntryType::Directory, Member::Folder(path)) => create_private(&folder.join(path))?,
            (EntryType::Regular, Member::File(path)) => {
                if !seen.insert(path.clone()) {
                    return Err(refuse("is there twice"));
                }
                if path.as_os_str() == SEALING_KEY && entry.size() != KEY_BYTES {
                    return Err(refuse("has not the size of a key"));
                }
                let size = entry.size();
                write_file(&folder.join(path), &mut entry, size)?;
            }
            (EntryType::Directory | EntryType::Regular, _) => {
                return Err(refuse("is not of the kind it should be"));
            }
            _ => return Err(refuse("is a link or something else that is no file")),
        }
    }
    if !seen.contains(Path::new(DATABASE)) {
        return Err(RestoreError::NotABackup(format!("it has no {DATABASE}")));
    }
    Ok(())
}

enum Member {
    Folder(PathBuf),
    File(PathBuf),
}

impl Member {
    /// By its name, with or without `./` before it.
    fn from_name(name: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::CurDir => {}
                _ => return None,
            }
        }
        let is_hex = |text: &str, length| {
            let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            text.len() == length && text.bytes().all(plain)
        };
        let path: PathBuf = parts.iter().collect();
        match parts.as_slice() {
            [] | [BLOBS | COLLECT] => Some(Self::Folder(path)),
            [COLLECT, file] if is_collected(file) => Some(Self::File(path)),
            [DATABASE | SEALING_KEY] => Some(Self::File(path)),
            [BLOBS, folder] if is_hex(folder, 2) => Some(Self::Folder(path)),
            [BLOBS, folder, file] if is_hex(folder, 2) && is_hex(file, 62) => {
                Some(Self::File(path))
            }
            _ => None,
        }
    }
}

fn write_file(path: &Path, content: &mut impl Read, size: u64) -> Result<()> {
    if let Some(folder) = path.parent() {
        create_private(folder)?;
    }
    let mut file = FileOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::at(path))?;
    let mut piece = vec![0; 256 * 1024];
    let mut left = size;
    while left > 0 {
        let read = match content.read(&mut piece) {
            Ok(0) => {
                let short = io::Error::new(ErrorKind::UnexpectedEof, "it ends too early");
                return Err(RestoreError::Unreadable(short));
            }
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(RestoreError::Unreadable(error)),
        };
        let piece = filled(&piece, read).map_err(RestoreError::Unreadable)?;
        file.write_all(piece).map_err(StoreError::at(path))?;
        left = left.saturating_sub(read as u64);
    }
    Ok(file.sync_all().map_err(StoreError::at(path))?)
}

/// Gives the folder its name. If a folder of that name exists by now, it must be empty.
fn settle(staging: TempDir, to: &Path) -> Result<()> {
    remove_lock(staging.path())?;
    match fs::rename(staging.path(), to) {
        Ok(()) => {
            // It was moved away from its temporary name.
            let _ = staging.keep();
            Ok(())
        }
        Err(_) if refuse_filled(to)? => move_into(staging.path(), to),
        Err(error) => Err(StoreError::io(to, error).into()),
    }
}

/// Moves the content of a folder into another, the database last: without it nothing takes the folder for complete.
fn move_into(from: &Path, to: &Path) -> Result<()> {
    remove_lock(from)?;
    let entries = fs::read_dir(from).map_err(StoreError::at(from))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(StoreError::at(from))?.file_name());
    }
    names.sort_by_key(|name| name == DATABASE);
    for (at, name) in names.iter().enumerate() {
        if let Err(error) = fs::rename(from.join(name), to.join(name)) {
            for moved in names.iter().take(at) {
                let _ = fs::rename(to.join(moved), from.join(moved));
            }
            return Err(StoreError::io(to.join(name), error).into());
        }
    }
    Ok(sync_folder(to)?)
}

/// The next process that opens the folder creates a lock of its own.
fn remove_lock(folder: &Path) -> Result<()> {
    let lock = folder.join(LOCK);
    match fs::remove_file(&lock) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::io(lock, error).into())
        }
        _ => Ok(File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(StoreError::at(folder))?),
    }
}

/// A grant that lives, as far as the row tells.
const LIVE: &str = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1)
    AND (redeem_by IS NULL OR redeem_by > ?1)";

impl EmbeddedStore {
    fn live_grants(&self, now: Instant) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM grants WHERE {LIVE}");
        self.database
            .read(|connection| connection.query_row(&sql, [now.0], |row| row.get(0)))
    }

    /// Ends everything that gives access: grants, tokens including the owner's, sessions, and pending requests. The owner's
    /// password and registered clients stay.
    fn end_all_grants(&self, now: Instant) -> Result<u64, StoreError> {
        self.database.transact(|transaction| {
                            let ended = transaction.query_row(
                    &format!("SELECT count(*) FROM grants WHERE {LIVE}"),
                    [now.0],
                    |row| row.get(0),
                )?;
                for table in ["grants", "packages"] {
                    transaction.execute(
                        &format!(
                            "UPDATE {table} SET revoked_at = ?1, revoked_reason = 'owner' WHERE revoked_at IS NULL"
                        ),
                        [now.0],
                    )?;
                }
                transaction.execute("DELETE FROM tokens", [])?;
                transaction.execute(
                    "DELETE FROM registry WHERE kind NOT IN ('client', 'password')",
                    [],
                )?;
                Ok(ended)
        })
    }
}
