//! Listening, until told to stop: then nothing new is taken, what is under way ends, and what does not end is left.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::serve::{Listener, ListenerExt as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::peer::Peer;
use crate::unheard::wired;

/// How long requests under way may take to end after the server was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the head of a request may take to arrive, and how long a connection may idle.
const HEAD: Duration = Duration::from_mins(1);

/// Serves over TCP, small answers without delay, until `shutdown` resolves and the requests under way have ended.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let peer = |address: &SocketAddr| Some(Peer::at(address.ip()));
    serve_from(listener, router, shutdown, (HEAD, peer)).await;
}

/// Serves on any listener, such as a Unix socket.
pub async fn serve_on<L: Listener>(
    listener: L,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    serve_from(listener, router, shutdown, (HEAD, |_: &L::Addr| None)).await;
}

/// Serves whoever sends the head of a request in time, and tells each request from where its connection came.
async fn serve_from<L: Listener>(
    mut listener: L,
    router: Router,
    shutdown: impl Future<Output = ()>,
    (head, peer): (Duration, impl Fn(&L::Addr) -> Option<Peer>),
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            (stream, address) = listener.accept() => {
                let (inner, peer) = (TowerToHyperService::new(router.clone()), peer(&address));
                let service = service_fn(move |mut request: Request<Incoming>| {
                    if let Some(peer) = peer {
                        request.extensions_mut().insert(peer);
                    }
                    inner.call(request)
                });
                let (wire, rest) = wired(stream);
                let connection = builder.serve_connection(TokioIo::new(wire), service);
                let connection = connections.watch(connection);
                tokio::spawn(async move {
                    let ended = connection.await;
                    if let Err(error) = &ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    rest.tell(ended).await;
                });
            }
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests that did not end in time were left");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_its_connection_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let head = Duration::from_millis(50);
        let router = Router::new().route("/", axum::routing::get(|| async { "here" }));
        let serving = serve_from(
            listener,
            router,
            std::future::pending(),
            (head, |_: &SocketAddr| None),
        );
        let asking = async {
            for begun in ["", "G", "GET / HTTP/1.1\r\nauthorization: Bearer half"] {
                let mut slow = TcpStream::connect(address).await.unwrap();
                slow.write_all(begun.as_bytes()).await.unwrap();
                let mut told = String::new();
                slow.read_to_string(&mut told).await.unwrap();
                assert!(!told.contains("here"), "{begun}: {told}");
            }
            let mut quick = TcpStream::connect(address).await.unwrap();
            let whole = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            quick.write_all(whole.as_bytes()).await.unwrap();
            let mut told = String::new();
            quick.read_to_string(&mut told).await.unwrap();
            assert!(told.ends_with("here"), "{told}");
        };
        tokio::select! {
            () = serving => unreachable!("it is never told to stop"),
            asked = tokio::time::timeout(Duration::from_secs(20), asking) => asked.unwrap(),
        }
    }
}
