//! Request and response types of the owner's routes, shared with the commands.

use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::time::Instant;
use ingest::ImportReport;
use serde::{Deserialize, Serialize};
use store::keeping::Dropped;

/// The header of a backup that says how many blobs it lacks, because their files are missing.
pub const MISSING_BLOBS: &str = "pdpp-missing-blobs";
/// The ids of the first of them, comma-separated.
pub const MISSING_BLOB_IDS: &str = "pdpp-missing-blob-ids";

/// The declared connectors and the connections configured from them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sources {
    /// By connector key.
    pub connectors: Vec<Connector>,
    /// Oldest first.
    pub connections: Vec<Connection>,
}

/// A declared connector.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Connector {
    /// Its key.
    pub connector_key: ConnectorKey,
    /// Its streams, as declared.
    pub streams: Vec<Stream>,
}

/// A declared stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stream {
    /// Its name.
    pub name: StreamName,
    /// How many fields make a record's key.
    pub key_parts: usize,
    /// The names of its fields.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Relationships by which other records point at one of this stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
}

/// A relationship by which records point at another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Relation {
    /// Its name.
    pub name: String,
    /// The stream of the records that point.
    pub stream: StreamName,
    /// Their field that holds the key of the other.
    pub foreign_key: String,
}

/// A configured connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id; never changes.
    pub connection_id: ConnectionId,
    /// The connector it is an account of.
    pub connector_key: ConnectorKey,
    /// The owner's label.
    pub display_name: String,
    /// Live records in all its streams.
    pub records: u64,
}

/// A connection to be added.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewConnection {
    /// A declared connector.
    pub connector_key: ConnectorKey,
    /// The owner's label.
    pub name: String,
    /// The id; `None` for one made of connector and label.
    pub connection_id: Option<ConnectionId>,
}

/// A new label for a connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Renaming {
    /// The label.
    pub name: String,
}

/// What removing a connection erased.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Removed {
    /// Which one.
    pub connection_id: ConnectionId,
    /// Live records.
    pub records: u64,
    /// Blobs that no other connection refers to.
    pub blobs: u64,
}

/// Records to be deleted, all of them or none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deletion {
    /// Which.
    pub records: Vec<RecordName>,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordName {
    /// Its connection.
    pub connection_id: ConnectionId,
    /// Its stream.
    pub stream: StreamName,
    /// Its canonical key.
    pub record_id: String,
}

/// What was deleted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deleted {
    /// How many records.
    pub records: u64,
}

/// What registering a declaration did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Declared {
    /// The key of the connector.
    pub connector_key: ConnectorKey,
    /// `added`, `unchanged`, `updated`, or `returned` for a version that was registered before.
    pub result: String,
    /// Records that could not be held against it because they were damaged on the disk, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// What an import is asked to do.
#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    /// The connection to import into.
    pub connection_id: Option<String>,
    /// In a dry run, instead of a connection: the known export that would get one.
    pub export: Option<String>,
    /// Forces all lines into this stream.
    pub stream: Option<String>,
    /// Whether to write nothing.
    pub dry_run: bool,
    /// Whether to bring back records that the owner deleted.
    pub revive: bool,
    /// Whether rejections name their file.
    pub name_files: bool,
    /// Lines per durable batch.
    pub batch_lines: Option<usize>,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportProgress {
    /// Lines that are durably stored or rejected.
    pub read: u64,
    /// Bytes of the files read so far, as stored on disk.
    pub bytes: u64,
    /// Whether all lines are read and the index is being written.
    pub indexing: bool,
}

/// How an import ended. Everything in the report is durable, also when something stopped it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Imported {
    /// What was done.
    pub report: ImportReport,
    /// What stopped it, if it did not come to its end.
    pub stopped: Option<Refusal>,
    /// Why the index lags behind, if it does.
    pub lagging: Option<String>,
}

/// Why something was not done, in words for the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hints: Vec<String>,
}

