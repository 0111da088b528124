//! `read_record_field`: one bounded window of one field.

use contract::error::{ErrorCode, ReadError};
use contract::handle::{HandleError, Part, RECORD_URI, RecordHandle, WindowHandle};
use contract::segment;
use contract::upstream::Get;
use contract::window::{MAX_CONTEXT_CHARS, MAX_LIMIT_CHARS, WindowError, WindowSelector};
use rmcp::model::MetaObject;
use serde_json::{Map, Value, json};

use super::{Definition, Running, fetch, not_text};
use crate::args::{Arg, Args, Kind};
use crate::budget;
use crate::call::{Answered, Call};
use crate::evidence::envelope;
use crate::evidence::identity::{Identity, connection_of, text};
use crate::evidence::{payload, plain, window};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

/// Offsets that JSON numbers carry exactly.
const MAX_OFFSET: u64 = 9_007_199_254_740_991;
/// The hidden address of the same window, for hosts that read resources.
const WINDOW_URI_KEY: &str = "dev.pdpp/field_window_uri";

/// The lines around a window that say what it is, with room to spare.
const FRAME_LINES: usize = 256;

const LIMIT: Kind = Kind::Whole {
    least: 1,
    most: MAX_LIMIT_CHARS as u64,
};
const CONTEXT: Kind = Kind::Whole {
    least: 0,
    most: MAX_CONTEXT_CHARS as u64,
};
const OFFSET: Kind = Kind::Whole {
    least: 0,
    most: MAX_OFFSET,
};

pub(super) static TOOL: Definition = Definition {
    name: "read_record_field",
    title: "Read a field in windows",
    description: include_str!("read_record_field.md"),
    args: &[
        Arg::new("id", Kind::Text, "As printed"),
        Arg::new("connection_id", Kind::Text, "Where the id has none"),
        Arg::new("stream", Kind::Text, "With record_id, instead of id"),
        Arg::new("record_id", Kind::Text, ""),
        Arg::new("field_path", Kind::Text, "A top-level field").required(),
        Arg::new("offset_chars", OFFSET, "Where to start; 0 is the beginning"),
        Arg::new("limit_chars", LIMIT, "Default 4096"),
        Arg::new(
            "cursor",
            Kind::Text,
            "A next_cursor or previous_cursor, instead of offset_chars",
        ),
        Arg::new("q", Kind::Text, "Start where this text first occurs"),
        Arg::new("before_chars", CONTEXT, "Shown before q"),
        Arg::new("after_chars", CONTEXT, "Shown after q"),
    ],
    output: || {
        let object = || json!({"type": "object"});
        json!({
            "record": object(), "field": object(), "window": object(), "provider_url": {"type": "string"}
        })
    },
    run: |call, args| -> Running<'_> {
        Box::pin(async move { read(call, Asked::of_args(&args)?).await })
    },
};

/// The window that is asked for, checked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) handle: RecordHandle,
    pub(super) field: String,
    pub(super) selector: WindowSelector,
}

impl Asked {
    fn of_args(args: &Args) -> Result<Self, Fault> {
        let number = |name: &str| args.whole(name).and_then(|n| usize::try_from(n).ok());
        let owned = |name: &str| args.text(name).map(str::to_owned);
        let selector = WindowSelector {
            offset_chars: number("offset_chars"),
            limit_chars: number("limit_chars"),
            cursor: owned("cursor"),
            q: owned("q"),
            before_chars: number("before_chars"),
            after_chars: number("after_chars"),
        };
        let handle = target(args)?;
        let field = args.text("field_path").unwrap_or_default();
        if let Err(why) = segment::guard(field) {
            let shown = plain::quoted(field, budget::LABEL);
            let message = format!("field_path {why}: {shown}");
            return Err(
                Fault::refused(ErrorCode::InvalidFieldPath, "field_path", message).with_next(
                    "pass the name of a top-level field; fetch shows the fields of a record",
                ),
            );
        }
        Self {
            handle,
            field: field.to_owned(),
            selector,
        }
        .checked()
    }

    /// The window a resource address names.
    pub(crate) fn of_handle(handle: &WindowHandle) -> Result<Self, Fault> {
        Self {
            handle: handle.record().clone(),
            field: handle.field().to_owned(),
            selector: handle.selector().clone(),
        }
        .checked()
    }

    fn checked(self) -> Result<Self, Fault> {
        match self.selector.request() {
            Ok(_) => Ok(self),
            Err(WindowError::Selector { param, message }) => Err(selector_fault(param, message)),
            Err(WindowError::QueryNotFound) => Err(selector_fault("q", "q was not found")),
        }
    }

