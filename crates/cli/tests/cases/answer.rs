//! An answer without the clothes of a surface: what was found, what is proven, what follows, or why not. Two surfaces agree
//! when these are equal.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Characters of a window where none are named.
pub(crate) const WINDOW: u64 = 4_096;

pub(crate) type SurfaceResult<T> = Result<T, Refusal>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) retry_with: Option<String>,
    pub(crate) connections: Vec<String>,
    pub(crate) total: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) connection: Option<String>,
    pub(crate) stream: String,
    pub(crate) record: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: Id,
    pub(crate) label: Option<String>,
    pub(crate) deleted: bool,
    pub(crate) data: Map<String, Value>,
    /// The keys of related records, by relation.
    pub(crate) related: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) records: Vec<Record>,
    pub(crate) cursor: Option<String>,
    pub(crate) bookmark: Option<String>,
    pub(crate) count: Option<u64>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) hits: Vec<Hit>,
    pub(crate) cursor: Option<String>,
    pub(crate) count: Option<u64>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) id: Id,
    pub(crate) connector: String,
    pub(crate) label: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) excerpts: Vec<Excerpt>,
}

/// A proven match, and the window to read around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) field: String,
    pub(crate) preview: String,
    pub(crate) truncated: bool,
    pub(crate) read: Read,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) id: Id,
    pub(crate) field: String,
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) id: Id,
    pub(crate) field: String,
    pub(crate) text: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) total: u64,
    pub(crate) complete: bool,
    pub(crate) next: Option<u64>,
    pub(crate) previous: Option<u64>,
    pub(crate) found: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) value: Option<Value>,
    pub(crate) records: Option<u64>,
    /// Key, count and value of each group.
    pub(crate) groups: Option<Vec<(Value, u64, Option<Value>)>>,
    pub(crate) other_count: Option<u64>,
}

/// A stream of one connector, as far as a grant allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stream {
    pub(crate) connector: String,
    pub(crate) name: String,
    pub(crate) connections: Vec<String>,
    /// Each field with what it accepts, in short; empty in an index.
    pub(crate) fields: BTreeMap<String, String>,
    /// The JSON schema of each field, where all was asked for.
    pub(crate) schemas: BTreeMap<String, String>,
}

impl Id {
    pub(crate) fn new(connection: &str, stream: &str, record: &str) -> Self {
        Self {
            connection: Some(connection.to_owned()),
            stream: stream.to_owned(),
            record: record.to_owned(),
        }
    }

    /// The same record without its connection.
    pub(crate) fn bare(&self) -> Self {
        Self {
            connection: None,
            ..self.clone()
        }
    }
}

impl Page {
    pub(crate) fn keys(&self) -> Vec<&str> {
        let records = self.records.iter();
        records.map(|record| record.id.record.as_str()).collect()
    }
}

impl Found {
    pub(crate) fn ids(&self) -> Vec<Id> {
        self.hits.iter().map(|hit| hit.id.clone()).collect()
    }

    /// The same without what is sealed anew on every answer.
    pub(crate) fn steady(mut self) -> Self {
        self.cursor = self.cursor.map(|_| "sealed".to_owned());
        self
    }
}
