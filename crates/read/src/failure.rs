//! Why a read failed: a refusal with a message for the caller, or an internal failure whose details only go to the log.

use contract::error::{ErrorCode, ReadError};
use contract::json::{JsonError, RecordBody};
use contract::seal::CursorError;
use store::StoreError;

/// The result of one step of a read.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum Failure {
    Refused(Box<ReadError>),
    Store(StoreError),
    /// For the log: a stored record is not what was accepted.
    Damaged(JsonError),
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<CursorError> for Failure {
    fn from(error: CursorError) -> Self {
        ReadError::from(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// The error as the caller may see it. Details that are not for the caller go to the log.
    pub(crate) fn into_read_error(self, operation: &'static str, is_owner: bool) -> ReadError {
        match self {
            Self::Refused(error) => *error,
            Self::Store(StoreError::BookmarkExpired) => ReadError::new(
                ErrorCode::CursorExpired,
                "this bookmark is older than the history that is kept",
            )
            .with_param("changes_since")
            .with_hint("read the stream again with changes_since=beginning"),
            // The connection was removed between two steps of this read.
            Self::Store(StoreError::UnknownConnection(_) | StoreError::UnknownStream { .. }) => {
                ReadError::new(
                    ErrorCode::ConnectionNotFound,
                    "the connection is no longer there",
                )
                .with_param("connection_id")
            }
            Self::Store(StoreError::IndexBuilding { indexed, written }) => {
                let percent = percent(indexed, written);
                let message = format!("the search index is being built, {percent} % are done");
                ReadError::new(ErrorCode::IndexBuilding, message).with_hint(
                    "ask again in a few seconds; records, pages of them and windows can be read meanwhile",
                )
            }
            Self::Store(error @ (StoreError::Full { .. } | StoreError::NoRoom { .. })) => {
                without_room(operation, &error)
            }
            Self::Store(error) if error.is_transient() => {
                tracing::error!(operation, error = %error, "the database did not answer");
                ReadError::new(ErrorCode::StorageUnavailable, error.in_public())
                    .with_cause(error.to_string())
                    .with_hint("ask again in a moment")
            }
            Self::Store(error @ (StoreError::NoModel | StoreError::Model(_))) => {
                tracing::error!(operation, error = %error, "meanings cannot be compared");
                let message = "the sentence model of this server cannot be used";
                ReadError::new(ErrorCode::ModeNotSupported, message)
                    .with_param("mode")
                    .with_cause(error.to_string())
                    .with_hint("search by words instead, without mode")
            }
            // The caller is gone and nobody reads this answer.
            Self::Store(StoreError::Stopped) => {
                tracing::debug!(operation, "a read was stopped");
                ReadError::internal()
            }
            Self::Store(StoreError::RecordDamaged { record, .. }) => {
                tracing::error!(operation, record, "a record was damaged on the disk");
                damaged(&record, is_owner)
            }
            Self::Store(error) => {
                tracing::error!(operation, error = %error, "the store could not answer");
                ReadError::internal().with_cause(error.to_string())
            }
            Self::Damaged(error) => {
                tracing::error!(operation, offset = error.offset, code = ?error.code, "a stored record is not JSON any more");
                ReadError::internal()
            }
        }
    }
}

fn without_room(operation: &'static str, error: &StoreError) -> ReadError {
    tracing::error!(operation, error = %error, "the store could not answer without room");
    let message = format!(
        "the answer needs the search index brought up to date, but {}",
        error.in_public()
    );
    ReadError::new(ErrorCode::StorageUnavailable, message)
        .with_cause(error.to_string())
        .with_hint("records, pages of them and windows can be read meanwhile; the owner of the server makes room")
}

/// Only the owner may learn which record it is: it may lie outside the grant.
fn damaged(record: &str, is_owner: bool) -> ReadError {
    if is_owner {
        let message = format!("{record}: it was damaged on the disk");
        return ReadError::new(ErrorCode::RecordDamaged, message).with_hint(
            "import the record again, or restore a backup; `pdpp doctor --thorough` lists all damage",
        );
    }
    let message = "a record that the answer needs was damaged on the server's disk";
    ReadError::new(ErrorCode::RecordDamaged, message)
        .with_hint("ask for other records; the owner of the server finds the damage with `pdpp doctor --thorough`")
}

/// Progress in whole percent. It only says 100 when everything is done.
pub(crate) fn percent(done: u64, all: u64) -> u64 {
    done.saturating_mul(100)
        .checked_div(all)
        .map_or(100, |percent| percent.min(99))
}

pub(crate) fn parse_stored(body: String) -> Result<RecordBody> {
    RecordBody::parse(body).map_err(Failure::Damaged)
}
