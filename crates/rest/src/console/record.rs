//! The page of a record, which citation URLs open: what it is called, who wrote it and when, its text, then everything
//! else it has, what belongs to it, and what has become of it.

mod citation;
pub(super) mod delete;
pub(super) mod file;
mod related;
mod trace;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::id::{ConnectionId, StreamName};
use contract::query::{ExpandRequest, RecordQuery};
use contract::reader::ReadContract as _;
use contract::record::Record;
use serde_json::value::RawValue;

use self::citation::Quoted;
use self::file::FileRow;
use self::related::{Neighbours, Related};
use self::trace::Trace;
use super::address::Address;
use super::body_text::{Block, BodyText, Span, lay_out};
use super::browse::stream_address;
use super::format::{format_number, label, visible};
use super::frame::{Frame, Section};
use super::html;
use super::moment::Moment;
use super::stream_shape::{FieldShape, StreamShape, title};
use super::summary::Summary;
use super::value::{self, FieldValue, Members, Part};
use super::viewer::Viewer;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

/// The longest raw record shown, in characters; `pdpp export` has the rest.
const RAW_CHARS: usize = 200_000;

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    frame: Frame,
    summary: Summary,
    /// What became of the text that the address cites.
    quoted: Option<Quoted>,
    source: String,
    stream: String,
    key: String,
    emitted: Option<Moment>,
    body: BodyText,
    fields: Vec<FieldRow>,
    files: Vec<FileRow>,
    related: Vec<Related>,
    neighbours: Neighbours,
    /// The page of its stream.
    browse: String,
    /// The page that deletes it; empty where it is seen as a grant.
    delete: String,
    trace: Trace,
    raw: String,
}

struct FieldRow {
    title: String,
    about: String,
    value: FieldValue,
}

/// The record a page is about.
struct Subject {
    connection: ConnectionId,
    stream: StreamName,
    shape: StreamShape,
    record: Record,
    members: Members,
}

impl Subject {
    /// Reads the record that a path names, with what belongs to it.
    async fn read(viewer: &Viewer, path: [&str; 3]) -> Result<Self, Problem> {
        let [connection, stream, key] = path;
        let stream = StreamName::parse(stream).map_err(|_| missing())?;
        let connection = ConnectionId::parse(connection).map_err(|_| missing())?;
        let shape = StreamShape::read(viewer, &stream, connection.as_str());
        let shape = shape.await.map_err(not_there)?;
        let mut query = RecordQuery::new(stream.clone(), key);
        query.connection_id = Some(connection.to_string());
        let expand = shape.expand.iter();
        query.expand = expand
            .map(|relation| ExpandRequest {
                name: relation.name.clone(),
                limit: relation.most,
            })
            .collect();
        let record = viewer.reader.record(query).await;
        let record = record.map_err(|error| not_there(error.into()))?;
        Ok(Self {
            members: value::members(record.data.as_deref()),
            connection,
            stream,
            shape,
            record,
        })
    }
}

fn missing() -> ReadError {
    ReadError::new(ErrorCode::NotFound, "there is no such record")
        .with_hint("it may have been deleted since it was cited")
}

/// What cannot be found is a record that is not there, whatever part of its name is wrong.
fn not_there(problem: Problem) -> Problem {
    match problem.error.code.http_status() {
        404 => missing().into(),
        _ => problem,
    }
}

