//! Documents of the user: read whole, from a file or from stdin, and written whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};

/// How a file is called until it is whole. Whoever finds one sees what it is.
const PARTIAL_BEGINS: &str = ".pdpp-";
const PARTIAL_ENDS: &str = ".partial";
/// Links that are followed from one to the next.
const MOST_LINKS: usize = 40;

/// The text of a file, without a byte order mark; `-` is stdin.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let mut text = String::from_utf8(read.map_err(Failure::at(path))?).map_err(|error| {
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
fn folder_of(file: &Path) -> Outcome<&Path> {
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
    /// A file of its own, which is new or takes the place of another.
    Whole(Partial),
    /// A pipe, a device or whatever else is no file: it stays what it is and takes the bytes as they come.
    Passing(File),
}

impl Destination {
    /// The file of that name, or what stands there. A link leads to what it names.
    pub(crate) fn of(file: &Path) -> Outcome<Self> {
        match fs::metadata(file) {
            Ok(found) if !found.is_file() => {
                let opened = OpenOptions::new().write(true).open(file);
                Ok(Self::Passing(opened.map_err(Failure::at(file))?))
            }
            _ => Ok(Self::Whole(Partial::of(&followed(file)?)?)),
        }
    }

    /// What takes the bytes.
    pub(crate) fn file(&self) -> &File {
        match self {
            Self::Whole(partial) => partial.file(),
            Self::Passing(file) => file,
        }
    }
}

/// Where a chain of links ends, which need not exist.
fn followed(file: &Path) -> Outcome<PathBuf> {
    let mut place = file.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&place) else {
            return Ok(place);
        };
        // A relative link begins where it stands.
        place = place.parent().unwrap_or(Path::new("")).join(next);
    }
    let message = format!("{}: its links lead to no file", file.display());
    Err(Failure::new(message))
}

/// A file that is not whole yet: beside its place under another name, gone if nothing comes of it. What a process that
/// was killed has left is cleared away by the next one.
pub(crate) struct Partial {
    file: NamedTempFile,
    place: PathBuf,
    folder: PathBuf,
}

impl Partial {
    /// A new file for that place.
    pub(crate) fn of(place: &Path) -> Outcome<Self> {
        let folder = folder_of(place)?;
        clear(folder);
        loop {
            let file = tempfile::Builder::new()
                .prefix(PARTIAL_BEGINS)
                .suffix(PARTIAL_ENDS)
                .tempfile_in(folder)
                .map_err(Failure::at(folder))?;
            // Held, it is nobody's to clear away. Where locks do not exist nobody gets one, and nothing is cleared.
            let held = file.as_file().try_lock();
            let is_lost = matches!(held, Err(TryLockError::WouldBlock)) || !file.path().exists();
            // Another process came between, took it for left behind and removes it.
            if !is_lost {
                let (place, folder) = (place.to_owned(), folder.to_owned());
                return Ok(Self {
                    file,
                    place,
                    folder,
                });
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Takes its place, also where a file is. The rights of that one go on.
    pub(crate) fn replace(self) -> Outcome {
        let Self { file, place, .. } = self;
        if let Ok(old) = fs::metadata(&place) {
            // Only the superuser can give a file away; for everybody else it is theirs already, or becomes it.
            let _ = fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
            let kept = file.as_file().set_permissions(old.permissions());
            kept.map_err(Failure::at(&place))?;
        }
        let moved = file.persist(&place);
        moved.map_err(|error| Failure::at(&place)(error.error))?;
        Ok(())
    }

    /// Takes its place for good, unless something is there, which stays.
    pub(crate) fn settle(self, taken: impl FnOnce() -> Failure) -> Outcome<u64> {
        let Self {
            file,
            place,
            folder,
        } = self;
        file.as_file().sync_all().map_err(Failure::at(&place))?;
        let bytes = file.as_file().metadata().map_err(Failure::at(&place))?;
        let moved = file.persist_noclobber(&place);
        moved.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => Failure::at(&place)(error.error),
        })?;
        let folder_synced = File::open(&folder).and_then(|folder| folder.sync_all());
        folder_synced.map_err(Failure::at(&folder))?;
        Ok(bytes.len())
    }
}

/// Removes the beginnings of files that nobody writes any more. What cannot be removed does no harm but to take up room.
fn clear(folder: &Path) {
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
