//! Conversations of Messenger and Instagram: what is said of one as a whole, beside its messages.

use serde_json::{Map, Value};

use crate::importers::json_members::{list, text};
use crate::importers::json_pieces::JsonPieces;
use crate::lines::MAX_LINE_BYTES;

/// A conversation, of which each message says where it belongs.
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) people: Vec<String>,
}

impl Conversation {
    /// Reads what stands beside the messages. `path` is of the file. Conversations that were encrypted on the way are a file each,
    /// and name their people as texts.
    pub(super) fn read(value: &Value, path: &str) -> Self {
        let people = list(value, "participants").iter();
        let people = people.filter_map(|one| text(one, "name").or_else(|| one.as_str()));
        let people: Vec<String> = people.map(str::to_owned).collect();
        if let Some(thread) = text(value, "threadName") {
            let (name, number) = thread.rsplit_once('_').unwrap_or((thread, ""));
            let is_numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            return Self {
                id: thread.to_owned(),
                title: if is_numbered { name } else { thread }.to_owned(),
                people,
            };
        }
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        let thread = text(value, "thread_path").and_then(|path| path.rsplit('/').next());
        let title = text(value, "title").map(str::to_owned);
        Self {
            id: thread.unwrap_or(folder).to_owned(),
            title: title.unwrap_or_else(|| people.join(", ")),
            people,
        }
    }
}

pub(super) fn millis_of(message: &Value) -> Option<i64> {
    let millis = message
        .get("timestamp_ms")
        .or_else(|| message.get("timestamp"));
    millis.and_then(Value::as_i64)
}

/// What is whole of a conversation whose file broke off: people and messages. How it is called stands at the end, and is missing.
pub(super) fn before_the_end(piece: &[u8]) -> Value {
    let mut pieces = JsonPieces::new(piece, &["participants", "messages"]);
    let mut whole: Map<String, Value> = Map::new();
    while let Ok(Some(true)) = pieces.take(MAX_LINE_BYTES) {
        let (Some(member), Ok(element)) = (pieces.member(), serde_json::from_slice(pieces.taken()))
        else {
            break;
        };
        let list = whole
            .entry(member)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(element);
        }
    }
    Value::Object(whole)
}
