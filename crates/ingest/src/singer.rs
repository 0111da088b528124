//! Streams of Singer taps: lines of JSON that say what a service holds (SCHEMA), what is in it (RECORD), and where to go on next
//! time (STATE).

use std::collections::HashMap;
use std::io::BufRead;

use contract::declaration::Declaration;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::accept::Acceptor;
use crate::error::{ImportError, InputError};
use crate::importer::{Importer, Item};
use crate::importers::Outline;
use crate::input::Input;
use crate::lines::{Lines, MAX_LINE_BYTES};
use crate::rejection::{Rejection, RejectionCode};
use crate::table::RowKeys;
use store::records::Change;

/// The field that identifies records of a stream without a key.
const ROW_ID: &str = "row_id";

/// A line of a tap. Messages of other types, such as those that replace whole tables, change nothing here.
#[derive(Deserialize)]
struct Message<'m> {
    #[serde(rename = "type")]
    kind: String,
    stream: Option<String>,
    schema: Option<Value>,
    key_properties: Option<Vec<String>>,
    bookmark_properties: Option<Vec<String>>,
    #[serde(borrow)]
    record: Option<&'m RawValue>,
    /// The state.
    #[serde(borrow)]
    value: Option<&'m RawValue>,
}

/// What a tap says about what it reads.
#[derive(Debug, Clone)]
pub struct TapOutput {
    /// The streams, as a declaration has them, by name.
    pub streams: Vec<(String, Value)>,
    /// Where to go on next time, JSON.
    pub state: Option<String>,
}

/// Whether a file begins as the stream of a tap does.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let mut outline = Outline::new(head);
    if !outline.enter(b'{').unwrap_or_default() {
        return false;
    }
    let (mut kind, mut has_more) = (String::new(), false);
    while let Ok(Some(name)) = outline.member() {
        has_more |= matches!(name.as_str(), "stream" | "value");
        let Ok(fits) = outline.take(64) else {
            break;
        };
        if name == "type" && fits {
            kind = String::from_utf8_lossy(outline.taken()).into_owned();
        }
    }
    has_more && matches!(kind.as_str(), "\"SCHEMA\"" | "\"STATE\"")
}

/// Reads everything but the records of a stream.
pub fn scan(input: Input) -> Result<TapOutput, ImportError> {
    let name = input.name().to_owned();
    let mut output = TapOutput {
        streams: Vec::new(),
        state: None,
    };
    let mut lines = Lines::new(input.into_reader(), MAX_LINE_BYTES);
    loop {
        let line = lines
            .read()
            .map_err(|error| InputError::from(error).named(&name))?;
        let Some(line) = line else {
            return Ok(output);
        };
        let message = line.bytes.map(serde_json::from_slice::<Message<'_>>);
        let Some(Ok(message)) = message else {
            continue;
        };
        match (message.kind.as_str(), message.stream) {
            ("SCHEMA", Some(stream)) => {
                let keys = message.key_properties.unwrap_or_default();
                let bookmarks = message.bookmark_properties.unwrap_or_default();
                let schema = message.schema.unwrap_or_default();
                let declared = declare(&stream, schema, &keys, &bookmarks);
                output.streams.retain(|(known, _)| *known != stream);
                output.streams.push((stream, declared));
            }
            ("STATE", _) => {
                output.state = message
                    .value
                    .map(|value| value.get().to_owned())
                    .or(output.state);
            }
            _ => {}
        }
    }
}

/// The declaration of streams under a connector. Its version is told by its content, because each content has its own.
pub fn declaration(key: &str, title: &str, streams: &[(String, Value)]) -> String {
    let streams: Vec<&Value> = streams.iter().map(|(_, stream)| stream).collect();
    let version = crate::readable_key::short_hash(&json!(streams).to_string());
    let declaration = json!({
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": format!("https://pdpp.local/taps/{key}")},
        "declaration_version": version,
        "display": {"name": title},
        "streams": streams,
    });
    format!("{declaration:#}")
}

/// A stream as a declaration has it. What the tap says of keys and order is kept where a declaration can say it.
fn declare(name: &str, mut schema: Value, keys: &[String], bookmarks: &[String]) -> Value {
    if !schema.is_object() {
        schema = json!({});
    }
    let mut properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let can_be_key = |name: &String| {
        let kinds = properties.get(name).map(kinds).unwrap_or_default();
        matches!(kinds.as_slice(), ["string" | "integer"])
    };
    let has_keys = !keys.is_empty() && keys.iter().all(can_be_key);
    let mut required: Vec<Value> = keys.iter().cloned().map(Value::from).collect();
    if !has_keys {
        required = vec![ROW_ID.into()];
        properties.insert(
            ROW_ID.to_owned(),
            json!({"type": "string", "x_table": {"hash_of_row": true}}),
        );
    }
    let ranged = named(&properties, is_ordered);
    let query = query(&properties, &ranged);
    let cursor = bookmarks.iter().find(|name| ranged.contains(name)).cloned();
    let times = named(&properties, is_time);
    let time = cursor
        .clone()
        .filter(|name| times.contains(&name))
        .or_else(|| times.first().map(|name| (*name).clone()));
    let mut stream = json!({
        "name": name,
        "semantics": "mutable_state",
        "primary_key": required,
        "query": query,
    });
    set(
        &mut stream,
        "cursor_field",
        cursor.or_else(|| time.clone()).map(Value::from),
    );
    set(&mut stream, "consent_time_field", time.map(Value::from));
    set(&mut schema, "type", Some("object".into()));
    set(&mut schema, "required", Some(required.into()));
    set(&mut schema, "properties", Some(properties.into()));
    set(&mut schema, "x_table", Some(json!({})));
    set(&mut stream, "schema", Some(schema));
    stream
}

fn query(properties: &Map<String, Value>, ranged: &[&String]) -> Value {
    let searched: Vec<&String> = named(properties, |property| {
        kinds(property) == ["string"] && property.get("format").is_none()
    });
    let operators: Map<String, Value> = ranged
        .iter()
        .map(|name| ((*name).clone(), json!(["gte", "gt", "lte", "lt"])))
        .collect();
    let mut query = json!({"aggregations": {"count": true, "min": ranged, "max": ranged}});
    let operators = (!operators.is_empty()).then(|| operators.into());
    set(&mut query, "range_filters", operators);
    let lexical = (!searched.is_empty()).then(|| json!({"lexical_fields": searched}));
    set(&mut query, "search", lexical);
    query
}

fn set(value: &mut Value, name: &str, member: Option<Value>) {
    if let (Some(member), Some(members)) = (member, value.as_object_mut()) {
        members.insert(name.to_owned(), member);
    }
}

fn named(properties: &Map<String, Value>, wanted: impl Fn(&Value) -> bool) -> Vec<&String> {
    let properties = properties.iter().filter(|(_, property)| wanted(property));
    properties.map(|(name, _)| name).collect()
}

/// The types of a property, without null.
fn kinds(property: &Value) -> Vec<&str> {
    match property.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.filter(|kind| *kind != "null").collect()
        }
        _ => Vec::new(),
    }
}

