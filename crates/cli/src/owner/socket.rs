//! Over the socket of a running server.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use store::directory::LOCK;
use tokio::net::UnixStream;

use super::response::OwnerError;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;

/// How long a running server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long nothing may come before it is asked whether it still runs. Work may take longer than this.
const SILENCE: Duration = Duration::from_secs(8);
/// How long a process may take to hand the data directory over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const HAND_OVER_PATH: &str = "/owner/hand-over";

/// Keeps a connection open until its response is read.
pub(crate) struct SocketLink {
    _sender: SendRequest<Body>,
    path: PathBuf,
}

impl SocketLink {
    /// Why a response was cut off: the server ended, or it runs and could not continue.
    pub(super) fn error(&self) -> OwnerError {
        why_silent(&self.path)
    }

    /// Waits for more of the answer, for as long as the server lives.
    pub(super) async fn unless_hung<T>(
        &self,
        more: impl Future<Output = T>,
    ) -> Result<T, OwnerError> {
        unless_hung(&self.path, more).await
    }
}

/// Waits for something, and looks from time to time whether the server still lives: one that was stopped, or hangs, keeps its
/// socket and says nothing.
async fn unless_hung<T>(path: &Path, awaited: impl Future<Output = T>) -> Result<T, OwnerError> {
    let mut awaited = pin!(awaited);
    loop {
        match tokio::time::timeout(SILENCE, &mut awaited).await {
            Ok(come) => return Ok(come),
            Err(_) if answers(path).is_ok() => {}
            Err(_) => return Err(hung(path).into()),
        }
    }
}

fn hung(path: &Path) -> Failure {
    let lock = path.with_file_name(LOCK);
    let holder = std::fs::read_to_string(&lock).unwrap_or_default();
    let holder = match holder.trim() {
        "" => "the process that holds the data directory",
        named => named,
    };
    let silent = (SILENCE + ANSWER_TIMEOUT).as_secs();
    let end = match process_of(holder) {
        Some(id) => {
            format!("if it does not come back, end it with `kill -KILL {id}` and start it again")
        }
        None => "if it does not come back, end it and start it again".to_owned(),
    };
    Failure::new(format!(
        "{} does not answer: for {silent} seconds nothing came",
        visible(holder)
    ))
    .hint("it may be stopped, or wait for a disk that hangs: look at it with `ps` and try again")
    .hint(format!("{end}; what was acknowledged is kept"))
}

/// The id in `pdpp serve (process 17)`.
fn process_of(holder: &str) -> Option<u32> {
    let (_, id) = holder.rsplit_once("(process ")?;
    id.strip_suffix(')')?.parse().ok()
}

/// Asks whoever holds the directory to hand it over, and waits until they have.
pub(super) fn ask_to_hand_over(path: &Path) -> io::Result<()> {
    let mut stream = BlockingStream::connect(path)?;
    stream.set_read_timeout(Some(HAND_OVER_TIMEOUT))?;
    let head = "host: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    write!(stream, "POST {HAND_OVER_PATH} HTTP/1.1\r\n{head}")?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// Whether a server that stopped answering has ended.
fn why_silent(path: &Path) -> OwnerError {
    match answers(path) {
        Ok(()) => OwnerError::BrokenOff,
        Err(_) => OwnerError::Lost,
    }
}

/// Waits for a first byte. An accepted connection proves nothing: the socket of a process that is being killed accepts
/// connections for a moment longer.
fn answers(path: &Path) -> io::Result<()> {
    let mut stream = BlockingStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    stream.read_exact(&mut [0])
}

/// Whether a server answers there. A socket that a killed server left behind counts as none.
pub(super) fn is_alive(path: &Path) -> CommandResult<bool> {
    match BlockingStream::connect(path) {
        Ok(_) => Ok(true),
        // Where not even the folder can be looked into, opening it says so better.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && path.symlink_metadata().is_ok() =>
        {
            let message = format!("the socket {} cannot be used: {error}", path.display());
            Err(Failure::new(message).hint("run the command as the user who runs `pdpp serve`"))
        }
        Err(_) => Ok(false),
    }
}

pub(super) async fn send(
    path: &Path,
    request: Request<Body>,
) -> Result<(Response<Body>, SocketLink), OwnerError> {
    let stream = UnixStream::connect(path)
        .await
        .map_err(|_| OwnerError::Lost)?;
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|_| OwnerError::Lost)?;
    // How it ends is seen where the answer is read.
    tokio::spawn(async { drop(connection.await) });
    let response = unless_hung(path, sender.send_request(request)).await?;
    let response = response.map_err(|_| why_silent(path))?.map(Body::new);
    let link = SocketLink {
        _sender: sender,
        path: path.to_owned(),
    };
    Ok((response, link))
}
