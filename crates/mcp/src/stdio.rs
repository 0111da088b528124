//! The server on standard input and output, until the input ends.

use std::io;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;

use crate::server::Server;

/// Serves until the other side closes the input. Nothing but protocol messages goes to standard output.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    let running = match server.serve(stdio_pipes()).await {
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
