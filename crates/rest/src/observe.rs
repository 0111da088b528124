//! The outermost layer: request ids, standard headers, error bodies, metrics and the access log. It never sees
//! personal data.

use std::sync::Arc;
use std::time::Instant as Moment;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use contract::error::{ErrorCode, ReadError};

use crate::console;
use crate::metrics::NO_ROUTE;
use crate::params::quoted;
use crate::problem::{HasOwnBody, Problem};
use crate::service::Service;

pub(crate) const VERSION: &str = "2026-04-06";

const VERSION_HEADER: HeaderName = HeaderName::from_static("pdpp-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest request id that is taken over from a request.
const MAX_ID_BYTES: usize = 128;

/// The crates whose events may be logged at any level: they name operations, never what was asked or found.
const OWN_CRATES: [&str; 11] = [
    "client", "contract", "demo", "grants", "ingest", "mcp", "meaning", "pdpp", "read", "rest",
    "store",
];

/// Whether an event may stand in the log, at whatever level the log is kept. Libraries write whole requests into theirs, with
/// questions and tokens; only their warnings and errors are taken.
pub fn is_logged(event: &tracing::Metadata<'_>) -> bool {
    let owner = event.target().split("::").next().unwrap_or_default();
    *event.level() <= tracing::Level::WARN || OWN_CRATES.contains(&owner)
}

/// Marks the response to a request whose handler panicked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panicked;

/// What a handler reports about a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestLabels {
    pub(crate) operation: &'static str,
    pub(crate) token: Option<&'static str>,
}

pub(crate) async fn observe(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Moment::now();
    let in_flight = service.metrics.begin();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let wants_page = console::wants_page(request.headers());
    let mut response = next.run(request).await;
    let mut problem = take_problem(&mut response);
    // Whoever failed without a word did not know who asked.
    if wants_page && response.extensions_mut().remove::<Panicked>().is_some() {
        problem = problem.map(Problem::into_page);
        response = console::with_security_headers(response);
    }
    if let Some(problem) = &problem {
        write_error_body(&mut response, problem, &id);
    }
    set_standard_headers(response.headers_mut(), &id);
    if method == Method::HEAD {
        drop_body(&mut response);
    }
    drop(in_flight);
    let served = response.extensions_mut().remove::<RequestLabels>();
    let served = served.unwrap_or(RequestLabels {
        operation: NO_ROUTE,
        token: None,
    });
    let (status, took) = (response.status().as_u16(), began.elapsed());
    service.metrics.record(served.operation, status, took);
    let code = problem.map(|problem| problem.code());
    tracing::info!(
        request_id = %id,
        method = %method,
        operation = served.operation,
        token = served.token.unwrap_or("none"),
        status,
        code = code.unwrap_or(if status < 400 { "ok" } else { "told_on_page" }),
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        "request"
    );
    response
}

pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(asked) = headers.get(&VERSION_HEADER) else {
        return Ok(());
    };
    if asked.is_empty() || asked == VERSION {
        return Ok(());
    }
    let asked = quoted(&String::from_utf8_lossy(asked.as_bytes()));
    let message = format!("PDPP-Version '{asked}' is not served");
    Err(ReadError::new(ErrorCode::UnsupportedVersion, message)
        .with_hint(format!("send {VERSION}, or leave the header out"))
        .into())
}

fn take_problem(response: &mut Response) -> Option<Problem> {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if response.extensions_mut().remove::<HasOwnBody>().is_some() {
        return None;
    }
    let attached = response.extensions_mut().remove::<Problem>();
    attached.or_else(|| failed.then(|| Problem::from_status(status)))
}

fn write_error_body(response: &mut Response, problem: &Problem, id: &str) {
    let (media_type, body) = problem.to_body(id);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.remove(header::CONTENT_ENCODING);
    *response.body_mut() = Body::from(body);
}

/// The complete error response, where this layer is not in use.
pub(crate) fn error_response(problem: &Problem, id: &str) -> Response {
    let mut response = problem.clone().into_response();
    response.extensions_mut().remove::<Problem>();
    write_error_body(&mut response, problem, id);
    response
}

/// Answers `HEAD`: drops the body and keeps its length.
fn drop_body(response: &mut Response) {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact() {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert(HeaderValue::from(length));
    }
}

pub(crate) fn set_standard_headers(headers: &mut HeaderMap, id: &str) {
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id.clone());
        headers.insert(X_REQUEST_ID, id);
    }
    // Personal data must not be cached.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("private, no-store"));
}

/// The request's own id, if it is harmless; else a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> String {
    let brought = headers
        .get(REQUEST_ID)
        .or_else(|| headers.get(X_REQUEST_ID));
    let brought = brought.and_then(|value| value.to_str().ok());
    let sane = brought.filter(|id| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
    });
    sane.map_or_else(new_request_id, str::to_owned)
}

pub(crate) fn new_request_id() -> String {
    // Without randomness the ids are equal, and the log still shows the order.
    let random = getrandom::u64().unwrap_or_default();
    format!("req_{random:016x}")
}
