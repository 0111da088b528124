//! Connections that send no valid HTTP request: a head that is too long, or something else than HTTP. The HTTP library
//! answers them itself with a bare status line, before any route could. That answer is held back, and replaced by the
//! structured error when the connection has ended.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::metrics::NO_ROUTE;
use crate::observe::{error_response, new_request_id, set_standard_headers};
use crate::problem::Problem;
use crate::write_timeout::WriteTimeout;

const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of the client's remaining input is read: closing with unread input would discard the answer.
const MAX_DRAINED_BYTES: u64 = 4 * 1024 * 1024;

/// A stream that holds back a bare error of the HTTP library.
pub(crate) struct GuardedStream<S>(Arc<Mutex<State<S>>>);

/// The same stream, for use after the connection has ended.
pub(crate) struct AfterConnection<S>(Arc<Mutex<State<S>>>);

struct State<S> {
    stream: S,
    /// A bare status line that probably comes from the HTTP library.
    held: Vec<u8>,
    write_timeout: WriteTimeout,
}

/// Splits a stream into the part the connection uses and the part for afterwards. The connection ends when the client
/// reads nothing for `write_timeout`.
pub(crate) fn guard_stream<S>(
    stream: S,
    write_timeout: Option<Duration>,
) -> (GuardedStream<S>, AfterConnection<S>) {
    let state = Arc::new(Mutex::new(State {
        stream,
        held: Vec::new(),
        write_timeout: WriteTimeout::new(write_timeout),
    }));
    (GuardedStream(Arc::clone(&state)), AfterConnection(state))
}

fn lock<S>(state: &Mutex<State<S>>) -> MutexGuard<'_, State<S>> {
    // No code panics while it holds the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncWrite + Unpin> State<S> {
    /// Writes, within the write timeout.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        let written = write(Pin::new(&mut self.stream), context);
        self.write_timeout.check(context, written)
    }

    /// Sends what was held back: more output follows, so it was part of a response.
    fn poll_release(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while !self.held.is_empty() {
            let sent = Pin::new(&mut self.stream).poll_write(context, &self.held);
            let sent = ready!(self.write_timeout.check(context, sent))?;
            if sent == 0 {
                return Poll::Ready(Err(Error::from(ErrorKind::WriteZero)));
            }
            self.held.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
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
        // A bare status line is written alone.
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

impl<S: AsyncRead + AsyncWrite + Unpin> AfterConnection<S> {
    /// After the connection: sends the structured error if the request could not be parsed.
    pub(crate) async fn answer_malformed(self, ended: std::result::Result<(), hyper::Error>) {
        let Some(state) = Arc::into_inner(self.0) else {
            return;
        };
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.held.is_empty() {
            return;
        }
        let refused = ended.is_err_and(|error| error.is_parse());
        let response = match bare_status(&state.held).filter(|_| refused) {
            Some(status) => error_bytes(status, &state.held),
            None => state.held,
        };
        let mut stream = state.stream;
        let sending = async {
            stream.write_all(&response).await?;
            stream.shutdown().await?;
            let mut remainder = (&mut stream).take(MAX_DRAINED_BYTES);
            tokio::io::copy(&mut remainder, &mut tokio::io::sink()).await
        };
        if !matches!(tokio::time::timeout(SEND_TIMEOUT, sending).await, Ok(Ok(_))) {
            tracing::debug!("somebody did not listen to why they were not understood");
        }
    }
}

/// The status of a response that has no other content. All responses of ours have an id.
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

/// The structured error as a complete response, with the date of the bare one.
fn error_bytes(status: StatusCode, bare: &[u8]) -> Vec<u8> {
    let id = new_request_id();
    let problem = Problem::from_status(status);
    let mut response = error_response(&problem, &id);
    set_standard_headers(response.headers_mut(), &id);
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
    written.extend_from_slice(&problem.to_body(&id).1);
    written
}
