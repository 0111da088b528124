//! What statements read of a stream that has many records.

use super::super::by_row::by_row_sql;
use super::super::pool::Param;
use super::super::records::feed_sql;
use super::super::row::PLAIN;
use super::super::write::NAMED;
use super::super::write::statements::CHANGED;
use super::*;

/// Adds so many records, as a database has them whose statistics were never taken.
fn fill(store: &PostgresStore, stream: i64, records: i64) {
    let sql =
        "INSERT INTO records (owner_id, stream_id, key, row_id, version, digest, emitted_at, data)
         SELECT $1, $2, 'key ' || number, number, number, 0, '2026-06-01T12:00:00Z', '{}'
         FROM generate_series(1, $3) AS number";
    let fill = |tx: &Tx<'_>| tx.execute(sql, &[&store.owner, &stream, &records]);
    assert_eq!(store.pool.transact(fill).unwrap(), records.cast_unsigned());
}

/// The most rows that any step of a statement handles at a time, whether it keeps them or not.
fn most_rows(tx: &Tx<'_>, sql: &str, params: &[&dyn Param]) -> Result<u64> {
    let explained = format!("EXPLAIN (ANALYZE, TIMING OFF) {sql}");
    let plan = tx.query(&explained, params)?;
    let rows = plan.iter().filter_map(|line| {
        let line = line.get::<&str>(0).unwrap();
        let handled = line.split_once("actual rows=");
        let (_, told) = handled.or_else(|| line.split_once("Removed by Filter: "))?;
        told.split(' ').next()?.parse().ok()
    });
    Ok(rows.max().unwrap())
}

/// A store with a large stream, which came after statistics were taken.
fn filled(url: &str) -> (PostgresStore, i64) {
    let store = open(url);
    own_notes(&store);
    let stream = store.stream_id(&entries()).unwrap();
    fill(&store, stream, 1_000);
    store.pool.read(|tx| tx.batch("ANALYZE records")).unwrap();
    // In the same part of the table.
    let sql = "SELECT id FROM generate_series($1 + 8000000, $1 + 8001000) AS id, generate_series(0, 7) AS part
         WHERE satisfies_hash_partition('records'::regclass, 8, part, id)
           AND satisfies_hash_partition('records'::regclass, 8, part, $1) LIMIT 1";
    let other: i64 = store
        .pool
        .query_one(sql, &[&stream])
        .unwrap()
        .get(0)
        .unwrap();
    fill(&store, other, 20_000);
    (store, other)
}

#[test]
fn a_batch_reads_no_records_but_those_it_names() {
    let Some(url) = url() else { return };
    let (store, stream) = filled(&url);
    let keys: Vec<String> = (0..2_000).map(|at| format!("key {at}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let read = |tx: &Tx<'_>| most_rows(tx, NAMED, &[&store.owner, &stream, &keys]);
    let rows = store.pool.snapshot(read).unwrap();
    assert!(rows <= 2_000, "{rows}");
    let (streams, numbers, text) = (vec![stream; 2_000], vec![1_i64; 2_000], vec!["{}"; 2_000]);
    let params: [&dyn Param; 9] = [
        &store.owner,
        &streams,
        &keys,
        &numbers,
        &numbers,
        &numbers,
        &numbers,
        &text,
        &text,
    ];
    let change = |tx: &Tx<'_>| most_rows(tx, CHANGED, &params);
    let rows = store.pool.transact(change).unwrap();
    assert!(rows <= 2_000, "{rows}");
}

#[test]
fn a_page_of_changes_reads_no_more_than_a_page() {
    let Some(url) = url() else { return };
    let (store, stream) = filled(&url);
    let (after, until, limit, since) = (10_000_i64, 20_000_i64, 101_i64, 10_000_i64);
    for every_version in [false, true] {
        let params: [&dyn Param; 6] = [&store.owner, &stream, &after, &until, &limit, &since];
        let sql = feed_sql(every_version);
        let rows = store.pool.snapshot(|tx| most_rows(tx, &sql, &params));
        let rows = rows.unwrap();
        assert!(rows <= 101, "{rows}");
    }
}

#[test]
fn reads_of_some_records_read_no_others() {
    let Some(url) = url() else { return };
    let (store, stream) = filled(&url);
    let rows: Vec<i64> = (1..=25).map(|at| at * 700).collect();
    let (one, several) = ([stream], [stream, stream + 1]);
    for streams in [one.as_slice(), &several] {
        let sql = by_row_sql(streams, PLAIN);
        let stream: &dyn Param = if streams.len() == 1 {
            &stream
        } else {
            &streams
        };
        let read = |tx: &Tx<'_>| most_rows(tx, &sql, &[&store.owner, stream, &rows]);
        assert_eq!(store.pool.snapshot(read).unwrap(), 25);
    }
}
