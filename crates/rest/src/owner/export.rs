//! Exports records as lines that an import accepts: a whole stream, one record, or what a grant sees of them.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use contract::error::ErrorCode;
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::key::RecordKey;
use contract::page::{WarningCode, Warnings as _};
use contract::query::{
    ListOptions, MAX_PAGE_LIMIT, Order, PageLimit, Projection, Reading, RecordQuery, RecordsQuery,
};
use contract::reader::ReadContract;
use contract::record::Record;
use grants::TokenError;
use read::GrantReader;
use serde_json::Value;
use store::records::{Direction, OrderBy, PageRequest};
use store::{Store, StreamRef};

use super::progress::stream_bytes;
use super::wire::{LEFT_OUT, Refusal};
use super::{blocking, invalid_request, owner_blocking, store_problem};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const PAGE_RECORDS: usize = 256;
pub(super) const LINES: &str = "application/x-ndjson";

pub(super) async fn export(context: RequestContext) -> HandlerResult {
    let text = |name| context.params.text(name).map(str::to_owned);
    let stream = text("stream").unwrap_or_default();
    let stream = StreamName::parse(stream).map_err(|error| invalid_request(error.to_string()))?;
    let (connection, record) = (text("connection_id"), text("record_id"));
    if let Some(grant) = text("grant") {
        let reader = preview_reader(&context.service, grant).await?;
        let (service, wanted) = (context.service, Granted { stream, connection });
        return match record {
            Some(id) => granted_record(&service, reader, wanted, id).await,
            None => granted_stream(service, reader, wanted).await,
        };
    }
    let connection = connection.unwrap_or_default();
    let connection =
        ConnectionId::parse(connection).map_err(|error| invalid_request(error.to_string()))?;
    let stream_ref = StreamRef { connection, stream };
    match record {
        Some(id) => export_record(context.service, stream_ref, id).await,
        None => export_stream(context.service, stream_ref).await,
    }
}

async fn export_record(service: Arc<Service>, stream_ref: StreamRef, id: String) -> HandlerResult {
    let line = owner_blocking(service, move |service| {
        let store = &*service.store;
        let found = store.connection(&stream_ref.connection);
        let parts = found.map_or(1, |found| {
            key_parts(store, &found.connector, &stream_ref.stream)
        });
        let key =
            RecordKey::from_wire(&id, parts).map_err(|error| invalid_request(error.to_string()))?;
        let record = store.get(&stream_ref, &key)?.ok_or_else(|| {
            let (stream, connection) = (&stream_ref.stream, &stream_ref.connection);
            let message = format!(
                "stream '{stream}' of connection '{connection}' has no record '{}'",
                key.as_str()
            );
            Problem::new(ErrorCode::NotFound, message)
        })?;
        let stream = stream_ref.stream.as_str();
        Ok(record_line(
            &record.key,
            stream,
            &record.emitted_at,
            &record.body,
        ))
    });
    Ok(ndjson_response(Body::from(line.await?)))
}

/// All records in the order of their keys.
async fn export_stream(service: Arc<Service>, stream_ref: StreamRef) -> HandlerResult {
    let mut request = PageRequest::first(OrderBy::Key, Direction::Ascending, PAGE_RECORDS);
    // The first page is read before answering, so that an error can still be a status.
    let (first, stream_ref, asked) = owner_blocking(Arc::clone(&service), move |service| {
        let page = service.store.page(&stream_ref, &request)?;
        request.after = page.records.last().map(|record| record.position.clone());
        Ok((page.records, stream_ref, request))
    })
    .await?;
    stream_bytes(LINES, move |out| {
        let (mut page, mut request) = (first, asked);
        let mut damaged = Vec::new();
        while !page.is_empty() {
            for record in &page {
                if record.is_damaged {
                    damaged.push(format!(
                        "record '{}' of {}/{}",
                        record.key, stream_ref.connection, stream_ref.stream
                    ));
                    continue;
                }
                let stream = stream_ref.stream.as_str();
                let line = record_line(&record.key, stream, &record.emitted_at, &record.body);
                if out.write_all(line.as_bytes()).is_err() {
                    // The client is gone.
                    return Ok(());
                }
            }
            request.after = page.last().map(|record| record.position.clone());
            let next = service.store.page(&stream_ref, &request);
            page = next.map_err(|error| Refusal::from(&error))?.records;
        }
        tell_left_out(out, &damaged);
        Ok(())
    })
    .await
}

