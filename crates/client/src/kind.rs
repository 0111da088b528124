//! Whose token it is. An agent reads with a grant's and never with an owner's, whatever the file calls it: only the server
//! knows, and its schema says so. So a token that the server has not spoken of is asked about before anything else is
//! asked with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Bearer, Body, Get};
use tokio::sync::Mutex;

use crate::secret::Secret;
use crate::server::Said;

/// What the server has said of our tokens.
#[derive(Default)]
pub(crate) struct Kinds {
    /// Held while the server is asked, so that it is asked once.
    pub(crate) last: Mutex<Last>,
    /// How often it was asked.
    looks: AtomicU64,
    owner: AtomicBool,
}

/// What came of it the last time.
#[derive(Default)]
pub(crate) struct Last {
    /// The token that may be read with.
    pub(crate) passed: Option<Secret>,
    /// The token of which nothing was learned, and what was said instead.
    pub(crate) open: Option<(Secret, Result<Said, ReadError>)>,
}

impl Kinds {
    /// Whether one of them is an owner's. Nothing is asked any more then.
    pub(crate) fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed)
    }

    /// How often the server was asked. Whoever waited while it was need not ask again.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    pub(crate) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refuse_owner(&self, server: &str) -> Result<(), ReadError> {
        if !self.is_owner() {
            return Ok(());
        }
        let message = format!(
            "{server} says that the credential is an owner's, and owner credentials never work here"
        );
        Err(ReadError::new(ErrorCode::OwnerTokenRefused, message).with_hint(format!(
            "connect with a grant instead: `pdpp connect {server}`, or `pdpp grant create` on the server"
        )))
    }

    /// Takes note of what an answer says of the token, and gives whether it says anything.
    pub(crate) fn hear(&self, server: &str, answer: &Answer) -> Result<bool, ReadError> {
        let told = match (&answer.body, answer.status) {
            (Body::Json(schema), 200..300) => Bearer::told_by(schema),
            _ => None,
        };
        if told == Some(Bearer::Owner) {
            self.owner.store(true, Ordering::Relaxed);
        }
        self.refuse_owner(server)?;
        Ok(told.is_some())
    }
}

/// The questions that tell, the small one first: an older server has only the other.
pub(crate) fn questions() -> [Get; 2] {
    let whole = Get::v1(["schema"]);
    [whole.clone().with("view", Some("compact")), whole]
}

/// Whether the schema was refused or failed, so that nothing is known. Other answers are those of a server that has no
/// such schema and tells no kind; it stays usable.
pub(crate) fn is_open(status: u16) -> bool {
    matches!(status, 401 | 403 | 408 | 429 | 500 | 502..)
}
