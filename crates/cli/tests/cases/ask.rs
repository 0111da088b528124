//! What is asked beside a step.

use serde_json::Value;

use crate::tool::Reply;

/// What is said beside the step, by the names that REST has for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) args: Vec<(&'static str, Value)>,
    pub(crate) filters: Vec<(&'static str, &'static str, Value)>,
}

pub(crate) fn plain() -> Ask {
    Ask::default()
}

impl Ask {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.args.push((name, value.into()));
        self
    }

    pub(crate) fn connection(self, id: &str) -> Self {
        self.with("connection_id", id)
    }

    pub(crate) fn limit(self, limit: u64) -> Self {
        self.with("limit", limit)
    }

    pub(crate) fn fields(self, fields: &[&str]) -> Self {
        self.with("fields", fields.to_vec())
    }

    pub(crate) fn cursor(self, cursor: &str) -> Self {
        self.with("cursor", cursor)
    }

    pub(crate) fn filter(self, field: &'static str, value: impl Into<Value>) -> Self {
        self.range(field, "", value)
    }

    pub(crate) fn range(
        mut self,
        field: &'static str,
        operator: &'static str,
        value: impl Into<Value>,
    ) -> Self {
        self.filters.push((field, operator, value.into()));
        self
    }
}

/// What asks for the rest of a page that ended by bytes (AN-40): its cursor goes on exactly there.
pub(crate) fn rest_of(ask: &Ask, reply: &Reply, cursor: Option<&str>) -> Option<Ask> {
    let shortened = reply.structured.get("page_shortened")?;
    let number = |name: &str| shortened[name].as_u64().unwrap();
    let mut rest = ask.clone();
    rest.args
        .retain(|(name, _)| !matches!(*name, "limit" | "cursor"));
    let rest = rest.cursor(cursor.unwrap());
    Some(rest.limit(number("asked") - number("shown")))
}
