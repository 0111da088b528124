//! The bytes a record points at. A client may read them exactly when it sees a `blob_ref` to them.

use contract::error::{ErrorCode, ReadError};
use contract::id::BlobId;
use contract::key::RecordKey;
use contract::query::BlobQuery;
use contract::reader::Blob;
use store::StoreError;
use store::blobs::Blob as StoredBlob;

use crate::ambiguity::{available, connection_not_found};
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::project::{BLOB_REF, admitted, blob_id_in};
use crate::reader::{Answer, Session};

/// A row that shows the blob, what is known of the blob there, and the record that points at it.
struct Exposure {
    row: Row,
    blob: StoredBlob,
    key: RecordKey,
}

pub(crate) fn blob(session: &Session, query: &BlobQuery) -> Answer<Blob> {
    let reach = session.reach();
    if let Some(connection) = query.connection_id.as_deref()
        && !reach.reaches_connection(connection)
    {
        return Err(connection_not_found(connection).into());
    }
    let id = BlobId::parse(query.blob_id.as_str()).map_err(|_| not_found())?;
    let mut exposures = exposures(session, query, &id)?;
    let rows: Vec<Row> = exposures.iter().map(|one| one.row.clone()).collect();
    let choices = available(&rows);
    if choices.len() > 1 {
        let message = format!("{} connections have this blob", choices.len());
        return Err(ReadError::new(ErrorCode::AmbiguousConnection, message)
            .with_connections(choices)
            .into());
    }
    let Exposure { row, blob, key } = exposures.pop().ok_or_else(not_found)?;
    let content = match session.store.open_blob(&id) {
        Ok(content) => content,
        Err(StoreError::UnknownBlob(_)) => return Err(gone(&row).into()),
        Err(error) => return Err(error.into()),
    };
    let mut shown = Shown::for_row(&row);
    shown.record(&row, &key);
    shown.fields([BLOB_REF]);
    let answer = Blob {
        media_type: blob.mime_type,
        size_bytes: blob.size_bytes,
        content: Box::new(content),
    };
    Ok((answer, shown))
}

/// One record per row that may be seen, shows its `blob_ref`, and names the blob there.
fn exposures(session: &Session, query: &BlobQuery, id: &BlobId) -> Result<Vec<Exposure>> {
    let mut exposures = Vec::new();
    for row in session.reach().rows() {
        let connection = query.connection_id.as_deref();
        let addressed = connection.is_none_or(|wanted| row.connection().id.as_str() == wanted);
        if !addressed || !row.sees_whole(BLOB_REF) {
            continue;
        }
        let Some((blob, keys)) = session.store.blob(&row.stream_ref(), id)? else {
            continue;
        };
        for key in keys {
            if points_at(session, &row, &key, id)? {
                exposures.push(Exposure { row, blob, key });
                break;
            }
        }
    }
    Ok(exposures)
}

fn points_at(session: &Session, row: &Row, key: &RecordKey, id: &BlobId) -> Result<bool> {
    let Some(stored) = session.store.get(&row.stream_ref(), key)? else {
        return Ok(false);
    };
    let body = admitted(row, key, stored.body)?;
    let named = body.and_then(|body| body.get(BLOB_REF).and_then(blob_id_in));
    Ok(named.is_some_and(|named| named == id.as_str()))
}

/// The record points at it, and its file is not there.
fn gone(row: &Row) -> ReadError {
    let step = if row.is_owner() {
        "import what it came from again, or restore a backup; `pdpp doctor --thorough` lists all that is missing"
    } else {
        "the owner of the server can bring it back; `pdpp doctor --thorough` says how"
    };
    let message = "The bytes of the blob are missing on the server's disk";
    ReadError::new(ErrorCode::BlobNotFound, message).with_hint(step)
}

fn not_found() -> ReadError {
    ReadError::new(ErrorCode::BlobNotFound, "Blob not found")
}
