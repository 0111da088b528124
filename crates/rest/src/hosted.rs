//! `/mcp`: the tools over HTTP, for tokens of grants and packages.
//!
//! A tool reads through this process's own `/v1` routes with the authority of its caller, so it can learn nothing that
//! `/v1` would not answer. Nothing is kept between requests but the rate limit of each grant.

mod batch;
mod call_limit;
mod caller;
mod errors;
mod in_process;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use contract::error::{ErrorCode, ReadError};
use mcp::{HttpSettings, Options, Server};
use tokio::time::timeout;

use self::call_limit::CallLimit;
use self::caller::McpCaller;
use self::errors::ReceivedBody;
use self::in_process::InProcessReader;
use crate::admission::Permit;
use crate::auth::Caller;
use crate::hosts;
use crate::metrics::TOOLS;
use crate::observe;
use crate::problem::Problem;
use crate::service::Service;

pub(crate) const PATH: &str = "/mcp";
/// The largest request body: a call is a few arguments.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long to wait for a body before giving up the slot: it usually arrives with the head.
const BODY_GRACE: Duration = Duration::from_millis(2);
const PACKAGE_ID: HeaderName = HeaderName::from_static("x-pdpp-grant-package-id");
const PACKAGE_MEMBERS: HeaderName = HeaderName::from_static("x-pdpp-grant-package-member-count");

struct Hosted {
    service: Arc<Service>,
    /// The routes tools read through.
    reads: Router,
    calls: Arc<CallLimit>,
    http: HttpSettings,
    presented: Options,
}

/// The endpoint, over the routes its tools read through.
pub(crate) fn routes(service: Arc<Service>, reads: Router) -> Router {
    let url = service.public_url.to_string();
    let hosted = Arc::new(Hosted {
        // Host, origin and size are checked here, so that no layer below has to.
        http: HttpSettings::checked_before(usize::MAX),
        calls: Arc::new(CallLimit::new(service.limits.calls_per_minute)),
        presented: Options {
            name: "pdpp".to_owned(),
            icon_url: Some(format!("{url}/icon.svg")),
        },
        service,
        reads,
    });
    let handler = move |request: Request| {
        let hosted = Arc::clone(&hosted);
        async move { Ok::<_, Infallible>(hosted.answer(request).await) }
    };
    Router::new().route(PATH, any(handler))
}

impl Hosted {
    async fn answer(&self, request: Request) -> Response {
        let began = Moment::now();
        let in_flight = self.service.metrics.begin();
        let id = observe::request_id(request.headers());
        let (mut response, kind) = match self.serve_call(request, &id).await {
            Ok((response, caller)) => (response, caller.kind()),
            Err(problem) => (observe::error_response(&problem, &id), "none"),
        };
        observe::set_standard_headers(response.headers_mut(), &id);
        self.add_icon_link(&mut response);
        drop(in_flight);
        let (status, took) = (response.status().as_u16(), began.elapsed());
        self.service.metrics.record(TOOLS, status, took);
        tracing::info!(
            request_id = %id,
            operation = TOOLS,
            token = kind,
            status,
            micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
        response
    }

    /// Authenticates a request and serves it, or says why not.
    async fn serve_call(
        &self,
        request: Request,
        id: &str,
    ) -> Result<(Response, McpCaller), Problem> {
        // Checked before the token: a host that probes with GET must learn that there is no event stream, not that it
        // is unauthorized.
        if request.method() != Method::POST {
            return Err(Problem::from_status(StatusCode::METHOD_NOT_ALLOWED)
                .with_header(header::ALLOW, "POST"));
        }
        hosts::check_origin(&self.service, request.headers())?;
        self.service.refuse_rolled_back()?;
        let caller = caller::authenticate(&self.service, request.headers()).await?;
        self.count_calls(&caller, 1)?;
        let (parts, sent, _permit) = self.read_body(request, &caller.caller()).await?;
        let sent = ReceivedBody {
            is_json: errors::is_json(&parts.headers),
            body: sent,
        };
        let reads = InProcessReader::new(self, &caller, id);
        let server = Server::new(Arc::new(reads), self.presented.clone());
        let list = sent.is_json.then(|| mcp::batch(&sent.body)).flatten();
        let mut response = match list {
            Some(Ok(entries)) => {
                // The first was counted already.
                self.count_calls(&caller, entries.len() - 1)?;
                batch::answer(&server, &self.http, &parts, &entries).await?
            }
            Some(Err(error)) => batch::refused(error),
            None => {
                let request = Request::from_parts(parts, Body::from(sent.body.clone()));
                let response = mcp::serve_http(server, &self.http, request).await;
                errors::normalize(response.map(Body::new), &sent).await?
            }
        };
        if let Some((package, members)) = caller.package() {
            let headers = response.headers_mut();
            headers.extend(HeaderValue::from_str(package).map(|id| (PACKAGE_ID, id)));
            headers.insert(PACKAGE_MEMBERS, HeaderValue::from(members));
        }
        Ok((response, caller))
    }

    fn count_calls(&self, caller: &McpCaller, calls: usize) -> Result<(), Problem> {
        let now = self.service.now();
        let taken = self.calls.take(&caller.id, calls, now);
        if self.calls.is_exchange_due() {
            let (limit, store) = (Arc::clone(&self.calls), Arc::clone(&self.service.store));
            // Nobody waits for it: until it is done, the limit is that of this node.
            tokio::task::spawn_blocking(move || limit.exchange(&*store, now));
        }
        taken.map_err(too_many)
    }

    /// Reads the body, within a size and a time limit. A body that is late is waited for without holding a slot.
    async fn read_body(
        &self,
        request: Request,
        caller: &Caller,
    ) -> Result<(Parts, Bytes, Permit), Problem> {
        let permit = self.service.admit(caller).await?;
        let (parts, body) = request.into_parts();
        let mut read = pin!(axum::body::to_bytes(body, MAX_BODY_BYTES));
        let (read, permit) = if let Ok(read) = timeout(BODY_GRACE, read.as_mut()).await {
            (read, permit)
        } else {
            drop(permit);
            let read = timeout(self.service.limits.body_pause, read).await;
            let late = |_| Problem::from_status(StatusCode::REQUEST_TIMEOUT);
            (read.map_err(late)?, self.service.admit(caller).await?)
        };
        let bytes = read.map_err(|_| Problem::from_status(StatusCode::PAYLOAD_TOO_LARGE))?;
        Ok((parts, bytes, permit))
    }

    fn add_icon_link(&self, response: &mut Response) {
        let link = self.presented.icon_url.as_ref().map(|url| {
            HeaderValue::from_str(&format!("<{url}>; rel=\"icon\"; type=\"image/svg+xml\""))
        });
        if let Some(Ok(link)) = link {
            response.headers_mut().insert(header::LINK, link);
        }
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_millis().div_ceil(1_000);
    let message = "this grant has made more calls than allowed in a minute";
    let error = ReadError::new(ErrorCode::RateLimitExceeded, message)
        .with_hint(format!("wait {seconds} seconds, then repeat the call"));
    Problem::from(error).with_header(header::RETRY_AFTER, &seconds.to_string())
}
