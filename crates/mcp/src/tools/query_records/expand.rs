//! Whether a stream has relations at all is known from the schema, so that question is asked before records are.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde_json::Value;

use super::Asked;
use crate::budget;
use crate::call::Call;
use crate::evidence::identity::text;
use crate::evidence::plain;
use crate::fault::Fault;

/// Refuses relations of a stream that advertises none. Whatever the schema does not tell is left to the server.
pub(super) async fn check(call: Call<'_>, asked: &Asked<'_>) -> Result<(), Fault> {
    let question = Get::v1(["schema"])
        .with("view", Some("compact"))
        .with("stream", Some(asked.stream))
        .with("connection_id", asked.connection);
    let body = match call.get(question).await {
        Ok(answered) => answered.body,
        Err(fault) if fault.code() == ErrorCode::OwnerTokenRefused.as_str() => return Err(fault),
        Err(_) => return Ok(()),
    };
    let rows = rows_of(&body, asked.stream);
    let has_relations = |row: &&Value| {
        let relations = row.get("expand_capabilities").and_then(Value::as_array);
        relations.is_some_and(|relations| !relations.is_empty())
    };
    if rows.is_empty() || rows.iter().any(has_relations) {
        return Ok(());
    }
    let relations: Vec<String> = asked
        .args
        .texts("expand")
        .iter()
        .map(|relation| plain::quoted(relation, budget::LABEL))
        .collect();
    let stream = plain::quoted(asked.stream, budget::LABEL);
    let message = format!(
        "the stream {stream} has no relations under this grant, so {} cannot be expanded",
        plain::cut(&relations.join(", "), budget::EXCERPT)
    );
    Err(Fault::refused(ErrorCode::InvalidExpand, "expand", message)
        .with_next("repeat the call without expand; schema with this stream lists what it accepts"))
}

/// The rows of that stream, whether streams stand by themselves or below their connectors, wrapped in `data` or not.
fn rows_of<'a>(body: &'a Value, stream: &str) -> Vec<&'a Value> {
    let documents = [Some(body), body.get("data")].into_iter().flatten();
    let mut rows: Vec<&Value> = Vec::new();
    for document in documents {
        let list = |value: &'a Value, name: &str| {
            let entries = value.get(name).and_then(Value::as_array);
            entries.map_or(&[][..], Vec::as_slice)
        };
        rows.extend(list(document, "streams"));
        for connector in list(document, "connectors") {
            rows.extend(list(connector, "streams"));
        }
    }
    rows.retain(|row| text(row, "name").or_else(|| text(row, "stream")) == Some(stream));
    rows
}
