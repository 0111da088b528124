//! Answers that are given while the work goes on: lines of progress and an outcome, or bytes as they come.

use std::io::{self, Write};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use contract::error::ErrorCode;
use serde::Serialize;
use tokio::sync::mpsc::Sender;

use super::wire::{Refusal, Told};
use crate::problem::Problem;
use crate::table::Outcome;
use crate::transfer::{begun, channelled, pieces};

/// Bytes gathered before they are sent.
const PIECE_BYTES: usize = 64 * 1024;

/// Where work tells how far it is.
pub(super) struct Teller(Sender<io::Result<Bytes>>);

impl Teller {
    /// A listener who is gone is told nothing, and the work goes on.
    pub(super) fn progress(&self, progress: impl Serialize) {
        self.tell(&Told::<_, ()>::Progress(progress));
    }

    fn tell<P: Serialize, D: Serialize>(&self, told: &Told<P, D>) {
        let mut line = serde_json::to_vec(told).unwrap_or_default();
        line.push(b'\n');
        let _ = self.0.blocking_send(Ok(line.into()));
    }
}

/// Runs blocking work and answers with what it tells, line by line.
pub(super) fn told<D: Serialize>(
    work: impl FnOnce(&Teller) -> Result<D, Refusal> + Send + 'static,
) -> Response {
    let (sender, body) = channelled();
    tokio::task::spawn_blocking(move || {
        let teller = Teller(sender);
        match work(&teller) {
            Ok(done) => teller.tell(&Told::<(), D>::Done(done)),
            Err(refusal) => teller.tell(&Told::<(), ()>::Failed(refusal)),
        }
    });
    answer(body, "application/x-ndjson")
}

/// Runs blocking work and answers with the bytes it writes. What fails before the first of them is refused; when it fails
/// later the answer breaks off, so that nobody takes a part for the whole.
pub(super) async fn written(
    media_type: &'static str,
    work: impl FnOnce(&mut dyn Write) -> Result<(), Refusal> + Send + 'static,
) -> Outcome {
    let (sender, receiver) = pieces();
    tokio::task::spawn_blocking(move || {
        let mut ending = Ending {
            sender: sender.clone(),
            broken: Some("the work did not come to its end".to_owned()),
        };
        let mut out = io::BufWriter::with_capacity(PIECE_BYTES, Sending(sender));
        ending.broken = work(&mut out).err().map(|refusal| refusal.message);
        if let Err(error) = out.flush() {
            tracing::debug!(%error, "nobody took the end of an answer");
        }
    });
    let begun = begun(receiver).await;
    let body = begun.map_err(|error| Problem::new(ErrorCode::InternalError, error.to_string()))?;
    Ok(answer(body, media_type))
}

fn answer(body: Body, media_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// How an answer ends: whole, or broken off, also by a panic.
struct Ending {
    sender: Sender<io::Result<Bytes>>,
    broken: Option<String>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(cause) = self.broken.take() {
            tracing::error!(cause, "an answer broke off");
            let _ = self.sender.blocking_send(Err(io::Error::other(cause)));
        }
    }
}

struct Sending(Sender<io::Result<Bytes>>);

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len())
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn whole(response: Response) -> Option<Bytes> {
        axum::body::to_bytes(response.into_body(), 1_000).await.ok()
    }

    #[tokio::test]
    async fn an_answer_that_ends_early_is_never_taken_for_the_whole() {
        let write = |out: &mut dyn Write| out.write_all(b"part").unwrap();
        let good = written("text/plain", move |out| {
            write(out);
            Ok(())
        });
        assert_eq!(whole(good.await.unwrap()).await.unwrap(), "part");
        // TR-37: what fails before anything was sent is told in its own words.
        let refused = written("text/plain", move |_| {
            Err(Refusal {
                message: "no room".to_owned(),
                hints: Vec::new(),
            })
        });
        assert_eq!(refused.await.unwrap_err().error.message, "no room");
        let refused = written("text/plain", move |out| {
            write(out);
            Err(Refusal {
                message: "no".to_owned(),
                hints: Vec::new(),
            })
        });
        assert_eq!(whole(refused.await.unwrap()).await, None);
        let broken = written("text/plain", move |out| {
            write(out);
            panic!("a defect");
        });
        assert_eq!(whole(broken.await.unwrap()).await, None);
    }
}
