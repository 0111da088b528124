//! What statements read of a stream that has many records.

use super::super::pool::Param;
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

/// How many records a statement reads, whether it keeps them or not, also within functions.
fn records_read(store: &PostgresStore, sql: &str, params: &[&dyn Param]) -> u64 {
    let so_far = "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint FROM pg_stat_xact_user_tables
         WHERE schemaname = current_schema() AND (relname ~ '^records_[0-9]+$' OR relname = 'versions')";
    let read = store.pool.snapshot(|tx| {
        let before: i64 = tx.query_one(so_far, &[])?.get(0)?;
        tx.query(sql, params)?;
        Ok(tx.query_one(so_far, &[])?.get::<i64>(0)? - before)
    });
    read.unwrap().cast_unsigned()
}

/// A store with a large stream, which came after statistics were taken: they know only another stream in the same part of the table.
fn filled(database: &OwnDatabase) -> (PostgresStore, i64) {
    let store = open(&database.url);
    own_notes(&store);
    let stream = store.stream_id(&entries()).unwrap();
    fill(&store, stream, 1_000);
    store.pool.read(|tx| tx.batch("ANALYZE records")).unwrap();
    let sql =
        "SELECT id FROM generate_series($1 + 1, $1 + 1000) AS id, generate_series(0, 7) AS part
         WHERE satisfies_hash_partition('records'::regclass, 8, part, id)
           AND satisfies_hash_partition('records'::regclass, 8, part, $1) LIMIT 1";
    let other = store.pool.query_one(sql, &[&stream]).unwrap();
    let other: i64 = other.get(0).unwrap();
    fill(&store, other, 20_000);
    (store, other)
}

#[test]
fn tables_have_statistics_as_soon_as_something_is_in_them() {
    let Some(url) = url() else { return };
    let database = OwnDatabase::beside(&url);
    let store = open(&database.url);
    let own = own_notes(&store);
    let known = || {
        let sql = "SELECT count(*) FROM pg_stats WHERE tablename ~ '^records_[0-9]' AND attname = 'stream_id'";
        let row = store.pool.query_one(sql, &[]).unwrap();
        row.get::<i64>(0).unwrap()
    };
    assert_eq!(known(), 0);
    store.write(&own, vec![note("a", "first")]).unwrap();
    assert_eq!(known(), 1);
}

#[test]
fn a_batch_reads_no_records_but_those_it_names() {
    let Some(url) = url() else { return };
    let database = OwnDatabase::beside(&url);
    let (store, stream) = filled(&database);
    let keys: Vec<String> = (0..2_000).map(|at| format!("key {at}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let sql = "SELECT * FROM records_by_key($1, $2, $3)";
    let read = records_read(&store, sql, &[&store.owner, &stream, &keys]);
    assert_eq!(read, 1_999);
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
    let database = OwnDatabase::beside(&url);
    let (store, stream) = filled(&database);
    let (after, until, limit, since) = (10_000_i64, 20_000_i64, 101_i64, 10_000_i64);
    for every_version in [false, true] {
        let sql = "SELECT * FROM record_changes($1, $2, $3, $4, $5, $6, $7, 1000000)";
        let params: [&dyn Param; 7] = [
            &store.owner,
            &stream,
            &after,
            &until,
            &limit,
            &since,
            &every_version,
        ];
        assert_eq!(records_read(&store, sql, &params), 101);
    }
}

#[test]
fn reads_of_some_records_read_no_others() {
    let Some(url) = url() else { return };
    let database = OwnDatabase::beside(&url);
    let (store, stream) = filled(&database);
    let rows: Vec<i64> = (2..=26).map(|at| at * 700).collect();
    for streams in [vec![stream], vec![stream, stream + 1]] {
        let sql = "SELECT * FROM records_by_row($1, $2, $3, 1000)";
        let read = records_read(&store, sql, &[&store.owner, &streams, &rows]);
        assert_eq!(read, 25);
    }
    let sql = "SELECT record_by_key($1, $2, 'key 700')";
    assert_eq!(records_read(&store, sql, &[&store.owner, &stream]), 1);
}
