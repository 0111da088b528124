//! One record, with what it is related to.

use contract::page::Meta;
use contract::query::RecordQuery;
use contract::record::Record;

use crate::citation::Citable;
use crate::disclosure::Shown;
use crate::expand;
use crate::project::{Shape, admitted, key_of, record_not_found};
use crate::reader::{Answer, Session};
use crate::route;
use crate::visible_history;

pub(crate) fn record(session: &Session, query: &RecordQuery) -> Answer<Record> {
    let row = session.row(&query.stream, query.connection_id.as_deref())?;
    let shape = Shape::new(&row, &query.projection)?;
    let relations = expand::resolve(session.reach(), &row, &query.expand)?;
    let key = key_of(&row, &query.record_id)?;
    let stored = session.store.get(&row.stream_ref(), &key)?;
    let mut stored = stored.ok_or_else(record_not_found)?;
    let body = std::mem::take(&mut stored.body);
    let body = admitted(&row, &key, body)?.ok_or_else(record_not_found)?;
    let emitted_at = visible_history::emitted_at(session, &row, &stored)?;

    let mut shown = Shown::for_row(&row);
    shown.record(&row, &key);
    shown.fields(shape.names(&row));
    let expanded = expand::beside(session, &relations, &key, &body, &mut shown)?;
    let citable = Citable {
        session,
        row: &row,
        key: &key,
    };
    let cite = citable.cite_texts(&shape, &body);
    let mut record = shape.record(&row, &key, &emitted_at, body)?;
    record.cite = cite;
    record.expanded = expanded;
    // The size of what the caller gets, not of what is stored, which would reveal the size of hidden fields.
    record.record_json_bytes = record
        .data
        .as_ref()
        .and_then(|data| u64::try_from(data.get().len()).ok());
    let stream = &row.stream().name;
    let (public_url, connection) = (&session.settings.public_url, &row.connection().id);
    record.citation_url = Some(route::citation(public_url, connection, stream, &key));
    let mut meta = Meta::default();
    shown.damaged.warn_in(&mut meta);
    record.meta = Some(meta);
    Ok((record, shown))
}
