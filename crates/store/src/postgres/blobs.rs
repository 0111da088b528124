//! Blobs: content-addressed bytes that all nodes share, with their bindings in the database.
//!
//! Bytes get their name before anything is locked, however long that takes. They are bound, and lose their name, only while the
//! blob's row is locked, so nodes cannot cross each other: a binding never stands without its bytes. What is not bound any more is
//! first marked, and its bytes go before its row does.

use std::io::{self, Read};
use std::time::{Duration, Instant as Moment};

use contract::id::BlobId;
use contract::key::RecordKey;

use super::PostgresStore;
use super::objects::Opened;
use super::pool::Tx;
use crate::blobs::{Blob, Blobs, Received};
use crate::catalog::StreamRef;
use crate::sqlite::blobs::Verified;
use crate::{Result, StoreError};

/// How many blobs are removed in one look.
const AT_ONCE: i64 = 500;
/// How many blobs without a row are marked in one statement.
const MARKED_AT_ONCE: usize = 10_000;
/// How often bytes are named again that were swept before they were bound.
const ATTEMPTS: u32 = 3;

/// The bindings of a row of `blobs`.
const BINDING: &str =
    "SELECT 1 FROM blob_bindings b WHERE b.owner_id = blobs.owner_id AND b.blob_id = blobs.id";

