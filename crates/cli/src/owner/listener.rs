//! The owner's socket: a file in the data directory that only the owner can open. The process that holds the directory
//! listens on it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::failure::{CommandResult, Failure};

/// The file of the owner's socket, which lives as long as this value.
pub(crate) struct OwnerSocket(PathBuf);

impl OwnerSocket {
    /// Makes the socket, in place of one that a killed server left behind: whoever holds the data directory may do so.
    pub(crate) fn bind(path: &Path) -> CommandResult<(UnixListener, Self)> {
        Self::bind_if_room(path)?.map_err(Failure::file_error(path))
    }

    /// The same; on a full disk, where it is only a matter of time, the error by itself.
    pub(crate) fn bind_if_room(path: &Path) -> CommandResult<io::Result<(UnixListener, Self)>> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::file_error(path)(error));
            }
            _ => {}
        }
        let listener = match bind_private(path) {
            Err(error) if is_full(&error) => return Ok(Err(error)),
            bound => bound,
        };
        let listener = listener.map_err(|error| {
            let too_long = error.kind() == io::ErrorKind::InvalidInput;
            let failure = Failure::file_error(path)(error);
            if too_long {
                failure.hint("name a folder with a shorter path with --data-dir")
            } else {
                failure
            }
        })?;
        Ok(Ok((listener, Self(path.to_owned()))))
    }
}

/// A socket gets its permissions only after it can be connected to, so it is made in a private folder and then moved.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // With these names the path is no longer than that of the socket, and the system allows little.
    let private = match tempfile::Builder::new().prefix(".o").tempdir_in(folder) {
        Ok(private) => private,
        // Another folder takes room, a socket alone does not; and in a closed folder nobody else finds it.
        Err(error) if is_full(&error) && !is_open(folder) => {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            return Ok(listener);
        }
        Err(error) => return Err(error),
    };
    let first = private.path().join("s");
    let listener = UnixListener::bind(&first)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&first, Permissions::from_mode(0o600))?;
    fs::rename(&first, path)?;
    Ok(listener)
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whether others may enter a folder.
fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).map_or(true, |found| found.permissions().mode() & 0o077 != 0)
}

impl Drop for OwnerSocket {
    fn drop(&mut self) {
        // The next server replaces what cannot be removed now.
        let _ = fs::remove_file(&self.0);
    }
}
