//! One review, one frozen decision, approved once and exactly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contract::declaration::Declaration;
use contract::grant::{AccessMode, Authority};
use contract::time::Instant;
use grants::ChosenStream;
use grants::oauth::{Answer, Choice, Decider, DecisionError, Review};
use serde_json::{Value, json};
use store::Catalog as _;

use crate::flow::{
    approve, ask, client, is_live, issuer, mail, only, redeem, review, stream, tokens, winners,
};
use crate::world::{MAIL, World, connection, detail};

const HOUR: Duration = Duration::from_hours(1);

pub(crate) fn asked(world: &World, details: &Value) -> String {
    let details = details.to_string();
    ask(
        world,
        &client(world),
        &[("authorization_details", &details)],
    )
    .unwrap()
}

fn mistake(world: &World, request: &str, choice: Choice) -> String {
    let error = issuer(world).review(request, choice).unwrap_err();
    assert_eq!(error.status(), 400);
    error.to_string()
}

#[test]
fn nothing_selected_grants_nothing() {
    let world = World::new();
    let request = ask(&world, &client(&world), &[]).unwrap();
    for choice in [Choice::default(), only(&[])] {
        let error = issuer(&world).review(&request, choice).unwrap_err();
        assert!(matches!(error, DecisionError::NothingSelected));
    }
    let no_field = ChosenStream {
        fields: Some(Vec::new()),
        ..stream("home", "messages")
    };
    assert!(mistake(&world, &request, only(&[no_field])).contains("grants nothing"));
    let asked = asked(&world, &json!([detail(|_| {})]));
    let error = issuer(&world).review(&asked, only(&[])).unwrap_err();
    assert!(matches!(error, DecisionError::NothingSelected));
    assert!(grants::list(world.store(), world.now()).unwrap().is_empty());
}

#[test]
fn exactly_what_was_picked_is_granted() {
    let world = World::new();
    let client = client(&world);
    let picked = ChosenStream {
        fields: Some(vec!["id".to_owned(), "subject".to_owned()]),
        since: Some("2026-01-01".to_owned()),
        ..stream("home", "messages")
    };
    let response = tokens(&world, &client, only(&[picked]));
    let resolved =
        grants::resolve(world.store(), response.access_token.expose(), world.now()).unwrap();
    assert_eq!(resolved.client_id.as_ref(), Some(&client.client_id));
    let Authority::Granted(granted) = resolved.authority else {
        panic!("a client token never is the owner's");
    };
    let [row] = granted.rows() else {
        panic!("one row was picked");
    };
    let fields: Vec<&str> = row
        .fields
        .iter()
        .map(contract::id::FieldName::as_str)
        .collect();
    assert_eq!(
        (row.connection.as_str(), fields),
        ("home", vec!["id", "subject"])
    );
    let since = row.time_constraint.as_ref().unwrap().since.as_deref();
    assert_eq!(since, Some("2026-01-01"));
}

#[test]
fn a_pick_that_cannot_be_had_is_named() {
    let world = World::new();
    let request = ask(&world, &client(&world), &[]).unwrap();
    let twice = only(&[stream("home", "messages"), stream("home", "messages")]);
    for (choice, words) in [
        (
            only(&[stream("nope", "messages")]),
            "no connection \"nope\"",
        ),
        (only(&[stream("home", "nope")]), "no stream \"nope\""),
        (twice, "a second time"),
        (
            only(&[ChosenStream {
                fields: Some(vec!["name".to_owned()]),
                ..stream("home", "folders")
            }]),
            "whole or not at all",
        ),
        (
            only(&[ChosenStream {
                since: Some("2026".to_owned()),
                ..stream("home", "messages")
            }]),
            "not an RFC 3339",
        ),
    ] {
        let found = mistake(&world, &request, choice);
        assert!(found.contains(words), "{found}");
    }
    let all = ChosenStream {
        fields: Some(vec!["name".to_owned(), "account".to_owned()]),
        ..stream("home", "folders")
    };
    assert!(
        issuer(&world).review(&request, only(&[all])).is_ok(),
        "all fields are the whole"
    );
}

