//! The local data as a resource server: all of it for the owner, or what one grant may read.
//!
//! A running server is asked over its socket. Without one the directory is opened here, and then others reach it through
//! a socket of ours, so that several of us, and all other commands, work side by side. Whoever held the directory may end
//! at any time; then the way is found anew.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body as HttpBody, to_bytes};
use axum::http::{Method, Request, Response, header};
use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Asked, Body, Get, Upstream};
use grants::Overview;
use rest::owner::wire::{ServerAddress, Sources};
use store::directory::OWNER_SOCKET;
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::owner::{Owner, OwnerSocket, Target, Trouble};

/// The largest answer that is taken.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// On whose behalf the local data is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behalf {
    /// The owner's own.
    Owner,
    /// The owner's, who looks at what a grant would show.
    Looking(String),
    /// That of the client of a grant, to whom all of it is disclosed.
    Client(String),
}

/// The local data on somebody's behalf.
pub(crate) struct LocalServer {
    context: Context,
    holder: &'static str,
    behalf: Behalf,
    place: Mutex<Place>,
    way: Mutex<Option<Arc<Way>>>,
}

/// Where the server that answers is reached by others, if it is.
#[derive(Default)]
struct Place {
    public_url: Option<String>,
    /// The socket that was asked. Another one is another server's, perhaps elsewhere.
    socket: Option<(u64, i64, i64)>,
}

/// A way to the data that worked last time.
struct Way {
    owner: Owner,
    /// The socket through which others reach what we hold, and the task that serves it.
    _shared: Option<(OwnerSocket, Serving)>,
}

struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LocalServer {
    /// The local data, reached by a way that was found already.
    pub(crate) fn new(
        context: Context,
        holder: &'static str,
        behalf: Behalf,
        owner: Owner,
    ) -> Outcome<Self> {
        let place: ServerAddress = owner.get(&Target::of("/owner/server"))?;
        let server = Self {
            way: Mutex::new(None),
            place: Mutex::default(),
            context,
            holder,
            behalf,
        };
        server.keep(owner);
        server.note_place(place.public_url);
        Ok(server)
    }

    /// What is declared and configured; for the owner only.
    pub(crate) fn sources(&self) -> Option<Sources> {
        if self.behalf != Behalf::Owner {
            return None;
        }
        let way = self.way().ok()?;
        way.owner.get(&Target::of("/owner/sources")).ok()
    }

    /// The ids of all grants and packages, for the owner who named one.
    pub(crate) fn grant_ids(&self) -> Vec<String> {
        let all = |way: Arc<Way>| way.owner.get(&Target::of("/owner/grants")).ok();
        let all: Option<Vec<Overview>> = self.way().ok().and_then(all);
        all.into_iter().flatten().map(|one| one.id).collect()
    }

    /// Writes down what was disclosed.
    pub(crate) fn settle(&self) -> Outcome {
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        way.as_ref().map_or(Ok(()), |way| way.owner.settle())
    }

    fn keep(&self, owner: Owner) -> Arc<Way> {
        // Only whoever stays makes others wait; a command that reads once is gone before they come.
        let held = match self.behalf {
            Behalf::Client(_) => owner.held(),
            Behalf::Owner | Behalf::Looking(_) => None,
        };
        let shared = held.and_then(|router| {
            let path: PathBuf = self.context.settings.data_dir.join(OWNER_SOCKET);
            // Sharing is a courtesy: whoever cannot be served is told who holds the directory.
            let (listener, socket) = OwnerSocket::bind(&path).ok()?;
            let listener = tokio::net::UnixListener::from_std(listener).ok()?;
            let serving = rest::serve_on(listener, router, std::future::pending());
            Some((socket, Serving(tokio::spawn(serving))))
        });
        let way = Arc::new(Way {
            owner,
            _shared: shared,
        });
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&way));
        way
    }

    /// The way that worked last time, else one found now.
    fn way(&self) -> Outcome<Arc<Way>> {
        let known = self
            .way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match known {
            Some(way) => Ok(way),
            None => Ok(self.keep(self.context.owner(self.holder)?)),
        }
    }

    /// Asks once, and gives the answer with its text as it was written: a number parsed may not have all its digits.
    pub(crate) async fn get_text(&self, question: &Get) -> Result<(Answer, String), ReadError> {
        if self.place().socket != self.socket() {
            self.learn_place().await;
        }
        for attempt in 0..2 {
            let way = self.way().map_err(|failure| unreachable(&failure))?;
            let request = self.request(question)?;
            match way.owner.forward(request).await {
                Ok((response, link)) => {
                    let answer = read(response).await;
                    drop(link);
                    return answer;
                }
                Err(Trouble::Lost) if attempt == 0 => {
                    *self.way.lock().unwrap_or_else(PoisonError::into_inner) = None;
                }
                Err(trouble) => return Err(unreachable(&Failure::from(trouble))),
            }
        }
        Err(unreachable(&Failure::from(Trouble::Lost)))
    }

    /// Asks whoever answers now where others reach it.
    async fn learn_place(&self) {
        let Ok(way) = self.way() else {
            return;
        };
        let target = Target::of("/owner/server");
        let place = match way
            .owner
            .send(Method::GET, &target, HttpBody::empty())
            .await
        {
            Ok(answer) => answer.document::<ServerAddress>().await.ok(),
            Err(_) => None,
        };
        self.note_place(place.and_then(|place| place.public_url));
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_place(&self, public_url: Option<String>) {
        let socket = self.socket();
        *self.place() = Place { public_url, socket };
    }

    /// What tells one socket of the data directory from the next.
    fn socket(&self) -> Option<(u64, i64, i64)> {
        let path = self.context.settings.data_dir.join(OWNER_SOCKET);
        let file = std::fs::symlink_metadata(path).ok()?;
        Some((file.ino(), file.ctime(), file.ctime_nsec()))
    }

    fn request(&self, question: &Get) -> Result<Request<HttpBody>, ReadError> {
        let request = Request::get(question.target()).header(header::HOST, "localhost");
        let request = match &self.behalf {
            Behalf::Owner => request,
            Behalf::Looking(grant) => request.header(rest::PREVIEW_AS_GRANT, grant),
            Behalf::Client(grant) => request.header(rest::AS_GRANT, grant),
        };
        request
            .body(HttpBody::empty())
            .map_err(|_| ReadError::new(ErrorCode::InvalidArguments, "the question cannot be sent"))
    }
}

impl Upstream for LocalServer {
    fn provider_url(&self) -> Option<String> {
        self.place().public_url.clone()
    }

    fn get(&self, question: Get) -> Asked<'_> {
        Box::pin(async move { Ok(self.get_text(&question).await?.0) })
    }
}

fn unreachable(failure: &Failure) -> ReadError {
    ReadError::new(
        ErrorCode::RsUnreachable,
        format!("the local data cannot be read: {failure}"),
    )
}

async fn read(response: Response<HttpBody>) -> Result<(Answer, String), ReadError> {
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
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let answer = Answer {
        status,
        request_id,
        body: Body::of(&text),
    };
    Ok((answer, text))
}
