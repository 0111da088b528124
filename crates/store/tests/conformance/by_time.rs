//! Hits in the order of their own time: exactly as a plain sort has them, page by page.

use proptest::prelude::*;
use store::Store;
use store::records::Direction;
use store::search::{Scope, SearchOrder, SearchRequest};

use crate::fixture::{
    Work, add_mail, cases, compound, delete, field, message_with, messages, on_every_backend,
    on_every_mailbox, put_at, request, scope, write,
};

fn by_time(direction: Direction, limit: usize) -> SearchRequest {
    let timed = |id: &str| Scope {
        times: vec![field("due_on"), field("size_bytes"), field("received_at")],
        ..messages(id)
    };
    let scopes = vec![
        timed("work"),
        timed("home"),
        scope("work", "events", &["note"]),
    ];
    SearchRequest {
        order: SearchOrder::Time(direction),
        limit,
        ..request("tea", scopes)
    }
}

fn pages(store: &dyn Store, mut request: SearchRequest, mut between: impl FnMut()) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let answer = store.search(&request).unwrap();
        names.extend(answer.hits.iter().map(|hit| {
            format!(
                "{}/{}",
                hit.stream.connection,
                hit.record.key.ordering_form()
            )
        }));
        request.after = answer.hits.last().map(|hit| hit.position);
        if !answer.has_more {
            return names;
        }
        between();
    }
}

/// A record: its connection, its key, and its time if it has one.
type Timed = (bool, u8, Option<u8>);

/// The order of a plain sort. Records without a time come last.
fn sorted(records: &[Timed], direction: Direction) -> Vec<String> {
    let mut sorted: Vec<(bool, i16, String)> = records
        .iter()
        .map(|(home, key, time)| {
            let time = time.map(i16::from);
            let rank = match direction {
                Direction::Ascending => time,
                Direction::Descending => time.map(|time| -time),
            };
            let connection = if *home { "home" } else { "work" };
            (
                time.is_none(),
                rank.unwrap_or(0),
                format!("{connection}/m{key:03}"),
            )
        })
        .collect();
    sorted.sort();
    sorted.into_iter().map(|(_, _, name)| name).collect()
}

proptest! {
    #![proptest_config(cases(12))]

    // AN-01
    #[test]
    fn hits_by_time_are_those_of_a_plain_sort_however_pages_are_cut(
        records in prop::collection::btree_map((any::<bool>(), 0_u8..60), prop::option::of(1_u8..9), 1..40),
        limit in 1_usize..9,
    ) {
        let records: Vec<Timed> = records.into_iter().map(|((home, key), time)| (home, key, time)).collect();
        on_every_backend(|store| {
            for id in ["work", "home"] {
                add_mail(store, id);
            }
            // Written in an order that is neither that of keys nor that of times.
            for (home, key, time) in records.iter().rev() {
                let time = time.map_or("null".to_owned(), |day| format!("\"2026-01-0{day}T00:00:00Z\""));
                let members = format!("\"body\":\"tea {key}\",\"received_at\":{time}");
                let connection = if *home { "home" } else { "work" };
                write(store, connection, vec![message_with(&format!("m{key:03}"), &members)]);
            }
            for direction in [Direction::Ascending, Direction::Descending] {
                let found = pages(store, by_time(direction, limit), || ());
                assert_eq!(found, sorted(&records, direction));
            }
        });
    }
}

#[test]
fn the_first_time_that_a_record_has_decides_and_numbers_are_no_times() {
    // AN-01
    on_every_mailbox(|store| {
        add_mail(store, "home");
        let times = [
            (
                "a",
                r#""body":"tea","due_on":"2026-01-02","received_at":"2026-01-09T00:00:00Z""#,
            ),
            ("b", r#""body":"tea","received_at":"2026-01-03T00:00:00Z""#),
            ("c", r#""body":"tea","size_bytes":9000000000000000"#),
        ];
        store.put(
            times
                .map(|(id, members)| message_with(id, members))
                .to_vec(),
        );
        let note = r#"{"day":"d","number":"1","note":"tea"}"#;
        store.put(vec![put_at("events", compound(&["d", "1"]), note)]);
        let found = pages(store, by_time(Direction::Ascending, 1), || ());
        assert_eq!(found, ["work/a", "work/b", "work/d\u{1}1", "work/c"]);
    });
}

#[test]
fn hits_are_counted_by_the_year_of_their_time_in_every_order() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        let timed = |id: &str, time: &str| {
            let members = format!(r#""body":"tea","received_at":"{time}""#);
            message_with(id, &members)
        };
        // The year is that of UTC.
        let own = ["2025-12-31T23:59:59Z", "2026-01-01T00:30:00+01:00"];
        let own = own.iter().zip(["a", "b"]).map(|(time, id)| timed(id, time));
        let untimed = message_with("c", r#""body":"tea""#);
        store.put(own.chain([untimed]).collect());
        let newer = timed("d", "2026-06-01T00:00:00Z");
        write(
            store,
            "home",
            vec![newer, message_with("e", r#""body":"milk""#)],
        );
        let orders = [
            SearchOrder::Relevance,
            SearchOrder::Time(Direction::Descending),
        ];
        for order in orders {
            let request = SearchRequest {
                order,
                by_year: true,
                ..by_time(Direction::Ascending, 1)
            };
            let answer = store.search(&request).unwrap();
            assert_eq!(answer.by_year, [(2025, 2), (2026, 1)]);
            assert_eq!(answer.total, Some(4));
            let by_stream: Vec<u64> = answer.by_stream.iter().map(|one| one.1).collect();
            assert_eq!(by_stream, [3, 1, 0]);
        }
        let plain = store.search(&by_time(Direction::Ascending, 1)).unwrap();
        assert!(plain.by_year.is_empty());
    });
}

#[test]
fn pages_by_time_go_on_where_they_were_while_records_come_and_go() {
    // AN-01
    on_every_mailbox(|store| {
        add_mail(store, "home");
        let put = |id: &str, day: u8| {
            let members = format!(r#""body":"tea","received_at":"2026-01-{day:02}T00:00:00Z""#);
            store.put(vec![message_with(id, &members)]);
        };
        for day in 1..8 {
            put(&format!("m{day}"), day);
        }
        let mut turn = 0;
        let found = pages(store, by_time(Direction::Descending, 2), || {
            turn += 1;
            // Newer than what was shown, then the last hit of a page goes.
            put(&format!("new{turn}"), 20 + turn);
            store.put(vec![delete(
                "messages",
                ["m6", "m4", "m2"][usize::from(turn) - 1],
            )]);
        });
        assert_eq!(
            found,
            ["m7", "m6", "m5", "m4", "m3", "m2", "m1"].map(|id| format!("work/{id}"))
        );
    });
}
