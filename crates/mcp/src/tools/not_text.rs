//! What `read_record_field` answers for a field that is no text: what it is, how large, and the way on. Never bytes.

use std::fmt::Write as _;

use contract::upstream::Get;
use contract::window::{self as windows, WindowError, WindowSelector};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::fetch;
use super::read_record_field::{
    FieldContent, FieldRequest, RecordContent, Source, first_line, window_reply,
};
use crate::answer::{Blob, Content, FieldValue};
use crate::args::can_be_listed;
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::ladder;
use crate::reply::{Reply, ToolResult};
use crate::text::plain;
use crate::tool_call::ToolCall;

/// What the route asks of a caller.
const NEEDS: &str = "with a token for that whole server; one for its /mcp alone is refused there";

/// Reads the one field by way of its record, to say what it is. The refusal stands if that fails.
pub(super) async fn read(call: Call<'_>, asked: &FieldRequest, refusal: Fault) -> ToolResult {
    let next = "call fetch with this id and fields naming this field";
    let Ok(answered) = call.get(question(asked)).await else {
        return Err(refusal.with_next(next));
    };
    fetch::refuse_another(&asked.handle, &answered)?;
    let identity = asked.identity(&answered);
    let request_id = answered.request_id.clone();
    let page = answered.citation_url().map(str::to_owned);
    let payload = answered.into_payload(&[&asked.field]);
    let value = payload
        .as_ref()
        .and_then(|payload| payload.data.get(&asked.field));
    let Some(value) = value else {
        return Err(refusal.with_next(next));
    };
    let provider = call.provider_url();
    let source = Source {
        identity,
        provider: provider.as_deref(),
        page: page.as_deref(),
        request_id: request_id.as_deref(),
        cite: None,
    };
    match (value.content(), value.blob()) {
        (Content::Binary, Some(blob)) => blob_reply(asked, &source, &blob),
        (Content::Binary, None) => bytes(asked, &source, value.chars()),
        _ => json_window(asked, &source, value),
    }
}

fn question(asked: &FieldRequest) -> Get {
    // A name that would be taken for several is looked for in the whole record.
    let field = Some(asked.field.as_str()).filter(|name| can_be_listed(name));
    fetch::record_question(&asked.handle).with("fields", field)
}

/// A JSON value, number, boolean or null: a window of it as compact JSON. A text the server calls none, as it is.
fn json_window(asked: &FieldRequest, source: &Source<'_>, value: FieldValue<'_>) -> ToolResult {
    let written = value.into_text();
    let is_text = value.text().is_some();
    let selector = WindowSelector {
        limit_chars: match (&asked.selector.q, asked.selector.limit_chars) {
            (None, None) => Some(budget::FETCH_JSON_CHARS),
            (_, limit) => limit,
        },
        ..asked.selector.clone()
    };
    let mut window = selector
        .request()
        .and_then(|request| windows::cut(&written, &request))
        .map_err(|error: WindowError| Fault::from(error.for_field(&asked.field)))?;
    // The window is of what is shown; the field is more than that.
    let mut warnings = Vec::new();
    if !is_text && value.holds_bytes() {
        window.complete = false;
        warnings.push("bytes_left_out".to_owned());
    }
    let field = FieldContent {
        kind: Some(value.kind().to_owned()),
        size_bytes: Some(written.len() as u64),
        shown_as: (!is_text).then_some("json"),
        ..FieldContent::new(&asked.field)
    };
    window_reply(asked, source, field, &mut window, &warnings)
}

/// Bytes kept elsewhere.
fn blob_reply(asked: &FieldRequest, source: &Source<'_>, blob: &Blob<'_>) -> ToolResult {
    let identity = &source.identity;
    let bounded =
        |text: Option<&str>| text.map(|text| plain::cut(text, budget::PREVIEW).into_owned());
    let field = FieldContent {
        kind: Some("blob".to_owned()),
        blob_id: bounded(blob.id),
        media_type: bounded(blob.media_type),
        size_bytes: blob.size_bytes,
        filename: bounded(blob.filename),
        ..FieldContent::new(&asked.field)
    };
    let export = match blob.id {
        Some(id) if id.len() <= budget::PREVIEW => Export {
            route: ladder::export(identity, id),
            owner_command: format!("pdpp blob {} -o FILE", plain::token(id)),
            ..Export::default()
        },
        _ => Export::record(asked, identity),
    };
    // The record tells the members of a blob that are not told here.
    let next = ToolCall::fetch_field(identity, &asked.field);
    metadata(asked, source, field, export, Some(next))
}

/// Bytes written as base64 inside the record. Every tool leaves them out, so that none is a way on.
pub(super) fn bytes(asked: &FieldRequest, source: &Source<'_>, size: usize) -> ToolResult {
    let field = FieldContent {
        kind: Some("string".to_owned()),
        encoding: Some("base64"),
        size_chars: Some(size),
        ..FieldContent::new(&asked.field)
    };
    let export = Export::record(asked, &source.identity);
    metadata(asked, source, field, export, None)
}

/// How the owner and programs get the bytes. The token of a tool may be good for the tools alone, so that no model is told to
/// use it elsewhere.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize)]
struct Export {
    route: String,
    needs: &'static str,
    owner_command: String,
    page: Option<String>,
}

impl Export {
    /// The record's own route with this field, and the owner's command.
    fn record(asked: &FieldRequest, identity: &Identity) -> Self {
        Self {
            route: format!("GET {}", question(asked).target()),
            owner_command: format!("pdpp export {}", plain::token(&identity.id)),
            ..Self::default()
        }
    }
}

/// The structured content of a field without a window.
#[skip_serializing_none]
#[derive(Serialize)]
struct MetadataContent<'a> {
    record: RecordContent<'a>,
    field: FieldContent<'a>,
    export: Export,
    next: Option<ToolCall>,
    provider_url: Option<&'a str>,
    #[serialize_always]
    request_id: Option<&'a str>,
}

/// An answer without a window: what there is, and how to get it.
fn metadata(
    asked: &FieldRequest,
    source: &Source<'_>,
    mut field: FieldContent<'_>,
    mut export: Export,
    next: Option<ToolCall>,
) -> ToolResult {
    let mut text = format!(
        "{}{} complete=false\nbytes are not shown by any tool\nexport: {}{} for programs, {NEEDS}\nowner: {}",
        first_line(&source.identity, &asked.field),
        field.describe(),
        export.route,
        source
            .provider
            .map_or_else(String::new, |url| format!(" at {url}")),
        export.owner_command,
    );
    if let Some(page) = source.page.filter(|page| page.len() <= budget::PREVIEW) {
        // Writing to a String cannot fail.
        let _ = write!(text, ", or the record's page {}", plain::token(page));
        export.page = Some(page.to_owned());
    }
    if let Some(next) = &next {
        let _ = write!(text, "\nnext: {next}");
    }
    field.complete = Some(false);
    export.needs = NEEDS;
    let content = MetadataContent {
        record: RecordContent::new(&source.identity),
        field,
        export,
        next,
        provider_url: source.provider,
        request_id: source.request_id,
    };
    Reply::new(text, &content)
}
