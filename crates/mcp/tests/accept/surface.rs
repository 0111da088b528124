//! TS, BU-01..04, SU-06, AU-06, UP-06, UP-10: what is announced, and whom it serves.

use serde_json::{Value, json};
use testkit::fake::{Reply, State, TOKEN, fixtures};

use crate::host::{Caller, each_way};
use crate::wire::{CURRENT, LEGACY, meta};

const NAMES: [&str; 6] = [
    "schema",
    "search",
    "query_records",
    "aggregate",
    "read_record_field",
    "fetch",
];

const SEED_CEILING: usize = 24_576;
const CEILING: usize = 12_288;

fn listed(caller: &Caller) -> Vec<Value> {
    let response = caller.request("tools/list", json!({}));
    response["result"]["tools"].as_array().unwrap().clone()
}

/// What is wrong with a list of tools (BU-04): membership, words, bytes.
fn objections(tools: &[Value]) -> Vec<String> {
    let mut objections = Vec::new();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    if names != NAMES {
        objections.push(format!("membership: {names:?}"));
    }
    for word in [
        "event",
        "subscription",
        "test",
        "admin",
        "owner",
        "list_streams",
        "blob",
    ] {
        if names.iter().any(|name| name.contains(word)) {
            objections.push(format!("{word} in a name"));
        }
    }
    let bytes = serde_json::to_string(tools).unwrap().len();
    if bytes > CEILING || bytes >= SEED_CEILING {
        objections.push(format!("{bytes} bytes"));
    }
    objections
}

// TS-01, TS-02, BU-01, BU-04, SU-06
#[test]
fn the_six_tools_and_no_other_are_listed_alike_in_every_era() {
    let state = fixtures::multi();
    let first = listed(&Caller::piped(state.clone(), CURRENT));
    assert_eq!(objections(&first), [""; 0]);
    for revision in LEGACY {
        assert_eq!(listed(&Caller::piped(state.clone(), revision)), first);
        assert_eq!(listed(&Caller::posting(state.clone(), revision)), first);
    }
    assert_eq!(listed(&Caller::posting(state, CURRENT)), first);
}

// BU-04, the mutation check
#[test]
fn a_tool_that_does_not_belong_is_objected_to() {
    let caller = Caller::piped(fixtures::multi(), CURRENT);
    for name in [
        "send_test_event",
        "create_event_subscription",
        "owner_admin",
    ] {
        let mut tools = listed(&caller);
        let mut injected = tools[0].clone();
        injected["name"] = json!(name);
        tools.push(injected);
        assert!(!objections(&tools).is_empty(), "{name}");
    }
    let mut tools = listed(&caller);
    tools[0]["description"] = json!("x".repeat(CEILING));
    assert!(!objections(&tools).is_empty());
    let mut tools = listed(&caller);
    tools.pop();
    assert!(!objections(&tools).is_empty());
}

// TS-03, TS-04, UP-03, UP-10
#[test]
fn every_tool_takes_a_connection_and_changes_nothing() {
    each_way(&fixtures::multi(), |caller| {
        for tool in listed(caller) {
            let input = &tool["inputSchema"];
            assert!(input["properties"]["connection_id"].is_object(), "{tool}");
            let required = input["required"].as_array().cloned().unwrap_or_default();
            assert!(!required.contains(&json!("connection_id")), "{tool}");
            assert!(
                !input.to_string().contains("connector_instance_id"),
                "{tool}"
            );
            let annotations = &tool["annotations"];
            assert_eq!(annotations["readOnlyHint"], true);
            assert_eq!(annotations["idempotentHint"], true);
            assert_eq!(annotations["destructiveHint"], false);
            assert_eq!(annotations["openWorldHint"], false);
            // Some hosts refuse anything but a plain object here.
            assert_eq!(tool["outputSchema"]["type"], "object");
            for combinator in ["oneOf", "anyOf", "allOf"] {
                assert!(tool["outputSchema"].get(combinator).is_none());
            }
            let filter = &input["properties"]["filter"];
            if ["query_records", "aggregate", "search"].contains(&tool["name"].as_str().unwrap()) {
                assert_eq!(filter["type"], "object");
                // TR-28: a model knows only the operators it is told of.
                let about = filter["description"].as_str().unwrap();
                let words: Vec<&str> = about.split(|c: char| !c.is_ascii_alphabetic()).collect();
                for operator in ["gte", "gt", "lte", "lt"] {
                    assert!(words.contains(&operator), "{operator} in {tool}");
                }
            }
        }
    });
}