#[test]
fn a_package_over_three_connections_is_one_approval_with_one_token() {
    let world = World::new();
    let client = client(&world);
    let picks = [
        stream("home", "messages"),
        stream("work", "messages"),
        stream("team", "messages"),
    ];
    let response = tokens(&world, &client, only(&picks));
    assert!(response.grant_id.is_none() && response.authorization_details.is_none());
    let package = response.grant_package_id.clone().unwrap();
    let bearer = response.access_token.expose();
    let rows = || match grants::resolve(world.store(), bearer, world.now())
        .unwrap()
        .authority
    {
        Authority::Granted(granted) => granted.rows().len(),
        Authority::Owner => panic!("a client token never is the owner's"),
    };
    assert_eq!(rows(), 3);
    let shown = grants::show(world.store(), package.as_str(), world.now(), 1).unwrap();
    assert_eq!(
        shown.overview.grant_ids.len(),
        3,
        "each connection can be ended by itself"
    );
    grants::revoke(
        world.store(),
        shown.overview.grant_ids[0].as_str(),
        world.now(),
    )
    .unwrap();
    assert_eq!(rows(), 2);
}

#[test]
fn details_are_granted_as_asked_or_narrowed_and_never_widened() {
    let world = World::new();
    let details = json!([detail(|detail| {
        detail["streams"] = json!([{ "name": "messages", "instance_ids": ["home", "work"],
            "fields": ["id", "subject"], "time_range": { "since": "2026-01-01" } }]);
    })]);
    let request = asked(&world, &details);
    let whole = review(&world, &request, Choice::default());
    assert_eq!(whole.grants.len(), 1);
    assert_eq!(whole.grants[0].streams[0].instance_ids.len(), 2);
    let pick = |fields: &[&str], since: Option<&str>, until: Option<&str>| ChosenStream {
        fields: Some(fields.iter().map(ToString::to_string).collect()),
        since: since.map(str::to_owned),
        until: until.map(str::to_owned),
        ..stream("work", "messages")
    };
    let less = review(
        &world,
        &request,
        only(&[pick(&["subject"], Some("2025-01-01"), Some("2026-02-01"))]),
    );
    let narrowed = &less.grants[0].streams[0];
    assert_eq!(narrowed.instance_ids, [connection("work")]);
    let fields: Vec<&str> = narrowed
        .fields
        .iter()
        .map(contract::id::FieldName::as_str)
        .collect();
    assert_eq!(fields, ["subject"]);
    let time = narrowed.time_constraint.as_ref().unwrap();
    assert_eq!(
        (time.since.as_deref(), time.until.as_deref()),
        (Some("2026-01-01"), Some("2026-02-01"))
    );
    for (choice, words) in [
        (only(&[stream("team", "messages")]), "was not asked for"),
        (only(&[stream("home", "folders")]), "was not asked for"),
        (
            only(&[pick(&["body"], None, None)]),
            "\"body\" was not asked for",
        ),
        (
            only(&[pick(&["id"], None, Some("2025-01-01"))]),
            "leaves no time",
        ),
    ] {
        let found = mistake(&world, &request, choice);
        assert!(found.contains(words), "{found}");
    }
    let same = only(&[stream("home", "messages"), stream("work", "messages")]);
    assert_eq!(
        review(&world, &request, same).grants,
        whole.grants,
        "choosing all is choosing as asked"
    );
}

#[test]
fn once_is_for_a_day_and_cannot_become_continuing() {
    let world = World::new();
    let once = Choice {
        access_mode: Some(AccessMode::SingleUse),
        expires_at: Some(Instant(world.now().0 + 90 * 86_400_000_000)),
        ..mail()
    };
    let response = tokens(&world, &client(&world), once);
    assert_eq!(
        (response.expires_in, response.refresh_token.is_none()),
        (86_400, true)
    );
    world.wait(Duration::from_hours(24));
    assert!(!is_live(&world, &response));
    let request = asked(
        &world,
        &json!([detail(|detail| detail["access_mode"] = json!("single_use"))]),
    );
    let wider = Choice {
        access_mode: Some(AccessMode::Continuous),
        ..Choice::default()
    };
    let error = issuer(&world).review(&request, wider).unwrap_err();
    assert!(matches!(error, DecisionError::OnlyOnce));
}

