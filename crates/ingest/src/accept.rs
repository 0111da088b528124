//! One line, one directive.
//!
//! A line is a JSON object: either an *envelope* `{key, data, stream?, emitted_at?, op?}`, or a *bare record* whose key
//! comes from the primary key fields of its stream. Where both may come ([`LineForm::EnvelopeOrBare`]) the rule is:
//!
//! 1. A line with a member that no envelope has, or with neither `key` nor `data`, is a bare record.
//! 2. Anything else is an envelope, unless it is a whole record of the stream by itself: the stream declares every
//!    member of the line and the line holds all primary key fields. Then it is a bare record.
//! 3. Except that a line whose `data` holds the primary key and agrees with `key` about it is an envelope after all.
//!
//! Only streams that declare fields named `key` or `data` ever reach rules 2 and 3. A producer for such a stream makes an
//! envelope unmistakable with a member its stream does not declare, for example `stream`.
//!
//! The content of a record is the slice of the line it stood in, never written anew.

mod kept_keys;

use std::collections::HashMap;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, StreamName};
use contract::json::{self, JsonErrorCode, JsonKind, RecordBody};
use contract::key::RecordKey;
use contract::time::{Clock, Instant};
use serde::Serialize;
use store::records::{Change, ChangeOp, Records};

use self::kept_keys::KeptKeys;
use crate::exports::Export;
use crate::rejection::{Rejection, RejectionCode, quoted};
use crate::validate::{Cells, StreamRules};

