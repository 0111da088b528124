//! What an error of the engine means: damage, or a disk that is full or fails.

use std::io::ErrorKind;
use std::path::Path;

use tantivy::TantivyError;
use tantivy::directory::error::{OpenDirectoryError, OpenReadError, OpenWriteError};

use crate::StoreError;
use crate::disk_space;

/// The file that an error is about, and the system's error.
fn cause(error: &TantivyError) -> Option<(&Path, &std::io::Error)> {
    match error {
        TantivyError::IoError(cause) => Some((Path::new(""), cause)),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath })
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, filepath }) => {
            Some((filepath, io_error))
        }
        TantivyError::OpenDirectoryError(OpenDirectoryError::IoError {
            io_error,
            directory_path,
        }) => Some((directory_path, io_error)),
        _ => None,
    }
}

/// Turns an engine error into ours, naming the folder. Only content that cannot be read as it was written is damage: a disk
/// that is full or fails is reported as such, and nothing is thrown away for it.
pub(crate) fn failed(folder: &Path) -> impl Fn(TantivyError) -> StoreError + '_ {
    move |error| {
        let damaged = |detail: String| StoreError::IndexDamaged {
            path: folder.to_owned(),
            detail,
        };
        let Some((path, cause)) = cause(&error) else {
            return match error {
                // Background writers do not say why they ended.
                TantivyError::ErrorInThread(_)
                | TantivyError::SystemError(_)
                | TantivyError::Poisoned
                | TantivyError::LockFailure(..) => disk_space::unable(folder, &error.to_string()),
                other => damaged(other.to_string()),
            };
        };
        match cause.raw_os_error() {
            // Without a system error, the engine found the fault in what it read.
            None => match StoreError::io(folder.join(path), cause.kind().into()) {
                StoreError::Io { .. } => damaged(cause.to_string()),
                full_or_read_only => full_or_read_only,
            },
            Some(_) if cause.kind() == ErrorKind::NotFound => damaged(cause.to_string()),
            Some(code) => {
                StoreError::io(folder.join(path), std::io::Error::from_raw_os_error(code))
            }
        }
    }
}
