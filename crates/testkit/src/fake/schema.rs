//! The schema, full and compact, and the lists of streams.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::reply::Failure;
use super::sources::{ambiguous, connection_json, resolve};
use super::state::{Quirk, State};
use super::world::{Connector, Field, Source, Stream};

const AGGREGATES: [&str; 6] = [
    "count_distinct",
    "group_by",
    "group_by_time",
    "max",
    "min",
    "sum",
];

#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    stream: Option<&'a str>,
    connection: Option<&'a str>,
    compact: bool,
}

pub(crate) fn answer(state: &State, call: &Call) -> Result<Value, Failure> {
    call.only(&["view", "detail", "stream", "connection_id"])?;
    let view = call.once("view")?;
    if view.is_some() && state.is(Quirk::RefusesCompactView) {
        return Err(Failure::invalid(
            "view",
            "Unsupported query parameter: view",
        ));
    }
    let mut scope = Scope {
        stream: call.once("stream")?,
        connection: call.once("connection_id")?,
        compact: view == Some("compact"),
    };
    let is_full = !scope.compact && call.once("detail")? == Some("full");
    if state.is(Quirk::IgnoresSchemaSelectors) {
        scope.stream = None;
        scope.connection = None;
    } else if is_full {
        check_full(state, scope)?;
    }
    Ok(document(state, call, scope))
}

fn check_full(state: &State, scope: Scope<'_>) -> Result<(), Failure> {
    if scope.stream.is_none() {
        return Err(Failure::invalid("detail", "detail=full requires stream"));
    }
    let matching: Vec<Source<'_>> = state
        .world
        .sources()
        .filter(|source| scope.includes(source))
        .collect();
    if matching.len() > 1 && scope.connection.is_none() {
        return Err(ambiguous(state, "ambiguous_schema_detail", &matching));
    }
    Ok(())
}

impl Scope<'_> {
    fn includes(&self, source: &Source<'_>) -> bool {
        self.stream.is_none_or(|name| name == source.stream.name)
            && self.connection.is_none_or(|id| id == source.connection.id)
    }
}

fn document(state: &State, call: &Call, scope: Scope<'_>) -> Value {
    let connectors: Vec<Value> = state
        .world
        .connectors
        .iter()
        .filter_map(|connector| connector_json(state, connector, scope))
        .collect();
    let streams: Vec<Value> = connectors
        .iter()
        .flat_map(|connector| connector["streams"].as_array().cloned().unwrap_or_default())
        .collect();
    let kind = state.access.token_kind.as_str();
    let mut body = Map::new();
    body.insert("object".to_owned(), json!("schema"));
    if scope.compact {
        body.insert("detail".to_owned(), json!("compact"));
    }
    let bearer = if kind == "owner" {
        json!({"scope": "owner", "token_kind": kind})
    } else {
        json!({"scope": "grant", "token_kind": kind, "grant_id": "grt_fake", "client_id": "cli_fake"})
    };
    body.insert("bearer".to_owned(), bearer);
    body.insert("connector_count".to_owned(), json!(connectors.len()));
    body.insert("stream_count".to_owned(), json!(streams.len()));
    body.insert("connectors".to_owned(), json!(connectors));
    if state.is(Quirk::RepeatsStreamsAtTop) {
        body.insert("streams".to_owned(), json!(streams));
    }
    if state.is(Quirk::WrapsSchemaInData) {
        return json!({ "data": body });
    }
    body.insert("links".to_owned(), json!({"self": call.raw_target}));
    body.insert(
        "meta".to_owned(),
        json!({"count": {"kind": "none"}, "warnings": state.warnings}),
    );
    Value::Object(body)
}

fn connector_json(state: &State, connector: &Connector, scope: Scope<'_>) -> Option<Value> {
    let rows: Vec<(&Stream, Vec<Value>)> = connector
        .streams
        .iter()
        .map(|stream| (stream, connections(connector, stream, scope)))
        .filter(|(_, connections)| !connections.is_empty())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let shared = most_frequent(&rows);
    let streams: Vec<Value> = rows
        .iter()
        .map(|(stream, connections)| {
            if scope.compact {
                compact_stream(state, stream, connections, shared)
            } else {
                full_stream(state, stream, connections)
            }
        })
        .collect();
    let mut body = json!({
        "object": "connector",
        "connector_key": connector.key,
        "connector_id": connector.key,
        "source": {"kind": "connector", "id": format!("https://registry.example.org/connectors/{}", connector.key)},
        "stream_count": streams.len(),
        "streams": streams,
    });
    if scope.compact {
        body["granted_connections"] = json!(shared);
    }
    Some(body)
}

