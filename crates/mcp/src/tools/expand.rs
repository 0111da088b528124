//! Whether relations may be expanded, asked of the schema before a record is.
//!
//! Servers differ in what they do with a relation they do not have: some refuse, some ignore it. A refusal that names
//! the relations there are is worth one call.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde_json::Value;

use crate::budget;
use crate::call::Call;
use crate::evidence::identity::text;
use crate::evidence::plain;
use crate::fault::Fault;

/// Passes relations the stream advertises. Where the schema cannot be had or does not know the stream, the server
/// decides when the record is asked.
pub(super) async fn gate(
    call: Call<'_>,
    stream: &str,
    connection: Option<&str>,
    relations: &[&str],
) -> Result<(), Fault> {
    if relations.is_empty() {
        return Ok(());
    }
    let question = Get::v1(["schema"])
        .with("view", Some("compact"))
        .with("stream", Some(stream))
        .with("connection_id", connection);
    let answered = match call.get(question).await {
        Ok(answered) => answered,
        Err(fault) if fault.code() == ErrorCode::OwnerTokenRefused.as_str() => return Err(fault),
        Err(_) => return Ok(()),
    };
    let rows = rows(&answered.body, stream);
    if rows.is_empty() {
        return Ok(());
    }
    let advertised: Vec<&Value> = rows
        .iter()
        .filter_map(|row| row.get("expand_capabilities")?.as_array())
        .flatten()
        .collect();
    for relation in relations {
        let mut named = advertised
            .iter()
            .filter(|one| name_of(one) == Some(*relation))
            .peekable();
        let is_known = named.peek().is_some();
        if !named.any(|one| is_usable(one)) {
            return Err(refusal(stream, relation, is_known, &advertised));
        }
    }
    Ok(())
}

/// The rows of a stream, in either shape of schema: below connectors, or in one list; wrapped in `data` or not.
fn rows<'a>(body: &'a Value, stream: &str) -> Vec<&'a Value> {
    let mut rows: Vec<&Value> = Vec::new();
    for place in [Some(body), body.get("data")].into_iter().flatten() {
        let list = |value: &'a Value, name: &str| value.get(name).and_then(Value::as_array);
        let connectors = list(place, "connectors").into_iter().flatten();
        let below = connectors
            .filter_map(|connector| list(connector, "streams"))
            .flatten();
        rows.extend(below.chain(list(place, "streams").into_iter().flatten()));
    }
    let is_named = |row: &&Value| {
        ["name", "stream", "stream_name"]
            .iter()
            .find_map(|name| text(row, name))
            == Some(stream)
    };
    rows.retain(is_named);
    rows
}

fn name_of(capability: &Value) -> Option<&str> {
    capability
        .as_str()
        .or_else(|| text(capability, "name"))
        .or_else(|| text(capability, "relation"))
}

fn is_usable(capability: &Value) -> bool {
    ["usable", "granted"]
        .iter()
        .all(|name| capability.get(name) != Some(&Value::Bool(false)))
}

fn refusal(stream: &str, relation: &str, is_known: bool, advertised: &[&Value]) -> Fault {
    let shown = |name: &str| plain::quoted(name, budget::LABEL);
    let why = if is_known {
        "cannot be used with this grant"
    } else {
        "is not advertised"
    };
    let message = format!(
        "the relation {} of the stream {} {why}",
        shown(relation),
        shown(stream)
    );
    let mut usable: Vec<String> = advertised
        .iter()
        .filter(|one| is_usable(one))
        .filter_map(|one| name_of(one).map(shown))
        .collect();
    usable.dedup();
    usable.truncate(12);
    let next = if usable.is_empty() {
        "leave out expand; this stream has no relation to expand".to_owned()
    } else {
        format!("leave it out, or expand one of {}", usable.join(", "))
    };
    Fault::refused(ErrorCode::InvalidExpand, "expand", message).with_next(next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::stub::Stub;

    fn outcome(schema: serde_json::Value) -> (Result<(), String>, Vec<String>) {
        let stub = Stub::default().on("/v1/schema", schema).on(
            "/v1/streams/mail/records/m1",
            json!({"id":"m1","data":{"text":"x"}}),
        );
        let args = json!({"id":"c1/mail:m1","expand":["thread"]});
        let outcome = stub.call("fetch", args);
        let outcome = outcome.map(|_| ()).map_err(|fault| fault.text());
        (outcome, stub.asked())
    }

    #[test]
    fn a_relation_nobody_advertises_is_refused_before_a_record_is_read() {
        // UP-04
        let row = json!({"name":"mail","expand_capabilities":[{"name":"files","usable":true}]});
        for schema in [
            json!({"connectors":[{"streams":[row]}]}),
            json!({"data":{"connectors":[{"streams":[row]}]}}),
            json!({"streams":[row]}),
            json!({"streams":[{"name":"mail"}]}),
        ] {
            let (outcome, asked) = outcome(schema);
            let text = outcome.unwrap_err();
            assert!(text.starts_with("error invalid_expand"), "{text}");
            assert!(text.contains("thread") && text.contains("mail"), "{text}");
            let schema = "/v1/schema?view=compact&stream=mail&connection_id=c1";
            assert_eq!(asked, [schema]);
        }
    }

    #[test]
    fn an_advertised_relation_passes_and_an_unknown_stream_is_left_to_the_server() {
        // UP-04
        let row = |usable| json!({"name":"mail","expand_capabilities":[{"name":"thread","usable":usable}]});
        for schema in [
            json!({"connectors":[{"streams":[row(true)]}]}),
            json!({"streams":[row(false), row(true)]}),
            json!({"streams":[]}),
        ] {
            let (outcome, asked) = outcome(schema);
            assert_eq!(outcome, Ok(()));
            assert_eq!(
                asked[1],
                "/v1/streams/mail/records/m1?connection_id=c1&expand=thread"
            );
        }
        let (refused, _) = outcome(json!({"streams":[row(false)]}));
        assert!(refused.unwrap_err().contains("cannot be used"));
    }
}
