//! The local data as a resource server: all of it for the owner, or what one grant may read.
//!
//! A running server is asked over its socket. Without one the directory is opened here, and then others reach it through
//! a socket of ours, so that several of us, and all other commands, work side by side. Whoever held the directory may end
//! at any time; then a new connection is made. A server that starts asks for the directory on that socket and gets it.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant as Moment};

use axum::body::{Body as HttpBody, to_bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use axum::routing::post;
use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, AnswerFuture, Get, Upstream};
use grants::Overview;
use rest::owner::wire::{ServerAddress, Sources};
use store::directory::OWNER_SOCKET;
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{HAND_OVER_PATH, OwnerClient, OwnerError, OwnerSocket, RequestPath};

const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long a server to which the directory was handed over may take until it answers, and how long apart it is tried.
const SERVER_STARTS: Duration = Duration::from_secs(5);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

/// For whom the local data is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActAs {
    Owner,
    /// The owner, who looks at what a grant would show; nothing is logged as disclosed.
    Preview(String),
    /// The client of a grant; everything read is logged as disclosed.
    Client(String),
}

/// The local data, read for the owner or for a grant.
pub(crate) struct LocalServer {
    context: Context,
    holder: &'static str,
    act_as: ActAs,
    address: Mutex<KnownAddress>,
    connection: Arc<Mutex<LastConnection>>,
}

/// The connection that worked last time, if any.
#[derive(Default)]
struct LastConnection {
    connection: Option<Arc<Connection>>,
    /// When the directory was handed over to a server, which may not answer yet.
    handed_over: Option<Moment>,
}

/// The public address of the server that answers, if it has one.
#[derive(Default)]
struct KnownAddress {
    public_url: Option<String>,
    /// Which socket was asked: a different one belongs to a different server, perhaps at another address.
    socket: Option<(u64, i64, i64)>,
}

/// The connection that worked last time.
struct Connection {
    /// The socket through which others reach what we hold, and the task that serves it. Dropped before the directory is given
    /// up: later it would remove the socket of the next holder.
    _shared: Option<(OwnerSocket, AbortOnDrop)>,
    owner: OwnerClient,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LocalServer {
    /// The local data, reached by a connection that was found already.
    pub(crate) fn new(
        context: Context,
        holder: &'static str,
        act_as: ActAs,
        owner: OwnerClient,
    ) -> CommandResult<Self> {
        let address: ServerAddress = owner.get(&RequestPath::new("/owner/server"))?;
        let server = Self {
            connection: Arc::default(),
            address: Mutex::default(),
            context,
            holder,
            act_as,
        };
        server.store_connection(owner);
        server.set_address(address.public_url);
        Ok(server)
    }

    /// What is declared and configured; for the owner only.
    pub(crate) fn sources(&self) -> Option<Sources> {
        if self.act_as != ActAs::Owner {
            return None;
        }
        let connection = self.connection().ok()?;
        connection
            .owner
            .get(&RequestPath::new("/owner/sources"))
            .ok()
    }

    /// The ids of all grants and packages, for the owner who named one.
    pub(crate) fn grant_ids(&self) -> Vec<String> {
        let all = |connection: Arc<Connection>| {
            connection
                .owner
                .get(&RequestPath::new("/owner/grants"))
                .ok()
        };
        let all: Option<Vec<Overview>> = self.connection().ok().and_then(all);
        all.into_iter().flatten().map(|one| one.id).collect()
    }

    pub(crate) fn settle(&self) -> CommandResult {
        let connection = locked(&self.connection).connection.clone();
        connection.map_or(Ok(()), |connection| connection.owner.settle())
    }

    fn store_connection(&self, owner: OwnerClient) -> Arc<Connection> {
        // Only an adapter that keeps running blocks other commands for long; a single read ends before they start.
        let held = match self.act_as {
            ActAs::Client(_) => owner.local_router(),
            ActAs::Owner | ActAs::Preview(_) => None,
        };
        let shared = held.and_then(|router| {
            let path: PathBuf = self.context.settings.data_dir.join(OWNER_SOCKET);
            // Sharing is optional: without the socket, other commands report who holds the directory.
            let (listener, socket) = OwnerSocket::bind(&path).ok()?;
            let listener = tokio::net::UnixListener::from_std(listener).ok()?;
            let connection = Arc::downgrade(&self.connection);
            let router = router.route(HAND_OVER_PATH, post(async move || hand_over(&connection)));
            let serving = rest::serve_on(listener, router, std::future::pending());
            Some((socket, AbortOnDrop(tokio::spawn(serving))))
        });
        let connection = Arc::new(Connection {
            _shared: shared,
            owner,
        });
        *locked(&self.connection) = LastConnection {
            connection: Some(Arc::clone(&connection)),
            handed_over: None,
        };
        connection
    }

    /// The connection that worked last time, else one found now.
    fn connection(&self) -> CommandResult<Arc<Connection>> {
        let (known, handed_over) = {
            let last = locked(&self.connection);
            (last.connection.clone(), last.handed_over)
        };
        if let Some(connection) = known {
            return Ok(connection);
        }
        // A server that asked for the directory is about to answer. Without one, it is ours again.
        let until = handed_over.map(|when| when + SERVER_STARTS);
        while until.is_some_and(|until| Moment::now() < until)
            && !OwnerClient::is_served(&self.context.settings.data_dir)?
        {
            std::thread::sleep(BETWEEN_ATTEMPTS);
        }
        Ok(self.store_connection(self.context.owner(self.holder)?))
    }

    /// Asks once, and gives the answer with its text as it was written: a number parsed may not have all its digits.
    async fn ask(&self, question: &Get) -> Result<Answer, ReadError> {
        if self.address().socket != self.socket() {
            self.learn_address().await;
        }
        for attempt in 0..2 {
            let connection = self.connection().map_err(|failure| unreachable(&failure))?;
            let request = self.request(question)?;
            match connection.owner.forward(request).await {
                Ok((response, link)) => {
                    let answer = read(response).await;
                    drop(link);
                    return answer;
                }
                Err(OwnerError::Lost) if attempt == 0 => {
                    locked(&self.connection).connection = None;
                }
                Err(error) => return Err(unreachable(&Failure::from(error))),
            }
        }
        Err(unreachable(&Failure::from(OwnerError::Lost)))
    }

    /// Asks the server that answers now for its public address.
    async fn learn_address(&self) {
        let Ok(connection) = self.connection() else {
            return;
        };
        let target = RequestPath::new("/owner/server");
        let address = match connection
            .owner
            .send(Method::GET, &target, HttpBody::empty())
            .await
        {
            Ok(answer) => answer.document::<ServerAddress>().await.ok(),
            Err(_) => None,
        };
        self.set_address(address.and_then(|address| address.public_url));
    }

    fn address(&self) -> MutexGuard<'_, KnownAddress> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_address(&self, public_url: Option<String>) {
        let socket = self.socket();
        *self.address() = KnownAddress { public_url, socket };
    }

