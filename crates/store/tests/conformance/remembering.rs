//! What authorization remembers: entries with an end, and changes that happen together or not at all.

use contract::time::Instant;
use store::registry::{Change, EntryKind, Expect};

use crate::fixture::on_every_reopened;

fn put(key: &str, document: &str, expect: Expect) -> Change<'static> {
    let put = Change::put(EntryKind::Code, key, document);
    put.until(Instant(100)).expecting(expect)
}

#[test]
fn an_entry_ends_at_its_time_and_survives_a_restart_until_then() {
    on_every_reopened(|open| {
        let first = open();
        assert!(
            first
                .apply(&[put("a", "{}", Expect::Absent)], Instant(0))
                .unwrap()
        );
        drop(first);
        let store = open();
        let entry = |now| store.entry(EntryKind::Code, "a", Instant(now)).unwrap();
        assert_eq!(entry(99).unwrap().document, "{}");
        assert_eq!(entry(100), None);
        assert_eq!(
            store.entry(EntryKind::Client, "a", Instant(0)).unwrap(),
            None
        );
        // What has ended does not stand in the way of a new one.
        assert!(
            store
                .apply(&[put("a", "2", Expect::Absent)], Instant(100))
                .unwrap()
        );
    });
}

#[test]
fn changes_happen_together_or_not_at_all() {
    on_every_reopened(|open| {
        let store = open();
        let now = Instant(0);
        assert!(store.apply(&[put("a", "1", Expect::Absent)], now).unwrap());
        let both = [put("b", "1", Expect::Absent), put("a", "2", Expect::Absent)];
        assert!(!store.apply(&both, now).unwrap());
        assert_eq!(store.entry(EntryKind::Code, "b", now).unwrap(), None);
        let swap = [
            put("a", "2", Expect::Revision(1)),
            put("b", "1", Expect::Absent),
        ];
        assert!(store.apply(&swap, now).unwrap());
        assert!(!store.apply(&swap, now).unwrap());
        let keys = |entries: Vec<store::registry::Entry>| {
            entries
                .into_iter()
                .map(|entry| entry.key)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            keys(store.entries(EntryKind::Code, None, 10, now).unwrap()),
            ["a", "b"]
        );
        assert_eq!(
            keys(store.entries(EntryKind::Code, Some("a"), 10, now).unwrap()),
            ["b"]
        );
    });
}

#[test]
fn a_removal_insists_on_what_it_saw() {
    on_every_reopened(|open| {
        let store = open();
        let now = Instant(0);
        let remove = |expect| Change::remove(EntryKind::Code, "a").expecting(expect);
        assert!(!store.apply(&[remove(Expect::Revision(1))], now).unwrap());
        assert!(store.apply(&[put("a", "1", Expect::Absent)], now).unwrap());
        assert!(!store.apply(&[remove(Expect::Revision(2))], now).unwrap());
        assert!(store.apply(&[remove(Expect::Revision(1))], now).unwrap());
        assert!(!store.apply(&[remove(Expect::Revision(1))], now).unwrap());
    });
}

#[test]
fn of_many_who_redeem_the_same_code_one_succeeds() {
    on_every_reopened(|open| {
        let store = open();
        let now = Instant(0);
        assert!(store.apply(&[put("a", "1", Expect::Absent)], now).unwrap());
        let won: usize = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let change = Change::remove(EntryKind::Code, "a");
                        let change = change.expecting(Expect::Revision(1));
                        usize::from(store.apply(&[change], now).unwrap())
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    });
}
