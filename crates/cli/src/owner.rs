//! The client of the owner API, over the socket of a running server or in process on the data directory opened here.
//! Commands do not know which, so they behave the same with and without a server.

mod listener;
mod response;
mod socket;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, header};
use grants::DisclosureLog;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rest::Service;
use rest::owner::wire::{ProgressEvent, Sources};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::directory::OWNER_SOCKET;
use store::{EmbeddedStore, StoreError};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

pub(crate) use self::listener::OwnerSocket;
pub(crate) use self::response::{OwnerError, OwnerResponse};
pub(crate) use self::socket::{HAND_OVER_PATH, SocketLink};
use crate::context::{Context, new_runtime};
use crate::failure::{CommandResult, Failure};
use crate::first_steps;
use crate::opened::Opened;
use crate::stop::Stop;

/// How often, and how long apart, a server that is starting or stopping is tried.
const ATTEMPTS: u32 = 60;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

pub(crate) struct OwnerClient {
    connection: Connection,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

enum Connection {
    /// The socket of a running server.
    Socket(PathBuf),
    /// The service over a directory that this process has opened.
    InProcess(Box<InProcess>),
}

struct InProcess {
    router: Router,
    service: Service,
    log: Arc<DisclosureLog>,
}

impl OwnerClient {
    /// Finds a running server, else opens the data directory in the name of a command.
    ///
    /// A server that is about to start or to end holds the directory and does not answer; it is given a moment.
    pub(crate) fn connect(context: &Context, holder: &str) -> CommandResult<Self> {
        require_directory(context, holder)?;
        let path = context.settings.data_dir.join(OWNER_SOCKET);
        let mut attempts = 0;
        loop {
            if socket::is_alive(&path)? {
                return Self::new(Connection::Socket(path));
            }
            match context.open(holder) {
                Ok(store) => return Self::new(open_in_process(store, context)?),
                Err(StoreError::Held { holder, .. })
                    if attempts < ATTEMPTS && holder.starts_with("pdpp serve") =>
                {
                    attempts += 1;
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens the data directory for a server. An agent's `pdpp mcp` that holds it hands it over, and goes on through the server.
    pub(crate) fn open_for_server(context: &Context, holder: &str) -> CommandResult<EmbeddedStore> {
        let path = context.settings.data_dir.join(OWNER_SOCKET);
        let (mut attempts, mut asked) = (0, false);
        loop {
            match context.open(holder) {
                Err(StoreError::Held { holder, .. })
                    if attempts < ATTEMPTS && holder.starts_with("pdpp mcp") =>
                {
                    // Who cannot be asked is named as the holder in the end.
                    asked = asked || socket::ask_to_hand_over(&path).is_ok();
                    attempts += 1;
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                opened => return Ok(opened?),
            }
        }
    }

    pub(crate) fn is_served(data_dir: &Path) -> CommandResult<bool> {
        socket::is_alive(&data_dir.join(OWNER_SOCKET))
    }

    fn new(connection: Connection) -> CommandResult<Self> {
        Ok(Self {
            connection,
            runtime: Some(new_runtime()?),
        })
    }

    pub(crate) fn sources(&self) -> Result<Sources, OwnerError> {
        self.get(&RequestPath::new("/owner/sources"))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, target: &RequestPath) -> Result<T, OwnerError> {
        self.ask(Method::GET, target, Body::empty())
    }

    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        target: &RequestPath,
        question: &impl Serialize,
    ) -> Result<T, OwnerError> {
        let body = serde_json::to_vec(question)
            .map_err(|error| Failure::new(format!("the question cannot be written: {error}")))?;
        self.ask(Method::POST, target, Body::from(body))
    }

    /// Asks for something to be done with a document as it was written.
    pub(crate) fn post_text<T: DeserializeOwned>(
        &self,
        target: &RequestPath,
        text: String,
    ) -> Result<T, OwnerError> {
        self.ask(Method::POST, target, Body::from(text))
    }

    pub(crate) fn delete<T: DeserializeOwned>(
        &self,
        target: &RequestPath,
    ) -> Result<T, OwnerError> {
        self.ask(Method::DELETE, target, Body::empty())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &RequestPath,
        body: Body,
    ) -> Result<T, OwnerError> {
        self.wait(async { self.send(method, target, body).await?.document().await })
    }

    /// Requests bytes and passes them to `take` as they arrive.
    pub(crate) fn download(
        &self,
        target: &RequestPath,
        take: &mut dyn FnMut(&[u8]) -> CommandResult,
    ) -> Result<(), OwnerError> {
        self.wait(self.download_into(target, take)).map(drop)
    }

    /// Like `download`, but ends at a signal, so that a partial file can be removed. `take` must not block. Returns the
    /// headers of the response.
    pub(crate) fn download_unless_stopped(
        &self,
        target: &RequestPath,
        take: &mut dyn FnMut(&[u8]) -> CommandResult,
    ) -> Result<HeaderMap, OwnerError> {
        self.wait(async {
            let mut stop = Stop::new()
                .map_err(|error| Failure::new(format!("no signal can be heard: {error}")))?;
            tokio::select! {
                downloaded = self.download_into(target, take) => downloaded,
                exit = stop.signalled() => {
                    let hint = "run the command again for all of it";
                    Err(Failure::coded(exit, "stopped; nothing was written", hint).into())
                }
            }
        })
    }

    async fn download_into(
        &self,
        target: &RequestPath,
        take: &mut dyn FnMut(&[u8]) -> CommandResult,
    ) -> Result<HeaderMap, OwnerError> {
        let mut answer = self.send(Method::GET, target, Body::empty()).await?;
        while let Some(chunk) = answer.chunk().await? {
            take(&chunk)?;
        }
        Ok(answer.headers)
    }

    /// Starts work that reports its progress line by line.
    pub(crate) fn run_with_progress<P: DeserializeOwned, D: DeserializeOwned>(
        &self,
        target: &RequestPath,
        progress: &mut dyn FnMut(P),
    ) -> Result<D, OwnerError> {
        self.wait(async {
            let mut answer = self.send(Method::POST, target, Body::empty()).await?;
            loop {
                match answer.line::<ProgressEvent<P, D>>().await? {
                    ProgressEvent::Progress(how_far) => progress(how_far),
                    ProgressEvent::Done(done) => return Ok(done),
                    ProgressEvent::Failed(refusal) => return Err(refusal.into()),
                }
            }
        })
    }

    /// Runs a future to its end on the runtime of this client.
    pub(crate) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(answer),
            None => unreachable!("the runtime lives as long as its owner"),
        }
    }

    /// Sends a question. Its body may still be on its way when the answer begins.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &RequestPath,
        body: Body,
    ) -> Result<OwnerResponse, OwnerError> {
        let request = Request::builder()
            .method(method)
            .uri(target.text())
            .header(header::HOST, "localhost")
            .body(body)
            .map_err(|error| Failure::new(format!("the question cannot be sent: {error}")))?;
        let (response, link) = self.forward(request).await?;
        OwnerResponse::new(response, link).await
    }

    /// Sends a request as it is. The link, where there is one, must outlive the body.
    pub(crate) async fn forward(
        &self,
        request: Request<Body>,
    ) -> Result<(Response<Body>, Option<SocketLink>), OwnerError> {
        match &self.connection {
            Connection::Socket(path) => {
                let (response, link) = socket::send(path, request).await?;
                Ok((response, Some(link)))
            }
            Connection::InProcess(here) => match here.router.clone().oneshot(request).await {
                Ok(response) => Ok((response, None)),
                Err(never) => match never {},
            },
        }
    }

    /// Flushes the disclosure log if this process keeps it, so that no entry is lost when it ends.
    pub(crate) fn settle(&self) -> CommandResult {
        match &self.connection {
            Connection::Socket(_) => Ok(()),
            Connection::InProcess(here) => here.log.flush().map_err(|error| {
                Failure::new(error.to_string()).hint("see whether the disk is full")
            }),
        }
    }

    /// The service, if this process holds the directory and can be handed files as they are.
    pub(crate) fn local_service(&self) -> Option<Service> {
        match &self.connection {
            Connection::InProcess(here) => Some(here.service.clone()),
            Connection::Socket(_) => None,
        }
    }

    /// The routes, if this process holds the directory and can serve them to others.
    pub(crate) fn local_router(&self) -> Option<Router> {
        match &self.connection {
            Connection::InProcess(here) => Some(here.router.clone()),
            Connection::Socket(_) => None,
        }
    }
}

impl Drop for OwnerClient {
    fn drop(&mut self) {
        // Work that is still running was abandoned by the command; each of its transactions is complete or absent.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn open_in_process(store: EmbeddedStore, context: &Context) -> CommandResult<Connection> {
    let Opened { store, key, clock } = store.try_into()?;
    let log = DisclosureLog::start(Arc::clone(&store))
        .map_err(|error| Failure::new(format!("no work can be started: {error}")))?;
    let log = Arc::new(log);
    let public_url = context.settings.public_url()?;
    let service = Service::new(store, key, clock, &public_url, Arc::clone(&log)).not_listening();
    Ok(Connection::InProcess(Box::new(InProcess {
        router: rest::owner_router(service.clone()),
        service,
        log,
    })))
}

/// Commands that may make a data directory. The others would only find nothing in it.
const CREATING: [&str; 6] = [
    "pdpp collect",
    "pdpp declare",
    "pdpp import",
    "pdpp owner-password",
    "pdpp owner-token",
    "pdpp connections add",
];

fn require_directory(context: &Context, holder: &str) -> CommandResult {
    let folder = &context.settings.data_dir;
    let is_absent =
        std::fs::metadata(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if !is_absent || CREATING.contains(&holder) {
        return Ok(());
    }
    let message = format!("there is no data directory at {}", folder.display());
    let nothing = Sources {
        connectors: Vec::new(),
        connections: Vec::new(),
    };
    Err(Failure::new(message).hints(first_steps::next_steps(&nothing, context)))
}

pub(crate) struct RequestPath {
    path: String,
    params: Vec<String>,
}

impl RequestPath {
    pub(crate) fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            params: Vec::new(),
        }
    }

    pub(crate) fn segment(mut self, part: &str) -> Self {
        self.path.push('/');
        self.path.push_str(&encoded(part));
        self
    }

    pub(crate) fn param(mut self, name: &str, value: &str) -> Self {
        self.params
            .push(format!("{}={}", encoded(name), encoded(value)));
        self
    }

    pub(crate) fn optional_param(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.param(name, value),
            None => self,
        }
    }

    fn text(&self) -> String {
        match self.params.as_slice() {
            [] => self.path.clone(),
            params => format!("{}?{}", self.path, params.join("&")),
        }
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
