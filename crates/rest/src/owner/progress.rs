//! Streamed answers: progress events followed by a result, or bytes as they are produced.

use std::io::{self, Write};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use contract::error::ErrorCode;
use serde::Serialize;
use tokio::sync::mpsc::Sender;

use super::wire::{ProgressEvent, Refusal};
use crate::body_stream::{channel_body, chunk_channel, start_body};
use crate::problem::Problem;
use crate::table::HandlerResult;

const CHUNK_BYTES: usize = 64 * 1024;

pub(super) struct ProgressSender(Sender<io::Result<Bytes>>);

impl ProgressSender {
    /// Without a listener the event is dropped and the work goes on.
    pub(super) fn report(&self, progress: impl Serialize) {
        self.send(&ProgressEvent::<_, ()>::Progress(progress));
    }

    fn send<P: Serialize, D: Serialize>(&self, event: &ProgressEvent<P, D>) {
        let mut line = match serde_json::to_vec(event) {
            Ok(line) => line,
            Err(error) => {
                // The stream then ends without a result, which its reader takes for a failure.
                tracing::error!(%error, "a progress event cannot be written as JSON");
                return;
            }
        };
        line.push(b'\n');
        let _ = self.0.blocking_send(Ok(line.into()));
    }
}

/// Runs blocking work and streams its progress events.
pub(super) fn stream_progress<D: Serialize>(
    work: impl FnOnce(&ProgressSender) -> Result<D, Refusal> + Send + 'static,
) -> Response {
    let (sender, body) = channel_body();
    tokio::task::spawn_blocking(move || {
        let progress = ProgressSender(sender);
        match work(&progress) {
            Ok(done) => progress.send(&ProgressEvent::<(), D>::Done(done)),
            Err(refusal) => progress.send(&ProgressEvent::<(), ()>::Failed(refusal)),
        }
    });
    response(body, "application/x-ndjson")
}

/// Runs blocking work and streams the bytes it writes. An error before the first byte becomes a status; a later one
/// breaks the body off, so that nobody takes a part for the whole.
pub(crate) async fn stream_bytes(
    media_type: &'static str,
    work: impl FnOnce(&mut dyn Write) -> Result<(), Refusal> + Send + 'static,
) -> HandlerResult {
    let (sender, receiver) = chunk_channel();
    tokio::task::spawn_blocking(move || {
        let mut guard = CloseGuard {
            sender: sender.clone(),
            broken: Some("the work did not come to its end".to_owned()),
        };
        let mut out = io::BufWriter::with_capacity(CHUNK_BYTES, ChannelWriter(sender));
        guard.broken = work(&mut out).err().map(|refusal| refusal.message);
        if let Err(error) = out.flush() {
            tracing::debug!(%error, "nobody took the end of an answer");
        }
    });
    let begun = start_body(receiver).await;
    let body = begun.map_err(|error| Problem::new(ErrorCode::InternalError, error.to_string()))?;
    Ok(response(body, media_type))
}

fn response(body: Body, media_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Ends the stream when dropped: complete, or broken off, also by a panic.
struct CloseGuard {
    sender: Sender<io::Result<Bytes>>,
    broken: Option<String>,
}

impl Drop for CloseGuard {
    fn drop(&mut self) {
        if let Some(cause) = self.broken.take() {
            tracing::error!(cause, "an answer broke off");
            let _ = self.sender.blocking_send(Err(io::Error::other(cause)));
        }
    }
}

struct ChannelWriter(Sender<io::Result<Bytes>>);

impl Write for ChannelWriter {
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
        let good = stream_bytes("text/plain", move |out| {
            write(out);
            Ok(())
        });
        assert_eq!(whole(good.await.unwrap()).await.unwrap(), "part");
        // TR-37: what fails before anything was sent is told in its own words.
        let refused = stream_bytes("text/plain", move |_| {
            Err(Refusal {
                message: "no room".to_owned(),
                hints: Vec::new(),
            })
        });
        assert_eq!(refused.await.unwrap_err().error.message, "no room");
        let refused = stream_bytes("text/plain", move |out| {
            write(out);
            Err(Refusal {
                message: "no".to_owned(),
                hints: Vec::new(),
            })
        });
        assert_eq!(whole(refused.await.unwrap()).await, None);
        let broken = stream_bytes("text/plain", move |out| {
            write(out);
            panic!("a defect");
        });
        assert_eq!(whole(broken.await.unwrap()).await, None);
    }
}
