//! Listening and graceful shutdown: no new connections, requests in progress may finish within a time limit.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response};
use axum::serve::{Listener, ListenerExt as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use crate::connections::{Capacity, ConnectionGuard, Connections, ResponseBody};
use crate::malformed_http::{AfterConnection, guard_stream};
use crate::peer::Peer;

/// How long requests in progress may take after the server was told to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of a request may take to arrive, and how long a connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a client may leave the response unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Listeners(TcpListener, Option<TcpListener>);

impl From<TcpListener> for Listeners {
    fn from(only: TcpListener) -> Self {
        Self(only, None)
    }
}

impl Listeners {
    #[must_use]
    pub fn and(self, other: Option<TcpListener>) -> Self {
        Self(self.0, other)
    }
}

impl Listener for Listeners {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        match &mut self.1 {
            Some(other) => tokio::select! {
                accepted = Listener::accept(&mut self.0) => accepted,
                accepted = Listener::accept(other) => accepted,
            },
            None => Listener::accept(&mut self.0).await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Serves over TCP with the default capacity; see [`serve_within`].
pub async fn serve(
    listeners: impl Into<Listeners>,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    serve_within(Capacity::default(), listeners, router, shutdown).await;
}

/// Serves over TCP without Nagle delay, until `shutdown` resolves and the requests in progress have ended. Beyond the
/// capacity, connections that have been idle for longest are closed.
pub async fn serve_within(
    capacity: Capacity,
    listeners: impl Into<Listeners>,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let listener = listeners.into().tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    });
    let peer = |stream: &TcpStream, address: &SocketAddr| {
        let own = stream.local_addr().ok().map(|own| own.ip());
        Some(Peer::new(address.ip()).connected_to(own))
    };
    let settings = ConnectionSettings {
        head_timeout: HEAD_TIMEOUT,
        write_timeout: Some(WRITE_TIMEOUT),
        connections: Connections::new(capacity),
        peer,
    };
    serve_from(listener, router, shutdown, settings).await;
}

/// Serves on any listener, such as the owner's Unix socket: there is no write timeout, so that a pager may wait.
pub async fn serve_on<L: Listener>(
    listener: L,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let settings = ConnectionSettings {
        head_timeout: HEAD_TIMEOUT,
        write_timeout: None,
        connections: Connections::new(Capacity::default()),
        peer: |_: &L::Io, _: &L::Addr| None,
    };
    serve_from(listener, router, shutdown, settings).await;
}

struct ConnectionSettings<F> {
    head_timeout: Duration,
    /// How long a client may leave the response unread; `None` is forever.
    write_timeout: Option<Duration>,
    connections: Connections,
    /// The peer of a connection, if it has an address: only those are counted.
    peer: F,
}

/// Accepts connections, and adds the peer to each request.
async fn serve_from<L: Listener, F: Fn(&L::Io, &L::Addr) -> Option<Peer>>(
    mut listener: L,
    router: Router,
    shutdown: impl Future<Output = ()>,
    settings: ConnectionSettings<F>,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.head_timeout);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            (stream, address) = listener.accept() => {
                let peer = (settings.peer)(&stream, &address);
                let guard = peer.map(|peer| settings.connections.open(peer.address()));
                if let Some(None) = guard {
                    tracing::debug!("a connection was closed: there are too many, and none is idle");
                    continue;
                }
                let guard = guard.flatten().map(Arc::new);
                let service = connection_service(router.clone(), peer, guard.clone());
                let (guarded, after) = guard_stream(stream, settings.write_timeout);
                let connection = builder.serve_connection(TokioIo::new(guarded), service);
                tokio::spawn(run_connection(connections.watch(connection), after, guard));
            }
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests that did not end in time were left");
    }
}

/// The service of one connection. While a request is answered, the connection is not idle.
fn connection_service(
    router: Router,
    peer: Option<Peer>,
    guard: Option<Arc<ConnectionGuard>>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<ResponseBody>,
    Error = Infallible,
    Future: Send,
> {
    let inner = TowerToHyperService::new(router);
    service_fn(move |mut request: Request<Incoming>| {
        let request_guard = guard.as_ref().map(|guard| guard.request());
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let answer = inner.call(request);
        async move {
            Ok(answer
                .await?
                .map(|body| ResponseBody::new(body, request_guard)))
        }
    })
}

/// Runs a connection until it ends, or is evicted while idle.
async fn run_connection<S: AsyncRead + AsyncWrite + Unpin>(
    connection: impl Future<Output = hyper::Result<()>>,
    after: AfterConnection<S>,
    guard: Option<Arc<ConnectionGuard>>,
) {
    let evicted = async {
        match &guard {
            Some(guard) => guard.wait_for_eviction().await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        // Input that has arrived is handled before the connection is closed.
        biased;
        ended = connection => ended,
        () = evicted => return,
    };
    if let Err(error) = &ended {
        tracing::debug!(%error, "a connection ended early");
    }
    after.answer_malformed(ended).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn settings(
        time: Duration,
    ) -> ConnectionSettings<impl Fn(&TcpStream, &SocketAddr) -> Option<Peer>> {
        ConnectionSettings {
            head_timeout: time,
            write_timeout: Some(time),
            connections: Connections::new(Capacity::default()),
            peer: |_: &TcpStream, _: &SocketAddr| None,
        }
    }

    /// A body without end that says when it is let go.
    struct Endless(Option<tokio::sync::oneshot::Sender<()>>);

    impl axum::body::HttpBody for Endless {
        type Data = axum::body::Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
            let piece = axum::body::Bytes::from_static(&[b'x'; 16_384]);
            std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(piece))))
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            let _ = self.0.take().map(|gone| gone.send(()));
        }
    }

    #[tokio::test]
    async fn whoever_takes_nothing_of_an_answer_is_left_and_the_answer_let_go() {
        // TR-38: a reader that takes nothing is closed, and what was guard for it is freed.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (gone, let_go) = tokio::sync::oneshot::channel();
        let body = std::sync::Mutex::new(Some(Endless(Some(gone))));
        let body = Arc::new(body);
        let answer = move || async move {
            let body = body.lock().unwrap().take().unwrap();
            axum::response::Response::new(axum::body::Body::new(body))
        };
        let serving = serve_from(
            listener,
            Router::new().route("/", axum::routing::get(answer)),
            std::future::pending(),
            settings(Duration::from_millis(100)),
        );
        let asking = async {
            let mut idle = TcpStream::connect(address).await.unwrap();
            let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
            idle.write_all(request.as_bytes()).await.unwrap();
            let_go.await.unwrap();
            // What was sent before can still be read, and then it ends.
            let mut taken = Vec::new();
            let _ = idle.read_to_end(&mut taken).await;
        };
        tokio::select! {
            () = serving => unreachable!("it is never told to stop"),
            asked = tokio::time::timeout(Duration::from_secs(30), asking) => asked.unwrap(),
        }
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_its_connection_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let head = Duration::from_millis(50);
        let router = Router::new().route("/", axum::routing::get(|| async { "here" }));
        let serving = serve_from(listener, router, std::future::pending(), settings(head));
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
