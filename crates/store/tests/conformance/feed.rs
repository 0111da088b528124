//! The changes feed: who follows it from any bookmark ends up with exactly what the stream holds.

use std::collections::BTreeMap;

use proptest::prelude::*;
use store::records::{ChangeEntry, ChangesPage, ChangesRequest};
use store::{Store, StoreError};

use crate::fixture::{
    Work, add_ledger, add_mail, cases, connection, delete, message, message_with, on_every_mailbox,
    put, stream, write,
};

fn page(
    store: &dyn Store,
    since: u64,
    until: Option<u64>,
    after: u64,
    limit: usize,
) -> ChangesPage {
    let request = ChangesRequest {
        since,
        until,
        after,
        every_version: false,
        limit,
    };
    store
        .changes(&stream("work", "messages"), &request)
        .unwrap()
}

/// Every entry between two bookmarks, read in pages of one size, and the horizon.
fn follow(
    store: &dyn Store,
    since: u64,
    until: Option<u64>,
    limit: usize,
) -> (Vec<ChangeEntry>, u64) {
    let mut entries: Vec<ChangeEntry> = Vec::new();
    let mut horizon = until;
    loop {
        let after = entries.last().map_or(0, |entry| entry.version);
        let page = page(store, since, horizon, after, limit);
        assert!(page.entries.len() <= limit);
        assert!(horizon.is_none_or(|horizon| horizon == page.until));
        horizon = Some(page.until);
        let more = page.has_more;
        assert!(!more || page.entries.len() == limit);
        entries.extend(page.entries);
        if !more {
            return (entries, page.until);
        }
    }
}

fn bookmark(store: &dyn Store) -> u64 {
    page(store, 0, None, 0, 1).until
}

fn keys(entries: &[ChangeEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

#[test]
fn the_horizon_stays_fixed_while_writes_go_on() {
    on_every_mailbox(|store| {
        store.put(vec![
            message("a", "1", ""),
            message("b", "1", ""),
            message("c", "1", ""),
        ]);
        let first = page(store, 0, None, 0, 1);
        assert!(first.has_more);
        store.put(vec![
            message("b", "2", ""),
            delete("messages", "c"),
            message("d", "1", ""),
        ]);
        let after = first.entries[0].version;
        let rest = page(store, 0, Some(first.until), after, 10);
        assert_eq!(
            (keys(&rest.entries), rest.has_more),
            (vec!["b", "c"], false)
        );
        assert!(rest.entries[0].current.as_ref().unwrap().contains("\"1\""));
        assert!(rest.entries[1].current.is_some());
        let (next, _) = follow(store, first.until, None, 10);
        assert_eq!(keys(&next), ["b", "c", "d"]);
    });
}

#[test]
fn what_happens_in_other_streams_and_connections_is_not_in_the_feed() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("a", "1", "")]);
        let since = bookmark(store);
        write(
            store,
            "home",
            vec![message("a", "2", ""), message("x", "1", "")],
        );
        let (entries, until) = follow(store, since, None, 10);
        assert_eq!((entries.len(), until), (0, since));
    });
}

#[test]
fn a_bookmark_from_before_a_purge_expires_and_the_beginning_never_does() {
    // Decision 28.
    on_every_mailbox(|store| {
        store.put(vec![message("a", "1", ""), message("b", "1", "")]);
        let early = bookmark(store);
        store.put(vec![delete("messages", "a"), message("b", "2", "")]);
        assert_eq!(store.purge().unwrap().tombstones, 1);
        let request = ChangesRequest::since(early, 10);
        let error = store
            .changes(&stream("work", "messages"), &request)
            .unwrap_err();
        assert!(matches!(error, StoreError::BookmarkExpired), "{error}");
        let (entries, until) = follow(store, 0, None, 1);
        assert_eq!(keys(&entries), ["b"]);
        assert!(follow(store, until, None, 1).0.is_empty());
    });
}

#[test]
fn a_reader_who_has_seen_everything_goes_on_after_a_purge() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("a", "1", ""), delete("messages", "a")]);
        // The store's last change is not this stream's.
        write(store, "home", vec![message("b", "1", "")]);
        store.purge().unwrap();
        let (_, until) = follow(store, 0, None, 10);
        store.put(vec![message("c", "1", "")]);
        assert_eq!(keys(&follow(store, until, None, 10).0), ["c"]);
    });
}