/// A call, the route it asks and the parameters it sends.
const VALID: &str = r#"
schema {"stream":"orders"} /v1/schema stream,view
search {"query":"maker","streams":["orders"],"limit":5} /v1/search limit,q,streams
query_records {"stream":"orders","connection_id":"cin_aaa","fields":["text"],"filter":{"id":"o1"}} /v1/streams/orders/records connection_id,fields,filter[id],limit
aggregate {"stream":"orders","connection_id":"cin_aaa","metric":"count"} /v1/streams/orders/aggregate connection_id,metric
fetch {"id":"cin_aaa/orders:o1","fields":["text"]} /v1/streams/orders/records/o1 connection_id,fields
read_record_field {"id":"cin_aaa/orders:o1","field_path":"text","limit_chars":300} /v1/streams/orders/records/o1/field-window connection_id,field,limit_chars
"#;

/// The words of the rows of a table: a tool, its arguments, and what is to be expected.
fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, Value, Vec<&'static str>)> {
    table.lines().filter(|row| !row.is_empty()).map(|row| {
        let mut words = row.split(' ');
        let (tool, args) = (words.next().unwrap(), words.next().unwrap());
        (tool, serde_json::from_str(args).unwrap(), words.collect())
    })
}

pub(crate) fn valid_calls() -> impl Iterator<Item = (&'static str, Value)> {
    rows(VALID).map(|(tool, args, _)| (tool, args))
}

// TS-05, AU-06
#[test]
fn a_call_is_one_documented_question_with_what_the_caller_said() {
    each_way(&fixtures::multi(), |caller| {
        for (tool, args, expected) in rows(VALID) {
            let (answer, calls) = caller.asked(tool, args);
            assert!(!answer.is_error, "{tool}: {}", answer.text);
            assert_eq!(calls.len(), 1, "{tool}: {calls:?}");
            let call = &calls[0];
            assert_eq!(
                (call.method.as_str(), call.path.as_str()),
                ("GET", expected[0])
            );
            let mut names: Vec<&str> = call.query.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names.join(","), expected[1], "{tool}");
            let bearer = format!("Bearer {TOKEN}");
            assert_eq!(call.authorization.as_deref(), Some(bearer.as_str()));
        }
    });
}

// TS-06, UP-09: a refusal is told with its code and status after one attempt.
#[test]
fn a_refusal_of_the_server_is_told_after_one_attempt() {
    let mut other_token = fixtures::multi();
    other_token.access.token = Some("another".to_owned());
    let refusals: [(State, u16, &str); 2] = [
        (fixtures::forbidden("grant_revoked"), 403, "grant_revoked"),
        (other_token, 401, "authentication_error"),
    ];
    for (state, status, code) in refusals {
        each_way(&state, |caller| {
            for (tool, args) in valid_calls() {
                let (answer, calls) = caller.asked(tool, args);
                assert!(answer.is_error);
                assert_eq!(answer.code(), code, "{tool}");
                assert_eq!(answer.structured["http_status"], status);
                assert_eq!(calls.len(), 1, "{tool}: {calls:?}");
            }
        });
    }
}

