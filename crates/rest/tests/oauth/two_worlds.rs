//! Two worlds that differ only in what a rule, a redaction or a budget hides answer alike, byte for byte, order and paging
//! included: over `/v1`, by the tools, and on the pages as the grant sees them.
//!
//! `LEAK_CASES` pairs of worlds are asked `LEAK_REQUESTS` random questions each, and every answer is followed to its last page.

mod question;
mod scene;

use std::time::Duration;

use grants::budget::{Budget, set_budget};
use proptest::prelude::*;
use serde_json::{Value, json};
use store::grants::LoggedDisclosure;
use testkit::{Dice, repetitions};

use self::question::Question;
use self::scene::{Letter, Scene};
use crate::fixture::{Browser, World};

/// A world, the client that reads in it, and the owner who sees it as that client does.
struct Side<'a> {
    world: &'a World,
    browser: Browser<'a>,
    token: String,
    grant: String,
}

impl<'a> Side<'a> {
    async fn new(world: &'a World, stream: &Value, budget: Budget) -> Self {
        let details = json!({
            "type": "https://pdpp.dev/data-access",
            "source": {"id": "https://sources.example/demo_mail"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [stream],
        });
        let selection = grants::Selection::from_details(&details.to_string()).unwrap();
        let issued =
            grants::issue(&*world.store, &selection, "agent", None, &*world.clock).unwrap();
        let grant = issued.grant_id.unwrap();
        let now = contract::time::Clock::now(&*world.clock);
        set_budget(&*world.store, &grant, budget, now).unwrap();
        Self {
            browser: world.browser().await,
            token: issued.access_token.expose().to_owned(),
            grant: grant.to_string(),
            world,
        }
    }

    /// What was logged as shown.
    fn log(&self) -> Vec<String> {
        self.world.log.flush().unwrap();
        let log = self.world.store.disclosures(None, None, 100_000).unwrap();
        let entry = |entry: LoggedDisclosure| {
            let one = entry.disclosure;
            let (records, fields, bytes) = (one.records, one.fields, one.bytes);
            format!("{} {records:?} {fields:?} {bytes:?}", one.operation)
        };
        log.into_iter().map(entry).collect()
    }
}

async fn compare(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let scene = Scene::random(&mut dice);
    let (rich, poor) = (World::new().await, World::new().await);
    let (early, late) = scene.letters.split_at(scene.letters.len() / 2);
    for letter in early {
        scene.write(&rich, &poor, letter).await;
    }
    let stream = scene.stream();
    let budget = scene.budget;
    let mut sides = (
        Side::new(&rich, &stream, budget).await,
        Side::new(&poor, &stream, budget).await,
    );
    let many = repetitions("LEAK_REQUESTS", 40);
    let mut late: Vec<&Letter> = late.iter().rev().collect();
    for number in 0..many {
        if number % 3 == 0
            && let Some(letter) = late.pop()
        {
            scene.write(&rich, &poor, letter).await;
        }
        // So that neither runs into the limit of calls in a minute.
        rich.pass(Duration::from_secs(2));
        poor.pass(Duration::from_secs(2));
        let question = Question::random(&mut dice);
        let answers = (
            question.answer(&mut sides.0).await,
            question.answer(&mut sides.1).await,
        );
        prop_assert_eq!(&answers.0, &answers.1, "{:?} of {}", question, stream);
        prop_assert!(
            !answers.0.contains(scene::HIDDEN),
            "{:?}: {}",
            question,
            answers.0
        );
    }
    prop_assert_eq!(sides.0.log(), sides.1.log());
    Ok(())
}

fn blocking<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(repetitions("LEAK_CASES", 4))
    })]

    // GM-02, GM-08, GM-25
    #[test]
    fn what_is_hidden_leaves_no_trace_on_any_surface(seed: u64) {
        blocking(compare(seed))?;
    }
}

/// Five letters at work about one thing.
async fn write_about(world: &World, topic: &str) {
    let letter = |n: u32| {
        json!({"key": format!("n{n}"), "emitted_at": "2026-04-01T00:00:00Z", "data": {
            "id": format!("n{n}"), "subject": format!("About the {topic}"), "body": format!("{topic} and {topic}"),
            "from_email": "a@example.test", "received_at": format!("2026-04-{n:02}T09:00:00Z"), "size_bytes": n, "secret": "s",
        }})
    };
    let lines: Vec<String> = (1..6).map(|n| letter(n).to_string()).collect();
    world
        .write("/v1/ingest/messages?connection_id=work", lines.join("\n"))
        .await;
}

// GM-25: when a budget is used up, no question tells what further records say, also not by finding nothing.
#[tokio::test]
async fn what_a_used_up_budget_hides_leaves_no_trace() {
    let worlds = (World::new().await, World::new().await);
    write_about(&worlds.0, "harbour").await;
    write_about(&worlds.1, "orchard").await;
    let stream = json!({"name": "messages", "instance_ids": ["work"]});
    for budget in [
        Budget {
            records: Some(2),
            ..Budget::default()
        },
        Budget {
            bytes: Some(0),
            ..Budget::default()
        },
    ] {
        let mut sides = (
            Side::new(&worlds.0, &stream, budget).await,
            Side::new(&worlds.1, &stream, budget).await,
        );
        for side in [&sides.0, &sides.1] {
            // The letters that both worlds have; a limit of no bytes is used up from the beginning.
            let target = "/v1/streams/messages/records?order=asc&limit=2";
            let first = side.world.read(&side.token, target).await;
            assert_eq!(
                first.status == 200,
                budget.records.is_some(),
                "{}",
                first.text
            );
        }
        for target in [
            "/v1/search?q=harbour",
            "/v1/search?q=orchard",
            "/v1/search?q=nowhere",
            "/v1/streams/messages/records?order=desc",
            "/v1/streams/messages/records/n1?connection_id=work",
            "/v1/streams/messages/records/none?connection_id=work",
            "/v1/streams/messages/records/n1/field-window?connection_id=work&field=body&q=harbour",
            "/v1/streams/messages/records?changes_since=beginning",
        ] {
            let rest = Question::Rest(target.to_owned());
            let answers = (
                rest.answer(&mut sides.0).await,
                rest.answer(&mut sides.1).await,
            );
            assert_eq!(answers.0, answers.1, "{target}");
            if budget.records.is_some() {
                assert!(
                    answers.0.contains("budget_exhausted"),
                    "{target}: {}",
                    answers.0
                );
            }
        }
    }
}
