//! The way to the data. One API, two ways to reach it: over the socket of a running server, or in process, on the data
//! directory opened here. Commands do not know which, and so they behave the same with and without a server.

mod answer;
mod place;
mod socket;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, header};
use contract::seal::SealingKey;
use grants::DisclosureLog;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rest::Service;
use rest::owner::wire::ProgressEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::directory::OWNER_SOCKET;
use store::{EmbeddedStore, Store, StoreError};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

pub(crate) use self::answer::{Answer, Trouble};
pub(crate) use self::place::OwnerSocket;
pub(crate) use self::socket::Link;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::stop::Stop;

/// How often, and how long apart, a server that is starting or stopping is looked for.
const LOOKS: u32 = 60;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The owner's way to the data.
pub(crate) struct Owner {
    way: Way,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

enum Way {
    /// To a running server.
    Socket(PathBuf),
    /// To a directory that this process holds.
    Here(Router, Arc<DisclosureLog>),
}

impl Owner {
    /// Finds a running server, else opens the data directory in the name of a command.
    ///
    /// A server that is about to start or to end holds the directory and does not answer; it is given a moment.
    pub(crate) fn reach(context: &Context, holder: &str) -> Outcome<Self> {
        let path = context.settings.data_dir.join(OWNER_SOCKET);
        let mut looks = 0;
        loop {
            if socket::is_alive(&path)? {
                return Self::new(Way::Socket(path));
            }
            match context.open(holder) {
                Ok(store) => return Self::new(in_process(store, context)?),
                Err(StoreError::Held { holder, .. })
                    if looks < LOOKS && holder.starts_with("pdpp serve") =>
                {
                    looks += 1;
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a server answers for the owner of this data.
    pub(crate) fn is_served(data_dir: &Path) -> Outcome<bool> {
        socket::is_alive(&data_dir.join(OWNER_SOCKET))
    }

    fn new(way: Way) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("no work can be started: {error}")))?;
        Ok(Self {
            way,
            runtime: Some(runtime),
        })
    }

    /// Asks for a document.
    pub(crate) fn get<T: DeserializeOwned>(&self, target: &Target) -> Result<T, Trouble> {
        self.ask(Method::GET, target, Body::empty())
    }

    /// Asks for something to be done.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        target: &Target,
        question: &impl Serialize,
    ) -> Result<T, Trouble> {
        let body = serde_json::to_vec(question)
            .map_err(|error| Failure::new(format!("the question cannot be written: {error}")))?;
        self.ask(Method::POST, target, Body::from(body))
    }

    /// Asks for something to be done with a document as it was written.
    pub(crate) fn post_text<T: DeserializeOwned>(
        &self,
        target: &Target,
        text: String,
    ) -> Result<T, Trouble> {
        self.ask(Method::POST, target, Body::from(text))
    }

    /// Asks for something to end.
    pub(crate) fn delete<T: DeserializeOwned>(&self, target: &Target) -> Result<T, Trouble> {
        self.ask(Method::DELETE, target, Body::empty())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &Target,
        body: Body,
    ) -> Result<T, Trouble> {
        self.wait(async { self.send(method, target, body).await?.document().await })
    }

    /// Asks for bytes and hands them on as they come.
    pub(crate) fn pour(
        &self,
        target: &Target,
        take: &mut dyn FnMut(&[u8]) -> Outcome,
    ) -> Result<(), Trouble> {
        self.wait(self.poured(target, take)).map(drop)
    }

    /// The same until a signal asks this process to end, so that what is half done can be cleared away. Whoever takes
    /// the bytes must not wait for others. The headers they came with are given back.
    pub(crate) fn pour_unless_stopped(
        &self,
        target: &Target,
        take: &mut dyn FnMut(&[u8]) -> Outcome,
    ) -> Result<HeaderMap, Trouble> {
        self.wait(async {
            let mut stop = Stop::new()
                .map_err(|error| Failure::new(format!("no signal can be heard: {error}")))?;
            tokio::select! {
                poured = self.poured(target, take) => poured,
                exit = stop.signalled() => {
                    let hint = "run the command again for all of it";
                    Err(Failure::coded(exit, "stopped; nothing was written", hint).into())
                }
            }
        })
    }

