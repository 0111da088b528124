//! Over the socket of a running server.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::response::OwnerError;
use crate::failure::{CommandResult, Failure};

/// How long a running server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Sends one request on a connection of its own.
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
    let response = sender.send_request(request).await;
    let response = response.map_err(|_| why_silent(path))?.map(Body::new);
    let link = SocketLink {
        _sender: sender,
        path: path.to_owned(),
    };
    Ok((response, link))
}
