//! One tool call: how it asks the resource server, and what it refuses to take from it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Bearer, CallId, Get, Upstream};

use crate::answer::Answered;
use crate::fault::Fault;

/// Whether the server has said that our credential is an owner's. Once said, nothing is read with it any more.
#[derive(Debug, Default)]
pub(crate) struct OwnerSeen(AtomicBool);

#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    upstream: &'a dyn Upstream,
    owner: &'a OwnerSeen,
    id: CallId,
}

impl<'a> Call<'a> {
    pub(crate) fn new(upstream: &'a dyn Upstream, owner: &'a OwnerSeen) -> Self {
        Self {
            upstream,
            owner,
            // Each state has keys of its own.
            id: CallId(RandomState::new().hash_one(())),
        }
    }

    /// Whether the server ends a page where its bytes are used up, so that a short page need not be asked for again.
    pub(crate) fn pages_by_bytes(&self) -> bool {
        self.upstream.pages_by_bytes()
    }

    /// The address of the server, without a trailing slash, if it has one.
    pub(crate) fn provider_url(&self) -> Option<String> {
        self.upstream.provider_url()
    }

    /// Asks once. Anything but a JSON object or array with a success status is a fault.
    pub(crate) async fn get(&self, question: Get) -> Result<Answered, Fault> {
        if self.owner.0.load(Ordering::Relaxed) {
            return Err(owner_refused());
        }
        let is_schema = question.is_schema();
        let answer = self.upstream.get(question.in_call(self.id)).await?;
        if !answer.is_success() {
            return Err(Fault::served(&answer));
        }
        let answered = Answered::read(answer)?;
        // AU-05
        if is_schema && answered.bearer() == Some(Bearer::Owner) {
            self.owner.0.store(true, Ordering::Relaxed);
            return Err(owner_refused());
        }
        Ok(answered)
    }
}

fn owner_refused() -> Fault {
    let message = "the credential is an owner's, and owner credentials never work here";
    ReadError::new(ErrorCode::OwnerTokenRefused, message)
        .with_hint("connect with a grant instead: `pdpp connect URL`, or `pdpp grant create` on the server")
        .into()
}
