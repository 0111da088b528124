//! The connectors at a glance: which streams each has, how much they hold, what may be asked of them and where.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use contract::declaration::{Declaration, StreamDeclaration};
use contract::query::StreamsQuery;
use contract::reader::ReadContract;
use contract::schema::{
    Capability, ConnectorSchema, FieldCapability, SchemaAnswer, SchemaQuery, StreamMetadata,
    StreamSummary,
};
use contract::time::Instant;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::problem::{self, Problem};
use crate::table::{Ask, Outcome};

/// How much a stream holds in all connections that may be seen.
#[derive(Default)]
struct Holding {
    connections: Vec<String>,
    records: u64,
    newest: Option<(Instant, String)>,
}

/// What may be asked of a stream.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are flags of the answer"
)]
struct Abilities {
    exact: bool,
    range: bool,
    expand: bool,
    aggregate: bool,
}

type Holdings = BTreeMap<(String, String), Holding>;

pub(crate) async fn connectors(ask: Ask, caller: Caller) -> Outcome {
    let (is_owner, service) = (caller.is_owner(), &ask.service);
    let unnoted = caller.unnoted_reader(service);
    let SchemaAnswer::Full(schema) = unnoted.schema(SchemaQuery::default()).await? else {
        return Err(Problem::internal(
            "connectors",
            &"a compact schema came unasked",
        ));
    };
    let reader = caller.reader(service);
    let streams = reader.streams(StreamsQuery::default()).await?;
    let holdings = holdings(&streams.data);
    let mut data: Vec<Value> = schema
        .connectors
        .iter()
        .map(|connector| connector_object(connector, &holdings))
        .collect();
    if is_owner {
        let listed: Vec<&str> = schema
            .connectors
            .iter()
            .filter_map(|connector| connector.connector_key.as_deref())
            .collect();
        for declaration in service.store.declarations() {
            if !listed.contains(&declaration.connector_key().as_str()) {
                data.push(declared_object(&declaration));
            }
        }
    }
    problem::json(StatusCode::OK, &json!({"object": "list", "data": data}))
}

fn holdings(streams: &[StreamSummary]) -> Holdings {
    let mut holdings = Holdings::new();
    for stream in streams {
        let key = stream.connector_key.clone().unwrap_or_default();
        let holding = holdings.entry((key, stream.name.clone())).or_default();
        holding.connections.extend(stream.connection_id.clone());
        holding.records += stream.record_count.unwrap_or_default();
        let emitted = stream.last_updated.as_option();
        let newest = emitted.and_then(|text| Some((Instant::parse(text)?, text.clone())));
        if newest.as_ref().map(|(at, _)| *at) > holding.newest.as_ref().map(|(at, _)| *at) {
            holding.newest = newest;
        }
    }
    holdings
}

fn connector_object(connector: &ConnectorSchema<StreamMetadata>, holdings: &Holdings) -> Value {
    let key = connector.connector_key.clone().unwrap_or_default();
    let none = Holding::default();
    let streams: Vec<Value> = connector
        .streams
        .iter()
        .map(|stream| {
            let holding = holdings.get(&(key.clone(), stream.name.clone()));
            stream_object(&stream.name, holding.unwrap_or(&none), &abilities(stream))
        })
        .collect();
    let source = json!(connector.source);
    object(&source, &key, &streams)
}

fn declared_object(declaration: &Declaration) -> Value {
    let none = Holding::default();
    let streams: Vec<Value> = declaration
        .streams
        .iter()
        .map(|stream| stream_object(stream.name.as_str(), &none, &declared_abilities(stream)))
        .collect();
    let source = json!({"kind": declaration.source.kind, "id": declaration.source.id});
    object(&source, declaration.connector_key().as_str(), &streams)
}

fn object(source: &Value, key: &str, streams: &[Value]) -> Value {
    json!({
        "object": "connector",
        "source": source,
        "connector_key": key,
        "connector_id": key,
        "stream_count": streams.len(),
        "streams": streams,
    })
}

fn stream_object(name: &str, holding: &Holding, abilities: &Abilities) -> Value {
    let base = format!(
        "/v1/streams/{}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    );
    let selector = match holding.connections.as_slice() {
        [only] => format!("?connection_id={only}"),
        _ => String::new(),
    };
    let mut freshness = json!({"status": "unknown"});
    if let (Some((at, _)), Some(members)) = (&holding.newest, freshness.as_object_mut()) {
        members.insert("captured_at".to_owned(), at.to_rfc3339_millis().into());
    }
    let aggregate_url = abilities
        .aggregate
        .then(|| format!("{base}/aggregate{selector}"));
    json!({
        "object": "stream",
        "name": name,
        "record_count": holding.records,
        "last_updated": holding.newest.as_ref().map(|(_, text)| text),
        "freshness": freshness,
        "capabilities": {
            "records": true,
            "stream_metadata": true,
            "changes_since": true,
            "exact_filters": abilities.exact,
            "range_filters": abilities.range,
            "expand": abilities.expand,
            "aggregate": abilities.aggregate,
            "aggregate_url": aggregate_url,
            "metadata_url": format!("{base}{selector}"),
            "records_url": format!("{base}/records{selector}"),
        },
    })
}

fn abilities(stream: &StreamMetadata) -> Abilities {
    let any = |ask: fn(&FieldCapability) -> Option<&Capability>| {
        let mut fields = stream.field_capabilities.iter();
        fields.any(|(_, field)| ask(field).is_some_and(|capability| capability.usable))
    };
    let expand = stream.expand_capabilities.iter().flatten();
    let query = stream.query.as_ref();
    Abilities {
        exact: any(|field| field.exact_filter.as_ref()),
        range: any(|field| field.range_filter.as_ref()),
        expand: expand
            .into_iter()
            .any(|relation| relation.usable == Some(true)),
        aggregate: query.is_some_and(|query| query.aggregations.is_some()),
    }
}

fn declared_abilities(stream: &StreamDeclaration) -> Abilities {
    Abilities {
        exact: stream.fields.iter().any(|field| field.kind.is_scalar()),
        range: !stream.query.range_filters.is_empty(),
        expand: !stream.query.expand.is_empty(),
        aggregate: stream.query.aggregations.is_some(),
    }
}
