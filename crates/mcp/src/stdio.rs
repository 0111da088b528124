//! The server on standard input and output, until the input ends.

use std::io;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::Server;

/// Serves until the other side closes the input. Nothing but protocol messages goes to standard output.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    let (input, output) = stdio_pipes();
    serve_pipe(server, input, output).await
}

/// Serves on any pair of pipes, a message per line, until the input ends.
pub async fn serve_pipe<R, W>(server: Server, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // The other side left before it had said anything.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    running
        .waiting()
        .await
        .map(|_| ())
        .map_err(|error| io::Error::other(error.to_string()))
}
