//! Checks which host a request was sent to. Pages that use DNS rebinding and clients that forge the header name
//! another host; they get 421 on every route.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant as Moment;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use contract::Host;
use contract::error::{ErrorCode, ReadError};
use grants::sign_in::Console;

use crate::console;
use crate::metrics::NO_ROUTE;
use crate::observe;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::service::Service;

/// Health checks may use any address of the server.
const FOR_ANY_HOST: [&str; 2] = ["/healthz", "/readyz"];

/// The host a request was sent to, after the check.
#[derive(Debug, Clone)]
pub(crate) struct RequestedHost(pub(crate) Host);

/// Middleware that passes requests sent to this server.
pub(crate) async fn guard(
    State(service): State<Arc<Service>>,
    mut request: Request,
    next: Next,
) -> Response {
    if FOR_ANY_HOST.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>().copied();
    match requested_host(&service, peer, request.uri(), request.headers()) {
        Some(host) => {
            request.extensions_mut().insert(RequestedHost(host));
            next.run(request).await
        }
        None => misdirected(&service, request.headers()),
    }
}

/// The host of a request, if everything it says about the host names this server.
fn requested_host(
    service: &Service,
    peer: Option<Peer>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<Host> {
    let names = host_headers(peer, &service.proxies, headers);
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    let mut hosts = names.into_iter().chain(target).map(|text| {
        let host = Host::parse(text)?;
        is_ours(service, peer, &host).then_some(host)
    });
    let first = hosts.next()??;
    hosts
        .all(|host| host.as_ref() == Some(&first))
        .then_some(first)
}

/// The host as the request names it: `Host`, or what a trusted proxy reports.
fn host_headers<'a>(
    peer: Option<Peer>,
    proxies: &[IpAddr],
    headers: &'a HeaderMap,
) -> Vec<&'a str> {
    let text = |value: &'a axum::http::HeaderValue| value.to_str().unwrap_or_default();
    if peer.is_some_and(|peer| peer.is_one_of(proxies))
        && let Some(passed) = headers.get_all("x-forwarded-host").iter().next_back()
    {
        return text(passed).rsplit(',').take(1).map(str::trim).collect();
    }
    headers.get_all(header::HOST).iter().map(text).collect()
}

fn is_ours(service: &Service, peer: Option<Peer>, host: &Host) -> bool {
    is_this_machine(host)
        || service.console.is_at(host)
        || Host::from_url(&service.public_url).as_ref() == Some(host)
        || (service.at_own_addresses && peer.is_some_and(|peer| peer.is_reached_address(host)))
}

/// Refuses requests from pages of other origins than this server's own and those of this machine. A request without an
/// `Origin` was not sent by a page.
pub(crate) fn check_origin(service: &Service, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    if is_allowed_origin(&service.public_url, origin.to_str().unwrap_or_default()) {
        return Ok(());
    }
    let message = "pages of another origin may not call this server";
    Err(Problem::new(ErrorCode::PermissionError, message))
}

fn is_allowed_origin(public_url: &str, origin: &str) -> bool {
    let local = origin.strip_prefix("http://");
    local.is_some_and(names_this_machine) || console::origin(public_url) == origin
}

/// Whether a host is this machine: loopback, or the local name of the console.
pub(crate) fn is_this_machine(host: &Host) -> bool {
    host.is_loopback() || Console::is_own_name(host)
}

/// Like [`is_this_machine`], for a host with or without a port.
pub(crate) fn names_this_machine(authority: &str) -> bool {
    Host::parse(authority).is_some_and(|host| is_this_machine(&host))
}

fn misdirected(service: &Service, headers: &HeaderMap) -> Response {
    let began = Moment::now();
    let message = "the request was sent to another host than this server goes by";
    let hint = format!(
        "use {}; a proxy in front has to pass the Host it was asked by",
        service.public_url
    );
    let error = ReadError::new(ErrorCode::MisdirectedRequest, message).with_hint(hint);
    let problem = Problem::from(error).with_status(StatusCode::MISDIRECTED_REQUEST);
    let problem = if console::wants_page(headers) {
        problem.into_page()
    } else {
        problem
    };
    let id = observe::request_id(headers);
    let mut response = observe::error_response(&problem, &id);
    if console::wants_page(headers) {
        response = console::with_security_headers(response);
    }
    observe::set_standard_headers(response.headers_mut(), &id);
    let (status, took) = (response.status().as_u16(), began.elapsed());
    service.metrics.record(NO_ROUTE, status, took);
    tracing::info!(request_id = %id, operation = NO_ROUTE, status, code = problem.code(), "request");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_are_answered() {
        for (origin, passes) in [
            ("http://localhost:3000", true),
            ("http://pdpp.localhost:7420", true),
            ("https://pdpp.example.org", true),
            ("https://pdpp.example.or", false),
            ("https:", false),
            ("https://evil.example", false),
            ("null", false),
            ("", false),
            ("http://127.0.0.1.evil.example", false),
        ] {
            for url in ["https://pdpp.example.org", "https://pdpp.example.org/data"] {
                assert_eq!(is_allowed_origin(url, origin), passes, "{origin} {url}");
            }
        }
    }
}
