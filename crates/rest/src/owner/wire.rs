//! Request and response types of the owner's routes, shared with the commands.

use contract::id::{ConnectionId, ConnectorKey, StreamName};
use ingest::{ImportReport, Sample};
use serde::{Deserialize, Serialize};
use store::keeping::Dropped;

/// The header of a backup that says how many blobs it lacks, because their files are missing.
pub const MISSING_BLOBS: &str = "pdpp-missing-blobs";
/// The ids of the first of them, comma-separated.
pub const MISSING_BLOB_IDS: &str = "pdpp-missing-blob-ids";

/// The declared connectors and the connections configured from them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sources {
    pub connectors: Vec<Connector>,
    /// Oldest first.
    pub connections: Vec<Connection>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Connector {
    pub connector_key: ConnectorKey,
    pub streams: Vec<Stream>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stream {
    pub name: StreamName,
    /// How many fields make a record's key.
    pub key_parts: usize,
    #[serde(default)]
    pub fields: Vec<String>,
    /// Relationships by which other records point at one of this stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
}

/// A relationship by which records point at another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Relation {
    pub name: String,
    /// The stream of the records that point.
    pub stream: StreamName,
    /// Their field that holds the key of the other.
    pub foreign_key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id; never changes.
    pub connection_id: ConnectionId,
    pub connector_key: ConnectorKey,
    pub display_name: String,
    pub records: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewConnection {
    pub connector_key: ConnectorKey,
    pub name: String,
    /// The id; `None` for one made of connector and label.
    pub connection_id: Option<ConnectionId>,
}

/// What a known export needs: its connector, and a connection if there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectExport {
    /// The name of the connection that is added; none is without one.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Renaming {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Removed {
    pub connection_id: ConnectionId,
    pub records: u64,
    /// Blobs that no other connection refers to.
    pub blobs: u64,
}

/// Records to be deleted, all of them or none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deletion {
    pub records: Vec<RecordName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordName {
    pub connection_id: ConnectionId,
    pub stream: StreamName,
    /// Its canonical key.
    pub record_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deleted {
    pub records: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Declared {
    pub connector_key: ConnectorKey,
    /// `added`, `unchanged`, `updated`, or `returned` for a version that was registered before.
    pub result: String,
    /// Records that could not be held against it because they were damaged on the disk, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct ImportRequest {
    pub connection_id: Option<String>,
    /// In a dry run, instead of a connection: the known export that would get one.
    pub export: Option<String>,
    /// In a dry run, instead of a connection: what would be declared for it.
    pub declaration: Option<String>,
    /// Forces all lines into this stream.
    pub stream: Option<String>,
    /// Whether to write nothing.
    pub dry_run: bool,
    /// Whether to bring back records that the owner deleted.
    pub revive: bool,
    /// Whether to delete what is there and does not come.
    pub prune: bool,
    /// Whether to keep the pictures of photos.
    pub pictures: bool,
    pub name_files: bool,
    pub batch_lines: Option<usize>,
    /// The upload in the browser that the files came by.
    pub upload: Option<String>,
}

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
    pub report: ImportReport,
    /// What stopped it, if it did not come to its end.
    pub stopped: Option<Refusal>,
    /// Why the index lags behind, if it does.
    pub lagging: Option<String>,
    /// The first records that a dry run in this process would add or change.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Why something was not done, in words for the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub message: String,
    pub hints: Vec<String>,
}

/// One line of a streamed answer. The last one is `Done` or `Failed`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressEvent<P, D> {
    Progress(P),
    Done(D),
    Failed(Refusal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexed {
    pub records: u64,
}

/// A folder with a sentence model, as the server sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelFolder {
    /// Its absolute path.
    pub folder: String,
}

/// The sentence model, and how far its vectors are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelState {
    /// What it is called.
    pub name: String,
    /// How long its vectors are.
    pub dimensions: usize,
    /// Records that have their vectors.
    pub embedded: u64,
    /// All records.
    pub records: u64,
    /// Vectors.
    pub vectors: u64,
}

/// How many records have their vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Embedded {
    /// Records.
    pub records: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Tombstones whose content and key are gone.
    pub tombstones: u64,
    /// Blobs that no record refers to any more.
    pub blobs: u64,
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
    pub damaged: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The rollback that was accepted; `None` if there was none.
    pub rolled_back: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewGrant {
    /// The client; `None` for a grant without a client of its own.
    pub client: Option<String>,
    /// When it ends, RFC 3339; `None` for the default.
    pub expires_at: Option<String>,
    pub selection: GrantSelection,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantSelection {
    Flags(grants::Flags),
    /// By RFC 9396 authorization details.
    Details(String),
    /// By the name of a template.
    Template(String),
}

/// A template to keep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewTemplate {
    pub name: String,
    /// The grant or package whose selection it keeps.
    pub from: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct NewOwnerToken {
    pub ttl_seconds: u64,
}

/// A new password for the owner's pages. It has no `Debug`, so that nothing prints it.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewPassword {
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// The public URL; `None` if nobody listens.
    pub public_url: Option<String>,
}

/// A link that signs in once. It has no `Debug`, so that nothing prints it by accident.
#[derive(Clone, Serialize, Deserialize)]
pub struct SignInLink {
    pub link: String,
}

/// What the owner decides about an ask: for how long what was shown is allowed, or not at all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AskDecision {
    pub id: String,
    /// Of the proposal that was shown.
    pub digest: Option<String>,
    /// `None` says no.
    pub allowance: Option<grants::step_up::Allowance>,
}

/// Whether the client of a grant may ask for more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AskingChange {
    /// A grant or a package.
    pub id: String,
    pub may_ask: bool,
}

/// How much may be read under each grant of a grant or package in a day.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BudgetChange {
    pub id: String,
    pub budget: grants::budget::Budget,
}

/// Whether a grant or package can be used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PauseChange {
    pub id: String,
    pub is_paused: bool,
}
