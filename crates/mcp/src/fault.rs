//! Why a call was not answered: refused by us before asking, refused by the server, or no answer at all.
//!
//! A server's own error object is kept, bounded: its code is what an agent and its host know. What we add is the next
//! step, where the server names none.

use std::fmt::Write as _;

use contract::error::{ErrorCode, ReadError, error_type_of_status};
use contract::upstream::{Answer, Body};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::budget;
use crate::evidence::plain;

/// An error as it is told in both channels.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The wire's error object: `type`, `code`, `message` and what else applies.
    error: Map<String, Value>,
    http_status: Option<u16>,
    request_id: Option<String>,
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        let error = match serde_json::to_value(&error) {
            Ok(Value::Object(error)) => error,
            _ => Map::new(),
        };
        Self {
            error,
            http_status: None,
            request_id: None,
        }
    }
}

impl Fault {
    /// A refusal of our own, before anything was asked.
    pub(crate) fn refused(code: ErrorCode, param: &str, message: impl Into<String>) -> Self {
        ReadError::new(code, message).with_param(param).into()
    }

    /// Names the next call, unless one is named already.
    #[must_use]
    pub(crate) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.error
            .entry("next")
            .or_insert_with(|| Value::String(next.into()));
        self
    }

    /// Adds what is known of the answer this came from.
    #[must_use]
    pub(crate) fn with_answer(mut self, status: Option<u16>, request_id: Option<String>) -> Self {
        self.http_status = status;
        self.request_id = request_id;
        self
    }

    /// A server's refusal, in whatever shape it has one.
    pub(crate) fn served(answer: Answer) -> Self {
        let Answer {
            status,
            request_id,
            body,
        } = answer;
        let mut error = error_object(status, body);
        cap_connections(&mut error);
        bound(&mut error);
        let request_id = request_id.or_else(|| text_of(&error, "request_id"));
        if let Some(id) = &request_id {
            error
                .entry("request_id")
                .or_insert_with(|| Value::String(id.clone()));
        }
        let mut fault = Self {
            error,
            http_status: Some(status),
            request_id,
        };
        let step = next_step(fault.code(), fault.text_member("param"));
        let failed =
            (status >= 500).then_some("the server failed; repeat the call, later if need be");
        if let Some(next) = step.or(failed) {
            fault = fault.with_next(next);
        }
        fault
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &str {
        self.text_member("code").unwrap_or("unknown_error")
    }

    /// The status of the answer, or the one our own code stands for.
    pub(crate) fn http_status(&self) -> Option<u16> {
        self.http_status
    }

    fn text_member(&self, name: &str) -> Option<&str> {
        self.error.get(name)?.as_str()
    }

    /// The structured form, which is also the `data` of a JSON-RPC error.
    pub(crate) fn structured(&self) -> Value {
        let mut object = Map::new();
        object.insert("error".to_owned(), Value::Object(self.error.clone()));
        if let Some(status) = self.http_status {
            object.insert("http_status".to_owned(), json!(status));
        }
        if let Some(id) = &self.request_id {
            object.insert("request_id".to_owned(), json!(id));
        }
        Value::Object(object)
    }

    /// The text form: code, what happened, what to choose from, what to do next.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error {}", plain::token(self.code()));
        // Writing to a String cannot fail.
        if let Some(status) = self.http_status {
            let _ = write!(text, " http_status={status}");
        }
        let message = self.text_member("message").unwrap_or_default();
        let _ = write!(text, ": {}", plain::line(message, budget::ERROR_TEXT / 4));
        for name in ["param", "retry_with"] {
            if let Some(value) = self.text_member(name) {
                let _ = write!(text, "\n{name}={}", plain::token(value));
            }
        }
        for connection in self.connections() {
            let _ = write!(text, "\n{connection}");
        }
        if let Some(omitted) = self.error.get("available_connections_omitted") {
            let _ = write!(
                text,
                "\nconnections_not_shown={omitted}; call schema to see them all"
            );
        }
        if let Some(id) = &self.request_id {
            let _ = write!(text, "\nrequest_id={}", plain::token(id));
        }
        if let Some(next) = self.text_member("next") {
            let _ = write!(
                text,
                "\nnext: {}",
                plain::line(next, budget::ERROR_TEXT / 4)
            );
        }
        text
    }

    fn connections(&self) -> Vec<String> {
        let listed = self.error.get("available_connections");
        let listed = listed
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let line = |one: &Value| {
            let id = one.get("connection_id")?.as_str()?;
            let mut line = format!("connection_id={}", plain::token(id));
            for name in ["connector_key", "display_name"] {
                if let Some(value) = one.get(name).and_then(Value::as_str) {
                    let _ = write!(line, " {name}={}", plain::quoted(value, budget::LABEL));
                }
            }
            Some(line)
        };
        listed.iter().filter_map(line).collect()
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.text())]);
        result.structured_content = Some(self.structured());
        result
    }
}

