//! The words of a query: what they find, and what is gone is not found.

use contract::scalar::Scalar;
use store::Store;
use store::records::Applied;
use store::search::Test;

use crate::fixture::{
    Work, delete, filtered, message, message_with, messages, on_every_mailbox, score, search,
};

#[test]
fn a_written_record_is_found_at_once_and_a_deleted_one_is_not() {
    on_every_mailbox(|store| {
        let applied = store.put(vec![
            message("m1", "Overdraft fee", "The café charged 42 EUR."),
            message("m2", "Lunch", "東京都庁で会いましょう"),
        ]);
        assert_eq!(applied, [Applied::Added, Applied::Added]);
        assert_eq!(store.found("overdraft"), ["m1"]);
        assert_eq!(store.found("京都"), ["m2"]);
        let applied = store.put(vec![
            delete("messages", "m1"),
            message("m2", "Lunch", "moved to Kyoto"),
        ]);
        assert_eq!(applied, [Applied::Deleted, Applied::Updated]);
        assert!(store.found("overdraft").is_empty());
        assert!(store.found("京都").is_empty());
        assert_eq!(store.found("kyoto"), ["m2"]);
        store.put(vec![message("m1", "Overdraft again", "")]);
        assert_eq!(store.found("overdraft"), ["m1"]);
    });
}

/// Asserts what each query finds among the same records.
fn assert_finds(store: &dyn Store, expectations: &[(&str, &[&str])]) {
    for (query, keys) in expectations {
        let hits = store.found_sorted(query);
        assert_eq!(hits, *keys, "{query}");
    }
}

#[test]
fn a_prefix_finds_every_word_that_begins_so_however_many_there_are() {
    on_every_mailbox(|store| {
        let many = |at: usize| message(&format!("m{at:03}"), &format!("word{at:03}x"), "same");
        store.put((0..150).map(many).collect());
        store.settle_index().unwrap();
        store.put((150..300).map(many).collect());
        store.put(vec![message("z", "wort", "same")]);
        // Few enough to be ranked word by word, and far more than that.
        assert_eq!(store.found("word00*").len(), 10);
        assert_eq!(store.found("word*").len(), 300);
        assert_eq!(store.found("WOR*").len(), 301);
        assert_eq!(store.found("wor* -word*"), ["z"]);
        assert_eq!(store.found("word* -word0*").len(), 200);
        assert_eq!(store.found("\"word29*\"").len(), 10);
        assert_eq!(store.found("same wor* word150x"), ["m150"]);
    });
}

#[test]
fn a_phrase_may_end_in_a_prefix_with_very_many_words() {
    on_every_mailbox(|store| {
        let many = |at: usize| message(&format!("m{at:03}"), "", &format!("dear reader{at:03}x"));
        store.put((0..200).map(many).collect());
        store.put(vec![message("z", "", "reader dear")]);
        assert_eq!(store.found("\"dear read*\"").len(), 200);
        assert_eq!(store.found("\"dear reader10*\"").len(), 10);
        assert_eq!(store.found("dear -\"dear read*\""), ["z"]);
    });
}

// TR-03: the end of a phrase stands for so many words at most, counted among the visible ones, and the answer says so.
#[test]
fn a_phrase_whose_end_stands_for_too_many_words_says_so() {
    on_every_mailbox(|store| {
        let many = |at: usize| {
            let kept = if at < 250 { "visible" } else { "hidden" };
            message_with(
                &format!("m{at:04}"),
                &format!("\"from_email\":\"{kept}\",\"body\":\"dear order1{at:04}\""),
            )
        };
        store.put((0..900).rev().map(many).collect());
        let answer = search(store, "\"dear order1*\"", vec![messages("work")]);
        assert!(answer.prefix_truncated);
        let mut keys: Vec<_> = answer
            .hits
            .iter()
            .map(|hit| hit.record.key.to_string())
            .collect();
        keys.sort();
        assert_eq!(keys.len(), 256);
        assert_eq!(keys.last().map(String::as_str), Some("m0255"));
        for query in ["\"dear order1002*\"", "order1*", "\"dear order10042\""] {
            let answer = search(store, query, vec![messages("work")]);
            assert!(
                !answer.prefix_truncated && !answer.hits.is_empty(),
                "{query}"
            );
        }
        // Words of records outside the scope neither count nor take a place.
        let visible = || {
            let sender = Test::Equals(Scalar::Text("visible".to_owned()));
            filtered(messages("work"), "from_email", sender)
        };
        let answer = search(store, "\"dear order1*\"", vec![visible()]);
        assert!(!answer.prefix_truncated);
        assert_eq!(answer.hits.len(), 250);
        // Many such phrases share one bound.
        let greedy: Vec<String> = (0..16)
            .map(|at| format!("-\"dear order1{at:x}*\""))
            .collect();
        let query = format!("dear {}", greedy.join(" "));
        search(store, &query, vec![messages("work")]);
    });
}

#[test]
fn a_record_is_found_by_its_last_word_and_by_very_long_ones() {
    on_every_mailbox(|store| {
        let filler = "filler ".repeat(20_000);
        let long = "x".repeat(5_000);
        store.put(vec![
            message("deep", "", &format!("{filler}needle")),
            message("long", "", &format!("{long} after")),
        ]);
        assert_finds(
            store,
            &[
                ("needle", &["deep"]),
                ("\"filler needle\"", &["deep"]),
                ("after", &["long"]),
                (&long, &["long"]),
            ],
        );
    });
}

#[test]
fn the_best_match_comes_first_and_scores_never_rise() {
    on_every_mailbox(|store| {
        store.put(vec![
            message(
                "once",
                "lunch",
                "we talk about the budget and many other things in the room",
            ),
            message("often", "budget", "budget budget budget"),
            message("never", "lunch", "nothing"),
        ]);
        assert_eq!(store.found("budget"), ["often", "once"]);
        let answer = search(store, "lunch budget", vec![messages("work")]);
        assert_eq!(answer.hits.len(), 1);
        assert!(score(&answer.hits[0]) > 0.0);
        assert!(!answer.ranking_changed && answer.rebuilding.is_empty());
    });
}

#[test]
fn a_hit_is_the_record_as_stored() {
    on_every_mailbox(|store| {
        store.put(vec![message("m1", "verbatim", "")]);
        let answer = search(store, "verbatim", vec![messages("work")]);
        let hit = &answer.hits[0];
        let stored = store.get(&hit.stream, &hit.record.key).unwrap().unwrap();
        assert_eq!(hit.record, stored);
    });
}