// GM-23: a client that opens addresses for its person gets the protocol's error with the address; another gets the refusal.
#[test]
fn a_client_that_opens_addresses_is_led_to_the_page_of_the_owner() {
    let url = "https://pdpp.example/asks/grt_1.0a1b";
    let state = fixtures::multi().on("/v1/streams/orders/records", move |_| {
        let needed = json!({"stream": "orders", "url": url});
        let error = json!({"type": "permission_error", "code": "grant_stream_not_allowed",
            "message": "not granted", "needs_broader_grant": needed});
        Reply::json(403, &json!({"error": error}))
    });
    let opens = json!({"elicitation": {"url": {}}});
    let forms = json!({"elicitation": {"form": {}}});
    for caller in [
        Caller::piped(state.clone(), CURRENT),
        Caller::posting(state, CURRENT),
    ] {
        let call = |capabilities: &Value| {
            let params = json!({"name": "query_records", "arguments": {"stream": "orders"}, "_meta": meta(capabilities)});
            caller.request("tools/call", params)
        };
        let led = call(&opens);
        assert_eq!(led["error"]["code"], -32042, "{led}");
        let data = &led["error"]["data"];
        assert_eq!(data["elicitations"][0]["mode"], "url");
        assert_eq!(data["elicitations"][0]["url"], url);
        assert_eq!(data["elicitations"][0]["elicitationId"], "grt_1.0a1b");
        assert_eq!(data["error"]["code"], "grant_stream_not_allowed");
        for told in [call(&forms), call(&json!({}))] {
            let result = &told["result"];
            assert_eq!(result["isError"], true, "{told}");
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["needs_broader_grant"]["url"], url);
        }
    }
}

const INVALID: &str = r#"
search {}
search {"query":""}
search {"query":7}
search {"query":"x","streams":"orders"}
search {"query":"x","mode":"psychic"}
query_records {}
query_records {"stream":"orders","fields":"text"}
aggregate {"stream":"orders"}
aggregate {"stream":"orders","metric":"median"}
fetch {}
fetch {"id":7}
read_record_field {"id":"cin_aaa/orders:o1"}
read_record_field {"id":"cin_aaa/orders:o1","field_path":"text","offset_chars":-1}
read_record_field {"id":"cin_aaa/orders:o1","field_path":"text","limit_chars":0}
schema {"detail":"some"}
schema {"stream":["orders"]}
"#;

fn invalid_calls() -> Vec<(&'static str, Value)> {
    let mut calls: Vec<_> = rows(INVALID).map(|(tool, args, _)| (tool, args)).collect();
    for (tool, args) in valid_calls() {
        for (name, value) in [
            ("verbose", json!(true)),
            ("connector_instance_id", json!("cin_aaa")),
        ] {
            let mut args = args.clone();
            args[name] = value;
            calls.push((tool, args));
        }
        if ["search", "query_records"].contains(&tool) {
            for limit in [json!(0), json!(101), json!(500), json!(1.5), json!("5")] {
                let mut args = args.clone();
                args["limit"] = limit;
                calls.push((tool, args));
            }
        }
        if ["search", "query_records", "aggregate"].contains(&tool) {
            // UP-03
            for filter in [
                json!("id=o1"),
                json!([]),
                json!({"id": null}),
                json!({"id": ["o1"]}),
            ] {
                let mut args = args.clone();
                args["filter"] = filter;
                calls.push((tool, args));
            }
        }
    }
    calls
}

// TS-04, TS-07, UP-03, UP-10
#[test]
fn a_call_that_cannot_be_meant_is_refused_unasked_and_by_its_schema() {
    each_way(&fixtures::multi(), |caller| {
        let tools = listed(caller);
        for (tool, args) in invalid_calls() {
            let answer = caller.refused_unasked(tool, args.clone());
            let definition = tools.iter().find(|one| one["name"] == tool).unwrap();
            let schema = jsonschema::validator_for(&definition["inputSchema"]).unwrap();
            assert!(
                !schema.is_valid(&args),
                "{tool} {args} passes its schema but {}",
                answer.text
            );
        }
        for (tool, args) in valid_calls() {
            let definition = tools.iter().find(|one| one["name"] == tool).unwrap();
            assert!(
                jsonschema::is_valid(&definition["inputSchema"], &args),
                "{tool} {args}"
            );
        }
    });
}

