//! Records out, as lines that an import takes: all of a stream, one record, or exactly what a grant sees of them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use contract::error::ErrorCode;
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::key::RecordKey;
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

use super::telling::written;
use super::wire::Refusal;
use super::{blocking, refused, store_problem};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Ask, Outcome};

/// Records read at a time.
const PAGE_RECORDS: usize = 256;
const LINES: &str = "application/x-ndjson";

pub(super) async fn export(ask: Ask) -> Outcome {
    let text = |name| ask.params.text(name).map(str::to_owned);
    let stream = text("stream").unwrap_or_default();
    let stream = StreamName::parse(stream).map_err(|error| refused(error.to_string()))?;
    let (connection, record) = (text("connection_id"), text("record_id"));
    if let Some(grant) = text("grant") {
        let reader = looking_through(&ask.service, grant).await?;
        return match record {
            Some(id) => granted_record(&ask.service, reader, (stream, id, connection)).await,
            None => granted_stream(ask.service, reader, (stream, connection)).await,
        };
    }
    let connection = connection.unwrap_or_default();
    let connection = ConnectionId::parse(connection).map_err(|error| refused(error.to_string()))?;
    let place = StreamRef { connection, stream };
    match record {
        Some(id) => one(ask.service, place, id).await,
        None => all(ask.service, place).await,
    }
}

async fn one(service: Arc<Service>, place: StreamRef, id: String) -> Outcome {
    let line = blocking(service, move |service| {
        let store = &*service.store;
        let found = store.connection(&place.connection);
        let parts = found.map_or(1, |found| key_parts(store, &found.connector, &place.stream));
        let key = RecordKey::from_wire(&id, parts).map_err(|error| refused(error.to_string()))?;
        let record = store.get(&place, &key).map_err(|e| store_problem(&e))?;
        let record = record.ok_or_else(|| {
            Problem::new(
                ErrorCode::NotFound,
                format!(
                    "stream '{}' of connection '{}' has no record '{}'",
                    place.stream,
                    place.connection,
                    key.as_str()
                ),
            )
        })?;
        Ok(line(
            &record.key,
            place.stream.as_str(),
            (&record.emitted_at, &record.body),
        ))
    });
    Ok(lines(Body::from(line.await?)))
}

/// All records in the order of their keys.
async fn all(service: Arc<Service>, place: StreamRef) -> Outcome {
    let mut request = PageRequest {
        by: OrderBy::Key,
        direction: Direction::Ascending,
        after: None,
        limit: PAGE_RECORDS,
    };
    // The first page is read before anything is answered, so that a refusal can still be one.
    let (first, place, asked) = blocking(Arc::clone(&service), move |service| {
        let page = service.store.page(&place, &request);
        let page = page.map_err(|error| store_problem(&error))?;
        request.after = page.records.last().map(|record| record.position.clone());
        Ok((page.records, place, request))
    })
    .await?;
    written(LINES, move |out| {
        let (mut page, mut request) = (first, asked);
        while !page.is_empty() {
            for record in &page {
                let content = (record.emitted_at.as_str(), record.body.as_str());
                let line = line(&record.key, place.stream.as_str(), content);
                if out.write_all(line.as_bytes()).is_err() {
                    // Nobody is listening any more.
                    return Ok(());
                }
            }
            request.after = page.last().map(|record| record.position.clone());
            let next = service.store.page(&place, &request);
            page = next.map_err(|error| Refusal::from(&error))?.records;
        }
        Ok(())
    })
    .await
}

/// A reader with the authority of a grant or package. The owner looks for themself, so nothing is noted as disclosed.
async fn looking_through(service: &Arc<Service>, id: String) -> Result<GrantReader, Problem> {
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
    let mut settings = service.reading.clone();
    settings.disclosures = None;
    let store = Arc::clone(&service.store);
    Ok(GrantReader::new(store, authority.await?, settings))
}

async fn granted_record(
    service: &Service,
    reader: GrantReader,
    (stream, record_id, connection_id): (StreamName, String, Option<String>),
) -> Outcome {
    let record = reader
        .record(RecordQuery {
            stream,
            record_id,
            connection_id,
            projection: Projection::All,
            expand: Vec::new(),
        })
        .await?;
    let line =
        granted_line(&*service.store, &record).map_err(|refusal| refused(refusal.message))?;
    Ok(lines(Body::from(line)))
}

/// All records the grant sees, in its own order.
async fn granted_stream(
    service: Arc<Service>,
    reader: GrantReader,
    (stream, connection_id): (StreamName, Option<String>),
) -> Outcome {
    let query = move |cursor| RecordsQuery {
        stream: stream.clone(),
        connection_id: connection_id.clone(),
        projection: Projection::All,
        filters: Vec::new(),
        limit: PageLimit::of(MAX_PAGE_LIMIT),
        reading: Reading::List(ListOptions {
            cursor,
            order: Some(Order::Ascending),
            ..ListOptions::default()
        }),
    };
    let mut page = reader.records(query(None)).await?;
    let runtime = tokio::runtime::Handle::current();
    written(LINES, move |out| {
        loop {
            for record in &page.data {
                let line = granted_line(&*service.store, record)?;
                if out.write_all(line.as_bytes()).is_err() {
                    return Ok(());
                }
            }
            let Some(cursor) = page.next_cursor().map(str::to_owned) else {
                return Ok(());
            };
            page = runtime.block_on(reader.records(query(Some(cursor))))?;
        }
    })
    .await
}

fn granted_line(store: &dyn Store, record: &Record) -> Result<String, Refusal> {
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
    Ok(line(&key, &record.stream, (&record.emitted_at, data)))
}

fn key_parts(store: &dyn Store, connector: &ConnectorKey, stream: &StreamName) -> usize {
    let declaration = store.declaration(connector);
    let stream = declaration
        .as_ref()
        .and_then(|found| found.stream(stream.as_str()));
    stream.map_or(1, |stream| stream.primary_key.len())
}

fn lines(body: Body) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

/// One record as a line.
fn line(key: &RecordKey, stream: &str, (emitted_at, body): (&str, &str)) -> String {
    let parts = key.parts();
    let key = match parts.as_slice() {
        [only] => Value::from(only.as_str()),
        parts => Value::from(parts),
    };
    let (stream, emitted_at) = (Value::from(stream), Value::from(emitted_at));
    let body = one_line(body);
    format!(r#"{{"key":{key},"stream":{stream},"emitted_at":{emitted_at},"data":{body}}}"#) + "\n"
}

/// JSON on one line. Line ends in JSON stand between tokens only, so spaces do as well.
fn one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    }
}
