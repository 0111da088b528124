//! What comes back: a document, bytes, lines, or a refusal.

use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, Response};
use rest::owner::wire::Refusal;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::socket::Link;
use crate::failure::Failure;
use crate::output::visible;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It was refused or failed.
    Refused(Refused),
    /// The server went away.
    Lost,
    /// The server is there, and its answer ended before its end.
    BrokenOff,
    /// Something went wrong on this side.
    Here(Failure),
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
    /// Where several mistakes were made, each on its own.
    #[serde(default)]
    pub(crate) mistakes: Vec<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Refused,
}

/// An answer that has begun.
pub(crate) struct Answer {
    pub(super) headers: HeaderMap,
    body: Body,
    /// Bytes after the last line that was read.
    rest: Vec<u8>,
    /// Whether it comes from another process.
    link: Option<Link>,
}

impl Answer {
    /// Takes what comes back, unless it is a refusal.
    pub(super) async fn of(response: Response<Body>, link: Option<Link>) -> Result<Self, Trouble> {
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
            return Err(Trouble::Refused(body.error));
        }
        Ok(answer)
    }

    /// The next bytes, or nothing at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            let body = &mut self.body;
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            match frame.await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    // Trailers say nothing we need.
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    let lost = self.link.as_ref().map(Link::trouble);
                    return Err(lost.unwrap_or_else(|| Failure::new(error.to_string()).into()));
                }
            }
        }
    }

    /// The whole as one JSON document.
    pub(crate) async fn document<T: DeserializeOwned>(mut self) -> Result<T, Trouble> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
        }
        serde_json::from_slice(&whole).map_err(|_| not_understood())
    }

    /// The next line, a JSON document.
    pub(crate) async fn line<T: DeserializeOwned>(&mut self) -> Result<T, Trouble> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let after = self.rest.split_off(end + 1);
                let line = std::mem::replace(&mut self.rest, after);
                return serde_json::from_slice(&line).map_err(|_| not_understood());
            }
            let Some(piece) = self.piece().await? else {
                // The last line is an outcome, so somebody fell silent before it. Here only a defect does that, and it
                // was told about.
                let lost = self.link.as_ref().map(Link::trouble);
                return Err(lost.unwrap_or_else(|| Failure::Reported.into()));
            };
            self.rest.extend_from_slice(&piece);
        }
    }
}

/// A server of another release may answer otherwise.
fn not_understood() -> Trouble {
    let message = "the running server answers in a way this pdpp does not understand";
    Failure::new(message)
        .hint("use the same release for both: restart `pdpp serve`")
        .into()
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Refused {
            message: refusal.message,
            hints: refusal.hints,
            ..Refused::default()
        })
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Here(failure) => failure,
            Trouble::BrokenOff => Failure::new("the running server broke off its answer").hint(
                "the lines that `pdpp serve` prints say why; `pdpp doctor` looks for what is wrong",
            ),
            Trouble::Lost => Failure::unreachable(
                "the running server ended before it had answered",
                "everything acknowledged is kept; run the command again",
            ),
            Trouble::Refused(refused) => refused
                .hints
                .into_iter()
                .chain(refused.next)
                .fold(Failure::new(visible(&refused.message)), |failure, hint| {
                    failure.hint(visible(&hint))
                }),
        }
    }
}
