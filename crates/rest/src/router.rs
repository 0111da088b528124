//! The router, made from the table of routes. Authentication, known parameters and time limits are decided here for
//! every route.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use contract::error::{ErrorCode, ReadError};
use contract::upstream::TOKEN_KIND_HEADER;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate as _, SizeAbove};

use crate::admission::Permit;
use crate::auth::{AS_GRANT, AuthMode, Caller, authenticate};
use crate::console::{self, PAGES};
use crate::endpoints::ENDPOINTS;
use crate::hosted;
use crate::hosts::{self, RequestedHost};
use crate::observe::{Panicked, RequestLabels, check_version, observe};
use crate::owner::OWNER_ENDPOINTS;
use crate::params::Params;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::service::Service;
use crate::step_up;
use crate::table::{Endpoint, Handler, HandlerFuture, HandlerResult, RequestContext, Verb};

/// The most that one call may need of what is allowed once.
const MOST_ALLOWED_ONCE: usize = 4;
/// Smaller responses are not compressed.
const COMPRESSED_FROM: u64 = 1024;

/// All routes for callers with a bearer token, and the tools over them.
pub fn router(service: Service) -> Router {
    let reads = build(service.clone(), AuthMode::Bearer);
    let service = Arc::new(service);
    let guard = axum::middleware::from_fn_with_state(Arc::clone(&service), hosts::guard);
    let all = hosted::routes(service, reads.clone()).merge(reads);
    all.layer(guard)
}

/// All routes and those of [`crate::owner`], for a socket only the owner can reach: every caller is the owner, no
/// token is needed, and there is no time limit.
pub fn owner_router(service: Service) -> Router {
    build(service, AuthMode::OwnerSocket)
}

fn build(service: Service, auth_mode: AuthMode) -> Router {
    let service = Arc::new(service);
    let mut router = Router::new();
    // Owner routes exist only on the owner's socket, because no token would be enough for them. Pages exist only where
    // browsers come.
    let more = match auth_mode {
        AuthMode::OwnerSocket => OWNER_ENDPOINTS,
        AuthMode::Bearer => PAGES,
    };
    for endpoint in ENDPOINTS.iter().chain(more) {
        let filter = match endpoint.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        };
        let route = Route {
            endpoint,
            service: Arc::clone(&service),
            auth_mode,
        };
        let handler = move |request: Request| async move { route.handle(request).await };
        router = router.route(endpoint.path, on(filter, handler));
    }
    if auth_mode == AuthMode::Bearer {
        router = router.method_not_allowed_fallback(wrong_method);
    }
    with_layers(router.fallback(no_route), service)
}

/// What answers at an address that is nobody's: a page where a browser looks for one.
async fn no_route(request: Request) -> Response {
    let path = request.uri().path();
    let is_program = ["/v1", "/owner", "/oauth", "/mcp", "/.well-known"]
        .iter()
        .any(|root| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    if is_program || !console::wants_page(request.headers()) {
        return Problem::from_status(StatusCode::NOT_FOUND).into_response();
    }
    let error = ReadError::new(ErrorCode::NotFound, "There is no page at this address.")
        .with_hint("It may have been mistyped, or the page has moved.");
    console::failure(error.into())
}

/// What answers a method that an address does not take: a browser that comes back to where it sent a form is led to the page
/// of that form.
async fn wrong_method(request: Request) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read && console::wants_page(request.headers()) {
        return console::see_other(&console::page_above(request.uri().path()));
    }
    Problem::from_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}

/// The layers around all routes, innermost first.
fn with_layers(router: Router, service: Arc<Service>) -> Router {
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESSED_FROM).and(is_our_text));
    router
        .layer(CatchPanicLayer::custom(after_panic))
        .layer(compression)
        .layer(axum::middleware::from_fn_with_state(service, observe))
}

/// Blobs are not compressed: most are already, and a range must have the length it says.
fn is_our_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json") || kind.starts_with("text/plain"))
}

fn after_panic(_: Box<dyn Any + Send>) -> Response {
    let problem = Problem::internal("a handler panicked", &"see the panic message above");
    let mut response = problem.into_response();
    response.extensions_mut().insert(Panicked);
    response
}

#[derive(Clone)]
struct Route {
    endpoint: &'static Endpoint,
    service: Arc<Service>,
    auth_mode: AuthMode,
}

impl Route {
    async fn handle(self, request: Request) -> Response {
        let mut labels = RequestLabels {
            operation: self.endpoint.operation,
            token: None,
        };
        let is_client = request.headers().contains_key(AS_GRANT);
        let result = self.run(request, &mut labels).await;
        let result = result.map_err(|problem| match self.auth_mode {
            AuthMode::OwnerSocket => problem.for_local_caller(!is_client),
            AuthMode::Bearer => problem,
        });
        let mut response = result.unwrap_or_else(|problem| match self.endpoint.handler {
            Handler::OAuth(_) => problem.into_oauth().into_response(),
            Handler::Page(_) => console::failure(problem),
            _ => problem.into_response(),
        });
        if let Some(kind) = labels.token {
            let kind = HeaderValue::from_static(kind);
            response.headers_mut().insert(TOKEN_KIND_HEADER, kind);
        }
        response.extensions_mut().insert(labels);
        response
    }

