//! The router, made from the table: who may call, which parameters are known, and how long an answer may take are decided
//! here for every route alike.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use contract::error::{ErrorCode, ReadError};
use contract::upstream::TOKEN_KIND_HEADER;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate as _, SizeAbove};

use crate::auth::{AS_GRANT, Caller, Gate, caller};
use crate::console::{self, PAGES};
use crate::endpoints::ENDPOINTS;
use crate::hosted;
use crate::hosts::{self, Asked};
use crate::line::Place;
use crate::observe::{Served, check_version, observe};
use crate::owner::OWNER_ENDPOINTS;
use crate::params::Params;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Ask, Endpoint, Outcome, Run, Running, Verb};

/// Answers shorter than this are sent as they are.
const COMPRESSED_FROM: u64 = 1024;

/// All routes, for callers who prove who they are with a bearer token, and the tools over them.
pub fn router(service: Service) -> Router {
    let reads = build(service.clone(), Gate::Bearer);
    let service = Arc::new(service);
    let guard = axum::middleware::from_fn_with_state(Arc::clone(&service), hosts::guard);
    let all = hosted::routes(service, reads.clone()).merge(reads);
    all.layer(guard)
}

/// All routes and those of [`crate::owner`], for a place that only the owner can reach: every caller is the owner, no token is
/// asked for, and nothing is cut short.
pub fn owner_router(service: Service) -> Router {
    build(service, Gate::Owner)
}

fn build(service: Service, gate: Gate) -> Router {
    let service = Arc::new(service);
    let mut router = Router::new();
    // These have no token that could be enough, so where tokens are asked for they do not exist.
    // Pages are for browsers, and no browser comes through the owner's socket.
    let more = match gate {
        Gate::Owner => OWNER_ENDPOINTS,
        Gate::Bearer => PAGES,
    };
    for endpoint in ENDPOINTS.iter().chain(more) {
        let filter = match endpoint.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        };
        let service = Arc::clone(&service);
        let handler = move |request: Request| handle(endpoint, service, gate, request);
        router = router.route(endpoint.path, on(filter, handler));
    }
    wrapped(router, service)
}

/// The layers around all routes, innermost first.
fn wrapped(router: Router, service: Arc<Service>) -> Router {
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESSED_FROM).and(is_our_text));
    router
        .layer(CatchPanicLayer::custom(after_panic))
        .layer(compression)
        .layer(axum::middleware::from_fn_with_state(service, observe))
}

/// Blobs are sent as they are: most are compressed already, and parts of them must have the length they say.
fn is_our_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json") || kind.starts_with("text/plain"))
}

fn after_panic(_: Box<dyn Any + Send>) -> Response {
    Problem::internal("a handler panicked", &"see the panic message above").into_response()
}

async fn handle(
    endpoint: &'static Endpoint,
    service: Arc<Service>,
    gate: Gate,
    request: Request,
) -> Response {
    let mut served = Served {
        operation: endpoint.operation,
        token: None,
    };
    let is_client = request.headers().contains_key(AS_GRANT);
    let outcome = run(endpoint, (service, gate), request, &mut served).await;
    let outcome = outcome.map_err(|problem| match gate {
        Gate::Owner => problem.told_here(!is_client),
        Gate::Bearer => problem,
    });
    let mut response = outcome.unwrap_or_else(|problem| match endpoint.run {
        Run::OAuth(_) => problem.in_oauth().into_response(),
        Run::Page(_) => console::guarded(problem.on_a_page().into_response()),
        _ => problem.into_response(),
    });
    if let Some(kind) = served.token {
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(TOKEN_KIND_HEADER, kind);
    }
    response.extensions_mut().insert(served);
    response
}

