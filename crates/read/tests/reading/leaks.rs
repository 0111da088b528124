//! Nothing leaks: over random data, grants and requests, no answer holds a byte of what is hidden, and a store that never
//! held the hidden data answers the same.

mod declared;
mod question;
mod redacted;
mod rule;
mod scene;

use proptest::prelude::*;
use serde_json::json;
use testkit::{Dice, repetitions};

use self::question::{Begun, Cited, Question};
use self::scene::Scene;
use crate::fixture::{Reader, World, words};

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(cases(24))
    })]

    // GM-02: grants have rules, too.
    #[test]
    fn hidden_data_leaves_no_trace_in_any_answer(seed: u64) {
        let mut dice = Dice(seed);
        let scene = Scene::random(&mut dice);
        let (rich, poor) = (scene.rich(), scene.poor());
        for world in [&rich, &poor] {
            world.add_model(&scene::ALIKE);
            world.embed();
        }
        let marks = (scene.bookmarks(&rich), scene.bookmarks(&poor));
        let readers = (scene.reader(&rich), scene.reader(&poor));
        let mut begun = Vec::new();
        for query in (0..12).map(|_| Begun::random(&mut dice, &scene)) {
            let pages = (Begun::read(&readers.0, query.clone()), Begun::read(&readers.1, query));
            prop_assert_eq!(pages.0.is_some(), pages.1.is_some());
            begun.extend(pages.0.zip(pages.1));
        }
        let mut cited = Vec::new();
        for window in (0..12).map(|_| Cited::window(&mut dice, &scene)) {
            let cites = (Cited::read(&readers.0, window.clone()), Cited::read(&readers.1, window));
            prop_assert_eq!(cites.0.is_some(), cites.1.is_some());
            cited.extend(cites.0.zip(cites.1));
        }
        scene.go_on(&rich, &poor);
        rich.embed();
        poor.embed();
        for (answer, expected) in begun {
            let asked = format!("{answer:?}");
            let (answer, expected) = (answer.go_on(&readers.0), expected.go_on(&readers.1));
            prop_assert_eq!(answer, expected, "{}", asked);
        }
        // GM-21
        for (cite, other) in cited {
            let checks = (cite.verify(&readers.0), other.verify(&readers.1));
            prop_assert_eq!(checks.0, checks.1, "{:?}", cite);
        }

        let forbidden = scene.forbidden_markers();
        for question in questions(&mut dice, &scene) {
            let answer = question.answer(&readers.0, &marks.0);
            for marker in forbidden.iter().filter(|marker| !question.mentions(marker)) {
                prop_assert!(!answer.contains(marker.as_str()), "{marker} in {question:?}:\n{answer}");
            }
            for name in scene.hidden_names().filter(|name| !question.mentions(name)) {
                prop_assert!(!answer.contains(name), "{name} in {question:?}:\n{answer}");
            }
            let expected = question.answer(&readers.1, &marks.1);
            prop_assert!(answer == expected, "{question:?}\n  with hidden data: {answer}\n  without it:       {expected}");
        }
        // What budgets count, and what stands in the log.
        prop_assert_eq!(rich.noted(), poor.noted());
        scene.cursors_of_the_owner_do_not_open(&rich);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(cases(16))
    })]

    // GM-08: worlds that differ only behind redactions answer alike.
    #[test]
    fn what_a_redaction_hides_leaves_no_trace_in_any_answer(seed: u64) {
        let mut dice = Dice(seed);
        let mut scene = Scene::random(&mut dice);
        scene.redact_some(&mut dice);
        let other = scene.hidden_otherwise(dice.once_in(2));
        let worlds = (scene.rich(), other.rich());
        for world in [&worlds.0, &worlds.1] {
            world.add_model(&scene::ALIKE);
            world.embed();
        }
        let marks = (scene.bookmarks(&worlds.0), scene.bookmarks(&worlds.1));
        let readers = (scene.reader(&worlds.0), scene.reader(&worlds.1));
        scene.write_rest(&worlds.0);
        other.write_rest(&worlds.1);
        worlds.0.embed();
        worlds.1.embed();
        for question in questions(&mut dice, &scene) {
            let answers = (question.answer(&readers.0, &marks.0), question.answer(&readers.1, &marks.1));
            prop_assert!(answers.0 == answers.1, "{question:?}\n  one:   {}\n  other: {}", answers.0, answers.1);
        }
        prop_assert_eq!(worlds.0.noted(), worlds.1.noted());
    }
}

/// How many pairs of worlds are made: others where `LEAK_CASES` says so.
pub(crate) fn cases(usual: u32) -> u32 {
    repetitions("LEAK_CASES", usual)
}

/// Random questions for each pair of worlds: others where `LEAK_REQUESTS` says so. Making the worlds costs more than asking
/// them, so a long run asks more of each.
fn questions(dice: &mut Dice, scene: &Scene) -> Vec<Question> {
    let many = repetitions("LEAK_REQUESTS", 80);
    let random = (0..many).map(|_| Question::random(dice, scene));
    random.chain(Question::feeds(scene)).collect()
}

/// The index is read before the records: what left the grant in between must not slip through.
#[test]
fn a_record_that_moves_while_it_is_read_is_never_shown_outside_the_grant() {
    let world = World::mail();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id", "body"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]));
    never_shown_outside(&world, &reader);
}

// GM-01: the same for a grant whose rules are on fields that it does not give.
#[test]
fn a_record_that_moves_while_it_is_read_is_never_shown_outside_a_rule() {
    let ranged = json!({"where": [{"field": "received_at", "gte": "2026-01-01"}]});
    let listed = json!({"where": [{"field": "received_at", "in": ["2026-02-01", "2026-03-01"]}]});
    let refused = json!({"except": [{"field": "received_at", "eq": "2025-02-01"}]});
    for rules in [ranged, listed, refused] {
        let mut stream = json!({"name": "messages", "fields": ["id", "body"]});
        let members = stream.as_object_mut().unwrap();
        members.extend(rules.as_object().unwrap().clone());
        let world = World::mail();
        let reader = world.mail_client(json!([stream]));
        never_shown_outside(&world, &reader);
    }
}

fn never_shown_outside(world: &World, reader: &Reader) {
    let write = |at: usize| {
        let (day, body) = if at.is_multiple_of(2) {
            ("2026-02-01", "tea inside")
        } else {
            ("2025-02-01", "tea outside")
        };
        let id = format!("m{}", at / 2 % 5);
        world.message(&json!({"id": id, "body": body, "received_at": day}));
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..200).for_each(write);
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let search = reader.search(words("tea"));
            let list = reader.records(crate::fixture::limited("messages", 3));
            for answer in [search, list] {
                assert!(!answer.unwrap().to_string().contains("outside"));
            }
        }
    });
}