    async fn poured(
        &self,
        target: &Target,
        take: &mut dyn FnMut(&[u8]) -> Outcome,
    ) -> Result<HeaderMap, Trouble> {
        let mut answer = self.send(Method::GET, target, Body::empty()).await?;
        while let Some(piece) = answer.piece().await? {
            take(&piece)?;
        }
        Ok(answer.headers)
    }

    /// Asks for work that tells how far it is.
    pub(crate) fn work<P: DeserializeOwned, D: DeserializeOwned>(
        &self,
        target: &Target,
        progress: &mut dyn FnMut(P),
    ) -> Result<D, Trouble> {
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

    /// Waits for an answer that is put together elsewhere.
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
        target: &Target,
        body: Body,
    ) -> Result<Answer, Trouble> {
        let request = Request::builder()
            .method(method)
            .uri(target.text())
            .header(header::HOST, "localhost")
            .body(body)
            .map_err(|error| Failure::new(format!("the question cannot be sent: {error}")))?;
        let (response, link) = self.forward(request).await?;
        Answer::of(response, link).await
    }

    /// Sends a request as it is. The link, where there is one, must outlive the body.
    pub(crate) async fn forward(
        &self,
        request: Request<Body>,
    ) -> Result<(Response<Body>, Option<Link>), Trouble> {
        match &self.way {
            Way::Socket(path) => {
                let (response, link) = socket::send(path, request).await?;
                Ok((response, Some(link)))
            }
            Way::Here(router, _) => match router.clone().oneshot(request).await {
                Ok(response) => Ok((response, None)),
                Err(never) => match never {},
            },
        }
    }

    /// Writes down what was disclosed, where that is our work: whoever ends must not take it along.
    pub(crate) fn settle(&self) -> Outcome {
        match &self.way {
            Way::Socket(_) => Ok(()),
            Way::Here(_, log) => log.flush().map_err(|error| {
                Failure::new(error.to_string()).hint("see whether the disk is full")
            }),
        }
    }

    /// The routes, where this process holds the directory and could serve them to others.
    pub(crate) fn held(&self) -> Option<Router> {
        match &self.way {
            Way::Here(router, _) => Some(router.clone()),
            Way::Socket(_) => None,
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Work that outlives its command was abandoned by it; what it wrote is safe whenever it ends.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn in_process(store: EmbeddedStore, context: &Context) -> Outcome<Way> {
    let key = SealingKey::from_bytes(store.sealing_key()?);
    let clock = store.clock();
    let store: Arc<dyn Store> = Arc::new(store);
    let log = DisclosureLog::start(Arc::clone(&store))
        .map_err(|error| Failure::new(format!("no work can be started: {error}")))?;
    let log = Arc::new(log);
    let public_url = context.settings.public_url()?;
    let is_named = context.settings.named_public_url()?.is_some();
    let service =
        Service::new(store, key, clock, &public_url, Arc::clone(&log)).not_listening(is_named);
    Ok(Way::Here(rest::owner_router(service), log))
}

/// A path with parameters.
pub(crate) struct Target {
    path: String,
    params: Vec<String>,
}

impl Target {
    pub(crate) fn of(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            params: Vec::new(),
        }
    }

    /// Adds a variable part of the path.
    pub(crate) fn part(mut self, part: &str) -> Self {
        self.path.push('/');
        self.path.push_str(&encoded(part));
        self
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.params.push(format!("{name}={}", encoded(value)));
        self
    }

    /// Adds a parameter, if there is a value for it.
    pub(crate) fn with_any(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
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

/// Shows a socket in messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
