//! The `OpenAPI` document, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::endpoints::ENDPOINTS;
use crate::observe::VERSION;
use crate::table::{Content, Endpoint, Handler, Param, Shape, Values, Verb};

pub(crate) fn document(public_url: &str, has_model: bool) -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        // What cannot be asked for is not offered.
        if endpoint.path.starts_with("/v1/search/") && !has_model {
            continue;
        }
        let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(method(endpoint).to_owned(), operation(endpoint));
        }
    }
    for (path, methods) in doors() {
        paths.insert(path.to_owned(), methods);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "pdpp",
            "version": VERSION,
            "description": "A person's data from many sources, read under grants. Unknown query parameters are refused.",
        },
        "servers": [{"url": public_url}],
        "paths": paths,
        "components": {
            "schemas": crate::openapi_schemas::schemas(),
            "headers": {"PDPP-Token-Kind": {
                "description": "The kind of token that was presented. Absent where none was, or where it is unknown.",
                "schema": {"type": "string", "enum": ["owner", "client", "mcp_package"]},
            }},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// Paths that are not in the table: the authorization page and `/mcp`.
fn doors() -> [(&'static str, Value); 2] {
    let asked = |(name, required): (&str, bool)| json!({"name": name, "in": "query", "required": required, "schema": {"type": "string"}});
    let parameters = [
        ("response_type", true),
        ("client_id", true),
        ("redirect_uri", true),
        ("code_challenge", true),
        ("code_challenge_method", true),
        ("state", false),
        ("resource", false),
        ("authorization_details", false),
    ];
    let page = json!({"description": "A page that says what is wrong, where the application cannot be told", "content": {"text/html": {}}});
    let authorize = json!({
        "operationId": "authorize",
        "summary": "Ask the owner for a grant, in their browser (RFC 6749 with PKCE)",
        "parameters": parameters.map(asked),
        "responses": {
            "303": {"description": "To the owner's decision, or back to the application with the error"},
            "400": page, "429": page, "500": page, "503": page,
        },
        "security": [],
    });
    let told = json!({"description": "The structured error", "content": {"application/json": {"schema": reference("Error")}}});
    let messages = json!({"application/json": {"schema": {"anyOf": [
        {"type": "object"},
        {"type": "array", "minItems": 1, "maxItems": 50},
    ]}}});
    let mut answers = json!({
        "200": {"description": "The answer of JSON-RPC, or the list of them", "content": messages},
        "202": {"description": "A notification was taken"},
    });
    for status in [401, 403, 406, 408, 413, 415, 421, 429, 500, 503] {
        answers[status.to_string()] = told.clone();
    }
    let wrong = json!({"type": "object", "required": ["jsonrpc", "id", "error"], "properties": {
        "jsonrpc": {"const": "2.0"},
        "error": {"type": "object", "required": ["code", "message"], "properties": {"code": {"type": "integer"}}},
    }});
    let refused = json!({"application/json": {"schema": {"anyOf": [reference("Error"), wrong]}}});
    for status in [400, 404] {
        let what = "The structured error, or that of JSON-RPC where the message itself is wrong";
        answers[status.to_string()] = json!({"description": what, "content": refused});
    }
    let tools = json!({
        "operationId": "callTools",
        "summary": "The tools for agents: a message of MCP, or a list of them (streamable HTTP)",
        "parameters": [],
        "requestBody": {"required": true, "content": messages},
        "responses": answers,
        "security": [{"bearer": []}],
    });
    [
        ("/oauth/authorize", json!({"get": authorize})),
        ("/mcp", json!({"post": tools})),
    ]
}

fn method(endpoint: &Endpoint) -> &'static str {
    match endpoint.verb {
        Verb::Get => "get",
        Verb::Post => "post",
        Verb::Delete => "delete",
    }
}

fn operation(endpoint: &Endpoint) -> Value {
    let in_path = endpoint.path_params().map(|name| {
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "schema": {"type": "string", "minLength": 1},
        })
    });
    let params: Vec<Value> = in_path
        .chain(endpoint.params.iter().map(parameter))
        .collect();
    let mut operation = json!({
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "parameters": params,
        "responses": responses(endpoint),
        "security": match endpoint.handler {
            Handler::Public(_) | Handler::OAuth(_) | Handler::Page(_) => json!([]),
            Handler::Reader(_) | Handler::Owner(_) => json!([{"bearer": []}]),
            Handler::Operator(_) => json!([{}, {"bearer": []}]),
        },
    });
    if let (Some(media), Some(members)) = (endpoint.request_type, operation.as_object_mut()) {
        let content = json!({(media): {"schema": body_schema(media)}});
        members.insert(
            "requestBody".to_owned(),
            // An empty body is a valid blob.
            json!({"required": media != "application/octet-stream", "content": content}),
        );
    }
    operation
}

