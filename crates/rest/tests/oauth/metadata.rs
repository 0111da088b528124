//! The documents by which applications find their way.

use serde_json::{Value, json};

use crate::fixture::{URL, World};

#[tokio::test]
async fn the_authorization_server_says_what_it_can() {
    let world = World::new().await;
    let root = world
        .get("/.well-known/oauth-authorization-server")
        .await
        .json();
    let below = world
        .get("/.well-known/oauth-authorization-server/mcp")
        .await
        .json();
    assert_eq!(root, below);
    assert_eq!(root["issuer"], URL);
    // What Claude needs to see before it uses its document.
    assert_eq!(root["client_id_metadata_document_supported"], true);
    assert_eq!(
        root["token_endpoint_auth_methods_supported"],
        json!(["none"])
    );
    assert_eq!(root["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(root["authorization_response_iss_parameter_supported"], true);
    assert_eq!(
        root["authorization_details_types_supported"],
        json!(["https://pdpp.dev/data-access"])
    );
    assert!(root.get("pushed_authorization_request_endpoint").is_none());
    for name in [
        "token",
        "registration",
        "device_authorization",
        "revocation",
        "introspection",
    ] {
        let address = root[format!("{name}_endpoint")].as_str().unwrap();
        let answer = world.post(address.strip_prefix(URL).unwrap(), &[]).await;
        assert!(
            answer.status.is_client_error() && answer.status != 404,
            "{address}"
        );
    }
    insta::assert_snapshot!(
        "authorization_server",
        serde_json::to_string_pretty(&root).unwrap()
    );
}

// SU-07, UP-08
#[tokio::test]
async fn one_mcp_endpoint_is_named_and_no_profile() {
    let world = World::new().await;
    let mcp = world
        .get("/.well-known/oauth-protected-resource/mcp")
        .await
        .json();
    assert_eq!(mcp["resource"], format!("{URL}/mcp"));
    assert_eq!(mcp["authorization_servers"], json!([URL]));
    assert_eq!(
        mcp["pdpp_token_kinds_supported"],
        json!(["client", "mcp_package"])
    );
    assert_eq!(
        mcp["pdpp_agent_discovery"]["mcp"]["endpoint"],
        format!("{URL}/mcp")
    );
    let root = world
        .get("/.well-known/oauth-protected-resource")
        .await
        .json();
    assert_eq!(root["resource"], URL);
    assert_eq!(root["authorization_servers"], json!([URL]));
    for document in [&mcp, &root] {
        let text = document.to_string();
        assert!(!text.contains("profile"), "{text}");
        let ends = text.matches(&format!("\"endpoint\":\"{URL}/mcp\"")).count();
        assert_eq!(ends, 1, "{text}");
    }
    insta::assert_snapshot!("mcp_resource", serde_json::to_string_pretty(&mcp).unwrap());
}

#[tokio::test]
async fn who_is_no_browser_finds_an_index_at_the_root() {
    let world = World::new().await;
    let answer = world.get("/").await;
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(answer.header("vary"), "accept");
    let index = answer.json();
    assert_eq!(index["object"], "pdpp_discovery_index");
    assert_eq!(index["role"], "resource_server");
    let links = index["links"].as_object().unwrap();
    for (name, path) in [
        ("schema", "/v1/schema"),
        ("connectors", "/v1/connectors"),
        ("core_query_base", "/v1"),
        ("well_known", "/.well-known/oauth-protected-resource"),
    ] {
        assert_eq!(links[name], path);
    }
    for path in links.values().map(|path| path.as_str().unwrap()) {
        // `/mcp` is for POST, and the base of the queries is no route itself.
        if !["/mcp", "/v1"].contains(&path) {
            assert_ne!(world.get(path).await.status, 404, "{path}");
        }
    }
    let document: Value = world.get("/v1/openapi.json").await.json();
    assert!(document["paths"].get("/oauth/token").is_some());
}
