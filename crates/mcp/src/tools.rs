//! The six tools, as a table. One tool is one file with its arguments and its answer, and one text that describes it.

mod aggregate;
mod document;
mod expand;
mod expanded;
pub(crate) mod fetch;
mod not_text;
mod query_records;
pub(crate) mod read_record_field;
mod schema;
mod search;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::args::{Arg, Args, input_schema};
use crate::call::Call;
use crate::reply::Outcome;

/// The future of a tool's answer.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One tool.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) args: &'static [Arg],
    /// The members of structured content, on success.
    pub(crate) output: fn() -> Value,
    pub(crate) run: for<'a> fn(Call<'a>, Args) -> Running<'a>,
}

static TOOLS: [&Definition; 6] = [
    &schema::TOOL,
    &search::TOOL,
    &query_records::TOOL,
    &aggregate::TOOL,
    &read_record_field::TOOL,
    &fetch::TOOL,
];

/// Every tool, in the order a model meets them.
pub(crate) fn all() -> &'static [&'static Definition] {
    &TOOLS
}

/// The tool of that name.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    TOOLS.iter().copied().find(|tool| tool.name == name)
}

impl Definition {
    /// The tool as hosts see it.
    pub(crate) fn tool(&self) -> Tool {
        let annotations = ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false);
        Tool::new(
            self.name,
            self.description.trim_end(),
            Arc::new(input_schema(self.args)),
        )
        .with_title(self.title)
        .with_raw_output_schema(Arc::new(self.output_schema()))
        .with_annotations(annotations)
    }

    /// A plain object whose members admit the answer and the error alike, so that every result holds against it.
    fn output_schema(&self) -> JsonObject {
        let mut properties = match (self.output)() {
            Value::Object(properties) => properties,
            _ => Map::new(),
        };
        properties.insert(
            "error".to_owned(),
            json!({
                "type": "object",
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                "required": ["code", "message"]
            }),
        );
        properties.insert("http_status".to_owned(), json!({"type": "integer"}));
        properties
            .entry("request_id")
            .or_insert_with(|| json!({"type": ["string", "null"]}));
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema
    }

    /// Checks the arguments and runs the tool.
    pub(crate) async fn call(&self, call: Call<'_>, given: Map<String, Value>) -> Outcome {
        let args = Args::read(given, self.args)?;
        (self.run)(call, args).await
    }
}
