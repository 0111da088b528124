//! The owner's writes: ingest, delete, store blobs, declare sources.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::declaration::{Declaration, DeclarationErrors, StreamDeclaration};
use contract::error::{ErrorCode, ReadError};
use contract::id::ConnectionId;
use contract::key::RecordKey;
use flate2::bufread::MultiGzDecoder;
use ingest::importer::Stopped;
use ingest::{Acceptor, InputError, LineForm, Receipt, StreamChoice};
use serde_json::json;
use store::catalog::{Connection, Declared};
use store::records::{Change, ChangeOp, Direction, OrderBy, PageRequest};
use store::{StoreError, StreamRef};

use crate::blobs::add_alias_warning;
use crate::body_stream::{BodyError, BodyReader, Bounded, incoming_body};
use crate::connection_selector::available;
use crate::owner::blocking;
use crate::params::invalid_param;
use crate::problem::{self, Problem};
use crate::query_params::{self, ConnectionSelector};
use crate::service::{BodyLimit, Service};
use crate::table::{HandlerResult, RequestContext};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const DELETED_AT_ONCE: usize = 1_000;

#[derive(Clone)]
struct WriteTarget {
    declaration: Arc<Declaration>,
    stream: StreamRef,
}

impl WriteTarget {
    /// The stream in the named connection, or in the only one that has it.
    fn find(
        service: &Service,
        stream: &str,
        selector: &ConnectionSelector,
    ) -> Result<Self, Problem> {
        let stream = query_params::stream(stream, true)?;
        let carries = |connection: &Connection| {
            let declaration = service.store.declaration(&connection.connector)?;
            declaration
                .stream(stream.as_str())
                .is_some()
                .then_some(declaration)
        };
        let not_declared = || {
            let message = format!("no connection carries a stream '{stream}'");
            ReadError::new(ErrorCode::StreamNotDeclared, message).with_param("stream")
        };
        let target = |connection: &Connection, declaration| Self {
            declaration,
            stream: StreamRef::new(&connection.id, &stream),
        };
        if let Some(id) = &selector.connection_id {
            let connection = connection(service, id)?;
            let declaration = carries(&connection).ok_or_else(not_declared)?;
            return Ok(target(&connection, declaration));
        }
        let all = service.store.connections();
        let mut found = all
            .iter()
            .filter_map(|connection| Some((connection, carries(connection)?)));
        let (connection, declaration) = found.next().ok_or_else(not_declared)?;
        if found.next().is_some() {
            let all = all
                .iter()
                .filter(|connection| carries(connection).is_some());
            let choices = all.map(available).collect();
            return Err(ReadError::ambiguous_connection(stream.as_str(), choices).into());
        }
        Ok(target(connection, declaration))
    }

    fn rules(&self) -> Option<&StreamDeclaration> {
        self.declaration.stream(self.stream.stream.as_str())
    }

    fn key(&self, text: &str) -> Result<RecordKey, contract::KeyError> {
        let parts = self.rules().map_or(1, |stream| stream.primary_key.len());
        RecordKey::from_wire(text, parts)
    }
}

fn connection(service: &Service, id: &str) -> Result<Connection, Problem> {
    let parsed = ConnectionId::parse(id).ok();
    let found = parsed.and_then(|id| service.store.connection(&id));
    found.ok_or_else(|| {
        let message = format!(
            "the connection '{}' is not available",
            crate::params::quoted(id)
        );
        ReadError::new(ErrorCode::ConnectionNotFound, message)
            .with_param("connection_id")
            .into()
    })
}

pub(crate) async fn ingest(context: RequestContext) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, true, Some(context.part(0)))?;
    let target = WriteTarget::find(&context.service, context.part(0), &selector)?;
    let gzip = is_gzip(&context.headers)?;
    let limits = context.service.limits;
    let service = Arc::clone(&context.service);
    let work = move |body| receive(&service, &target, gzip, body);
    let receipt = with_body(context.body, limits.body(limits.ingest_bytes), work).await?;
    context.service.metrics.ingested(&receipt);
    let mut response = problem::json(StatusCode::OK, &receipt)?;
    if selector.by_alias {
        add_alias_warning(&mut response);
    }
    Ok(response)
}

/// Runs blocking work over a body while it arrives.
async fn with_body<T: Send + 'static>(
    mut body: Body,
    limit: BodyLimit,
    work: impl FnOnce(BodyReader) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (pump, reader) = incoming_body(limit.bytes, limit.pause);
    let work = tokio::task::spawn_blocking(move || work(reader));
    let ((), done) = tokio::join!(pump.run(&mut body), work);
    done.map_err(|error| Problem::internal("a write did not come to its end", &error))?
}

