//! Reading records by key and by page.

use contract::id::ConnectionId;
use contract::key::RecordKey;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use super::EmbeddedStore;
use crate::Result;
use crate::catalog::StreamRef;
use crate::records::{
    Applied, Change, ChangesPage, ChangesRequest, Direction, OrderBy, PagePosition, PageRequest,
    Purged, Records, SortValue, StoredRecord,
};

impl Records for EmbeddedStore {
    fn write(&self, connection: &ConnectionId, batch: Vec<Change>) -> Result<Vec<Applied>> {
        self.write_batch(connection, batch)
    }

    fn get(&self, stream: &StreamRef, key: &RecordKey) -> Result<Option<StoredRecord>> {
        let id = self.sources().stream(stream)?.id;
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT key, emitted_at, data, sort FROM records
                     WHERE stream_id = ?1 AND key = ?2 AND data IS NOT NULL",
                )?
                .query_row((id, key.ordering_form()), stored)
                .optional()
        })
    }

    fn page(&self, stream: &StreamRef, request: &PageRequest) -> Result<Vec<StoredRecord>> {
        let id = self.sources().stream(stream)?.id;
        self.database.read(|connection| match request.by {
            OrderBy::Key => by_key(connection, id, request),
            OrderBy::Cursor => by_cursor(connection, id, request),
        })
    }

    fn changes(&self, stream: &StreamRef, request: &ChangesRequest) -> Result<ChangesPage> {
        self.changes_page(stream, request)
    }

    fn purge(&self) -> Result<Purged> {
        self.purge_tombstones()
    }
}

/// Reads `key, emitted_at, data, sort`.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    let form: String = row.get(0)?;
    let key = RecordKey::from_ordering_form(&form);
    let sort = match row.get_ref(3)? {
        ValueRef::Integer(value) => SortValue::Integer(value),
        ValueRef::Real(value) => SortValue::Real(value),
        _ => SortValue::Missing,
    };
    Ok(StoredRecord {
        emitted_at: row.get(1)?,
        body: row.get(2)?,
        position: PagePosition {
            sort,
            key: key.clone(),
        },
        key,
    })
}

/// How a direction reads in SQL: the comparison that means "after", and the order.
fn words(direction: Direction) -> (&'static str, &'static str) {
    match direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    }
}

fn by_key(
    connection: &Connection,
    stream: i64,
    request: &PageRequest,
) -> rusqlite::Result<Vec<StoredRecord>> {
    let (after, order) = words(request.direction);
    let key = request
        .after
        .as_ref()
        .map(|position| position.key.ordering_form());
    let bound = if key.is_some() {
        format!("AND key {after} ?2")
    } else {
        String::new()
    };
    let sql = format!(
        "SELECT key, emitted_at, data, sort FROM records INDEXED BY records_by_key
         WHERE stream_id = ?1 AND data IS NOT NULL {bound} ORDER BY key {order} LIMIT {}",
        request.limit
    );
    let mut values: Vec<&dyn ToSql> = vec![&stream];
    values.extend(key.iter().map(|key| key as &dyn ToSql));
    collect(connection, &sql, &values)
}

/// Records with a cursor value come first in both directions, then those without.
fn by_cursor(
    connection: &Connection,
    stream: i64,
    request: &PageRequest,
) -> rusqlite::Result<Vec<StoredRecord>> {
    let (after, order) = words(request.direction);
    let mut records = Vec::new();
    let position = request
        .after
        .as_ref()
        .map(|position| (sql_sort(position.sort), position.key.ordering_form()));
    let in_missing = matches!(&position, Some((Value::Null, _)));
    if !in_missing {
        let bound = if position.is_some() {
            format!("AND (sort, key) {after} (?2, ?3)")
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT key, emitted_at, data, sort FROM records INDEXED BY records_by_sort
             WHERE stream_id = ?1 AND data IS NOT NULL AND sort IS NOT NULL {bound}
             ORDER BY sort {order}, key {order} LIMIT {}",
            request.limit
        );
        let mut values: Vec<&dyn ToSql> = vec![&stream];
        if let Some((sort, key)) = &position {
            values.push(sort);
            values.push(key);
        }
        records = collect(connection, &sql, &values)?;
    }
    let left = request.limit.saturating_sub(records.len());
    if left > 0 {
        let key = position.filter(|_| in_missing).map(|(_, key)| key);
        let bound = if key.is_some() {
            format!("AND key {after} ?2")
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT key, emitted_at, data, sort FROM records INDEXED BY records_by_sort
             WHERE stream_id = ?1 AND data IS NOT NULL AND sort IS NULL {bound} ORDER BY key {order} LIMIT {left}"
        );
        let mut values: Vec<&dyn ToSql> = vec![&stream];
        values.extend(key.iter().map(|key| key as &dyn ToSql));
        records.extend(collect(connection, &sql, &values)?);
    }
    Ok(records)
}

fn sql_sort(sort: SortValue) -> Value {
    match sort {
        SortValue::Integer(value) => Value::Integer(value),
        SortValue::Real(value) => Value::Real(value),
        SortValue::Missing => Value::Null,
    }
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<StoredRecord>> {
    connection
        .prepare_cached(sql)?
        .query_map(values, stored)?
        .collect()
}
