//! Grants, tokens and the disclosure log on disk: whole or not at all, and found out when touched.

use std::path::Path;

use contract::grant::Grant;
use contract::id::{PackageId, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::Instant;
use rusqlite::Connection;
use store::grants::{Disclosure, Revocable, RevocationReason, Revoked, TokenSubject, TokenUse};
use store::records::{Change, ChangeOp};
use store::{EmbeddedStore, Grants, Records, Store, StoreError, StreamRef};

use crate::fixture::{
    add_mail, approval, connection, disclosure, grant, grant_id, noon, on_every_reopened, open,
    token,
};

const FIRST_FORMAT: &str = include_str!("../../src/sqlite/migrations/0001_initial.sql");

/// The same database, seen by somebody who should not touch it.
fn intruder(path: &Path) -> Connection {
    let connection = Connection::open(path.join("records.db")).unwrap();
    let patience = std::time::Duration::from_secs(5);
    connection.busy_timeout(patience).unwrap();
    connection
}

fn with_mail(store: Box<dyn Store>, connections: &[&str]) -> Box<dyn Store> {
    for id in connections {
        add_mail(&*store, id);
    }
    store
}

fn connections_of(store: &dyn Store, id: &str) -> Vec<String> {
    let stored = store.grant(&grant_id(id)).unwrap().unwrap();
    let grant: Grant = serde_json::from_str(&stored.document).unwrap();
    let streams = grant.streams().iter();
    streams
        .flat_map(|stream| {
            let ids = stream.instance_ids.iter();
            ids.map(|id| format!("{}/{id}", stream.name))
        })
        .collect()
}

#[test]
fn an_approval_is_found_again_after_reopening() {
    on_every_reopened(|open| {
        let store = with_mail(open(), &["home", "work"]);
        let one = grant("grt_1", &[("messages", &["home"])]);
        store.approve(&approval(None, vec![one], 1)).unwrap();
        let two = grant("grt_2", &[("messages", &["home"])]);
        let three = grant("grt_3", &[("messages", &["work"])]);
        let both = approval(Some("gpkg_1"), vec![two, three], 2);
        store.approve(&both).unwrap();
        store.add_owner_token(&token(3)).unwrap();
        drop(store);
        let store = open();
        let subject = |number: u8| {
            let mut found = store.token_candidates([number; 8]).unwrap();
            assert_eq!(found.len(), 1);
            let found = found.remove(0);
            let expected = (format!("tok_{number}"), [number; 32]);
            assert_eq!((found.id, found.hash), expected);
            found.subject
        };
        assert!(matches!(subject(1), TokenSubject::Grant(grant) if grant.id.as_str() == "grt_1"));
        let TokenSubject::Package(package) = subject(2) else {
            panic!("the second token stands for a package");
        };
        assert_eq!(package.grants.len(), 2);
        assert!(matches!(subject(3), TokenSubject::Owner));
        assert!(store.token_candidates([9; 8]).unwrap().is_empty());
        assert_eq!(store.grants().unwrap().len(), 3);
        assert_eq!(store.packages().unwrap(), [package]);
        assert_eq!(store.owner_tokens().unwrap().len(), 1);
    });
}

#[test]
fn an_approval_that_cannot_stand_leaves_nothing() {
    on_every_reopened(|open| {
        let store = with_mail(open(), &["home"]);
        let good = grant("grt_1", &[("messages", &["home"])]);
        let gone = grant("grt_2", &[("messages", &["gone"])]);
        let refused = store.approve(&approval(Some("gpkg_1"), vec![good.clone(), gone], 1));
        assert!(matches!(refused, Err(StoreError::UnknownConnection(id)) if id.as_str() == "gone"));
        // The token's id is taken: the grant must not stay behind without one.
        store.add_owner_token(&token(1)).unwrap();
        assert!(store.approve(&approval(None, vec![good], 1)).is_err());
        assert!(store.grants().unwrap().is_empty() && store.packages().unwrap().is_empty());
    });
}

/// Three grants: of both connections, of the one, and of the other.
fn with_three_grants(store: Box<dyn Store>) -> Box<dyn Store> {
    let store = with_mail(store, &["home", "work"]);
    let both = grant(
        "grt_1",
        &[("messages", &["home", "work"]), ("events", &["home"])],
    );
    let one = grant("grt_2", &[("messages", &["home"])]);
    let other = grant("grt_3", &[("messages", &["work"])]);
    for (number, grant) in (1..).zip([both, one, other]) {
        store.approve(&approval(None, vec![grant], number)).unwrap();
    }
    store
}

#[test]
fn a_removal_that_fails_half_way_leaves_connection_and_grants_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_three_grants(Box::new(open(folder.path())));
    let breaking = intruder(folder.path());
    breaking
        .execute_batch(
            "CREATE TRIGGER keep BEFORE DELETE ON connections BEGIN SELECT raise(ABORT, 'no'); END",
        )
        .unwrap();
    assert!(store.remove_connection(&connection("home")).is_err());
    assert_eq!(connections_of(&*store, "grt_1").len(), 3);
    let kept = store.grant(&grant_id("grt_2")).unwrap().unwrap();
    assert!(kept.revoked.is_none());
}

