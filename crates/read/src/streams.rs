//! The streams that may be read, one entry per connection that carries it.

use contract::page::Page;
use contract::query::StreamsQuery;
use contract::schema::{Freshness, StreamSummary};
use contract::time::Instant;
use contract::wire::{Nullable, ObjectTag};

use crate::ambiguity::{connection_not_found, label};
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::reader::{Answer, Session};
use crate::schema::source_of;
use crate::visible_history;

pub(crate) fn streams(session: &Session, query: &StreamsQuery) -> Answer<Page<StreamSummary>> {
    let reach = session.reach();
    let mut rows = reach.rows();
    if let Some(connection) = query.connection_id.as_deref() {
        if !reach.reaches_connection(connection) {
            return Err(connection_not_found(connection).into());
        }
        rows.retain(|row| row.connection().id.as_str() == connection);
    }
    let mut shown = Shown::default();
    let mut data = Vec::with_capacity(rows.len());
    for row in &rows {
        shown.row(row);
        data.push(summary(session, row)?);
    }
    Ok((Page::new(data), shown))
}

fn summary(session: &Session, row: &Row) -> Result<StreamSummary> {
    let (records, last_updated) = visible_history::extent(session, row)?;
    let connection = row.connection();
    let connector = connection.connector.to_string();
    Ok(StreamSummary {
        object: ObjectTag::STREAM,
        name: row.stream().name.to_string(),
        record_count: records,
        freshness: Some(freshness(last_updated.as_deref().and_then(Instant::parse))),
        last_updated: Nullable::or_null(last_updated),
        connection_id: Some(connection.id.to_string()),
        connector_instance_id: Some(connection.id.to_string()),
        connector_key: Some(connector.clone()),
        connector_id: Some(connector),
        source: Some(source_of(row.declaration())),
        display_name: label(connection),
    })
}

/// How recent visible records are. The status stays unknown: nothing declares how recent is recent enough.
pub(crate) fn freshness(captured: Option<Instant>) -> Freshness {
    Freshness {
        status: "unknown".to_owned(),
        captured_at: Nullable::or_absent(captured.map(Instant::to_rfc3339_millis)),
        ..Freshness::default()
    }
}
