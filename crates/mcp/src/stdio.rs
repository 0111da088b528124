//! The server on standard input and output, until the input ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rmcp::ServiceExt as _;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::server::Server;

/// Room for the usual answer, so that its buffer seldom grows.
const ANSWER: usize = 64 * 1024;

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
    let running = match server.serve(Lines::new(input, output)).await {
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

/// A message per line. Lines are read as the library reads them; an answer, which may be long, is written here: as one
/// buffer, at once, and taken apart only when the other side has it.
struct Lines<R: AsyncRead, W> {
    input: AsyncRwTransport<RoleServer, R, Complaints>,
    /// What the reader says of lines that are no messages.
    complaints: UnboundedReceiver<Vec<u8>>,
    /// None once it was closed.
    output: Output<W>,
}

type Output<W> = Arc<Mutex<Option<W>>>;

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(input: R, output: W) -> Self {
        let (sender, complaints) = unbounded_channel();
        Self {
            input: AsyncRwTransport::new(input, Complaints(sender)),
            complaints,
            output: Arc::new(Mutex::new(Some(output))),
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move {
            let mut line = Vec::with_capacity(ANSWER);
            serde_json::to_writer(&mut line, &message)?;
            line.push(b'\n');
            write(&output, &line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            tokio::select! {
                biased;
                Some(line) = self.complaints.recv() => write(&self.output, &line).await.ok()?,
                message = self.input.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<Option<W>>, line: &[u8]) -> io::Result<()> {
    match output.lock().await.as_mut() {
        Some(output) => {
            output.write_all(line).await?;
            output.flush().await
        }
        None => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Where the reader writes: on to the one output, in whose order it stands like any message.
struct Complaints(UnboundedSender<Vec<u8>>);

impl AsyncWrite for Complaints {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = self.0.send(bytes.to_owned());
        Poll::Ready(match sent {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use contract::upstream::Upstream;
    use tokio::io::{AsyncBufReadExt as _, BufReader, duplex, split};

    use super::*;
    use crate::record_server::RecordServer;
    use crate::server::Options;

    #[tokio::test]
    async fn a_line_that_is_no_message_is_answered_and_the_next_one_is_heard() {
        let (host, ours) = duplex(1 << 16);
        let (input, output) = split(ours);
        let upstream: Arc<dyn Upstream> = Arc::new(RecordServer::new(serde_json::json!({})));
        let server = Server::new(upstream, Options::default());
        let serving = tokio::spawn(serve_pipe(server, input, output));
        let (reader, mut writer) = split(host);
        let mut lines = BufReader::new(reader).lines();
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let odd = r#"{"jsonrpc":"2.0","id":true}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        for line in [hello, ready, odd, list] {
            writer.write_all(line.as_bytes()).await.unwrap();
            writer.write_all(b"\n").await.unwrap();
        }
        let mut told = Vec::new();
        while told.len() < 3 {
            told.push(lines.next_line().await.unwrap().unwrap());
        }
        assert!(told[0].contains("serverInfo"), "{}", told[0]);
        let complaint = told.iter().find(|line| line.contains("-32600"));
        assert!(complaint.is_some(), "{told:?}");
        assert!(
            told.iter().any(|line| line.contains("\"tools\"")),
            "{told:?}"
        );
        drop((lines, writer));
        serving.await.unwrap().unwrap();
    }
}
