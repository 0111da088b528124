//! What sources exist: declared connectors and the connections configured from them.

use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::time::Instant;

use crate::Result;

/// One stream of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamRef {
    pub connection: ConnectionId,
    /// The stream's name, unique within the connection.
    pub stream: StreamName,
}

/// A configured account of a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its id; never changes.
    pub id: ConnectionId,
    /// The connector it is an account of.
    pub connector: ConnectorKey,
    /// The owner's label.
    pub display_name: String,
    /// When it was added.
    pub created_at: Instant,
}

/// A connection to be added.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// A declared connector.
    pub connector: ConnectorKey,
    /// The owner's label.
    pub name: String,
    /// The id; `None` for a slug of connector and name.
    pub id: Option<ConnectionId>,
}

/// What registering a declaration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// The connector is new.
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

/// What removing a connection erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Live records.
    pub records: u64,
    /// Blobs that no other connection refers to.
    pub blobs: u64,
}

/// How much a stream holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStats {
    pub stream: StreamRef,
    /// Live records.
    pub records: u64,
}

/// The port for declarations and connections.
pub trait Catalog {
    /// Registers a declaration, or another version of it (decision 27). A version keeps the content it was first registered
    /// with; one that was replaced may come back.
    fn declare(&self, declaration: &Declaration) -> Result<Declared>;
    /// The registered declaration of a connector.
    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>>;
    /// All registered declarations, by connector key.
    fn declarations(&self) -> Vec<Arc<Declaration>>;
    fn add_connection(&self, new: NewConnection) -> Result<Connection>;
    /// All connections, oldest first.
    fn connections(&self) -> Vec<Connection>;
    fn connection(&self, id: &ConnectionId) -> Option<Connection>;
    /// Changes the label of a connection.
    fn rename_connection(&self, id: &ConnectionId, name: &str) -> Result<Connection>;
    /// Erases a connection with its records, history, index entries and blobs.
    fn remove_connection(&self, id: &ConnectionId) -> Result<Removed>;
    /// The streams of every connection with their sizes.
    fn stream_stats(&self) -> Result<Vec<StreamStats>>;
}