    async fn run(&self, request: Request, labels: &mut RequestLabels) -> HandlerResult {
        let (mut parts, body) = request.into_parts();
        self.check_first(&parts.headers)?;
        let is_page = matches!(self.endpoint.handler, Handler::Page(_));
        if is_page && let Some(elsewhere) = self.redirect_to_console(&parts) {
            return elsewhere;
        }
        let (caller, _permit) = self.admit(&mut parts).await?;
        labels.token = caller.as_ref().map(|caller| caller.kind.as_str());
        let path = RawPathParams::from_request_parts(&mut parts, &()).await;
        let path = path.map_err(|_| Problem::from_status(StatusCode::NOT_FOUND))?;
        let is_lenient = is_page || matches!(self.endpoint.handler, Handler::OAuth(_));
        let query = parts.uri.query().filter(|_| !is_lenient);
        let target = parts.uri.path_and_query();
        let context = RequestContext {
            address: address(&self.service, &parts),
            service: Arc::clone(&self.service),
            target: target.map(ToString::to_string).unwrap_or_default(),
            path: path.iter().map(|(_, part)| part.to_owned()).collect(),
            params: Params::parse(query.unwrap_or_default())?,
            headers: parts.headers,
            seen_as: Arc::default(),
            body,
        };
        let is_read = matches!(self.endpoint.handler, Handler::Reader(_));
        let client = caller.clone().filter(|one| is_read && one.is_client());
        let Some(client) = client else {
            let seen_as = Arc::clone(&context.seen_as);
            let answered = self.finish(self.start(caller, context)?).await;
            return answered.map_err(|problem| problem.seen_as(seen_as.get()));
        };
        let again = context.without_body();
        match self.finish(self.start(caller, context)?).await {
            Err(problem) if problem.error.beyond.is_some() => {
                self.step_up(problem, client, again).await
            }
            answered => answered,
        }
    }

    async fn finish(&self, running: HandlerFuture) -> HandlerResult {
        // The owner may wait, and can stop the request. Files take as long as their bytes come, which is bounded by how long
        // they may pause.
        if self.auth_mode == AuthMode::OwnerSocket || self.endpoint.operation == console::UPLOAD {
            return running.await;
        }
        let limit = self.service.limits.time_for(self.endpoint.verb);
        let answered = tokio::time::timeout(limit, running);
        answered.await.unwrap_or_else(|_| Err(too_slow()))
    }

    /// A client has asked beyond its grant: what the owner allowed once is used, else the refusal says where to ask.
    async fn step_up(
        &self,
        mut problem: Problem,
        mut caller: Caller,
        context: RequestContext,
    ) -> HandlerResult {
        let mut used = Vec::new();
        while let Some(beyond) = &problem.error.beyond
            && used.len() < MOST_ALLOWED_ONCE
        {
            let Some(once) = step_up::allowed_once(&self.service, &caller, beyond).await? else {
                break;
            };
            caller = caller.widened(&once);
            used.push(once);
            let running = self.start(Some(caller.clone()), context.without_body())?;
            match self.finish(running).await {
                Err(next) if next.error.beyond.is_some() => problem = next,
                answered => {
                    let is_ours = step_up::consume(&self.service, used).await?;
                    return if is_ours { answered } else { Err(problem) };
                }
            }
        }
        Err(step_up::with_address(&self.service, &caller, problem).await)
    }

    fn check_first(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if !matches!(self.endpoint.handler, Handler::OAuth(_) | Handler::Page(_)) {
            check_version(headers)?;
        }
        if self.serves_clients(headers) {
            self.service.refuse_rolled_back()?;
        }
        Ok(())
    }

    /// Whether the response may reach anybody but the owner at this machine. Public status documents do not count.
    fn serves_clients(&self, headers: &HeaderMap) -> bool {
        match (self.auth_mode, &self.endpoint.handler) {
            (AuthMode::OwnerSocket, _) => headers.contains_key(AS_GRANT),
            (AuthMode::Bearer, Handler::Public(_) | Handler::Operator(_)) => false,
            (
                AuthMode::Bearer,
                Handler::Page(_) | Handler::OAuth(_) | Handler::Reader(_) | Handler::Owner(_),
            ) => true,
        }
    }

