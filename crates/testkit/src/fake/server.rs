//! The listener: a thread with its own runtime, so that tests with and without one can use it.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderValue, Request, Response, header};
use futures_core::Stream;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use super::call::Call;
use super::reply::{Delivery, Reply};
use super::routes;
use super::state::{RequestId, State, TOKEN};

const BODY_BYTES: usize = 64 * 1024;

/// A running fake server on the loopback. It stops when dropped.
#[derive(Debug)]
pub struct FakeServer {
    url: String,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    calls: Mutex<Vec<Call>>,
}

impl FakeServer {
    pub fn start(state: State) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        listener
            .set_nonblocking(true)
            .expect("the listener takes options");
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            calls: Mutex::new(Vec::new()),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        FakeServer {
            url: format!("http://{address}"),
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The base URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token that is accepted unless the state names another.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Every question so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.shared.calls).clone()
    }

    /// Forgets the questions so far.
    pub fn clear_calls(&self) {
        lock(&self.shared.calls).clear();
    }

    /// Changes the state while the server runs: records, the accepted token, misbehaviours.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.shared.state));
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread only ends early by a panic, which has been reported where it happened.
            let _ = thread.join();
        }
    }
}

/// A hook that panicked must not hide the questions asked before it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime takes it");
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| Box::pin(answer(Arc::clone(&shared), request)));
            let mut connection =
                http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            // An error here is a caller that went away, or a connection we broke on purpose.
            let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
            if ended.is_err_and(|error| is_reset(&error)) {
                let socket = connection.into_parts().io.into_inner();
                // Without it the caller would see an orderly end; where it fails, that has to do.
                let _ = socket.set_zero_linger();
            }
        });
    }
}

fn is_reset(error: &hyper::Error) -> bool {
    error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let authorization = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let mut call = Call::new(request.method().as_str(), target, authorization);
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|value| value.to_str().ok());
    call.host = host.unwrap_or_default().to_owned();
    let body = to_bytes(Body::new(request.into_body()), BODY_BYTES).await;
    let body = body.map_err(io::Error::other)?;
    call.body = String::from_utf8_lossy(&body).into_owned();
    let number = {
        let mut calls = lock(&shared.calls);
        calls.push(call.clone());
        calls.len()
    };
    let request_id = format!("req_{number}");
    let reply = {
        let state = lock(&shared.state);
        let reply = routes::answer(&state, &call, &request_id);
        match state.request_id {
            RequestId::Standard => reply.header("Request-Id", &request_id),
            RequestId::Prefixed => reply.header("x-request-id", &request_id),
        }
    };
    deliver(reply)
}

fn deliver(reply: Reply) -> io::Result<Response<Body>> {
    let body = match reply.delivery {
        Delivery::Whole => Body::from(reply.body),
        Delivery::Broken => Body::from_stream(Breaking::Bytes(Bytes::from(reply.body))),
        Delivery::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        let value = HeaderValue::from_str(value).map_err(io::Error::other)?;
        response = response.header(name, value);
    }
    response.body(body).map_err(io::Error::other)
}

/// A body that yields its bytes and then fails, a moment later: what is still buffered then would never be sent.
enum Breaking {
    Bytes(Bytes),
    Sent,
    Failing,
}

impl Stream for Breaking {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match std::mem::replace(&mut *self, Breaking::Failing) {
            Breaking::Bytes(bytes) => {
                *self = Breaking::Sent;
                Poll::Ready(Some(Ok(bytes)))
            }
            Breaking::Sent => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Breaking::Failing => Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into()))),
        }
    }
}
