//! `read_record_field`: one bounded window of one field.

use std::fmt::Write as _;

use contract::error::{ErrorCode, ReadError};
use contract::handle::{HandleError, Part, RECORD_URI, RecordHandle, WindowHandle};
use contract::segment;
use contract::upstream::Get;
use contract::window::{MAX_CONTEXT_CHARS, MAX_LIMIT_CHARS, Window, WindowError, WindowSelector};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::{Definition, Running, citation, fetch, not_text};
use crate::answer::{Answered, is_part_of_bytes, shorten};
use crate::args::{Arguments as _, Schema, Whole, arguments};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::reply::{Reply, ToolResult};
use crate::text::window::WindowContent;
use crate::text::{paging, plain, window};
use crate::tool_call::ToolCall;

/// Offsets that JSON numbers carry exactly.
const MAX_OFFSET: u64 = 9_007_199_254_740_991;
/// The hidden address of the same window, for hosts that read resources.
const WINDOW_URI_KEY: &str = "dev.pdpp/field_window_uri";

/// The lines around a window that say what it is, with room to spare.
const FRAME_LINES: usize = 256;

type Offset = Whole<0, MAX_OFFSET>;
type WindowLimit = Whole<1, { MAX_LIMIT_CHARS as u64 }>;
type Context = Whole<0, { MAX_CONTEXT_CHARS as u64 }>;

arguments! {
    struct WindowArgs {
        id: Option<String> = "As printed";
        connection_id: Option<String> = "Where the id has none";
        stream: Option<String> = "With record_id, instead of id";
        record_id: Option<String> = "";
        field_path: String = "A top-level field";
        offset_chars: Option<Offset> = "Where to start; 0 is the beginning";
        limit_chars: Option<WindowLimit> = "Default 4096";
        cursor: Option<String> = "A next_cursor or previous_cursor, instead of offset_chars";
        q: Option<String> = "Start where this text first occurs";
        before_chars: Option<Context> = "Shown before q";
        after_chars: Option<Context> = "Shown after q";
        cite: Option<String> = "A cite to check: current, changed or gone";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "read_record_field",
    title: "Read a field in windows",
    description: include_str!("read_record_field.md"),
    input: WindowArgs::schema,
    output: || {
        let objects = ["record", "field", "window"];
        let objects = objects.map(|name| (name, Schema::new("object")));
        let texts = ["status", "cite", "provider_url"];
        let texts = texts.map(|name| (name, Schema::new("string")));
        objects.into_iter().chain(texts).collect()
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move {
            let mut args = WindowArgs::read(given)?;
            let cite = args.cite.take();
            let asked = FieldRequest::from_args(args)?;
            match cite {
                Some(cite) => citation::check(call, &asked, &cite).await,
                None => read(call, asked).await,
            }
        })
    },
};

#[derive(Debug)]
pub(crate) struct FieldRequest {
    pub(super) handle: RecordHandle,
    pub(super) field: String,
    pub(super) selector: WindowSelector,
}

impl FieldRequest {
    fn from_args(args: WindowArgs) -> Result<Self, Fault> {
        let number = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        let handle = target(&args)?;
        let field = args.field_path;
        if let Err(why) = segment::guard(&field) {
            let shown = plain::quoted(&field, budget::LABEL);
            let message = format!("field_path {why}: {shown}");
            return Err(
                Fault::refused(ErrorCode::InvalidFieldPath, "field_path", message).with_next(
                    "pass the name of a top-level field; fetch shows the fields of a record",
                ),
            );
        }
        let selector = WindowSelector {
            offset_chars: number(args.offset_chars.map(|offset| offset.0)),
            limit_chars: number(args.limit_chars.map(|limit| limit.0)),
            cursor: args.cursor,
            q: args.q,
            before_chars: number(args.before_chars.map(|context| context.0)),
            after_chars: number(args.after_chars.map(|context| context.0)),
        };
        Self {
            handle,
            field,
            selector,
        }
        .checked()
    }

