//! What a tool answered, and what must be true of any answer whatever was asked.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use testkit::fake::TOKEN;

#[derive(Debug)]
pub(crate) struct Answer {
    /// All text parts, joined by newlines.
    pub(crate) text: String,
    /// `structuredContent`.
    pub(crate) structured: Value,
    pub(crate) is_error: bool,
    pub(crate) raw: Value,
}

/// The announced output schemas (UP-10).
static OUTPUT: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let schema = |tool: rmcp::model::Tool| {
        let schema = serde_json::to_value(tool.output_schema.unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        (tool.name.into_owned(), validator)
    };
    mcp::Server::tools().into_iter().map(schema).collect()
});

impl Answer {
    pub(crate) fn read(tool: &str, args: &Value, mut response: Value) -> Answer {
        assert!(response.get("error").is_none(), "{response}");
        let raw = response["result"].take();
        let parts = raw["content"].as_array().unwrap();
        let texts = parts.iter().map(|part| {
            assert_eq!(part["type"], "text", "every part is text: {part}");
            part["text"].as_str().unwrap()
        });
        let answer = Answer {
            text: texts.collect::<Vec<_>>().join("\n"),
            structured: raw["structuredContent"].clone(),
            is_error: raw["isError"] == json!(true),
            raw,
        };
        answer.holds(tool, args);
        answer
    }

    fn holds(&self, tool: &str, args: &Value) {
        let call = format!("{tool} {args}");
        if let Some(schema) = OUTPUT.get(tool) {
            let errors: Vec<String> = schema
                .iter_errors(&self.structured)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{call} breaks its schema: {errors:?}"); // UP-10
        }
        assert!(
            !whole_window_uri(&self.structured) && !self.text.contains("pdpp://field-window/"),
            "{call} shows a window URI" // HD-08, EV-12, FW-06
        );
        let bytes = self.raw.to_string().len();
        assert!(bytes <= 1_048_576, "{call} has {bytes} bytes"); // LG-01
        if self.is_error {
            let code = self.code();
            let is_stable = code
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(is_stable && !code.is_empty(), "{call}: code {code:?}");
            assert!(self.text.contains(code), "{call}: {}", self.text);
            assert!(bytes <= 12_288, "{call}: an error of {bytes} bytes");
            return;
        }
        let text = self.text.len();
        let first = self.text.lines().next().unwrap_or_default().len();
        // What must stand whole (the first handle and the cursor) stands in the first line.
        let list = 1_799.max(first + 400);
        let ceiling = match tool {
            "search" | "query_records" => list,
            "aggregate"
                if args.get("group_by").is_none() && args.get("group_by_time").is_none() =>
            {
                400
            }
            "aggregate" => 4_096,
            // The names of very many streams are longer (BU-05), and full detail has its own bound (BU-06).
            "schema" if !self.names_many() && args["detail"] != "full" => 4_096,
            "read_record_field" => {
                let window = self.structured.pointer("/window/text");
                let id = self.structured["record"]["id"].as_str().map_or(0, str::len);
                // An id stands whole in the first line and in both calls, however long it is.
                let ids = if id > 128 { 3 * id } else { 0 };
                window.and_then(Value::as_str).map_or(0, str::len) + 1_024 + ids
            }
            _ => usize::MAX,
        };
        assert!(
            text <= ceiling,
            "{call}: {text} bytes of text, {ceiling} allowed:\n{}",
            self.text
        );
        self.costs_little(tool, args);
    }

    /// AN-40: structured content stays within its budget, or says that it does not.
    fn costs_little(&self, tool: &str, args: &Value) {
        let budget = match tool {
            "search" | "query_records" if args["limit"].is_null() => 8_192,
            "search" | "query_records" => 24_576,
            "aggregate" => 8_192,
            "schema" if self.names_many() || args["detail"] == "full" => return,
            "schema" if args["stream"].is_null() => 8_192,
            "schema" => 12_288,
            // A window has as many characters as the caller asks for.
            "read_record_field" if args["limit_chars"].is_null() => 8_192,
            _ => return,
        };
        let bytes = self.structured.to_string().len();
        let is_told = self.structured["over_budget"].is_object();
        assert!(
            bytes <= budget || is_told,
            "{tool} {args}: {bytes} bytes of structured content, {budget} allowed"
        );
    }

    fn names_many(&self) -> bool {
        let streams = &self.structured["data"]["stream_count"];
        streams.as_u64().is_some_and(|streams| streams > 100)
    }

    pub(crate) fn code(&self) -> &str {
        self.structured["error"]["code"]
            .as_str()
            .unwrap_or_default()
    }

    pub(crate) fn results(&self) -> &[Value] {
        self.structured["results"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// The arguments printed after a tool's name, wherever it stands: what a reader of text alone would call next.
    pub(crate) fn printed(&self, tool: &str) -> Vec<Value> {
        printed(&self.text, tool)
    }
}

pub(crate) fn printed(text: &str, tool: &str) -> Vec<Value> {
    let opening = format!("{tool} {{");
    let at = text.match_indices(&opening);
    at.filter_map(|(at, _)| {
        let rest = &text[at + tool.len() + 1..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()
    })
    .collect()
}

/// UP-12: the token is nowhere.
pub(crate) fn keeps_the_secret(response: &Value) {
    assert!(!response.to_string().contains(TOKEN), "the token was shown");
}

fn whole_window_uri(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("pdpp://field-window/"),
        Value::Array(many) => many.iter().any(whole_window_uri),
        Value::Object(members) => members.values().any(whole_window_uri),
        _ => false,
    }
}
