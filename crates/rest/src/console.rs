//! The owner's pages: signing in, deciding what applications may read, and looking at what is there and what was read.
//!
//! They are rendered here and need no script. Every text that somebody else wrote is escaped by the templates, and
//! labels pass [`words::label`] besides. Every form carries the session's token, and nothing is changed by a `GET`.

mod assets;
mod choice;
mod consent;
mod device;
mod door;
mod grant;
mod home;
mod record;
mod review;
mod sessions;
mod sign_in;
mod turns;
mod visit;
mod words;

use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use contract::error::ReadError;

use crate::oauth;
use crate::problem::{Problem, SelfTold};
use crate::table::{Answers, Content, Endpoint, Outcome, Run, Verb};

pub(crate) use self::consent::consent_path;
pub(crate) use self::door::lane;
pub(crate) use self::home::wants_page;
pub(crate) use self::turns::Turns;
pub(crate) use self::visit::session_of;

/// The media type of pages.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

macro_rules! page {
    ($verb:ident $path:literal, $operation:literal, $handler:path) => {
        Endpoint {
            verb: Verb::$verb,
            path: $path,
            operation: $operation,
            summary: "",
            params: &[],
            takes: None,
            answers: Answers {
                status: 200,
                content: Content::Text,
            },
            run: Run::Page(|ask| Box::pin($handler(ask))),
        }
    };
}

/// What pages are made of and others show too: the same at every host, and for nobody in particular.
macro_rules! asset {
    ($path:literal, $operation:literal, $handler:path) => {{
        let mut asset = page!(Get $path, $operation, $handler);
        asset.run = Run::Anybody(|ask| Box::pin($handler(ask)));
        asset
    }};
}

/// The pages. They are for people, so the `OpenAPI` document does not have them.
pub(crate) static PAGES: &[Endpoint] = &[
    page!(Get "/", "pageHome", home::index),
    page!(Get "/oauth/authorize", "authorize", oauth::authorize),
    page!(Get "/sign-in", "pageSignIn", sign_in::show),
    page!(Post "/sign-in", "signIn", sign_in::enter),
    page!(Get "/signed-in", "pageSignedIn", sign_in::keep),
    page!(Post "/sign-out", "signOut", sign_in::leave),
    page!(Get "/sessions", "pageSessions", sessions::show),
    page!(Post "/sessions/end-others", "endOtherSessions", sessions::end_others),
    page!(Post "/sessions/{id}/end", "endSession", sessions::end),
    page!(Get "/consent", "pageConsent", consent::show),
    page!(Post "/consent/review", "reviewConsent", consent::review),
    page!(Post "/consent/approve", "approveConsent", consent::approve),
    page!(Post "/consent/deny", "denyConsent", consent::deny),
    page!(Get "/device", "pageDevice", device::show),
    page!(Post "/device", "enterDeviceCode", device::enter),
    page!(Get "/grants/{id}", "pageGrant", grant::show),
    page!(Post "/grants/{id}/revoke", "revokeGrant", grant::revoke),
    page!(Get "/records/{connection_id}/{stream}/{record_id}", "pageRecord", record::show),
    asset!("/style.css", "getStyle", assets::style),
    asset!("/icon.svg", "getIcon", assets::icon),
];

/// A page that tells what went wrong.
#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    session: &'a str,
    title: &'a str,
    message: &'a str,
    hint: &'a str,
    request_id: &'a str,
}

/// The page for a failure.
pub(crate) fn failure_page(status: StatusCode, error: &ReadError, request_id: &str) -> Vec<u8> {
    let title = match status.as_u16() {
        403 => "Not allowed",
        404 => "Not found",
        409 => "Not any more",
        429 => "Too many attempts",
        500.. => "Something failed here",
        _ => "That did not work",
    };
    let page = FailurePage {
        session: "",
        title,
        message: &words::label(&error.message),
        hint: &words::label(error.hint.as_deref().unwrap_or_default()),
        request_id,
    };
    // A template that cannot be rendered leaves at least the title.
    page.render().unwrap_or_else(|_| title.to_owned()).into()
}

/// A page.
fn html(status: StatusCode, page: &impl Template) -> Outcome {
    let text = page
        .render()
        .map_err(|error| Problem::internal("a page cannot be rendered", &error))?;
    let mut response = guarded((status, text).into_response());
    response.extensions_mut().insert(SelfTold);
    Ok(response)
}

/// Sends the browser on.
pub(crate) fn see_other(address: &str) -> Response {
    let mut response = guarded(StatusCode::SEE_OTHER.into_response());
    response.headers_mut().remove(header::CONTENT_TYPE);
    match HeaderValue::from_str(address) {
        Ok(address) => {
            response.headers_mut().insert(header::LOCATION, address);
            response
        }
        Err(error) => Problem::internal("an address cannot be sent", &error).into_response(),
    }
}

/// What every page tells the browser: run nothing, load nothing from elsewhere, be in nobody's frame, tell nobody where
/// one came from, keep nothing.
pub(crate) fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HTML);
    let fixed = [
        (header::CACHE_CONTROL, "private, no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    );
    response
}

/// Lets the forms of a page end at another origin too: browsers hold the redirect that answers a form against the policy
/// of the page, and the answer of a decision is such a redirect.
fn answering_to(mut response: Response, origin: &str) -> Response {
    // Such a policy cannot name an IPv6 address; there only the scheme is left to name.
    let address = origin.split_once("://[");
    let source = address.map_or_else(|| origin.to_owned(), |(scheme, _)| format!("{scheme}:"));
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' {source}; base-uri 'none'; frame-ancestors 'none'"
    );
    // An origin that cannot stand there leaves the strict policy.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-[]".contains(&byte);
    if let (true, Ok(policy)) = (origin.bytes().all(plain), HeaderValue::from_str(&policy)) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
