//! `GET /v1/connectors`: the streams of each connector, how many records they hold, and what may be asked of them.

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
use crate::table::{HandlerResult, RequestContext};

/// Records of a stream over all connections the caller may see.
#[derive(Default)]
struct StreamTotals {
    connections: Vec<String>,
    records: u64,
    newest: Option<(Instant, String)>,
}

/// Capability flags of a stream.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are flags of the answer"
)]
struct StreamAbilities {
    exact: bool,
    range: bool,
    expand: bool,
    aggregate: bool,
}

type TotalsByStream = BTreeMap<(String, String), StreamTotals>;

pub(crate) async fn connectors(context: RequestContext, caller: Caller) -> HandlerResult {
    let (is_owner, service) = (caller.is_owner(), &context.service);
    let unnoted = caller.unlogged_reader(service);
    let SchemaAnswer::Full(schema) = unnoted.schema(SchemaQuery::default()).await? else {
        return Err(Problem::internal(
            "connectors",
            &"a compact schema came unasked",
        ));
    };
    let reader = caller.reader(service);
    let streams = reader.streams(StreamsQuery::default()).await?;
    let totals = totals(&streams.data)?;
    let connectors = schema.connectors.iter();
    let mut data = connectors
        .map(|connector| connector_object(connector, &totals))
        .collect::<Result<Vec<Value>, Problem>>()?;
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

fn totals(streams: &[StreamSummary]) -> Result<TotalsByStream, Problem> {
    let mut totals = TotalsByStream::new();
    for stream in streams {
        let key = key(stream.connector_key.as_deref())?;
        let total = totals.entry((key, stream.name.clone())).or_default();
        total.connections.extend(stream.connection_id.clone());
        total.records += stream.record_count.unwrap_or_default();
        let emitted = stream.last_updated.as_option();
        let newest = emitted.and_then(|text| Some((Instant::parse(text)?, text.clone())));
        if newest.as_ref().map(|(at, _)| *at) > total.newest.as_ref().map(|(at, _)| *at) {
            total.newest = newest;
        }
    }
    Ok(totals)
}

/// Our own reader names every connector.
fn key(named: Option<&str>) -> Result<String, Problem> {
    let key = named.map(str::to_owned);
    key.ok_or_else(|| Problem::internal("connectors", &"a connector came without its key"))
}

fn connector_object(
    connector: &ConnectorSchema<StreamMetadata>,
    totals: &TotalsByStream,
) -> Result<Value, Problem> {
    let key = key(connector.connector_key.as_deref())?;
    let none = StreamTotals::default();
    let streams: Vec<Value> = connector
        .streams
        .iter()
        .map(|stream| {
            let total = totals.get(&(key.clone(), stream.name.clone()));
            stream_object(&stream.name, total.unwrap_or(&none), &abilities(stream))
        })
        .collect();
    let source = json!(connector.source);
    Ok(object(&source, &key, &streams))
}

fn declared_object(declaration: &Declaration) -> Value {
    let none = StreamTotals::default();
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

fn stream_object(name: &str, total: &StreamTotals, abilities: &StreamAbilities) -> Value {
    let base = format!(
        "/v1/streams/{}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    );
    let selector = match total.connections.as_slice() {
        [only] => format!("?connection_id={only}"),
        _ => String::new(),
    };
    let mut freshness = json!({"status": "unknown"});
    if let (Some((at, _)), Some(members)) = (&total.newest, freshness.as_object_mut()) {
        members.insert("captured_at".to_owned(), at.to_rfc3339_millis().into());
    }
    let aggregate_url = abilities
        .aggregate
        .then(|| format!("{base}/aggregate{selector}"));
    json!({
        "object": "stream",
        "name": name,
        "record_count": total.records,
        "last_updated": total.newest.as_ref().map(|(_, text)| text),
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

fn abilities(stream: &StreamMetadata) -> StreamAbilities {
    let any = |capability: fn(&FieldCapability) -> Option<&Capability>| {
        let mut fields = stream.field_capabilities.iter();
        fields.any(|(_, field)| capability(field).is_some_and(|found| found.usable))
    };
    let expand = stream.expand_capabilities.iter().flatten();
    let query = stream.query.as_ref();
    StreamAbilities {
        exact: any(|field| field.exact_filter.as_ref()),
        range: any(|field| field.range_filter.as_ref()),
        expand: expand
            .into_iter()
            .any(|relation| relation.usable == Some(true)),
        aggregate: query.is_some_and(|query| query.aggregations.is_some()),
    }
}

fn declared_abilities(stream: &StreamDeclaration) -> StreamAbilities {
    StreamAbilities {
        exact: stream.fields.iter().any(|field| field.kind.is_scalar()),
        range: !stream.query.range_filters.is_empty(),
        expand: !stream.query.expand.is_empty(),
        aggregate: stream.query.aggregations.is_some(),
    }
}
