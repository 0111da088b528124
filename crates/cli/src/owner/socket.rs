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

use super::answer::Trouble;
use super::shown;
use crate::failure::{Failure, Outcome};

/// How long a server that lives may take to say so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// What keeps a connection open until its answer is read.
pub(crate) struct Link {
    _sender: SendRequest<Body>,
    path: PathBuf,
}

impl Link {
    /// Why an answer broke off: the server ended, or it lives and could not go on.
    pub(super) fn trouble(&self) -> Trouble {
        lost(&self.path)
    }
}

/// Whether a server that fell silent has ended.
fn lost(path: &Path) -> Trouble {
    match answers(path) {
        Ok(()) => Trouble::BrokenOff,
        Err(_) => Trouble::Lost,
    }
}

/// Asks for a sign of life. That a connection is taken is none: the socket of a process that is being killed takes them
/// for a moment longer.
fn answers(path: &Path) -> io::Result<()> {
    let mut stream = BlockingStream::connect(path)?;
    stream.set_read_timeout(Some(SIGN_OF_LIFE))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    stream.read_exact(&mut [0])
}

/// Whether a server answers there. A socket that a killed server left behind counts as none.
pub(super) fn is_alive(path: &Path) -> Outcome<bool> {
    match BlockingStream::connect(path) {
        Ok(_) => Ok(true),
        // Where not even the folder can be looked into, opening it says so better.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && path.symlink_metadata().is_ok() =>
        {
            let message = format!("the socket {} cannot be used: {error}", shown(path));
            Err(Failure::new(message).hint("run the command as the user who runs `pdpp serve`"))
        }
        Err(_) => Ok(false),
    }
}

/// Sends one request on a connection of its own.
pub(super) async fn send(
    path: &Path,
    request: Request<Body>,
) -> Result<(Response<Body>, Link), Trouble> {
    let stream = UnixStream::connect(path).await.map_err(|_| Trouble::Lost)?;
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|_| Trouble::Lost)?;
    // How it ends is seen where the answer is read.
    tokio::spawn(async { drop(connection.await) });
    let response = sender.send_request(request).await;
    let response = response.map_err(|_| lost(path))?.map(Body::new);
    let link = Link {
        _sender: sender,
        path: path.to_owned(),
    };
    Ok((response, link))
}