    /// The identity of the socket file, which changes with every server.
    fn socket(&self) -> Option<(u64, i64, i64)> {
        let path = self.context.settings.data_dir.join(OWNER_SOCKET);
        let file = std::fs::symlink_metadata(path).ok()?;
        Some((file.ino(), file.ctime(), file.ctime_nsec()))
    }

    fn request(&self, question: &Get) -> Result<Request<HttpBody>, ReadError> {
        let mut request =
            Request::get(question.sendable_target()?).header(header::HOST, "localhost");
        if let Some(bytes) = question.max_bytes() {
            request = request.header(rest::MAX_BYTES, bytes.to_string());
        }
        if let Some(call) = question.call() {
            request = request.header(rest::CALL, call.to_string());
        }
        let request = match &self.act_as {
            ActAs::Owner => request,
            ActAs::Preview(grant) => request.header(rest::PREVIEW_AS_GRANT, grant),
            ActAs::Client(grant) => request.header(rest::AS_GRANT, grant),
        };
        request
            .body(HttpBody::empty())
            .map_err(|_| ReadError::new(ErrorCode::InvalidArguments, "the question cannot be sent"))
    }
}

fn locked(connection: &Mutex<LastConnection>) -> MutexGuard<'_, LastConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the directory up to a server that starts. Reads in progress end first.
fn hand_over(connection: &Weak<Mutex<LastConnection>>) -> StatusCode {
    let Some(connection) = connection.upgrade() else {
        return StatusCode::NO_CONTENT;
    };
    let given_up = {
        let mut last = locked(&connection);
        last.handed_over = Some(Moment::now());
        last.connection.take()
    };
    // What cannot be written into the log now stays where the next holder finds it.
    let _ = given_up.map(|connection| connection.owner.settle());
    StatusCode::NO_CONTENT
}

impl Upstream for LocalServer {
    fn provider_url(&self) -> Option<String> {
        self.address().public_url.clone()
    }

    fn may_search_by_meaning(&self) -> bool {
        let data = &self.context.settings.data_dir;
        data.join(store::directory::MODEL).exists()
    }

    fn pages_by_bytes(&self) -> bool {
        true
    }

    fn get(&self, question: Get) -> AnswerFuture<'_> {
        Box::pin(async move { self.ask(&question).await })
    }
}

fn unreachable(failure: &Failure) -> ReadError {
    ReadError::new(
        ErrorCode::RsUnreachable,
        format!("the local data cannot be read: {failure}"),
    )
}

async fn read(response: Response<HttpBody>) -> Result<Answer, ReadError> {
    let status = response.status().as_u16();
    let request_id = response.headers().get("request-id");
    let request_id = request_id
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let too_large = |_| {
        ReadError::new(
            ErrorCode::RsBadResponse,
            "the answer is too large, or broke off",
        )
        .with_hint("ask for less: a smaller limit, or fewer fields")
    };
    let bytes = to_bytes(response.into_body(), MAX_BYTES)
        .await
        .map_err(too_large)?;
    Ok(Answer {
        status,
        request_id,
        body: String::from_utf8_lossy(&bytes).into_owned(),
    })
}