fn connections(connector: &Connector, stream: &Stream, scope: Scope<'_>) -> Vec<Value> {
    connector
        .connections
        .iter()
        .filter(|connection| connection.carries(&stream.name))
        .map(|connection| Source {
            connector,
            connection,
            stream,
        })
        .filter(|source| scope.includes(source))
        .map(|source| Value::Object(connection_json(&source)))
        .collect()
}

/// The set of connections that most streams have, the first of them when several are equally frequent.
fn most_frequent<'a>(rows: &'a [(&Stream, Vec<Value>)]) -> &'a [Value] {
    let frequency = |set: &[Value]| rows.iter().filter(|(_, other)| other == set).count();
    rows.iter()
        .map(|(_, set)| set.as_slice())
        .rev()
        .max_by_key(|set| frequency(set))
        .unwrap_or_default()
}

fn full_stream(state: &State, stream: &Stream, connections: &[Value]) -> Value {
    let advertised = !state.is(Quirk::RefusesClientFilters);
    let fields = || listed(stream);
    let names = |is_one: &dyn Fn(&Field) -> bool| -> Vec<&str> {
        let chosen = fields().filter(|field| is_one(field));
        chosen.map(|field| field.name.as_str()).collect()
    };
    let properties: Map<String, Value> = fields()
        .map(|field| (field.name.clone(), field_schema(field)))
        .collect();
    let capabilities: Map<String, Value> = fields()
        .map(|field| (field.name.clone(), capability(state, field)))
        .collect();
    let ranges: Map<String, Value> = fields()
        .filter(|field| advertised && !field.range.is_empty())
        .map(|field| (field.name.clone(), json!(field.range)))
        .collect();
    let mut aggregations = Map::from_iter([("count".to_owned(), json!(true))]);
    for aggregate in AGGREGATES {
        let names = names(&|field| field.aggregates.contains(&aggregate));
        if !names.is_empty() {
            aggregations.insert(aggregate.to_owned(), json!(names));
        }
    }
    let views: Vec<Value> = stream
        .views
        .iter()
        .filter(|_| advertised)
        .map(|view| json!({"id": view.id, "label": view.id, "fields": view.fields}))
        .collect();
    let ids: Vec<&Value> = connections
        .iter()
        .map(|entry| &entry["connection_id"])
        .collect();
    json!({
        "object": "stream_metadata",
        "name": stream.name,
        "semantics": "mutable_state",
        "primary_key": primary_key(stream),
        "cursor_field": stream.cursor_field,
        "consent_time_field": stream.cursor_field,
        "selection": {"fields": true, "resources": true},
        "views": views,
        "query": {
            "range_filters": ranges,
            "aggregations": aggregations,
            "search": {
                "lexical_fields": names(&|field| field.lexical),
                "semantic_fields": names(&|field| field.semantic),
            },
        },
        "relationships": [],
        "schema": {"type": "object", "properties": properties},
        "freshness": {"status": "unknown", "captured_at": null},
        "field_capabilities": capabilities,
        "expand_capabilities": expands(state, stream),
        "instance_ids": ids,
        "granted_connections": connections,
    })
}

fn compact_stream(
    state: &State,
    stream: &Stream,
    connections: &[Value],
    shared: &[Value],
) -> Value {
    let flags: Map<String, Value> = listed(stream)
        .map(|field| (field.name.clone(), json!(flags(state, field))))
        .collect();
    let mut body = json!({
        "name": stream.name,
        "primary_key": primary_key(stream),
        "cursor_field": stream.cursor_field,
        "field_capabilities": flags,
        "expand_capabilities": expands(state, stream),
    });
    if connections != shared {
        body["granted_connections"] = json!(connections);
    }
    body
}

fn listed(stream: &Stream) -> impl Iterator<Item = &Field> {
    stream.fields.iter().filter(|field| field.granted)
}

fn primary_key(stream: &Stream) -> Vec<&str> {
    let id = stream.granted("id").map(|field| field.name.as_str());
    id.into_iter().collect()
}

fn expands(state: &State, stream: &Stream) -> Vec<Value> {
    if state.is(Quirk::RefusesClientFilters) {
        return Vec::new();
    }
    let relation = |expand: &super::world::Expand| {
        json!({
            "name": expand.name,
            "stream": expand.target,
            "target_stream": expand.target,
            "cardinality": "has_many",
            "granted": true,
            "usable": true,
            "foreign_key": expand.foreign_key,
            "default_limit": expand.default_limit,
            "max_limit": expand.max_limit,
        })
    };
    stream.expands.iter().map(relation).collect()
}

