//! A resource server made of canned answers, for the tests of single tools.

use std::sync::Mutex;

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, AnswerFuture, Get, Upstream};
use serde_json::{Map, Value, json};

use crate::call::{Call, OwnerSeen};
use crate::reply::ToolResult;
use crate::tools;

/// In place of the status of an answer that is too large to be taken.
const TOO_LARGE: u16 = 0;

/// Answers each question whose target begins as told, the longest beginning first; 404 otherwise.
#[derive(Default)]
pub(crate) struct Stub {
    answers: Vec<(String, u16, Value)>,
    asked: Mutex<Vec<String>>,
    owner: OwnerSeen,
    /// Whether it ends its pages by bytes, as one in this process does.
    pub(crate) pages_by_bytes: bool,
}

impl Stub {
    pub(crate) fn on(self, beginning: &str, body: Value) -> Self {
        self.refusing(beginning, 200, body)
    }

    pub(crate) fn refusing(mut self, beginning: &str, status: u16, body: Value) -> Self {
        self.answers.push((beginning.to_owned(), status, body));
        self.answers
            .sort_by_key(|(beginning, ..)| std::cmp::Reverse(beginning.len()));
        self
    }

    /// Has more to say than is taken.
    pub(crate) fn overflowing(self, beginning: &str) -> Self {
        self.refusing(beginning, TOO_LARGE, Value::Null)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Calls a tool by name, as a host would.
    pub(crate) fn call(&self, tool: &str, args: impl Into<Value>) -> ToolResult {
        let args: Map<String, Value> = args.into().as_object().unwrap().clone();
        let tool = tools::find(tool).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime
            .unwrap()
            .block_on((tool.run)(Call::new(self, &self.owner), args))
    }
}

/// The arguments printed after a tool's name, wherever it stands in a text: what a reader of text alone would call next.
pub(crate) fn printed_args(text: &str, tool: &str) -> Vec<Value> {
    let opening = format!("{tool} {{");
    text.match_indices(&opening)
        .map(|(at, _)| {
            let rest = &text[at + tool.len() + 1..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            values.next().unwrap().unwrap()
        })
        .collect()
}

impl Upstream for Stub {
    fn provider_url(&self) -> Option<String> {
        Some("https://provider.test".to_owned())
    }

    fn pages_by_bytes(&self) -> bool {
        self.pages_by_bytes
    }

    fn get(&self, question: Get) -> AnswerFuture<'_> {
        let target = question.target();
        let answer = self
            .answers
            .iter()
            .find(|(beginning, ..)| target.starts_with(beginning))
            .map(|(_, status, body)| (*status, body.clone()));
        self.asked.lock().unwrap().push(target);
        let (status, body) = answer.unwrap_or_else(|| {
            (404, json!({"error": {"type": "not_found_error", "code": "not_found", "message": "nothing there"}}))
        });
        Box::pin(async move {
            if status == TOO_LARGE {
                let error = ReadError::new(ErrorCode::RsBadResponse, "its answer is too large");
                return Err(ReadError {
                    is_too_large: true,
                    ..error
                });
            }
            Ok(Answer {
                status,
                request_id: Some("req_1".to_owned()),
                body: body.to_string(),
            })
        })
    }
}
