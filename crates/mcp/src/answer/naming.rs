//! Who a record is, read from what a server says of it. Ids come from its own identity members and from nothing else.

use contract::handle::{RECORD_URI, RecordHandle};
use serde_json::Value;

use crate::identity::{Addresses, Identity};

/// Where servers put the record key, the canonical place first.
const KEYS: [&str; 5] = ["record_key", "recordKey", "record_id", "recordId", "id"];
/// When something was written, the author's own time first.
const TIMES: [&str; 6] = [
    "sent_at",
    "authored_at",
    "created_at",
    "source_created_at",
    "occurred_at",
    "updated_at",
];
/// The members that say which record it is, where it is from and its state. They survive every projection; the descriptions
/// of the tools name them.
pub(super) const OPERATIONAL: [&str; 12] = [
    "object",
    "id",
    "record_id",
    "record_key",
    "stream",
    "connection_id",
    "connector_key",
    "connector_id",
    "display_name",
    "emitted_at",
    "deleted",
    "deleted_at",
];
pub(super) const TITLES: [&str; 4] = ["title", "name", "subject", "summary"];

/// The identity of a search hit, the `place`th of its page.
pub(super) fn of_hit(hit: &Value, place: usize) -> Identity {
    for name in ["result_id", "resultId"] {
        if let Some(minted) = text(hit, name) {
            return match RecordHandle::parse(minted) {
                Ok(handle) => Identity::new(adopt(handle, hit)),
                Err(_) => Identity::opaque(Some(minted), place),
            };
        }
    }
    let uris = ["record_uri", "recordUri", "id"].into_iter();
    let uri = uris
        .filter_map(|name| text(hit, name))
        .find(|text| text.starts_with(RECORD_URI));
    if let Some(Ok(handle)) = uri.map(RecordHandle::parse) {
        return Identity::new(adopt(handle, hit));
    }
    if let Some(identity) = of_members(hit, None, None) {
        return identity;
    }
    // Beside a stream an id is a key, and this one was none that can be named.
    let id = text(hit, "id").filter(|_| text(hit, "stream").is_none());
    if let Some(Ok(handle)) = id.map(RecordHandle::parse) {
        return Identity::new(adopt(handle, hit));
    }
    let own = ["id", "url"].into_iter().find_map(|name| text(hit, name));
    Identity::opaque(own, place)
}

/// The identity of a record of a page, which may leave out what the question named.
pub(super) fn of_record(
    record: &Value,
    stream: &str,
    connection: Option<&str>,
) -> Option<Identity> {
    of_members(record, Some(stream), connection)
}

fn of_members(value: &Value, stream: Option<&str>, connection: Option<&str>) -> Option<Identity> {
    let stream = text(value, "stream").or(stream)?;
    let connection = connection_of(value).or(connection);
    RecordHandle::new(connection, stream, &key_of(value)?)
        .ok()
        .map(Identity::new)
}

/// The handle with the connection the hit names beside it. The one inside a handle wins: it is what was minted.
fn adopt(handle: RecordHandle, hit: &Value) -> RecordHandle {
    match (handle.connection(), connection_of(hit)) {
        (None, Some(connection)) => handle
            .clone()
            .with_connection(Some(connection))
            .unwrap_or(handle),
        _ => handle,
    }
}

pub(super) fn key_of(value: &Value) -> Option<String> {
    KEYS.iter().find_map(|name| key_text(value.get(*name)?))
}

/// A record key, which some servers send as a number.
fn key_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn connection_of(value: &Value) -> Option<&str> {
    let nested = value
        .get("source")
        .and_then(|source| text(source, "connection_id"));
    text(value, "connection_id")
        .or_else(|| text(value, "connector_instance_id"))
        .or(nested)
}

pub(super) fn connector_of(value: &Value) -> Option<&str> {
    text(value, "connector_key").or_else(|| text(value, "connector_id"))
}

/// Where people can look at it.
pub(super) fn addresses(value: &Value) -> Addresses {
    Addresses {
        citation: text(value, "citation_url").map(str::to_owned),
        own: text(value, "url").map(str::to_owned),
    }
}

/// What an answer about one record says that contradicts the question: `connection`, `stream` or `record`. What it does not
/// say cannot contradict, a key may end a longer id of the server's own, and without an envelope members are anybody's.
pub(super) fn contradiction(answer: &Value, asked: &RecordHandle) -> Option<&'static str> {
    let is_envelope = |value: &&Value| {
        let kind = text(value, "object");
        matches!(kind, Some("record" | "field_window"))
    };
    let places = [Some(answer), answer.get("data")];
    let answer = places.into_iter().flatten().find(is_envelope)?;
    let names = [
        text(answer, "connection_id"),
        text(answer, "connector_instance_id"),
        answer
            .get("source")
            .and_then(|source| text(source, "connection_id")),
    ];
    let mut connections = names.into_iter().flatten().peekable();
    let is_elsewhere = asked
        .connection()
        .is_some_and(|asked| connections.peek().is_some() && !connections.any(|one| one == asked));
    let other_stream = text(answer, "stream").is_some_and(|stream| stream != asked.stream());
    let other_record = key_of(answer).is_some_and(|key| {
        let rest = key.strip_suffix(asked.record());
        !rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(':'))
    });
    match (is_elsewhere, other_stream, other_record) {
        (true, ..) => Some("connection"),
        (_, true, _) => Some("stream"),
        (.., true) => Some("record"),
        _ => None,
    }
}

