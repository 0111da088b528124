//! Handles: the names of records and windows that any surface prints and accepts.
//! There is one grammar. `connection/stream:record` says everything; `stream:record` leaves the connection open; what
//! cannot live in either travels inside `pdpp://record/…`. A handle is where to read, never the right to.

use std::{borrow::Cow, fmt, str::FromStr};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::{
    error::{ErrorCode, ReadError},
    segment::{self, SegmentError},
    window::WindowSelector,
};

/// How the URI form of a record handle begins.
pub const RECORD_URI: &str = "pdpp://record/";
pub const WINDOW_URI: &str = "pdpp://field-window/";
/// How the ids of hits begin that name no record.
const POSITION: &str = "result";

/// Longer texts are refused unread.
const MAX_BYTES: usize = 16 * 1024;
const VERSION: u64 = 1;

/// Others pad their base64; we do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The name of a record, or of a window into one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Handle {
    Record(RecordHandle),
    Window(Box<WindowHandle>),
}

/// The name of a record. Its texts are another server's as often as ours, so they are opaque, but safe to send.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordHandle {
    connection: Option<String>,
    stream: String,
    record: String,
}

/// The name of a window into one field of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowHandle {
    record: RecordHandle,
    field: String,
    selector: WindowSelector,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Connection,
    Stream,
    Record,
    Field,
}

/// Why a text is no handle, or not the one that was meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandleError {
    #[error("{} is not a record id: {why}", segment::quoted(.given))]
    Form {
        given: String,
        /// What is missing or too much.
        why: &'static str,
    },
    /// One part cannot stand where it does.
    #[error("the {part} in the record id {why}: {}", segment::quoted(.value))]
    Segment {
        part: Part,
        value: String,
        why: SegmentError,
    },
    /// The connection of a composed id holds a colon, so the id would be read as another record's.
    #[error(
        "the connection id {} holds ':', so this is no record id; a record key with '/' needs its {RECORD_URI} handle",
        segment::quoted(.value)
    )]
    Colon {
        /// What stands where the connection should.
        value: String,
    },
    #[error(
        "the id names the connection {} and connection_id names {}",
        segment::quoted(.embedded),
        segment::quoted(.given)
    )]
    Conflict {
        /// The connection inside the id.
        embedded: String,
        given: String,
    },
}

type Parsed<T> = Result<T, HandleError>;

impl HandleError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } => ErrorCode::ConflictingConnectionId,
            _ => ErrorCode::InvalidId,
        }
    }

    fn form(given: &str, why: &'static str) -> Self {
        Self::Form {
            given: given.to_owned(),
            why,
        }
    }
}

impl From<HandleError> for ReadError {
    fn from(error: HandleError) -> Self {
        let (param, hint) = match error.code() {
            ErrorCode::ConflictingConnectionId => (
                "connection_id",
                "leave out connection_id, or pass the one the id names",
            ),
            _ => (
                "id",
                "pass an id exactly as search or query_records printed it: connection/stream:record",
            ),
        };
        Self::new(error.code(), error.to_string())
            .with_param(param)
            .with_hint(hint)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection id",
            Self::Stream => "stream",
            Self::Record => "record key",
            Self::Field => "field",
        })
    }
}

impl Handle {
    pub fn parse(text: &str) -> Parsed<Self> {
        if text.starts_with(WINDOW_URI) {
            return WindowHandle::parse(text).map(|window| Self::Window(Box::new(window)));
        }
        RecordHandle::parse(text).map(Self::Record)
    }

    pub fn record(&self) -> &RecordHandle {
        match self {
            Self::Record(record) => record,
            Self::Window(window) => &window.record,
        }
    }
}

impl RecordHandle {
    /// Names a record by the ids a server sent.
    ///
    /// The connection may be any text without control characters: one that does not fit the grammar is kept beside the
    /// id, see [`RecordHandle::embeds_connection`]. The stream is one segment. The record key may hold separators.
    pub fn new(connection: Option<&str>, stream: &str, record: &str) -> Parsed<Self> {
        if let Some(connection) = connection {
            check(Part::Connection, connection, segment::printable)?;
        }
        check(Part::Stream, stream, segment::guard)?;
        check(Part::Record, record, segment::guard_parts)?;
        Ok(Self {
            connection: connection.map(str::to_owned),
            stream: stream.to_owned(),
            record: record.to_owned(),
        })
    }

