//! How much room there is on the disk.

use std::path::Path;

use crate::StoreError;

/// With less than this the index cannot be written.
const LEAST_BYTES: u64 = 16 * 1024 * 1024;

/// How many bytes this user may still write where the path is; none where the system does not say.
pub(crate) fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// What is told where an engine failed to write and did not say why.
pub(crate) fn unable(path: &Path, detail: &str) -> StoreError {
    match free(path) {
        Some(free) if free < LEAST_BYTES => StoreError::NoRoom {
            path: path.to_owned(),
            needed: LEAST_BYTES,
            free,
        },
        _ => StoreError::Engine {
            path: path.to_owned(),
            detail: detail.to_owned(),
        },
    }
}
