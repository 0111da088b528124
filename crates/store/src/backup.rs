//! Everything in one file.

use std::io::Write;

use crate::Result;

/// The port for backups.
pub trait Backup {
    /// Writes a backup as a tar archive. Writers may go on meanwhile; it shows the store as it was when it began.
    fn backup(&self, out: &mut dyn Write) -> Result<()>;
}