/// The members an envelope may have.
const ENVELOPE: [&str; 5] = ["key", "data", "stream", "emitted_at", "op"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineForm {
    /// Every line is an envelope; members it does not know are ignored.
    EnvelopeOnly,
    /// A line is an envelope or a bare record, see the [module](self).
    EnvelopeOrBare,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamChoice {
    /// All lines belong to this stream, whatever they say.
    Always(StreamName),
    /// Lines that do not name a stream belong to this one.
    Unless(StreamName),
    Named,
}

impl StreamChoice {
    /// The choice for one input: what was prescribed, else the stream called like the file, else the only one declared.
    pub fn for_input(
        prescribed: Option<&StreamName>,
        stem: &str,
        declaration: &Declaration,
    ) -> Self {
        if let Some(stream) = prescribed {
            return Self::Always(stream.clone());
        }
        match (declaration.stream(stem), declaration.streams.as_slice()) {
            (Some(stream), _) | (None, [stream]) => Self::Unless(stream.name.clone()),
            (None, _) => Self::Named,
        }
    }

    pub fn stream(&self) -> Option<&StreamName> {
        match self {
            Self::Always(stream) | Self::Unless(stream) => Some(stream),
            Self::Named => None,
        }
    }
}

/// Turns lines into directives for the streams of one source.
pub struct Acceptor<'a> {
    streams: HashMap<&'a str, StreamRules<'a>>,
    choice: StreamChoice,
    form: LineForm,
    clock: &'a dyn Clock,
    kept_keys: Option<KeptKeys<'a>>,
}

enum Op {
    Upsert,
    Delete,
}

type Accepted<T> = Result<T, Rejection>;

impl<'a> Acceptor<'a> {
    pub fn new(
        declaration: &'a Declaration,
        choice: StreamChoice,
        form: LineForm,
        clock: &'a dyn Clock,
    ) -> Self {
        Self {
            streams: declaration
                .streams
                .iter()
                .map(|stream| (stream.name.as_str(), StreamRules::new(stream)))
                .collect(),
            choice,
            form,
            clock,
            kept_keys: None,
        }
    }

    /// Makes keys of records that importers make readable, except those that are there already.
    #[must_use]
    pub fn with_readable_keys(
        mut self,
        export: Export,
        declaration: &'a Declaration,
        existing: Option<(&'a dyn Records, &'a ConnectionId)>,
    ) -> Self {
        self.kept_keys = Some(KeptKeys::new(export, declaration, existing));
        self
    }

    pub fn rules(&self) -> Accepted<&StreamRules<'a>> {
        match self.choice.stream() {
            Some(stream) => self.declared(stream.as_str()),
            None => Err(Rejection::new(
                RejectionCode::UnknownStream,
                "the line does not name its 'stream', and neither does the name of the file; pass --as CONNECTOR/STREAM",
            )),
        }
    }

    /// Whether everything belongs to one stream, whatever it says.
    pub(crate) fn is_prescribed(&self) -> bool {
        matches!(self.choice, StreamChoice::Always(_))
    }

    pub fn line(&self, line: &[u8]) -> Accepted<Change> {
        let text = std::str::from_utf8(line).map_err(|error| {
            let message = format!("the line is not UTF-8 (at byte {})", error.valid_up_to());
            Rejection::new(RejectionCode::InvalidUtf8, message)
        })?;
        let line = parse(text.trim_matches([' ', '\t', '\r', '\n']))?;
        if self.is_envelope(&line) {
            self.envelope(&line)
        } else {
            self.bare(line, Cells::Fields)
        }
    }

    /// Takes a record that comes without an envelope.
    pub(crate) fn bare(&self, body: RecordBody, cells: Cells) -> Accepted<Change> {
        self.bare_of(self.rules()?, body, cells)
    }

    /// The same for a row of one of several tables.
    pub(crate) fn row(&self, stream: &str, body: RecordBody) -> Accepted<Change> {
        self.bare_of(self.declared(stream)?, body, Cells::Columns)
    }

    fn bare_of(&self, rules: &StreamRules<'a>, body: RecordBody, cells: Cells) -> Accepted<Change> {
        let key = rules.key_of(&body).map_err(|mut rejection| {
            if body.get("key").is_some() && body.get("data").is_some() {
                rejection.message.push_str(&stray_members(&body));
            }
            rejection
        })?;
        self.upsert(rules, key, body, cells)
    }

    /// Takes a record that an importer made of an item in another format. Whatever the caller chose, such an item knows
    /// its stream. Whether it replaces one that is there is not for the item to say.
    pub(crate) fn record(&self, stream: &str, record: &impl Serialize) -> Accepted<Change> {
        let malformed = |why: String| Rejection::new(RejectionCode::MalformedExport, why);
        let text = serde_json::to_string(record).map_err(|error| malformed(error.to_string()))?;
        let mut body = RecordBody::parse(text).map_err(|error| malformed(error.to_string()))?;
        if let Some(kept) = &self.kept_keys {
            body = kept.readable(stream, body)?;
        }
        let rules = self.declared(stream)?;
        let mut change = self.upsert(rules, rules.key_of(&body)?, body, Cells::Fields)?;
        if let ChangeOp::Upsert(body) = change.op {
            change.op = ChangeOp::Add(body);
        }
        Ok(change)
    }

    /// Takes the deletion of a record that an importer made.
    pub(crate) fn deletion(&self, stream: &str, key: &str) -> Accepted<Change> {
        let rules = self.declared(stream)?;
        let malformed = |why: String| Rejection::new(RejectionCode::MalformedExport, why);
        let key = match &self.kept_keys {
            Some(kept) => kept.key(stream, key)?,
            None => key.into(),
        };
        Ok(Change {
            stream: rules.declaration.name.clone(),
            key: RecordKey::single(key).map_err(|error| malformed(error.to_string()))?,
            emitted_at: self.clock.now().to_rfc3339_millis(),
            op: ChangeOp::Delete,
        })
    }

    /// The record that the store has where one of this key would go.
    pub(crate) fn stored(&self, stream: &str, key: &str) -> Option<serde_json::Value> {
        self.kept_keys.as_ref()?.stored(stream, key)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    fn upsert(
        &self,
        rules: &StreamRules<'a>,
        key: RecordKey,
        body: RecordBody,
        cells: Cells,
    ) -> Accepted<Change> {
        rules.check_values(&body, cells)?;
        Ok(Change {
            stream: rules.declaration.name.clone(),
            key,
            emitted_at: self.clock.now().to_rfc3339_millis(),
            op: ChangeOp::Upsert(body),
        })
    }

    fn is_envelope(&self, line: &RecordBody) -> bool {
        if self.form == LineForm::EnvelopeOnly {
            return true;
        }
        let shaped = line.members().all(|(name, _)| ENVELOPE.contains(&name))
            && (line.get("key").is_some() || line.get("data").is_some());
        shaped && !self.rules().is_ok_and(|rules| is_whole_record(rules, line))
    }

    fn envelope(&self, line: &RecordBody) -> Accepted<Change> {
        let rules = self.rules_for(line)?;
        let op = read_op(line)?;
        let key = rules.key_given(line.get("key"))?;
        let emitted_at = self.emitted_at(line)?;
        let data = read_data(line)?;
        if let Some(data) = &data {
            rules.check_identity(&key, data)?;
        }
        let op = match (op, data) {
            (Op::Delete, _) => ChangeOp::Delete,
            (Op::Upsert, Some(data)) => {
                rules.check_values(&data, Cells::Fields)?;
                ChangeOp::Upsert(data)
            }
            (Op::Upsert, None) => {
                return Err(Rejection::new(
                    RejectionCode::MissingData,
                    "the line has no 'data' object",
                ));
            }
        };
        Ok(Change {
            stream: rules.declaration.name.clone(),
            key,
            emitted_at,
            op,
        })
    }

    fn rules_for(&self, line: &RecordBody) -> Accepted<&StreamRules<'a>> {
        match (&self.choice, line.get("stream")) {
            (StreamChoice::Always(_), _) | (_, None) => self.rules(),
            (_, Some(raw)) => match json::decode_string(raw) {
                Some(name) => self.declared(&name),
                None => Err(Rejection::new(
                    RejectionCode::UnknownStream,
                    "'stream' must be a text",
                )),
            },
        }
    }

    fn declared(&self, name: &str) -> Accepted<&StreamRules<'a>> {
        self.streams.get(name).ok_or_else(|| {
            let message = format!("the stream {} is not declared", quoted(name));
            Rejection::new(RejectionCode::UnknownStream, message)
        })
    }

    fn emitted_at(&self, line: &RecordBody) -> Accepted<String> {
        let Some(raw) = line.get("emitted_at") else {
            return Ok(self.clock.now().to_rfc3339_millis());
        };
        let text = json::decode_string(raw);
        match text {
            Some(text) if Instant::parse(&text).is_some() => Ok(text.into_owned()),
            _ => Err(Rejection::new(
                RejectionCode::InvalidEmittedAt,
                "'emitted_at' must be an RFC 3339 date-time such as \"2026-03-01T10:00:00Z\"",
            )),
        }
    }
}

