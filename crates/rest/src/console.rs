//! The owner's pages: signing in, deciding what applications may read, and looking at grants, records and the log.
//!
//! Pages are rendered on the server and need no script; one of our own adds comfort. Templates escape all text of others; labels also pass
//! [`format::label`]. Every form carries the session's CSRF token, and no `GET` changes anything but when the owner was here last.

mod activity;
mod address;
mod asks;
mod assets;
mod body_text;
mod browse;
mod chart;
mod choice;
mod connections;
mod consent;
mod device;
mod finding;
mod format;
mod frame;
mod grant;
mod grants_list;
mod home;
mod import;
mod moment;
mod new_grant;
mod overview;
mod password_queue;
mod record;
mod review;
mod search;
mod session;
mod sessions;
mod settings;
mod sign_in;
mod sign_in_attempt;
mod sources;
mod stream_shape;
mod summary;
mod templates;
mod time_counts;
mod timeline;
mod titles;
mod value;
mod value_choice;
mod viewer;

use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use contract::error::ReadError;

use self::frame::Frame;
use crate::oauth;
use crate::problem::{HasOwnBody, Problem};
use crate::table::{Content, Endpoint, Handler, HandlerResult, SuccessResponse, Verb};

pub(crate) use self::consent::consent_path;
pub(crate) use self::frame::SeenAs;
pub(crate) use self::home::wants_page;
pub(crate) use self::import::ImportJobs;
pub(crate) use self::overview::Readings;
pub(crate) use self::password_queue::PasswordQueue;
pub(crate) use self::review::origin;
pub(crate) use self::session::session_from_headers;
pub(crate) use self::sign_in_attempt::lane;

pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The route that takes files.
pub(crate) const UPLOAD: &str = "uploadImport";

macro_rules! page {
    ($verb:ident $path:literal, $operation:expr, $handler:path) => {
        Endpoint {
            verb: Verb::$verb,
            path: $path,
            operation: $operation,
            summary: "",
            params: &[],
            request_type: None,
            success: SuccessResponse {
                status: 200,
                content: Content::Text,
            },
            handler: Handler::Page(|context| Box::pin($handler(context))),
        }
    };
}

/// A static file: the same at every host and for every visitor.
macro_rules! asset {
    ($path:literal, $operation:literal, $handler:path) => {{
        let mut asset = page!(Get $path, $operation, $handler);
        asset.handler = Handler::Public(|context| Box::pin($handler(context)));
        asset
    }};
}

/// The pages. They are for people, so the `OpenAPI` document does not have them.
pub(crate) static PAGES: &[Endpoint] = &[
    page!(Get "/", "pageHome", home::index),
    page!(Get "/oauth/authorize", "authorize", oauth::authorize),
    page!(Get "/sign-in", "pageSignIn", sign_in::show),
    page!(Post "/sign-in", "signIn", sign_in::enter),
    page!(Get "/signed-in", "pageSignedIn", sign_in::confirm_second_half),
    page!(Post "/sign-out", "signOut", sign_in::sign_out),
    page!(Get "/sessions", "pageSessions", sessions::show),
    page!(Post "/sessions/end-others", "endOtherSessions", sessions::end_others),
    page!(Post "/sessions/{id}/end", "endSession", sessions::end),
    page!(Get "/consent", "pageConsent", consent::show),
    page!(Post "/consent", "changeConsent", consent::change),
    page!(Post "/consent/review", "reviewConsent", consent::review),
    page!(Post "/consent/approve", "approveConsent", consent::approve),
    page!(Post "/consent/deny", "denyConsent", consent::deny),
    page!(Get "/device", "pageDevice", device::show),
    page!(Post "/device", "enterDeviceCode", device::enter),
    page!(Get "/grants", "pageGrants", grants_list::show),
    page!(Get "/grants/new", "pageNewGrant", new_grant::show),
    page!(Post "/grants/new", "changeNewGrant", new_grant::change),
    page!(Post "/grants/new/review", "reviewNewGrant", new_grant::review),
    page!(Post "/grants/new/issue", "makeGrant", new_grant::make),
    page!(Get "/grants/{id}", "pageGrant", grant::show),
    page!(Post "/grants/{id}/budget", "changeBudget", grant::change_budget),
    page!(Post "/grants/{id}/asking", "changeAsking", asks::change),
    page!(Get "/asks/{id}", "pageAsk", asks::show),
    page!(Post "/asks/{id}", "decideAsk", asks::decide),
    page!(Get "/grants/{id}/activity", "pageActivity", activity::show),
    page!(Get "/grants/{id}/end", "pageEndGrant", grant::ask_to_end),
    page!(Post "/grants/{id}/revoke", "revokeGrant", grant::revoke),
    page!(Get "/search", "pageSearch", search::show),
    page!(Get "/browse", "pageBrowse", browse::index),
    page!(Get "/browse/{connection_id}/{stream}", "pageStream", browse::stream),
    page!(Get "/browse/{connection_id}/{stream}/download", "downloadStream", browse::download::send),
    page!(Get "/timeline", "pageTimeline", timeline::show),
    page!(Get "/records/{connection_id}/{stream}/{record_id}", "pageRecord", record::show),
    page!(Get "/records/{connection_id}/{stream}/{record_id}/delete", "pageDeleteRecord", record::delete::ask),
    page!(Post "/records/{connection_id}/{stream}/{record_id}/delete", "deleteRecordOnPage", record::delete::delete),
    page!(Get "/records/{connection_id}/{stream}/{record_id}/file", "getRecordFile", record::file::send),
    page!(Get "/import", "pageImport", import::show),
    page!(Post "/import", UPLOAD, import::upload),
    page!(Get "/import/{id}", "pageUpload", import::show_upload),
    page!(Post "/import/{id}", "decideImport", import::decide),
    page!(Get "/connections", "pageConnections", connections::index),
    page!(Get "/connections/{id}", "pageConnection", connections::show),
    page!(Post "/connections/{id}/rename", "renameConnection", connections::rename),
    page!(Post "/connections/{id}/remove", "removeConnection", connections::remove),
    page!(Get "/settings", "pageSettings", settings::show),
    page!(Post "/settings/backup", "backup", settings::backup),
    page!(Post "/settings/password", "setPassword", settings::password),
    asset!("/style.css", "getStyle", assets::style),
    asset!("/script.js", "getScript", assets::script),
    asset!("/icon.svg", "getIcon", assets::icon),
];

