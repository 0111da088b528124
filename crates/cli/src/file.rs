//! Documents of the user: read whole, from a file or from stdin, and written whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{CommandResult, Failure};

/// How a file is called until it is whole. Whoever finds one sees what it is.
const PARTIAL_BEGINS: &str = ".pdpp-";
const PARTIAL_ENDS: &str = ".partial";
/// Symbolic links that are followed from one to the next.
const MOST_LINKS: usize = 40;

/// The text of a file, without a byte order mark; `-` is stdin.
pub(crate) fn read(path: &Path) -> CommandResult<String> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let mut text =
        String::from_utf8(read.map_err(Failure::file_error(path))?).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::new(format!(
                "{}: it is not UTF-8 (at byte {at})",
                path.display()
            ))
            .hint("save it as UTF-8 and try again")
        })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// The folder a file is to be made in; it must be there.
fn parent_folder(file: &Path) -> CommandResult<&Path> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = format!("there is no folder {} to write into", folder.display());
    Err(Failure::new(message).hint("make it first, or name another"))
}

/// Where something is written that the user named.
pub(crate) enum Destination {
    /// A file of its own, which is new or replaces another.
    File(Partial),
    /// A pipe, a device or whatever else is no file: it stays what it is and takes the bytes as they come.
    Stream(File),
}

impl Destination {
    /// Opens the destination of that name. Symbolic links are followed.
    pub(crate) fn open(file: &Path) -> CommandResult<Self> {
        match fs::metadata(file) {
            Ok(found) if !found.is_file() => {
                let opened = OpenOptions::new().write(true).open(file);
                Ok(Self::Stream(opened.map_err(Failure::file_error(file))?))
            }
            _ => Ok(Self::File(Partial::create(&follow_links(file)?)?)),
        }
    }

    pub(crate) fn file(&self) -> &File {
        match self {
            Self::File(partial) => partial.file(),
            Self::Stream(file) => file,
        }
    }
}

/// Where a chain of links ends, which need not exist.
fn follow_links(file: &Path) -> CommandResult<PathBuf> {
    let mut path = file.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else {
            return Ok(path);
        };
        // A relative link begins where it stands.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    let message = format!("{}: its links lead to no file", file.display());
    Err(Failure::new(message))
}

/// A file while it is written: it has a temporary name beside its path and is removed unless it is completed. What a killed
/// process left behind is removed by the next one.
pub(crate) struct Partial {
    file: NamedTempFile,
    path: PathBuf,
    folder: PathBuf,
}

impl Partial {
    pub(crate) fn create(path: &Path) -> CommandResult<Self> {
        let folder = parent_folder(path)?;
        remove_abandoned(folder);
        loop {
            let file = tempfile::Builder::new()
                .prefix(PARTIAL_BEGINS)
                .suffix(PARTIAL_ENDS)
                .tempfile_in(folder)
                .map_err(Failure::file_error(folder))?;
            // The lock keeps other processes from removing it. Where file locks are not supported, nothing is removed at all.
            let held = file.as_file().try_lock();
            let is_lost = matches!(held, Err(TryLockError::WouldBlock)) || !file.path().exists();
            // Another process took it for abandoned in between and removes it.
            if !is_lost {
                let (path, folder) = (path.to_owned(), folder.to_owned());
                return Ok(Self { file, path, folder });
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Moves the file to its path. A file that is there is replaced; its owner and permissions are kept.
    pub(crate) fn replace(self) -> CommandResult {
        let Self { file, path, .. } = self;
        if let Ok(old) = fs::metadata(&path) {
            // Only the superuser can give a file away; for everybody else it is theirs already, or becomes it.
            let _ = fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
            let kept = file.as_file().set_permissions(old.permissions());
            kept.map_err(Failure::file_error(&path))?;
        }
        let moved = file.persist(&path);
        moved.map_err(|error| Failure::file_error(&path)(error.error))?;
        Ok(())
    }

    /// Syncs the file and moves it to its path, unless something is there, which stays.
    pub(crate) fn persist_new(self, taken: impl FnOnce() -> Failure) -> CommandResult<u64> {
        let Self { file, path, folder } = self;
        file.as_file()
            .sync_all()
            .map_err(Failure::file_error(&path))?;
        let bytes = file
            .as_file()
            .metadata()
            .map_err(Failure::file_error(&path))?;
        let moved = file.persist_noclobber(&path);
        moved.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => Failure::file_error(&path)(error.error),
        })?;
        let folder_synced = File::open(&folder).and_then(|folder| folder.sync_all());
        folder_synced.map_err(Failure::file_error(&folder))?;
        Ok(bytes.len())
    }
}

/// Removes partial files whose writer has ended. One that cannot be removed only takes up room.
fn remove_abandoned(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = name.starts_with(PARTIAL_BEGINS) && name.ends_with(PARTIAL_ENDS);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else {
            continue;
        };
        match file.try_lock() {
            Ok(()) => drop(fs::remove_file(entry.path())),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}
