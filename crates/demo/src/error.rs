//! Why the sample life could not be made or loaded.

use contract::declaration::DeclarationErrors;
use contract::id::IdError;
use ingest::ImportError;
use store::StoreError;
use thiserror::Error;

/// Why the sample life could not be made or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The bundled story is no longer what the program expects, or a record cannot be written as JSON.
    #[error("the bundled sample data cannot be used: {0}")]
    Data(#[from] serde_json::Error),
    /// The bundled story says something the program cannot place.
    #[error("the bundled story cannot be used: {0}")]
    Story(String),
    #[error("a bundled declaration cannot be used: {0}")]
    Declaration(#[from] DeclarationErrors),
    #[error("a bundled id cannot be used: {0}")]
    Id(String),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("line {line} of the sample data for '{connection}' was refused: {message}")]
    Refused {
        connection: &'static str,
        line: u64,
        message: String,
    },
}

impl From<IdError> for DemoError {
    fn from(error: IdError) -> Self {
        Self::Id(error.to_string())
    }
}
