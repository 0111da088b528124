//! Codes: redeemed once, by the right client, with the right verifier, in time.

use std::time::Duration;

use grants::State;
use serde_json::json;

use crate::flow::{
    ORIGIN, approve, ask, client, code, is_live, issuer, mail, only, parameters, redeem, refresh,
    refused, register, renewing, stream, winners,
};
use crate::world::World;

#[test]
fn a_code_becomes_tokens_and_says_what_was_granted() {
    let world = World::new();
    let client = client(&world);
    let response = redeem(&world, &client, &code(&world, &client, mail()), &[]).unwrap();
    assert_eq!(
        (response.token_type, response.expires_in),
        ("Bearer", 3_600)
    );
    let body = serde_json::to_value(&response).unwrap();
    assert!(
        body["access_token"]
            .as_str()
            .unwrap()
            .starts_with("pdpp_at_")
    );
    assert!(
        body["refresh_token"]
            .as_str()
            .unwrap()
            .starts_with("pdpp_rt_")
    );
    assert!(body["grant_id"].is_string() && body.get("grant_package_id").is_none());
    let detail = &body["authorization_details"][0];
    assert_eq!(detail["type"], "https://pdpp.dev/data-access");
    assert_eq!(detail["streams"][0]["instance_ids"], json!(["home"]));
    assert!(is_live(&world, &response));
    world.wait(Duration::from_hours(1));
    assert!(!is_live(&world, &response));
}

#[test]
fn a_code_is_bound_to_everything_it_was_asked_with() {
    let world = World::new();
    let client = client(&world);
    let stranger = crate::flow::client(&world);
    let code = code(&world, &client, mail());
    let other = "another-verifier-of-sufficient-length-0123456789";
    for (changes, error) in [
        (
            [("client_id", stranger.client_id.as_str())],
            "invalid_grant",
        ),
        ([("client_id", "cli_nobody")], "invalid_client"),
        ([("client_id", "")], "invalid_request"),
        ([("redirect_uri", "http://127.0.0.1/cb")], "invalid_grant"),
        ([("code_verifier", other)], "invalid_grant"),
        ([("code_verifier", "short")], "invalid_grant"),
        ([("code_verifier", "")], "invalid_request"),
        ([("code", "pdpp_code_guess")], "invalid_grant"),
        ([("resource", "https://other.example")], "invalid_target"),
        ([("grant_type", "password")], "unsupported_grant_type"),
        ([("grant_type", "")], "invalid_request"),
    ] {
        let found = redeem(&world, &client, &code, &changes).unwrap_err();
        assert_eq!(found.error, error, "{changes:?}");
    }
    assert!(
        redeem(&world, &client, &code, &[]).is_ok(),
        "a wrong guess does not use it up"
    );
}

#[test]
fn a_code_may_be_redeemed_for_less_but_never_for_more() {
    let world = World::new();
    let client = client(&world);
    let mcp = format!("{ORIGIN}/mcp");
    let narrow = ask(&world, &client, &[("resource", &mcp)]).unwrap();
    let narrow = approve(&world, &narrow, mail());
    assert_eq!(
        refused(redeem(&world, &client, &narrow, &[("resource", ORIGIN)])),
        "invalid_target"
    );
    assert!(redeem(&world, &client, &narrow, &[("resource", &mcp)]).is_ok());
    let wide = code(&world, &client, mail());
    let response = redeem(&world, &client, &wide, &[("resource", &mcp)]).unwrap();
    let told = issuer(&world)
        .introspect(response.access_token.expose())
        .unwrap();
    assert_eq!(told.aud, Some(mcp));
}

#[test]
fn a_code_lives_two_minutes() {
    let world = World::new();
    let client = client(&world);
    let code = code(&world, &client, mail());
    world.wait(Duration::from_mins(2));
    assert_eq!(
        refused(redeem(&world, &client, &code, &[])),
        "invalid_grant"
    );
}

