//! Everything in one file.

use std::io::Write;
use std::path::Path;

use contract::id::BlobId;

use crate::Result;

/// The port for backups.
pub trait Backup {
    /// The blobs that records refer to and whose files are missing or cannot be opened.
    fn missing_blobs(&self) -> Result<Vec<BlobId>>;

    /// Writes a backup as a tar archive. Writers may go on meanwhile; it shows the store as it was when it began. Blobs that
    /// are known to be `missing` are left out; any other that cannot be had breaks it off.
    fn backup(&self, out: &mut dyn Write, missing: &[BlobId]) -> Result<()> {
        self.backup_beside(out, missing, None)
    }

    /// The same, where a copy of the records that is needed meanwhile is made in this folder, if it can be: there is room for
    /// a backup where it goes, and not always where the records are.
    fn backup_beside(
        &self,
        out: &mut dyn Write,
        missing: &[BlobId],
        folder: Option<&Path>,
    ) -> Result<()>;
}
