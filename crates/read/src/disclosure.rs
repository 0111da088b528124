//! What a client was shown, for the log the owner can read: handles and field names, never text and never the query.

use std::collections::BTreeSet;

use contract::error::ReadError;
use contract::handle::RecordHandle;
use contract::id::GrantId;
use contract::key::RecordKey;
use store::grants::Disclosure;

use crate::damaged::Damaged;
use crate::enforce::Row;

/// Takes note of what clients were shown.
pub trait Disclosures: Send + Sync {
    /// Called once per successful call of a client, before the answer leaves. It must not block for long. What cannot be
    /// noted is not shown.
    ///
    /// # Errors
    ///
    /// Why it cannot be noted.
    fn note(&self, disclosure: Disclosure) -> Result<(), NotNoted>;

    /// Called before records are looked for under these grants. Where no record may be shown in any case, the refusal must not
    /// depend on what would be found.
    ///
    /// # Errors
    ///
    /// Why nothing is shown.
    fn admit(&self, _grants: &BTreeSet<GrantId>) -> Result<(), ReadError> {
        Ok(())
    }

    /// Whether the size of an answer under these grants is to be noted.
    fn counts_bytes(&self, _grants: &BTreeSet<GrantId>) -> bool {
        false
    }
}

/// Why an answer is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotNoted {
    /// It cannot be logged, in words that clients may see.
    Unlogged(String),
    /// It may not be shown.
    Refused(Box<ReadError>),
}

/// What an answer shows, collected while it is made.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) grants: BTreeSet<GrantId>,
    pub(crate) records: Vec<String>,
    pub(crate) fields: BTreeSet<String>,
    /// What it would show, were it not damaged.
    pub(crate) damaged: Damaged,
}

impl Shown {
    pub(crate) fn for_row(row: &Row) -> Self {
        let mut shown = Self::default();
        shown.row(row);
        shown
    }

    /// The answer draws on a row.
    pub(crate) fn row(&mut self, row: &Row) {
        self.grants.extend(row.grant_id().cloned());
    }

    /// The answer shows a record of a row, or that it is gone.
    pub(crate) fn record(&mut self, row: &Row, key: &RecordKey) {
        let (connection, stream) = (row.connection().id.as_str(), row.stream().name.as_str());
        let handle = RecordHandle::new(Some(connection), stream, key.as_str());
        self.records.push(handle.map_or_else(
            |_| format!("{connection}/{stream}:{key}"),
            |handle| handle.to_string(),
        ));
    }

    /// The answer shows this as well.
    pub(crate) fn add(&mut self, other: Self) {
        self.grants.extend(other.grants);
        self.records.extend(other.records);
        self.fields.extend(other.fields);
        self.damaged.add(other.damaged);
    }

    /// The answer shows fields, or figures made of them.
    pub(crate) fn fields<S: Into<String>>(&mut self, names: impl IntoIterator<Item = S>) {
        self.fields.extend(names.into_iter().map(Into::into));
    }
}
