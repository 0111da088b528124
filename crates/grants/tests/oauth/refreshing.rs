//! Refresh tokens: each renews once; a replaced one ends the family.

use std::time::Duration;

use contract::time::Instant;
use grants::State;
use grants::oauth::Choice;

use crate::flow::{
    ORIGIN, client, is_live, issuer, mail, only, refresh, refused, renewing, stream, tokens,
    winners,
};
use crate::world::World;

const DAY: Duration = Duration::from_hours(24);

#[test]
fn a_refresh_token_renews_and_is_replaced() {
    let world = World::new();
    let client = client(&world);
    let mut current = tokens(&world, &client, mail());
    for _ in 0..3 {
        world.wait(Duration::from_hours(1));
        assert!(!is_live(&world, &current));
        let next = refresh(&world, &client, renewing(&current), &[]).unwrap();
        assert_ne!(renewing(&next), renewing(&current));
        assert_eq!(next.grant_id, current.grant_id);
        current = next;
        assert!(is_live(&world, &current));
    }
}

#[test]
fn a_replaced_refresh_token_ends_the_whole_family() {
    let world = World::new();
    let client = client(&world);
    let first = tokens(&world, &client, mail());
    let second = refresh(&world, &client, renewing(&first), &[]).unwrap();
    let bystander = tokens(&world, &client, mail());
    assert_eq!(
        refused(refresh(&world, &client, renewing(&first), &[])),
        "invalid_grant"
    );
    assert!(!is_live(&world, &first) && !is_live(&world, &second));
    assert!(refresh(&world, &client, renewing(&second), &[]).is_err());
    assert!(is_live(&world, &bystander), "other families go on");
    assert!(refresh(&world, &client, renewing(&bystander), &[]).is_ok());
}

#[test]
fn a_refresh_token_is_bound_to_its_client_and_resource() {
    let world = World::new();
    let client = client(&world);
    let stranger = crate::flow::client(&world);
    let response = tokens(&world, &client, mail());
    let token = renewing(&response);
    assert_eq!(
        refused(refresh(&world, &stranger, token, &[])),
        "invalid_grant"
    );
    let elsewhere = refresh(
        &world,
        &client,
        token,
        &[("resource", "https://other.example")],
    );
    assert_eq!(elsewhere.unwrap_err().error, "invalid_target");
    for guess in [
        "",
        "pdpp_rt_",
        ".",
        "pdpp_rt_x.y",
        &token[..token.len() - 50],
    ] {
        assert!(refresh(&world, &client, guess, &[]).is_err(), "{guess}");
    }
    let mcp = format!("{ORIGIN}/mcp");
    let narrow = refresh(&world, &client, token, &[("resource", &mcp)]).unwrap();
    let audience = |token: &str| issuer(&world).introspect(token).unwrap().aud;
    assert_eq!(audience(narrow.access_token.expose()), Some(mcp));
    let wide = refresh(&world, &client, renewing(&narrow), &[]).unwrap();
    assert_eq!(
        audience(wide.access_token.expose()).as_deref(),
        Some(ORIGIN)
    );
}

#[test]
fn a_family_ends_after_thirty_days_of_rest_and_its_grant_with_it() {
    let world = World::new();
    let client = client(&world);
    let response = tokens(&world, &client, mail());
    let grant = response.grant_id.clone().unwrap();
    let listed = || {
        let listed = grants::list(world.store(), world.now()).unwrap().remove(0);
        (listed.state, listed.expires_at.unwrap())
    };
    let whole = listed();
    assert_eq!(whole.0, State::Live);
    world.wait(DAY * 29);
    let response = refresh(&world, &client, renewing(&response), &[]).unwrap();
    let ends = Instant(world.now().0 + 30 * 24 * 3_600 * 1_000_000).to_rfc3339_millis();
    world.wait(DAY * 29);
    assert_eq!(listed(), whole);
    world.wait(DAY);
    assert!(refresh(&world, &client, renewing(&response), &[]).is_err());
    // TR-11: nothing can be read with it any more, so nowhere does it say that it is live.
    assert_eq!(listed(), (State::Expired, ends));
    assert!(grants::authority_of(world.store(), grant.as_str(), world.now()).is_err());
}

#[test]
fn no_token_outlives_its_grant() {
    let world = World::new();
    let client = client(&world);
    let soon = Choice {
        expires_at: Some(Instant(world.now().0 + 90 * 60_000_000)),
        ..mail()
    };
    let response = tokens(&world, &client, soon);
    assert_eq!(response.expires_in, 3_600);
    world.wait(Duration::from_hours(1));
    let last = refresh(&world, &client, renewing(&response), &[]).unwrap();
    assert_eq!(last.expires_in, 30 * 60);
    world.wait(Duration::from_mins(30));
    assert!(refresh(&world, &client, renewing(&last), &[]).is_err());
}

#[test]
fn a_revoked_grant_or_package_ends_its_family() {
    let world = World::new();
    let client = client(&world);
    let one = tokens(&world, &client, mail());
    let both = only(&[stream("home", "messages"), stream("team", "messages")]);
    let several = tokens(&world, &client, both);
    let ids = [
        one.grant_id.clone().unwrap().to_string(),
        several.grant_package_id.clone().unwrap().to_string(),
    ];
    for (response, id) in [(&one, &ids[0]), (&several, &ids[1])] {
        grants::revoke(world.store(), id, world.now()).unwrap();
        assert!(!is_live(&world, response));
        assert_eq!(
            refused(refresh(&world, &client, renewing(response), &[])),
            "invalid_grant"
        );
    }
}

#[test]
fn of_refreshes_side_by_side_at_most_one_wins() {
    let world = World::new();
    let client = client(&world);
    let response = tokens(&world, &client, mail());
    assert_eq!(
        winners(|| refresh(&world, &client, renewing(&response), &[]).ok()),
        1
    );
    assert!(
        !is_live(&world, &response),
        "two holders of one token end the family"
    );
}
