//! A call that an agent can make exactly as it stands: `{tool, args}` in structured content, `tool {args}` in text.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{Filter, can_be_listed};
use crate::budget;
use crate::identity::Identity;
use crate::text::plain;

/// A tool and its arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolCall {
    tool: &'static str,
    args: Map<String, Value>,
}

impl ToolCall {
    /// A call without arguments yet.
    pub(crate) fn new(tool: &'static str) -> Self {
        Self {
            tool,
            args: Map::new(),
        }
    }

    /// The call that was made, to be repeated with something changed.
    pub(crate) fn repeat(tool: &'static str, args: &impl Serialize) -> Self {
        let args = match serde_json::to_value(args) {
            Ok(Value::Object(args)) => args,
            _ => Map::new(),
        };
        Self { tool, args }
    }

    /// Sets an argument.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        // Texts, numbers and lists of them can always be written.
        if let Ok(value) = serde_json::to_value(value) {
            self.args.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets an argument if there is a value.
    #[must_use]
    pub(crate) fn with_some(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Leaves an argument out.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.args.shift_remove(name);
        self
    }

    /// The call that gets the whole record.
    pub(crate) fn fetch(identity: &Identity) -> Self {
        Self::of_record("fetch", identity)
    }

    /// The call that gets a record with one field only, or where its name cannot be asked for, with all of them.
    pub(crate) fn fetch_field(identity: &Identity, field: &str) -> Self {
        let fields = can_be_listed(field).then_some([field]);
        Self::fetch(identity).with_some("fields", fields)
    }

    /// The call that tells what a field holds.
    pub(crate) fn read_field(identity: &Identity, field: &str) -> Self {
        Self::of_record("read_record_field", identity).with("field_path", field)
    }

    /// The call that reads a text field from some offset.
    pub(crate) fn read_window(identity: &Identity, field: &str, offset: u64, limit: u64) -> Self {
        Self::read_field(identity, field)
            .with("offset_chars", offset)
            .with("limit_chars", limit)
    }

    /// The call that reads a text field from its beginning.
    pub(crate) fn read_from_start(identity: &Identity, field: &str) -> Self {
        Self::read_window(identity, field, 0, budget::WINDOW_CHARS as u64)
    }

    fn of_record(tool: &'static str, identity: &Identity) -> Self {
        Self::new(tool)
            .with("id", &identity.id)
            .with_some("connection_id", identity.separate_connection())
    }

    /// The condition it filters by, as JSON.
    pub(crate) fn filter(&self) -> Option<String> {
        self.args.get("filter").map(one_line)
    }

    /// A call that lists the records of a stream that a filter selects.
    pub(crate) fn list(stream: &str, connection: Option<&str>, filter: &Filter) -> Self {
        Self::new("query_records")
            .with("stream", stream)
            .with_some("connection_id", connection)
            .with("filter", filter)
    }
}

/// `fetch {"id":"c/mail:m1"}`, on one line.
impl fmt::Display for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tool)?;
        f.write_str(" {")?;
        for (place, (name, value)) in self.args.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", plain::exact(name), one_line(value))?;
        }
        f.write_str("}")
    }
}

fn one_line(value: &Value) -> String {
    plain::json(&value.to_string()).into_owned()
}
