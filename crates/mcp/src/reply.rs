//! What a tool gives back: the same answer in both channels.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::Value;

use crate::fault::Fault;

/// A successful answer: a text that stands alone, and structured content that stands alone.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) structured: Value,
    /// For hosts, never for models.
    pub(crate) meta: Option<MetaObject>,
}

impl Reply {
    pub(crate) fn new(text: String, structured: Value) -> Self {
        Self {
            text,
            structured,
            meta: None,
        }
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structured);
        result.meta = self.meta;
        result
    }
}

/// The answer, or the fault that is told instead.
pub(crate) type Outcome = Result<Reply, Fault>;
