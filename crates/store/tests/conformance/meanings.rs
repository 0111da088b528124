//! Searching by meaning: which records are near, what may be looked at, and vectors that come and go with their records.

use std::fs;
use std::path::Path;

use contract::time::TimeRange;
use proptest::prelude::*;
use store::meaning::{MeaningQuestion, NearestWindow};
use store::search::{Scope, SearchAnswer, SearchRequest, Test};
use store::{Catalog, EmbeddedStore, Meaning, Records, Store, StoreError};
use tempfile::TempDir;
use testkit::tiny_model;

use crate::fixture::{
    MAIL, Work, add_mail, cases, connection, delete, field, filtered, instant, key, mailbox,
    message, message_with, messages, open, request, scope, score, write,
};

/// A mailbox with a model.
fn meaningful() -> (TempDir, EmbeddedStore) {
    let (folder, store) = mailbox();
    add_model(&store, tiny_model::GROUPS);
    (folder, store)
}

pub(crate) fn add_model(store: &dyn Store, groups: &[&[&str]]) {
    let model = tempfile::tempdir().unwrap();
    tiny_model::write_with(model.path(), groups).unwrap();
    store.add_model(model.path()).unwrap();
}

pub(crate) fn embed(store: &dyn Store) {
    std::thread::scope(|scope| drop(scope.spawn(|| while store.embed_some().unwrap() {})));
}

fn question(text: &str, scopes: &[Scope], with_words: bool) -> MeaningQuestion {
    let fields = scopes
        .iter()
        .map(|scope| (scope.stream.clone(), scope.fields.clone()));
    MeaningQuestion {
        text: text.to_owned(),
        with_words,
        fields: fields.collect(),
    }
}

fn any_word(text: &str, scopes: Vec<Scope>) -> SearchRequest {
    SearchRequest {
        expression: text::Expression::parse(text),
        count: false,
        ..request("", scopes)
    }
}

pub(crate) fn ask(store: &dyn Store, text: &str, scopes: Vec<Scope>, words: bool) -> SearchAnswer {
    let question = question(text, &scopes, words);
    store
        .search_by_meaning(&any_word(text, scopes), &question)
        .unwrap()
}

fn keys(answer: &SearchAnswer) -> Vec<String> {
    answer
        .hits
        .iter()
        .map(|hit| hit.record.key.to_string())
        .collect()
}

/// The records that mean the same. Vectors of other words are not quite at right angles, so that those are near a little.
fn alike(answer: &SearchAnswer) -> Vec<String> {
    let alike = answer.hits.iter().filter(|hit| score(hit) > 0.5);
    alike.map(|hit| hit.record.key.to_string()).collect()
}

fn meant(store: &dyn Store, text: &str) -> Vec<String> {
    alike(&ask(store, text, vec![messages("work")], false))
}

fn hybrid(store: &dyn Store, text: &str) -> Vec<String> {
    keys(&ask(store, text, vec![messages("work")], true))
}

#[test]
fn records_are_found_that_share_no_word_with_the_question() {
    // FI-30
    let (_folder, store) = meaningful();
    store.put(vec![
        message("rail", "Tickets", "we took the locomotive"),
        message("ill", "Visit", "the physician was late"),
        message("none", "zzz", "qqq"),
    ]);
    embed(&store);
    let answer = ask(&store, "a doctor", vec![messages("work")], false);
    assert_eq!(keys(&answer)[..1], ["ill"]);
    assert_eq!(
        answer.hits[0].window,
        Some(NearestWindow {
            field: field("body"),
            start_chars: 0,
            end_chars: 22
        })
    );
    assert!(answer.behind.is_empty());
    // What means nothing to the model is near to nothing.
    assert!(!keys(&answer).contains(&"none".to_owned()));
    assert_eq!(meant(&store, "railway")[..1], ["rail"]);
}

#[test]
fn words_and_meaning_together_find_what_either_finds() {
    // FI-31
    let (_folder, store) = meaningful();
    store.put(vec![
        message("both", "supper", "supper in Lyon"),
        message("word", "Lyon", "a trip"),
        message("meaning", "x", "the dinner"),
    ]);
    embed(&store);
    let answer = ask(&store, "meal Lyon", vec![messages("work")], true);
    assert_eq!(keys(&answer), ["both", "word", "meaning"]);
    // What has a word shows it; only what has none shows what is near.
    let windows: Vec<bool> = answer.hits.iter().map(|hit| hit.window.is_some()).collect();
    assert_eq!(windows, [false, false, true]);
    assert_eq!(hybrid(&store, "meal -Lyon"), Vec::<String>::new());
    assert_eq!(hybrid(&store, "+trip meal"), ["word"]);
    assert_eq!(hybrid(&store, "nowhere automobile"), Vec::<String>::new());
}