fn receive(
    service: &Service,
    target: &WriteTarget,
    gzip: bool,
    body: BodyReader,
) -> Result<Receipt, Problem> {
    let mut body = BufReader::new(body);
    let head = body
        .fill_buf()
        .map_err(|error| body_problem(BodyError::from_io(&error).unwrap_or(BodyError::Broken)))?;
    let magic = head.starts_with(&GZIP);
    let plain: Box<dyn Read> = if gzip || magic {
        Box::new(MultiGzDecoder::new(body))
    } else {
        Box::new(body)
    };
    let lines = BufReader::new(Bounded {
        reader: plain,
        bytes_left: service.limits.unpacked_bytes,
        lines_left: service.limits.ingest_lines,
    });
    let clock = &*service.reader_settings.clock;
    let StreamRef { connection, stream } = &target.stream;
    let choice = StreamChoice::Always(stream.clone());
    let acceptor = Acceptor::new(&target.declaration, choice, LineForm::EnvelopeOnly, clock);
    let store = &*service.store;
    ingest::receive(store, connection, stream, (lines, &acceptor), clock.now())
        .map_err(ingest_problem)
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, Problem> {
    let encoding = headers
        .get(header::CONTENT_ENCODING)
        .map(header::HeaderValue::as_bytes);
    match encoding.map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"" | b"identity") => Ok(false),
        Some(b"gzip" | b"x-gzip") => Ok(true),
        Some(_) => Err(Problem::new(
            ErrorCode::InvalidRequest,
            "Content-Encoding must be gzip or identity",
        )
        .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    }
}

fn ingest_problem(stopped: Stopped) -> Problem {
    match stopped {
        Stopped::Store(error) => store_problem(&error),
        Stopped::Input(InputError::Unreadable(error)) => match BodyError::from_io(&error) {
            Some(lost) => body_problem(lost),
            None => Problem::new(
                ErrorCode::InvalidRequest,
                "the gzip data is damaged; what was read up to there is kept",
            ),
        },
        Stopped::Input(error) => Problem::new(ErrorCode::InvalidRequest, error.to_string()),
    }
}

fn body_problem(lost: BodyError) -> Problem {
    match lost {
        BodyError::TooLarge => Problem::from(
            ReadError::new(ErrorCode::ResourceLimit, lost.to_string())
                .with_hint("send it in smaller parts; what was acknowledged before is kept"),
        ),
        BodyError::TooSlow => Problem::new(ErrorCode::InvalidRequest, lost.to_string())
            .with_status(StatusCode::REQUEST_TIMEOUT),
        BodyError::Broken => Problem::new(ErrorCode::InvalidRequest, lost.to_string()),
    }
}

/// An error of the store: refusals are sent, internal failures only logged.
fn store_problem(error: &StoreError) -> Problem {
    let refused = |code, error: &StoreError| Problem::new(code, error.to_string());
    match error {
        StoreError::UnknownConnection(_) => refused(ErrorCode::ConnectionNotFound, error),
        StoreError::UnknownStream { .. } => refused(ErrorCode::StreamNotDeclared, error),
        StoreError::UnknownConnector(_) => refused(ErrorCode::NotFound, error),
        StoreError::Declaration(mistakes) => declaration_problem(mistakes),
        StoreError::Io { source, .. } if BodyError::from_io(source).is_some() => {
            body_problem(BodyError::from_io(source).unwrap_or(BodyError::Broken))
        }
        _ => {
            tracing::error!(cause = %error, "the store could not write");
            let message = format!(
                "the data could not be stored: {}; what was acknowledged before is kept",
                error.in_public()
            );
            let refused = ReadError::new(ErrorCode::IngestBatchStorageError, message)
                .with_hint("send the whole request again later; that is safe");
            match Problem::from(refused) {
                problem if error.is_transient() => {
                    problem.with_header(header::RETRY_AFTER, problem::RETRY_SECONDS)
                }
                problem => problem,
            }
        }
    }
}

pub(crate) async fn delete_record(context: RequestContext) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, true, Some(context.part(0)))?;
    let target = WriteTarget::find(&context.service, context.part(0), &selector)?;
    // An invalid key names no record, and deleting no record succeeds.
    if let Ok(key) = target.key(context.part(1)) {
        blocking(context.service, move |service| {
            delete(service, &target, vec![key])
        })
        .await?;
    }
    Ok(no_content(&selector))
}

pub(crate) async fn delete_records(context: RequestContext) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, true, Some(context.part(0)))?;
    let target = WriteTarget::find(&context.service, context.part(0), &selector)?;
    blocking(context.service, move |service| delete_all(service, &target)).await?;
    Ok(no_content(&selector))
}

fn delete_all(service: &Service, target: &WriteTarget) -> Result<(), Problem> {
    let mut request = PageRequest::first(OrderBy::Key, Direction::Ascending, DELETED_AT_ONCE);
    loop {
        let page = service
            .store
            .page(&target.stream, &request)
            .map_err(|error| store_problem(&error))?;
        let Some(last) = page.records.last() else {
            return Ok(());
        };
        request.after = Some(last.position.clone());
        delete(
            service,
            target,
            page.records.into_iter().map(|record| record.key).collect(),
        )?;
    }
}

fn delete(service: &Service, target: &WriteTarget, keys: Vec<RecordKey>) -> Result<(), Problem> {
    let emitted_at = service.now().to_rfc3339_millis();
    let changes = keys.into_iter().map(|key| Change {
        stream: target.stream.stream.clone(),
        key,
        emitted_at: emitted_at.clone(),
        op: ChangeOp::Delete,
    });
    let written = service
        .store
        .write(&target.stream.connection, changes.collect());
    written.map(drop).map_err(|error| store_problem(&error))
}