#[test]
fn a_purge_expires_no_bookmark_of_a_stream_without_tombstones() {
    on_every_mailbox(|store| {
        add_ledger(store, "books");
        store.put(vec![message("a", "1", "")]);
        let since = bookmark(store);
        store.put(vec![message("a", "2", ""), message("b", "1", "")]);
        write(
            store,
            "books",
            vec![put("entries", r#"{"id":"x"}"#), delete("entries", "x")],
        );
        assert_eq!(store.purge().unwrap().tombstones, 1);
        assert_eq!(store.purge().unwrap().tombstones, 0);
        let (entries, _) = follow(store, since, None, 10);
        assert_eq!(keys(&entries), ["a", "b"]);
        assert!(entries[0].previous.is_some());
    });
}

#[test]
fn a_bookmark_of_a_removed_connection_expires_when_the_id_comes_back() {
    on_every_mailbox(|store| {
        store.put(vec![message("a", "1", "")]);
        let since = bookmark(store);
        store.remove_connection(&connection("work")).unwrap();
        add_mail(store, "work");
        store.put(vec![message("b", "1", "")]);
        // Going on would leave the reader with `a` for ever.
        let request = ChangesRequest::since(since, 10);
        let answer = store.changes(&stream("work", "messages"), &request);
        assert!(
            matches!(answer, Err(StoreError::BookmarkExpired)),
            "{answer:?}"
        );
    });
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Elsewhere,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u8..7, 0_u8..3).prop_map(|(key, content)| Step::Put(key, content)),
        3 => (0_u8..7).prop_map(Step::Delete),
        1 => Just(Step::Elsewhere),
    ]
}

type State = BTreeMap<String, String>;

/// Applies a batch to the store and to the model.
fn take(store: &dyn Store, state: &mut State, batch: &[Step]) {
    let mut changes = Vec::new();
    for step in batch {
        match step {
            Step::Put(key, content) => {
                let id = format!("k{key}");
                let change = message_with(&id, &format!("\"size_bytes\":{content}"));
                changes.push(change);
                state.insert(
                    id.clone(),
                    format!("{{\"id\":\"{id}\",\"size_bytes\":{content}}}"),
                );
            }
            Step::Delete(key) => {
                let id = format!("k{key}");
                changes.push(delete("messages", &id));
                state.remove(&id);
            }
            Step::Elsewhere => {
                let change = message_with("x", &format!("\"size_bytes\":{}", bookmark(store)));
                write(store, "home", vec![change, delete("messages", "x")]);
            }
        }
    }
    store.put(changes);
}

/// Follows the feed from one state and must arrive at the other.
fn arrive(
    store: &dyn Store,
    (since, before): &(u64, State),
    (until, after): &(u64, State),
    limit: usize,
) {
    let (entries, horizon) = follow(store, *since, Some(*until), limit);
    assert_eq!(horizon, *until);
    let mut state = before.clone();
    let mut last = *since;
    for entry in entries {
        assert!(last < entry.version && entry.version <= *until);
        last = entry.version;
        let key = entry.key.to_string();
        let known = before.get(&key).filter(|_| *since > 0);
        assert_eq!(entry.previous.as_ref(), known, "{key} since {since}");
        assert_eq!(
            entry.current.as_ref(),
            after.get(&key),
            "{key} until {until}"
        );
        match entry.current {
            Some(json) => state.insert(key, json),
            None => state.remove(&key),
        };
    }
    assert_eq!(&state, after);
}

#[test]
fn following_the_feed_from_any_bookmark_to_any_later_one_rebuilds_the_stream() {
    let config = cases(16);
    let batches = prop::collection::vec(prop::collection::vec(step(), 0..8), 1..8);
    proptest!(config, |(batches in batches, limit in 1_usize..5)| {
        on_every_mailbox(|store| {
            add_mail(store, "home");
            let mut states = vec![(0, State::new())];
            let mut state = State::new();
            for batch in &batches {
                take(store, &mut state, batch);
                states.push((bookmark(store), state.clone()));
            }
            for (at, from) in states.iter().enumerate() {
                for to in &states[at..] {
                    arrive(store, from, to, limit);
                }
            }
        });
    });
}

#[test]
fn each_version_has_an_entry_where_asked_and_history_runs_back_from_any_of_them() {
    on_every_mailbox(|store| {
        for subject in ["one", "two", "three"] {
            store.put(vec![message("a", subject, "")]);
        }
        store.put(vec![message("b", "one", "")]);
        store.put(vec![delete("messages", "a")]);
        let place = stream("work", "messages");
        let request = ChangesRequest {
            every_version: true,
            ..ChangesRequest::since(0, 10)
        };
        let entries = store.changes(&place, &request).unwrap().entries;
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.key.as_str(), entry.current.is_some(), entry.revised))
            .collect();
        let first = ("a", true, true);
        assert_eq!(
            told,
            [first, first, first, ("b", true, false), ("a", false, true)]
        );
        let versions: Vec<u64> = entries.iter().map(|entry| entry.version).collect();
        let of_a = [versions[4], versions[2], versions[1], versions[0]];
        for (at, upto) in of_a.into_iter().enumerate() {
            let history = store
                .history(&place, &entries[0].key, upto, 2)
                .unwrap()
                .iter()
                .map(|revision| revision.version)
                .collect::<Vec<_>>();
            assert_eq!(history, of_a[at..of_a.len().min(at + 2)]);
        }
        let [a, b] = [&entries[0].key, &entries[3].key].map(|key| store.get(&place, key).unwrap());
        assert!(a.is_none());
        let b = b.unwrap();
        assert_eq!((b.version, b.revised), (versions[3], false));
        store.put(vec![message("a", "four", "")]);
        let a = store.get(&place, &entries[0].key).unwrap().unwrap();
        assert!(a.revised && a.version > versions[4]);
    });
}
