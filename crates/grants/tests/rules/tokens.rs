//! What a token stands for, until it does not.

use std::time::Duration;

use crate::world::World;
use contract::error::ErrorCode;
use contract::grant::Authority;
use contract::time::Instant;
use grants::{IssueError, RevokedKind, State, TokenError, TokenKind};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use store::Grants as _;
use store::grants::NewToken;

const DAY: Duration = Duration::from_hours(24);

fn code(world: &World, bearer: &str) -> ErrorCode {
    grants::resolve(world.store(), bearer, world.now())
        .unwrap_err()
        .code()
}

fn rows(world: &World, bearer: &str) -> usize {
    match grants::resolve(world.store(), bearer, world.now())
        .unwrap()
        .authority
    {
        Authority::Granted(granted) => granted.rows().len(),
        Authority::Owner => panic!("a client token never is the owner's"),
    }
}

#[test]
fn a_token_stands_for_its_grant_and_no_other() {
    let world = World::new();
    let (mail, chat) = (world.issue_for(&["home"]), world.issue_for(&["team"]));
    let resolved = grants::resolve(world.store(), mail.access_token.expose(), world.now()).unwrap();
    assert_eq!(resolved.kind, TokenKind::Client);
    assert_eq!(resolved.client_id.unwrap().as_str(), "agent");
    assert_eq!(resolved.grant_ids, [mail.grant_id.unwrap()]);
    assert!(resolved.token_id.starts_with("tok_"));
    let Authority::Granted(granted) = resolved.authority else {
        panic!("a client token never is the owner's");
    };
    assert!(granted.row("home", "messages").is_some() && granted.row("team", "messages").is_none());
    assert_eq!(rows(&world, chat.access_token.expose()), 1);
    for bearer in ["", " ", "pdpp_at_", &mail.access_token.expose()[1..]] {
        assert_eq!(
            code(&world, bearer),
            ErrorCode::AuthenticationError,
            "{bearer}"
        );
    }
}

#[test]
fn an_owner_token_is_the_owners_until_it_expires() {
    let world = World::new();
    let hour = Duration::from_hours(1);
    let token = grants::owner_token(world.store(), hour, &*world.clock).unwrap();
    let bearer = token.access_token.expose();
    assert!(bearer.starts_with("pdpp_owner_"));
    let resolved = grants::resolve(world.store(), bearer, world.now()).unwrap();
    assert_eq!(resolved.kind, TokenKind::Owner);
    assert_eq!(resolved.authority, Authority::Owner);
    assert!(resolved.client_id.is_none() && resolved.grant_ids.is_empty());
    world.wait(hour);
    assert_eq!(code(&world, bearer), ErrorCode::AuthenticationError);
    for life in [Duration::ZERO, DAY * 400, Duration::MAX] {
        let refused = grants::owner_token(world.store(), life, &*world.clock);
        assert!(matches!(refused, Err(IssueError::OwnerTokenLife)));
    }
}

#[test]
fn expired_owner_tokens_are_forgotten_and_revoked_ones_refused() {
    let world = World::new();
    let make = || grants::owner_token(world.store(), DAY, &*world.clock).unwrap();
    make();
    world.wait(DAY);
    let token = make();
    let listed = grants::owner_tokens(world.store(), world.now()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed.first().unwrap().token_id, token.token_id);
    let revoking = grants::revoke(world.store(), &token.token_id, world.now()).unwrap();
    assert_eq!(revoking.kind, RevokedKind::Token);
    assert_eq!(
        code(&world, token.access_token.expose()),
        ErrorCode::AuthenticationError
    );
}

#[test]
fn a_grant_ends_at_its_time() {
    let world = World::new();
    let issued = world.issue_for(&["home"]);
    world.wait((DAY * 90).saturating_sub(Duration::from_micros(1)));
    assert_eq!(rows(&world, issued.access_token.expose()), 2);
    world.wait(Duration::from_micros(1));
    assert_eq!(
        code(&world, issued.access_token.expose()),
        ErrorCode::GrantExpired
    );
    let package = world.issue_for(&["home", "team"]);
    world.wait(DAY * 90);
    assert_eq!(
        code(&world, package.access_token.expose()),
        ErrorCode::GrantExpired
    );
    let states: Vec<State> = grants::list(world.store(), world.now())
        .unwrap()
        .iter()
        .map(|overview| overview.state)
        .collect();
    assert_eq!(states, [State::Expired, State::Expired]);
}

#[test]
fn a_revocation_holds_at_once_and_is_remembered() {
    let world = World::new();
    let issued = world.issue_for(&["home"]);
    let id = issued.grant_id.clone().unwrap().to_string();
    let first = grants::revoke(world.store(), &id, world.now()).unwrap();
    assert_eq!(
        (first.kind, first.already_since),
        (RevokedKind::Grant, None)
    );
    assert_eq!(
        code(&world, issued.access_token.expose()),
        ErrorCode::GrantRevoked
    );
    world.wait(DAY);
    let again = grants::revoke(world.store(), &id, world.now()).unwrap();
    assert_eq!(
        again.already_since.as_deref(),
        Some("2026-06-01T12:00:00.000Z")
    );
    let error = grants::revoke(world.store(), "grt_nope", world.now()).unwrap_err();
    assert!(
        error.to_string().contains("`pdpp grants` lists them"),
        "{error}"
    );
    assert!(grants::authority_of(world.store(), &id, world.now()).is_err());
}

