//! The six tools, as a table. One tool is one file with its arguments and its answer, and one text that describes it.

mod aggregate;
mod citation;
mod document;
mod expand;
mod expanded;
pub(crate) mod fetch;
mod not_text;
mod paged;
mod query_records;
pub(crate) mod read_record_field;
mod schema;
mod search;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use crate::args::Schema;
use crate::call::Call;
use crate::reply::ToolResult;

pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input: fn() -> Schema,
    /// The members of structured content, on success.
    pub(crate) output: fn() -> Vec<(&'static str, Schema)>,
    /// Checks the arguments and answers.
    pub(crate) run: for<'a> fn(Call<'a>, JsonObject) -> Running<'a>,
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

pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    TOOLS.iter().copied().find(|tool| tool.name == name)
}

impl Definition {
    pub(crate) fn tool(&self) -> Tool {
        let annotations = ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false);
        Tool::new(
            self.name,
            self.description.trim_end(),
            Arc::new((self.input)().into_object()),
        )
        .with_title(self.title)
        .with_raw_output_schema(Arc::new(self.output_schema().into_object()))
        .with_annotations(annotations)
    }

    /// A plain object whose members admit the answer and the error alike, so that every result holds against it.
    fn output_schema(&self) -> Schema {
        let mut properties = (self.output)();
        let error = ["code", "message"];
        let members = error.map(|name| (name, Schema::new("string")));
        properties.extend([
            ("error", Schema::of_object(members.into(), error.into())),
            ("http_status", Schema::new("integer")),
            ("request_id", Schema::one_of(&["string", "null"])),
        ]);
        Schema::of_object(properties, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn several_types_at(value: &Value, path: &str, found: &mut Vec<String>) {
        let members: Vec<(String, &Value)> = match value {
            Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), v)).collect(),
            Value::Array(items) => items.iter().map(|item| ("*".to_owned(), item)).collect(),
            _ => return,
        };
        for (name, member) in members {
            if name == "type" && member.is_array() {
                found.push(path.to_owned());
            }
            several_types_at(member, &format!("{path}/{name}"), found);
        }
    }

    #[test]
    fn a_schema_never_names_several_types_at_once() {
        for tool in all() {
            let written = serde_json::to_value(tool.tool()).unwrap();
            let mut found = Vec::new();
            several_types_at(&written, tool.name, &mut found);
            assert_eq!(found, Vec::<String>::new());
        }
    }
}