#[test]
fn a_removed_connection_leaves_every_grant_in_the_same_transaction() {
    on_every_reopened(|open| {
        let store = with_three_grants(open());
        store.remove_connection(&connection("home")).unwrap();
        assert_eq!(connections_of(&*store, "grt_1"), ["messages/work"]);
        let narrowed = store.grant(&grant_id("grt_1")).unwrap().unwrap();
        assert_eq!(
            (narrowed.revoked, narrowed.narrowed_at),
            (None, Some(noon()))
        );
        let emptied = store.grant(&grant_id("grt_2")).unwrap().unwrap();
        assert_eq!(
            emptied.revoked.unwrap().reason,
            RevocationReason::ConnectionRemoved
        );
        let untouched = store.grant(&grant_id("grt_3")).unwrap().unwrap();
        assert_eq!((untouched.revoked, untouched.narrowed_at), (None, None));
        add_mail(&*store, "home");
        assert_eq!(connections_of(&*store, "grt_1"), ["messages/work"]);
    });
}

#[test]
fn what_is_revoked_stays_so() {
    on_every_reopened(|open| {
        let store = with_mail(open(), &["home", "work"]);
        let grants = vec![
            grant("grt_1", &[("messages", &["home"])]),
            grant("grt_2", &[("messages", &["work"])]),
        ];
        store.approve(&approval(Some("gpkg_1"), grants, 1)).unwrap();
        let later = Instant(noon().0 + 1);
        let (first, package) = (grant_id("grt_1"), PackageId::parse("gpkg_1").unwrap());
        let revoke = |what, at| store.revoke(what, at).unwrap();
        assert_eq!(revoke(Revocable::Grant(&first), noon()), Revoked::Now);
        assert_eq!(
            revoke(Revocable::Grant(&first), later),
            Revoked::Already(noon())
        );
        assert_eq!(revoke(Revocable::Package(&package), later), Revoked::Now);
        let ends: Vec<Instant> = store
            .package(&package)
            .unwrap()
            .unwrap()
            .grants
            .iter()
            .map(|grant| grant.revoked.unwrap().at)
            .collect();
        assert_eq!(ends, [noon(), later], "a grant keeps its own end");
        assert_eq!(revoke(Revocable::Token("tok_1"), later), Revoked::Now);
        assert_eq!(revoke(Revocable::Token("tok_9"), later), Revoked::Unknown);
        assert_eq!(
            revoke(Revocable::Grant(&grant_id("grt_9")), later),
            Revoked::Unknown
        );
    });
}