fn is_time(property: &Value) -> bool {
    let format = property.get("format").and_then(Value::as_str);
    kinds(property) == ["string"] && matches!(format, Some("date" | "date-time"))
}

fn is_ordered(property: &Value) -> bool {
    is_time(property) || matches!(kinds(property).as_slice(), ["integer" | "number"])
}

/// Reads the records of a tap's stream.
pub struct SingerImporter<'a, R> {
    lines: Lines<R>,
    records: TapRecords<'a>,
}

struct TapRecords<'a> {
    acceptor: &'a Acceptor<'a>,
    declaration: &'a Declaration,
    /// By stream: how records without a key get one.
    keys: HashMap<String, Option<RowKeys>>,
}

impl TapRecords<'_> {
    fn accept(&mut self, stream: &str, record: &RawValue) -> Result<Change, Rejection> {
        let declaration = self.declaration;
        let keys = self.keys.entry(stream.to_owned()).or_insert_with(|| {
            let declared = declaration.stream(stream);
            declared.and_then(RowKeys::of_stream)
        });
        let Some(keys) = keys else {
            return self.acceptor.record(stream, &record);
        };
        let keyed = keys.keyed(record.get().as_bytes());
        let keyed = String::from_utf8_lossy(&keyed).into_owned();
        let keyed = RawValue::from_string(keyed).map_err(|error| malformed(&error))?;
        self.acceptor.record(stream, &keyed)
    }
}

impl<'a, R: BufRead> SingerImporter<'a, R> {
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>, declaration: &'a Declaration) -> Self {
        Self {
            lines: Lines::new(reader, MAX_LINE_BYTES),
            records: TapRecords {
                acceptor,
                declaration,
                keys: HashMap::new(),
            },
        }
    }
}

impl<R: BufRead> Importer for SingerImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        while let Some(line) = self.lines.read()? {
            let (number, bytes) = (line.number, line.bytes);
            let Some(bytes) = bytes else {
                let message = format!("the line is longer than {} MiB", MAX_LINE_BYTES >> 20);
                let rejection = Rejection::new(RejectionCode::LineTooLong, message);
                return Ok(Some(Item::new(number, 0, Err(rejection))));
            };
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let message = serde_json::from_slice::<Message<'_>>(bytes);
            let outcome = match message {
                Ok(Message {
                    kind,
                    stream: Some(stream),
                    record: Some(record),
                    ..
                }) if kind == "RECORD" => self.records.accept(&stream, record),
                Ok(Message { kind, .. }) if kind == "BATCH" => Err(Rejection::new(
                    RejectionCode::UnsupportedItem,
                    "the records are in files (BATCH), which are not read; let the tap print them",
                )),
                Ok(_) => continue,
                Err(error) => Err(malformed(&error)),
            };
            return Ok(Some(Item::new(number, bytes.len(), outcome)));
        }
        Ok(None)
    }
}

fn malformed(error: &serde_json::Error) -> Rejection {
    let message = format!("it is no message of a tap: {error}");
    Rejection::new(RejectionCode::MalformedExport, message)
}
