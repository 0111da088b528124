//! Why a call was not answered: refused by us before asking, refused by the server, or no answer at all.
//!
//! A server's own error object is kept, bounded. What we add is the next step, where the server names none.

use std::fmt::Write as _;

use contract::error::{ErrorCode, ReadError};
use contract::upstream::Answer;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde::Serialize;
use serde_json::json;
use serde_with::skip_serializing_none;

use crate::answer::ErrorObject;
use crate::budget;
use crate::text::plain;

/// The protocol's code of an error that names addresses for a person to open.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// An error as it is told in both channels.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fault {
    error: Box<ErrorObject>,
    http_status: Option<u16>,
    request_id: Option<String>,
    /// The resource that could not be read.
    uri: Option<String>,
    /// Whether the server answered with more than is taken.
    #[serde(skip)]
    is_too_large: bool,
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self {
            error: Box::new(ErrorObject::new(&error)),
            http_status: None,
            request_id: None,
            uri: None,
            is_too_large: error.is_too_large,
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
        self.error.advise(next.into());
        self
    }

    #[must_use]
    pub(crate) fn with_answer(mut self, status: Option<u16>, request_id: Option<String>) -> Self {
        self.http_status = status;
        self.request_id = request_id;
        self
    }

    /// Names the resource that could not be read.
    #[must_use]
    pub(crate) fn about(mut self, uri: &str) -> Self {
        self.uri = Some(uri.to_owned());
        self
    }

    pub(crate) fn served(answer: &Answer) -> Self {
        let error = Box::new(ErrorObject::read(answer));
        let request_id = error.text("request_id").map(str::to_owned);
        let fault = Self {
            error,
            http_status: Some(answer.status),
            request_id,
            uri: None,
            is_too_large: false,
        };
        let step = next_step(fault.code(), fault.param());
        let failed = (answer.status >= 500)
            .then_some("the server failed; repeat the call, later if need be");
        match step.or(failed) {
            Some(next) => fault.with_next(next),
            None => fault,
        }
    }

    pub(crate) fn code(&self) -> &str {
        self.error.text("code").unwrap_or("unknown_error")
    }

    pub(crate) fn error_type(&self) -> Option<&str> {
        self.error.text("type")
    }

    pub(crate) fn param(&self) -> Option<&str> {
        self.error.text("param")
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    pub(crate) fn http_status(&self) -> Option<u16> {
        self.http_status
    }

    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The text form: code, what happened, what to choose from, what to do next.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error {}", plain::token(self.code()));
        // Writing to a String cannot fail.
        if let Some(status) = self.http_status {
            let _ = write!(text, " http_status={status}");
        }
        let message = self.error.text("message").unwrap_or_default();
        let _ = write!(text, ": {}", plain::line(message, budget::ERROR_TEXT / 4));
        for name in ["param", "retry_with"] {
            if let Some(value) = self.error.text(name) {
                let _ = write!(text, "\n{name}={}", plain::token(value));
            }
        }
        for choice in self.error.choices() {
            let _ = write!(
                text,
                "\nconnection_id={}",
                plain::token(choice.connection_id)
            );
            for (name, value) in [
                ("connector_key", choice.connector_key),
                ("display_name", choice.display_name),
            ] {
                if let Some(value) = value {
                    let _ = write!(text, " {name}={}", plain::quoted(value, budget::LABEL));
                }
            }
        }
        if let Some(omitted) = self.error.choices_omitted() {
            let _ = write!(
                text,
                "\nconnections_not_shown={omitted}; call schema to see them all"
            );
        }
        if let Some(id) = &self.request_id {
            let _ = write!(text, "\nrequest_id={}", plain::token(id));
        }
        if let Some(next) = self.error.text("next") {
            let next = plain::line(next, budget::ERROR_TEXT / 4);
            let _ = write!(text, "\nnext: {next}");
        }
        text
    }

    /// The protocol's way to lead a person to the page where the owner decides; the typed refusal goes along.
    pub(crate) fn elicitation(&self) -> Option<ErrorData> {
        let url = self.error.broader_grant_url()?;
        let id = url.rsplit('/').next().unwrap_or(url);
        let message =
            "The owner of the records can allow what this call asks for beyond its grant.";
        let data = json!({
            "elicitations": [{"mode": "url", "elicitationId": id, "url": url, "message": message}],
            "error": &*self.error,
        });
        let code = rmcp::model::ErrorCode(URL_ELICITATION_REQUIRED);
        Some(ErrorData::new(code, self.text(), Some(data)))
    }

    #[cfg(test)]
    pub(crate) fn structured(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap()
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(self.text())]);
        result.structured_content = serde_json::to_value(&self).ok();
        result
    }
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
        "invalid_sort" => {
            "repeat the call without sort and order, or with what schema tells of this stream"
        }
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
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "calls read better")]
    fn next(status: u16, error: Value) -> String {
        let fault = Fault::served(&Answer {
            status,
            request_id: None,
            body: json!({ "error": error }).to_string(),
        });
        fault.error.text("next").unwrap_or_default().to_owned()
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