#[test]
fn the_log_is_read_back_newest_first_and_by_grant() {
    on_every_reopened(|open| {
        let store = with_mail(open(), &["home"]);
        store
            .approve(&approval(
                None,
                vec![grant("grt_1", &[("messages", &["home"])])],
                1,
            ))
            .unwrap();
        let entries = [
            disclosure(1, &["grt_1"]),
            disclosure(2, &["grt_2", "grt_1", "grt_1"]),
            disclosure(3, &["grt_2"]),
        ];
        let used = |at| TokenUse {
            token_id: "tok_1".to_owned(),
            at: Instant(at),
        };
        store
            .log_disclosures(&entries[..2], &[used(9), used(7)])
            .unwrap();
        store.log_disclosures(&entries[2..], &[]).unwrap();
        store.log_disclosures(&[], &[used(3)]).unwrap();
        let numbers = |grant: Option<&str>, before, limit| -> Vec<u64> {
            let grant = grant.map(grant_id);
            let found = store.disclosures(grant.as_ref(), before, limit).unwrap();
            found.iter().map(|entry| entry.sequence).collect()
        };
        assert_eq!(numbers(None, None, 10), [3, 2, 1]);
        assert_eq!(numbers(Some("grt_1"), None, 10), [2, 1]);
        assert_eq!(numbers(Some("grt_2"), Some(3), 10), [2]);
        assert_eq!(numbers(None, Some(3), 1), [2]);
        let second = store.disclosures(None, Some(3), 1).unwrap().remove(0);
        assert_eq!(second.disclosure, entries[1]);
        let token = store.token_candidates([1; 8]).unwrap().remove(0);
        assert_eq!(
            token.last_used_at,
            Some(Instant(9)),
            "a late note never moves it back"
        );
        let grant = store.grant(&grant_id("grt_1")).unwrap().unwrap();
        assert_eq!(grant.last_used_at, Some(entries[1].at));
        assert_eq!(store.check_disclosures().unwrap().entries, 3);
    });
}

/// A log of three entries in two transactions, and somebody who can write to it.
fn logged(folder: &Path) -> (EmbeddedStore, Connection) {
    let store = open(folder);
    let log = |numbers: &[i64]| {
        let entries: Vec<Disclosure> = numbers.iter().map(|n| disclosure(*n, &["grt_1"])).collect();
        store.log_disclosures(&entries, &[]).unwrap();
    };
    log(&[1, 2]);
    log(&[3]);
    assert_eq!(store.check_disclosures().unwrap().broken, None);
    (store, intruder(folder))
}

#[test]
fn a_changed_byte_anywhere_in_the_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, intruder) = logged(folder.path());
    for column in ["entry", "hash"] {
        for sequence in 1_u64..=3 {
            let read =
                format!("SELECT CAST({column} AS BLOB) FROM disclosures WHERE sequence = ?1");
            let kind = if column == "entry" { "TEXT" } else { "BLOB" };
            let write =
                format!("UPDATE disclosures SET {column} = CAST(?2 AS {kind}) WHERE sequence = ?1");
            let original: Vec<u8> = intruder
                .query_row(&read, [sequence], |row| row.get(0))
                .unwrap();
            for at in 0..original.len() {
                // Any bit will do; high ones also make text that is not UTF-8.
                let mut changed = original.clone();
                changed[at] ^= 1 << (at % 8);
                intruder.execute(&write, (sequence, changed)).unwrap();
                let check = store.check_disclosures().unwrap();
                let broken = check
                    .broken
                    .unwrap_or_else(|| panic!("{column} {sequence} byte {at}"));
                assert_eq!((broken.sequence, check.entries), (sequence, sequence - 1));
            }
            intruder.execute(&write, (sequence, original)).unwrap();
            assert_eq!(store.check_disclosures().unwrap().broken, None);
        }
    }
}