#[test]
fn a_replayed_code_ends_the_tokens_it_became() {
    let world = World::new();
    let client = client(&world);
    let code = code(&world, &client, mail());
    let first = redeem(&world, &client, &code, &[]).unwrap();
    let second = refresh(&world, &client, renewing(&first), &[]).unwrap();
    world.wait(Duration::from_mins(10));
    assert_eq!(
        refused(redeem(&world, &client, &code, &[])),
        "invalid_grant"
    );
    assert!(!is_live(&world, &first) && !is_live(&world, &second));
    assert_eq!(
        refused(refresh(&world, &client, renewing(&second), &[])),
        "invalid_grant"
    );
}

#[test]
fn a_replayed_code_ends_tokens_without_renewal_too() {
    let world = World::new();
    let metadata =
        json!({ "redirect_uris": [crate::flow::REDIRECT], "grant_types": ["authorization_code"] });
    let client = register(&world, &metadata);
    let code = code(&world, &client, mail());
    let first = redeem(&world, &client, &code, &[]).unwrap();
    assert!(first.refresh_token.is_none());
    assert_eq!(first.expires_in, 90 * 86_400, "as long as its grant");
    redeem(&world, &client, &code, &[]).unwrap_err();
    assert!(!is_live(&world, &first));
}

#[test]
fn of_redemptions_side_by_side_at_most_one_wins() {
    let world = World::new();
    let client = client(&world);
    let code = code(&world, &client, mail());
    assert_eq!(winners(|| redeem(&world, &client, &code, &[]).ok()), 1);
}

#[test]
fn a_grant_revoked_before_its_code_is_redeemed_gives_no_token() {
    let world = World::new();
    let client = client(&world);
    let code = code(&world, &client, mail());
    let listed = grants::list(world.store(), world.now()).unwrap();
    grants::revoke(world.store(), &listed[0].id, world.now()).unwrap();
    assert_eq!(
        refused(redeem(&world, &client, &code, &[])),
        "invalid_grant"
    );
}

#[test]
fn a_token_request_names_its_client_and_way_once() {
    let world = World::new();
    let twice = parameters(
        &[
            ("grant_type", "refresh_token"),
            ("grant_type", "authorization_code"),
        ],
        &[],
    );
    assert_eq!(
        issuer(&world).token(&twice).unwrap_err().error,
        "invalid_request"
    );
}

/// The states of everything that was granted, newest first.
fn states(world: &World) -> Vec<State> {
    let all = grants::list(world.store(), world.now()).unwrap();
    all.iter().map(|overview| overview.state).collect()
}

#[test]
fn an_approval_that_nobody_comes_for_ends_with_its_code() {
    let world = World::new();
    let client = client(&world);
    let both = only(&[stream("home", "messages"), stream("work", "messages")]);
    // One grant, and a package of two.
    for choice in [mail(), both] {
        let code = code(&world, &client, choice);
        let waiting = grants::list(world.store(), world.now()).unwrap().remove(0);
        assert_eq!(waiting.state, State::Waiting);
        world.wait(Duration::from_mins(2));
        let lapsed = grants::show(world.store(), &waiting.id, world.now(), 1).unwrap();
        assert_eq!(lapsed.overview.state, State::Lapsed);
        assert_eq!(lapsed.overview.redeem_by, waiting.redeem_by);
        assert_eq!(
            refused(redeem(&world, &client, &code, &[])),
            "invalid_grant"
        );
        // Nor is there anything to look through.
        assert!(grants::authority_of(world.store(), &waiting.id, world.now()).is_err());
    }
    assert_eq!(states(&world), [State::Lapsed, State::Lapsed]);
}

#[test]
fn an_approval_is_live_from_its_first_token_on() {
    let world = World::new();
    let client = client(&world);
    let both = only(&[stream("home", "messages"), stream("work", "messages")]);
    for choice in [mail(), both] {
        let code = code(&world, &client, choice);
        world.wait(Duration::from_secs(119));
        let response = redeem(&world, &client, &code, &[]).unwrap();
        assert_eq!(states(&world)[0], State::Live);
        world.wait(Duration::from_mins(10));
        assert_eq!(states(&world)[0], State::Live);
        assert!(is_live(&world, &response));
    }
}