/// The error object in any of the shapes servers send.
fn error_object(status: u16, body: Body) -> Map<String, Value> {
    let generic = |message: String| {
        let code = format!("http_{status}");
        let fields = [
            ("type", "rs_error".to_owned()),
            ("code", code),
            ("message", message),
        ];
        fields
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Value::String(text)))
            .collect::<Map<String, Value>>()
    };
    let body = match body {
        Body::Json(body) => body,
        Body::Other(text) if text.trim().is_empty() => {
            return generic(format!("the resource server answered with status {status}"));
        }
        // A page of HTML is for people with a browser.
        Body::Other(text) if text.trim_start().starts_with('<') => {
            return generic(format!(
                "the resource server answered with status {status} and a page instead of JSON"
            ));
        }
        Body::Other(text) => return generic(plain::cut(&text, budget::PREVIEW).into_owned()),
    };
    match body.get("error") {
        Some(Value::Object(error)) => {
            let mut error = error.clone();
            if !error.get("code").is_some_and(Value::is_string) {
                let code = text_of(&error, "type").unwrap_or_else(|| format!("http_{status}"));
                error.insert("code".to_owned(), Value::String(code));
            }
            if !error.get("type").is_some_and(Value::is_string) {
                error.insert("type".to_owned(), json!(error_type_of_status(status)));
            }
            if !error.get("message").is_some_and(Value::is_string) {
                let message = format!("the resource server answered with status {status}");
                error.insert("message".to_owned(), Value::String(message));
            }
            error
        }
        Some(Value::String(code)) => {
            let description = body.get("error_description").and_then(Value::as_str);
            let mut error = generic(description.unwrap_or(code).to_owned());
            error.insert("type".to_owned(), json!(code));
            error.insert("code".to_owned(), json!(code));
            error
        }
        _ => generic(format!("the resource server answered with status {status}")),
    }
}

/// Keeps the first connections of a long list and says how many there are (AM-05, AM-07).
fn cap_connections(error: &mut Map<String, Value>) {
    // Some servers send an object with guidance here; the member to add is the same.
    if error.get("retry_with").is_some_and(Value::is_object) {
        error.insert("retry_with".to_owned(), json!("connection_id"));
    }
    let Some(Value::Array(listed)) = error.get_mut("available_connections") else {
        return;
    };
    let total = listed.len();
    listed.truncate(budget::LISTED_CONNECTIONS);
    if total > budget::LISTED_CONNECTIONS {
        error.insert("available_connection_count".to_owned(), json!(total));
        error.insert("available_connections_truncated".to_owned(), json!(true));
        let omitted = total - budget::LISTED_CONNECTIONS;
        error.insert("available_connections_omitted".to_owned(), json!(omitted));
    }
}

/// A foreign error object may be of any size; what agents need of it is small.
fn bound(error: &mut Map<String, Value>) {
    const NEEDED: &[&str] = &[
        "type",
        "code",
        "message",
        "param",
        "retry_with",
        "next",
        "request_id",
        "available_connections",
        "available_connection_count",
        "available_connections_truncated",
        "available_connections_omitted",
    ];
    for (_, value) in error.iter_mut() {
        if let Value::String(text) = value
            && text.len() > budget::PREVIEW * 2
        {
            *text = plain::cut(text, budget::PREVIEW * 2).into_owned();
        }
    }
    if size(error) > budget::ERROR_OBJECT {
        error.retain(|name, _| NEEDED.contains(&name.as_str()));
    }
    if size(error) > budget::ERROR_OBJECT
        && let Some(Value::Array(listed)) = error.get_mut("available_connections")
    {
        for one in listed {
            if let Value::Object(one) = one {
                one.retain(|name, value| {
                    matches!(
                        name.as_str(),
                        "grant_id" | "connector_key" | "connection_id"
                    ) && value
                        .as_str()
                        .is_some_and(|text| text.len() <= budget::PREVIEW / 2)
                });
            }
        }
    }
}

