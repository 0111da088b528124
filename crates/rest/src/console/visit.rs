//! Who is at the pages: cookies, the session behind them, and the token that forms of the session carry.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use axum::response::Response;
use contract::error::{ErrorCode, ReadError};
use grants::Secret;
use grants::sign_in::{self, BROWSER_LIFE, Presented, Session};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::see_other;
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::Ask;

/// How long a browser keeps the session; the server forgets one that rests as long.
const KEPT_SECONDS: u64 = 7 * 24 * 60 * 60;
/// The cookie by which a browser is known again in which the owner has signed in; it signs nobody in.
pub(super) const BROWSER: &str = "browser";
/// The longest own address that is returned to.
const MAX_RETURN_BYTES: usize = 2_048;

/// The signed-in owner's session, if this is their browser. It keeps nothing of the request, whose body cannot be
/// shared between threads.
pub(super) fn session(
    ask: &Ask,
) -> impl Future<Output = Result<Option<Session>, Problem>> + Send + use<> {
    session_of(Arc::clone(&ask.service), &ask.headers)
}

/// The same, of a request's headers.
pub(crate) fn session_of(
    service: Arc<Service>,
    headers: &HeaderMap,
) -> impl Future<Output = Result<Option<Session>, Problem>> + Send + use<> {
    let presented = presented(&service, headers);
    async move {
        let Some((secret, second)) = presented else {
            return Ok(None);
        };
        let look_up = move |service: &Service| {
            let presented = Presented {
                secret: &secret,
                second: second.as_ref().map(Secret::expose),
            };
            sign_in::session(&*service.store, presented, service.now())
                .map_err(|error| Problem::internal("a session could not be looked up", &error))
        };
        blocking(service, look_up).await
    }
}

/// The secret of the session, and the second half where the browser has one.
pub(super) fn presented(
    service: &Service,
    headers: &HeaderMap,
) -> Option<(String, Option<Secret>)> {
    let secret = cookie(headers, &cookie_name(service, "session"))?.to_owned();
    let second = headers.get(header::AUTHORIZATION);
    let second = second.and_then(|second| sign_in::second_in(second.to_str().ok()?));
    Some((secret, second))
}

/// The token that forms of a session carry.
pub(super) fn token(session: &Session) -> String {
    session.csrf_token().expose().to_owned()
}

/// Refuses a form that this session's pages did not make.
pub(super) fn check(session: &Session, ask: &Ask, form: &Form) -> Result<(), Problem> {
    if is_from_elsewhere(ask) || !session.checks_csrf(form.one("csrf")) {
        return Err(foreign_form(ask));
    }
    Ok(())
}

pub(super) fn foreign_form(ask: &Ask) -> Problem {
    let message = "this form does not belong to this session, so nothing was done";
    ReadError::new(ErrorCode::PermissionError, message)
        .with_hint(format!(
            "load the page again at {}/ and send it from there",
            ask.service.console.origin()
        ))
        .into()
}

/// Whether the browser says that something else than our pages sent the request. Another port of the same host is
/// something else: browsers call that the same site and send it the same cookies.
pub(super) fn is_from_elsewhere(ask: &Ask) -> bool {
    let said = |name: &str| ask.headers.get(name);
    let site = said("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let ours = |origin: &str| origin == "null" || ask.service.console.is_origin(origin);
    site || said("origin").is_some_and(|origin| !origin.to_str().is_ok_and(ours))
}

/// Sends a visitor to sign in and then back to what they asked for.
pub(super) fn to_sign_in(ask: &Ask) -> Response {
    let back = utf8_percent_encode(&ask.target, NON_ALPHANUMERIC);
    see_other(&format!("/sign-in?return_to={back}"))
}

/// An address to return to, if it is one of our own.
pub(super) fn own_path(text: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let own = text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= MAX_RETURN_BYTES
        && text.bytes().all(plain);
    own.then_some(text)
}

/// A cookie's full name. The prefix makes browsers insist that no other host set it.
pub(super) fn cookie_name(service: &Service, name: &str) -> String {
    let prefix = if service.is_https() { "__Host-" } else { "" };
    format!("{prefix}pdpp_{name}")
}

/// The value of a cookie.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lists = headers.get_all(header::COOKIE);
    lists
        .iter()
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// Sets a cookie that scripts cannot see; without a value it is taken away.
pub(super) fn set_cookie(
    mut response: Response,
    service: &Service,
    name: &str,
    value: Option<&str>,
) -> Response {
    let secure = if service.is_https() { "; Secure" } else { "" };
    let life = match value {
        None => 0,
        Some(_) if name == BROWSER => BROWSER_LIFE.as_secs(),
        Some(_) => KEPT_SECONDS,
    };
    let name = cookie_name(service, name);
    let cookie = format!(
        "{name}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={life}{secure}",
        value.unwrap_or_default()
    );
    if let Ok(cookie) = cookie.parse() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_paths_are_returned_to() {
        for path in ["/", "/consent?request=req_1", "/records/a/b/c%2Fd"] {
            assert_eq!(own_path(path), Some(path));
        }
        let long = format!("/{}", "x".repeat(3_000));
        for path in [
            "",
            "consent",
            "//evil.example/",
            "/\\evil.example",
            "https://evil.example/",
            "/a\r\nSet-Cookie: x=1",
            "/a b",
            "javascript:alert(1)",
            &long,
        ] {
            assert_eq!(own_path(path), None, "{path}");
        }
    }
}
