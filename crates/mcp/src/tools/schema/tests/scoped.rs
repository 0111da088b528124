//! One stream: all that it accepts, said so that text alone is enough.

use serde_json::{Map, Value, json};

use super::fixtures::{compact, grant, narrowed, server};
use super::{holds, next};
use crate::budget;
use crate::stub::Stub;

#[test]
fn each_source_of_a_stream_has_a_block_of_its_own() {
    // SC-06, SC-07, SC-11
    let stub = server(&grant(), &[(Some("messages"), None)]);
    let reply = stub.call("schema", json!({"stream": "messages"})).unwrap();
    assert_eq!(stub.asked(), ["/v1/schema?view=compact&stream=messages"]);
    insta::assert_snapshot!("scoped", reply.text);
    insta::assert_snapshot!(
        "scoped_structured",
        serde_json::to_string_pretty(&reply.structured).unwrap()
    );
    for key in ["slack", "gmail"] {
        let start = format!("stream name=\"messages\" connector_key=\"{key}\"");
        let mut lines = reply
            .text
            .lines()
            .skip_while(|line| !line.starts_with(&start));
        let block: Vec<&str> = lines.by_ref().take(9).collect();
        assert!(block[1].starts_with("fields=id[t=string,eq];"), "{block:?}");
        assert!(
            block
                .iter()
                .any(|line| line.starts_with("aggregations: count=records; count_distinct=sender;")),
            "{block:?}"
        );
    }
    let row = &reply.structured["data"]["connectors"][0]["streams"][0];
    assert_eq!(
        row["field_capabilities"]["sender"],
        "t=string,eq,a=count_distinct|group_by"
    );
    for capability in [
        "filter",
        "sort",
        "projection",
        "count",
        "search",
        "aggregate",
        "expand",
    ] {
        assert!(row["accepts"].get(capability).is_some(), "{capability}");
    }
    // SC-05
    assert!(!holds(&reply.structured, "schema"));
}

#[test]
fn what_a_grant_does_not_advertise_is_said() {
    // SC-10
    let body = json!({"connectors": [{"connector_key": "k", "granted_connections": [{"connection_id": "c1"}],
        "streams": [{"name": "notes", "primary_key": [], "expand_capabilities": [],
            "field_capabilities": {"id": "declared", "title": "declared"}}]}]});
    let stub = Stub::default().on("/v1/schema", body);
    let text = stub
        .call("schema", json!({"stream": "notes"}))
        .unwrap()
        .text;
    insta::assert_snapshot!("nothing_advertised", text);
}

#[test]
fn unusable_and_ungranted_fields_are_not_offered() {
    let body = json!({"connectors": [{"connector_key": "k", "granted_connections": [{"connection_id": "c1"}],
        "streams": [{"name": "notes", "expand_capabilities": [{"name": "tags", "usable": false, "reason": "related_stream_not_granted"}],
            "field_capabilities": {"secret": "t=string,g=false,eq=unusable:field_not_granted,r=unusable", "at": "t=string,r"}}]}]});
    let stub = Stub::default().on("/v1/schema", body);
    let reply = stub.call("schema", json!({"stream": "notes"})).unwrap();
    let text = &reply.text;
    for told in [
        "g=false = not granted",
        "unusable = declared, but not usable",
        "filter: exact=none advertised for this grant range=at(operators not told)",
        "[any of the 1 granted names above]",
        "expand: tags unusable: related_stream_not_granted",
    ] {
        assert!(text.contains(told), "{told} in {text}");
    }
    assert_eq!(next(text)[0].1["fields"], json!(["at"]));
    let accepts = &reply.structured["data"]["connectors"][0]["streams"][0]["accepts"];
    assert_eq!(accepts["filter"], json!({"exact": [], "range": {"at": []}}));
    assert_eq!(accepts["expand"], json!([]));
}

#[test]
fn both_shapes_of_a_server_give_the_same_flags() {
    let full = narrowed(&grant(), Some("messages"), None);
    let from = |body: Value| {
        let stub = Stub::default().on("/v1/schema", body);
        let reply = stub.call("schema", json!({"stream": "messages"})).unwrap();
        reply.structured["data"]["connectors"][0]["streams"][0]["field_capabilities"].clone()
    };
    assert_eq!(from(compact(&full)), from(full));
}

#[test]
fn a_stream_of_very_many_sources_stays_within_bounds_and_names_each() {
    // BU-05
    let fields: Map<String, Value> = (0..40)
        .map(|n| {
            (
                format!("field_name_{n:02}"),
                json!("t=string,eq,a=count_distinct|group_by"),
            )
        })
        .collect();
    let connectors: Vec<Value> = (0..60)
        .map(|c| json!({"connector_key": format!("k{c:02}"), "granted_connections": [{"connection_id": format!("cin_{c:02}")}],
            "streams": [{"name": "messages", "field_capabilities": fields}]}))
        .collect();
    let stub = Stub::default().on("/v1/schema", json!({ "connectors": connectors }));
    let reply = stub.call("schema", json!({"stream": "messages"})).unwrap();
    assert!(
        reply.text.len() <= budget::SCHEMA_TEXT,
        "{}",
        reply.text.len()
    );
    let bytes = reply.structured.to_string().len();
    assert!(bytes <= budget::STREAM_STRUCTURED, "{bytes}");
    for c in 0..60 {
        let told = format!("connector_key=\"k{c:02}\" connections=cin_{c:02}");
        assert!(reply.text.contains(&told), "{told}");
        assert!(
            reply
                .structured
                .to_string()
                .contains(&format!("cin_{c:02}"))
        );
    }
    let first = reply.text.lines().next().unwrap();
    assert!(
        first.contains("of them without all that it accepts"),
        "{first}"
    );
}

