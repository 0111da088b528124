//! Bytes between asynchronous bodies and the blocking readers of the store, a few pieces at a time in either direction.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces that may wait between the two sides.
const WAITING: usize = 4;
/// The size of an outgoing piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Why a body did not arrive whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// There is more of it than allowed.
    TooLarge,
    /// The sender paused for too long.
    TooSlow,
    /// The connection broke.
    Broken,
}

/// A piece of a body, or its end. A channel that closes without an end was abandoned.
enum Piece {
    Bytes(Bytes),
    End,
    Lost(Lost),
}

/// The blocking side of an incoming body.
pub(crate) struct BodyReader {
    pieces: Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

/// The asynchronous side of an incoming body.
pub(crate) struct BodyPump {
    pieces: Sender<Piece>,
    limit: u64,
    pause: Duration,
}

/// Both sides of an incoming body of at most `limit` bytes.
pub(crate) fn incoming(limit: u64, pause: Duration) -> (BodyPump, BodyReader) {
    let (sender, receiver) = channel(WAITING);
    let pump = BodyPump {
        pieces: sender,
        limit,
        pause,
    };
    let reader = BodyReader {
        pieces: receiver,
        current: Bytes::new(),
        ended: false,
    };
    (pump, reader)
}

impl BodyPump {
    /// Passes the body on until its end, or until the reader wants no more.
    pub(crate) async fn run(self, body: &mut Body) {
        let mut left = self.limit;
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let piece = match tokio::time::timeout(self.pause, frame).await {
                Err(_) => Piece::Lost(Lost::TooSlow),
                Ok(None) => Piece::End,
                Ok(Some(Err(_))) => Piece::Lost(Lost::Broken),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) if bytes.len() as u64 > left => Piece::Lost(Lost::TooLarge),
                    Ok(bytes) => {
                        left -= bytes.len() as u64;
                        Piece::Bytes(bytes)
                    }
                    // Trailers say nothing we need.
                    Err(_) => continue,
                },
            };
            let last = !matches!(piece, Piece::Bytes(_));
            if self.pieces.send(piece).await.is_err() || last {
                return;
            }
        }
    }
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => self.current = bytes,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Lost(lost)) => return Err(lost.into()),
                None => return Err(Lost::Broken.into()),
            }
        }
        let length = buffer.len().min(self.current.len());
        let piece = self.current.split_to(length);
        if let Some(part) = buffer.get_mut(..length) {
            part.copy_from_slice(&piece);
        }
        Ok(length)
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is larger than allowed",
            Self::TooSlow => "the body did not arrive in time",
            Self::Broken => "the body did not arrive whole",
        })
    }
}

impl std::error::Error for Lost {}

impl From<Lost> for io::Error {
    fn from(lost: Lost) -> Self {
        io::Error::other(lost)
    }
}

impl Lost {
    /// What was lost, if that is why reading failed.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// A reader that refuses to give more than so many bytes and lines.
pub(crate) struct Bounded<R> {
    pub(crate) reader: R,
    pub(crate) bytes_left: u64,
    pub(crate) lines_left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        let piece = buffer.iter().take(length);
        let lines = piece.filter(|byte| **byte == b'\n').count() as u64;
        let take = |left: u64, taken: u64| left.checked_sub(taken).ok_or(Lost::TooLarge);
        self.bytes_left = take(self.bytes_left, length as u64)?;
        self.lines_left = take(self.lines_left, lines)?;
        Ok(length)
    }
}

/// The outgoing side: pieces that a blocking reader gives, as a body.
struct Pieces {
    first: Option<Bytes>,
    rest: Receiver<io::Result<Bytes>>,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.rest.poll_recv(context),
        }
    }
}

/// A body, and where its pieces are put.
pub(crate) fn channelled() -> (Sender<io::Result<Bytes>>, Body) {
    let (sender, rest) = pieces();
    (sender, Body::from_stream(Pieces { first: None, rest }))
}

/// Where pieces are put, and where they come out.
pub(crate) fn pieces() -> (Sender<io::Result<Bytes>>, Receiver<io::Result<Bytes>>) {
    channel(WAITING)
}

/// A body whose first piece is there already. What fails before it fails here.
pub(crate) async fn begun(mut rest: Receiver<io::Result<Bytes>>) -> io::Result<Body> {
    let first = rest.recv().await.transpose()?;
    Ok(Body::from_stream(Pieces { first, rest }))
}

/// Takes what is left of a body, so that its sender can go on until it has heard the answer.
pub(crate) async fn discard(mut body: Body) {
    while let Some(Ok(_)) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {}
}

/// A body of `length` bytes from a reader, after `skip` that are not wanted.
pub(crate) fn outgoing(mut reader: Box<dyn Read + Send>, skip: u64, length: u64) -> Body {
    let (sender, body) = channelled();
    tokio::task::spawn_blocking(move || {
        if let Err(error) = io::copy(&mut reader.by_ref().take(skip), &mut io::sink()) {
            let _ = sender.blocking_send(Err(error));
            return;
        }
        let mut wanted = reader.take(length);
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let read = match wanted.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    piece.truncate(read);
                    Ok(Bytes::from(piece))
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
