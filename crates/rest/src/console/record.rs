//! One record, as the addresses of citations open it.

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use contract::id::{ConnectionId, StreamName};
use contract::query::RecordQuery;
use contract::reader::ReadContract as _;
use read::GrantReader;

use super::words::{Member, label, members, moment};
use super::{html, visit};
use crate::table::{Ask, Outcome};

/// As much of one value is shown; the rest is read with `pdpp export`.
const VALUE_CHARS: usize = 200_000;

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    session: String,
    key: String,
    stream: String,
    source: String,
    emitted: String,
    members: Vec<Member>,
}

/// `GET /records/{connection_id}/{stream}/{record_id}`
pub(super) async fn show(ask: Ask) -> Outcome {
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    let missing = || {
        ReadError::new(ErrorCode::NotFound, "there is no such record")
            .with_hint("it may have been deleted since it was cited")
    };
    let stream = StreamName::parse(ask.part(1)).map_err(|_| missing())?;
    let connection = ConnectionId::parse(ask.part(0)).map_err(|_| missing())?;
    let mut query = RecordQuery::new(stream, ask.part(2));
    query.connection_id = Some(connection.to_string());
    let service = &ask.service;
    let reader = GrantReader::new(
        service.store.clone(),
        Authority::Owner,
        service.reading.clone(),
    );
    let record = reader
        .record(query)
        .await
        .map_err(|error| match error.code.http_status() {
            404 => missing(),
            _ => error,
        })?;
    let source = service.store.connection(&connection);
    html(
        StatusCode::OK,
        &RecordPage {
            session: visit::token(&session),
            key: label(&record.id),
            stream: label(&record.stream),
            source: source.map_or_else(|| connection.to_string(), |one| label(&one.display_name)),
            emitted: moment(&record.emitted_at),
            members: members(record.data.as_deref(), VALUE_CHARS),
        },
    )
}
