//! What stops an import, as opposed to what refuses one line.

use std::io;

use store::StoreError;
use thiserror::Error;

/// Why an import could not go on. Everything acknowledged before is kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// An input cannot be read, or not understood.
    #[error("{name}: {error}")]
    Input {
        /// The file, as the caller named it.
        name: String,
        error: InputError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// The operating system could not read it.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is compressed and stops before its end.
    #[error(
        "the compressed data ends too early, the file is truncated. What was read up to there is imported; get the whole file and import it again"
    )]
    Truncated,
    /// It is compressed and its content does not match its checks.
    #[error(
        "the compressed data is damaged ({0}). What was read up to there is imported; get a good copy and import it again"
    )]
    Damaged(io::Error),
    /// It is compressed, whole, and more comes after it.
    #[error(
        "something else follows the compressed data. What is compressed is imported; look at what was put behind it"
    )]
    Followed,
    /// The name does not tell the format and the content does not either.
    #[error("{0}")]
    UnknownFormat(String),
    /// It is an export that cannot be taken apart any further.
    #[error(
        "line {line}: {message}. What stood before is imported; export it anew and import it again"
    )]
    Broken {
        /// The line in the file, from 1.
        line: u64,
        message: &'static str,
    },
    /// It is a chat, and neither its name nor its content says with whom.
    #[error(
        "nothing tells which chat it is; name the file after the person or group and import it again"
    )]
    NamelessChat,
    /// The first row of a CSV file cannot name the fields.
    #[error("the header row {0}")]
    Header(String),
}

impl From<io::Error> for InputError {
    /// Readers that know more than the system does wrap what they know; it is unwrapped here.
    fn from(error: io::Error) -> Self {
        error.downcast().unwrap_or_else(Self::Unreadable)
    }
}

impl InputError {
    pub(crate) fn named(self, name: &str) -> ImportError {
        ImportError::Input {
            name: name.to_owned(),
            error: self,
        }
    }
}
