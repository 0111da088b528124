//! What sources exist: declared connectors and the connections configured from them.

use std::sync::Arc;

use contract::declaration::{Declaration, DeclarationErrors};
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::json;
use contract::time::Instant;

use crate::{Result, StoreError};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamRef {
    pub connection: ConnectionId,
    /// The stream's name, unique within the connection.
    pub stream: StreamName,
}

impl StreamRef {
    pub fn new(connection: &ConnectionId, stream: &StreamName) -> Self {
        Self {
            connection: connection.clone(),
            stream: stream.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its id; never changes.
    pub id: ConnectionId,
    pub connector: ConnectorKey,
    pub display_name: String,
    pub created_at: Instant,
}

#[derive(Debug, Clone)]
pub struct NewConnection {
    pub connector: ConnectorKey,
    pub name: String,
    /// The id; `None` for a slug of connector and name.
    pub id: Option<ConnectionId>,
}

/// What registering a declaration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    Added,
    /// An equal declaration was registered already.
    Unchanged,
    /// It replaces an earlier version; the number of streams whose index is rebuilt.
    Updated {
        /// Streams to be indexed again.
        reindexed: usize,
        /// Whether it is a version that was registered, and replaced, before.
        returned: bool,
        /// Records that were damaged on the disk, by name: whether they hold what was removed or retyped is not known.
        damaged: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    pub records: u64,
    /// Blobs that no other connection refers to.
    pub blobs: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStats {
    pub stream: StreamRef,
    pub records: u64,
}

pub trait Catalog {
    /// Registers a declaration, or another version of it (decision 27). A version keeps the content it was first registered
    /// with; one that was replaced may come back.
    fn declare(&self, declaration: &Declaration) -> Result<Declared>;
    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>>;
    /// All registered declarations, by connector key.
    fn declarations(&self) -> Vec<Arc<Declaration>>;
    fn add_connection(&self, new: NewConnection) -> Result<Connection>;
    fn connections(&self) -> Vec<Connection>;
    fn connection(&self, id: &ConnectionId) -> Option<Connection>;
    fn rename_connection(&self, id: &ConnectionId, name: &str) -> Result<Connection>;
    /// Erases a connection with its records, history, index entries and blobs.
    fn remove_connection(&self, id: &ConnectionId) -> Result<Removed>;
    fn stream_stats(&self) -> Result<Vec<StreamStats>>;
}

/// Refuses a display name that PostgreSQL could not keep, also where another database could: a directory may move there.
pub(crate) fn check_display_name(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(StoreError::NulInName);
    }
    Ok(())
}

/// Refuses a version of a declaration that was registered before with other content.
pub(crate) fn refuse_other_content(known: &str, declaration: &Declaration) -> Result<()> {
    if json::same_value(known, declaration.as_str()) {
        return Ok(());
    }
    let version = declaration.declaration_version.as_str();
    let rule = format!(
        "version {version:?} was registered before with other content; choose a declaration_version that was never used"
    );
    Err(DeclarationErrors::one("/declaration_version", rule).into())
}

/// The slug itself, or the first of `slug-2`, `slug-3` … that is free.
pub(crate) fn free_id(
    slug: &ConnectionId,
    taken: impl Fn(&ConnectionId) -> bool,
) -> Result<ConnectionId> {
    if !taken(slug) {
        return Ok(slug.clone());
    }
    (2_u32..10_000)
        .filter_map(|number| {
            let suffix = format!("-{number}");
            let room = 32 - suffix.len();
            let stem: String = slug.as_str().chars().take(room).collect();
            ConnectionId::parse(format!("{stem}{suffix}")).ok()
        })
        .find(|id| !taken(id))
        .ok_or_else(|| StoreError::ConnectionExists(slug.clone()))
}
