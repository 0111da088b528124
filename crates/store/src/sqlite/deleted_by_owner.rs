//! Keys of records that the owner deleted. They outlast a purge, so only their digests are kept.

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Remembers that the owner deleted the record.
pub(super) fn add(connection: &Connection, stream: i64, key: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO deleted_by_owner VALUES (?1, ?2)")?
        .execute(params![stream, digest(key)])
        .map(drop)
}

pub(super) fn remove(connection: &Connection, stream: i64, key: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM deleted_by_owner WHERE stream_id = ?1 AND key_digest = ?2")?
        .execute(params![stream, digest(key)])
        .map(drop)
}

pub(super) fn contains(connection: &Connection, stream: i64, key: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM deleted_by_owner WHERE stream_id = ?1 AND key_digest = ?2)",
        )?
        .query_row(params![stream, digest(key)], |row| row.get(0))
}

pub(super) fn any(connection: &Connection, stream: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM deleted_by_owner WHERE stream_id = ?1)")?
        .query_row([stream], |row| row.get(0))
}