    /// The caller and its slot, where the route needs them. A tool that reads in process is authenticated and holds a
    /// slot already; the owner's socket has no queue.
    async fn admit(&self, parts: &mut Parts) -> Result<(Option<Caller>, Option<Permit>), Problem> {
        match &self.endpoint.handler {
            Handler::Public(_) | Handler::OAuth(_) | Handler::Page(_) => return Ok((None, None)),
            Handler::Operator(_) if is_operator(&self.service, parts).await? => {
                return Ok((None, None));
            }
            Handler::Reader(_) | Handler::Owner(_) | Handler::Operator(_) => {}
        }
        if let Some(known) = parts.extensions.remove::<Caller>() {
            return Ok((Some(known.with_trusted_headers(&parts.headers)), None));
        }
        let mut caller = authenticate(&self.service, self.auth_mode, &parts.headers).await?;
        if self.auth_mode == AuthMode::OwnerSocket {
            caller = caller.with_trusted_headers(&parts.headers);
        }
        let is_read = matches!(self.endpoint.handler, Handler::Reader(_));
        let permit = if is_read && self.auth_mode == AuthMode::Bearer {
            Some(self.service.admit(&caller).await?)
        } else {
            None
        };
        Ok((Some(caller), permit))
    }

    fn start(
        &self,
        caller: Option<Caller>,
        context: RequestContext,
    ) -> Result<HandlerFuture, Problem> {
        let handler = &self.endpoint.handler;
        if !matches!(handler, Handler::OAuth(_) | Handler::Page(_)) {
            let is_owner = caller.as_ref().is_some_and(Caller::is_owner);
            let may_use = match handler {
                Handler::Owner(_) => is_owner,
                Handler::Operator(_) => is_owner || caller.is_none(),
                _ => true,
            };
            if !may_use {
                let message = "Owner token required";
                return Err(Problem::new(ErrorCode::PermissionError, message));
            }
            context.params.check(self.endpoint.params)?;
        }
        match (handler, caller) {
            (Handler::Reader(run), Some(caller)) => Ok(run(context, caller)),
            (Handler::Reader(_), None) => Err(Problem::internal("a read", &"it has no caller")),
            (
                Handler::Public(run)
                | Handler::Operator(run)
                | Handler::OAuth(run)
                | Handler::Page(run)
                | Handler::Owner(run),
                _,
            ) => Ok(run(context)),
        }
    }

    /// The response to a page request at another host than the console's: a redirect there. A form sent to another host
    /// does not come from our pages and is refused.
    fn redirect_to_console(&self, parts: &Parts) -> Option<HandlerResult> {
        let console = &self.service.console;
        let asked = parts.extensions.get::<RequestedHost>();
        if !console.is_apart() || asked.is_some_and(|RequestedHost(host)| console.is_at(host)) {
            return None;
        }
        // Only browsers get a page at the root.
        if parts.uri.path() == "/" && !console::wants_page(&parts.headers) {
            return None;
        }
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if self.endpoint.verb == Verb::Get {
            return Some(Ok(console::see_other(&format!(
                "{}{target}",
                console.origin()
            ))));
        }
        let message = format!("the pages of this server are at {}/", console.origin());
        let error = ReadError::new(ErrorCode::MisdirectedRequest, message);
        let problem =
            Problem::from(error.with_hint("nothing was done; open that page and go on from there"));
        Some(Err(problem.with_status(StatusCode::MISDIRECTED_REQUEST)))
    }
}

/// Whether metrics may be read without a token: from this machine, or in the owner's browser.
async fn is_operator(service: &Arc<Service>, parts: &Parts) -> Result<bool, Problem> {
    let peer = parts.extensions.get::<Peer>();
    if peer.is_some_and(|peer| peer.is_local(&service.proxies, &parts.headers)) {
        return Ok(true);
    }
    let session = console::session_from_headers(Arc::clone(service), &parts.headers);
    Ok(session.await?.is_some())
}

fn address(service: &Service, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| {
        peer.client_address(&service.proxies, &parts.headers)
    })
}

fn too_slow() -> Problem {
    let message = "the answer took longer than the server allows";
    Problem::from(
        ReadError::new(ErrorCode::InternalError, message)
            .with_hint("ask for less: a smaller limit, fewer streams, a narrower time"),
    )
    .with_status(StatusCode::SERVICE_UNAVAILABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::routing::get;
    use contract::seal::SealingKey;
    use contract::time::Instant;
    use grants::DisclosureLog;
    use store::{EmbeddedStore, OpenOptions, Store};
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn a_handler_that_panics_is_a_structured_error() {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions::new("a test of the router", Arc::new(Instant(0)));
        let store = EmbeddedStore::open(&folder.path().join("data"), options).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let log = Arc::new(DisclosureLog::start(Arc::clone(&store)).unwrap());
        let key = SealingKey::from_bytes([1; 32]);
        let service = Service::new(store, key, Arc::new(Instant(0)), "http://localhost", log);
        let broken = Router::new().route("/", get(|| async { panic!("a secret") as Response }));
        let request = Request::get("/").body(Body::empty()).unwrap();
        let router = with_layers(broken, Arc::new(service));
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("request-id"));
        let body = axum::body::to_bytes(response.into_body(), 10_000).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(body.contains("internal_error") && !body.contains("secret"));
        // For a browser it is a page.
        let request = Request::get("/").header("accept", "text/html");
        let request = request.body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("content-security-policy"));
        let body = axum::body::to_bytes(response.into_body(), 10_000).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(body.contains("<h1>Something failed here</h1>") && !body.contains("secret"));
    }
}
