//! What may be asked, and who learns of a mistake in it.

use std::time::Duration;

use grants::oauth::{DecisionError, OAuthError};
use serde_json::json;

use crate::flow::{ORIGIN, ask, client, issuer, mail, register};
use crate::world::{World, detail};

const REDIRECT: &str = "invalid_redirect_uri";
const DETAILS: &str = "invalid_authorization_details";

#[test]
fn a_mistake_goes_to_the_client_only_where_it_is_sure_to_be_meant() {
    let world = World::new();
    let client = client(&world);
    for (name, value, code) in [
        ("client_id", "", "invalid_request"),
        ("client_id", "cli_other", "invalid_client"),
        ("redirect_uri", "", "invalid_request"),
        ("redirect_uri", "https://evil.example/cb", REDIRECT),
        ("redirect_uri", "https://app.example/cb/", REDIRECT),
        ("redirect_uri", "http://127.0.0.1:5000/other", REDIRECT),
    ] {
        let error = ask(&world, &client, &[(name, value)]).unwrap_err();
        assert_eq!(
            (error.error.error, error.back),
            (code, None),
            "{name}: {value}"
        );
    }
    let short = "x".repeat(42);
    for (name, value, code) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", short.as_str(), "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("resource", "https://other.example", "invalid_target"),
        ("resource", "https://pdpp.example/v1", "invalid_target"),
        ("resource", "https://pdpp.example.evil", "invalid_target"),
        ("authorization_details", "{}", DETAILS),
        ("authorization_details", "[]", DETAILS),
    ] {
        let error = ask(&world, &client, &[(name, value)]).unwrap_err();
        assert_eq!(error.error.error, code, "{name}: {value}");
        let address = error.back.unwrap().with_error(&error.error, ORIGIN);
        let expected = format!("https://app.example/cb?error={code}&");
        assert!(address.starts_with(&expected), "{address}");
        assert!(
            address.ends_with("&state=st%26te&iss=https%3A%2F%2Fpdpp.example"),
            "{address}"
        );
    }
}

#[test]
fn a_parameter_given_twice_is_refused() {
    let world = World::new();
    let client = client(&world);
    let twice = ["https://a.example", "https://b.example"].map(|uri| ("redirect_uri", uri));
    let twice = ask(&world, &client, &twice);
    assert_eq!(twice.unwrap_err().error.error, "invalid_request");
}

#[test]
fn a_resource_is_the_origin_or_its_mcp() {
    let world = World::new();
    let client = client(&world);
    for (asked, kept) in [
        ("", ORIGIN),
        (ORIGIN, ORIGIN),
        ("https://pdpp.example/", ORIGIN),
        ("https://pdpp.example/mcp", "https://pdpp.example/mcp"),
    ] {
        let id = ask(&world, &client, &[("resource", asked)]).unwrap();
        assert_eq!(issuer(&world).pending(&id).unwrap().resource, kept);
    }
}

#[test]
fn a_native_application_may_come_back_to_any_port_of_loopback() {
    let world = World::new();
    let client = client(&world);
    for port in ["", ":1", ":65535"] {
        let address = format!("http://127.0.0.1{port}/cb");
        assert!(ask(&world, &client, &[("redirect_uri", &address)]).is_ok());
    }
}

#[test]
fn a_client_uses_only_what_it_registered_for() {
    let world = World::new();
    let client = register(
        &world,
        &json!({ "redirect_uris": ["https://app.example/cb"], "grant_types": [crate::flow::DEVICE] }),
    );
    let error = ask(&world, &client, &[]).unwrap_err();
    assert_eq!(error.error.error, "unauthorized_client");
}

