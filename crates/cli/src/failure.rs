//! Why a command did not do what was asked: one message, and hints that name the next step.

use std::fmt;
use std::io;
use std::path::Path;

use contract::error::ReadError;
use store::StoreError;

pub(crate) type CommandResult<T = ()> = Result<T, Failure>;

#[derive(Debug)]
pub(crate) enum Failure {
    Message {
        exit: u8,
        message: String,
        hints: Vec<String>,
        /// The error body of the contract, for `--json`.
        body: Option<String>,
    },
    /// Everything was printed already; this exit code.
    Reported(u8),
    /// The reader of our output has closed the pipe, which is no error.
    ClosedPipe,
}

impl Failure {
    /// Everything was printed already.
    pub(crate) const REPORTED: Self = Self::Reported(1);
    /// Everything was printed already; a usage error.
    pub(crate) const MISUSED: Self = Self::Reported(2);

    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Message {
            exit: 1,
            message: message.into(),
            hints: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn coded(exit: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(message).hint(hint).with_exit(exit)
    }

    pub(crate) fn with_exit(mut self, code: u8) -> Self {
        if let Self::Message { exit, .. } = &mut self {
            *exit = code;
        }
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Message { hints, .. } = &mut self {
            hints.push(hint.into());
        }
        self
    }

    /// Adds next steps, if there are any.
    pub(crate) fn hints(self, hints: impl IntoIterator<Item = String>) -> Self {
        hints.into_iter().fold(self, Self::hint)
    }

    /// The same for people only: where standard output speaks a protocol, nothing else stands on it.
    pub(crate) fn without_body(mut self) -> Self {
        if let Self::Message { body, .. } = &mut self {
            *body = None;
        }
        self
    }

    pub(crate) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| {
            let failure = Self::new(format!("{}: {error}", path.display()));
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    failure.hint("make room there, or name a place on another disk")
                }
                io::ErrorKind::PermissionDenied => failure.hint(
                    "this user may not use that file or folder: name another, or run the command as a user who may",
                ),
                _ => failure,
            }
        }
    }

    pub(crate) fn writing_output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::new(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Message {
            exit: error.code.exit_code(),
            body: serde_json::to_string(&serde_json::json!({"error": error})).ok(),
            message: error.message,
            hints: error.hint.into_iter().collect(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Message { message, hints, .. } = self else {
            return Ok(());
        };
        write!(f, "error: {message}")?;
        hints
            .iter()
            .try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
