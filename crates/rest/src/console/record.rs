//! The page of a record, which citation URLs open.

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use contract::id::{ConnectionId, FieldName, StreamName};
use contract::query::RecordQuery;
use contract::reader::ReadContract as _;
use contract::record::{Record, own_time};
use contract::wire::OrderedMap;
use read::GrantReader;
use serde_json::value::RawValue;
use store::catalog::Connection;

use super::format::{Member, format_time, members, visible};
use super::{html, session};
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// The longest value shown, in characters; `pdpp export` has the rest.
const VALUE_CHARS: usize = 200_000;

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    session: String,
    key: String,
    stream: String,
    source: String,
    /// The record's own time; empty where it has none.
    time: String,
    emitted: String,
    members: Vec<Member>,
}

/// `GET /records/{connection_id}/{stream}/{record_id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(session::to_sign_in(&context));
    };
    let missing = || {
        ReadError::new(ErrorCode::NotFound, "there is no such record")
            .with_hint("it may have been deleted since it was cited")
    };
    let stream = StreamName::parse(context.part(1)).map_err(|_| missing())?;
    let connection = ConnectionId::parse(context.part(0)).map_err(|_| missing())?;
    let mut query = RecordQuery::new(stream, context.part(2));
    query.connection_id = Some(connection.to_string());
    let service = &context.service;
    let reader = GrantReader::new(
        service.store.clone(),
        Authority::Owner,
        service.reader_settings.clone(),
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
            session: session::csrf_token(&session),
            key: visible(&record.id),
            stream: visible(&record.stream),
            time: source
                .as_ref()
                .map_or_else(String::new, |source| time(service, source, &record)),
            source: source.map_or_else(|| connection.to_string(), |one| visible(&one.display_name)),
            emitted: format_time(&record.emitted_at),
            members: members(record.data.as_deref(), VALUE_CHARS)?,
        },
    )
}

/// The record's own time, as its source wrote it.
fn time(service: &Service, source: &Connection, record: &Record) -> String {
    let declaration = service.store.declaration(&source.connector);
    let mut streams = declaration.iter().flat_map(|one| &one.streams);
    let Some(stream) = streams.find(|one| one.name.as_str() == record.stream) else {
        return String::new();
    };
    let declared = [&stream.consent_time_field, &stream.cursor_field];
    let declared = declared.map(|field| field.as_ref().map(FieldName::as_str));
    let data = record.data.as_deref().map_or("{}", RawValue::get);
    let Ok(fields) = serde_json::from_str::<OrderedMap<&RawValue>>(data) else {
        // The members of the page report it.
        return String::new();
    };
    let own = own_time(declared, |name| {
        let (_, value) = fields.iter().find(|(known, _)| *known == name)?;
        serde_json::from_str(value.get()).ok()
    });
    own.map_or_else(String::new, |(_, at)| match at.len() {
        // A date has no time zone to convert.
        ..=10 => visible(&at),
        _ => format_time(&at),
    })
}