    fn question(&self) -> Get {
        let path = [
            "streams",
            self.handle.stream(),
            "records",
            self.handle.record(),
            "field-window",
        ];
        let selector = &self.selector;
        let written = |number: Option<usize>| number.map(|number| number.to_string());
        // A server knows no cursor: it is the offset in other clothes.
        let cursor = selector.cursor.as_deref();
        let cursor = cursor.map(|digits| digits.parse::<u64>().unwrap_or(MAX_OFFSET).to_string());
        Get::v1(path)
            .with("connection_id", self.handle.connection())
            .with("field", Some(self.field.as_str()))
            .with("offset_chars", cursor.or(written(selector.offset_chars)))
            .with("limit_chars", written(selector.limit_chars))
            .with("q", selector.q.as_deref())
            .with("before_chars", written(selector.before_chars))
            .with("after_chars", written(selector.after_chars))
    }

    /// The record by the best name there is: with the connection the server names, if it was left open.
    pub(super) fn identity(&self, body: &Value) -> Identity {
        let handle = self.handle.clone();
        let named = connection_of(body).filter(|_| handle.connection().is_none());
        let adopted = handle.clone().with_connection(named);
        Identity::of(adopted.unwrap_or(handle))
    }

    /// How long the windows of the next calls are.
    pub(super) fn stride(&self) -> usize {
        self.selector.limit_chars.unwrap_or(budget::WINDOW_CHARS)
    }

    /// The address of this window, where it can be read back.
    fn uri(&self) -> Option<String> {
        let handle = self.handle.clone();
        if handle.connection().is_some() && !handle.embeds_connection() {
            return None;
        }
        let uri = WindowHandle::new(handle, &self.field, self.selector.clone()).ok()?;
        let uri = uri.to_string();
        WindowHandle::parse(&uri).is_ok().then_some(uri)
    }
}

fn selector_fault(param: &str, message: &str) -> Fault {
    Fault::refused(ErrorCode::InvalidFieldWindowSelector, param, message).with_next(
        "name the record by id or by connection_id, stream and record_id, and the window by offset_chars, by cursor or by q",
    )
}

/// The record: by id, or by its three parts.
fn target(args: &Args) -> Result<RecordHandle, Fault> {
    let (stream, record) = (args.text("stream"), args.text("record_id"));
    let connection = args.text("connection_id");
    if let Some(id) = args.text("id") {
        if stream.is_some() || record.is_some() {
            let message = "id excludes stream and record_id";
            return Err(selector_fault("id", message));
        }
        let handle = RecordHandle::parse(id).and_then(|handle| handle.with_connection(connection));
        return handle.map_err(|error| ReadError::from(error).into());
    }
    let (Some(connection), Some(stream), Some(record)) = (connection, stream, record) else {
        let message = "without id, all of connection_id, stream and record_id are needed";
        return Err(selector_fault("id", message));
    };
    RecordHandle::new(Some(connection), stream, record).map_err(|error| {
        let (code, param) = match &error {
            HandleError::Segment {
                part: Part::Stream, ..
            } => (ErrorCode::InvalidStream, "stream"),
            HandleError::Segment {
                part: Part::Connection,
                ..
            } => (ErrorCode::InvalidConnectionId, "connection_id"),
            _ => (ErrorCode::InvalidId, "record_id"),
        };
        Fault::refused(code, param, error.to_string())
            .with_next("pass the parts exactly as search or query_records gave them")
    })
}

/// Asks for the window, once, and writes it down.
pub(crate) async fn read(call: Call<'_>, asked: Asked) -> Outcome {
    match call.get(asked.question()).await {
        Ok(answered) => written(call, &asked, &answered),
        Err(fault) if fault.code() == "field_not_text" || fault.http_status() == Some(422) => {
            not_text::read(call, &asked, fault).await
        }
        Err(fault) => Err(fault),
    }
}

