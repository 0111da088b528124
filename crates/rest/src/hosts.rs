//! Which hosts a request may be for. A page that a browser was tricked into trusting (DNS rebinding) asks by its own
//! name, and so does whoever forges the header: both are told that they have the wrong server, whatever the route.

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

use crate::metrics::NO_ROUTE;
use crate::observe;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::service::Service;

/// Whoever watches over a server asks it by whatever address it has.
const FOR_ANY_HOST: [&str; 2] = ["/healthz", "/readyz"];

/// The host a request was sent to, once it is known to be ours.
#[derive(Debug, Clone)]
pub(crate) struct Asked(pub(crate) Host);

/// Lets a request pass that was sent to this server.
pub(crate) async fn guard(
    State(service): State<Arc<Service>>,
    mut request: Request,
    next: Next,
) -> Response {
    if FOR_ANY_HOST.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>().copied();
    match asked(&service, peer, request.uri(), request.headers()) {
        Some(host) => {
            request.extensions_mut().insert(Asked(host));
            next.run(request).await
        }
        None => refused(&service, request.headers()),
    }
}

/// The host a request is for, if all that it says of it is ours.
fn asked(service: &Service, peer: Option<Peer>, uri: &Uri, headers: &HeaderMap) -> Option<Host> {
    let said = said(peer, &service.proxies, headers);
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    let mut hosts = said.into_iter().chain(target).map(|text| {
        let host = Host::parse(text)?;
        is_ours(service, peer, &host).then_some(host)
    });
    let first = hosts.next()??;
    hosts
        .all(|host| host.as_ref() == Some(&first))
        .then_some(first)
}

/// What the request says it is for: its `Host`, or what a trusted proxy says that was.
fn said<'a>(peer: Option<Peer>, proxies: &[IpAddr], headers: &'a HeaderMap) -> Vec<&'a str> {
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
        || Host::of_url(&service.public_url).as_ref() == Some(host)
        || (service.at_own_addresses && peer.is_some_and(|peer| peer.reached(host)))
}

/// Whether a host is a name of this machine: loopback, or that of the pages there.
pub(crate) fn is_this_machine(host: &Host) -> bool {
    host.is_loopback() || Console::is_own_name(host)
}

/// The same of a host with or without a port, as a header has it.
pub(crate) fn names_this_machine(authority: &str) -> bool {
    Host::parse(authority).is_some_and(|host| is_this_machine(&host))
}

fn refused(service: &Service, headers: &HeaderMap) -> Response {
    let began = Moment::now();
    let message = "the request was sent to another host than this server goes by";
    let hint = format!(
        "use {}; a proxy in front has to pass the Host it was asked by",
        service.public_url
    );
    let error = ReadError::new(ErrorCode::MisdirectedRequest, message).with_hint(hint);
    let problem = Problem::from(error).with_status(StatusCode::MISDIRECTED_REQUEST);
    let id = observe::request_id(headers);
    let mut response = observe::told(&problem, &id);
    observe::stamp(response.headers_mut(), &id);
    let (status, took) = (response.status().as_u16(), began.elapsed());
    service.metrics.answered(NO_ROUTE, status, took);
    tracing::info!(request_id = %id, operation = NO_ROUTE, status, code = problem.code(), "request");
    response
}