/// What is refused before anybody is asked who they are.
fn check_first(
    endpoint: &Endpoint,
    (service, gate): (&Service, Gate),
    headers: &HeaderMap,
) -> Result<(), Problem> {
    if !matches!(endpoint.run, Run::OAuth(_) | Run::Page(_)) {
        check_version(headers)?;
    }
    if serves_clients(endpoint, gate, headers) {
        service.refuse_rolled_back()?;
    }
    Ok(())
}

/// What was asked for, as it was written.
fn target(parts: &Parts) -> String {
    let target = parts.uri.path_and_query();
    target.map(ToString::to_string).unwrap_or_default()
}

/// Whether an answer may reach others than the owner at this machine. What only tells how the server is does not count.
fn serves_clients(endpoint: &Endpoint, gate: Gate, headers: &HeaderMap) -> bool {
    match (gate, &endpoint.run) {
        (Gate::Owner, _) => headers.contains_key(AS_GRANT),
        (Gate::Bearer, Run::Anybody(_) | Run::Operator(_)) => false,
        (Gate::Bearer, Run::Page(_) | Run::OAuth(_) | Run::Reader(_) | Run::Owner(_)) => true,
    }
}

/// Waits for a place to answer a read at. The owner's socket has no line.
async fn place(
    endpoint: &Endpoint,
    (service, gate): (&Service, Gate),
    caller: Option<&Caller>,
) -> Result<Option<Place>, Problem> {
    match caller {
        Some(caller) if matches!(endpoint.run, Run::Reader(_)) && gate == Gate::Bearer => {
            service.place(caller).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// The caller whose token was looked at already, or the one who proves now who they are.
async fn known_or_asked(
    service: &Service,
    gate: Gate,
    parts: &mut Parts,
) -> Result<Caller, Problem> {
    match parts.extensions.remove::<Caller>() {
        Some(known) => Ok(known),
        None => caller(service, gate, &parts.headers).await,
    }
}

/// Whether somebody may see how the server runs without a token: at the machine itself, or in the owner's browser.
async fn operates(service: &Arc<Service>, parts: &Parts) -> Result<bool, Problem> {
    let peer = parts.extensions.get::<Peer>();
    if peer.is_some_and(|peer| peer.is_here(&service.proxies, &parts.headers)) {
        return Ok(true);
    }
    let session = console::session_of(Arc::clone(service), &parts.headers);
    Ok(session.await?.is_some())
}

/// Who asks, where somebody must prove it.
async fn who(
    endpoint: &Endpoint,
    (service, gate): (&Arc<Service>, Gate),
    parts: &mut Parts,
) -> Result<Option<Caller>, Problem> {
    match &endpoint.run {
        Run::Anybody(_) | Run::OAuth(_) | Run::Page(_) => Ok(None),
        Run::Operator(_) if operates(service, parts).await? => Ok(None),
        Run::Reader(_) | Run::Owner(_) | Run::Operator(_) => {
            known_or_asked(service, gate, parts).await.map(Some)
        }
    }
}

/// Who asks, and their place in line. A tool that asks has a place already.
async fn admitted(
    endpoint: &Endpoint,
    (service, gate): (&Arc<Service>, Gate),
    parts: &mut Parts,
) -> Result<(Option<Caller>, Option<Place>), Problem> {
    let is_known = parts.extensions.get::<Caller>().is_some();
    let caller = who(endpoint, (service, gate), parts).await?;
    let waiting = caller.as_ref().filter(|_| !is_known);
    let place = place(endpoint, (service, gate), waiting).await?;
    Ok((caller, place))
}

async fn run(
    endpoint: &'static Endpoint,
    (service, gate): (Arc<Service>, Gate),
    request: Request,
    served: &mut Served,
) -> Outcome {
    let (mut parts, body) = request.into_parts();
    let lenient = matches!(endpoint.run, Run::OAuth(_) | Run::Page(_));
    check_first(endpoint, (&service, gate), &parts.headers)?;
    if let Run::Page(_) = endpoint.run
        && let Some(elsewhere) = not_at_the_console(&service, endpoint.verb, &parts)
    {
        return elsewhere;
    }
    let (caller, _place) = admitted(endpoint, (&service, gate), &mut parts).await?;
    served.token = caller.as_ref().map(|caller| caller.kind.as_str());
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = path.map_err(|_| Problem::of_status(StatusCode::NOT_FOUND))?;
    let (limits, address) = (service.limits, address(&service, &parts));
    let query = parts.uri.query().filter(|_| !lenient);
    let ask = Ask {
        address,
        service,
        target: target(&parts),
        path: path.iter().map(|(_, part)| part.to_owned()).collect(),
        params: Params::parse(query.unwrap_or_default())?,
        headers: parts.headers,
        body,
    };
    let running = running(endpoint, caller, ask)?;
    // The owner knows what they asked for, and can stop it.
    if gate == Gate::Owner {
        return running.await;
    }
    let answered = tokio::time::timeout(limits.time_for(endpoint.verb), running);
    answered.await.unwrap_or_else(|_| Err(too_slow()))
}

/// The answer on its way, to whoever may have it.
fn running(endpoint: &Endpoint, caller: Option<Caller>, ask: Ask) -> Result<Running, Problem> {
    let check = |ask: &Ask| ask.params.check(endpoint.params);
    match (&endpoint.run, caller) {
        (Run::Anybody(run), _) | (Run::Operator(run), None) => {
            check(&ask)?;
            Ok(run(ask))
        }
        (Run::OAuth(run) | Run::Page(run), _) => Ok(run(ask)),
        (Run::Reader(run), Some(caller)) => {
            check(&ask)?;
            Ok(run(ask, caller))
        }
        (Run::Owner(run) | Run::Operator(run), Some(caller)) if caller.is_owner() => {
            check(&ask)?;
            Ok(run(ask))
        }
        (Run::Owner(_) | Run::Operator(_) | Run::Reader(_), _) => {
            let message = "Owner token required";
            Err(Problem::new(ErrorCode::PermissionError, message))
        }
    }
}

/// The answer to a page that is asked for at another host than that of the owner's pages, where they have one of their
/// own: the browser is sent there, with all it asked for. A form that comes by another host is not of our pages.
fn not_at_the_console(service: &Service, verb: Verb, parts: &Parts) -> Option<Outcome> {
    let console = &service.console;
    let asked = parts.extensions.get::<Asked>();
    if !console.is_apart() || asked.is_some_and(|Asked(host)| console.is_at(host)) {
        return None;
    }
    // The root is a page to browsers only.
    if parts.uri.path() == "/" && !console::wants_page(&parts.headers) {
        return None;
    }
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    if verb == Verb::Get {
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

/// From where a request was sent.
fn address(service: &Service, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| {
        peer.behind(&service.proxies, &parts.headers)
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
    use contract::time::{Clock, Instant};
    use grants::DisclosureLog;
    use store::{EmbeddedStore, OpenOptions, Store};
    use tower::ServiceExt as _;

    struct Midnight;

    impl Clock for Midnight {
        fn now(&self) -> Instant {
            Instant(0)
        }
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_a_structured_error() {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            holder: "a test of the router".to_owned(),
            clock: Arc::new(Midnight),
        };
        let store = EmbeddedStore::open(&folder.path().join("data"), options).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let log = Arc::new(DisclosureLog::start(Arc::clone(&store)).unwrap());
        let key = SealingKey::from_bytes([1; 32]);
        let service = Service::new(store, key, Arc::new(Midnight), "http://localhost", log);
        let broken = Router::new().route("/", get(|| async { panic!("a secret") as Response }));
        let request = Request::get("/").body(Body::empty()).unwrap();
        let router = wrapped(broken, Arc::new(service));
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("request-id"));
        let body = axum::body::to_bytes(response.into_body(), 10_000).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(body.contains("internal_error") && !body.contains("secret"));
    }
}