fn written(call: Call<'_>, asked: &Asked, answered: &Answered) -> Outcome {
    let body = &answered.body;
    let field = body
        .get("field")
        .or_else(|| body.pointer("/data/field"))
        .unwrap_or(&Value::Null);
    let bad = |message: &str| {
        let error = ReadError::new(ErrorCode::RsBadResponse, message)
            .with_hint("call fetch with this id instead; the server's windows cannot be trusted");
        Fault::from(error).with_answer(Some(200), answered.request_id.clone())
    };
    let path = field.as_str().or_else(|| text(field, "path"));
    if path.is_some_and(|path| path != asked.field) {
        return Err(bad("the resource server answered with another field"));
    }
    fetch::about(&asked.handle, body, answered.request_id.as_deref())?;
    let received = window::received(body, &asked.selector).map_err(|why| {
        let message = format!("the resource server's answer is not a window: {why}");
        bad(&message)
    })?;
    let identity = asked.identity(body);
    if payload::is_part_of_bytes(&received.window.text) {
        let size = received.window.total_chars;
        let place = not_text::Place {
            asked,
            identity: &identity,
            provider: call.provider_url(),
            page: text(body, "citation_url"),
        };
        let reply = not_text::bytes(&place, size);
        return Ok(not_text::finished(
            call,
            reply,
            answered.request_id.as_deref(),
        ));
    }
    let mut warnings: Vec<String> = envelope::warnings(body).into_iter().collect();
    if received.is_recomputed {
        warnings.push("window_recomputed".to_owned());
    }
    let shown = Shown {
        identity: &identity,
        field: &asked.field,
        note: String::new(),
        about: field_members(&asked.field, text(field, "type")),
        warnings,
        stride: asked.stride(),
    };
    let mut reply = shown.reply(&received.window);
    reply.meta = asked.uri().map(|uri| {
        let mut meta = MetaObject::new();
        meta.0.insert(WINDOW_URI_KEY.to_owned(), json!(uri));
        meta
    });
    Ok(not_text::finished(
        call,
        reply,
        answered.request_id.as_deref(),
    ))
}

fn field_members(path: &str, kind: Option<&str>) -> Map<String, Value> {
    let mut field = Map::new();
    field.insert("path".to_owned(), json!(path));
    if let Some(kind) = kind {
        let kind = plain::line(kind, budget::LABEL);
        field.insert("type".to_owned(), json!(kind));
    }
    field.insert("text_like".to_owned(), json!(true));
    field
}

/// A window on its way into both channels.
pub(super) struct Shown<'a> {
    pub(super) identity: &'a Identity,
    pub(super) field: &'a str,
    /// What else stands in the first line, with a space before it.
    pub(super) note: String,
    /// The members of `field`.
    pub(super) about: Map<String, Value>,
    pub(super) warnings: Vec<String>,
    pub(super) stride: usize,
}

impl Shown<'_> {
    pub(super) fn reply(self, window: &contract::window::Window) -> Reply {
        let (next, previous) = window::neighbours(self.identity, self.field, window, self.stride);
        let mut text = first_line(self.identity, self.field);
        text.push_str(&self.note);
        text.push(' ');
        text.push_str(&window::range(window));
        let mut structured = Map::new();
        structured.insert("record".to_owned(), record_members(self.identity));
        structured.insert("field".to_owned(), Value::Object(self.about));
        let members = window::members(window);
        structured.insert("window".to_owned(), Value::Object(members));
        // The way on stands before the window, where a host that clips still shows it; the way back may be lost.
        if let Some(call) = next {
            text.push('\n');
            text.push_str(&window::call_line("next", &call));
            structured.insert("next".to_owned(), call);
        }
        let mut back = String::new();
        if let Some(call) = previous {
            back = format!("; {}", window::call_line("previous", &call));
            structured.insert("previous".to_owned(), call);
        }
        if self.identity.id.starts_with(RECORD_URI) {
            // HD-06: a handle that looks like an address says who takes it.
            text.push_str("\nfetch and read_record_field take this pdpp:// id as it is");
        }
        if !self.warnings.is_empty() {
            let listed = self.warnings.join(", ");
            // The calls always stand whole; warnings take the room they leave in the frame.
            let room = budget::WINDOW_FRAME.saturating_sub(text.len() + back.len() + FRAME_LINES);
            text.push_str("\nwarnings: ");
            text.push_str(&plain::cut(&listed, room.max(budget::LABEL)));
            structured.insert("warnings".to_owned(), json!(listed));
        }
        window::framed(&mut text, window);
        text.push_str(&back);
        Reply::new(text, Value::Object(structured))
    }
}

/// `record=cin_a/mail:m1 field=body`
pub(super) fn first_line(identity: &Identity, field: &str) -> String {
    let mut line = format!("record={}", plain::token(&identity.id));
    if let Some(connection) = identity.separate_connection() {
        line.push_str(" connection_id=");
        line.push_str(&plain::token(connection));
    }
    line.push_str(" field=");
    line.push_str(&plain::token(field));
    line
}

/// Which record it is, in structured content.
pub(super) fn record_members(identity: &Identity) -> Value {
    let handle = identity.handle.as_ref();
    json!({
        "id": identity.id,
        "connection_id": handle.and_then(RecordHandle::connection),
        "stream": handle.map(RecordHandle::stream),
        "record_id": handle.map(RecordHandle::record)
    })
}

#[cfg(test)]
mod tests;