/// The page nearest above an address that only takes forms.
pub(crate) fn page_above(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let is_page = |asked: &[&str]| {
        PAGES.iter().any(|page| {
            let mut known = page.path.split('/').skip(1);
            let mut asked = asked.iter();
            page.verb == Verb::Get
                && asked.all(|part| {
                    known
                        .next()
                        .is_some_and(|known| known == *part || known.starts_with('{'))
                })
                && known.next().is_none()
        })
    };
    let above = (1..parts.len())
        .rev()
        .filter_map(|length| parts.get(..length));
    let above = above.into_iter().find(|above| is_page(above));
    format!(
        "/{}",
        above.map(|above| above.join("/")).unwrap_or_default()
    )
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    frame: Frame,
    title: &'a str,
    message: &'a str,
    hint: &'a str,
    request_id: &'a str,
}

pub(crate) fn failure_page(
    status: StatusCode,
    error: &ReadError,
    seen_as: Option<&SeenAs>,
    request_id: &str,
) -> Vec<u8> {
    let title = match status.as_u16() {
        403 => "Not allowed",
        404 => "Not found",
        409 => "Not any more",
        429 => "Too many attempts",
        500.. => "Something failed here",
        _ => "That did not work",
    };
    let page = FailurePage {
        frame: Frame::without_session(seen_as.cloned()),
        title,
        message: &format::label(&error.message),
        hint: &format::label(error.hint.as_deref().unwrap_or_default()),
        request_id,
    };
    // If the template fails, the title is left.
    page.render().unwrap_or_else(|_| title.to_owned()).into()
}

/// A failure as a page, with the headers of one.
pub(crate) fn failure(problem: Problem) -> Response {
    if let Some(address) = problem.redirect_address() {
        return see_other(address);
    }
    with_security_headers(problem.into_page().into_response())
}

fn html(status: StatusCode, page: &impl Template) -> HandlerResult {
    let text = page
        .render()
        .map_err(|error| Problem::internal("a page cannot be rendered", &error))?;
    let mut response = with_security_headers((status, text).into_response());
    response.extensions_mut().insert(HasOwnBody);
    Ok(response)
}

/// Redirects with 303.
pub(crate) fn see_other(address: &str) -> Response {
    let mut response = with_security_headers(StatusCode::SEE_OTHER.into_response());
    response.headers_mut().remove(header::CONTENT_TYPE);
    match HeaderValue::from_str(address) {
        Ok(address) => {
            response.headers_mut().insert(header::LOCATION, address);
            response
        }
        Err(error) => Problem::internal("an address cannot be sent", &error).into_response(),
    }
}

/// Security headers: no script but our own file, nothing from other origins, no frames, no referrer, no cache.
pub(crate) fn with_security_headers(mut response: Response) -> Response {
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
    if let Ok(policy) = HeaderValue::from_str(&content_policy("")) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The content security policy of a page. `forms` is where its forms may lead besides this server.
fn content_policy(forms: &str) -> String {
    let sources = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'";
    let between = if forms.is_empty() { "" } else { " " };
    format!(
        "{sources}; form-action 'self'{between}{forms}; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// Allows the forms of a page to redirect to another origin: browsers check the redirect that answers a form against
/// the page's policy, and a decision is answered by such a redirect.
fn allow_form_target(mut response: Response, origin: &str) -> Response {
    // A policy cannot name an IPv6 address, so it names the scheme.
    let address = origin.split_once("://[");
    let source = address.map_or_else(|| origin.to_owned(), |(scheme, _)| format!("{scheme}:"));
    let policy = content_policy(&source);
    // An origin that cannot be written in a policy leaves the strict one.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-[]".contains(&byte);
    if let (true, Ok(policy)) = (origin.bytes().all(plain), HeaderValue::from_str(&policy)) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_an_address_that_only_takes_forms_is_the_page_of_the_form() {
        for (path, page) in [
            ("/sign-out", "/"),
            ("/grants/new/review", "/grants/new"),
            ("/grants/grt_1/budget", "/grants/grt_1"),
            ("/sessions/s1/end", "/sessions"),
            ("/connections/a%2Fb/rename", "/connections/a%2Fb"),
            ("/settings/backup", "/settings"),
        ] {
            assert_eq!(page_above(path), page);
        }
    }
}