/// A tool, its arguments and the code of their refusal: names that could change the question, also where no schema can say so.
const REFUSED: &str = r#"
schema {"stream":"../x"} invalid_stream
schema {"stream":"a/b"} invalid_stream
schema {"connection_id":"a\nb"} invalid_connection_id
schema {"detail":"everything"} invalid_arguments
aggregate {"stream":"../x","metric":"count"} invalid_stream
query_records {} invalid_arguments
query_records {"stream":"a/b"} invalid_stream
query_records {"stream":"messages","limit":500} limit_out_of_range
query_records {"stream":"messages","fields":[]} invalid_arguments
query_records {"stream":"messages","filter":{}} invalid_filter
query_records {"stream":"messages","filter":{"a[b]":"x"}} invalid_filter
query_records {"stream":"messages","filter":{"":"x"}} invalid_filter
query_records {"stream":"messages","filter":{"sent_at":{"near":"x"}}} invalid_filter
query_records {"stream":"messages","filter":{"sent_at":{}}} invalid_filter
query_records {"stream":"messages","expand":["thread"],"expand_limit":{}} invalid_expand
query_records {"stream":"messages","expand":["thread"],"expand_limit":{"a[b]":5}} invalid_expand
query_records {"stream":"messages","expand":["thread"],"expand_limit":{"":5}} invalid_expand
read_record_field {"id":"c/mail:m1","connection_id":"other","field_path":"text"} conflicting_connection_id
read_record_field {"id":"c/mail:m1","field_path":".."} invalid_field_path
read_record_field {"id":"c/mail:m1","field_path":"a/b"} invalid_field_path
read_record_field {"id":"c/mail:m1","field_path":"a\\b"} invalid_field_path
read_record_field {"id":"c/mail:m1","field_path":"."} invalid_field_path
read_record_field {"id":"c/mail:m1","field_path":"a\u0000"} invalid_field_path
read_record_field {"id":"c/mail:m1","field_path":"text","limit_chars":0} limit_out_of_range
read_record_field {"id":"c/mail:m1","field_path":"text","limit_chars":16385} limit_out_of_range
read_record_field {"id":"c/mail:m1","field_path":"text","q":"x","before_chars":8193} limit_out_of_range
fetch {"id":"/orders:o1"} invalid_id
fetch {"id":"cin_a/x/orders:o1"} invalid_id
fetch {"id":"pdpp://record/cin%2Forders%3A.."} invalid_id
read_record_field {"id":"cin/or\\ders:o1","field_path":"text"} invalid_id
read_record_field {"id":"pdpp://elsewhere/x","field_path":"text"} invalid_id
read_record_field {"connection_id":"c","stream":"../x","record_id":"m1","field_path":"text"} invalid_stream
read_record_field {"connection_id":"c","stream":"mail","record_id":"../m1","field_path":"text"} invalid_id
"#;

// TS-07, UP-03, UP-04, ID-20, ID-22 to ID-25
#[test]
fn names_that_cannot_be_one_never_reach_the_server() {
    each_way(&fixtures::schema(), |caller| {
        for (tool, args, expected) in rows(REFUSED) {
            let answer = caller.refused_unasked(tool, args.clone());
            assert_eq!(answer.code(), expected[0], "{tool} {args}: {}", answer.text);
        }
    });
}

