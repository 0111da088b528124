//! Raw JSON Schema: for one stream of one source, bounded.

use serde_json::json;

use super::fixtures::{extra_large_connector, grant, lax, narrowed, server};
use super::{holds, next};
use crate::reply::Reply;
use crate::stub::Stub;

/// Bytes of the whole result as it is sent.
fn whole(reply: Reply) -> usize {
    serde_json::to_string(&reply.into_result()).unwrap().len()
}

#[test]
fn one_source_in_full_has_its_json_schema() {
    // SC-05, SC-15, SC-19
    let honest = server(&grant(), &[(Some("channels"), None)]);
    let wrapped = Stub::default().on("/v1/schema", json!({"data": grant()}));
    for stub in [honest, lax(), wrapped] {
        let args = json!({"stream": "channels", "detail": "full"});
        let reply = stub.call("schema", args).unwrap();
        assert_eq!(stub.asked(), ["/v1/schema?detail=full&stream=channels"]);
        let data = &reply.structured["data"];
        assert_eq!(data["connectors"].as_array().unwrap().len(), 1);
        assert!(data.get("data").is_none() && data.get("streams").is_none());
        let rows = data["connectors"][0]["streams"].as_array().unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["name"], "channels");
        assert_eq!(
            rows[0]["field_capabilities"]["topic"]["schema"],
            json!({"type": "string"})
        );
        assert!(!reply.structured.to_string().contains("sender"));
        insta::allow_duplicates! {
            insta::assert_snapshot!("full", reply.text);
        }
    }
}

#[test]
fn several_sources_in_full_are_a_choice_to_make() {
    // SC-16
    let served = Stub::default().refusing(
        "/v1/schema?detail=full&stream=messages",
        409,
        json!({"error": {"type": "conflict_error", "code": "ambiguous_schema_detail", "message": "which?",
            "param": "connection_id", "retry_with": "connection_id",
            "available_connections": [{"connection_id": "cin_s1"}, {"connection_id": "cin_s2"}, {"connection_id": "cin_g1"}]}}),
    );
    for stub in [served, lax()] {
        let args = json!({"stream": "messages", "detail": "full"});
        let fault = stub.call("schema", args).unwrap_err();
        let structured = fault.structured();
        let error = &structured["error"];
        assert_eq!(error["code"], "ambiguous_schema_detail");
        assert_eq!(error["retry_with"], "connection_id");
        let ids: Vec<&str> = error["available_connections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["connection_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["cin_s1", "cin_s2", "cin_g1"]);
        assert!(!holds(&structured, "schema") && !holds(&structured, "field_capabilities"));
        for id in ids {
            assert!(fault.text().contains(&format!("connection_id={id}")));
        }
    }
    let fault = lax()
        .call("schema", json!({"stream": "messages", "detail": "full"}))
        .unwrap_err();
    insta::assert_snapshot!("ambiguous", fault.text());
}

#[test]
fn two_connections_of_one_connector_in_full_are_a_choice_too() {
    // TR-27: also where a server sends both in one row.
    let mut alike = grant();
    alike["connectors"].as_array_mut().unwrap().truncate(1);
    let stub = Stub::default().on("/v1/schema", alike);
    let args = json!({"stream": "messages", "detail": "full"});
    let fault = stub.call("schema", args).unwrap_err();
    let structured = fault.structured();
    assert_eq!(structured["error"]["code"], "ambiguous_schema_detail");
    let offered = &structured["error"]["available_connections"];
    assert_eq!(offered.as_array().unwrap().len(), 2);
    assert!(!holds(&structured, "schema"));
}

#[test]
fn sources_without_a_connection_in_full_are_told_apart_as_well() {
    let source = |key: &str| json!({"connector_key": key, "streams": [{"name": "messages", "field_capabilities": {}}]});
    let body = json!({"connectors": [source("slack"), source("gmail")]});
    let stub = Stub::default().on("/v1/schema", body);
    let args = json!({"stream": "messages", "detail": "full"});
    let fault = stub.call("schema", args).unwrap_err();
    assert_eq!(fault.code(), "ambiguous_schema_detail");
}

#[test]
fn a_named_connection_is_the_only_one_in_the_answer() {
    // SC-17
    let mut noisy = grant();
    noisy["connectors"][0]["streams"][0]["instance_ids"] = json!(["cin_s1", "cin_s2"]);
    noisy["connectors"][0]["streams"][0]["granted_connections"][0]["connector_instance_id"] =
        json!("cin_s1");
    noisy["connectors"][0]["streams"][0]["granted_connections"][1]["connector_instance_id"] =
        json!("cin_s2");
    let lax = Stub::default().on("/v1/schema", noisy);
    for (connection, connector) in [("cin_g1", "gmail"), ("cin_s2", "slack")] {
        let args = json!({"stream": "messages", "detail": "full", "connection_id": connection});
        let reply = lax.call("schema", args).unwrap();
        let whole = format!("{}{}", reply.text, reply.structured["data"]);
        assert!(whole.contains(connection) && whole.contains(connector));
        for other in ["cin_s1", "cin_s2", "cin_g1"] {
            assert_eq!(whole.contains(other), other == connection, "{other}");
        }
        assert!(!holds(&reply.structured, "connector_instance_id"));
        assert!(reply.text.contains("views=basic") && reply.text.contains("count=records;"));
        let calls = next(&reply.text);
        assert_eq!(calls[0].1["connection_id"], connection);
    }
}

#[test]
fn a_large_stream_in_full_is_bounded_and_says_what_is_missing() {
    // BU-06, SC-18
    let args = json!({"stream": "stream_00_00", "connection_id": "cin_00_03", "detail": "full"});
    let grant = extra_large_connector();
    let stub = Stub::default().on("/v1/schema", grant.clone());
    let reply = stub.call("schema", args.clone()).unwrap();
    let data = reply.structured["data"].clone();
    let row = &data["connectors"][0]["streams"][0];
    // What is told twice goes first; every field keeps its schema.
    assert!(row["schema"].get("properties").is_none());
    for n in 0..40 {
        let schema = &row["field_capabilities"][format!("field_name_{n:02}")]["schema"];
        assert_eq!(schema["type"], "string");
    }
    assert!(!data.to_string().contains("cin_00_04"));
    for said in [
        ". Complete in structuredContent.data.\n",
        "json_schemas_not_shown=",
    ] {
        assert!(reply.text.contains(said), "{}", reply.text);
    }
    assert!(whole(reply) <= 100_000);

    // Twice as large: the largest schemas give way, and are named.
    let mut grant = narrowed(&grant, Some("stream_00_00"), None);
    let fields = &mut grant["connectors"][0]["streams"][0]["field_capabilities"];
    for n in 0..40 {
        fields[format!("field_name_{n:02}")]["schema"]["description"] =
            json!("\"".repeat(2_000 + n));
    }
    let stub = Stub::default().on("/v1/schema", grant);
    let reply = stub.call("schema", args).unwrap();
    let data = &reply.structured["data"];
    let omitted = data["omitted"]["json_schemas"].as_array().unwrap().len();
    assert!(omitted > 10 && omitted < 40, "{omitted}");
    assert!(
        reply
            .text
            .contains(&format!("json_schemas_omitted={omitted} ")),
        "{}",
        reply.text
    );
    let largest = &data["connectors"][0]["streams"][0]["field_capabilities"]["field_name_39"];
    assert!(largest["schema"]["omitted_bytes"].as_u64().unwrap() > 4_000);
    assert!(whole(reply) <= 100_000);
}