fn no_content(selector: &ConnectionSelector) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if selector.by_alias {
        add_alias_warning(&mut response);
    }
    response
}

pub(crate) async fn put_blob(context: RequestContext) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, true, context.params.text("stream"))?;
    let needed = |name: &'static str| {
        let value = context.params.text(name);
        value.ok_or_else(|| invalid_param(name, format!("{name} is required")))
    };
    let target = WriteTarget::find(&context.service, needed("stream")?, &selector)?;
    let key = target
        .key(needed("record_key")?)
        .map_err(|error| invalid_param("record_key", error.to_string()))?;
    let sent = context.headers.get(header::CONTENT_TYPE);
    let media_type = context
        .params
        .text("mime_type")
        .or(sent.and_then(|value| value.to_str().ok()));
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    if media_type.len() > 255 || header::HeaderValue::from_str(&media_type).is_err() {
        return Err(invalid_param("mime_type", "mime_type must be a media type").into());
    }
    let limits = context.service.limits;
    let service = Arc::clone(&context.service);
    let work = move |mut body: BodyReader| {
        let store = &service.store;
        let stored = store.put_blob(&target.stream, &key, &media_type, &mut body);
        stored.map_err(|error| store_problem(&error))
    };
    let blob = with_body(context.body, limits.body(limits.blob_bytes), work).await?;
    let answer = json!({
        "object": "blob",
        "blob_id": blob.id.as_str(),
        "sha256": blob.id.hex(),
        "size_bytes": blob.size_bytes,
        "mime_type": blob.mime_type,
    });
    let mut response = problem::json(StatusCode::OK, &answer)?;
    if selector.by_alias {
        add_alias_warning(&mut response);
    }
    Ok(response)
}

pub(crate) async fn declare(context: RequestContext) -> HandlerResult {
    let limits = context.service.limits;
    let work = |mut body: BodyReader| {
        let mut text = String::new();
        body.read_to_string(&mut text).map_err(|error| {
            let lost = BodyError::from_io(&error).map(body_problem);
            let message = "a declaration is one JSON object in UTF-8";
            lost.unwrap_or_else(|| Problem::new(ErrorCode::InvalidRequest, message))
        })?;
        Declaration::parse(&text).map_err(|mistakes| declaration_problem(&mistakes))
    };
    let limit = limits.body(limits.declaration_bytes);
    let declaration = with_body(context.body, limit, work).await?;
    let key = declaration.connector_key().to_string();
    let declared = blocking(context.service, move |service| {
        service
            .store
            .declare(&declaration)
            .map_err(|error| store_problem(&error))
    })
    .await?;
    let (status, result, damaged) = match declared {
        Declared::Added => (StatusCode::CREATED, "added", Vec::new()),
        Declared::Unchanged => (StatusCode::OK, "unchanged", Vec::new()),
        Declared::Updated { damaged, .. } => (StatusCode::OK, "updated", damaged),
    };
    let mut answer = json!({"connector_id": key, "connector_key": key, "result": result});
    if !damaged.is_empty() {
        answer["damaged"] = damaged.into();
    }
    problem::json(status, &answer)
}

fn declaration_problem(mistakes: &DeclarationErrors) -> Problem {
    let listed: Vec<_> = mistakes
        .0
        .iter()
        .map(|mistake| json!({"path": mistake.path, "rule": mistake.rule}))
        .collect();
    Problem::new(ErrorCode::InvalidRequest, mistakes.to_string()).with_member("errors", listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    // TR-33: whoever sends records learns what is missing, and nothing of where the data lies.
    #[test]
    fn what_cannot_be_stored_is_told_with_the_cause_and_the_figure() {
        let path = || "/home/ada/data/records.db".into();
        for (error, cause) in [
            (
                StoreError::NoRoom {
                    path: path(),
                    needed: 17 * 1024 * 1024,
                    free: 2 * 1024 * 1024,
                },
                "the server's disk has 2 MiB of room left, and 17 MiB are needed",
            ),
            (
                StoreError::Full { path: path() },
                "the server's disk is full",
            ),
            (
                StoreError::DiskFailed {
                    path: path(),
                    detail: "os error 5".to_owned(),
                },
                "the server's disk failed",
            ),
            (
                StoreError::Unavailable {
                    place: "db.internal/pdpp".to_owned(),
                    detail: "connection refused".to_owned(),
                },
                "the server's database does not answer",
            ),
        ] {
            let response = store_problem(&error).into_response();
            let says_when = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(says_when, error.is_transient());
            let told = store_problem(&error).error;
            assert_eq!(
                told.message,
                format!(
                    "the data could not be stored: {cause}; what was acknowledged before is kept"
                )
            );
            assert_eq!(told.code, ErrorCode::IngestBatchStorageError);
            let next = told.hint.as_deref();
            assert_eq!(
                next,
                Some("send the whole request again later; that is safe")
            );
        }
    }
}
