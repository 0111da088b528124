//! What can go wrong in the store, in words an owner can act on.
//!
//! Every message names the file or the thing concerned and the next step; engine details stay in `detail` for the log.

use std::fmt;
use std::path::{Path, PathBuf};

use contract::declaration::DeclarationErrors;
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use thiserror::Error;

use crate::disk_space;

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused a file operation.
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The directory or file belongs to something else.
    #[error("{} is not a pdpp data directory: {reason}. Choose an empty folder with --data-dir.", path.display())]
    Foreign {
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// A node's folder, which holds no records, was opened as if it held them.
    #[error("{} is the folder of {node}, and no server runs on it. Start it with `pdpp serve --database`, and run the command again.", path.display())]
    OfNode {
        path: PathBuf,
        /// The node and its database, for people.
        node: String,
    },
    /// The folder that a node is to use holds records of its own.
    #[error("{} holds records of its own, and those of a node are in the database. Name another folder with --data-dir; nothing was changed.", path.display())]
    HoldsRecords { path: PathBuf },
    /// The database has other owners, and this one was not named as one to be added.
    #[error(
        "the database {place} holds the data of {others}, and nothing of {owner}. Serve it under the address it had, with --public-url, or name its owner with --owner; nothing was changed."
    )]
    UnknownOwner {
        place: String,
        owner: String,
        others: String,
    },
    #[error(
        "another node runs under the name {0:?}. Give each its own with --node; nothing was changed."
    )]
    NodeRuns(String),
    #[error(
        "a stopped node of another owner has the name {0:?}. Give this one another with --node; nothing was changed."
    )]
    NodeOfOthers(String),
    #[error("the node {0:?} is not known. `pdpp nodes` lists those that are.")]
    UnknownNode(String),
    #[error(
        "the node {0:?} runs. Stop it first, or wait a moment if it was just lost; nothing was changed."
    )]
    NodeNotStopped(String),
    /// Deleted records are erased only as far as every node has seen that they were deleted.
    #[error(
        "what was deleted last is not erased yet: {0} has not seen all of it. Start that node, or count on it no longer with `pdpp nodes forget`; then run `pdpp purge` again."
    )]
    NodesBehind(String),
    #[error(
        "an earlier release is registered: {0}. Upgrade these nodes, or count on them no longer with `pdpp nodes forget`; nothing was changed."
    )]
    OlderNodes(String),
    /// The data was written by a later release.
    #[error("{} was written by a newer pdpp (format {found}; this one reads up to {supported}). Upgrade pdpp and try again; nothing was changed.", path.display())]
    Newer {
        path: PathBuf,
        /// The format number found.
        found: i64,
        /// The newest format this release knows.
        supported: i64,
    },
    /// The file cannot be trusted any more.
    #[error("{} is damaged: {detail}. Restore it from a backup with `pdpp restore`; nothing was changed.", path.display())]
    Corrupt { path: PathBuf, detail: String },
    #[error("{record}: {} was damaged on the disk. Import the record again, or restore a backup made with `pdpp backup`; all other records are given as before.", path.display())]
    RecordDamaged { path: PathBuf, record: String },
    #[error("{} is damaged: its bytes are not those that were stored. Import what it came from again, which mends it, or restore a backup with `pdpp restore`; all else is given as before.", path.display())]
    BlobDamaged { path: PathBuf },
    /// A folder is no model, or one that cannot be used.
    #[error(transparent)]
    Model(#[from] meaning::ModelError),
    /// There is nothing to compare meanings with.
    #[error("this store has no sentence model. Add one with `pdpp model add FOLDER`.")]
    NoModel,
    /// Another process has the data directory open.
    #[error("the data directory {} is in use by {holder}. Wait until it ends, or stop it.", path.display())]
    Held { path: PathBuf, holder: String },
    /// No space is left.
    #[error("no space left while writing {}. Free some space and run the command again; everything acknowledged so far is kept.", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    #[error("the disk failed at {}: {detail}. Make a backup on another disk with `pdpp backup`, see what the system's log says of this one, and restore the backup on a disk that works; what was acknowledged is kept as far as this disk gives it back.", path.display())]
    DiskFailed { path: PathBuf, detail: String },
    /// There is less room than what was asked for needs, so it was not begun.
    #[error("{} needs {} of room and the disk has {}. Make room, or move the folder and name it with --data-dir; everything acknowledged so far is kept and can be read.", path.display(), Bytes(*needed), Bytes(*free))]
    NoRoom {
        path: PathBuf,
        needed: u64,
        free: u64,
    },
    #[error("a backup needs {} of room in {} for a copy of the records, and the disk has {}. Make room there, or name a file in a folder of another disk; nothing was written.", Bytes(*needed), path.display(), Bytes(*free))]
    NoRoomForCopy {
        path: PathBuf,
        needed: u64,
        free: u64,
    },
    /// Something was revoked, and that could be written nowhere.
    #[error(
        "it has ended for the process that was asked, which serves nothing under it any more, but that could not be written, and the next start would undo it: {cause} Then revoke it again."
    )]
    EndedInMemory {
        /// Why it could not be written.
        cause: Box<StoreError>,
    },
    /// The directory cannot be written.
    #[error("{} cannot be written: {detail}. Make it writable for this user, or choose another folder with --data-dir.", path.display())]
    ReadOnly { path: PathBuf, detail: String },
    /// This user may not read the file.
    #[error("{} cannot be read: {detail}. Run the command as the user who owns it, or give this user the right to read and write it; nothing was changed.", path.display())]
    Forbidden { path: PathBuf, detail: String },
    /// The database server cannot be reached, or has no connection to spare. Whether a change was made is not known.
    #[error(
        "the database {place} does not answer: {detail}. Try again in a moment; everything acknowledged so far is kept."
    )]
    Unavailable { place: String, detail: String },
    /// Another transaction was in the way. Nothing was changed.
    #[error(
        "the database {place} is busy with another change ({detail}). Try again; nothing was changed."
    )]
    Contended { place: String, detail: String },
    /// The server takes no writes.
    #[error(
        "the database {place} can only be read: it is a standby, or was set so. Name the primary with --database, or all servers with target_session_attrs=read-write; nothing was changed."
    )]
    DatabaseReadOnly { place: String },
    /// The server, or its address, cannot be used as it was given.
    #[error("{place} cannot be used: {detail}.")]
    DatabaseRefused { place: String, detail: String },
    /// The object storage does not answer. What was acknowledged is there.
    #[error(
        "the object storage {place} does not answer: {detail}. Try again in a moment; everything acknowledged so far is kept."
    )]
    BlobsUnavailable { place: String, detail: String },
    /// The object storage cannot be used as it was named.
    #[error(
        "the object storage {place} cannot be used: {detail}. See that --blobs names the bucket, and that AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL are those it was given."
    )]
    BlobsRefused { place: String, detail: String },
    #[error(
        "the database {place} is not one of pdpp: {reason}. Name an empty database with --database; nothing was changed."
    )]
    ForeignDatabase { place: String, reason: String },
    #[error(
        "the database {place} needs a newer pdpp (format {found}; this one knows up to {supported}). Upgrade pdpp on this node; nothing was changed."
    )]
    NewerDatabase {
        place: String,
        found: i64,
        supported: i64,
    },
    /// The database failed in a way that has no better name.
    #[error("the database {place}: {detail}")]
    Database { place: String, detail: String },
    /// What is there already would be mixed with what is moved.
    #[error(
        "the owner {owner} in the database {place} is not empty: it has {holds}. Name another with --owner, or start from an empty database; nothing was changed."
    )]
    OwnerNotEmpty {
        place: String,
        owner: String,
        /// The first table with rows.
        holds: String,
    },
    /// The store holds something that PostgreSQL cannot, or that must be looked at first.
    #[error("{} cannot be moved: {reason}; nothing was changed.", path.display())]
    NotMovable { path: PathBuf, reason: String },
    /// A name that not every database can keep.
    #[error(
        "the name of a connection cannot hold the character NUL. Leave it out; nothing was changed."
    )]
    NulInName,
    #[error("connector '{0}' is not declared. Register it with `pdpp declare FILE`.")]
    UnknownConnector(ConnectorKey),
    #[error("connection '{0}' does not exist. `pdpp connections` lists the configured ones.")]
    UnknownConnection(ConnectionId),
    #[error(
        "stream '{stream}' is not declared for connection '{connection}'. Its streams: {known}."
    )]
    UnknownStream {
        connection: ConnectionId,
        stream: StreamName,
        known: String,
    },
    #[error(
        "a connection '{0}' exists already. Choose another --id, or rename it with `pdpp connections rename`."
    )]
    ConnectionExists(ConnectionId),
    /// The declaration cannot replace the registered one.
    #[error(transparent)]
    Declaration(#[from] DeclarationErrors),
    /// A field is asked in a way its declaration does not offer.
    #[error("field '{field}' of stream '{stream}' {problem}.")]
    Unsupported {
        stream: StreamName,
        field: String,
        problem: String,
    },
    #[error(
        "this bookmark is older than the last purge of the stream. Read the stream again from the beginning."
    )]
    BookmarkExpired,
    /// The blob's bytes do not match its name, or the name is unknown.
    #[error("blob '{0}' is not stored here")]
    UnknownBlob(String),
    /// The index could not be read; it is derived anew before this reaches a caller, unless that fails as well.
    #[error("the search index {} is damaged ({detail}) and could not be rebuilt. Run `pdpp index rebuild`; the records are not affected.", path.display())]
    IndexDamaged { path: PathBuf, detail: String },
    /// The erased records cannot be read any more, but some of their bytes are still on the disk.
    #[error("it is removed and cannot be read any more, but bytes of it may still lie in {}: {detail}. `pdpp purge` tries again, and so does the next start.", path.display())]
    TracesLeft { path: PathBuf, detail: String },
    /// The index is being built, and the request cannot be answered before it is complete.
    #[error("the search index is being built: {indexed} of {written} changes are in it")]
    IndexBuilding { indexed: u64, written: u64 },
    /// The caller is gone, or timed out.
    #[error("the work was stopped")]
    Stopped,
    /// An engine failed in a way that has no better name.
    #[error("{}: {detail}", path.display())]
    Engine { path: PathBuf, detail: String },
}