/// One line of a streamed answer. The last one is `Done` or `Failed`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressEvent<P, D> {
    /// How far it is.
    Progress(P),
    /// It is done.
    Done(D),
    /// It was not done.
    Failed(Refusal),
}

/// How many records an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexed {
    /// Records.
    pub records: u64,
}

/// What a purge erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Tombstones whose content and key are gone.
    pub tombstones: u64,
    /// Blobs that no record refers to any more.
    pub blobs: u64,
    /// What was dropped by a rule.
    #[serde(flatten)]
    pub dropped: Dropped,
}

/// The only member of the last line of an export that had to leave out records, because they were damaged: which.
pub const LEFT_OUT: &str = "left_out";

/// The header that numbers a backup, for asking what it found damaged.
pub const BACKUP_NUMBER: &str = "pdpp-backup-number";

/// What a backup saved as it is, although it is damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupDamage {
    /// Each in words.
    pub damaged: Vec<String>,
}

/// Whether what is stored still is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspected {
    /// How many records there are.
    pub records: u64,
    /// How many blobs there are.
    pub blobs: u64,
    /// What is wrong with the records.
    pub damaged_records: Vec<Damaged>,
    /// What is wrong with blobs.
    pub damaged_blobs: Vec<Damaged>,
    /// What is wrong with the index.
    pub damaged_index: Vec<Damaged>,
    /// Whether erased bytes may still be on the disk.
    pub traces_left: bool,
    /// How many bytes of disk space finishing that takes.
    #[serde(default)]
    pub room_to_erase: u64,
    /// A description of the rollback of the store, until the owner has accepted it.
    #[serde(default)]
    pub rolled_back: Option<String>,
    /// Why a rollback could not be detected at the next start.
    #[serde(default)]
    pub unmarked: Option<String>,
    /// Disclosures that are on disk and not in the log yet.
    #[serde(default)]
    pub waiting: u64,
    /// Revocations that are in memory only, and that the next start would undo.
    #[serde(default)]
    pub ended_in_memory: u64,
    /// Why nothing can be written, as it was tried.
    #[serde(default)]
    pub unwritable: Option<String>,
}

/// What the owner has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The rollback that was accepted; `None` if there was none.
    pub rolled_back: Option<String>,
}

/// The time that grants use, and the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    /// The time used everywhere. It never goes back.
    pub counted: Instant,
    /// The machine's clock.
    pub machine: Instant,
    /// Whether the latest time that was seen got lost, until the time is reset.
    #[serde(default)]
    pub was_lost: bool,
}

/// A damaged file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// The file or folder concerned.
    pub path: String,
    /// What is wrong with it.
    pub detail: String,
}

/// A grant to create.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewGrant {
    /// The client; `None` for a grant without a client of its own.
    pub client: Option<String>,
    /// When it ends, RFC 3339; `None` for the default.
    pub expires_at: Option<String>,
    /// What may be read.
    pub selection: GrantSelection,
}

/// What may be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantSelection {
    /// By flags.
    Flags(grants::Flags),
    /// By RFC 9396 authorization details.
    Details(String),
}

/// How long a new owner token shall live.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct NewOwnerToken {
    /// In seconds.
    pub ttl_seconds: u64,
}

/// What a check of the disclosure log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Intact entries, counted from the first that exists.
    pub entries: u64,
    /// Entries before it that were dropped by the owner's rule.
    pub dropped: u64,
    /// Disclosures that are on disk and not in the log yet.
    #[serde(default)]
    pub waiting: u64,
    /// The first damaged entry.
    pub broken: Option<Broken>,
}

/// Where the disclosure log is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The sequence number concerned.
    pub sequence: u64,
    /// What is wrong there.
    pub reason: String,
}

/// A new password for the owner's pages. It has no `Debug`, so that nothing prints it.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewPassword {
    /// The password.
    pub password: String,
}

/// The address of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// The public URL; `None` if nobody listens.
    pub public_url: Option<String>,
}

/// A link that signs in once. It has no `Debug`, so that nothing prints it by accident.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInLink {
    /// The address to open.
    pub link: String,
}
