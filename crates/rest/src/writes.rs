//! What only the owner may do: ingest, delete, store blobs, declare sources.

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

use crate::ask::{self, Source};
use crate::blobs::warn_of_alias;
use crate::params::refused;
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::source::available;
use crate::table::{Ask, Outcome};
use crate::transfer::{BodyReader, Bounded, Lost, incoming};

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Records deleted in one transaction.
const DELETED_AT_ONCE: usize = 1_000;

/// The stream a write goes to.
#[derive(Clone)]
struct Place {
    declaration: Arc<Declaration>,
    stream: StreamRef,
}

impl Place {
    /// The stream of the connection named, or of the only one that carries it.
    fn find(service: &Service, stream: &str, source: &Source) -> Result<Self, Problem> {
        let stream = ask::stream(stream, true)?;
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
        let place = |connection: &Connection, declaration| Self {
            declaration,
            stream: StreamRef {
                connection: connection.id.clone(),
                stream: stream.clone(),
            },
        };
        if let Some(id) = &source.connection_id {
            let connection = connection(service, id)?;
            let declaration = carries(&connection).ok_or_else(not_declared)?;
            return Ok(place(&connection, declaration));
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
        Ok(place(connection, declaration))
    }

    fn rules(&self) -> Option<&StreamDeclaration> {
        self.declaration.stream(self.stream.stream.as_str())
    }

    /// A record key as a request names it.
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

pub(crate) async fn ingest(ask: Ask) -> Outcome {
    let source = Source::asked(&ask, true, Some(ask.part(0)))?;
    let place = Place::find(&ask.service, ask.part(0), &source)?;
    let packed = is_packed(&ask.headers)?;
    let limits = ask.service.limits;
    let service = Arc::clone(&ask.service);
    let work = move |body| receive(&service, &place, packed, body);
    let receipt = with_body(ask.body, (limits.ingest_bytes, limits.body_pause), work).await?;
    ask.service.metrics.ingested(&receipt);
    let mut response = problem::json(StatusCode::OK, &receipt)?;
    if source.by_alias {
        warn_of_alias(&mut response);
    }
    Ok(response)
}

/// Runs blocking work over a body while the body arrives.
async fn with_body<T: Send + 'static>(
    mut body: Body,
    (limit, pause): (u64, std::time::Duration),
    work: impl FnOnce(BodyReader) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (pump, reader) = incoming(limit, pause);
    let work = tokio::task::spawn_blocking(move || work(reader));
    let ((), done) = tokio::join!(pump.run(&mut body), work);
    done.map_err(|error| Problem::internal("a write did not come to its end", &error))?
}

fn receive(
    service: &Service,
    place: &Place,
    packed: bool,
    body: BodyReader,
) -> Result<Receipt, Problem> {
    let mut body = BufReader::new(body);
    let head = body
        .fill_buf()
        .map_err(|error| lost_problem(Lost::of(&error).unwrap_or(Lost::Broken)))?;
    let magic = head.starts_with(&GZIP);
    let plain: Box<dyn Read> = if packed || magic {
        Box::new(MultiGzDecoder::new(body))
    } else {
        Box::new(body)
    };
    let lines = BufReader::new(Bounded {
        reader: plain,
        bytes_left: service.limits.unpacked_bytes,
        lines_left: service.limits.ingest_lines,
    });
    let clock = &*service.reading.clock;
    let StreamRef { connection, stream } = &place.stream;
    let choice = StreamChoice::Always(stream.clone());
    let acceptor = Acceptor::new(&place.declaration, choice, LineForm::EnvelopeOnly, clock);
    let store = &*service.store;
    ingest::receive(store, connection, stream, (lines, &acceptor), clock.now()).map_err(stopped)
}

fn is_packed(headers: &HeaderMap) -> Result<bool, Problem> {
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

fn stopped(stopped: Stopped) -> Problem {
    match stopped {
        Stopped::Store(error) => store_problem(&error),
        Stopped::Input(InputError::Unreadable(error)) => match Lost::of(&error) {
            Some(lost) => lost_problem(lost),
            None => Problem::new(
                ErrorCode::InvalidRequest,
                "the gzip data is damaged; what was read up to there is kept",
            ),
        },
        Stopped::Input(error) => Problem::new(ErrorCode::InvalidRequest, error.to_string()),
    }
}

fn lost_problem(lost: Lost) -> Problem {
    match lost {
        Lost::TooLarge => Problem::from(
            ReadError::new(ErrorCode::ResourceLimit, lost.to_string())
                .with_hint("send it in smaller parts; what was acknowledged before is kept"),
        ),
        Lost::TooSlow => Problem::new(ErrorCode::InvalidRequest, lost.to_string())
            .with_status(StatusCode::REQUEST_TIMEOUT),
        Lost::Broken => Problem::new(ErrorCode::InvalidRequest, lost.to_string()),
    }
}

/// What the store refused, in words for the owner; what failed inside it, for the log.
fn store_problem(error: &StoreError) -> Problem {
    let told = |code, error: &StoreError| Problem::new(code, error.to_string());
    match error {
        StoreError::UnknownConnection(_) => told(ErrorCode::ConnectionNotFound, error),
        StoreError::UnknownStream { .. } => told(ErrorCode::StreamNotDeclared, error),
        StoreError::UnknownConnector(_) => told(ErrorCode::NotFound, error),
        StoreError::Declaration(mistakes) => declaration_problem(mistakes),
        StoreError::Io { source, .. } if Lost::of(source).is_some() => {
            lost_problem(Lost::of(source).unwrap_or(Lost::Broken))
        }
        _ => {
            tracing::error!(cause = %error, "the store could not write");
            let message = "the data could not be stored; what was acknowledged before is kept";
            ReadError::new(ErrorCode::IngestBatchStorageError, message)
                .with_hint("send the whole request again later; that is safe")
                .into()
        }
    }
}

pub(crate) async fn delete_record(ask: Ask) -> Outcome {
    let source = Source::asked(&ask, true, Some(ask.part(0)))?;
    let place = Place::find(&ask.service, ask.part(0), &source)?;
    // What cannot be a key is not there, and what is not there is as good as deleted.
    if let Ok(key) = place.key(ask.part(1)) {
        blocking(ask.service, move |service| {
            delete(service, &place, vec![key])
        })
        .await?;
    }
    Ok(no_content(&source))
}

pub(crate) async fn delete_records(ask: Ask) -> Outcome {
    let source = Source::asked(&ask, true, Some(ask.part(0)))?;
    let place = Place::find(&ask.service, ask.part(0), &source)?;
    blocking(ask.service, move |service| delete_all(service, &place)).await?;
    Ok(no_content(&source))
}

fn delete_all(service: &Service, place: &Place) -> Result<(), Problem> {
    let mut request = PageRequest {
        by: OrderBy::Key,
        direction: Direction::Ascending,
        after: None,
        limit: DELETED_AT_ONCE,
    };
    loop {
        let page = service
            .store
            .page(&place.stream, &request)
            .map_err(|error| store_problem(&error))?;
        let Some(last) = page.records.last() else {
            return Ok(());
        };
        request.after = Some(last.position.clone());
        delete(
            service,
            place,
            page.records.into_iter().map(|record| record.key).collect(),
        )?;
    }
}

fn delete(service: &Service, place: &Place, keys: Vec<RecordKey>) -> Result<(), Problem> {
    let emitted_at = service.now().to_rfc3339_millis();
    let changes = keys.into_iter().map(|key| Change {
        stream: place.stream.stream.clone(),
        key,
        emitted_at: emitted_at.clone(),
        op: ChangeOp::Delete,
    });
    let written = service
        .store
        .write(&place.stream.connection, changes.collect());
    written.map(drop).map_err(|error| store_problem(&error))
}

fn no_content(source: &Source) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if source.by_alias {
        warn_of_alias(&mut response);
    }
    response
}

async fn blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&service)).await;
    done.map_err(|error| Problem::internal("a write did not come to its end", &error))?
}