#[test]
fn only_granted_fields_and_admitted_records_are_compared() {
    // FI-32
    let (_folder, store) = meaningful();
    store.put(vec![
        message_with(
            "a",
            r#""subject":"car","body":"dinner","received_at":"2026-01-01T00:00:00Z","seen":true"#,
        ),
        message_with(
            "b",
            r#""subject":"dinner","body":"car","received_at":"2026-02-01T00:00:00Z","seen":false"#,
        ),
        message_with(
            "c",
            r#""subject":"x","body":"car","received_at":"2026-03-01T00:00:00Z","seen":true"#,
        ),
    ]);
    embed(&store);
    let of = |scope: Scope| {
        let mut found = alike(&ask(&store, "vehicle", vec![scope], false));
        found.sort();
        found
    };
    assert_eq!(of(messages("work")), ["a", "b", "c"]);
    assert_eq!(of(scope("work", "messages", &["subject"])), ["a"]);
    assert_eq!(of(scope("work", "messages", &[])), Vec::<String>::new());
    let mut early = messages("work");
    let until = Some(instant("2026-02-15T00:00:00Z"));
    early.time = Some((field("received_at"), TimeRange { since: None, until }));
    assert_eq!(of(early), ["a", "b"]);
    let mut listed = messages("work");
    listed.keys = Some(vec![key("c"), key("nobody")]);
    assert_eq!(of(listed), ["c"]);
    let seen = Test::Equals(contract::scalar::Scalar::Boolean(true));
    assert_eq!(of(filtered(messages("work"), "seen", seen)), ["a", "c"]);
}

#[test]
fn what_changes_is_not_found_by_what_it_was() {
    // FI-33, FI-42
    let (_folder, store) = meaningful();
    store.put(["a", "b", "c"].map(|id| message(id, "car", "meal")).into());
    embed(&store);
    store.put(vec![
        message("a", "doctor", "meal"),
        delete("messages", "b"),
    ]);
    let answer = ask(&store, "vehicle", vec![messages("work")], false);
    assert_eq!(alike(&answer), ["c"]);
    assert_eq!(answer.behind.len(), 1);
    // Who sees only the body notices nothing of what was written to the subject.
    let scopes = vec![scope("work", "messages", &["body"])];
    let body = ask(&store, "supper", scopes, false);
    assert_eq!(alike(&body), ["a", "c"]);
    embed(&store);
    assert_eq!(meant(&store, "vehicle"), ["c"]);
    assert_eq!(meant(&store, "physician"), ["a"]);
    let answer = ask(&store, "x", vec![messages("work")], false);
    assert!(answer.behind.is_empty());
}

#[test]
fn a_long_field_is_found_by_its_best_window() {
    let (_folder, store) = meaningful();
    let filler = "qq ".repeat(40);
    store.put(vec![message(
        "long",
        "x",
        &format!("{filler}the surgeon {filler}"),
    )]);
    embed(&store);
    let answer = ask(&store, "doctor", vec![messages("work")], false);
    let window = answer.hits[0].window.clone().unwrap();
    // The word stands at the characters 124 to 131.
    assert!(window.start_chars > 60 && window.start_chars <= 124);
    assert!(window.end_chars >= 131 && window.end_chars < 200);
}

#[test]
fn vectors_are_made_in_pieces_and_kept_over_a_restart() {
    let (folder, store) = meaningful();
    store.put(
        (0..150)
            .map(|at| message(&format!("m{at}"), "car", ""))
            .collect(),
    );
    let status = store.meaning_status().unwrap().unwrap();
    assert_eq!(
        (status.embedded, status.records, status.vectors),
        (0, 150, 0)
    );
    assert!(store.embed_some().unwrap());
    let some = store.meaning_status().unwrap().unwrap();
    assert!(some.embedded > 0 && some.embedded < 150, "{some:?}");
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.meaning_status().unwrap().unwrap(), some);
    assert_eq!(meant(&store, "vehicle").len() as u64, some.embedded);
    embed(&store);
    let status = store.meaning_status().unwrap().unwrap();
    assert_eq!((status.embedded, status.vectors), (150, 150));
    drop(store);
    assert_eq!(meant(&open(folder.path()), "vehicle").len(), 150);
}

/// What is found after something happened to the file of vectors.
fn damaged(damage: impl FnOnce(&Path)) -> Vec<String> {
    let (folder, store) = meaningful();
    store.put(
        (0..300)
            .map(|at| message(&format!("m{at}"), "car", "dinner"))
            .collect(),
    );
    store.put(vec![message("d", "doctor", "")]);
    embed(&store);
    drop(store);
    damage(&folder.path().join("vectors/vectors.db"));
    let store = open(folder.path());
    // Whatever it was, searching goes on.
    ask(&store, "physician", vec![messages("work")], false);
    embed(&store);
    let status = store.meaning_status().unwrap().unwrap();
    assert_eq!((status.embedded, status.records), (301, 301));
    meant(&store, "physician")
}