#[test]
fn before_the_owner_has_signed_in_the_catalog_makes_no_difference() {
    // TR-04: two servers that differ in all they hold give the same answers to whoever has no grant.
    type Edit = fn(&mut serde_json::Value);
    let (full, empty) = (World::new(), World::empty());
    let edits: [Edit; 16] = [
        |_| {},
        |detail| detail["source"]["id"] = json!("https://sources.example/nope"),
        |detail| detail["source"]["kind"] = json!("provider_native"),
        |detail| detail["streams"][0]["name"] = json!("nope"),
        |detail| detail["streams"][0]["instance_ids"] = json!(["nope"]),
        |detail| detail["streams"][0]["fields"] = json!(["nope"]),
        |detail| detail["streams"][0]["view"] = json!("nope"),
        |detail| detail["streams"][0]["time_range"] = json!({ "since": "2026-01-01" }),
        |detail| detail["streams"][0]["resources"] = json!(["a", "b"]),
        |detail| detail["streams"] = json!([{ "name": "messages" }]),
        |detail| detail["streams"] = json!([{ "name": "folders", "fields": ["name"] }]),
        |detail| detail["streams"] = json!([{ "name": "*" }]),
        // Malformed, which is told, and in the same words.
        |detail| detail["streams"] = json!([]),
        |detail| detail["streams"] = json!("messages"),
        |detail| detail["nope"] = json!(1),
        |detail| detail["streams"][0]["time_range"] = json!({ "since": "yesterday" }),
    ];
    let (mut taken, mut refused) = (0, 0);
    for (at, edit) in edits.into_iter().enumerate() {
        let details = json!([detail(edit)]).to_string();
        let answers = [&full, &empty].map(|world| {
            let client = client(world);
            let changes = [("authorization_details", details.as_str())];
            let page = ask(world, &client, &changes).map(|id| id.len());
            let page = page.map_err(|refused| (refused.error, refused.back));
            let mut form = vec![("client_id", client.client_id.as_str())];
            form.extend(changes);
            let code = issuer(world).start_device(&client, &form.into_iter().collect(), "/device");
            (page, code.map(|code| (code.expires_in, code.interval)))
        });
        assert_eq!(answers[0], answers[1], "edit {at}");
        match answers[0].0 {
            Ok(_) => taken += 1,
            Err(_) => refused += 1,
        }
    }
    assert_eq!((taken, refused), (12, 4));
}

#[test]
fn an_error_description_holds_only_what_the_wire_allows() {
    let told = OAuthError::invalid_request("\"a\" \\ b\nc \u{e9}").description;
    assert_eq!(told, "'a' ? b?c ?");
    let world = World::new();
    let client = client(&world);
    // Two mistakes, one of them about the whole.
    for (details, expected) in [
        ("[]", "authorization_details: is empty"),
        ("[{\"type\":\"x\"}]", "; authorization_details/0: "),
    ] {
        let error = ask(&world, &client, &[("authorization_details", details)]).unwrap_err();
        let told = error.error.description;
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_request_waits_ten_minutes() {
    let world = World::new();
    let client = client(&world);
    let id = ask(&world, &client, &[]).unwrap();
    world.wait(Duration::from_mins(10).saturating_sub(Duration::from_micros(1)));
    assert!(issuer(&world).review(&id, mail()).is_ok());
    world.wait(Duration::from_micros(1));
    let late = issuer(&world).review(&id, mail());
    assert!(matches!(late, Err(DecisionError::Unknown)));
    assert!(matches!(
        issuer(&world).pending("req_nope"),
        Err(DecisionError::Unknown)
    ));
}

#[test]
fn an_error_is_sent_in_the_words_of_the_wire() {
    let error = OAuthError::invalid_grant("x");
    assert_eq!(
        serde_json::to_value(&error).unwrap(),
        json!({ "error": "invalid_grant", "error_description": "x" })
    );
    assert_eq!(OAuthError::server_error("x").status, 500);
    assert_eq!(OAuthError::invalid_client("x").status, 401);
    let inside = store::StoreError::Full {
        path: "/a/place".into(),
    };
    assert!(!OAuthError::from(inside).to_string().contains("place"));
}
