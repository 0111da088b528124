//! A resource server with one record and honest windows, for tests that walk through a text.

use std::sync::Mutex;

use contract::upstream::{Answer, AnswerFuture, Get, Upstream};
use contract::window::{WindowSelector, cut};
use serde_json::{Map, Value, json};

use crate::call::{Call, OwnerSeen};
use crate::reply::ToolResult;
use crate::tools;

/// The record `m1` of the stream `messages` in `cin_slack`.
pub(crate) struct RecordServer {
    data: Map<String, Value>,
    asked: Mutex<Vec<String>>,
    owner: OwnerSeen,
}

impl RecordServer {
    pub(crate) fn new(data: Value) -> Self {
        let Value::Object(data) = data else {
            panic!("a record is an object");
        };
        Self {
            data,
            asked: Mutex::default(),
            owner: OwnerSeen::default(),
        }
    }

    /// The targets asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    pub(crate) fn means(&self) -> Call<'_> {
        Call::new(self, &self.owner)
    }

    /// Calls a tool by name, as a host would.
    pub(crate) fn call(&self, tool: &str, args: &Value) -> ToolResult {
        let args = args.as_object().unwrap().clone();
        run((tools::find(tool).unwrap().run)(self.means(), args))
    }

    /// Makes a call as it is printed: `{"tool":…,"args":…}`.
    pub(crate) fn follow(&self, call: &Value) -> ToolResult {
        self.call(call["tool"].as_str().unwrap(), &call["args"])
    }

    fn answer(&self, question: &Get) -> (u16, Value) {
        let target = question.target();
        let params = question.params();
        let param = |name: &str| {
            let found = params.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let refused =
            |status: u16, code: &str| (status, json!({"error":{"code":code,"message":code}}));
        let path = target.split('?').next().unwrap_or_default();
        if param("connection_id").is_some_and(|connection| connection != "cin_slack") {
            return refused(404, "connection_not_found");
        }
        if path == "/v1/streams/messages/records/m1" {
            let fields: Vec<&String> = params
                .iter()
                .filter(|(name, _)| name == "fields")
                .map(|(_, value)| value)
                .collect();
            let mut data = self.data.clone();
            data.retain(|name, _| fields.is_empty() || fields.contains(&name));
            return (
                200,
                json!({"object":"record","id":"m1","stream":"messages","connection_id":"cin_slack",
                    "connector_key":"slack","display_name":"Acme Slack","data":data}),
            );
        }
        if path != "/v1/streams/messages/records/m1/field-window" {
            return refused(404, "not_found");
        }
        let field = param("field").unwrap_or_default();
        let number = |name: &str| param(name).map(|number| number.parse().unwrap());
        let selector = WindowSelector {
            offset_chars: number("offset_chars"),
            limit_chars: number("limit_chars"),
            cursor: None,
            q: param("q"),
            before_chars: number("before_chars"),
            after_chars: number("after_chars"),
        };
        match self.data.get(&field) {
            None => refused(404, "field_not_found"),
            Some(Value::String(text)) => match cut(text, &selector.request().unwrap()) {
                Ok(window) => (
                    200,
                    json!({"object":"field_window","stream":"messages","record_id":"m1",
                        "field":{"path":field,"type":"string"},"window":window}),
                ),
                Err(_) => refused(404, "query_not_found"),
            },
            Some(_) => refused(422, "field_not_text"),
        }
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

impl Upstream for RecordServer {
    fn provider_url(&self) -> Option<String> {
        Some("https://provider.test".to_owned())
    }

    fn get(&self, question: Get) -> AnswerFuture<'_> {
        self.asked.lock().unwrap().push(question.target());
        let (status, body) = self.answer(&question);
        Box::pin(async move {
            Ok(Answer {
                status,
                request_id: Some("req_1".to_owned()),
                body: body.to_string(),
            })
        })
    }
}
