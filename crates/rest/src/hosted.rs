//! `/mcp`: the tools over HTTP, for whoever presents the token of a grant or a package.
//!
//! A tool asks this process's own routes, on behalf of the caller that was let in at the door; so it can be told nothing
//! that `/v1` would not tell. Nothing is kept between requests but how many a grant has made lately.

mod batch;
mod door;
mod rate;
mod reads;
mod refused;

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

use self::door::{Door, Guest};
use self::rate::Rates;
use self::reads::OwnReads;
use self::refused::Sent;
use crate::auth::Caller;
use crate::line::Place;
use crate::metrics::TOOLS;
use crate::observe;
use crate::problem::Problem;
use crate::service::Service;

/// Where the tools are.
pub(crate) const PATH: &str = "/mcp";
/// A call is a few arguments; nothing larger is one.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// A call usually comes with the head of its request.
const AT_ONCE: Duration = Duration::from_millis(2);
const PACKAGE_ID: HeaderName = HeaderName::from_static("x-pdpp-grant-package-id");
const PACKAGE_MEMBERS: HeaderName = HeaderName::from_static("x-pdpp-grant-package-member-count");

/// What every request is answered with.
struct Hosted {
    service: Arc<Service>,
    /// The routes a tool asks.
    reads: Router,
    door: Door,
    rates: Rates,
    http: HttpSettings,
    presented: Options,
}

/// The route of the tools, over the routes they ask.
pub(crate) fn routes(service: Arc<Service>, reads: Router) -> Router {
    let url = service.public_url.to_string();
    let door = Door::new(&url);
    let hosted = Arc::new(Hosted {
        http: HttpSettings::checked_before(MAX_BODY_BYTES),
        door,
        rates: Rates::new(service.limits.calls_per_minute),
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
        let (mut response, kind) = match self.admitted(request, &id).await {
            Ok((response, guest)) => (response, guest.kind()),
            Err(problem) => (observe::told(&problem, &id), "none"),
        };
        observe::stamp(response.headers_mut(), &id);
        self.sign(&mut response);
        drop(in_flight);
        let (status, took) = (response.status().as_u16(), began.elapsed());
        self.service.metrics.answered(TOOLS, status, took);
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

    /// Lets the request in, or says why not; then the tools answer it.
    async fn admitted(&self, request: Request, id: &str) -> Result<(Response, Guest), Problem> {
        // Before any look at a token: a host that probes with GET must learn that there is no stream, not that it may
        // not come in.
        if request.method() != Method::POST {
            return Err(Problem::of_status(StatusCode::METHOD_NOT_ALLOWED)
                .with_header(header::ALLOW, "POST"));
        }
        self.door.check(request.headers())?;
        self.service.refuse_rolled_back()?;
        let guest = door::guest(&self.service, request.headers()).await?;
        self.rates
            .take(guest.id(), 1, self.service.now())
            .map_err(too_many)?;
        let (parts, sent, _place) = self.whole(request, &guest.caller()).await?;
        let sent = Sent {
            is_json: refused::is_json(&parts.headers),
            body: sent,
        };
        let reads = OwnReads::new(self, &guest, id);
        let server = Server::new(Arc::new(reads), self.presented.clone());
        let list = sent.is_json.then(|| mcp::batch(&sent.body)).flatten();
        let mut response = match list {
            Some(Ok(entries)) => {
                // The first was counted already.
                self.rates
                    .take(guest.id(), entries.len() - 1, self.service.now())
                    .map_err(too_many)?;
                batch::answer(&server, &self.http, &parts, &entries).await?
            }
            Some(Err(error)) => batch::refused(&error),
            None => {
                let request = Request::from_parts(parts, Body::from(sent.body.clone()));
                let response = mcp::serve_http(server, &self.http, request).await;
                refused::told(response.map(Body::new), &sent).await?
            }
        };
        if let Some((package, members)) = guest.package() {
            let headers = response.headers_mut();
            headers.extend(HeaderValue::from_str(package).map(|id| (PACKAGE_ID, id)));
            headers.insert(PACKAGE_MEMBERS, HeaderValue::from(members));
        }
        Ok((response, guest))
    }

    /// The request with its body read, if that is no larger than a call and comes in time. A body that is not there yet
    /// is waited for outside the line.
    async fn whole(
        &self,
        request: Request,
        caller: &Caller,
    ) -> Result<(Parts, Bytes, Place), Problem> {
        let place = self.service.place(caller).await?;
        let (parts, body) = request.into_parts();
        let mut read = pin!(axum::body::to_bytes(body, MAX_BODY_BYTES));
        let (read, place) = if let Ok(read) = timeout(AT_ONCE, read.as_mut()).await {
            (read, place)
        } else {
            drop(place);
            let read = timeout(self.service.limits.body_pause, read).await;
            let late = |_| Problem::of_status(StatusCode::REQUEST_TIMEOUT);
            (read.map_err(late)?, self.service.place(caller).await?)
        };
        let bytes = read.map_err(|_| Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE))?;
        Ok((parts, bytes, place))
    }

    fn sign(&self, response: &mut Response) {
        let link = self.presented.icon_url.as_ref().map(|url| {
            HeaderValue::from_str(&format!("<{url}>; rel=\"icon\"; type=\"image/svg+xml\""))
        });
        if let Some(Ok(link)) = link {
            response.headers_mut().insert(header::LINK, link);
        }
    }
}

fn too_many(seconds: u64) -> Problem {
    let message = "this grant has made more calls than allowed in a minute";
    let error = ReadError::new(ErrorCode::RateLimitExceeded, message)
        .with_hint(format!("wait {seconds} seconds, then repeat the call"));
    Problem::from(error).with_header(header::RETRY_AFTER, &seconds.to_string())
}
