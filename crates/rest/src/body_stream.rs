//! Bridges between asynchronous bodies and blocking readers, a few chunks at a time in either direction.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many chunks may be queued between the two sides.
const QUEUED_CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 64 * 1024;

/// Why a body did not arrive whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    /// The sender paused for too long.
    TooSlow,
    Broken,
}

/// A chunk of a body, or its end. A channel that closes without an `End` was abandoned.
enum Chunk {
    Bytes(Bytes),
    End,
    BodyError(BodyError),
}

/// The blocking side of an incoming body.
pub(crate) struct BodyReader {
    chunks: Receiver<Chunk>,
    current: Bytes,
    ended: bool,
}

/// The asynchronous side of an incoming body.
pub(crate) struct BodyPump {
    chunks: Sender<Chunk>,
    limit: u64,
    pause: Duration,
}

/// Both sides of an incoming body of at most `limit` bytes.
pub(crate) fn incoming_body(limit: u64, pause: Duration) -> (BodyPump, BodyReader) {
    let (sender, receiver) = channel(QUEUED_CHUNKS);
    let pump = BodyPump {
        chunks: sender,
        limit,
        pause,
    };
    let reader = BodyReader {
        chunks: receiver,
        current: Bytes::new(),
        ended: false,
    };
    (pump, reader)
}

impl BodyPump {
    /// Forwards the body until its end, or until the reader is dropped.
    pub(crate) async fn run(self, body: &mut Body) {
        let mut left = self.limit;
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let chunk = match tokio::time::timeout(self.pause, frame).await {
                Err(_) => Chunk::BodyError(BodyError::TooSlow),
                Ok(None) => Chunk::End,
                Ok(Some(Err(_))) => Chunk::BodyError(BodyError::Broken),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) if bytes.len() as u64 > left => Chunk::BodyError(BodyError::TooLarge),
                    Ok(bytes) => {
                        left -= bytes.len() as u64;
                        Chunk::Bytes(bytes)
                    }
                    // Trailers say nothing we need.
                    Err(_) => continue,
                },
            };
            let last = !matches!(chunk, Chunk::Bytes(_));
            if self.chunks.send(chunk).await.is_err() || last {
                return;
            }
        }
    }
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.chunks.blocking_recv() {
                Some(Chunk::Bytes(bytes)) => self.current = bytes,
                Some(Chunk::End) => self.ended = true,
                Some(Chunk::BodyError(error)) => return Err(error.into()),
                None => return Err(BodyError::Broken.into()),
            }
        }
        let length = buffer.len().min(self.current.len());
        let chunk = self.current.split_to(length);
        if let Some(part) = buffer.get_mut(..length) {
            part.copy_from_slice(&chunk);
        }
        Ok(length)
    }
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is larger than allowed",
            Self::TooSlow => "the body did not arrive in time",
            Self::Broken => "the body did not arrive whole",
        })
    }
}

impl std::error::Error for BodyError {}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> Self {
        io::Error::other(error)
    }
}

impl BodyError {
    /// The body error behind an I/O error, if there is one.
    pub(crate) fn from_io(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// A reader that fails beyond so many bytes or lines.
pub(crate) struct Bounded<R> {
    pub(crate) reader: R,
    pub(crate) bytes_left: u64,
    pub(crate) lines_left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        let chunk = buffer.iter().take(length);
        let lines = chunk.filter(|byte| **byte == b'\n').count() as u64;
        let take = |left: u64, taken: u64| left.checked_sub(taken).ok_or(BodyError::TooLarge);
        self.bytes_left = take(self.bytes_left, length as u64)?;
        self.lines_left = take(self.lines_left, lines)?;
        Ok(length)
    }
}

/// An outgoing body, fed by a channel.
struct ChunkStream {
    first: Option<Bytes>,
    rest: Receiver<io::Result<Bytes>>,
}

impl Stream for ChunkStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.rest.poll_recv(context),
        }
    }
}

pub(crate) fn channel_body() -> (Sender<io::Result<Bytes>>, Body) {
    let (sender, rest) = chunk_channel();
    (sender, Body::from_stream(ChunkStream { first: None, rest }))
}

pub(crate) fn chunk_channel() -> (Sender<io::Result<Bytes>>, Receiver<io::Result<Bytes>>) {
    channel(QUEUED_CHUNKS)
}

/// A body whose first chunk has arrived. An error before that is returned here, not in the body.
pub(crate) async fn start_body(mut rest: Receiver<io::Result<Bytes>>) -> io::Result<Body> {
    let first = rest.recv().await.transpose()?;
    Ok(Body::from_stream(ChunkStream { first, rest }))
}

/// Reads and drops the rest of a body, so that its sender is not blocked before it reads the answer.
pub(crate) async fn discard(mut body: Body) {
    while let Some(Ok(_)) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {}
}

/// A body of `length` bytes from a reader, after skipping `skip` bytes.
pub(crate) fn outgoing_body(mut reader: Box<dyn Read + Send>, skip: u64, length: u64) -> Body {
    let (sender, body) = channel_body();
    tokio::task::spawn_blocking(move || {
        if let Err(error) = io::copy(&mut reader.by_ref().take(skip), &mut io::sink()) {
            let _ = sender.blocking_send(Err(error));
            return;
        }
        let mut wanted = reader.take(length);
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match wanted.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => {
                    chunk.truncate(read);
                    Ok(Bytes::from(chunk))
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    body
}
