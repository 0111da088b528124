//! The disclosure log, kept in part: what is left is provable, and says what is missing before it.

use contract::id::{ClientId, GrantId};
use contract::time::Instant;
use rusqlite::Connection;
use store::grants::{ChainCheck, Disclosure};
use store::keeping::{Keep, KeepRules};
use store::{Grants, Keeping, Store, StoreError};

use crate::fixture::{instant, on_every_reopened, open};

const HOUR: i64 = 3_600_000_000;

/// Logs calls, one an hour up to noon, where the clock stands.
fn log(store: &dyn Store, calls: i64) {
    let noon = instant("2026-06-01T12:00:00Z");
    let call = |ago: i64| Disclosure {
        bytes: None,
        at: Instant(noon.0 - ago * HOUR),
        grant_ids: vec![GrantId::parse("grt_1").unwrap()],
        client_id: ClientId::parse("agent").unwrap(),
        operation: "search".to_owned(),
        records: vec!["work/messages:m1".to_owned()],
        fields: vec!["subject".to_owned()],
    };
    let calls: Vec<Disclosure> = (0..calls).rev().map(call).collect();
    store.log_disclosures(&calls, &[]).unwrap();
}

fn keeping(log: Keep) -> KeepRules {
    KeepRules {
        log,
        ..KeepRules::default()
    }
}

fn whole(entries: u64, dropped: u64) -> ChainCheck {
    ChainCheck {
        entries,
        dropped,
        waiting: 0,
        broken: None,
    }
}

fn numbers(store: &dyn Store) -> Vec<u64> {
    let grant = GrantId::parse("grt_1").unwrap();
    let all = store.disclosures(None, None, 100).unwrap();
    let of_grant = store.disclosures(Some(&grant), None, 100).unwrap();
    assert_eq!(all, of_grant);
    all.iter().map(|entry| entry.sequence).collect()
}

#[test]
fn the_beginning_of_the_log_is_dropped_by_rule_and_the_rest_stays_provable() {
    on_every_reopened(|open| {
        // TR-40: by number and by time; the log itself says what was dropped.
        let store = open();
        let drop_old = |rule| store.drop_old(keeping(rule)).unwrap().log_entries;
        log(&*store, 10);
        assert_eq!(drop_old(Keep::All), 0);
        assert_eq!(drop_old(Keep::Newest(10)), 0);
        assert_eq!(store.check_disclosures().unwrap(), whole(10, 0));
        assert_eq!(drop_old(Keep::Newest(8)), 2);
        assert_eq!(numbers(&*store), [10, 9, 8, 7, 6, 5, 4, 3]);
        // The eight, and the entry that says so.
        assert_eq!(store.check_disclosures().unwrap(), whole(9, 2));
        assert_eq!(drop_old(Keep::For(3 * HOUR)), 4);
        assert_eq!(numbers(&*store), [10, 9, 8, 7]);
        assert_eq!(store.check_disclosures().unwrap(), whole(6, 6));
        assert_eq!(drop_old(Keep::For(3 * HOUR)), 0);
        log(&*store, 1);
        assert_eq!(drop_old(Keep::Newest(0)), 5);
        assert_eq!(
            drop_old(Keep::Newest(0)),
            0,
            "what says so is no disclosure"
        );
        drop(store);
        let store = open();
        assert_eq!(store.check_disclosures().unwrap(), whole(1, 13));
        log(&*store, 2);
        assert_eq!(store.check_disclosures().unwrap(), whole(3, 13));
        assert_eq!(store.grown().unwrap().log_entries, 3);
    });
}

#[test]
fn what_was_not_dropped_by_rule_is_missed() {
    // TR-40: whoever takes entries out cannot pass it off as the owner's rule without an entry that says so.
    let tampered = [
        "DELETE FROM disclosures WHERE sequence = 7",
        "DELETE FROM disclosures WHERE sequence = (SELECT max(sequence) FROM disclosures)",
        "UPDATE disclosures SET entry = replace(entry, 'subject', 'nothing') WHERE sequence = 8",
        "DELETE FROM meta WHERE name = 'disclosures_dropped'",
        "UPDATE meta SET value = zeroblob(40) WHERE name = 'disclosures_dropped'",
        // Two more entries go, and the chain is made to begin behind them.
        "UPDATE meta SET value = (SELECT CAST(unhex(printf('%016x', sequence)) || hash AS BLOB) FROM disclosures WHERE sequence = 7)
         WHERE name = 'disclosures_dropped';
         DELETE FROM disclosures WHERE sequence <= 7; DELETE FROM disclosures_by_grant WHERE sequence <= 7",
    ];
    for sql in tampered {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        log(&store, 10);
        store.drop_old(keeping(Keep::Newest(5))).unwrap();
        assert_eq!(store.check_disclosures().unwrap(), whole(6, 5));
        let intruder = Connection::open(folder.path().join("records.db")).unwrap();
        intruder.execute_batch(sql).unwrap();
        assert!(store.check_disclosures().unwrap().broken.is_some(), "{sql}");
    }
}

#[test]
fn nothing_is_dropped_from_a_log_that_is_broken() {
    // TR-40: dropping does not hide that an entry was changed.
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    log(&store, 10);
    let intruder = Connection::open(folder.path().join("records.db")).unwrap();
    let sql = "UPDATE disclosures SET entry = replace(entry, 'agent', 'tnega') WHERE sequence = 3";
    intruder.execute_batch(sql).unwrap();
    let refused = store.drop_old(keeping(Keep::Newest(5)));
    assert!(
        matches!(&refused, Err(StoreError::Engine { detail, .. }) if detail.contains("entry 3")),
        "{refused:?}"
    );
    assert_eq!(numbers(&store).len(), 10);
    // Up to there it can be.
    assert_eq!(
        store
            .drop_old(keeping(Keep::Newest(8)))
            .unwrap()
            .log_entries,
        2
    );
}