#[test]
fn a_file_of_vectors_that_is_cut_or_missing_is_made_anew() {
    // FI-34
    let cut = |thousandths: usize| {
        move |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() * thousandths / 1000]).unwrap();
        }
    };
    for share in [0, 1, 100, 500, 900] {
        assert_eq!(damaged(cut(share)), ["d"], "{share}");
    }
    assert_eq!(damaged(|path| fs::remove_file(path).unwrap()), ["d"]);
    assert_eq!(
        damaged(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap()),
        ["d"]
    );
    assert_eq!(
        damaged(|path| fs::write(path, "no database at all, but long enough to be one").unwrap()),
        ["d"]
    );
    let sql = |sql: &'static str| {
        move |path: &Path| {
            rusqlite::Connection::open(path)
                .unwrap()
                .execute_batch(sql)
                .unwrap();
        }
    };
    assert_eq!(damaged(sql("PRAGMA user_version = 99")), ["d"]);
    assert_eq!(damaged(sql("UPDATE origin SET model = 'another'")), ["d"]);
    assert_eq!(damaged(sql("UPDATE windows SET bits = x'00'")), ["d"]);
    assert_eq!(damaged(sql("UPDATE codes SET code = x'00'")), ["d"]);
}

fn vectors_on_disk(folder: &Path) -> (u64, u64) {
    let database = rusqlite::Connection::open(folder.join("vectors/vectors.db")).unwrap();
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        database.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    (count("windows"), count("codes"))
}

#[test]
fn vectors_are_erased_with_their_records() {
    // FI-35
    let (folder, store) = meaningful();
    add_mail(&store, "home");
    for id in ["work", "home"] {
        let batch = (0..20).map(|at| message(&format!("m{at}"), "car", "dinner"));
        write(&store, id, batch.collect());
    }
    embed(&store);
    assert_eq!(vectors_on_disk(folder.path()), (80, 80));
    store.put(
        (0..10)
            .map(|at| delete("messages", &format!("m{at}")))
            .collect(),
    );
    store.purge().unwrap();
    assert_eq!(vectors_on_disk(folder.path()), (60, 60));
    store.remove_connection(&connection("home")).unwrap();
    assert_eq!(vectors_on_disk(folder.path()), (20, 20));
    assert_eq!(meant(&store, "vehicle").len(), 10);
    let removed = store.remove_model().unwrap();
    assert!(removed.is_some());
    assert!(!folder.path().join("vectors").exists() && !folder.path().join("model").exists());
}

#[test]
fn pages_are_one_ranking_also_while_others_write() {
    // FI-36
    let (_folder, store) = meaningful();
    add_mail(&store, "home");
    let words = [
        "car",
        "automobile dinner",
        "vehicle train",
        "doctor car meal",
        "Lyon",
    ];
    let batch = (0..40).map(|at| message(&format!("m{at}"), words[at % 5], "x"));
    store.put(batch.collect());
    embed(&store);
    for with_words in [false, true] {
        let whole = keys(&ask(
            &store,
            "Lyon vehicle",
            vec![messages("work")],
            with_words,
        ));
        assert!(whole.len() >= 32, "{}", whole.len());
        let mut request = any_word("Lyon vehicle", vec![messages("work")]);
        let question = question("Lyon vehicle", &request.scopes, with_words);
        request.limit = 3;
        let mut walked = Vec::new();
        for at in 0.. {
            let answer = store.search_by_meaning(&request, &question).unwrap();
            walked.extend(keys(&answer));
            if !answer.has_more {
                break;
            }
            request.after = answer.hits.last().map(|hit| hit.position);
            write(
                &store,
                "home",
                vec![message(&format!("h{at}"), "car Lyon vehicle", "car")],
            );
            embed(&store);
        }
        assert_eq!(walked, whole);
    }
}