fn read_op(line: &RecordBody) -> Accepted<Op> {
    match line.get("op").map(json::decode_string) {
        None => Ok(Op::Upsert),
        Some(Some(op)) if op == "upsert" => Ok(Op::Upsert),
        Some(Some(op)) if op == "delete" => Ok(Op::Delete),
        Some(_) => Err(Rejection::new(
            RejectionCode::InvalidOp,
            "'op' must be \"upsert\" or \"delete\"",
        )),
    }
}

fn read_data(line: &RecordBody) -> Accepted<Option<RecordBody>> {
    match line.get("data") {
        Some(raw) if json::kind_of(raw) == JsonKind::Object => parse(raw).map(Some),
        _ => Ok(None),
    }
}

/// Whether a line that looks like an envelope is rather a record of a stream with fields of those names.
fn is_whole_record(rules: &StreamRules<'_>, line: &RecordBody) -> bool {
    let declared = line.members().all(|(name, _)| rules.field(name).is_some());
    declared && rules.key_of(line).is_ok() && !agrees_with_its_data(rules, line)
}

fn agrees_with_its_data(rules: &StreamRules<'_>, line: &RecordBody) -> bool {
    let Ok(Some(data)) = read_data(line) else {
        return false;
    };
    match (rules.key_given(line.get("key")), rules.key_of(&data)) {
        (Ok(given), Ok(held)) => given == held,
        _ => false,
    }
}

/// Says which members keep a line with `key` and `data` from being read as an envelope.
fn stray_members(line: &RecordBody) -> String {
    let stray: Vec<String> = line
        .members()
        .map(|(name, _)| name)
        .filter(|name| !ENVELOPE.contains(name))
        .take(3)
        .map(quoted)
        .collect();
    format!(
        "; the line is no envelope because it also has {}",
        stray.join(", ")
    )
}

fn parse(text: &str) -> Accepted<RecordBody> {
    RecordBody::parse(text).map_err(|error| {
        let code = match error.code {
            JsonErrorCode::DuplicateMember => RejectionCode::DuplicateMember,
            JsonErrorCode::Malformed | JsonErrorCode::NotAnObject | JsonErrorCode::TooDeep => {
                RejectionCode::MalformedNdjson
            }
        };
        Rejection::new(code, error.to_string())
    })
}
