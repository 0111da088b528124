//! What a tool gives back: the same answer in both channels.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;

use crate::answer::{Answered, Structured};
use crate::fault::Fault;

/// The members of an object, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members<K, V>(pub(crate) Vec<(K, V)>);

impl<K, V> Default for Members<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K, V> Members<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V>
    where
        K: AsRef<str>,
    {
        let mut members = self.0.iter();
        members.find_map(|(known, value)| (known.as_ref() == name).then_some(value))
    }

    /// Sets a member, in its place where it is there already.
    pub(crate) fn set<'a>(&mut self, name: &'a str, value: V)
    where
        K: AsRef<str> + From<&'a str>,
    {
        match self.0.iter_mut().find(|(known, _)| known.as_ref() == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.into(), value)),
        }
    }
}

impl<K: Serialize, V: Serialize> Serialize for Members<K, V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A successful answer: a text that stands alone, and structured content that stands alone.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) structured: Structured,
    /// For hosts, never for models.
    meta: Option<MetaObject>,
}

impl Reply {
    pub(crate) fn new(text: String, structured: &impl Serialize) -> ToolResult {
        Ok(Self {
            text,
            structured: Structured::new(structured)?,
            meta: None,
        })
    }

    /// The answer of the server, with this beside it.
    pub(crate) fn around(text: String, answered: Answered, beside: &impl Serialize) -> ToolResult {
        Ok(Self {
            text,
            structured: answered.into_structured(beside)?,
            meta: None,
        })
    }

    /// Adds a fact for hosts, if there is one.
    #[must_use]
    pub(crate) fn with_meta(mut self, name: &str, value: Option<String>) -> Self {
        self.meta = value.map(|value| {
            let mut meta = MetaObject::new();
            meta.0.insert(name.to_owned(), value.into());
            meta
        });
        self
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structured.into_json());
        result.meta = self.meta;
        result
    }

    #[cfg(test)]
    pub(crate) fn meta(&self, name: &str) -> Option<&str> {
        self.meta.as_ref()?.0.get(name)?.as_str()
    }
}

pub(crate) type ToolResult = Result<Reply, Fault>;
