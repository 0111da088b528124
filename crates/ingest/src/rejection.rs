//! Why one line was refused. A rejection is permanent: sending the same line again gives the same answer.

use contract::json;
use serde::{Deserialize, Serialize};

/// Said of a file that breaks off, where what stood before it is whole.
pub(crate) const BROKEN_OFF: &str =
    "the file ends too early. What stood before is imported; export it anew and import it again";

/// How many characters of somebody's data a message quotes.
const QUOTED_CHARS: usize = 64;

/// Why one line was refused, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What kind of fault.
    pub code: RejectionCode,
    /// What is wrong with this line.
    pub message: String,
    /// The field at fault, where there is one.
    pub field: Option<String>,
    /// What stands in it, as it is but cut, where that is the fault. It is escaped where it is shown.
    pub value: Option<String>,
}

contract::names! {
    /// The kinds of fault, by their names on the wire.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RejectionCode {
        /// The line is not one JSON object.
        MalformedNdjson = "malformed_ndjson",
        /// The row does not fit the header.
        MalformedCsv = "malformed_csv",
        /// A message of a mailbox cannot be read.
        MalformedMail = "malformed_mail",
        /// An item of a known export cannot be read.
        MalformedExport = "malformed_export",
        /// An item of a known export is of a kind that no stream holds.
        UnsupportedItem = "unsupported_item",
        /// The bytes are not UTF-8.
        InvalidUtf8 = "invalid_utf8",
        /// The key cannot be a key, or contradicts the data.
        InvalidRecordIdentity = "invalid_record_identity",
        /// There is no key, or no value in a primary key field.
        MissingKey = "missing_key",
        /// There is no `data` object.
        MissingData = "missing_data",
        /// A declared field holds a value of another type.
        InvalidFieldType = "invalid_field_type",
        /// A declared field holds a value of the right type that its declaration does not allow.
        InvalidFieldValue = "invalid_field_value",
        /// A field that the declaration requires is not there.
        MissingField = "missing_field",
        /// An object names a member twice.
        DuplicateMember = "duplicate_member",
        /// The stream is not declared, or not named.
        UnknownStream = "unknown_stream",
        /// The stream is append-only and holds other content under this key.
        AppendOnlyConflict = "append_only_conflict",
        /// The owner deleted the record of this key.
        DeletedByOwner = "deleted_by_owner",
        /// `emitted_at` is no time.
        InvalidEmittedAt = "invalid_emitted_at",
        /// `op` is neither `upsert` nor `delete`.
        InvalidOp = "invalid_op",
        /// The line is longer than a line may be.
        LineTooLong = "line_too_long",
    }
}

impl Rejection {
    pub(crate) fn new(code: RejectionCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            value: None,
        }
    }

    pub(crate) fn in_field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    pub(crate) fn with_value(mut self, given: Given) -> Self {
        self.value = Some(given.text);
        self
    }
}

/// A value that was given, cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    text: String,
    is_text: bool,
}

impl Given {
    pub(crate) fn text(text: &str) -> Self {
        Self {
            text: cut(text),
            is_text: true,
        }
    }

    pub(crate) fn json(raw: &str) -> Self {
        match json::decode_string(raw) {
            Some(text) => Self::text(&text),
            None => Self {
                text: cut(raw.trim()),
                is_text: false,
            },
        }
    }

    /// For a message: texts in quotes, everything escaped.
    pub(crate) fn shown(&self) -> String {
        let quoted = quoted(&self.text);
        match quoted
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''))
        {
            Some(bare) if !self.is_text => bare.to_owned(),
            _ => quoted,
        }
    }
}

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTED_CHARS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// Quotes somebody's data for a message: escaped, so that it cannot forge one, and cut.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(QUOTED_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    format!("'{}'", shown.replace("\\'", "'").replace("\\\"", "\""))
}