/// A reader with the authority of a grant or package. It is the owner's preview, so nothing is logged as disclosed.
async fn preview_reader(service: &Arc<Service>, id: String) -> Result<GrantReader, Problem> {
    let authority = blocking(Arc::clone(service), move |service| {
        let authority = grants::authority_of(&*service.store, &id, service.now());
        authority.map_err(|error| match error {
            TokenError::Store(error) => store_problem(&error),
            TokenError::Unknown => Problem::new(
                ErrorCode::NotFound,
                format!("no grant or package has the id {id:?}; `pdpp grants` lists them"),
            ),
            other => Problem::new(other.code(), format!("{id}: {other}")),
        })
    });
    let mut settings = service.reader_settings.clone();
    settings.disclosures = None;
    let store = Arc::clone(&service.store);
    Ok(GrantReader::new(store, authority.await?, settings))
}

/// The stream that is exported as a grant sees it.
struct Granted {
    stream: StreamName,
    connection: Option<String>,
}

async fn granted_record(
    service: &Service,
    reader: GrantReader,
    wanted: Granted,
    record_id: String,
) -> HandlerResult {
    let record = reader
        .record(RecordQuery {
            stream: wanted.stream,
            record_id,
            connection_id: wanted.connection,
            projection: Projection::All,
            expand: Vec::new(),
        })
        .await?;
    let line = export_line(&*service.store, &record)
        .map_err(|refusal| invalid_request(refusal.message))?;
    Ok(ndjson_response(Body::from(line)))
}

/// All records the grant sees, in its order.
async fn granted_stream(
    service: Arc<Service>,
    reader: GrantReader,
    wanted: Granted,
) -> HandlerResult {
    let query = move |cursor| RecordsQuery {
        stream: wanted.stream.clone(),
        connection_id: wanted.connection.clone(),
        projection: Projection::All,
        filters: Vec::new(),
        limit: PageLimit::new(MAX_PAGE_LIMIT),
        reading: Reading::List(ListOptions {
            cursor,
            order: Some(Order::Ascending),
            ..ListOptions::default()
        }),
    };
    let mut page = reader.records(query(None)).await?;
    let runtime = tokio::runtime::Handle::current();
    stream_bytes(LINES, move |out| {
        let mut damaged = Vec::new();
        loop {
            let told = page.warnings().iter();
            let told = told.filter(|warning| warning.code == WarningCode::RecordDamaged);
            damaged.extend(told.map(|warning| warning.message.clone()));
            for record in &page.data {
                let line = export_line(&*service.store, record)?;
                if out.write_all(line.as_bytes()).is_err() {
                    return Ok(());
                }
            }
            let Some(cursor) = page.next_cursor().map(str::to_owned) else {
                damaged.dedup();
                tell_left_out(out, &damaged);
                return Ok(());
            };
            page = runtime.block_on(reader.records(query(Some(cursor))))?;
        }
    })
    .await
}

/// Tells in a last line, which is no record, what was left out.
fn tell_left_out(out: &mut dyn Write, damaged: &[String]) {
    if !damaged.is_empty() {
        let line = serde_json::json!({ LEFT_OUT: damaged });
        // Who is gone needs no last line either.
        let _ = writeln!(out, "{line}");
    }
}

/// A record as a line that an import takes.
pub(crate) fn export_line(store: &dyn Store, record: &Record) -> Result<String, Refusal> {
    let connector = record.connector_key.as_deref().map(ConnectorKey::parse);
    let stream = StreamName::parse(record.stream.as_str());
    let parts = match (connector, stream) {
        (Some(Ok(connector)), Ok(stream)) => key_parts(store, &connector, &stream),
        _ => 1,
    };
    let key = RecordKey::from_wire(&record.id, parts).map_err(|error| Refusal {
        message: format!("record '{}': {error}", record.id),
        hints: Vec::new(),
    })?;
    let data = record.data.as_ref().map_or("{}", |data| data.get());
    Ok(record_line(&key, &record.stream, &record.emitted_at, data))
}

fn key_parts(store: &dyn Store, connector: &ConnectorKey, stream: &StreamName) -> usize {
    let declaration = store.declaration(connector);
    let stream = declaration
        .as_ref()
        .and_then(|found| found.stream(stream.as_str()));
    stream.map_or(1, |stream| stream.primary_key.len())
}

fn ndjson_response(body: Body) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

fn record_line(key: &RecordKey, stream: &str, emitted_at: &str, body: &str) -> String {
    let parts = key.parts();
    let key = match parts.as_slice() {
        [only] => Value::from(only.as_str()),
        parts => Value::from(parts),
    };
    let (stream, emitted_at) = (Value::from(stream), Value::from(emitted_at));
    let body = to_single_line(body);
    format!(r#"{{"key":{key},"stream":{stream},"emitted_at":{emitted_at},"data":{body}}}"#) + "\n"
}

/// JSON on one line. JSON has line breaks only between tokens, where spaces are equivalent.
fn to_single_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    }
}