#[test]
fn hundreds_of_sources_are_all_named() {
    // BU-05
    let connectors: Vec<Value> = (0..400)
        .map(|c| json!({"connector_key": format!("k{c}"), "source": {"id": format!("https://registry.test/connectors/k{c}"), "kind": "connector"},
            "granted_connections": [{"connection_id": format!("c{c}"), "display_name": "A label of some length"}],
            "streams": [{"name": "messages", "cursor_field": "at", "field_capabilities": {"id": "t=string,eq", "at": "t=string,r=gte|lt"}}]}))
        .collect();
    let stub = Stub::default().on("/v1/schema", json!({ "connectors": connectors }));
    let reply = stub.call("schema", json!({"stream": "messages"})).unwrap();
    let names: usize = (0..400).map(|c| 2 * format!("k{c}").len() + 2).sum();
    let text = reply.text.len();
    assert!(text <= budget::SCHEMA_TEXT.max(names * 3 / 2), "{text}");
    let bytes = reply.structured.to_string().len();
    assert!(bytes <= budget::STREAM_STRUCTURED, "{bytes}");
    for c in 0..400 {
        assert!(reply.text.contains(&format!("\nk{c} @ c{c}\n")), "{c}");
        assert!(
            reply.structured.to_string().contains(&format!("\"c{c}\"")),
            "{c}"
        );
    }
}

#[test]
fn a_stream_of_very_many_fields_says_how_many_are_not_shown() {
    let fields: Map<String, Value> = (0..3_000)
        .map(|n| (format!("field_name_{n:04}"), json!("t=string,eq")))
        .collect();
    let body = json!({"connectors": [{"connector_key": "k", "streams": [{"name": "wide", "field_capabilities": fields}]}]});
    let stub = Stub::default().on("/v1/schema", body);
    let reply = stub.call("schema", json!({"stream": "wide"})).unwrap();
    assert!(reply.text.len() <= budget::SCHEMA_TEXT);
    let shown = (0..3_000)
        .filter(|n| reply.text.contains(&format!("field_name_{n:04};")))
        .count();
    assert!(shown > 150, "{shown}");
    assert!(reply.text.contains("fields_not_shown="), "{}", reply.text);
    let row = &reply.structured["data"]["connectors"][0]["streams"][0];
    assert_eq!(row["field_names"].as_array().unwrap().len(), 3_000);
    let names = 3_000 * ("field_name_0000".len() + 3);
    assert!(reply.structured.to_string().len() <= names * 3 / 2);
}

#[test]
fn fields_that_no_argument_can_name_are_told_and_left_out_of_calls() {
    // HD-04: commas and brackets separate names on the wire.
    let filtered = |flags: &str| format!("t=string,{flags}");
    let fields =
        json!({"a,b": filtered("eq"), "x[y]": filtered("eq,r=gte|lt"), "plain": filtered("eq")});
    let document = json!({"object":"schema","detail":"compact","connectors":[{"connector_key":"k",
        "streams":[{"name":"odd","cursor_field":"a,b","granted_connections":[{"connection_id":"c1"}],
            "field_capabilities":fields}]}]});
    let stub = Stub::default().on("/v1/schema", document);
    let reply = stub.call("schema", json!({"stream": "odd"})).unwrap();
    for (_, args) in next(&reply.text) {
        assert!(!args.to_string().contains("a,b"), "{args}");
        assert!(args["filter"].get("x[y]").is_none(), "{args}");
    }
    let told = r#"cannot be named in these arguments: fields="a,b"; filter="x[y]"; without fields, records show them"#;
    assert!(reply.text.contains(told), "{}", reply.text);
    assert!(
        reply
            .text
            .contains(r#"filter: exact="a,b"|plain range=none"#),
        "{}",
        reply.text
    );
    assert!(reply.text.contains("sort: none"), "{}", reply.text);
    assert!(
        reply.text.contains("any of the 2 granted names"),
        "{}",
        reply.text
    );
    let row = &reply.structured["data"]["connectors"][0]["streams"][0];
    assert_eq!(row["field_capabilities"]["x[y]"], "t=string");
    assert_eq!(
        row["accepts"]["filter"],
        json!({"exact": ["a,b", "plain"], "range": {}})
    );
    let unsayable = json!({"fields": ["a,b"], "filter": ["x[y]"]});
    assert_eq!(row["accepts"]["cannot_be_named"], unsayable);
    let full = stub.call("schema", json!({"stream": "odd", "detail": "full"}));
    let full = full.unwrap().structured;
    let row = &full["data"]["connectors"][0]["streams"][0];
    assert_eq!(row["cannot_be_named"], unsayable);
}

#[test]
fn what_a_grant_leaves_out_of_a_stream_is_said() {
    let limits = json!({"since": "2026-01-01"});
    let stream = |members: Value| {
        let mut row = json!({"name": "notes", "field_capabilities": {"id": "t=string,eq"}});
        row.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let body = json!({"connectors": [{"connector_key": "k", "streams": [row]}]});
        let stub = Stub::default().on("/v1/schema", body);
        stub.call("schema", json!({"stream": "notes"}))
            .unwrap()
            .text
    };
    let text = stream(json!({"time_constraint": limits, "resources": ["n1", "n2"]}));
    let told = r#"granted: time {"since":"2026-01-01"} only 2 named records"#;
    assert!(text.contains(told), "{text}");
    assert!(!stream(json!({})).contains("granted:"));
}