#[test]
fn training_takes_an_explicit_yes() {
    let world = World::new();
    let training =
        |detail: &mut Value| detail["purpose_code"] = json!("https://pdpp.dev/purpose/ai_training");
    let request = asked(&world, &json!([detail(training)]));
    let error = issuer(&world)
        .review(&request, Choice::default())
        .unwrap_err();
    assert!(matches!(error, DecisionError::TrainingNotAffirmed));
    let yes = Choice {
        ai_training_affirmed: true,
        ..Choice::default()
    };
    assert!(review(&world, &request, yes).ai_training_affirmed);
}

#[test]
fn only_the_review_shown_last_can_be_approved() {
    let world = World::new();
    let client = client(&world);
    let request = ask(&world, &client, &[]).unwrap();
    let other = ask(&world, &client, &[]).unwrap();
    let try_approve = |digest: &str| issuer(&world).approve(&request, digest, Decider::Terminal);
    assert!(
        matches!(try_approve("sha256:x"), Err(DecisionError::Stale)),
        "not reviewed at all"
    );
    let first = review(&world, &request, mail());
    let second = review(&world, &request, only(&[stream("team", "messages")]));
    assert_ne!(first.digest, second.digest);
    assert_ne!(
        review(&world, &other, mail()).digest,
        first.digest,
        "a review is of one request"
    );
    for digest in [first.digest.as_str(), "", "sha256:"] {
        assert!(matches!(try_approve(digest), Err(DecisionError::Stale)));
    }
    assert!(grants::list(world.store(), world.now()).unwrap().is_empty());
    assert!(try_approve(&second.digest).is_ok());
    assert!(matches!(
        try_approve(&second.digest),
        Err(DecisionError::Decided)
    ));
    let again = issuer(&world).review(&request, mail());
    assert!(matches!(again, Err(DecisionError::Decided)));
    assert!(matches!(
        issuer(&world).deny(&request, Decider::Terminal),
        Err(DecisionError::Decided)
    ));
    assert_eq!(grants::list(world.store(), world.now()).unwrap().len(), 1);
}

#[test]
fn a_catalog_that_changed_since_the_review_takes_a_new_one() {
    let world = World::new();
    let client = client(&world);
    let gone = ask(&world, &client, &[]).unwrap();
    let changed = ask(&world, &client, &[]).unwrap();
    let reviews = [
        (
            review(&world, &gone, only(&[stream("team", "messages")])),
            gone,
        ),
        (review(&world, &changed, mail()), changed),
    ];
    world.store.remove_connection(&connection("team")).unwrap();
    let newer = MAIL
        .replace(
            "\"declaration_version\": \"1\"",
            "\"declaration_version\": \"2\"",
        )
        .replace(
            "\"body\": {",
            "\"cc\": { \"type\": \"string\" }, \"body\": {",
        );
    world
        .store
        .declare(&Declaration::parse(&newer).unwrap())
        .unwrap();
    for (review, request) in reviews {
        let error = issuer(&world)
            .approve(&request, &review.digest, Decider::Terminal)
            .unwrap_err();
        assert!(matches!(error, DecisionError::CatalogChanged), "{error}");
        assert_eq!(error.status(), 409);
    }
    assert!(grants::list(world.store(), world.now()).unwrap().is_empty());
}

#[test]
fn an_approval_and_its_end_have_their_time() {
    let world = World::new();
    let client = client(&world);
    let request = ask(&world, &client, &[]).unwrap();
    let soon = Choice {
        expires_at: Some(Instant(world.now().0 + 60_000_000)),
        ..mail()
    };
    let frozen = review(&world, &request, soon.clone());
    world.wait(Duration::from_mins(2));
    let over = issuer(&world).approve(&request, &frozen.digest, Decider::Terminal);
    assert_eq!(over.unwrap_err().status(), 400);
    assert!(
        issuer(&world).review(&request, soon).is_err(),
        "an end in the past"
    );
    let frozen = review(&world, &request, mail());
    world.wait(HOUR);
    let late = issuer(&world).approve(&request, &frozen.digest, Decider::Terminal);
    assert!(matches!(late, Err(DecisionError::Unknown)));
}

