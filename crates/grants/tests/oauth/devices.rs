//! The device flow: a code to type, polling at a pace, the same review, one token.

use std::time::Duration;

use grants::oauth::{
    Answer, Client, Decider, DecisionError, DeviceAuthorization, OAuthError, TokenResponse,
};
use grants::{Overview, State, TokenKind};
use store::grants::RevocationReason;

use crate::flow::{
    DEVICE, client, is_live, issuer, mail, parameters, refresh, refused, register, renewing,
    review, winners,
};
use crate::world::World;

const PACE: Duration = Duration::from_secs(5);

fn start(world: &World, client: &Client) -> DeviceAuthorization {
    let asked = parameters(&[("client_id", client.client_id.as_str())], &[]);
    issuer(world)
        .start_device(client, &asked, "/device")
        .unwrap()
}

fn poll(
    world: &World,
    client: &Client,
    device: &DeviceAuthorization,
) -> Result<TokenResponse, OAuthError> {
    let asked = [
        ("grant_type", DEVICE),
        ("client_id", client.client_id.as_str()),
        ("device_code", device.device_code.expose()),
    ];
    issuer(world).token(&parameters(&asked, &[]))
}

fn approve(world: &World, device: &DeviceAuthorization) {
    let request = issuer(world)
        .request_of_user_code(device.user_code.expose())
        .unwrap();
    let review = review(world, &request, mail());
    let answer = issuer(world).approve(&request, &review.digest, Decider::Terminal);
    assert_eq!(answer.unwrap(), Answer::Device);
}

/// The grant or package that was issued last.
fn newest(world: &World) -> Overview {
    let listed = grants::list(world.store(), world.now()).unwrap();
    listed.into_iter().next().unwrap()
}

#[test]
fn a_device_gets_its_token_after_the_owner_approved() {
    let world = World::new();
    let client = client(&world);
    let device = start(&world, &client);
    assert_eq!(device.verification_uri, "https://pdpp.example/device");
    assert!(
        device
            .verification_uri_complete
            .expose()
            .ends_with(device.user_code.expose())
    );
    assert_eq!((device.expires_in, device.interval), (600, 5));
    assert_eq!(
        refused(poll(&world, &client, &device)),
        "authorization_pending"
    );
    approve(&world, &device);
    let response = poll(&world, &client, &device).unwrap();
    let kind = grants::resolve(world.store(), response.access_token.expose(), world.now())
        .unwrap()
        .kind;
    assert_eq!(kind, TokenKind::Client, "never the owner's");
    assert!(refresh(&world, &client, renewing(&response), &[]).is_ok());
}

#[test]
fn a_second_use_of_a_device_code_ends_what_came_of_the_first() {
    // TR-09: also by another client, and also long after the code could have been redeemed.
    let world = World::new();
    let (client, other) = (client(&world), client(&world));
    for (who, wait) in [(&client, Duration::ZERO), (&other, Duration::from_mins(59))] {
        let device = start(&world, &client);
        approve(&world, &device);
        let first = poll(&world, &client, &device).unwrap();
        world.wait(wait);
        assert!(is_live(&world, &first));
        assert_eq!(newest(&world).state, State::Live);
        let again = poll(&world, who, &device).unwrap_err();
        assert_eq!(again.error, "invalid_grant");
        assert!(!is_live(&world, &first));
        // What nobody can use any more is not said to be live.
        let ended = newest(&world);
        assert_eq!(ended.state, State::Revoked);
        assert_eq!(ended.revoked_reason, Some(RevocationReason::TokensEnded));
        let renewed = refresh(&world, &client, renewing(&first), &[]);
        assert_eq!(renewed.unwrap_err().error, "invalid_grant");
    }
}

#[test]
fn a_device_that_asks_too_often_has_to_wait_longer() {
    let world = World::new();
    let client = client(&world);
    let device = start(&world, &client);
    let error = || poll(&world, &client, &device).unwrap_err().error;
    assert_eq!(error(), "authorization_pending");
    assert_eq!(error(), "slow_down");
    world.wait(PACE);
    assert_eq!(error(), "slow_down", "now ten seconds");
    world.wait(PACE * 3);
    assert_eq!(error(), "authorization_pending");
}

#[test]
fn a_denied_or_late_device_learns_so() {
    let world = World::new();
    let client = client(&world);
    let (denied, late) = (start(&world, &client), start(&world, &client));
    let request = issuer(&world)
        .request_of_user_code(denied.user_code.expose())
        .unwrap();
    assert_eq!(
        issuer(&world).deny(&request, Decider::Terminal).unwrap(),
        Answer::Device
    );
    assert_eq!(refused(poll(&world, &client, &denied)), "access_denied");
    world.wait(Duration::from_mins(10));
    assert_eq!(refused(poll(&world, &client, &late)), "expired_token");
    let typed = issuer(&world).request_of_user_code(late.user_code.expose());
    assert!(matches!(typed, Err(DecisionError::Unknown)));
}

#[test]
fn an_approval_in_the_last_second_still_reaches_the_device() {
    let world = World::new();
    let client = client(&world);
    let device = start(&world, &client);
    world.wait(Duration::from_secs(599));
    approve(&world, &device);
    world.wait(PACE);
    assert!(poll(&world, &client, &device).is_ok());
}

#[test]
fn an_approval_that_the_device_never_asks_for_ends_when_it_can_no_longer_be_had() {
    let world = World::new();
    let client = client(&world);
    let device = start(&world, &client);
    approve(&world, &device);
    let state = || grants::list(world.store(), world.now()).unwrap()[0].state;
    assert_eq!(state(), State::Waiting);
    world.wait(Duration::from_mins(10));
    assert_eq!(state(), State::Lapsed);
    assert!(poll(&world, &client, &device).is_err());
    let device = start(&world, &client);
    approve(&world, &device);
    poll(&world, &client, &device).unwrap();
    world.wait(Duration::from_mins(10));
    assert_eq!(state(), State::Live);
}

#[test]
fn a_user_code_is_typed_in_any_way() {
    let world = World::new();
    let client = client(&world);
    let device = start(&world, &client);
    let code = device.user_code.expose();
    for typed in [
        code.to_lowercase(),
        code.replace('-', ""),
        format!(" {} ", code.replace('-', " ")),
    ] {
        assert!(
            issuer(&world).request_of_user_code(&typed).is_ok(),
            "{typed}"
        );
    }
    for typed in ["", "BBBB-BBBB", &code[..8]] {
        assert!(
            issuer(&world).request_of_user_code(typed).is_err(),
            "{typed}"
        );
    }
}

#[test]
fn a_device_code_is_of_one_client() {
    let world = World::new();
    let (client, stranger) = (client(&world), client(&world));
    let device = start(&world, &client);
    approve(&world, &device);
    assert_eq!(refused(poll(&world, &stranger, &device)), "invalid_grant");
    let browser = register(
        &world,
        &serde_json::json!({ "redirect_uris": [crate::flow::REDIRECT] }),
    );
    let asked = parameters(&[("client_id", browser.client_id.as_str())], &[]);
    let error = issuer(&world)
        .start_device(&browser, &asked, "/device")
        .unwrap_err();
    assert_eq!(error.error, "unauthorized_client");
    assert_eq!(winners(|| poll(&world, &client, &device).ok()), 1);
}