fn capability(state: &State, field: &Field) -> Value {
    let usable =
        |declared: bool| json!({"declared": declared, "usable": declared && field.granted});
    let filter = |declared: bool| {
        let mut filter = usable(declared);
        if let (true, Some(reason)) = (declared, field.unusable) {
            filter["usable"] = json!(false);
            filter["reason"] = json!(reason);
        }
        filter
    };
    let aggregation: Map<String, Value> = AGGREGATES
        .iter()
        .map(|name| ((*name).to_owned(), usable(field.aggregates.contains(name))))
        .collect();
    let mut body = json!({
        "granted": field.granted,
        "schema": field_schema(field),
        "lexical_search": usable(field.lexical),
        "semantic_search": usable(field.semantic),
        "aggregation": aggregation,
    });
    if let Some(presentation) = field.presentation {
        body["type"] = json!(presentation);
    }
    if let Some(role) = field.role {
        body["role"] = json!(role);
    }
    if !state.is(Quirk::RefusesClientFilters) {
        body["exact_filter"] = filter(field.exact);
        body["range_filter"] = filter(!field.range.is_empty());
        if !field.range.is_empty() {
            body["range_filter"]["operators"] = json!(field.range);
        }
    }
    body
}

fn field_schema(field: &Field) -> Value {
    let mut schema = json!({"type": field.json_type});
    if field.presentation == Some("timestamp") {
        schema["format"] = json!("date-time");
    }
    let length = schema.to_string().len();
    if field.schema_chars > length {
        // `,"description":""` is 17 characters.
        let filler = field.schema_chars.saturating_sub(length + 17);
        schema["description"] = json!("d".repeat(filler));
    }
    schema
}

fn flags(state: &State, field: &Field) -> String {
    let filters = !state.is(Quirk::RefusesClientFilters);
    let reason = match (field.unusable, field.granted) {
        (None, true) => None,
        (reason, _) => Some(reason.unwrap_or("unknown")),
    };
    // A capability as it can be used, or as one that cannot.
    let flag = |name: &str, usable: String| match reason {
        None => usable,
        Some(reason) => format!("{name}=unusable:{reason}"),
    };
    let mut flags = vec![format!(
        "t={}",
        field.presentation.unwrap_or(field.json_type)
    )];
    flags.extend(field.role.map(|role| format!("role={role}")));
    flags.extend((!field.granted).then(|| "g=false".to_owned()));
    if filters && field.exact {
        flags.push(flag("eq", "eq".to_owned()));
    }
    if filters && !field.range.is_empty() {
        flags.push(flag("r", format!("r={}", field.range.join("|"))));
    }
    for (name, declared) in [("lex", field.lexical), ("sem", field.semantic)] {
        if declared {
            let unusable = || format!("{name}=unusable:unknown");
            flags.push(if field.granted {
                name.to_owned()
            } else {
                unusable()
            });
        }
    }
    if field.granted && !field.aggregates.is_empty() {
        let mut aggregates = field.aggregates.clone();
        aggregates.sort_unstable();
        flags.push(format!("a={}", aggregates.join("|")));
    }
    flags.join(",")
}

pub(crate) fn streams(state: &State, call: &Call) -> Result<Value, Failure> {
    call.only(&["connection_id"])?;
    let connection = call.once("connection_id")?;
    let rows: Vec<Value> = state
        .world
        .sources()
        .filter(|source| connection.is_none_or(|id| id == source.connection.id))
        .map(|source| {
            let mut row = connection_json(&source);
            row.insert("object".to_owned(), json!("stream"));
            row.insert("name".to_owned(), json!(source.stream.name));
            row.insert("connector_key".to_owned(), json!(source.connector.key));
            let count = source.records(&state.world).count();
            row.insert("record_count".to_owned(), json!(count));
            Value::Object(row)
        })
        .collect();
    Ok(
        json!({"object": "list", "data": rows, "has_more": false, "links": {"self": call.raw_target}}),
    )
}

pub(crate) fn stream(state: &State, call: &Call, name: &str) -> Result<Value, Failure> {
    call.only(&["connection_id"])?;
    let source = resolve(state, name, call.once("connection_id")?)?;
    let connection = Value::Object(connection_json(&source));
    Ok(full_stream(state, source.stream, &[connection]))
}