    /// Reads a composed id, a legacy id or a `pdpp://record/` URI.
    pub fn parse(text: &str) -> Parsed<Self> {
        if text.len() > MAX_BYTES {
            return Err(HandleError::form(text, "it is too long"));
        }
        let Some(rest) = text.strip_prefix(RECORD_URI) else {
            return Self::parse_id(text);
        };
        let rest = percent_decoded(rest)
            .ok_or_else(|| HandleError::form(text, "its percent-encoding is broken"))?;
        match Payload::json_in(&rest) {
            Some(json) => Payload::read(&json, text)?.record(text, "record"),
            None => Self::parse_id(&rest),
        }
    }

    /// `connection/stream:record` or `stream:record`, where no segment holds a separator or a dot segment.
    fn parse_id(text: &str) -> Parsed<Self> {
        let (connection, rest) = match text.split_once('/') {
            Some((connection, rest)) => (Some(connection), rest),
            None => (None, text),
        };
        if let Some(connection) = connection {
            check(Part::Connection, connection, segment::guard)?;
            if connection.contains(':') {
                return Err(HandleError::Colon {
                    value: connection.to_owned(),
                });
            }
        }
        if rest.contains('/') {
            return Err(HandleError::form(text, "it has more than one '/'"));
        }
        let (stream, record) = rest.split_once(':').ok_or_else(|| {
            HandleError::form(text, "it has no ':' between stream and record key")
        })?;
        check(Part::Stream, stream, segment::guard)?;
        check(Part::Record, record, segment::guard)?;
        if connection.is_none() && is_position_id(stream, record) {
            let problem = "it tells the place of a hit that names no record";
            return Err(HandleError::form(text, problem));
        }
        Ok(Self {
            connection: connection.map(str::to_owned),
            stream: stream.to_owned(),
            record: record.to_owned(),
        })
    }

    pub fn connection(&self) -> Option<&str> {
        self.connection.as_deref()
    }

    pub fn stream(&self) -> &str {
        &self.stream
    }

    pub fn record(&self) -> &str {
        &self.record
    }

    /// Whether the printed id carries the connection. If not and there is one, it must stand beside the id.
    pub fn embeds_connection(&self) -> bool {
        self.embeddable_connection().is_some()
    }

    /// The handle with the connection a caller gave beside it, which must not contradict the one inside.
    pub fn with_connection(self, given: Option<&str>) -> Parsed<Self> {
        match (&self.connection, given) {
            (_, None) => Ok(self),
            (Some(embedded), Some(given)) if embedded == given => Ok(self),
            (Some(embedded), Some(given)) => Err(HandleError::Conflict {
                embedded: embedded.clone(),
                given: given.to_owned(),
            }),
            (None, Some(given)) => {
                check(Part::Connection, given, segment::printable)?;
                Ok(Self {
                    connection: Some(given.to_owned()),
                    ..self
                })
            }
        }
    }

    /// The URI form, which carries any record key.
    pub fn to_uri(&self) -> String {
        format!("{RECORD_URI}{}", Payload::new(self, "record").encode())
    }

    fn embeddable_connection(&self) -> Option<&str> {
        self.connection()
            .filter(|connection| !connection.contains(':') && segment::guard(connection).is_ok())
    }
}

/// The id of a hit that names no record.
pub fn position_id(position: usize) -> String {
    format!("{POSITION}:{position}")
}

/// Whether an id without a connection would be a [`position_id`]. Such an id names no record, so it is never resolved to
/// one.
fn is_position_id(stream: &str, record: &str) -> bool {
    stream == POSITION && record.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for RecordHandle {
    /// The shortest form that reads back as this record: the composed or legacy id, else the URI.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stream.contains(':') || segment::guard(&self.record).is_err() {
            return f.write_str(&self.to_uri());
        }
        match self.embeddable_connection() {
            Some(connection) => write!(f, "{connection}/")?,
            None if is_position_id(&self.stream, &self.record) => {
                return f.write_str(&self.to_uri());
            }
            None => {}
        }
        write!(f, "{}:{}", self.stream, self.record)
    }
}