    /// The window a resource address names.
    pub(crate) fn from_handle(handle: &WindowHandle) -> Result<Self, Fault> {
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
    pub(super) fn identity(&self, answered: &Answered) -> Identity {
        Identity::adopting(&self.handle, answered.connection())
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
fn target(args: &WindowArgs) -> Result<RecordHandle, Fault> {
    let (stream, record) = (args.stream.as_deref(), args.record_id.as_deref());
    let connection = args.connection_id.as_deref();
    if let Some(id) = args.id.as_deref() {
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
pub(crate) async fn read(call: Call<'_>, asked: FieldRequest) -> ToolResult {
    match call.get(asked.question()).await {
        Ok(answered) => reply(call, &asked, &answered),
        Err(fault) if fault.code() == "field_not_text" || fault.http_status() == Some(422) => {
            not_text::read(call, &asked, fault).await
        }
        Err(fault) => Err(fault),
    }
}

fn reply(call: Call<'_>, asked: &FieldRequest, answered: &Answered) -> ToolResult {
    let bad = |message: &str| {
        let error = ReadError::new(ErrorCode::RsBadResponse, message)
            .with_hint("call fetch with this id instead; the server's windows cannot be trusted");
        Fault::from(error).with_answer(Some(200), answered.request_id.clone())
    };
    let (path, kind) = answered.window_field();
    if path.is_some_and(|path| path != asked.field) {
        return Err(bad("the resource server answered with another field"));
    }
    fetch::refuse_another(&asked.handle, answered)?;
    let mut received = answered.window(&asked.selector).map_err(|why| {
        let message = format!("the resource server's answer is not a window: {why}");
        bad(&message)
    })?;
    let provider = call.provider_url();
    let source = Source {
        identity: asked.identity(answered),
        provider: provider.as_deref(),
        page: answered.citation_url(),
        request_id: answered.request_id.as_deref(),
        cite: answered.cite(),
    };
    if is_part_of_bytes(&received.window.text) {
        return not_text::bytes(asked, &source, received.window.total_chars);
    }
    let mut warnings: Vec<String> = paging::warnings(&answered.warnings()).into_iter().collect();
    if received.is_recomputed {
        warnings.push("window_recomputed".to_owned());
    }
    let field = FieldContent {
        text_like: true,
        kind: kind.map(|kind| plain::line(kind, budget::LABEL)),
        ..FieldContent::new(&asked.field)
    };
    let reply = window_reply(asked, &source, field, &mut received.window, &warnings)?;
    Ok(reply.with_meta(WINDOW_URI_KEY, asked.uri()))
}

/// Which record a field is of, and where people and programs find it.
pub(super) struct Source<'a> {
    pub(super) identity: Identity,
    pub(super) provider: Option<&'a str>,
    /// The record's page, where the server names one.
    pub(super) page: Option<&'a str>,
    pub(super) request_id: Option<&'a str>,
    /// The citation of the window, where the server gives one.
    pub(super) cite: Option<&'a str>,
}

/// The member `field`: what is known of the field.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize)]
pub(super) struct FieldContent<'a> {
    pub(super) path: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text_like: bool,
    pub(super) encoding: Option<&'static str>,
    pub(super) size_chars: Option<usize>,
    pub(super) blob_id: Option<String>,
    pub(super) media_type: Option<String>,
    pub(super) size_bytes: Option<u64>,
    pub(super) filename: Option<String>,
    pub(super) shown_as: Option<&'static str>,
    pub(super) complete: Option<bool>,
}

impl<'a> FieldContent<'a> {
    pub(super) fn new(path: &'a str) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// The same on a first line, each part with a space before it. Of a text the window says it all.
    pub(super) fn describe(&self) -> String {
        let mut line = String::new();
        if self.text_like {
            return line;
        }
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        for (name, value) in [
            ("type", self.kind.clone()),
            ("encoding", self.encoding.map(str::to_owned)),
            ("blob_id", self.blob_id.clone()),
            ("media_type", self.media_type.clone()),
            ("size_bytes", number(self.size_bytes)),
            (
                "size_chars",
                number(self.size_chars.map(|size| size as u64)),
            ),
            ("filename", self.filename.clone()),
            ("shown_as", self.shown_as.map(str::to_owned)),
        ] {
            if let Some(value) = value {
                for piece in [" ", name, "=", &plain::token(&value)] {
                    line.push_str(piece);
                }
            }
        }
        line
    }
}

#[derive(Debug, Serialize)]
pub(super) struct RecordContent<'a> {
    id: &'a str,
    connection_id: Option<&'a str>,
    stream: Option<&'a str>,
    record_id: Option<&'a str>,
}

impl<'a> RecordContent<'a> {
    pub(super) fn new(identity: &'a Identity) -> Self {
        let handle = identity.handle.as_ref();
        Self {
            id: &identity.id,
            connection_id: identity.connection(),
            stream: handle.map(RecordHandle::stream),
            record_id: handle.map(RecordHandle::record),
        }
    }
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Content<'a> {
    record: RecordContent<'a>,
    field: FieldContent<'a>,
    window: WindowContent<'a>,
    cite: Option<&'a str>,
    next: Option<ToolCall>,
    previous: Option<ToolCall>,
    warnings: Option<String>,
    provider_url: Option<&'a str>,
    #[serialize_always]
    request_id: Option<&'a str>,
}

pub(super) fn window_reply(
    asked: &FieldRequest,
    source: &Source<'_>,
    field: FieldContent<'_>,
    window: &mut Window,
    warnings: &[String],
) -> ToolResult {
    let identity = &source.identity;
    // Where the caller names no size, the window has what fits: characters of some scripts have three bytes.
    if asked.selector.limit_chars.is_none() {
        shorten(
            window,
            budget::WINDOW_STRUCTURED.saturating_sub(4 * identity.id.len()),
        );
    }
    let window = &*window;
    let (next, previous) = window::neighbours(identity, &asked.field, window, asked.stride());
    let mut text = first_line(identity, &asked.field);
    text.push_str(&field.describe());
    text.push(' ');
    text.push_str(&window::range(window));
    if let Some(cite) = source.cite {
        // Writing to a String cannot fail.
        let _ = write!(text, " cite={cite}");
    }
    // The way on stands before the window, where a host that clips still shows it; the way back may be lost.
    if let Some(call) = &next {
        // Writing to a String cannot fail.
        let _ = write!(text, "\nnext: {call}");
    }
    let back = previous.as_ref().map(|call| format!("; previous: {call}"));
    let back = back.unwrap_or_default();
    if identity.id.starts_with(RECORD_URI) {
        // HD-06: a handle that looks like an address says who takes it.
        text.push_str("\nfetch and read_record_field take this pdpp:// id as it is");
    }
    let warnings = (!warnings.is_empty()).then(|| warnings.join(", "));
    if let Some(listed) = &warnings {
        // The calls always stand whole; warnings take the room they leave in the frame.
        let room = budget::WINDOW_FRAME.saturating_sub(text.len() + back.len() + FRAME_LINES);
        text.push_str("\nwarnings: ");
        text.push_str(&plain::cut(listed, room.max(budget::LABEL)));
    }
    window::framed(&mut text, window);
    text.push_str(&back);
    let content = Content {
        record: RecordContent::new(identity),
        field,
        window: WindowContent::new(window),
        cite: source.cite,
        next,
        previous,
        warnings,
        provider_url: source.provider,
        request_id: source.request_id,
    };
    Reply::new(text, &content)
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

#[cfg(test)]
mod tests;
