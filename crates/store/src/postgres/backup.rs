//! Backups: the database has its own, which know its log and its replicas.

use std::io::Write;
use std::path::Path;

use contract::id::BlobId;

use super::PostgresStore;
use crate::{Backup, Blobs as _, Result, StoreError};

impl Backup for PostgresStore {
    fn missing_blobs(&self) -> Result<Vec<BlobId>> {
        let rows = self.pool.read(|tx| {
            let sql = "SELECT id FROM blobs WHERE owner_id = $1 AND state = 'kept' ORDER BY id";
            tx.query(sql, &[&self.owner])
        })?;
        let mut missing = Vec::new();
        for row in &rows {
            let id: BlobId = row.parse(0)?;
            if self.open_blob(&id).is_err() {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    fn backup_beside(
        &self,
        _: &mut dyn Write,
        _: &[BlobId],
        _: Option<&Path>,
    ) -> Result<Vec<String>> {
        Err(StoreError::BackedUpElsewhere {
            place: self.place().to_owned(),
        })
    }
}
