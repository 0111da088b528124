//! The response of the owner API: a document, bytes, lines, or a refusal.

use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, Response};
use rest::owner::wire::Refusal;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::socket::SocketLink;
use crate::failure::Failure;
use crate::output::visible;

/// Why a request to the owner API failed.
#[derive(Debug)]
pub(crate) enum OwnerError {
    Refused(Refused),
    /// The server went away.
    Lost,
    /// The server is running, but its response was cut off.
    BrokenOff,
    /// Something failed in this process.
    Local(Failure),
}

/// A refusal, in words for the owner.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Refused {
    /// Which row of the error table.
    #[serde(default)]
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(default)]
    hints: Vec<String>,
    /// The one hint of an error of the read contract.
    #[serde(default)]
    pub(crate) next: Option<String>,
    #[serde(default)]
    pub(crate) mistakes: Vec<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Refused,
}

pub(crate) struct OwnerResponse {
    pub(super) headers: HeaderMap,
    body: Body,
    /// Bytes after the last line that was read.
    rest: Vec<u8>,
    /// Whether it comes from another process.
    link: Option<SocketLink>,
}

impl OwnerResponse {
    /// Wraps a response; a refusal becomes an error.
    pub(super) async fn new(
        response: Response<Body>,
        link: Option<SocketLink>,
    ) -> Result<Self, OwnerError> {
        let refused = !response.status().is_success();
        let (parts, body) = response.into_parts();
        let answer = Self {
            headers: parts.headers,
            body,
            rest: Vec::new(),
            link,
        };
        if refused {
            let body: ErrorBody = answer.document().await?;
            return Err(OwnerError::Refused(body.error));
        }
        Ok(answer)
    }

    /// The next bytes, or nothing at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, OwnerError> {
        loop {
            let body = &mut self.body;
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let frame = match &self.link {
                Some(link) => link.unless_hung(frame).await?,
                None => frame.await,
            };
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    // Trailers say nothing we need.
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    let lost = self.link.as_ref().map(SocketLink::error);
                    return Err(lost.unwrap_or_else(|| Failure::new(error.to_string()).into()));
                }
            }
        }
    }

    pub(crate) async fn document<T: DeserializeOwned>(mut self) -> Result<T, OwnerError> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&whole).map_err(|_| incompatible_server())
    }

    /// The next line, a JSON document.
    pub(crate) async fn line<T: DeserializeOwned>(&mut self) -> Result<T, OwnerError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let after = self.rest.split_off(end + 1);
                let line = std::mem::replace(&mut self.rest, after);
                return serde_json::from_slice(&line).map_err(|_| incompatible_server());
            }
            let Some(chunk) = self.chunk().await? else {
                // The last line is always an outcome, so the response was cut off. In process only a panic does that,
                // and the panic hook has reported it.
                let lost = self.link.as_ref().map(SocketLink::error);
                return Err(lost.unwrap_or_else(|| Failure::REPORTED.into()));
            };
            self.rest.extend_from_slice(&chunk);
        }
    }
}

/// A server of another release may answer otherwise.
fn incompatible_server() -> OwnerError {
    let message = "the running server answers in a way this pdpp does not understand";
    Failure::new(message)
        .hint("use the same release for both: restart `pdpp serve`")
        .into()
}

impl From<Failure> for OwnerError {
    fn from(failure: Failure) -> Self {
        Self::Local(failure)
    }
}

impl From<Refusal> for OwnerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Refused {
            message: refusal.message,
            hints: refusal.hints,
            ..Refused::default()
        })
    }
}

impl From<OwnerError> for Failure {
    fn from(error: OwnerError) -> Self {
        match error {
            OwnerError::Local(failure) => failure,
            OwnerError::BrokenOff => Failure::new("the running server broke off its answer").hint(
                "the lines that `pdpp serve` prints say why; `pdpp doctor` looks for what is wrong",
            ),
            OwnerError::Lost => Failure::coded(
                69,
                "the running server ended before it had answered",
                "everything acknowledged is kept; run the command again",
            ),
            OwnerError::Refused(refused) => refused
                .hints
                .into_iter()
                .chain(refused.next)
                .fold(Failure::new(visible(&refused.message)), |failure, hint| {
                    failure.hint(visible(&hint))
                }),
        }
    }
}
