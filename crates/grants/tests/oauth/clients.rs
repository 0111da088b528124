//! Who may ask: registration, metadata documents, and what a change of them ends.

use std::time::Duration;

use grants::oauth::{
    ClientTrust, GrantType, Lookup, MAX_DOCUMENT_BYTES, client_in_document, is_document_address,
};
use serde_json::{Value, json};

use crate::flow::{
    REDIRECT, approve, ask, found, is_live, issuer, mail, redeem, refresh, register, renewing,
};
use crate::world::World;

const DOCUMENT: &str = "https://app.example/oauth/client.json";

fn refusal(world: &World, metadata: &Value) -> &'static str {
    let error = issuer(world).register(&metadata.to_string()).unwrap_err();
    assert_eq!(error.status, 400);
    error.error
}

#[test]
fn a_client_registers_and_is_found() {
    let world = World::new();
    let metadata = json!({
        "client_name": "An app", "redirect_uris": [REDIRECT], "scope": "ignored", "contacts": ["a@b.example"],
        "software_id": 7, "token_endpoint_auth_method": "none", "response_types": ["code"]
    });
    let registered = issuer(&world).register(&metadata.to_string()).unwrap();
    let hex = registered.client_id.as_str().strip_prefix("cli_").unwrap();
    assert_eq!(hex.len(), 32, "128 bits");
    assert_eq!(registered.token_endpoint_auth_method, "none");
    assert_eq!(registered.response_types, ["code"]);
    assert!(
        registered
            .registration_client_uri
            .ends_with(registered.client_id.as_str())
    );
    let again = issuer(&world)
        .registration(registered.client_id.as_str())
        .unwrap();
    assert_eq!(again, registered);
    let client = found(&world, registered.client_id.as_str());
    assert_eq!(client.trust, ClientTrust::Registered { at: world.now() });
    assert_eq!(
        client.grant_types,
        [GrantType::AuthorizationCode, GrantType::RefreshToken]
    );
    let unknown = issuer(&world).client("cli_nobody").unwrap_err();
    assert_eq!((unknown.error, unknown.status), ("invalid_client", 401));
}

#[test]
fn a_client_without_redirects_is_for_devices() {
    let world = World::new();
    let client = register(&world, &json!({ "client_name": "A CLI" }));
    assert_eq!(
        client.grant_types,
        [GrantType::DeviceCode, GrantType::RefreshToken]
    );
}

#[test]
fn metadata_that_cannot_hold_is_refused_with_its_code() {
    let world = World::new();
    for metadata in [
        json!([]),
        json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_basic" }),
        json!({ "redirect_uris": [REDIRECT], "client_secret": "x" }),
        json!({ "redirect_uris": "https://app.example/cb" }),
        json!({ "redirect_uris": [REDIRECT], "client_name": "x".repeat(257) }),
        json!({ "redirect_uris": [REDIRECT], "client_name": "a\nb" }),
        json!({ "redirect_uris": [REDIRECT], "grant_types": ["implicit"] }),
        json!({ "redirect_uris": [REDIRECT], "grant_types": ["refresh_token"] }),
        json!({ "redirect_uris": [REDIRECT], "grant_types": [] }),
        json!({ "redirect_uris": [REDIRECT], "response_types": ["token"] }),
    ] {
        let code = refusal(&world, &metadata);
        assert_eq!(code, "invalid_client_metadata", "{metadata}");
    }
    for metadata in [
        json!({ "redirect_uris": ["http://app.example/cb"] }),
        json!({ "redirect_uris": ["app:/cb"] }),
        json!({ "redirect_uris": ["https://app.example/cb#x"] }),
        json!({ "redirect_uris": ["http://127.0.0.1/cb"], "application_type": "web" }),
        json!({ "redirect_uris": vec![REDIRECT; 21] }),
        json!({ "grant_types": ["authorization_code"] }),
    ] {
        let code = refusal(&world, &metadata);
        assert_eq!(code, "invalid_redirect_uri", "{metadata}");
    }
    let broken = issuer(&world).register("{").unwrap_err();
    assert_eq!(broken.error, "invalid_client_metadata");
}

#[test]
fn a_client_that_was_never_approved_is_forgotten() {
    let world = World::new();
    let metadata = json!({ "redirect_uris": [REDIRECT] });
    let (used, unused) = (register(&world, &metadata), register(&world, &metadata));
    approve(&world, &ask(&world, &used, &[]).unwrap(), mail());
    world.wait(Duration::from_hours(24 * 30));
    assert!(issuer(&world).client(used.client_id.as_str()).is_ok());
    assert!(issuer(&world).client(unused.client_id.as_str()).is_err());
}

