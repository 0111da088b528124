//! Cookies, the session behind them, and the CSRF token of its forms.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use axum::response::Response;
use contract::error::{ErrorCode, ReadError};
use grants::Secret;
use grants::sign_in::{self, BROWSER_LIFE, Presented, Session};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::RequestContext;

/// How long the cookie lives; the server ends a session that is idle for as long.
const COOKIE_SECONDS: u64 = 7 * 24 * 60 * 60;
/// The cookie that recognises a browser in which the owner has signed in before. It does not sign in.
pub(super) const BROWSER: &str = "browser";
const SIGN_IN: &str = "/sign-in";
const MAX_RETURN_BYTES: usize = 2_048;

/// The owner's session, if this browser is signed in. The future borrows nothing of the request, whose body is not
/// `Sync`.
pub(super) fn session(
    context: &RequestContext,
) -> impl Future<Output = Result<Option<Session>, Problem>> + Send + use<> {
    session_from_headers(Arc::clone(&context.service), &context.headers)
}

pub(crate) fn session_from_headers(
    service: Arc<Service>,
    headers: &HeaderMap,
) -> impl Future<Output = Result<Option<Session>, Problem>> + Send + use<> {
    let presented = session_secrets(&service, headers);
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

/// The session's secret, and its second half if the browser sends one.
pub(super) fn session_secrets(
    service: &Service,
    headers: &HeaderMap,
) -> Option<(String, Option<Secret>)> {
    let secret = cookie(headers, &cookie_name(service, "session"))?.to_owned();
    let second = headers.get(header::AUTHORIZATION);
    let second = second.and_then(|second| sign_in::second_in(second.to_str().ok()?));
    Some((secret, second))
}

pub(super) fn csrf_token(session: &Session) -> String {
    session.csrf_token().expose().to_owned()
}

/// The session; where there is none, the owner signs in and comes back.
pub(super) fn signed_in(
    context: &RequestContext,
) -> impl Future<Output = Result<Session, Problem>> + Send + use<> {
    let session = session(context);
    let sign_in = match context.target.as_str() {
        "/" => SIGN_IN.to_owned(),
        target => sign_in_and_return(target),
    };
    async move { session.await?.ok_or_else(|| Problem::redirect(sign_in)) }
}

/// The session and the form it sent. A form of another site is refused.
pub(super) async fn sent_form(
    context: &mut RequestContext,
    sign_in: &str,
) -> Result<(Session, Form), Problem> {
    let form = Form::read(context).await?;
    let session = session(context).await?;
    let session = session.ok_or_else(|| Problem::redirect(sign_in.to_owned()))?;
    check_form(&session, context, &form)?;
    Ok((session, form))
}

/// Refuses a form that does not come from a page of this session.
pub(super) fn check_form(
    session: &Session,
    context: &RequestContext,
    form: &Form,
) -> Result<(), Problem> {
    if is_cross_origin(context) || !session.checks_csrf(form.value("csrf")) {
        return Err(foreign_form_problem(context));
    }
    Ok(())
}

pub(super) fn foreign_form_problem(context: &RequestContext) -> Problem {
    let message = "this form does not belong to this session, so nothing was done";
    ReadError::new(ErrorCode::PermissionError, message)
        .with_hint(format!(
            "load the page again at {}/ and send it from there",
            context.service.console.origin()
        ))
        .into()
}

/// Whether the browser says that another origin sent the request. Another port of the same host is another origin,
/// although browsers send it the same cookies.
pub(super) fn is_cross_origin(context: &RequestContext) -> bool {
    let said = |name: &str| context.headers.get(name);
    let site = said("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let ours = |origin: &str| origin == "null" || context.service.console.is_origin(origin);
    site || said("origin").is_some_and(|origin| !origin.to_str().is_ok_and(ours))
}

/// Where the owner signs in and comes back from.
pub(super) fn sign_in_and_return(target: &str) -> String {
    let back = utf8_percent_encode(target, NON_ALPHANUMERIC);
    format!("{SIGN_IN}?return_to={back}")
}

/// The path, if it is one of this server that is safe to redirect to.
pub(super) fn local_path(text: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let own = text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= MAX_RETURN_BYTES
        && text.bytes().all(plain);
    own.then_some(text)
}

/// A cookie's full name. With the prefix, browsers accept it from this host only.
pub(super) fn cookie_name(service: &Service, name: &str) -> String {
    let prefix = if service.is_https() { "__Host-" } else { "" };
    format!("{prefix}pdpp_{name}")
}

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

/// Sets an `HttpOnly` cookie, or deletes it if there is no value.
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
        Some(_) => COOKIE_SECONDS,
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
            assert_eq!(local_path(path), Some(path));
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
            assert_eq!(local_path(path), None, "{path}");
        }
    }
}
