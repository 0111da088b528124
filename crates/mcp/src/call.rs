//! One tool call: how it asks the resource server, and what it refuses to take from it.

use std::sync::atomic::{AtomicBool, Ordering};

use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Bearer, Body, Get, Upstream};
use serde_json::Value;

use crate::fault::Fault;

/// Whether the server has said that our credential is an owner's. Once said, nothing is read with it any more.
#[derive(Debug, Default)]
pub(crate) struct OwnerSeen(AtomicBool);

/// The means of one call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    upstream: &'a dyn Upstream,
    owner: &'a OwnerSeen,
}

/// A successful answer of the server.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) body: Value,
    pub(crate) request_id: Option<String>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(upstream: &'a dyn Upstream, owner: &'a OwnerSeen) -> Self {
        Self { upstream, owner }
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
        let tells = question.is_schema();
        let answer = self.upstream.get(question).await?;
        if !(200..300).contains(&answer.status) {
            return Err(Fault::served(answer));
        }
        let answered = Answered::of(answer)?;
        // AU-05
        if tells && Bearer::told_by(&answered.body) == Some(Bearer::Owner) {
            self.owner.0.store(true, Ordering::Relaxed);
            return Err(owner_refused());
        }
        Ok(answered)
    }
}

impl Answered {
    fn of(answer: Answer) -> Result<Self, Fault> {
        let Answer {
            status,
            request_id,
            body,
        } = answer;
        match body {
            Body::Json(body @ (Value::Object(_) | Value::Array(_))) => {
                Ok(Self { body, request_id })
            }
            Body::Json(_) | Body::Other(_) => {
                let message = "the resource server's answer is not a JSON object";
                let error = ReadError::new(ErrorCode::RsBadResponse, message).with_hint(
                    "check that the provider URL is a PDPP server; `pdpp doctor URL` tells more",
                );
                Err(Fault::from(error).with_answer(Some(status), request_id))
            }
        }
    }
}

fn owner_refused() -> Fault {
    let message = "the credential is an owner's, and owner credentials never work here";
    ReadError::new(ErrorCode::OwnerTokenRefused, message)
        .with_hint("connect with a grant instead: `pdpp connect URL`, or `pdpp grant create` on the server")
        .into()
}
