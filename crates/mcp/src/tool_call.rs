//! A call that an agent can make exactly as it stands: `{tool, args}` in structured content, `tool {args}` in text.

use std::fmt;

use serde::Serialize;

use crate::args::{Arguments, ExpandLimits, Filter, can_be_listed};
use crate::budget;
use crate::identity::Identity;
use crate::reply::Members;
use crate::text::plain;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolCall {
    tool: &'static str,
    args: Members<&'static str, ArgValue>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ArgValue {
    Text(String),
    Number(u64),
    Names(Vec<String>),
    Filter(Filter),
    Limits(ExpandLimits),
}

macro_rules! arg_values {
    ($($from:ty, $given:ident => $value:expr;)*) => {$(
        impl From<$from> for ArgValue {
            fn from($given: $from) -> Self {
                $value
            }
        }
    )*};
}

arg_values! {
    &str, text => Self::Text(text.to_owned());
    &String, text => Self::Text(text.clone());
    String, text => Self::Text(text);
    u64, number => Self::Number(number);
    usize, number => Self::Number(number as u64);
    &[String], names => Self::Names(names.to_vec());
    &[&str], names => Self::Names(names.iter().map(|name| (*name).to_owned()).collect());
    Filter, filter => Self::Filter(filter);
    ExpandLimits, limits => Self::Limits(limits);
}

impl ToolCall {
    pub(crate) fn new(tool: &'static str) -> Self {
        Self {
            tool,
            args: Members::default(),
        }
    }

    /// The call that was made, to be repeated with something changed.
    pub(crate) fn repeat(tool: &'static str, args: &impl Arguments) -> Self {
        Self {
            tool,
            args: Members(args.given()),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<ArgValue>) -> Self {
        self.args.set(name, value.into());
        self
    }

    #[must_use]
    pub(crate) fn with_some(self, name: &'static str, value: Option<impl Into<ArgValue>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.args.0.retain(|(known, _)| *known != name);
        self
    }

    /// The call that gets the whole record.
    pub(crate) fn fetch(identity: &Identity) -> Self {
        Self::of_record("fetch", identity)
    }

    /// The call that gets a record with one field only, or where its name cannot be asked for, with all of them.
    pub(crate) fn fetch_field(identity: &Identity, field: &str) -> Self {
        let fields = [field];
        let fields = can_be_listed(field).then_some(fields.as_slice());
        Self::fetch(identity).with_some("fields", fields)
    }

    pub(crate) fn read_field(identity: &Identity, field: &str) -> Self {
        Self::of_record("read_record_field", identity).with("field_path", field)
    }

    pub(crate) fn read_window(identity: &Identity, field: &str, offset: u64, limit: u64) -> Self {
        Self::read_field(identity, field)
            .with("offset_chars", offset)
            .with("limit_chars", limit)
    }

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

    pub(crate) fn list(stream: &str, connection: Option<&str>, filter: Filter) -> Self {
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
        for (place, (name, value)) in self.args.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", plain::exact(name), one_line(value))?;
        }
        f.write_str("}")
    }
}

fn one_line(value: &ArgValue) -> String {
    // Texts, numbers and lists of them can always be written.
    let written = serde_json::to_string(value).unwrap_or_default();
    plain::json(&written).into_owned()
}
