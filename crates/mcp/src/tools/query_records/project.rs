//! Narrowing a record to the fields that were asked for, whatever the server sent.

use serde_json::{Map, Value};

use crate::evidence::identity::connection_of;

/// What stays around a projected payload; the tool's description lists the same names.
pub(super) const OPERATIONAL: [&str; 16] = [
    "object",
    "id",
    "record_id",
    "record_key",
    "stream",
    "connection_id",
    "connector_key",
    "connector_id",
    "display_name",
    "source",
    "emitted_at",
    "deleted",
    "deleted_at",
    "citation_url",
    "record_json_bytes",
    "expanded",
];
/// What stays of a `source`.
const SOURCE: [&str; 4] = ["kind", "id", "display_name", "connection_id"];

pub(super) fn is_operational(name: &str) -> bool {
    OPERATIONAL.contains(&name) || name == "connector_instance_id"
}

/// Keeps the asked fields of the payload, and of the rest what names or tells the state of the record.
pub(super) fn narrow(record: &mut Value, fields: &[&str]) {
    let connection = connection_of(record).map(str::to_owned);
    let Value::Object(members) = record else {
        return;
    };
    let has_envelope = match members.get_mut("data") {
        Some(Value::Object(data)) => {
            data.retain(|name, _| fields.contains(&name.as_str()));
            true
        }
        _ => false,
    };
    members.retain(|name, _| {
        let name = name.as_str();
        OPERATIONAL.contains(&name)
            || if has_envelope {
                name == "data"
            } else {
                fields.contains(&name)
            }
    });
    if let Some(Value::Object(source)) = members.get_mut("source") {
        source.retain(|name, value| SOURCE.contains(&name.as_str()) && !value.is_object());
    }
    keep_connection(members, connection);
}

/// A server that knows the connection by an older name still says which one it is.
fn keep_connection(members: &mut Map<String, Value>, connection: Option<String>) {
    if let Some(connection) = connection {
        members
            .entry("connection_id")
            .or_insert(Value::String(connection));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_asked_fields_and_identity_survive() {
        // FE-10, FE-12
        let mut record = json!({"object":"record","id":"m1","stream":"mail","connection_id":"c1","connector_key":"gmail",
            "metadata":{"mood":"SECRET2"},"secret_top":"SECRET1","source":{"id":"s","secret":"SECRET5"},
            "data":{"id":"m1","subject":"S","body":"SECRET3","title":"SECRET4"},"expanded":{"thread":null}});
        narrow(&mut record, &["subject"]);
        assert_eq!(
            record,
            json!({"object":"record","id":"m1","stream":"mail","connection_id":"c1","connector_key":"gmail",
                "source":{"id":"s"},"data":{"subject":"S"},"expanded":{"thread":null}})
        );
    }

    #[test]
    fn a_flat_record_is_narrowed_too() {
        let mut record =
            json!({"id":"m1","connector_instance_id":"c1","subject":"S","body":"SECRET"});
        narrow(&mut record, &["subject"]);
        assert_eq!(
            record,
            json!({"id":"m1","subject":"S","connection_id":"c1"})
        );
    }

    #[test]
    fn the_description_lists_what_survives() {
        // FE-11
        let description = super::super::TOOL.description;
        let list = description.split("stay:").nth(1).unwrap();
        for name in OPERATIONAL {
            assert!(
                list.split([' ', ',', '.']).any(|word| word == name),
                "{name} is not listed"
            );
        }
    }
}
