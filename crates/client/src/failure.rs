//! Errors of requests, with a hint. They repeat nothing of a request but its server.

use std::error::Error;

use contract::error::{ErrorCode, ReadError};
use reqwest::Url;

use crate::transport::Limits;

/// The longest text taken over from a server.
const SHOWN: usize = 200;

pub(crate) fn from_reqwest(server: &str, limits: &Limits, error: &reqwest::Error) -> ReadError {
    if error.is_timeout() {
        return timeout(server, limits, error.is_connect());
    }
    if let Some(tls) = caused_by::<rustls::Error>(error) {
        let message = format!(
            "{server} could not be verified: {}",
            short(&tls.to_string())
        );
        return ReadError::new(ErrorCode::RsUnreachable, message).with_hint(
            "check the address and the server's certificate; a private authority must be trusted by this machine",
        );
    }
    if error.is_dns() {
        let message = format!("the name of {server} could not be resolved");
        return ReadError::new(ErrorCode::RsUnreachable, message)
            .with_hint("check the spelling of the address and this machine's network");
    }
    let reason = short(&innermost_cause(error));
    if error.is_connect() {
        let message = format!("{server} could not be reached: {reason}");
        return ReadError::new(ErrorCode::RsUnreachable, message)
            .with_hint("check that the server runs at this address, then try again");
    }
    let broken = caused_by::<std::io::Error>(error).is_some_and(|io| {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        [ConnectionReset, ConnectionAborted, BrokenPipe].contains(&io.kind())
    });
    if broken {
        let message = format!("{server} broke off the connection: {reason}");
        return ReadError::new(ErrorCode::RsUnreachable, message)
            .with_hint("try again; if it stays, look at the server's log");
    }
    bad_response(server, &format!("its answer could not be read: {reason}"))
        .with_hint("try again; if it stays, look at the server's log or what stands before it")
}

fn timeout(server: &str, limits: &Limits, connecting: bool) -> ReadError {
    let message = if connecting {
        format!("{server} took no connection within {:?}", limits.connect)
    } else {
        format!("{server} did not answer within {:?}", limits.total)
    };
    ReadError::new(ErrorCode::RsTimeout, message)
        .with_hint("try again, or ask for less: a smaller limit, fewer fields or fewer streams")
}

/// A redirect, which is never followed: the token is for the named server.
pub(crate) fn redirected(server: &str, asked: &Url, location: Option<&str>) -> ReadError {
    let target = location.and_then(|text| asked.join(text).ok());
    let Some(mut target) = target else {
        return bad_response(server, "it redirects without saying where").with_hint(ADDRESS);
    };
    // Other parts of the URL may be secret.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    target.set_query(None);
    target.set_fragment(None);
    bad_response(
        server,
        &format!("it redirects to {}", short(target.as_str())),
    )
    .with_hint("if that is the server you mean, run `pdpp connect` with its address")
}

pub(crate) fn too_large(server: &str, most: usize) -> ReadError {
    let error = bad_response(server, &format!("its answer is larger than {most} bytes"))
        .with_hint("ask for less: a smaller limit, fewer fields or one stream");
    ReadError {
        is_too_large: true,
        ..error
    }
}

/// The response does not follow the contract.
pub(crate) fn not_the_contract(server: &str, reason: &str) -> ReadError {
    bad_response(server, reason).with_hint(ADDRESS)
}

/// The HTTP client could not be created.
pub(crate) fn no_client(server: &str, detail: &str) -> ReadError {
    let message = format!(
        "no connection to {server} could be prepared: {}",
        short(detail)
    );
    ReadError::new(ErrorCode::RsUnreachable, message)
        .with_hint("check the proxy and certificate settings of this machine")
}

const ADDRESS: &str = "check that the address is that of a PDPP resource server";

fn bad_response(server: &str, reason: &str) -> ReadError {
    ReadError::new(ErrorCode::RsBadResponse, format!("{server}: {reason}"))
}

/// The chain of causes, outermost first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let outermost: &(dyn Error + 'static) = error;
    std::iter::successors(Some(outermost), |&cause| inside(cause))
}

/// The source of an error. An I/O error hides it from `source`.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let Some(io) = error.downcast_ref::<std::io::Error>() else {
        return error.source();
    };
    let carried = io.get_ref()?;
    Some(carried)
}

/// The innermost cause: the outer ones only repeat the address.
fn innermost_cause(error: &reqwest::Error) -> String {
    let innermost = causes(error).last();
    innermost.map(ToString::to_string).unwrap_or_default()
}

fn caused_by<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// One line of bounded length.
pub(crate) fn short(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(SHOWN).collect()
}
