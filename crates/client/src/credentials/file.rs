//! Credential files: read and replaced as a whole, readable by this user only.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use serde_json::{Map, Value};

const MOST_BYTES: u64 = 1024 * 1024;

/// Polling interval of the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// The members of a file; `None` if there is no file. Errors repeat none of its content.
pub(crate) fn read(path: &Path) -> Result<Option<Map<String, Value>>, ReadError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, &format!("cannot be read: {error}"))),
    };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unusable(path, &format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unusable(path, "is too large to be a credential"));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|_| unusable(path, "is not a JSON object"))
}

pub(crate) fn write(path: &Path, members: &Map<String, Value>) -> Result<(), ReadError> {
    let failed = |error: io::Error| unwritable(path, &error);
    prepare(path)?;
    let text = serde_json::to_string_pretty(members).map_err(|error| failed(error.into()))?;
    // Created for this user only, under a temporary name.
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.write_all(b"\n").map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Locks a file against other processes that would renew the same credential. On file systems without locks, rereading
/// the file still shows who was first.
pub(crate) async fn lock(path: &Path, patience: Duration) -> Result<File, ReadError> {
    let beside = beside(path);
    let failed = |error: io::Error| {
        let message = format!(
            "the credential in {} cannot be renewed, because its folder cannot be written: {error}",
            path.display()
        );
        ReadError::new(ErrorCode::CredentialExpired, message)
            .with_hint("make the folder writable for this user, then try again")
    };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&beside).map_err(failed)?;
    let mut waited = Duration::ZERO;
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if waited >= patience {
            let message = format!("{} is held by another process", beside.display());
            return Err(ReadError::new(ErrorCode::RsTimeout, message)
                .with_hint("try again when the other process has renewed the credential"));
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
    Ok(file)
}

/// A warning if other users can read the file.
pub(crate) fn exposure(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).ok()?);
        (mode & 0o077 != 0).then(|| {
            format!(
                "{0} is open to other users (mode {1:03o}); run `chmod 600 {0}`",
                path.display(),
                mode & 0o777
            )
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Creates the folder of a file, for this user only, with a `.gitignore`.
pub(crate) fn prepare(path: &Path) -> Result<(), ReadError> {
    prepare_folder(folder_of(path)).map_err(|error| unwritable(path, &error))
}

fn prepare_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    #[cfg(unix)]
    {
        let only_user = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(folder, only_user)?;
    }
    let ignore = folder.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    fs::write(ignore, "*\n")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("json.lock")
}

fn unwritable(path: &Path, error: &io::Error) -> ReadError {
    unusable(path, &format!("cannot be written: {error}"))
}

fn unusable(path: &Path, what: &str) -> ReadError {
    let message = format!("the credential file {} {what}", path.display());
    ReadError::new(ErrorCode::CredentialInvalid, message)
        .with_hint("make it usable, or remove it and run `pdpp connect` with the server's address")
}
