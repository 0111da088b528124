//! Windows of one text field, in Unicode scalar values.

use serde_json::{Value, json};

use super::call::Call;
use super::filter::granted;
use super::reply::Failure;
use super::sources::{find, resolve};
use super::state::State;
use super::world::Record;

const DEFAULT_LIMIT: usize = 4_096;
const MAX_LIMIT: usize = 16_384;
const MAX_CONTEXT: usize = 8_192;

#[derive(Debug, Default)]
struct Selector<'a> {
    offset: Option<usize>,
    limit: Option<usize>,
    q: Option<&'a str>,
    before: Option<usize>,
    after: Option<usize>,
}

pub(crate) fn answer(
    state: &State,
    call: &Call,
    stream: &str,
    key: &str,
) -> Result<Value, Failure> {
    call.only(&[
        "connection_id",
        "field",
        "offset_chars",
        "limit_chars",
        "q",
        "before_chars",
        "after_chars",
    ])?;
    let field = call
        .once("field")?
        .filter(|field| !field.is_empty() && !field.contains('\0'))
        .ok_or_else(|| {
            Failure::new(
                400,
                "invalid_field_path",
                "field is required and must be a non-empty string",
            )
            .with("param", "field")
        })?;
    let selector = Selector::read(call)?;
    let source = resolve(state, stream, call.once("connection_id")?)?;
    granted(source.stream, field)?;
    let record = find(state, source, key)?;
    let text = text_of(record, field)?;
    let window = selector.window(text, field)?;
    let clamped = selector.limit.is_some_and(|limit| limit > MAX_LIMIT);
    let warnings = if clamped {
        vec![
            json!({"code": "limit_clamped", "message": "limit_chars was cut to 16384", "param": "limit_chars"}),
        ]
    } else {
        Vec::new()
    };
    Ok(json!({
        "object": "field_window",
        "stream": stream,
        "record_id": key,
        "url": call.path,
        "field": {"path": field, "type": "string"},
        "window": window,
        "links": {"self": call.raw_target},
        "meta": {"count": {"kind": "none"}, "warnings": warnings},
    }))
}

fn text_of<'a>(record: &'a Record, field: &str) -> Result<&'a str, Failure> {
    match record.data.get(field) {
        Some(Value::String(text)) => Ok(text),
        None => {
            let message = format!("the record has no field '{field}'");
            Err(Failure::new(404, "field_not_found", message))
        }
        Some(other) => {
            let kind = kind(other);
            let message = format!("field '{field}' is {kind}, not a readable text field");
            Err(Failure::new(422, "field_not_text", message))
        }
    }
}

impl<'a> Selector<'a> {
    fn read(call: &'a Call) -> Result<Selector<'a>, Failure> {
        let selector = Selector {
            offset: number(call, "offset_chars", 0..=usize::MAX)?,
            limit: number(call, "limit_chars", 1..=usize::MAX)?,
            q: call.once("q")?,
            before: number(call, "before_chars", 0..=MAX_CONTEXT)?,
            after: number(call, "after_chars", 0..=MAX_CONTEXT)?,
        };
        let has_context = selector.before.is_some() || selector.after.is_some();
        match selector.q {
            Some("") => Err(invalid("q", "q must not be empty")),
            Some(_) if selector.offset.is_some() => Err(invalid(
                "offset_chars",
                "q and offset_chars exclude one another",
            )),
            None if has_context => Err(invalid("q", "before_chars and after_chars require q")),
            _ => Ok(selector),
        }
    }

    fn window(&self, text: &str, field: &str) -> Result<Value, Failure> {
        let chars: Vec<char> = text.chars().collect();
        let total = chars.len();
        let (start, wanted, found) = match self.q {
            None => (self.offset.unwrap_or(0).min(total), DEFAULT_LIMIT, None),
            Some(q) => {
                let length = q.chars().count();
                let at = position(&chars, q, 0).ok_or_else(|| {
                    Failure::new(
                        404,
                        "query_not_found",
                        format!("q was not found in field '{field}'"),
                    )
                    .with("param", "q")
                })?;
                let (before, after) = (self.before.unwrap_or(0), self.after.unwrap_or(0));
                let has_context = self.before.is_some() || self.after.is_some();
                let wanted = if has_context {
                    before + length + after
                } else {
                    DEFAULT_LIMIT
                };
                (at.saturating_sub(before), wanted, Some((at, at + length)))
            }
        };
        let limit = self.limit.unwrap_or(wanted).min(MAX_LIMIT);
        let end = start.saturating_add(limit).min(total);
        Ok(json!({
            "text": chars[start..end].iter().collect::<String>(),
            "start_chars": start,
            "end_chars": end,
            "limit_chars": limit,
            "total_chars": total,
            "complete": start == 0 && end == total,
            "has_more": end < total,
            "match_start_chars": found.map(|(at, _)| at),
            "match_end_chars": found.map(|(_, end)| end),
            "next_offset_chars": (end < total).then_some(end),
            "previous_offset_chars": (start > 0).then(|| start.saturating_sub(limit)),
        }))
    }
}

/// The first place at or after `from` where `q` occurs, whatever the case of its letters.
pub(crate) fn position(chars: &[char], q: &str, from: usize) -> Option<usize> {
    let q: Vec<char> = q.chars().map(folded).collect();
    let last = chars.len().checked_sub(q.len())?;
    (from..=last).find(|&at| {
        q.iter()
            .zip(&chars[at..])
            .all(|(wanted, found)| *wanted == folded(*found))
    })
}

/// One character for one character, so that offsets stay.
fn folded(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

fn number(
    call: &Call,
    name: &str,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<Option<usize>, Failure> {
    call.number(name, allowed)
        .map_err(|failure| invalid(name, failure.message))
}

fn invalid(param: &str, message: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_window", message).with("param", param)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
