//! What a tool gives back: the same answer in both channels.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::Value;

use crate::fault::Fault;

/// A successful answer: a text that stands alone, and structured content that stands alone.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) structured: Value,
    /// For hosts, never for models.
    meta: Option<MetaObject>,
}

impl Reply {
    pub(crate) fn new(text: String, structured: &impl Serialize) -> Self {
        Self {
            text,
            // Everything a tool answers with can be written.
            structured: serde_json::to_value(structured).unwrap_or_default(),
            meta: None,
        }
    }

    /// Adds a fact for hosts, if there is one.
    #[must_use]
    pub(crate) fn with_meta(mut self, name: &str, value: Option<String>) -> Self {
        self.meta = value.map(|value| {
            let mut meta = MetaObject::new();
            meta.0.insert(name.to_owned(), Value::String(value));
            meta
        });
        self
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structured);
        result.meta = self.meta;
        result
    }

    #[cfg(test)]
    pub(crate) fn meta(&self, name: &str) -> Option<&str> {
        self.meta.as_ref()?.0.get(name)?.as_str()
    }
}

/// The answer, or the fault that is told instead.
pub(crate) type ToolResult = Result<Reply, Fault>;