#[test]
fn a_denial_goes_back_to_the_client_and_grants_nothing() {
    let world = World::new();
    let request = ask(&world, &client(&world), &[]).unwrap();
    let review = review(&world, &request, mail());
    let Answer::Redirect(address) = issuer(&world).deny(&request, Decider::Terminal).unwrap()
    else {
        panic!("a code request is answered by redirect");
    };
    let address = address.expose();
    assert!(
        address.starts_with("https://app.example/cb?error=access_denied&"),
        "{address}"
    );
    assert!(
        address.ends_with("&state=st%26te&iss=https%3A%2F%2Fpdpp.example"),
        "{address}"
    );
    let after = issuer(&world).approve(&request, &review.digest, Decider::Terminal);
    assert!(matches!(after, Err(DecisionError::Decided)));
    assert!(grants::list(world.store(), world.now()).unwrap().is_empty());
}

#[test]
fn of_approvals_side_by_side_one_wins() {
    let world = World::new();
    let client = client(&world);
    let request = ask(&world, &client, &[]).unwrap();
    let review = review(&world, &request, mail());
    let won = winners(|| {
        issuer(&world)
            .approve(&request, &review.digest, Decider::Terminal)
            .ok()
    });
    assert_eq!(won, 1);
    assert_eq!(grants::list(world.store(), world.now()).unwrap().len(), 1);
}

#[test]
fn approvals_of_one_client_do_not_stand_in_each_others_way() {
    let world = World::new();
    let client = client(&world);
    let reviews: Vec<Review> = (0..8)
        .map(|_| review(&world, &ask(&world, &client, &[]).unwrap(), mail()))
        .collect();
    let next = AtomicUsize::new(0);
    let won = winners(|| {
        let review = &reviews[next.fetch_add(1, Ordering::Relaxed)];
        issuer(&world)
            .approve(&review.request_id, &review.digest, Decider::Terminal)
            .ok()
    });
    assert_eq!(won, 8);
    assert_eq!(grants::list(world.store(), world.now()).unwrap().len(), 8);
}

#[test]
fn an_approval_and_a_denial_side_by_side_have_one_winner() {
    let world = World::new();
    let request = ask(&world, &client(&world), &[]).unwrap();
    let review = review(&world, &request, mail());
    let next = AtomicUsize::new(0);
    let won = winners(|| {
        if next.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            issuer(&world)
                .approve(&request, &review.digest, Decider::Terminal)
                .ok()
        } else {
            issuer(&world).deny(&request, Decider::Terminal).ok()
        }
    });
    assert_eq!(won, 1);
}

#[test]
fn a_package_that_lost_a_connection_before_its_code_was_redeemed_gives_the_rest() {
    let world = World::new();
    let client = client(&world);
    let request = ask(&world, &client, &[]).unwrap();
    let code = approve(
        &world,
        &request,
        only(&[stream("home", "messages"), stream("team", "messages")]),
    );
    world.store.remove_connection(&connection("team")).unwrap();
    let response = redeem(&world, &client, &code, &[]).unwrap();
    assert!(is_live(&world, &response), "the other grant still stands");
}

#[test]
fn less_than_a_preset_is_not_the_preset() {
    let world = World::new();
    world.store.remove_connection(&connection("work")).unwrap();
    let preset = |detail: &mut Value| {
        let members = detail.as_object_mut().unwrap();
        members.remove("streams");
        members.insert("selection_preset".to_owned(), json!("headers"));
    };
    let request = asked(&world, &json!([detail(preset)]));
    let named = |choice: Choice| {
        review(&world, &request, choice).grants[0]
            .selection_preset
            .clone()
    };
    assert_eq!(named(Choice::default()).as_deref(), Some("headers"));
    assert_eq!(named(mail()).as_deref(), Some("headers"));
    let less = ChosenStream {
        fields: Some(vec!["subject".to_owned()]),
        ..stream("home", "messages")
    };
    assert_eq!(named(only(&[less])), None);
}

#[test]
fn what_could_not_be_issued_is_refused_at_the_review() {
    let world = World::new();
    let request = asked(&world, &json!([detail(|_| {}), detail(|_| {})]));
    assert!(mistake(&world, &request, Choice::default()).contains("both give messages of home"));
}