#[test]
fn an_entry_that_is_missing_added_moved_or_hidden_is_found() {
    for (tampering, place) in [
        ("DELETE FROM disclosures WHERE sequence = 1", 1),
        ("DELETE FROM disclosures WHERE sequence = 2", 2),
        ("DELETE FROM disclosures WHERE sequence = 3", 3),
        ("DELETE FROM disclosures", 1),
        ("DELETE FROM meta WHERE name = 'disclosures'", 4),
        (
            "DELETE FROM disclosures; DELETE FROM meta WHERE name = 'disclosures'",
            1,
        ),
        (
            "INSERT INTO disclosures SELECT 4, entry, hash FROM disclosures WHERE sequence = 3",
            4,
        ),
        (
            "INSERT INTO disclosures SELECT 0, entry, hash FROM disclosures WHERE sequence = 3",
            1,
        ),
        (
            "INSERT INTO disclosures SELECT -1, entry, hash FROM disclosures WHERE sequence = 3",
            1,
        ),
        (
            "UPDATE disclosures SET entry = (SELECT entry FROM disclosures WHERE sequence = 1), hash = (SELECT hash FROM disclosures WHERE sequence = 1) WHERE sequence = 2",
            2,
        ),
        ("DELETE FROM disclosures_by_grant WHERE sequence = 2", 2),
        ("INSERT INTO disclosures_by_grant VALUES ('grt_9', 2)", 4),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (store, intruder) = logged(folder.path());
        intruder.execute_batch(tampering).unwrap();
        let broken = store.check_disclosures().unwrap().broken;
        assert_eq!(
            broken.map(|broken| broken.sequence),
            Some(place),
            "{tampering}"
        );
        // What comes later is still logged, and does not heal the break.
        store
            .log_disclosures(&[disclosure(4, &["grt_1"])], &[])
            .unwrap();
        assert!(
            store.check_disclosures().unwrap().broken.is_some(),
            "{tampering}"
        );
    }
}

#[test]
fn a_directory_of_the_first_format_keeps_everything_it_holds() {
    let made = tempfile::tempdir().unwrap();
    let messages = StreamRef::new(&connection("home"), &StreamName::parse("messages").unwrap());
    let key = RecordKey::single("m1").unwrap();
    let store = open(made.path());
    add_mail(&store, "home");
    let change = Change {
        stream: messages.stream.clone(),
        key: key.clone(),
        emitted_at: "2026-05-01T00:00:00Z".to_owned(),
        op: ChangeOp::Upsert(RecordBody::parse(r#"{"id":"m1","subject":"Kept"}"#).unwrap()),
    };
    store.write(&messages.connection, vec![change]).unwrap();
    drop(store);

    let old = tempfile::tempdir().unwrap();
    in_first_format(made.path(), old.path());
    let store = open(old.path());
    let record = store.get(&messages, &key).unwrap().unwrap();
    assert_eq!(record.body, r#"{"id":"m1","subject":"Kept"}"#);
    assert!(store.grants().unwrap().is_empty());
    let one = grant("grt_1", &[("messages", &["home"])]);
    store.approve(&approval(None, vec![one], 1)).unwrap();
    drop(store);
    assert_eq!(open(old.path()).grants().unwrap().len(), 1);
}

/// Copies what the first format knows into a database that never heard of a second.
fn in_first_format(from: &Path, to: &Path) {
    let old = Connection::open(to.join("records.db")).unwrap();
    old.execute_batch(FIRST_FORMAT).unwrap();
    old.execute(
        "ATTACH ?1 AS made",
        [from.join("records.db").to_str().unwrap()],
    )
    .unwrap();
    let copies: Vec<String> = old
        .prepare(
            "SELECT 'INSERT INTO main.' || t.name || '(' || group_concat(c.name) || ') SELECT '
                 || group_concat(c.name) || ' FROM made.' || t.name
             FROM main.sqlite_schema AS t, pragma_table_info(t.name, 'main') AS c
             WHERE t.type = 'table' AND t.name IN (SELECT name FROM made.sqlite_schema WHERE name NOT LIKE 'sqlite%')
             GROUP BY t.rowid",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    old.execute_batch(&copies.join(";")).unwrap();
    old.execute_batch("DETACH made; PRAGMA user_version = 1; PRAGMA application_id = 0x70647070")
        .unwrap();
}
