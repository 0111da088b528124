//! Errors on their way to the client.
//!
//! A problem is attached to an empty response as an extension. The outermost layer, which knows the request id, writes
//! the body, so that all errors have the same form.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::error::{ErrorCode, ReadError, error_type_of_status};
use grants::oauth::OAuthError;
use serde_json::{Map, Value, json};

use crate::console::{self, SeenAs};

/// The `Retry-After` while the index is being built or the storage does not answer, in seconds.
pub(crate) const RETRY_SECONDS: &str = "5";

#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) error: Box<ReadError>,
    /// A status that differs from that of the error code.
    status: Option<StatusCode>,
    format: ErrorFormat,
    extra: Box<Extra>,
}

#[derive(Debug, Clone, Default)]
struct Extra {
    /// Further members of the error.
    more: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The grant through which a page is looked at.
    seen_as: Option<SeenAs>,
    /// Where a page sends the browser first, instead of telling the error.
    redirect: Option<String>,
}

/// Marks an error response that already has a body, such as a form with its mistakes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasOwnBody;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The structured error of the contract.
    Contract,
    /// The error of an OAuth endpoint, under this code.
    OAuth(&'static str),
    Page,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ReadError::new(code, message).into()
    }

    /// An internal error. Its cause is logged and not sent.
    pub(crate) fn internal(what: &'static str, cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(what, cause = %cause, "a request could not be answered");
        ReadError::internal()
            .with_cause(format!("{what}: {cause}"))
            .into()
    }

    /// Nobody is signed in, which a page can change at this address.
    pub(crate) fn redirect(address: String) -> Self {
        let mut problem = Self::new(ErrorCode::AuthenticationError, "sign in first");
        problem.extra.redirect = Some(address);
        problem
    }

    pub(crate) fn redirect_address(&self) -> Option<&str> {
        self.extra.redirect.as_deref()
    }

    /// The same error on the owner's socket: the owner is told the cause.
    pub(crate) fn for_local_caller(mut self, is_owner: bool) -> Self {
        if self.error.code != ErrorCode::InternalError {
            return self;
        }
        let cause = self.error.cause.take();
        if let Some(cause) = cause.filter(|_| is_owner) {
            self.error.message = cause.0;
        }
        let given = ReadError::internal().hint;
        if self.error.hint == given {
            self.error.hint =
                Some("`pdpp doctor` looks for what is wrong, and says what to do".to_owned());
        }
        self
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    pub(crate) fn with_member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.more.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header, unless its value cannot be one.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.extra
            .headers
            .extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// A page that is looked at as a grant sees it stays so when it fails.
    pub(crate) fn seen_as(mut self, seen_as: Option<&SeenAs>) -> Self {
        self.extra.seen_as = seen_as.cloned();
        self
    }

    pub(crate) fn into_page(mut self) -> Self {
        self.format = ErrorFormat::Page;
        self
    }

    /// The same error in the format of OAuth; one that is not OAuth's own gets the code its status suggests.
    pub(crate) fn into_oauth(mut self) -> Self {
        if self.format == ErrorFormat::Contract {
            self.format = ErrorFormat::OAuth(match self.status().as_u16() {
                429 => "slow_down",
                400..500 => "invalid_request",
                503 => "temporarily_unavailable",
                _ => "server_error",
            });
        }
        self
    }

    pub(crate) fn code(&self) -> &'static str {
        match self.format {
            ErrorFormat::OAuth(code) => code,
            ErrorFormat::Contract | ErrorFormat::Page => self.error.code.as_str(),
        }
    }

    pub(crate) fn from_status(status: StatusCode) -> Self {
        let known = match status {
            StatusCode::NOT_FOUND => Some((ErrorCode::NotFound, "there is no such route")),
            StatusCode::METHOD_NOT_ALLOWED => Some((
                ErrorCode::MethodNotAllowed,
                "the route exists, but not for this method",
            )),
            StatusCode::PAYLOAD_TOO_LARGE => Some((
                ErrorCode::ResourceLimit,
                "the request is larger than allowed",
            )),
            StatusCode::URI_TOO_LONG => Some((
                ErrorCode::InvalidRequest,
                "the address of the request is longer than 65,534 bytes",
            )),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Some((
                ErrorCode::InvalidRequest,
                "the request has more than 100 headers, or they are longer than 400,000 bytes",
            )),
            _ if status.is_client_error() => Some((
                ErrorCode::InvalidRequest,
                "the request cannot be understood",
            )),
            _ => None,
        };
        match known {
            Some((code, message)) => Self::new(code, message).with_status(status),
            None => Self::from(ReadError::internal()).with_status(status),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        let code_status = StatusCode::from_u16(self.error.code.http_status());
        self.status
            .or(code_status.ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn to_body(&self, request_id: &str) -> (HeaderValue, Vec<u8>) {
        match self.format {
            ErrorFormat::Contract => (JSON, self.contract_body(request_id)),
            ErrorFormat::OAuth(code) => {
                let body = json!({
                    "error": code,
                    "error_description": self.error.message,
                    "request_id": request_id,
                });
                (JSON, body.to_string().into_bytes())
            }
            ErrorFormat::Page => (
                console::HTML,
                console::failure_page(
                    self.status(),
                    &self.error,
                    self.extra.seen_as.as_ref(),
                    request_id,
                ),
            ),
        }
    }

    fn contract_body(&self, request_id: &str) -> Vec<u8> {
        let mut error = match serde_json::to_value(&*self.error) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        };
        if self.status.is_some() {
            error.insert(
                "type".to_owned(),
                error_type_of_status(self.status().as_u16()).into(),
            );
        }
        error.extend(self.extra.more.clone());
        error.insert("request_id".to_owned(), request_id.into());
        let body: Map<String, Value> = [("error".to_owned(), Value::Object(error))]
            .into_iter()
            .collect();
        Value::Object(body).to_string().into_bytes()
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let passes = matches!(
            error.code,
            ErrorCode::IndexBuilding | ErrorCode::StorageUnavailable
        );
        let problem = Self {
            error: Box::new(error),
            status: None,
            format: ErrorFormat::Contract,
            extra: Box::default(),
        };
        if passes {
            return problem.with_header(header::RETRY_AFTER, RETRY_SECONDS);
        }
        problem
    }
}

impl From<OAuthError> for Problem {
    fn from(error: OAuthError) -> Self {
        let code = match error.status {
            401 => ErrorCode::AuthenticationError,
            429 => ErrorCode::RateLimitExceeded,
            500.. => ErrorCode::InternalError,
            _ => ErrorCode::InvalidRequest,
        };
        let mut problem = Self::new(code, error.description);
        problem.format = ErrorFormat::OAuth(error.error);
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let mut response = self.status().into_response();
        response.headers_mut().extend(self.extra.headers.drain(..));
        response.extensions_mut().insert(self);
        response
    }
}

pub(crate) fn json(status: StatusCode, body: &impl serde::Serialize) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(body)
        .map_err(|error| Problem::internal("the answer cannot be written as JSON", &error))?;
    let mut response = (status, bytes).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}

/// The media type of every answer that is not a blob.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

#[cfg(test)]
mod tests {
    use super::*;

    // TR-32: what cannot be answered while the index is being built says when to ask again.
    #[test]
    fn an_index_that_is_being_built_is_told_with_when_to_ask_again() {
        let problem = Problem::new(ErrorCode::IndexBuilding, "half of it is done");
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], RETRY_SECONDS);
    }
}
