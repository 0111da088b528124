//! What `read_record_field` answers for a field that is no text: what it is, how large, and the way on. Never bytes.

use std::fmt::Write as _;

use contract::numeral;
use contract::upstream::Get;
use contract::window::{self as windows, WindowError, WindowSelector};
use serde_json::{Map, Value, json};

use super::fetch;
use super::read_record_field::{Asked, Shown, first_line, record_members};
use crate::args::can_be_listed;
use crate::budget;
use crate::call::Call;
use crate::evidence::identity::{Identity, text};
use crate::evidence::ladder::{self, Content};
use crate::evidence::payload::{Payload, without_bytes};
use crate::evidence::{payload, plain, window};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

/// What the route asks of a caller.
const NEEDS: &str = "with a token for that whole server; one for its /mcp alone is refused there";
/// Members of a blob that say what it is.
const BLOB: [&str; 5] = [
    "blob_id",
    "mime_type",
    "content_type",
    "size_bytes",
    "filename",
];

/// Reads the one field by way of its record, to say what it is. The refusal stands if that fails.
pub(super) async fn read(call: Call<'_>, asked: &Asked, refusal: Fault) -> Outcome {
    let question = question(asked);
    let next = "call fetch with this id and fields naming this field";
    let Ok(answered) = call.get(question).await else {
        return Err(refusal.with_next(next));
    };
    fetch::about(
        &asked.handle,
        &answered.body,
        answered.request_id.as_deref(),
    )?;
    let identity = asked.identity(&answered.body);
    let request_id = answered.request_id;
    let field = asked.field.as_str();
    let page = text(&answered.body, "citation_url").map(str::to_owned);
    let value = Payload::of(answered.body, &[field])
        .and_then(|mut payload| payload.data.shift_remove(field));
    let Some(value) = value else {
        return Err(refusal.with_next(next));
    };
    let is_binary = value.as_str().is_some_and(payload::is_bytes);
    let place = Place {
        asked,
        identity: &identity,
        provider: call.provider_url(),
        page: page.as_deref(),
    };
    let reply = match (Content::of(&value), &value) {
        (_, Value::String(text)) if is_binary => bytes(&place, text.chars().count()),
        (Content::Binary, Value::Object(blob)) => blob_reply(&place, blob),
        _ => json_window(asked, &identity, &value)?,
    };
    Ok(finished(call, reply, request_id.as_deref()))
}

/// Which field of which record, and where people and programs find it.
pub(super) struct Place<'a> {
    pub(super) asked: &'a Asked,
    pub(super) identity: &'a Identity,
    /// Where the server is, if it has an address.
    pub(super) provider: Option<String>,
    /// The record's page, where the server names one.
    pub(super) page: Option<&'a str>,
}

fn question(asked: &Asked) -> Get {
    let handle = &asked.handle;
    Get::v1(["streams", handle.stream(), "records", handle.record()])
        .with("connection_id", handle.connection())
        // A name that would be taken for several is looked for in the whole record.
        .with(
            "fields",
            Some(asked.field.as_str()).filter(|name| can_be_listed(name)),
        )
}

/// Adds what every answer ends with.
pub(super) fn finished(call: Call<'_>, mut reply: Reply, request_id: Option<&str>) -> Reply {
    if let Value::Object(structured) = &mut reply.structured {
        let provider = json!(call.provider_url());
        structured.insert("provider_url".to_owned(), provider);
        structured.insert("request_id".to_owned(), json!(request_id));
    }
    reply
}