// UP-06
#[test]
fn both_eras_introduce_themselves_with_instructions() {
    let state = fixtures::multi();
    let mut callers: Vec<Caller> = LEGACY
        .iter()
        .flat_map(|revision| {
            [
                Caller::piped(state.clone(), revision),
                Caller::posting(state.clone(), revision),
            ]
        })
        .collect();
    callers.push(Caller::piped(state.clone(), CURRENT));
    callers.push(Caller::posting(state, CURRENT));
    for caller in &callers[..] {
        let introduction = caller.introduction();
        let text = introduction["instructions"].as_str().unwrap();
        let first: String = text.chars().take(512).collect();
        for word in ["schema", "connection_id", "filter", "cursor"] {
            assert!(first.contains(word), "{word}");
        }
        let capabilities = &introduction["capabilities"];
        assert!(capabilities["tools"].is_object() && capabilities["resources"].is_object());
        for other in ["prompts", "completions", "logging"] {
            assert!(capabilities.get(other).is_none(), "{other}");
        }
        let unknown = caller.request("prompts/list", json!({}));
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
        let templates = caller.request("resources/templates/list", json!({}));
        assert_eq!(
            templates["result"]["resourceTemplates"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
    }
}

// TS-07: it was answered that there is no such method, after which a host stops calling tools.
#[test]
fn parameters_that_cannot_be_read_are_no_missing_method() {
    let state = fixtures::multi();
    for revision in ["2025-11-25", CURRENT] {
        for caller in [
            Caller::piped(state.clone(), revision),
            Caller::posting(state.clone(), revision),
        ] {
            for (method, params) in [
                ("tools/call", json!({"name": "schema", "arguments": []})),
                ("tools/call", json!({"name": "schema", "arguments": "{}"})),
                ("tools/call", json!({"name": "schema", "arguments": 5})),
            ] {
                let said = caller.request(method, params);
                assert_eq!(said["error"]["code"], -32602, "{said}");
                let told = &said["error"]["data"]["error"];
                assert_eq!(told["code"], "invalid_arguments", "{said}");
                assert!(told["next"].as_str().unwrap().starts_with("pass "));
            }
            let said = caller.request("tools/cull", json!({}));
            assert_eq!(said["error"]["code"], -32601, "{said}");
            assert_eq!(
                said["error"]["message"],
                "this server has no method \"tools/cull\""
            );
            assert_eq!(caller.rs.calls(), []);
        }
    }
}

#[test]
fn a_beginning_that_cannot_be_read_is_no_missing_method() {
    let state = fixtures::multi();
    for caller in [
        Caller::piped(state.clone(), "2025-11-25"),
        Caller::posting(state, "2025-11-25"),
    ] {
        for params in [json!({}), json!({"protocolVersion": 5}), json!(null)] {
            let said = caller.request("initialize", params);
            assert_eq!(said["error"]["code"], -32602, "{said}");
            let told = &said["error"]["data"]["error"];
            assert!(told["next"].as_str().unwrap().starts_with("pass "));
        }
    }
}

#[test]
fn a_request_that_names_its_revision_needs_no_initialize() {
    let caller = Caller::piped(fixtures::multi(), "2025-11-25");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let said = caller.request("initialize", json!({"_meta": meta}));
    assert_eq!(said["error"]["code"], -32601, "{said}");
}

#[test]
fn the_definitions_are_what_was_reviewed() {
    let caller = Caller::piped(fixtures::multi(), CURRENT);
    let mut tools = listed(&caller);
    let total = serde_json::to_string(&tools).unwrap().len();
    for tool in &mut tools {
        let bytes = tool.to_string().len();
        let name = tool["name"].as_str().unwrap().to_owned();
        let shown = serde_json::to_string_pretty(tool).unwrap();
        insta::assert_snapshot!(format!("tool_{name}"), format!("{bytes} bytes\n{shown}"));
    }
    assert!(total <= CEILING, "{total} bytes");
    let introduction = caller.introduction();
    insta::assert_snapshot!(
        "instructions",
        introduction["instructions"].as_str().unwrap()
    );
}
