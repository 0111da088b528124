//! One record, as the addresses of citations open it.

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

use super::words::{Member, members, moment, whole};
use super::{html, visit};
use crate::service::Service;
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
    /// The record's own time; empty where it has none.
    time: String,
    /// When it was emitted or imported.
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
            key: whole(&record.id),
            stream: whole(&record.stream),
            time: source
                .as_ref()
                .map_or_else(String::new, |source| time(service, source, &record)),
            source: source.map_or_else(|| connection.to_string(), |one| whole(&one.display_name)),
            emitted: moment(&record.emitted_at),
            members: members(record.data.as_deref(), VALUE_CHARS),
        },
    )
}

/// When what the record tells happened, in its own words.
fn time(service: &Service, source: &Connection, record: &Record) -> String {
    let declaration = service.store.declaration(&source.connector);
    let mut streams = declaration.iter().flat_map(|one| &one.streams);
    let Some(stream) = streams.find(|one| one.name.as_str() == record.stream) else {
        return String::new();
    };
    let declared = [&stream.consent_time_field, &stream.cursor_field];
    let declared = declared.map(|field| field.as_ref().map(FieldName::as_str));
    let data = record.data.as_deref().map_or("{}", RawValue::get);
    let fields: OrderedMap<&RawValue> = serde_json::from_str(data).unwrap_or_default();
    let own = own_time(declared, |name| {
        let (_, value) = fields.iter().find(|(known, _)| *known == name)?;
        serde_json::from_str(value.get()).ok()
    });
    own.map_or_else(String::new, |(_, at)| match at.len() {
        // A date is a date everywhere.
        ..=10 => whole(&at),
        _ => moment(&at),
    })
}
