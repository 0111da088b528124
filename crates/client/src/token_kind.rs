//! The kind of token. Reads use tokens of grants and never an owner's, and only the server knows the kind: ours states
//! it in a header of every answer, others in their schema. A token labelled as a client's is used at once and refused
//! by the first answer that says otherwise; for an unlabelled one the server is asked before anything is read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Bearer, Get};
use tokio::sync::Mutex;

use crate::secret::Secret;
use crate::server::Reply;

/// What the server has stated about our tokens.
#[derive(Default)]
pub(crate) struct TokenKinds {
    /// Held while the server is asked, so that it is asked once: the last token whose kind stayed unknown, and the
    /// answer.
    pub(crate) last: Mutex<Option<(Secret, Result<Reply, ReadError>)>>,
    checks: AtomicU64,
    owner: AtomicBool,
}

impl TokenKinds {
    /// Whether one of them is an owner's, which stops all further reads.
    pub(crate) fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed)
    }

    /// How often the server was asked. A caller that waited for a check need not repeat it.
    pub(crate) fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }

    pub(crate) fn count_check(&self) {
        self.checks.fetch_add(1, Ordering::Relaxed);
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

    pub(crate) fn record(&self, server: &str, stated: Option<Bearer>) -> Result<(), ReadError> {
        if stated == Some(Bearer::Owner) {
            self.owner.store(true, Ordering::Relaxed);
        }
        self.refuse_owner(server)
    }
}

/// The kind an answer states: in a header, or in its body if it is a schema.
pub(crate) fn stated_kind(header: Option<&str>, request: &Get, answer: &Answer) -> Option<Bearer> {
    let in_body = || {
        let schema = (request.is_schema() && answer.is_success()).then(|| answer.json().ok());
        Bearer::from_schema(&schema.flatten()?)
    };
    header.map(Bearer::from_kind).or_else(in_body)
}

/// The requests that show the kind, the smaller one first: older servers know only the other.
pub(crate) fn kind_requests() -> [Get; 2] {
    let whole = Get::v1(["schema"]);
    [whole.clone().with("view", Some("compact")), whole]
}

/// Whether a schema request was refused or failed, so that the kind is unknown. Other errors come from servers without
/// such a schema, which stay usable.
pub(crate) fn is_inconclusive(status: u16) -> bool {
    matches!(status, 401 | 403 | 408 | 429 | 500 | 502..)
}