/// Whether there is something that this user may not even read.
pub(crate) fn is_unreadable(path: &Path) -> bool {
    let opened = std::fs::File::open(path);
    opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// A number of bytes as people read it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1024 * 1024;
        match self.0 {
            bytes if bytes >= 10 * 1024 * MIB => write!(f, "{} GiB", bytes.div_ceil(1024 * MIB)),
            bytes => write!(f, "{} MiB", bytes.div_ceil(MIB)),
        }
    }
}

impl StoreError {
    /// Sorts a file error into "full", "failed", "read-only" and the rest.
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.into();
        if source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
            return Self::DiskFailed {
                path,
                detail: source.to_string(),
            };
        }
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                disk_space::full(path)
            }
            ErrorKind::PermissionDenied if is_unreadable(&path) => Self::Forbidden {
                path,
                detail: source.to_string(),
            },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly {
                path,
                detail: source.to_string(),
            },
            _ => Self::Io { path, source },
        }
    }

    /// Whether the same request may succeed in a moment, perhaps at another server. While a standby takes over, a database can only
    /// be read; while its password is changed, it lets some in.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Contended { .. }
                | Self::DatabaseReadOnly { .. }
                | Self::DatabaseRefused { .. }
                | Self::BlobsUnavailable { .. }
        )
    }

    /// What clients may be told: the cause and the figure, without names of files and servers.
    pub fn in_public(&self) -> String {
        match self {
            Self::NoRoom { needed, free, .. } => format!(
                "the server's disk has {} of room left, and {} are needed",
                Bytes(*free),
                Bytes(*needed)
            ),
            Self::Full { .. } => "the server's disk is full".to_owned(),
            Self::DiskFailed { .. } => "the server's disk failed".to_owned(),
            Self::Unavailable { .. } => "the server's database does not answer".to_owned(),
            Self::Contended { .. } => "the server's database is busy".to_owned(),
            Self::DatabaseReadOnly { .. } => "the server's database takes no writes".to_owned(),
            Self::DatabaseRefused { .. } => "the server's database refuses this server".to_owned(),
            Self::ForeignDatabase { .. } => "the server's database is not one of pdpp".to_owned(),
            Self::NewerDatabase { .. } => {
                "the server's database needs a newer release of this server".to_owned()
            }
            Self::BlobsUnavailable { .. } => "the server's storage does not answer".to_owned(),
            _ => "the server's data cannot be read or written".to_owned(),
        }
    }

    pub(crate) fn engine(path: impl Into<PathBuf>, detail: impl fmt::Display) -> Self {
        Self::Engine {
            path: path.into(),
            detail: detail.to_string(),
        }
    }

    pub(crate) fn corrupt(path: impl Into<PathBuf>, detail: impl fmt::Display) -> Self {
        Self::Corrupt {
            path: path.into(),
            detail: detail.to_string(),
        }
    }

    /// Wraps a file operation's error with the path it concerned.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::io(path, source)
    }
}
