//! How much may be read in a day: typed refusals at the limit, lines on the overview, and pauses.

use std::time::Duration;

use grants::budget::{Budget, set_budget};

use crate::asking::{Granted, granted};
use crate::fixture::{Answer, Browser, World};

const CALL: &str = "/v1/streams/messages/records?limit=1";

fn is_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.json()["error"]["code"], code);
}

impl World {
    fn set_budget(&self, grant: &Granted, budget: Budget) {
        let id = contract::id::GrantId::parse(&grant.id).unwrap();
        let now = contract::time::Clock::now(&*self.clock);
        set_budget(&*self.store, &id, budget, now).unwrap();
    }
}

async fn begin(world: &World, budget: Budget) -> (Browser<'_>, Granted) {
    let mut browser = world.browser().await;
    let grant = granted(world, &mut browser).await;
    world.set_budget(&grant, budget);
    (browser, grant)
}

// GM-25: at the limit the refusal is typed, says nothing of the records, and is over at midnight; the overview has a line.
#[tokio::test]
async fn records_of_a_day_are_limited() {
    let world = World::new().await;
    let limit = Budget {
        records: Some(2),
        ..Budget::default()
    };
    let (mut browser, grant) = begin(&world, limit).await;
    assert_eq!(world.read(&grant.token, CALL).await.status, 200);
    let more = "/v1/streams/messages/records?limit=2";
    is_refused(
        &world.read(&grant.token, more).await,
        429,
        "budget_exhausted",
    );
    assert_eq!(
        world.read(&grant.token, CALL).await.status,
        200,
        "less still fits"
    );
    let refused = world.read(&grant.token, CALL).await;
    is_refused(&refused, 429, "budget_exhausted");
    refused.hides("Letter");
    // What shows no record is answered.
    assert_eq!(world.read(&grant.token, "/v1/schema").await.status, 200);
    browser
        .get("/")
        .await
        .shows("has read all that its budget allows today");
    browser
        .get(&format!("/grants/{}", grant.id))
        .await
        .shows("at most 2 records a day");
    world.pass(Duration::from_hours(24));
    assert_eq!(world.read(&grant.token, CALL).await.status, 200);
}

// GM-25: the same record again is no different record; bytes are those of the answers.
#[tokio::test]
async fn different_records_and_bytes_of_a_day_are_limited() {
    let world = World::new().await;
    let limit = Budget {
        distinct_records: Some(1),
        ..Budget::default()
    };
    let (_, grant) = begin(&world, limit).await;
    for _ in 0..3 {
        assert_eq!(world.read(&grant.token, CALL).await.status, 200);
    }
    let more = "/v1/streams/messages/records?limit=2";
    is_refused(
        &world.read(&grant.token, more).await,
        429,
        "budget_exhausted",
    );
    let answer = world.read(&grant.token, CALL).await.text.len();
    world.set_budget(
        &grant,
        Budget {
            bytes: Some(u64::try_from(answer).unwrap() * 2),
            ..Budget::default()
        },
    );
    assert_eq!(world.read(&grant.token, CALL).await.status, 200);
    let mut answered = 1;
    while world.read(&grant.token, CALL).await.status == 200 {
        answered += 1;
    }
    assert!((1..=3).contains(&answered), "{answered}");
}

// GM-26: far more than on any day before pauses the grant until the owner has looked.
#[tokio::test]
async fn unusual_reading_pauses_a_grant_until_the_owner_looks() {
    let world = World::new().await;
    let limit = Budget {
        pauses_when_unusual: true,
        ..Budget::default()
    };
    let (mut browser, grant) = begin(&world, limit).await;
    assert_eq!(world.read(&grant.token, CALL).await.status, 200);
    let flush = browser.get("/").await;
    flush.hides("is paused");
    world.pass(Duration::from_hours(24));
    let mut calls = 0;
    loop {
        let answer = world.read(&grant.token, CALL).await;
        if answer.status != 200 {
            is_refused(&answer, 403, "grant_paused");
            break;
        }
        calls += 1;
        assert!(calls < 700, "it goes on and on");
    }
    assert!(calls > 500, "{calls}");
    let mut browser = world.browser().await;
    browser.get("/").await.shows("is paused");
    let page = format!("/grants/{}", grant.id);
    let csrf = browser.get(&page).await.field("csrf");
    let form = [("csrf", csrf.as_str()), ("change", "resume")];
    browser.post(&format!("{page}/budget"), &form).await;
    assert_eq!(world.read(&grant.token, CALL).await.status, 200);
}

// GM-25: the form shows the limits there are, so that setting one loosens no other; what it does not understand changes nothing.
#[tokio::test]
async fn the_form_of_a_budget_keeps_the_limits_it_shows() {
    let world = World::new().await;
    let limit = Budget {
        records: Some(20),
        bytes: Some(5_000_000),
        pauses_when_unusual: true,
        ..Budget::default()
    };
    let (mut browser, grant) = begin(&world, limit).await;
    let page = format!("/grants/{}", grant.id);
    let id = contract::id::GrantId::parse(&grant.id).unwrap();
    let now = contract::time::Clock::now(&*world.clock);
    let kept = || grants::budget::budget(&*world.store, &id, now).unwrap();
    let shown = browser.get(&page).await;
    shown.shows("name=\"records\" value=\"20\"");
    shown.shows("name=\"distinct_records\" value=\"\"");
    shown.shows("name=\"bytes\" value=\"5000000\"");
    shown.shows("name=\"unusual\" checked");
    let csrf = shown.field("csrf");
    let target = format!("{page}/budget");
    for wrong in [
        [("change", "set"), ("records", "many")],
        [("change", "set"), ("bytes", "-1")],
        [("change", "loosen"), ("records", "1")],
        [("change", ""), ("records", "1")],
    ] {
        let form = [&[("csrf", csrf.as_str())], wrong.as_slice()].concat();
        let refused = browser.post(&target, &form).await;
        assert_eq!(refused.status, 400, "{wrong:?}");
        refused.shows("nothing was changed");
        assert_eq!(kept(), Some(limit));
    }
    let form = [
        ("csrf", csrf.as_str()),
        ("change", "set"),
        ("records", "0"),
        ("bytes", "5000000"),
        ("unusual", "on"),
    ];
    assert_eq!(browser.post(&target, &form).await.status, 303);
    let zero = Budget {
        records: Some(0),
        ..limit
    };
    assert_eq!(kept(), Some(zero));
    let refused = world.read(&grant.token, CALL).await;
    is_refused(&refused, 429, "budget_exhausted");
}