/// `GET /records/{connection_id}/{stream}/{record_id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let path = [context.part(0), context.part(1), context.part(2)].map(str::to_owned);
    drop(context);
    let quoted = citation::check(&viewer, path.each_ref().map(String::as_str)).await?;
    let subject = Subject::read(&viewer, path.each_ref().map(String::as_str)).await;
    let subject = match (subject, &quoted) {
        (Err(problem), Some(quoted)) if problem.error.code == ErrorCode::NotFound => {
            return Err(ReadError::new(ErrorCode::NotFound, quoted.words).into());
        }
        (subject, _) => subject?,
    };
    let source = viewer.service.store.connection(&subject.connection);
    let files = file::rows(&viewer, &subject).await;
    let summary = Summary::of_members(&subject.shape, &subject.members, &subject.record.id);
    let page = RecordPage {
        source: source.map_or_else(
            || subject.connection.to_string(),
            |source| label(&source.display_name),
        ),
        stream: subject.shape.label.clone(),
        key: visible(&subject.record.id),
        emitted: Moment::parse(&subject.record.emitted_at),
        body: body(&subject),
        fields: fields(&subject),
        related: related::rows(&viewer, &subject).await?,
        neighbours: related::neighbours(&viewer, &subject).await?,
        browse: viewer
            .seen(stream_address(
                subject.connection.as_str(),
                subject.stream.as_str(),
            ))
            .to_string(),
        delete: if viewer.is_owner() {
            let [connection, stream, key] = path.each_ref().map(String::as_str);
            Address::of_parts("/records", &[connection, stream, key, "delete"]).to_string()
        } else {
            String::new()
        },
        trace: trace::read(&viewer, &subject).await?,
        raw: raw(&subject.record),
        files,
        summary,
        quoted,
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

fn body(subject: &Subject) -> BodyText {
    let field = subject.shape.with_role("body");
    let text = field.and_then(|field| value::text(&subject.members, field.name.as_str()));
    lay_out(&text.unwrap_or_default())
}

/// Every field but those that stand in the heading, the text or the list of files.
fn fields(subject: &Subject) -> Vec<FieldRow> {
    let mut rows = Vec::new();
    for (name, raw) in subject.members.iter() {
        let field = subject.shape.field(name);
        let role = field.and_then(|field| field.role.as_deref());
        let is_title = subject
            .shape
            .title()
            .is_some_and(|title| title.name.as_str() == name);
        let is_text = serde_json::from_str::<String>(raw.get()).is_ok();
        let is_key = value::text(&subject.members, name).as_deref() == Some(&subject.record.id);
        // The key stands at the end of the list.
        if (name == "id" && is_key)
            || name == "blob_ref"
            || (is_text && (is_title || matches!(role, Some("author" | "body"))))
        {
            continue;
        }
        let Some(mut value) = value::shown(raw, field) else {
            continue;
        };
        if field.is_some_and(FieldShape::is_money) {
            value::add_currency(&mut value, &subject.members);
        }
        rows.push(FieldRow {
            title: field.map_or_else(|| label(&title(name)), |field| field.title.clone()),
            about: field.map(|field| field.about.clone()).unwrap_or_default(),
            value,
        });
    }
    rows
}

/// The record as JSON, indented, with every member as written.
fn raw(record: &Record) -> String {
    let pretty = indented(record.data.as_deref().map_or("{}", RawValue::get));
    match pretty.char_indices().nth(RAW_CHARS) {
        None => super::format::readable(&pretty),
        Some((end, _)) => {
            let rest = pretty.get(end..).unwrap_or_default().chars().count();
            let shown = super::format::readable(pretty.get(..end).unwrap_or_default());
            let rest = format_number(u64::try_from(rest).unwrap_or(u64::MAX));
            format!("{shown}\n… and {rest} more characters; `pdpp export` writes them all")
        }
    }
}

/// JSON with a line for each part. What stands between the breaks is left as it is written.
fn indented(json: &str) -> String {
    let mut shown = String::new();
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        shown.extend(std::iter::repeat_n("  ", depth));
    };
    for c in json.chars() {
        if in_text {
            shown.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !shown.ends_with(['{', '[']) {
                    line(&mut shown, depth);
                }
            }
            _ if shown.ends_with(['{', '[']) => line(&mut shown, depth),
            _ => {}
        }
        shown.push(c);
        match c {
            '"' => in_text = true,
            '{' | '[' => depth += 1,
            ',' => line(&mut shown, depth),
            ':' => shown.push(' '),
            _ => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_record_has_its_lines_and_keeps_its_digits() {
        let json = r#"{"b":1.50,"a":[{},{"x":"{[\"\\", "n": 1E400}],"e":[]}"#;
        let shown = r#"{
  "b": 1.50,
  "a": [
    {},
    {
      "x": "{[\"\\",
      "n": 1E400
    }
  ],
  "e": []
}"#;
        assert_eq!(indented(json), shown);
        assert_eq!(indented(shown), shown);
    }
}
