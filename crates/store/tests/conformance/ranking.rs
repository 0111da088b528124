//! Paging through a ranking: every hit once, in one order, however it is cut.

use std::collections::BTreeSet;

use store::Store;
use store::records::Change;
use store::search::{Scope, SearchRequest};

use crate::fixture::{
    MAIL, Work, add, add_mail, compound, delete, key, message, message_with, messages,
    on_every_backend, on_every_mailbox, put_at, request, scope, score, write,
};

/// Every hit of a ranking as stream and key with its score, read in pages of one size.
fn paged(store: &dyn Store, query: &str, scopes: &[Scope], limit: usize) -> Vec<(String, f32)> {
    let mut request = SearchRequest {
        limit,
        ..request(query, scopes.to_vec())
    };
    let mut hits = Vec::new();
    loop {
        let answer = store.search(&request).unwrap();
        assert!(!answer.ranking_changed, "{query}");
        assert!(answer.hits.len() <= limit);
        request.after = answer.hits.last().map(|hit| hit.position);
        hits.extend(answer.hits.iter().map(|hit| {
            let place = (hit.stream.connection.as_str(), hit.stream.stream.as_str());
            let name = format!("{place:?} {}", hit.record.key);
            (name, score(hit))
        }));
        if !answer.has_more {
            assert_eq!(answer.total, Some(hits.len() as u64), "{query}");
            return hits;
        }
        assert_eq!(answer.hits.len(), limit);
    }
}

/// Asserts that pages of several sizes give the one full ranking, without repeats.
fn assert_pages(store: &dyn Store, query: &str, scopes: &[Scope], expected: usize) {
    let whole = paged(store, query, scopes, 10_000);
    assert_eq!(whole.len(), expected, "{query}");
    let names: BTreeSet<&str> = whole.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), expected, "{query}: a hit came twice");
    assert!(whole.is_sorted_by(|(_, one), (_, next)| one >= next));
    for limit in [3, 7, 50] {
        let pages = paged(store, query, scopes, limit);
        let again: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let lost: Vec<&&str> = names.difference(&again).collect();
        assert!(lost.is_empty(), "{query} in pages of {limit}: {lost:?}");
        assert_eq!(
            pages.len(),
            whole.len(),
            "{query} in pages of {limit}: repeats"
        );
    }
}

#[test]
fn equal_scores_are_paged_without_repeats_or_losses() {
    on_every_mailbox(|store| {
        for batch in 0..3 {
            let same = |at: usize| message(&format!("m{batch}-{at}"), "same words", "here");
            store.put((0..40).map(same).collect());
            store.settle_index().unwrap();
        }
        store.put(
            (0..40)
                .step_by(3)
                .map(|at| delete("messages", &format!("m1-{at}")))
                .collect(),
        );
        for query in [
            "same",
            "same words",
            "\"same words\"",
            "sam*",
            "same -absent",
        ] {
            assert_pages(store, query, &[messages("work")], 106);
        }
    });
}