pub(crate) async fn put_blob(ask: Ask) -> Outcome {
    let source = Source::asked(&ask, true, ask.params.text("stream"))?;
    let needed = |name: &'static str| {
        let value = ask.params.text(name);
        value.ok_or_else(|| refused(name, format!("{name} is required")))
    };
    let place = Place::find(&ask.service, needed("stream")?, &source)?;
    let key = place
        .key(needed("record_key")?)
        .map_err(|error| refused("record_key", error.to_string()))?;
    let sent = ask.headers.get(header::CONTENT_TYPE);
    let media_type = ask
        .params
        .text("mime_type")
        .or(sent.and_then(|value| value.to_str().ok()));
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    if media_type.len() > 255 || header::HeaderValue::from_str(&media_type).is_err() {
        return Err(refused("mime_type", "mime_type must be a media type").into());
    }
    let limits = ask.service.limits;
    let service = Arc::clone(&ask.service);
    let work = move |mut body: BodyReader| {
        let owner = (&place.stream, &key);
        let stored = service.store.put_blob(owner, &media_type, &mut body);
        stored.map_err(|error| store_problem(&error))
    };
    let blob = with_body(ask.body, (limits.blob_bytes, limits.body_pause), work).await?;
    let answer = json!({
        "object": "blob",
        "blob_id": blob.id.as_str(),
        "sha256": blob.id.hex(),
        "size_bytes": blob.size_bytes,
        "mime_type": blob.mime_type,
    });
    let mut response = problem::json(StatusCode::OK, &answer)?;
    if source.by_alias {
        warn_of_alias(&mut response);
    }
    Ok(response)
}

pub(crate) async fn declare(ask: Ask) -> Outcome {
    let limits = ask.service.limits;
    let work = |mut body: BodyReader| {
        let mut text = String::new();
        body.read_to_string(&mut text).map_err(|error| {
            let lost = Lost::of(&error).map(lost_problem);
            let message = "a declaration is one JSON object in UTF-8";
            lost.unwrap_or_else(|| Problem::new(ErrorCode::InvalidRequest, message))
        })?;
        Declaration::parse(&text).map_err(|mistakes| declaration_problem(&mistakes))
    };
    let limit = (limits.declaration_bytes, limits.body_pause);
    let declaration = with_body(ask.body, limit, work).await?;
    let key = declaration.connector_key().to_string();
    let declared = blocking(ask.service, move |service| {
        service
            .store
            .declare(&declaration)
            .map_err(|error| store_problem(&error))
    })
    .await?;
    let (status, result) = match declared {
        Declared::Added => (StatusCode::CREATED, "added"),
        Declared::Unchanged => (StatusCode::OK, "unchanged"),
        Declared::Updated { .. } => (StatusCode::OK, "updated"),
    };
    let answer = json!({"connector_id": key, "connector_key": key, "result": result});
    problem::json(status, &answer)
}

fn declaration_problem(mistakes: &DeclarationErrors) -> Problem {
    let listed: Vec<_> = mistakes
        .0
        .iter()
        .map(|mistake| json!({"path": mistake.path, "rule": mistake.rule}))
        .collect();
    Problem::new(ErrorCode::InvalidRequest, mistakes.to_string()).with("errors", listed)
}
