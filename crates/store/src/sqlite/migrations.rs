//! Numbered changes of the database format. Each runs once, in order, in a transaction of its own.

use std::path::Path;

use rusqlite::Connection;

use super::database::failed;
use crate::{Result, StoreError};

/// Every format ever released; the position plus one is its number.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_grants.sql"),
    include_str!("migrations/0003_registry.sql"),
    include_str!("migrations/0004_redeem_by.sql"),
    include_str!("migrations/0005_declared_versions.sql"),
    include_str!("migrations/0006_reading.sql"),
    include_str!("migrations/0007_redated.sql"),
    include_str!("migrations/0008_digests.sql"),
    include_str!("migrations/0009_sessions_anew.sql"),
    include_str!("migrations/0010_deleted_by_owner.sql"),
    include_str!("migrations/0011_reindexing.sql"),
];

/// Brings the database to the newest format, or says why it cannot.
pub(crate) fn run(connection: &mut Connection, path: &Path) -> Result<()> {
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed(path))?;
    let supported = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > supported {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            supported,
        });
    }
    let done = usize::try_from(found)
        .map_err(|_| StoreError::corrupt(path, format!("format number {found}")))?;
    for (sql, number) in MIGRATIONS.iter().zip(1_i64..).skip(done) {
        apply(connection, sql, number).map_err(failed(path))?;
    }
    Ok(())
}

fn apply(connection: &mut Connection, sql: &str, number: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "user_version", number)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_database_reaches_the_newest_format_and_stays_there() {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, Path::new("x")).unwrap();
        run(&mut connection, Path::new("x")).unwrap();
        let version: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(usize::try_from(version).unwrap(), MIGRATIONS.len());
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('records', 'versions', 'streams')", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 3);
    }

    #[test]
    fn approvals_of_an_older_format_that_nobody_came_for_have_ended() {
        let mut connection = Connection::open_in_memory().unwrap();
        for (sql, number) in MIGRATIONS.iter().zip(1_i64..).take(3) {
            apply(&mut connection, sql, number).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO packages (id, client_id, issued_at) VALUES ('p', 'c', 5);
                 INSERT INTO grants (id, package_id, client_id, document, issued_at)
                 VALUES ('used', NULL, 'c', '', 5), ('unused', NULL, 'c', '', 5), ('packed', 'p', 'c', '', 5);
                 INSERT INTO tokens (id, selector, hash, grant_id, package_id, issued_at, expires_at)
                 VALUES ('a', x'', x'', 'used', NULL, 5, 9), ('b', x'', x'', NULL, 'p', 5, 9);",
            )
            .unwrap();
        run(&mut connection, Path::new("x")).unwrap();
        let ended: Vec<(String, i64)> = connection
            .prepare("SELECT id, redeem_by FROM grants WHERE redeem_by IS NOT NULL")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        assert_eq!(ended, [("unused".to_owned(), 900_000_005)]);
    }

    #[test]
    fn records_of_an_older_format_that_were_given_an_earlier_date_are_known() {
        let mut connection = Connection::open_in_memory().unwrap();
        let last = MIGRATIONS
            .iter()
            .position(|sql| sql.contains("CREATE TABLE redated"));
        for (sql, number) in MIGRATIONS.iter().zip(1_i64..).take(last.unwrap()) {
            apply(&mut connection, sql, number).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO records (row_id, stream_id, key, version, emitted_at, data) VALUES
                     (1, 7, 'forth', 9, '2026-05-02T00:00:00Z', '{}'), (2, 7, 'back', 8, '2026-05-04', '{}'),
                     (3, 7, 'same', 7, '2026-05-01T00:00:00Z', '{}');
                 INSERT INTO versions (row_id, stream_id, version, next_version, emitted_at, data) VALUES
                     (1, 7, 1, 9, '2026-05-01T23:59:59.999+00:00', '{}'), (3, 7, 2, 7, '2026-05-01T02:00:00+02:00', '{}'),
                     (2, 7, 3, 4, '1970-01-02T00:00:00Z', '{}'), (2, 7, 4, 8, '1970-01-01T00:00:00Z', '{}');",
            )
            .unwrap();
        run(&mut connection, Path::new("x")).unwrap();
        let known: Vec<(i64, i64)> = connection
            .prepare("SELECT row_id, latest FROM redated")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        assert_eq!(known, [(2, 86_400_001_000)]);
    }

    #[test]
    fn a_version_registered_before_it_was_remembered_is_remembered() {
        let mut connection = Connection::open_in_memory().unwrap();
        for (sql, number) in MIGRATIONS.iter().zip(1_i64..).take(4) {
            apply(&mut connection, sql, number).unwrap();
        }
        let text = r#"{"declaration_version":"1.0","streams":[]}"#;
        connection
            .execute("INSERT INTO connectors VALUES ('mail', ?1, 5)", [text])
            .unwrap();
        run(&mut connection, Path::new("x")).unwrap();
        let kept: (String, String, String) = connection
            .query_row("SELECT * FROM declared_versions", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(kept, ("mail".to_owned(), "1.0".to_owned(), text.to_owned()));
    }

    #[test]
    fn only_a_declaration_that_means_the_same_is_read_anew() {
        let mut connection = Connection::open_in_memory().unwrap();
        for (sql, number) in MIGRATIONS.iter().zip(1_i64..).take(5) {
            apply(&mut connection, sql, number).unwrap();
        }
        let before = [
            ("a", "{}", 2),
            ("b", r##"{"$ref":"#"}"##, 1),
            ("c", r#"{"oneOf":[]}"#, 1),
            ("d", r#"{"\u0024ref":1}"#, 1),
        ];
        for (key, text, _) in before {
            connection
                .execute("INSERT INTO connectors VALUES (?1, ?2, 5)", (key, text))
                .unwrap();
        }
        run(&mut connection, Path::new("x")).unwrap();
        for (key, _, reading) in before {
            let sql = "SELECT reading FROM connectors WHERE connector_key = ?1";
            let found: i64 = connection.query_row(sql, [key], |row| row.get(0)).unwrap();
            assert_eq!(found, reading, "{key}");
        }
    }

    #[test]
    fn every_step_starts_from_the_one_before() {
        for upto in 0..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            for (sql, number) in MIGRATIONS.iter().zip(1_i64..).take(upto) {
                apply(&mut connection, sql, number).unwrap();
            }
            run(&mut connection, Path::new("x")).unwrap();
        }
    }
}