fn body_schema(media: &str) -> Value {
    match media {
        "application/json" | "application/x-www-form-urlencoded" => json!({"type": "object"}),
        "application/x-ndjson" => json!({"type": "string"}),
        _ => json!({"type": "string", "format": "binary"}),
    }
}

fn responses(endpoint: &Endpoint) -> Value {
    let success = match endpoint.success.content {
        Content::Json(name) => json!({
            "description": "The answer",
            "content": {"application/json": {"schema": reference(name)}},
        }),
        Content::Text => json!({
            "description": "The answer",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }),
        Content::Bytes => json!({
            "description": "The bytes",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }),
        Content::Nothing => json!({"description": "Done"}),
    };
    let mut responses = Map::new();
    if matches!(endpoint.success.content, Content::Bytes) {
        responses.insert("206".to_owned(), success.clone());
    }
    // A declaration that exists already is not created.
    if endpoint.success.status == 201 {
        responses.insert("200".to_owned(), success.clone());
    }
    responses.insert(endpoint.success.status.to_string(), success);
    // Introspection authenticates like any other route and fails like OAuth.
    let is_oauth = endpoint.path.starts_with("/oauth/");
    let (about, shape) = match endpoint.handler {
        Handler::OAuth(_) => ("The error of OAuth", reference("OAuthError")),
        _ if is_oauth => (
            "The error of OAuth, or the structured one",
            json!({"anyOf": [reference("OAuthError"), reference("Error")]}),
        ),
        _ => ("The structured error", reference("Error")),
    };
    for status in failures(endpoint) {
        responses.insert(
            status.to_string(),
            json!({
                "description": about,
                "content": {"application/json": {"schema": shape}},
            }),
        );
    }
    if let Handler::Reader(_) | Handler::Owner(_) | Handler::Operator(_) = endpoint.handler {
        let kind = json!({"$ref": "#/components/headers/PDPP-Token-Kind"});
        for response in responses.values_mut() {
            response["headers"] = json!({"PDPP-Token-Kind": kind});
        }
    }
    Value::Object(responses)
}

/// The statuses a route may fail with.
fn failures(endpoint: &Endpoint) -> Vec<u16> {
    let mut statuses = vec![400, 500, 503];
    match endpoint.handler {
        Handler::Public(_) | Handler::Page(_) => {}
        Handler::OAuth(_) => statuses.extend([401, 429]),
        Handler::Reader(_) | Handler::Owner(_) | Handler::Operator(_) => {
            statuses.extend([401, 403]);
        }
    }
    if endpoint.path.contains('{') || !endpoint.params.is_empty() {
        statuses.extend([404, 409]);
    }
    if endpoint.operation == "listRecords" {
        statuses.push(410);
    }
    if endpoint.operation == "getFieldWindow" {
        statuses.push(422);
    }
    if matches!(endpoint.success.content, Content::Bytes) {
        statuses.push(416);
    }
    if endpoint.verb != Verb::Get {
        statuses.extend([408, 413, 415]);
    }
    statuses
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn parameter(param: &Param) -> Value {
    let value = match param.values {
        Values::Text if param.required => json!({"type": "string", "minLength": 1}),
        Values::Text => json!({"type": "string"}),
        // An empty value counts as absent.
        Values::Choice(choices) => {
            let empty = (!param.required).then_some("");
            let choices: Vec<&str> = choices.iter().copied().chain(empty).collect();
            json!({"type": "string", "enum": choices})
        }
        Values::Integer(least, most) if most == u32::MAX => {
            json!({"type": "integer", "minimum": least})
        }
        Values::Integer(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Values::Size => json!({"type": ["integer", "string"]}),
    };
    let mut parameter = json!({
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.about,
    });
    let more = match param.shape {
        Shape::One => json!({"schema": value}),
        Shape::Many => json!({
            "schema": {"type": "array", "items": value},
            "style": "form",
            "explode": true,
        }),
        Shape::Named => json!({
            "schema": {"type": "object", "additionalProperties": value},
            "style": "deepObject",
            "explode": true,
        }),
    };
    if let (Some(members), Value::Object(more)) = (parameter.as_object_mut(), more) {
        members.extend(more);
    }
    parameter
}
