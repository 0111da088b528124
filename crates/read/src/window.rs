//! A bounded slice of one long text field.

use contract::error::{ErrorCode, ReadError};
use contract::json::{self, JsonKind, RecordBody};
use contract::page::{Meta, Warning, WarningCode};
use contract::query::WindowQuery;
use contract::record::{FieldWindow, WindowField};
use contract::window::{self, MAX_LIMIT_CHARS};
use contract::wire::ObjectTag;

use crate::citation::Citable;
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::project::{admitted, key_of, record_not_found};
use crate::reader::{Answer, Session};
use crate::route;

pub(crate) fn field_window(session: &Session, query: &WindowQuery) -> Answer<FieldWindow> {
    let name = query.field.as_str();
    let request = query.selector.request();
    let request = request.map_err(|error| error.for_field(name))?;
    let row = session.row(&query.stream, query.connection_id.as_deref())?;
    // The owner may read whatever a record holds, declared or not.
    if !row.is_owner() {
        row.shown_field(name, "field")?;
    }
    let key = key_of(&row, &query.record_id)?;
    let stored = session.store.get(&row.stream_ref(), &key)?;
    let stored = stored.ok_or_else(record_not_found)?;
    let body = admitted(&row, &key, stored.body)?.ok_or_else(record_not_found)?;
    let text = text_of(&row, &body, name)?;
    let window = window::cut(&text, &request).map_err(|error| error.for_field(name))?;

    let mut meta = Meta::default();
    if request.limit_clamped() {
        let message = format!("limit_chars clamped to {MAX_LIMIT_CHARS}");
        meta.warn(Warning::new(WarningCode::LimitClamped, message).about("limit_chars"));
    }
    let citable = Citable {
        session,
        row: &row,
        key: &key,
    };
    let chars = window.start_chars as u64..window.end_chars as u64;
    let cite = citable.cite(name, &text, chars);
    let stream = &row.stream().name;
    let answer = FieldWindow {
        object: ObjectTag::FIELD_WINDOW,
        stream: stream.to_string(),
        record_id: key.to_string(),
        connection_id: Some(row.connection().id.to_string()),
        url: Some(route::field_window(stream, &key)),
        field: WindowField {
            path: name.to_owned(),
            kind: Some("string".to_owned()),
        },
        window,
        cite: Some(cite),
        links: None,
        meta: Some(meta),
    };
    let mut shown = Shown::for_row(&row);
    shown.record(&row, &key);
    shown.fields([name]);
    Ok((answer, shown))
}

fn text_of(row: &Row, body: &RecordBody, name: &str) -> Result<String> {
    let Some(raw) = body.get(name) else {
        row.shown_field(name, "field")?;
        let message = format!("this record has no field '{name}'");
        return Err(ReadError::new(ErrorCode::FieldNotFound, message)
            .with_param("field")
            .into());
    };
    // A searched array is read as the text in which its matches were found.
    let is_searched = || row.lexical_fields().iter().any(|one| one.as_str() == name);
    let text = match json::kind_of(raw) {
        JsonKind::Array if is_searched() => body.searched_text(name),
        _ => json::decode_string(raw),
    };
    match text {
        Some(text) => Ok(text.into_owned()),
        None => Err(not_text(name, json::kind_of(raw)).into()),
    }
}

fn not_text(name: &str, kind: JsonKind) -> ReadError {
    let kind = match kind {
        JsonKind::Null => "null",
        JsonKind::Boolean => "boolean",
        JsonKind::Number => "number",
        JsonKind::String => "string",
        JsonKind::Array => "array",
        JsonKind::Object => "object",
    };
    let message = format!(
        "field '{name}' is {kind}, not a readable text field; non-text and binary fields are metadata-only"
    );
    ReadError::new(ErrorCode::FieldNotText, message)
        .with_param("field")
        .with_hint(format!("read the record with fields={name}"))
}
