//! Where a run writes: a named folder, which stays, or one that is removed at the end.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::BenchError;

pub(crate) struct RunFolder {
    pub(crate) path: PathBuf,
    _removed_at_the_end: Option<TempDir>,
}

impl RunFolder {
    pub(crate) fn new(named: Option<&Path>) -> Result<Self, BenchError> {
        let temporary = match named {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let path = named.or(temporary.as_ref().map(TempDir::path));
        Ok(Self {
            path: path.unwrap_or(Path::new(".")).to_owned(),
            _removed_at_the_end: temporary,
        })
    }
}

/// A folder that is removed at the end, in the named one.
pub(crate) fn scratch_in(named: Option<&Path>, prefix: &str) -> Result<TempDir, BenchError> {
    let mut builder = tempfile::Builder::new();
    let Some(named) = named else {
        return Ok(builder.tempdir()?);
    };
    std::fs::create_dir_all(named).map_err(BenchError::file(named))?;
    let folder = builder.prefix(prefix).tempdir_in(named);
    folder.map_err(BenchError::file(named))
}