#[test]
fn a_package_loses_revoked_grants_one_by_one_and_ends_with_the_last() {
    let world = World::new();
    let issued = world.issue_for(&["home", "team"]);
    let bearer = issued.access_token.expose();
    let id = issued.grant_package_id.clone().unwrap().to_string();
    let members = grants::show(world.store(), &id, world.now(), 1)
        .unwrap()
        .overview
        .grant_ids;
    assert_eq!(rows(&world, bearer), 3);
    grants::revoke(world.store(), members[0].as_str(), world.now()).unwrap();
    assert_eq!(rows(&world, bearer), 1);
    grants::revoke(world.store(), members[1].as_str(), world.now()).unwrap();
    assert_eq!(code(&world, bearer), ErrorCode::GrantRevoked);

    let issued = world.issue_for(&["home", "team"]);
    let id = issued.grant_package_id.clone().unwrap().to_string();
    let revoking = grants::revoke(world.store(), &id, world.now()).unwrap();
    assert_eq!(revoking.kind, RevokedKind::Package);
    assert_eq!(
        code(&world, issued.access_token.expose()),
        ErrorCode::PackageRevoked
    );
    let shown = grants::show(world.store(), &id, world.now(), 1).unwrap();
    assert_eq!(shown.overview.state, State::Revoked);
}

#[test]
fn a_hash_that_only_begins_alike_is_another_token() {
    let world = World::new();
    let bearer = "a text somebody presents";
    let mut hash: [u8; 32] = Sha256::digest(bearer.as_bytes()).into();
    hash[31] ^= 1;
    let near = NewToken {
        id: "tok_near".to_owned(),
        hash,
        issued_at: world.now(),
        expires_at: Instant(i64::MAX),
        audience: None,
        family: None,
    };
    world.store.add_owner_token(&near).unwrap();
    assert_eq!(code(&world, bearer), ErrorCode::AuthenticationError);
    hash[31] ^= 1;
    let exact = NewToken {
        id: "tok_exact".to_owned(),
        hash,
        ..near
    };
    world.store.add_owner_token(&exact).unwrap();
    let resolved = grants::resolve(world.store(), bearer, world.now()).unwrap();
    assert_eq!(resolved.token_id, "tok_exact");
}

#[test]
fn errors_of_tokens_name_the_next_step_and_nothing_of_the_store() {
    for error in [
        TokenError::Unknown,
        TokenError::Expired,
        TokenError::GrantRevoked,
        TokenError::GrantExpired,
        TokenError::GrantInvalid,
        TokenError::PackageRevoked,
    ] {
        let sent = error.to_read_error();
        assert_eq!(sent.code, error.code());
        assert!(sent.hint.is_some());
    }
    assert_eq!(
        TokenError::Unknown.to_read_error(),
        TokenError::Expired.to_read_error(),
        "who guesses learns nothing"
    );
    let inside = store::StoreError::Full {
        path: "/secret/place".into(),
    };
    let sent = TokenError::Store(inside).to_read_error();
    assert_eq!(sent.code, ErrorCode::InternalError);
    assert!(!sent.message.contains("secret"));
}

#[test]
fn what_a_grant_allows_can_be_looked_at_by_its_id() {
    let world = World::new();
    let one = world.issue_for(&["home"]).grant_id.unwrap();
    let several = world.issue_for(&["home", "team"]).grant_package_id.unwrap();
    for (id, expected) in [(one.as_str(), 2), (several.as_str(), 3)] {
        match grants::authority_of(world.store(), id, world.now()).unwrap() {
            Authority::Granted(granted) => assert_eq!(granted.rows().len(), expected),
            Authority::Owner => panic!("a grant never is the owner"),
        }
    }
    for id in ["", "nope", "a b"] {
        let unknown = grants::authority_of(world.store(), id, world.now());
        assert!(matches!(unknown, Err(TokenError::Unknown)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_bearer_text_is_refused_without_panic(bearers in proptest::collection::vec(any::<String>(), 1..8)) {
        let world = World::new();
        let issued = world.issue_for(&["home"]);
        for bearer in bearers {
            prop_assert_ne!(&bearer, issued.access_token.expose());
            let error = grants::resolve(world.store(), &bearer, world.now()).unwrap_err();
            prop_assert_eq!(error.code(), ErrorCode::AuthenticationError);
            let _ = grants::authority_of(world.store(), &bearer, world.now());
            let _ = grants::show(world.store(), &bearer, world.now(), 1);
            let _ = grants::revoke(world.store(), &bearer, world.now());
        }
    }

    #[test]
    fn any_text_as_details_is_read_without_panic(text in any::<String>(), json in "[\\[{\"a-z:,0-9*\\]} ]{0,60}") {
        for text in [text, json] {
            prop_assert!(grants::Selection::from_details(&text).is_err());
        }
    }
}