fn document(edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut document = json!({
        "client_id": DOCUMENT, "client_name": "An app", "redirect_uris": [REDIRECT, "http://localhost/cb"]
    });
    edit(&mut document);
    document.to_string().into_bytes()
}

#[test]
fn a_document_speaks_for_its_own_address_only() {
    let client = client_in_document(DOCUMENT, &document(|_| {})).unwrap();
    let origin = "https://app.example".to_owned();
    assert_eq!(client.trust, ClientTrust::Document { origin });
    assert!(
        client.may_use(GrantType::RefreshToken),
        "else its tokens never renew"
    );
    for body in [
        document(|body| body["client_id"] = json!("https://app.example/oauth/other.json")),
        document(|body| body["token_endpoint_auth_method"] = json!("private_key_jwt")),
        document(|body| body["client_secret"] = json!("x")),
        document(|body| body["redirect_uris"] = json!(["https://evil.example/cb"])),
        document(|body| body["redirect_uris"] = json!(["https://app.example:8443/cb"])),
        document(|body| body["padding"] = json!("x".repeat(MAX_DOCUMENT_BYTES))),
        b"[]".to_vec(),
        b"<html>".to_vec(),
    ] {
        assert!(client_in_document(DOCUMENT, &body).is_err());
    }
    assert!(is_document_address(DOCUMENT));
    for address in [
        "http://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https://user@app.example/client.json",
        "https://app.example/client.json#x",
        "https://app.example/a/../client.json",
        "https://app.example/client.json?v=1",
        "cli_0",
    ] {
        assert!(!is_document_address(address), "{address}");
    }
}

#[test]
fn a_document_is_looked_at_again_after_its_time() {
    let world = World::new();
    let needed = Lookup::NeedsDocument(DOCUMENT.to_owned());
    assert_eq!(issuer(&world).client(DOCUMENT).unwrap(), needed);
    let body = document(|_| {});
    for (max_age, lives) in [
        (None, 60),
        (Some(1), 60),
        (Some(3_600), 3_600),
        (Some(u64::MAX), 86_400),
    ] {
        let max_age = max_age.map(Duration::from_secs);
        issuer(&world)
            .accept_document(DOCUMENT, &body, max_age)
            .unwrap();
        world.wait(Duration::from_secs(lives).saturating_sub(Duration::from_micros(1)));
        assert_eq!(
            found(&world, DOCUMENT).client_name.as_deref(),
            Some("An app")
        );
        world.wait(Duration::from_micros(1));
        assert_eq!(issuer(&world).client(DOCUMENT).unwrap(), needed);
    }
}

#[test]
fn a_document_that_sends_codes_elsewhere_ends_what_its_client_was_granted() {
    let world = World::new();
    let accept = |body: &[u8]| {
        issuer(&world)
            .accept_document(DOCUMENT, body, None)
            .unwrap()
    };
    let client = accept(&document(|_| {}));
    let code = approve(&world, &ask(&world, &client, &[]).unwrap(), mail());
    let response = redeem(&world, &client, &code, &[]).unwrap();
    let other = world.issue_for(&["home"]);
    accept(&document(|body| body["client_name"] = json!("Renamed")));
    assert!(is_live(&world, &response));
    world.wait(Duration::from_hours(24 * 20));
    let code = approve(&world, &ask(&world, &client, &[]).unwrap(), mail());
    let renewed = refresh(&world, &client, renewing(&response), &[]).unwrap();
    let pending = ask(&world, &client, &[]).unwrap();
    accept(&document(|body| {
        body["redirect_uris"] = json!(["https://app.example/new"]);
    }));
    assert!(
        !is_live(&world, &renewed),
        "noticed long after the document was fresh"
    );
    assert!(
        redeem(&world, &client, &code, &[]).is_err(),
        "nor is a code under way redeemed"
    );
    assert!(grants::resolve(world.store(), other.access_token.expose(), world.now()).is_ok());
    let review = issuer(&world).review(&pending, mail()).unwrap();
    let late = issuer(&world).approve(&pending, &review.digest, grants::oauth::Decider::Terminal);
    assert_eq!(
        late.unwrap_err().status(),
        409,
        "no code goes to the old address"
    );
}
