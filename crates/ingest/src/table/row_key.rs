//! Keys of rows that nothing identifies: a hash of the row, and for equal rows which of them it is.

use std::borrow::Cow;
use std::collections::HashMap;

use contract::declaration::StreamDeclaration;
use sha2::{Digest as _, Sha256};

use super::hints::TableHints;
use crate::accept::Acceptor;

/// Rows that are remembered to count equal ones; in a larger table, equal rows far apart are one.
const REMEMBERED: usize = 4_000_000;

pub(crate) struct RowKeys {
    field: String,
    seen: HashMap<u64, u32>,
}

impl RowKeys {
    /// Keys for rows of the stream that is imported, if it wants them.
    pub(crate) fn for_stream(acceptor: &Acceptor<'_>) -> Option<Self> {
        Self::of_stream(acceptor.rules().ok()?.declaration)
    }

    /// The same for records of a stream.
    pub(crate) fn of_stream(stream: &StreamDeclaration) -> Option<Self> {
        let hints = TableHints::of_stream(stream)?;
        Some(Self {
            field: hints.hashed?,
            seen: HashMap::new(),
        })
    }

    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// The key of the next row.
    pub(crate) fn key(&mut self, row: &[u8]) -> String {
        let digest = Sha256::digest(row);
        let first = digest.first_chunk::<8>().copied().unwrap_or_default();
        let hash = u64::from_be_bytes(first);
        if self.seen.len() >= REMEMBERED {
            self.seen.clear();
        }
        let count = self.seen.entry(hash).or_default();
        *count += 1;
        match count {
            1 => format!("{hash:016x}"),
            count => format!("{hash:016x}-{count}"),
        }
    }

    /// An object as JSON, with its key as the first member.
    pub(crate) fn keyed<'o>(&mut self, object: &'o [u8]) -> Cow<'o, [u8]> {
        let inner = object.trim_ascii().strip_prefix(b"{");
        let Some(inner) = inner else {
            return Cow::Borrowed(object);
        };
        let name = serde_json::Value::from(self.field.as_str());
        let comma = if inner.trim_ascii_start().starts_with(b"}") {
            ""
        } else {
            ","
        };
        let mut keyed =
            format!("{{{name}:\"{}\"{comma}", self.key(object.trim_ascii())).into_bytes();
        keyed.extend(inner);
        Cow::Owned(keyed)
    }
}
