//! Where tokens hold, what is told about them, and how a client ends its own.

use grants::oauth::{Client, OAuthError};
use grants::{ChosenStream, Surface, TokenError, TokenKind, resolve_for};
use serde_json::json;

use crate::flow::{
    ORIGIN, approve, ask, client, is_live, issuer, mail, only, parameters, redeem, refresh,
    renewing, stream, tokens,
};
use crate::world::{World, detail};

#[test]
fn a_token_holds_where_it_was_issued_for() {
    let world = World::new();
    let client = client(&world);
    let for_resource = |resource: &str| {
        let request = ask(&world, &client, &[("resource", resource)]).unwrap();
        let code = approve(&world, &request, mail());
        redeem(&world, &client, &code, &[]).unwrap().access_token
    };
    let holds = |bearer: &str, surface, origin| match resolve_for(
        world.store(),
        bearer,
        surface,
        origin,
        world.now(),
    ) {
        Ok(_) => true,
        Err(TokenError::WrongAudience) => false,
        Err(error) => panic!("{error}"),
    };
    let terminal = world.issue_for(&["home"]).access_token;
    let (wide, mcp) = (
        for_resource(ORIGIN),
        for_resource("https://pdpp.example/mcp"),
    );
    for (token, expected) in [
        (&wide, [true, true]),
        (&mcp, [false, true]),
        (&terminal, [true, true]),
    ] {
        let found =
            [Surface::Rest, Surface::Mcp].map(|surface| holds(token.expose(), surface, ORIGIN));
        assert_eq!(found, expected);
    }
    for origin in [
        "https://other.example",
        "https://pdpp.exampl",
        "https://pdpp.example/mcp",
    ] {
        assert!(!holds(wide.expose(), Surface::Mcp, origin), "{origin}");
    }
    let sent = TokenError::WrongAudience.to_read_error();
    assert_eq!(sent.code, contract::error::ErrorCode::AuthenticationError);
}

// GM-01: consent narrows what was asked and keeps its rules; the owner is told of them, the client is not.
#[test]
fn rules_stay_at_consent_and_are_not_told_to_the_client() {
    let world = World::new();
    let client = client(&world);
    let details = detail(|detail| {
        let stream = &mut detail["streams"][0];
        stream["where"] = json!([{"field": "subject", "in": ["family", "travel"]}]);
        stream["except"] = json!([{"field": "body", "eq": "doctor"}]);
    });
    let details = json!([details]).to_string();
    let request = ask(&world, &client, &[("authorization_details", &details)]).unwrap();
    let picked = ChosenStream {
        fields: Some(vec!["id".to_owned()]),
        ..stream("home", "messages")
    };
    let code = approve(&world, &request, only(&[picked]));
    let response = redeem(&world, &client, &code, &[]).unwrap();
    let told = serde_json::to_string(&response).unwrap();
    assert!(told.contains("\"fields\":[\"id\"]"), "{told}");
    for hidden in ["where", "except", "subject", "family", "doctor"] {
        assert!(!told.contains(hidden), "{told}");
    }
    let token = response.access_token.expose();
    let told = issuer(&world).introspect(token).unwrap();
    let stream = &told.authorization_details[0]["streams"][0];
    assert_eq!(stream["where"][0]["in"], json!(["family", "travel"]));
    assert_eq!(stream["except"][0]["eq"], json!("doctor"));
}

#[test]
fn introspection_tells_what_a_live_token_stands_for_and_nothing_of_others() {
    let world = World::new();
    let client = client(&world);
    let one = tokens(&world, &client, mail());
    let told = issuer(&world)
        .introspect(one.access_token.expose())
        .unwrap();
    assert!(told.active);
    assert_eq!(told.pdpp_token_kind, Some(TokenKind::Client));
    assert_eq!(
        (told.client_id, told.grant_id),
        (Some(client.client_id.clone()), one.grant_id.clone())
    );
    assert_eq!(
        (told.iss.as_deref(), told.aud.as_deref()),
        (Some(ORIGIN), Some(ORIGIN))
    );
    assert_eq!(told.exp.unwrap() - told.iat.unwrap(), 3_600);
    assert_eq!(told.authorization_details.len(), 1);
    let both = only(&[stream("home", "messages"), stream("team", "messages")]);
    let several = tokens(&world, &client, both);
    let told = issuer(&world)
        .introspect(several.access_token.expose())
        .unwrap();
    assert_eq!(told.grant_package_id, several.grant_package_id);
    assert_eq!(told.authorization_details.len(), 2);
    grants::revoke(world.store(), one.grant_id.unwrap().as_str(), world.now()).unwrap();
    for token in [
        one.access_token.expose(),
        renewing(&several),
        "nonsense",
        "",
    ] {
        let told = issuer(&world).introspect(token).unwrap();
        assert_eq!(serde_json::to_string(&told).unwrap(), r#"{"active":false}"#);
    }
}

fn end(world: &World, client: &Client, token: &str) -> Result<(), OAuthError> {
    let asked = [("client_id", client.client_id.as_str()), ("token", token)];
    issuer(world).revoke(&parameters(&asked, &[]))
}

#[test]
fn a_client_ends_its_own_tokens_and_no_others() {
    let world = World::new();
    let (client, stranger) = (client(&world), client(&world));
    let response = tokens(&world, &client, mail());
    for token in [response.access_token.expose(), renewing(&response)] {
        let error = end(&world, &stranger, token).unwrap_err();
        assert_eq!(error.error, "unauthorized_client");
    }
    assert!(is_live(&world, &response));
    end(&world, &client, response.access_token.expose()).unwrap();
    assert!(!is_live(&world, &response));
    let next = refresh(&world, &client, renewing(&response), &[]).unwrap();
    end(&world, &client, renewing(&next)).unwrap();
    assert!(!is_live(&world, &next), "a refresh token ends its family");
    assert!(refresh(&world, &client, renewing(&next), &[]).is_err());
    for token in [renewing(&next), response.access_token.expose(), "unknown"] {
        assert!(end(&world, &client, token).is_ok(), "what is over is over");
    }
    let owner = grants::owner_token(
        world.store(),
        std::time::Duration::from_mins(1),
        &*world.clock,
    )
    .unwrap();
    assert!(end(&world, &client, owner.access_token.expose()).is_err());
    assert!(grants::resolve(world.store(), owner.access_token.expose(), world.now()).is_ok());
}