#[test]
fn a_changed_declaration_brings_the_vectors_of_its_fields() {
    let (_folder, store) = meaningful();
    store.put(vec![message_with(
        "a",
        r#""subject":"car","from_email":"doctor""#,
    )]);
    embed(&store);
    let declared = MAIL
        .replace("\"declaration_version\": \"1\"", "\"declaration_version\": \"2\"")
        .replace(
            "{ \"lexical_fields\": [\"subject\", \"body\"] }",
            "{ \"lexical_fields\": [\"subject\", \"body\"], \"semantic_fields\": [\"from_email\"] }",
        );
    store
        .declare(&contract::declaration::Declaration::parse(&declared).unwrap())
        .unwrap();
    let scopes = || vec![scope("work", "messages", &["from_email", "subject"])];
    assert_eq!(ask(&store, "physician", scopes(), false).behind.len(), 1);
    embed(&store);
    assert_eq!(alike(&ask(&store, "physician", scopes(), false)), ["a"]);
    assert_eq!(
        alike(&ask(&store, "vehicle", scopes(), false)),
        Vec::<String>::new()
    );
}

#[test]
fn another_model_makes_all_vectors_anew() {
    let (folder, store) = meaningful();
    store.put(vec![message("a", "car", ""), message("b", "banana", "")]);
    embed(&store);
    assert_eq!(meant(&store, "automobile"), ["a"]);
    add_model(&store, &[&["banana", "automobile"]]);
    assert_eq!(
        ask(&store, "automobile", vec![messages("work")], false)
            .behind
            .len(),
        1
    );
    embed(&store);
    assert_eq!(meant(&store, "automobile"), ["b"]);
    drop(store);
    // A model whose files have changed is not used.
    fs::write(folder.path().join("model/model.safetensors"), "x").unwrap();
    let store = open(folder.path());
    assert!(matches!(store.embed_some(), Err(StoreError::Model(_))));
    assert_eq!(store.found("banana"), ["b"]);
}

#[test]
fn without_a_model_and_without_a_word_there_is_an_answer() {
    let (_folder, store) = mailbox();
    store.put(vec![message("a", "car", "")]);
    let scopes = vec![messages("work")];
    let asked = question("car", &scopes, true);
    let outcome = store.search_by_meaning(&any_word("car", scopes), &asked);
    assert!(matches!(outcome, Err(StoreError::NoModel)));
    assert_eq!(store.model(), None);
    assert_eq!(store.meaning_status().unwrap(), None);
    assert!(!store.embed_some().unwrap());
    add_model(&store, tiny_model::GROUPS);
    embed(&store);
    for text in ["", "?!", "  ", "\"", "-", "*"] {
        assert_eq!(meant(&store, text), Vec::<String>::new(), "{text}");
        assert_eq!(hybrid(&store, text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(hybrid(&store, &"automobile ".repeat(100_000)), ["a"]);
}

proptest! {
    #![proptest_config(cases(24))]

    /// Whatever is written, in whichever order and pieces vectors are made: the order is the same.
    // FI-37
    #[test]
    fn the_order_does_not_depend_on_when_vectors_were_made(
        writes in prop::collection::vec((0_usize..12, 0_usize..6, any::<bool>()), 1..30),
    ) {
        let words = ["car", "physician dinner", "viaduct", "car railway", "allergy", "zzz"];
        let (_one, steadily) = meaningful();
        let (_other, at_once) = meaningful();
        for (number, word, embeds) in &writes {
            let id = format!("m{number}");
            let change = || match word {
                5 => delete("messages", &id),
                word => message(&id, words[*word], words[(*word + number) % 6]),
            };
            steadily.put(vec![change()]);
            at_once.put(vec![change()]);
            if *embeds {
                embed(&steadily);
            }
        }
        embed(&steadily);
        embed(&at_once);
        for with_words in [false, true] {
            for text in ["automobile", "doctor train", "bridge car dinner"] {
                let of = |store: &EmbeddedStore| {
                    let answer = ask(store, text, vec![messages("work")], with_words);
                    answer.hits.iter().map(|hit| (hit.record.key.to_string(), hit.window.clone())).collect::<Vec<_>>()
                };
                prop_assert_eq!(of(&steadily), of(&at_once));
            }
        }
        let status = |store: &EmbeddedStore| {
            let status = store.meaning_status().unwrap().unwrap();
            (status.embedded, status.records, status.vectors)
        };
        prop_assert_eq!(status(&steadily), status(&at_once));
    }
}

#[test]
fn streams_that_come_and_go_keep_their_own_fields() {
    let (_folder, store) = meaningful();
    add_mail(&store, "home");
    write(&store, "home", vec![message("h", "car", "")]);
    embed(&store);
    store.remove_connection(&connection("home")).unwrap();
    add_mail(&store, "other");
    store.put(vec![message("w", "doctor", "")]);
    write(&store, "other", vec![message("o", "", "car")]);
    embed(&store);
    let found = |id: &str, text: &str| alike(&ask(&store, text, vec![messages(id)], false));
    assert_eq!(found("other", "vehicle"), ["o"]);
    assert_eq!(found("work", "physician"), ["w"]);
    assert_eq!(found("work", "vehicle"), Vec::<String>::new());
}
