//! Whose token it is. Reads use a grant's and never an owner's, whatever a file calls it: only the server knows. Ours says so
//! in a header of every answer, others in their schema. A token that its file calls a client's is used at once and refused
//! by the first answer that says otherwise; one that nothing is said of is asked about before anything else is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Bearer, Body, Get};
use tokio::sync::Mutex;

use crate::secret::Secret;
use crate::server::Said;

/// What the server has said of our tokens.
#[derive(Default)]
pub(crate) struct Kinds {
    /// Held while the server is asked, so that it is asked once: the token of which nothing was learned the last time, and
    /// what was said instead.
    pub(crate) open: Mutex<Option<(Secret, Result<Said, ReadError>)>>,
    /// How often it was asked.
    looks: AtomicU64,
    owner: AtomicBool,
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

    /// Takes note of what an answer says of the token.
    pub(crate) fn hear(&self, server: &str, told: Option<Bearer>) -> Result<(), ReadError> {
        if told == Some(Bearer::Owner) {
            self.owner.store(true, Ordering::Relaxed);
        }
        self.refuse_owner(server)
    }
}

/// What an answer says of the token it was asked with: in a header, and where it is a schema in its body too.
pub(crate) fn told(header: Option<&str>, question: &Get, answer: &Answer) -> Option<Bearer> {
    let said = header.map(Bearer::of_kind);
    let schema = match (&answer.body, answer.status) {
        (Body::Json(schema), 200..300) if question.is_schema() => Bearer::told_by(schema),
        _ => None,
    };
    match (said, schema) {
        (Some(Bearer::Owner), _) | (_, Some(Bearer::Owner)) => Some(Bearer::Owner),
        (said, schema) => said.or(schema),
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