/// Three streams, of which different fields may match, so that several queries make one ranking.
fn add_several(store: &dyn Store) -> Vec<Scope> {
    add_mail(store, "work");
    add_mail(store, "home");
    for batch in 0..2 {
        let in_subject = |at: usize| message(&format!("w{batch}-{at}"), "harbour", "harbour fog");
        let in_body = |at: usize| message(&format!("h{batch}-{at}"), "harbour", "harbour");
        let event = |at: usize| -> Change {
            let key = compound(&[&format!("{batch}"), &format!("{at}")]);
            put_at("events", key, r#"{"note":"harbour"}"#)
        };
        store.put((0..15).map(in_subject).collect());
        write(store, "home", (0..15).map(in_body).collect());
        write(store, "home", (0..15).map(event).collect());
        store.settle_index().unwrap();
    }
    vec![
        scope("work", "messages", &["subject"]),
        scope("home", "messages", &["body"]),
        scope("home", "events", &["note"]),
    ]
}

#[test]
fn several_groups_of_scopes_are_paged_as_one_ranking() {
    on_every_backend(|store| {
        let narrow = add_several(store);
        assert_pages(store, "harbour", &narrow, 90);
        let whole = [
            messages("work"),
            messages("home"),
            scope("home", "events", &["note"]),
        ];
        assert_pages(store, "harbour", &whole, 90);
        assert_pages(store, "harb* -fog", &whole, 60);
        assert_pages(store, "fog", &narrow, 0);
        let mixed = [
            scope("work", "messages", &["subject"]),
            messages("home"),
            scope("home", "events", &["note"]),
        ];
        assert_pages(store, "harbour", &mixed, 90);
    });
}

/// One of twenty texts with many words from few, so that sums are many, close and often equal.
fn varied(at: usize) -> Change {
    let kind = at % 20;
    let word = |step: usize| format!("term{}", (kind * 7 + step * step * 3 + kind * step) % 23);
    let subject: Vec<String> = (0..kind % 4).map(word).collect();
    let body: Vec<String> = (3..6 + kind % 13).map(word).collect();
    message(&format!("m{at:04}"), &subject.join(" "), &body.join(" "))
}

#[test]
fn sums_over_many_words_and_fields_are_paged_without_repeats_or_losses() {
    on_every_mailbox(|store| {
        for batch in 0..3 {
            let range = batch * 130..(batch + 1) * 130;
            store.put(range.map(varied).collect());
            store.settle_index().unwrap();
        }
        let changed = (0..390).step_by(5).map(|at| {
            let mut change = varied(at + 3);
            change.key = key(&format!("m{at:04}"));
            change
        });
        store.put(changed.collect());
        for query in ["term*", "term1*", "term1* -term5", "term1* term2*"] {
            let scopes = [messages("work")];
            let expected = paged(store, query, &scopes, 10_000).len();
            assert!(expected > 50, "{query}: {expected}");
            assert_pages(store, query, &scopes, expected);
        }
    });
}

/// The mail declaration with words in six fields.
fn wide_mail() -> String {
    let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
    let names = ["subject", "body", "t1", "t2", "t3", "t4"];
    for name in &names[2..] {
        document["streams"][0]["schema"]["properties"][name] =
            serde_json::json!({ "type": "string" });
    }
    document["streams"][0]["query"]["search"]["lexical_fields"] = serde_json::json!(names);
    document.to_string()
}

#[test]
fn one_word_in_many_fields_is_paged_without_repeats_or_losses() {
    on_every_backend(|store| {
        add(store, &wide_mail(), "work");
        let record = |at: usize| {
            let text = |field: usize| {
                let count = (at % 13 * (field + 2) + field) % 4;
                format!(
                    "\"{}filler {}\"",
                    "word ".repeat(count),
                    "pad ".repeat(at % 5 + field)
                )
            };
            let members = format!(
                "\"subject\":{},\"body\":{},\"t1\":{},\"t2\":{},\"t3\":{},\"t4\":{}",
                text(0),
                text(1),
                text(2),
                text(3),
                text(4),
                text(5)
            );
            message_with(&format!("m{at:03}"), &members)
        };
        for batch in 0..3 {
            store.put((batch * 110..(batch + 1) * 110).map(record).collect());
            store.settle_index().unwrap();
        }
        let wide = [scope(
            "work",
            "messages",
            &["subject", "body", "t1", "t2", "t3", "t4"],
        )];
        let few = [scope("work", "messages", &["subject", "t2", "t4"])];
        for (query, scopes) in [
            ("word", &wide),
            ("word", &few),
            ("word filler", &wide),
            ("wor*", &few),
        ] {
            let expected = paged(store, query, scopes, 10_000).len();
            assert!(expected > 100, "{query}: {expected}");
            assert_pages(store, query, scopes, expected);
        }
    });
}

#[test]
fn a_ranking_that_moved_on_says_so_and_goes_on() {
    // Decision 15.
    on_every_mailbox(|store| {
        let same = |at: usize| message(&format!("m{at:02}"), "steady", "");
        store.put((0..20).map(same).collect());
        let mut request = SearchRequest {
            limit: 5,
            ..request("steady", vec![messages("work")])
        };
        let first = store.search(&request).unwrap();
        assert!(first.has_more && !first.ranking_changed);
        store.put(vec![message("other", "unrelated", "")]);
        request.after = first.hits.last().map(|hit| hit.position);
        let second = store.search(&request).unwrap();
        assert!(second.ranking_changed);
        assert_eq!(second.total, Some(20));
        // From there on the ranking is the new one.
        request.after = second.hits.last().map(|hit| hit.position).or(request.after);
        let third = store.search(&request).unwrap();
        assert_eq!(third.ranking_changed, second.hits.is_empty());
    });
}

#[test]
fn writes_between_two_pages_lose_no_hit_that_stayed() {
    on_every_mailbox(|store| {
        let same = |at: usize| message(&format!("m{at:02}"), "steady", "");
        store.put((0..20).map(same).collect());
        let mut request = SearchRequest {
            limit: 5,
            ..request("steady", vec![messages("work")])
        };
        let mut seen = BTreeSet::new();
        for round in 0.. {
            let answer = store.search(&request).unwrap();
            seen.extend(answer.hits.iter().map(|hit| hit.record.key.to_string()));
            if !answer.has_more {
                break;
            }
            request.after = answer.hits.last().map(|hit| hit.position);
            store.put(vec![message(&format!("x{round}"), "unrelated", "")]);
        }
        assert_eq!(seen.len(), 20, "{seen:?}");
    });
}

#[test]
fn a_limit_of_nothing_still_counts() {
    on_every_mailbox(|store| {
        store.put(vec![message("a", "x", ""), message("b", "x", "")]);
        let none = SearchRequest {
            limit: 0,
            ..request("x", vec![messages("work")])
        };
        let answer = store.search(&none).unwrap();
        assert_eq!((answer.hits.len(), answer.has_more), (0, true));
        assert_eq!(answer.total, Some(2));
        let uncounted = SearchRequest {
            count: false,
            limit: usize::MAX,
            ..none
        };
        let answer = store.search(&uncounted).unwrap();
        assert_eq!((answer.hits.len(), answer.total), (2, None));
    });
}