/// The value at a path of ours, `/window/text`; an empty one is the value itself. Unlike a JSON pointer it needs no
/// unescaping, which costs more than the look.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split('/').skip(1);
    names.try_fold(value, |value, name| value.get(name))
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value
        .get(name)?
        .as_str()
        .filter(|text| !text.trim().is_empty())
}

/// Its own title, as servers and records call it.
pub(super) fn own_title(value: &Value) -> Option<&str> {
    TITLES.iter().find_map(|name| text(value, name))
}

/// What to call it: its own title, else source, stream and time. Never the snippet (SE-15, SE-16).
pub(super) fn title(value: &Value, identity: &Identity) -> String {
    if let Some(title) = own_title(value) {
        return title.to_owned();
    }
    let handle = identity.handle.as_ref();
    let source = text(value, "display_name")
        .or_else(|| connector_of(value))
        .or_else(|| connection_of(value))
        .or_else(|| identity.connection());
    let stream = text(value, "stream").or_else(|| handle.map(RecordHandle::stream));
    let parts: Vec<&str> = [source, stream, time(value)]
        .into_iter()
        .flatten()
        .collect();
    if parts.is_empty() {
        identity.id.clone()
    } else {
        parts.join(" / ")
    }
}

/// When it was written, or failing that, emitted.
pub(super) fn time(value: &Value) -> Option<&str> {
    authored(value).or_else(|| text(value, "emitted_at"))
}

pub(super) fn authored(value: &Value) -> Option<&str> {
    let places = [
        Some(value),
        value.get("data"),
        value.get("record"),
        value.get("metadata"),
        value.get("source"),
    ];
    let at = |name: &&str| places.iter().flatten().find_map(|place| text(place, name));
    TIMES.iter().find_map(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_about_another_record_is_told_from_one_that_says_less() {
        let asked = RecordHandle::parse("c/mail:m1").unwrap();
        for (mut answer, found) in [
            (json!({}), None),
            (
                json!({"id": "m1", "stream": "mail", "connection_id": "c"}),
                None,
            ),
            (
                json!({"id": "mail:m1", "connection_id": "x", "connector_instance_id": "c"}),
                None,
            ),
            (
                json!({"record_id": "m1", "source": {"connection_id": "c"}}),
                None,
            ),
            (
                json!({"id": "m1", "stream": "mail", "connection_id": "d"}),
                Some("connection"),
            ),
            (json!({"id": "m1", "stream": "notes"}), Some("stream")),
            (json!({"id": "xm1", "connection_id": "c"}), Some("record")),
            (json!({"id": "m10"}), Some("record")),
            (json!({"id": 7}), Some("record")),
        ] {
            assert_eq!(
                contradiction(&answer, &asked),
                None,
                "no envelope: {answer}"
            );
            answer["object"] = json!("record");
            assert_eq!(contradiction(&answer, &asked), found, "{answer}");
            let wrapped = json!({"data": answer});
            assert_eq!(contradiction(&wrapped, &asked), found, "{wrapped}");
        }
        let anywhere = RecordHandle::parse("mail:m1").unwrap();
        let answer = json!({"object": "record", "id": "m1", "connection_id": "d"});
        assert_eq!(contradiction(&answer, &anywhere), None);
    }

    #[test]
    fn a_name_that_cannot_be_fetched_is_never_read_as_another_record_s() {
        // ID-16, ID-26
        for hit in [
            json!({"stream":"odd","record_key":".."}),
            json!({"stream":"odd","record_key":"..","id":"result:1"}),
            json!({"stream":"odd","record_key":"a/../b","url":"result:1"}),
            json!({"stream":"odd","id":".."}),
            json!({"title":"keyless"}),
            json!({"url":"urn:isbn:1"}),
            json!({"id":"pdpp://field-window/x"}),
            json!({"result_id":"a/b/c:d"}),
        ] {
            for place in [0, 9] {
                let identity = of_hit(&hit, place);
                assert!(identity.handle.is_none(), "{hit}: {identity:?}");
                let read = RecordHandle::parse(&identity.id);
                assert!(read.is_err(), "{hit}: {read:?}");
            }
        }
    }

    #[test]
    fn an_untitled_hit_is_called_by_source_stream_and_the_author_s_time() {
        // SE-15, SE-16
        for (times, shown) in [
            (json!({"authored_at": "2026-04-01"}), "2026-04-01"),
            (json!({"sent_at": "2026-03-01"}), "2026-03-01"),
            (json!({"data": {"sent_at": "2026-02-01"}}), "2026-02-01"),
            (json!({"data": {"authored_at": "2026-01-01"}}), "2026-01-01"),
            (json!({}), "2026-05-01"),
        ] {
            let mut hit = json!({"stream":"mail","record_key":"m","display_name":"Work","emitted_at":"2026-05-01"});
            hit.as_object_mut()
                .unwrap()
                .extend(times.as_object().unwrap().clone());
            let identity = of_hit(&hit, 0);
            assert_eq!(title(&hit, &identity), format!("Work / mail / {shown}"));
        }
    }
}
