//! Everything in one file.

use std::io::Write;
use std::path::Path;

use contract::id::BlobId;

use crate::Result;

pub trait Backup {
    /// The blobs that records refer to and whose files are missing or cannot be opened.
    fn missing_blobs(&self) -> Result<Vec<BlobId>>;

    /// Writes a backup as a tar archive. Writers may go on meanwhile; it shows the store as it was when it began. Blobs that
    /// are known to be `missing` are left out; any other that cannot be had breaks it off. What is damaged is saved as it is,
    /// and told.
    fn backup(&self, out: &mut dyn Write, missing: &[BlobId]) -> Result<Vec<String>> {
        self.backup_beside(out, missing, None)
    }

    /// The same, with the temporary copy of the records in this folder, if it can be created there: there is room where the
    /// backup goes, and not always where the records are.
    fn backup_beside(
        &self,
        out: &mut dyn Write,
        missing: &[BlobId],
        folder: Option<&Path>,
    ) -> Result<Vec<String>>;
}