fn size(error: &Map<String, Value>) -> usize {
    serde_json::to_string(error).map_or(0, |text| text.len())
}

fn text_of(error: &Map<String, Value>, name: &str) -> Option<String> {
    error.get(name)?.as_str().map(str::to_owned)
}

/// The next step for codes every server shares.
fn next_step(code: &str, param: Option<&str>) -> Option<&'static str> {
    let next = match code {
        "ambiguous_connection" | "ambiguous_schema_detail" => {
            "repeat the same call with connection_id set to one of these"
        }
        "connection_not_found" => "call schema to see the connections of this grant",
        "grant_stream_not_allowed" => "call schema to see the streams of this grant",
        "field_not_granted" | "unknown_field" => {
            "call schema with this stream to see the fields of this grant"
        }
        "invalid_cursor" | "cursor_expired" if param == Some("changes_since") => {
            "repeat the call with changes_since=\"beginning\""
        }
        "invalid_cursor" | "cursor_expired" => "repeat the call without the cursor",
        "query_not_found" => {
            "q does not occur literally; repeat the call without q and with offset_chars=0"
        }
        "field_not_found" => "call fetch with this id to see which fields the record has",
        "not_found" => "check the id; search or query_records prints ids that can be fetched",
        "invalid_token"
        | "authentication_error"
        | "context.active_false"
        | "context.expired"
        | "grant_revoked"
        | "grant_expired" => "ask the person to connect again; nothing can be read until then",
        "rate_limit_exceeded" => "wait a little, then repeat the call",
        "invalid_request" => return Some(correction(param)),
        _ => return None,
    };
    Some(next)
}

/// The next step for an argument that is refused. Only what schema tells about is looked up there.
fn correction(param: Option<&str>) -> &'static str {
    let param = param.unwrap_or_default();
    let name = param.split('[').next().unwrap_or_default();
    match name {
        // Some servers take none of these from a grant.
        "filter" | "expand" | "expand_limit" if name == param => {
            "schema with this stream tells whether and where that argument is taken"
        }
        "filter" | "expand" | "expand_limit" | "field" | "fields" | "view" | "sort"
        | "group_by" | "group_by_time" => "schema with this stream tells what is taken there",
        "" => "correct the arguments and repeat the call",
        _ => "correct that argument and repeat the call",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "calls read better")]
    fn next(status: u16, error: Value) -> String {
        let body = json!({ "error": error });
        let fault = Fault::served(Answer {
            status,
            request_id: None,
            body: Body::Json(body),
        });
        fault.text_member("next").unwrap_or_default().to_owned()
    }

    #[test]
    fn the_next_step_fits_the_argument_that_was_refused() {
        let refused = |param: &str| {
            next(
                400,
                json!({"code": "invalid_request", "message": "no", "param": param}),
            )
        };
        // Schema tells nothing of these; the model was sent there all the same.
        for param in ["streams", "order", "limit", "granularity"] {
            assert!(!refused(param).contains("schema"), "{param}");
        }
        for param in [
            "filter",
            "filter[a]",
            "fields",
            "view",
            "group_by",
            "expand",
        ] {
            assert!(
                refused(param).starts_with("schema with this stream"),
                "{param}"
            );
        }
        let lost = |param: &str| {
            next(
                400,
                json!({"code": "invalid_cursor", "message": "no", "param": param}),
            )
        };
        assert!(lost("changes_since").contains("changes_since=\"beginning\""));
        assert!(lost("cursor").ends_with("without the cursor"));
    }

    #[test]
    fn a_failing_server_is_asked_again_and_its_own_advice_comes_first() {
        assert!(next(503, json!({"message": "busy"})).contains("repeat the call"));
        let advised = json!({"code": "invalid_request", "message": "no", "next": "do this"});
        assert_eq!(next(400, advised), "do this");
    }
}
