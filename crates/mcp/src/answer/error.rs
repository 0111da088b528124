//! The error object of a refusal, kept as the server sent it and bounded: its code is what an agent and its host know.

use contract::error::{ReadError, error_type_of_status};
use contract::upstream::Answer;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::size;
use crate::budget;
use crate::text::plain;

/// An error on the wire: `type`, `code`, `message` and what else applies.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct ErrorObject(Map<String, Value>);

#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) connection_id: &'a str,
    pub(crate) connector_key: Option<&'a str>,
    pub(crate) display_name: Option<&'a str>,
}

impl ErrorObject {
    pub(crate) fn new(error: &ReadError) -> Self {
        match serde_json::to_value(error) {
            Ok(Value::Object(error)) => Self(error),
            _ => Self::default(),
        }
    }

    /// A server's refusal, in whatever shape it has one.
    pub(crate) fn read(answer: &Answer) -> Self {
        let mut error = members(answer);
        cap_connections(&mut error);
        bound(&mut error);
        if let Some(id) = &answer.request_id {
            error
                .entry("request_id")
                .or_insert_with(|| Value::String(id.clone()));
        }
        Self(error)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Where the owner can allow what was asked for beyond the grant.
    pub(crate) fn broader_grant_url(&self) -> Option<&str> {
        self.0.get("needs_broader_grant")?.get("url")?.as_str()
    }

    /// Names the next call, unless one is named already.
    pub(crate) fn advise(&mut self, next: String) {
        self.0.entry("next").or_insert(Value::String(next));
    }

    pub(crate) fn choices(&self) -> Vec<Choice<'_>> {
        let listed = self
            .0
            .get("available_connections")
            .and_then(Value::as_array);
        let listed = listed.map_or(&[][..], Vec::as_slice);
        listed.iter().filter_map(choice).collect()
    }

    pub(crate) fn choices_omitted(&self) -> Option<u64> {
        self.0.get("available_connections_omitted")?.as_u64()
    }
}

/// The error object in any of the shapes servers send.
fn members(answer: &Answer) -> Map<String, Value> {
    let status = answer.status;
    let generic = |message: String| {
        let code = format!("http_{status}");
        let fields = [
            ("type", "rs_error".to_owned()),
            ("code", code),
            ("message", message),
        ];
        fields
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Value::String(text)))
            .collect::<Map<String, Value>>()
    };
    let text = answer.body.trim();
    let body = match answer.json() {
        Ok(body) => body,
        Err(_) if text.is_empty() => {
            return generic(format!("the resource server answered with status {status}"));
        }
        // A page of HTML is for people with a browser.
        Err(_) if text.starts_with('<') => {
            return generic(format!(
                "the resource server answered with status {status} and a page instead of JSON"
            ));
        }
        Err(_) => return generic(plain::cut(text, budget::PREVIEW).into_owned()),
    };
    match body.get("error") {
        Some(Value::Object(error)) => {
            let mut error = error.clone();
            if !error.get("code").is_some_and(Value::is_string) {
                let code = text_of(&error, "type").unwrap_or_else(|| format!("http_{status}"));
                error.insert("code".to_owned(), Value::String(code));
            }
            if !error.get("type").is_some_and(Value::is_string) {
                error.insert("type".to_owned(), json!(error_type_of_status(status)));
            }
            if !error.get("message").is_some_and(Value::is_string) {
                let message = format!("the resource server answered with status {status}");
                error.insert("message".to_owned(), Value::String(message));
            }
            error
        }
        Some(Value::String(code)) => {
            let description = body.get("error_description").and_then(Value::as_str);
            let mut error = generic(description.unwrap_or(code).to_owned());
            error.insert("type".to_owned(), json!(code));
            error.insert("code".to_owned(), json!(code));
            error
        }
        _ => generic(format!("the resource server answered with status {status}")),
    }
}

/// Keeps the first connections of a long list and says how many there are (AM-05, AM-07).
fn cap_connections(error: &mut Map<String, Value>) {
    // Some servers send an object with guidance here; the member to add is the same.
    if error.get("retry_with").is_some_and(Value::is_object) {
        error.insert("retry_with".to_owned(), json!("connection_id"));
    }
    let Some(Value::Array(listed)) = error.get_mut("available_connections") else {
        return;
    };
    let total = listed.len();
    listed.truncate(budget::LISTED_CONNECTIONS);
    if total > budget::LISTED_CONNECTIONS {
        error.insert("available_connection_count".to_owned(), json!(total));
        error.insert("available_connections_truncated".to_owned(), json!(true));
        let omitted = total - budget::LISTED_CONNECTIONS;
        error.insert("available_connections_omitted".to_owned(), json!(omitted));
    }
}

/// A foreign error object may be of any size; what agents need of it is small.
fn bound(error: &mut Map<String, Value>) {
    const NEEDED: &[&str] = &[
        "type",
        "code",
        "message",
        "param",
        "retry_with",
        "next",
        "request_id",
        "needs_broader_grant",
        "available_connections",
        "available_connection_count",
        "available_connections_truncated",
        "available_connections_omitted",
    ];
    for (_, value) in error.iter_mut() {
        if let Value::String(text) = value
            && text.len() > budget::PREVIEW * 2
        {
            *text = plain::cut(text, budget::PREVIEW * 2).into_owned();
        }
    }
    if size(error) > budget::ERROR_OBJECT {
        error.retain(|name, _| NEEDED.contains(&name.as_str()));
    }
    if size(error) > budget::ERROR_OBJECT
        && let Some(Value::Array(listed)) = error.get_mut("available_connections")
    {
        for one in listed {
            if let Value::Object(one) = one {
                one.retain(|name, value| {
                    matches!(
                        name.as_str(),
                        "grant_id" | "connector_key" | "connection_id"
                    ) && value
                        .as_str()
                        .is_some_and(|text| text.len() <= budget::PREVIEW / 2)
                });
            }
        }
    }
}

fn text_of(error: &Map<String, Value>, name: &str) -> Option<String> {
    error.get(name)?.as_str().map(str::to_owned)
}

fn choice(one: &Value) -> Option<Choice<'_>> {
    let text = |name: &str| one.get(name).and_then(Value::as_str);
    Some(Choice {
        connection_id: text("connection_id")?,
        connector_key: text("connector_key"),
        display_name: text("display_name"),
    })
}