/// A JSON value, number, boolean or null: a window of it as compact JSON. A text the server calls none, as it is.
fn json_window(asked: &Asked, identity: &Identity, value: &Value) -> Result<Reply, Fault> {
    let kind = match value {
        value if numeral::digits(value).is_some() => "number",
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    let written = match value {
        Value::String(text) => text.clone(),
        value => numeral::write(&without_bytes(value)),
    };
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
    if !value.is_string() && without_bytes(value) != *value {
        window.complete = false;
        warnings.push("bytes_left_out".to_owned());
    }
    let mut about = Map::new();
    about.insert("path".to_owned(), json!(asked.field));
    about.insert("type".to_owned(), json!(kind));
    about.insert("text_like".to_owned(), json!(false));
    about.insert("size_bytes".to_owned(), json!(written.len()));
    let mut note = format!(" type={kind} size_bytes={}", written.len());
    if !value.is_string() {
        about.insert("shown_as".to_owned(), json!("json"));
        note.push_str(" shown_as=json");
    }
    let shown = Shown {
        identity,
        field: &asked.field,
        note,
        about,
        warnings,
        stride: asked.stride(),
    };
    Ok(shown.reply(&window))
}

/// Bytes kept elsewhere.
fn blob_reply(place: &Place<'_>, blob: &Map<String, Value>) -> Reply {
    let (asked, identity) = (place.asked, place.identity);
    let mut about = Map::new();
    about.insert("path".to_owned(), json!(asked.field));
    about.insert("type".to_owned(), json!("blob"));
    about.insert("text_like".to_owned(), json!(false));
    let mut note = String::from(" type=blob");
    for name in BLOB {
        let Some(value) = blob.get(name).filter(|value| payload::is_scalar(value)) else {
            continue;
        };
        let shown = match value {
            Value::String(text) => plain::token(&plain::cut(text, budget::PREVIEW)).into_owned(),
            other => numeral::write(other),
        };
        let label = if matches!(name, "mime_type" | "content_type") {
            "media_type"
        } else {
            name
        };
        if !about.contains_key(label) {
            // Writing to a String cannot fail.
            let _ = write!(note, " {label}={shown}");
            let kept = value.as_str().map(|text| plain::cut(text, budget::PREVIEW));
            about.insert(
                label.to_owned(),
                kept.map_or(value.clone(), |text| json!(text)),
            );
        }
    }
    let id = blob.get("blob_id").and_then(Value::as_str);
    let export = match id {
        Some(id) if id.len() <= budget::PREVIEW => (
            ladder::export(identity, id),
            format!("pdpp blob {} -o FILE", plain::token(id)),
        ),
        _ => record_export(asked, identity),
    };
    let next = ladder::projected_fetch(identity, &asked.field);
    let mut reply = metadata(place, (note, about), export);
    // The record tells the members of a blob that are not told here.
    reply.text.push('\n');
    reply.text.push_str(&window::call_line("next", &next));
    reply.structured["next"] = next;
    reply
}

/// Bytes written as base64 inside the record. Every tool leaves them out, so that none is a way on.
pub(super) fn bytes(place: &Place<'_>, size: usize) -> Reply {
    let asked = place.asked;
    let mut about = Map::new();
    about.insert("path".to_owned(), json!(asked.field));
    about.insert("type".to_owned(), json!("string"));
    about.insert("text_like".to_owned(), json!(false));
    about.insert("encoding".to_owned(), json!("base64"));
    about.insert("size_chars".to_owned(), json!(size));
    let note = format!(" type=string encoding=base64 size_chars={size}");
    let export = record_export(asked, place.identity);
    metadata(place, (note, about), export)
}

/// The record's own route with this field, and the owner's command.
fn record_export(asked: &Asked, identity: &Identity) -> (String, String) {
    let route = format!("GET {}", question(asked).target());
    let command = format!("pdpp export {}", plain::token(&identity.id));
    (route, command)
}

/// An answer without a window: what there is, and how the owner and programs get it. The token of a tool may be good for
/// the tools alone, so nobody is told to use it elsewhere.
fn metadata(
    place: &Place<'_>,
    (note, mut about): (String, Map<String, Value>),
    (route, command): (String, String),
) -> Reply {
    about.insert("complete".to_owned(), json!(false));
    let mut text = format!(
        "{}{note} complete=false\nbytes are not shown by any tool\nexport: {route}{} for programs, {NEEDS}\nowner: {command}",
        first_line(place.identity, &place.asked.field),
        place
            .provider
            .as_ref()
            .map_or_else(String::new, |url| format!(" at {url}")),
    );
    let mut export = json!({"route": route, "needs": NEEDS, "owner_command": command});
    if let Some(page) = place.page.filter(|page| page.len() <= budget::PREVIEW) {
        // Writing to a String cannot fail.
        let _ = write!(text, ", or the record's page {}", plain::token(page));
        export["page"] = json!(page);
    }
    let structured = json!({
        "record": record_members(place.identity),
        "field": about,
        "export": export
    });
    Reply::new(text, structured)
}
