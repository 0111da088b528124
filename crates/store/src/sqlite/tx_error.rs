//! How work in a transaction ends.

use super::database::Database;
use crate::StoreError;

/// Why work in a transaction ended. The engine's errors become the store's once, where the transaction does.
#[derive(Debug)]
pub(crate) enum TxError {
    Sql(rusqlite::Error),
    Store(StoreError),
}

pub(crate) type TxResult<T> = Result<T, TxError>;

impl TxError {
    pub(crate) fn into_store_error(self, database: &Database) -> StoreError {
        match self {
            Self::Sql(error) => database.failed()(error),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for TxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for TxError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
