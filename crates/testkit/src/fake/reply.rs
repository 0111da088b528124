//! What goes back: a status, headers and bytes, or an error in the shape the server speaks.

use serde_json::{Map, Value, json};

use super::state::ErrorShape;

/// An answer of the server, also a broken one.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub(crate) delivery: Delivery,
}

/// How an answer reaches the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    /// The connection breaks after the body was sent in part.
    Broken,
    /// The connection is reset before any answer.
    Reset,
}

impl Reply {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
            delivery: Delivery::Whole,
        }
    }

    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::new(status, "application/json; charset=utf-8", body.to_string())
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn delivered(mut self, delivery: Delivery) -> Reply {
        self.delivery = delivery;
        self
    }
}

#[derive(Debug, Clone)]
pub struct Failure {
    pub status: u16,
    pub code: String,
    pub message: String,
    pub more: Box<Map<String, Value>>,
}

impl Failure {
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            status,
            code: code.to_owned(),
            message: message.into(),
            more: Box::default(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Failure {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Failure {
        Failure::new(400, "invalid_request", message).with("param", param)
    }

    /// The refusal as this server writes it.
    pub fn reply(&self, shape: ErrorShape, request_id: &str) -> Reply {
        match shape {
            ErrorShape::Object => {
                let mut error = Map::clone(&self.more);
                error.insert("type".to_owned(), json!(error_type(self.status)));
                error.insert("code".to_owned(), json!(self.code));
                error.insert("message".to_owned(), json!(self.message));
                if !request_id.is_empty() {
                    error.insert("request_id".to_owned(), json!(request_id));
                }
                Reply::json(self.status, &json!({ "error": error }))
            }
            ErrorShape::OAuth => Reply::json(
                self.status,
                &json!({"error": self.code, "error_description": self.message}),
            ),
            ErrorShape::Plain => Reply::new(
                self.status,
                "text/plain; charset=utf-8",
                self.message.clone(),
            ),
        }
    }
}

fn error_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        410 => "gone_error",
        _ => "api_error",
    }
}