impl WindowHandle {
    /// Names a window into a field of a record.
    pub fn new(record: RecordHandle, field: &str, selector: WindowSelector) -> Parsed<Self> {
        check(Part::Field, field, segment::guard_parts)?;
        Ok(Self {
            record,
            field: field.to_owned(),
            selector,
        })
    }

    /// Reads a `pdpp://field-window/` URI.
    pub fn parse(text: &str) -> Parsed<Self> {
        let broken = || HandleError::form(text, "it is no window handle");
        if text.len() > MAX_BYTES {
            return Err(HandleError::form(text, "it is too long"));
        }
        let rest = text
            .strip_prefix(WINDOW_URI)
            .and_then(percent_decoded)
            .ok_or_else(broken)?;
        let json = Payload::json_in(&rest).ok_or_else(broken)?;
        let payload = Payload::read(&json, text)?;
        let field = payload.field_path.clone().ok_or_else(broken)?;
        let selector = payload.selector.clone();
        Self::new(payload.record(text, "field-window")?, &field, selector)
    }

    pub fn record(&self) -> &RecordHandle {
        &self.record
    }

    pub fn field(&self) -> &str {
        &self.field
    }

    pub fn selector(&self) -> &WindowSelector {
        &self.selector
    }
}

impl fmt::Display for WindowHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut payload = Payload::new(&self.record, "field-window");
        payload.field_path = Some(self.field.clone());
        payload.selector = self.selector.clone();
        write!(f, "{WINDOW_URI}{}", payload.encode())
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(record) => record.fmt(f),
            Self::Window(window) => window.fmt(f),
        }
    }
}

impl FromStr for Handle {
    type Err = HandleError;
    fn from_str(text: &str) -> Parsed<Self> {
        Self::parse(text)
    }
}

impl FromStr for RecordHandle {
    type Err = HandleError;
    fn from_str(text: &str) -> Parsed<Self> {
        Self::parse(text)
    }
}

/// What a URI handle carries as base64url JSON.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct Payload {
    v: u64,
    kind: String,
    connection_id: Option<String>,
    stream: String,
    record_id: String,
    field_path: Option<String>,
    #[serde(flatten)]
    selector: WindowSelector,
}

impl Payload {
    /// A connection that is no segment stays outside, as it does in the printed id.
    fn new(handle: &RecordHandle, kind: &str) -> Self {
        Self {
            v: VERSION,
            kind: kind.to_owned(),
            connection_id: handle.embeddable_connection().map(str::to_owned),
            stream: handle.stream.clone(),
            record_id: handle.record.clone(),
            field_path: None,
            selector: WindowSelector::default(),
        }
    }

    fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("texts and numbers can be written");
        general_purpose::URL_SAFE_NO_PAD.encode(json)
    }

    /// The JSON inside, if the text is base64 of something like an object; an id never is, as it has a colon.
    fn json_in(text: &str) -> Option<Vec<u8>> {
        BASE64
            .decode(text)
            .ok()
            .filter(|bytes| bytes.first() == Some(&b'{'))
    }

    fn read(json: &[u8], given: &str) -> Parsed<Self> {
        serde_json::from_slice(json)
            .map_err(|_| HandleError::form(given, "its payload is not that of a handle"))
    }

    /// The record it names. Connection and stream are as strict as in an id.
    fn record(self, given: &str, kind: &str) -> Parsed<RecordHandle> {
        if self.v != VERSION || self.kind != kind {
            return Err(HandleError::form(given, "its version or kind is another"));
        }
        if let Some(connection) = &self.connection_id {
            check(Part::Connection, connection, segment::guard)?;
            if connection.contains(':') {
                return Err(HandleError::Colon {
                    value: connection.clone(),
                });
            }
        }
        RecordHandle::new(self.connection_id.as_deref(), &self.stream, &self.record_id)
    }
}

fn check(part: Part, value: &str, rule: fn(&str) -> Result<(), SegmentError>) -> Parsed<()> {
    rule(value).map_err(|why| HandleError::Segment {
        part,
        value: value.to_owned(),
        why,
    })
}

/// Undoes percent-encoding once. Nothing if an escape is broken or the bytes are no text.
fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}