impl Blobs for PostgresStore {
    fn put_blob(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        mime_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<Blob> {
        // Refused before anything is received, and checked again when it is bound.
        self.sources.current(&self.pool)?.stream(stream)?;
        let received = self.objects.receive(bytes)?;
        for _ in 0..ATTEMPTS {
            self.name(&received)?;
            let bind = |tx: &Tx<'_>| self.bind(tx, stream, key, (&received, mime_type));
            match self.pool.transact_if(bind) {
                Ok(Some(blob)) => return Ok(blob),
                Ok(None) => {}
                Err(refused) => {
                    // Unless others refer to them, the bytes would lie there until a purge finds them.
                    let _ = self.discard(&received.id);
                    return Err(refused);
                }
            }
        }
        Err(StoreError::Contended {
            place: self.place().to_owned(),
            detail: format!("the bytes of {} were removed while they came", received.id),
        })
    }

    fn blob(&self, stream: &StreamRef, id: &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>> {
        let stream_id = self.sources.current(&self.pool)?.stream(stream)?.id;
        let rows = self.pool.query(
            "SELECT key, size_bytes, mime_type FROM blob_bindings b
                 JOIN blobs ON blobs.owner_id = b.owner_id AND blobs.id = b.blob_id
                 WHERE b.owner_id = $1 AND b.blob_id = $2 AND b.stream_id = $3 ORDER BY key",
            &[&self.owner, &id.as_str(), &stream_id],
        )?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let blob = Blob {
            id: id.clone(),
            size_bytes: first.get::<i64>(1)?.cast_unsigned(),
            mime_type: first.get(2)?,
        };
        let keys = rows
            .iter()
            .map(|row| Ok(RecordKey::from_ordering_form(row.get(0)?)))
            .collect::<Result<_>>()?;
        Ok(Some((blob, keys)))
    }

    fn open_blob(&self, id: &BlobId) -> Result<Box<dyn Read + Send>> {
        let (size_bytes, bytes) = self.open_unchecked(id)?;
        let path = self.objects.place(&object_name(id));
        Ok(Box::new(Verified::new(bytes, &path, id, size_bytes)))
    }
}

/// Two levels keep each folder small.
fn object_name(id: &BlobId) -> String {
    let (folder, name) = id.hex().split_at(2);
    format!("{folder}/{name}")
}

impl PostgresStore {
    /// A blob's size and its bytes as they are, damaged or not.
    pub(super) fn open_unchecked(&self, id: &BlobId) -> Result<Opened> {
        let opened = self.objects.open(&object_name(id))?;
        opened.ok_or_else(|| StoreError::UnknownBlob(id.to_string()))
    }

    /// The id of a stream, which cannot be removed until the transaction ends.
    fn lock_stream(&self, tx: &Tx<'_>, stream: &StreamRef) -> Result<i64> {
        let found = tx.query_opt(
            "SELECT s.id FROM streams s JOIN connections c ON c.owner_id = s.owner_id AND c.id = s.connection_id
             WHERE s.owner_id = $1 AND s.connection_id = $2 AND s.name = $3 FOR SHARE OF c",
            &[&self.owner, &stream.connection.as_str(), &stream.stream.as_str()],
        )?;
        match found {
            Some(row) => row.get(0),
            None => Err(StoreError::UnknownConnection(stream.connection.clone())),
        }
    }

    /// Binds bytes that have their name; `None` where they were swept since.
    fn bind(
        &self,
        tx: &Tx<'_>,
        stream: &StreamRef,
        key: &RecordKey,
        (received, mime_type): (&Received, &str),
    ) -> Result<Option<Blob>> {
        let stream_id = self.lock_stream(tx, stream)?;
        let blob = self.lock_blob(tx, received, mime_type)?;
        if self.objects.size_of(&object_name(&blob.id))? != Some(blob.size_bytes) {
            return Ok(None);
        }
        tx.execute(
            "INSERT INTO blob_bindings (owner_id, blob_id, stream_id, key) VALUES ($1, $2, $3, $4)
             ON CONFLICT DO NOTHING",
            &[
                &self.owner,
                &blob.id.as_str(),
                &stream_id,
                &key.ordering_form(),
            ],
        )?;
        Ok(Some(blob))
    }

    /// Makes sure of the blob's row and locks it. The media type is the one it came with first.
    fn lock_blob(&self, tx: &Tx<'_>, received: &Received, mime_type: &str) -> Result<Blob> {
        let row = tx.query_one(
            "INSERT INTO blobs (owner_id, id, size_bytes, mime_type) VALUES ($1, $2, $3, $4)
             ON CONFLICT (owner_id, id) DO UPDATE SET state = 'kept', size_bytes = $3,
                 mime_type = CASE blobs.state WHEN 'kept' THEN blobs.mime_type ELSE $4 END RETURNING mime_type",
            &[
                &self.owner,
                &received.id.as_str(),
                &received.size_bytes.cast_signed(),
                &mime_type,
            ],
        )?;
        Ok(Blob {
            id: received.id.clone(),
            size_bytes: received.size_bytes,
            mime_type: row.get(0)?,
        })
    }

    /// Gives received bytes their name, unless others have it that are whole.
    pub(super) fn name(&self, received: &Received) -> Result<()> {
        let name = object_name(&received.id);
        if let Some((size_bytes, bytes)) = self.objects.open(&name)?
            && size_bytes == received.size_bytes
        {
            let path = self.objects.place(&name);
            let mut bytes = Verified::new(bytes, &path, &received.id, size_bytes);
            if io::copy(&mut bytes, &mut io::sink()).is_ok() {
                return Ok(());
            }
        }
        self.objects.put(&name, received)
    }

    /// Marks blobs that nothing refers to any more, and counts them. They are locked first: only what is asked after that sees
    /// the binding of somebody who had them locked.
    pub(super) fn forget_orphans(&self, tx: &Tx<'_>) -> Result<u64> {
        let orphans = format!("owner_id = $1 AND state = 'kept' AND NOT EXISTS ({BINDING})");
        let sql = format!("SELECT id FROM blobs WHERE {orphans} ORDER BY id FOR UPDATE");
        let locked = tx.query(&sql, &[&self.owner])?;
        let ids: Vec<&str> = locked.iter().map(|row| row.get(0)).collect::<Result<_>>()?;
        let sql = format!("UPDATE blobs SET state = 'deleting' WHERE {orphans} AND id = ANY($2)");
        tx.execute(&sql, &[&self.owner, &ids])
    }

    /// Removes the bytes and then the rows of blobs that are marked. One whose bytes came again meanwhile stays.
    pub(super) fn sweep_blobs(&self) -> Result<()> {
        self.mark_left_files()?;
        self.sweep_marked(Duration::MAX)
    }

    /// The same of those that are marked already, for no longer than this.
    pub(super) fn sweep_marked(&self, within: Duration) -> Result<()> {
        let begun = Moment::now();
        loop {
            let marked = self.pool.read(|tx| {
                let sql =
                    "SELECT id FROM blobs WHERE owner_id = $1 AND state = 'deleting' LIMIT $2";
                tx.query(sql, &[&self.owner, &AT_ONCE])
            })?;
            if marked.is_empty() {
                return Ok(());
            }
            for row in &marked {
                if begun.elapsed() > within {
                    return Ok(());
                }
                let id: BlobId = row.parse(0)?;
                self.pool.transact(|tx| self.sweep_blob(tx, &id))?;
            }
        }
    }

    /// Finds what a crash left: bytes without a name go, and those without a row get one that is marked, so that they go under
    /// its lock. Whatever is younger than a day may be about to be bound.
    fn mark_left_files(&self) -> Result<()> {
        self.objects.sweep()?;
        let listed = self.objects.list("")?.into_iter();
        // What has no name of a blob is none.
        let ids: Vec<String> = listed
            .filter(|listed| listed.is_left)
            .filter_map(|listed| BlobId::from_hex(&listed.name.replacen('/', "", 1)).ok())
            .map(|id| id.to_string())
            .collect();
        ids.chunks(MARKED_AT_ONCE)
            .try_for_each(|ids| self.mark_left(ids))
    }

    /// Gives bytes without a row one that is marked.
    fn mark_left(&self, ids: &[String]) -> Result<()> {
        self.pool.transact(|tx| {
            tx.execute(
                "INSERT INTO blobs (owner_id, id, size_bytes, mime_type, state)
                 SELECT $1, id, 0, '', 'deleting' FROM unnest($2::text[]) AS id ON CONFLICT DO NOTHING",
                &[&self.owner, &ids],
            )
            .map(drop)
        })
    }

    /// Removes bytes that were never bound, unless somebody else bound the same ones.
    fn discard(&self, id: &BlobId) -> Result<()> {
        self.mark_left(&[id.to_string()])?;
        self.pool.transact(|tx| self.sweep_blob(tx, id))
    }

    fn sweep_blob(&self, tx: &Tx<'_>, id: &BlobId) -> Result<()> {
        let locked = tx.query(
            "SELECT 1 FROM blobs WHERE owner_id = $1 AND id = $2 AND state = 'deleting' FOR UPDATE",
            &[&self.owner, &id.as_str()],
        )?;
        if locked.is_empty() {
            return Ok(());
        }
        // An earlier release could mark what was being bound. Asked after the lock, this is certain.
        let keep = format!(
            "UPDATE blobs SET state = 'kept' WHERE owner_id = $1 AND id = $2 AND EXISTS ({BINDING})"
        );
        if tx.execute(&keep, &[&self.owner, &id.as_str()])? > 0 {
            return Ok(());
        }
        self.objects.remove(&object_name(id))?;
        tx.execute(
            "DELETE FROM blobs WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &id.as_str()],
        )
        .map(drop)
    }
}

#[cfg(test)]
mod tests;
