//! What never becomes a request: a head that is too long, or no HTTP at all. The protocol's machinery answers it before
//! any route could, with a status and nothing else, and its limit on addresses cannot be moved. So its answer is held back
//! on the way out, and once the connection has ended told like every other failure.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::metrics::NO_ROUTE;
use crate::observe::{new_request_id, stamp, told};
use crate::patience::Patience;
use crate::problem::Problem;

/// How long telling may take.
const TELLING: Duration = Duration::from_secs(5);
/// How much of what is still being sent is read, so that the answer is not lost when the connection closes.
const LEFT_OVER: u64 = 4 * 1024 * 1024;

/// A stream whose last answer may be held back.
pub(crate) struct Wire<S>(Arc<Mutex<State<S>>>);

/// The same stream, for after the connection.
pub(crate) struct Rest<S>(Arc<Mutex<State<S>>>);

struct State<S> {
    stream: S,
    /// An answer that nobody of ours wrote, as it seems.
    held: Vec<u8>,
    patience: Patience,
}

/// Splits a stream into what the connection speaks through and what remains afterwards. Where whoever reads takes nothing
/// for so long, the connection ends.
pub(crate) fn wired<S>(stream: S, patience: Option<Duration>) -> (Wire<S>, Rest<S>) {
    let state = Arc::new(Mutex::new(State {
        stream,
        held: Vec::new(),
        patience: Patience::of(patience),
    }));
    (Wire(Arc::clone(&state)), Rest(state))
}

fn lock<S>(state: &Mutex<State<S>>) -> MutexGuard<'_, State<S>> {
    // Nothing in here panics, and a stream that broke says so itself.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncWrite + Unpin> State<S> {
    /// Writes, as long as somebody takes what is written.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        let written = write(Pin::new(&mut self.stream), context);
        self.patience.after(context, written)
    }

    /// Sends what was held back: more has come, so it was part of an answer after all.
    fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.held.is_empty() {
            let sent = Pin::new(&mut self.stream).poll_write(context, &self.held);
            let sent = ready!(self.patience.after(context, sent))?;
            if sent == 0 {
                return Poll::Ready(Err(Error::from(ErrorKind::WriteZero)));
            }
            self.held.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let mut state = lock(&self.0);
        ready!(state.poll_release(context))?;
        if bare_status(bytes).is_some() {
            state.held = bytes.to_vec();
            return Poll::Ready(Ok(bytes.len()));
        }
        state.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut written = slices.iter().filter(|slice| !slice.is_empty());
        // A bare answer comes alone.
        if let (Some(only), None) = (written.next(), written.next()) {
            return self.poll_write(context, only);
        }
        let mut state = lock(&self.0);
        ready!(state.poll_release(context))?;
        state.write(context, |stream, context| {
            stream.poll_write_vectored(context, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.0).stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = lock(&self.0);
        if !state.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut state.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Rest<S> {
    /// After the connection: tells what was not understood, if that is how it ended.
    pub(crate) async fn tell(self, ended: std::result::Result<(), hyper::Error>) {
        let Some(state) = Arc::into_inner(self.0) else {
            return;
        };
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.held.is_empty() {
            return;
        }
        let refused = ended.is_err_and(|error| error.is_parse());
        let answer = match bare_status(&state.held).filter(|_| refused) {
            Some(status) => answer(status, &state.held),
            None => state.held,
        };
        let mut stream = state.stream;
        let telling = async {
            stream.write_all(&answer).await?;
            stream.shutdown().await?;
            let mut left_over = (&mut stream).take(LEFT_OVER);
            tokio::io::copy(&mut left_over, &mut tokio::io::sink()).await
        };
        if !matches!(tokio::time::timeout(TELLING, telling).await, Ok(Ok(_))) {
            tracing::debug!("somebody did not listen to why they were not understood");
        }
    }
}

/// The status of an answer that is nothing but a status. All of ours have an id.
fn bare_status(bytes: &[u8]) -> Option<StatusCode> {
    let text = std::str::from_utf8(bytes).ok()?;
    let head = text.strip_prefix("HTTP/1.1 ")?.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.get(..3)?.parse::<StatusCode>().ok()?;
    let is_bare = |line: &str| {
        line == "content-length: 0" || line == "connection: close" || line.starts_with("date: ")
    };
    (status.is_client_error() && lines.all(is_bare)).then_some(status)
}

/// The whole answer in our form, dated like the bare one.
fn answer(status: StatusCode, bare: &[u8]) -> Vec<u8> {
    let id = new_request_id();
    let problem = Problem::of_status(status);
    let mut response = told(&problem, &id);
    stamp(response.headers_mut(), &id);
    tracing::info!(
        request_id = %id,
        operation = NO_ROUTE,
        status = status.as_u16(),
        code = problem.code(),
        "request"
    );
    let mut written = format!("HTTP/1.1 {status}\r\nconnection: close\r\n").into_bytes();
    let lines = bare.split_inclusive(|byte| *byte == b'\n');
    written.extend(lines.filter(|line| line.starts_with(b"date: ")).flatten());
    for (name, value) in response.headers() {
        written.extend_from_slice(name.as_str().as_bytes());
        written.extend_from_slice(b": ");
        written.extend_from_slice(value.as_bytes());
        written.extend_from_slice(b"\r\n");
    }
    written.extend_from_slice(b"\r\n");
    written.extend_from_slice(&problem.told(&id).1);
    written
}
