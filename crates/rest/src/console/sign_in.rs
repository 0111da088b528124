//! Signing in and out. A link with a one-time code only fills in the form, so that a link preview signs nobody in.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use grants::sign_in::{Presented, end_session, has_password, require_second, with_second};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::frame::{Frame, Section};
use super::password_queue::LONGEST_WAIT;
use super::sign_in_attempt::{self, Attempt, SignInSecret};
use super::{html, see_other, session};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: Frame,
    csrf: &'a str,
    return_to: &'a str,
    code: &'a str,
    has_password: bool,
    mistake: &'a str,
}

#[derive(Template)]
#[template(path = "signed_in.html")]
struct SignedInPage<'a> {
    frame: Frame,
    onward: &'a str,
}

/// The path that receives the second half of a session. At the root, because browsers send Basic credentials only
/// below the folder where they were asked for.
const SIGNED_IN_PATH: &str = "/signed-in";

/// What the form holds, from the visitor or from a link.
struct Entry {
    return_to: String,
    code: String,
    mistake: &'static str,
}

impl Entry {
    fn from_form(form: &Form) -> Self {
        Self {
            return_to: session::local_path(form.value("return_to"))
                .unwrap_or("/")
                .to_owned(),
            code: extract_code(form.value("code")),
            mistake: "",
        }
    }
}

/// `GET /sign-in`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let entry = Entry::from_form(&Form::from_query(context.query())?);
    if session::session(&context).await?.is_some() {
        return Ok(see_other(&entry.return_to));
    }
    page(context, StatusCode::OK, &entry).await
}

/// `POST /sign-in`
pub(super) async fn enter(mut context: RequestContext) -> HandlerResult {
    let form = Form::read(&mut context).await?;
    let expected = session::cookie(
        &context.headers,
        &session::cookie_name(&context.service, "form"),
    );
    let same =
        expected.is_some_and(|expected| !expected.is_empty() && expected == form.value("csrf"));
    if session::is_cross_origin(&context) || !same {
        return Err(session::foreign_form_problem(&context));
    }
    let mut entry = Entry::from_form(&form);
    let secret = if entry.code.is_empty() {
        SignInSecret::Password(form.value("password").to_owned())
    } else {
        SignInSecret::Code(entry.code.clone())
    };
    let session = match sign_in_attempt::enter(&context, secret).await? {
        Attempt::Entered(session) => session,
        Attempt::Wrong => {
            entry.mistake = if entry.code.is_empty() {
                "That is not the password."
            } else {
                "That sign-in link or code is not valid any more: each works once and for 15 minutes. `pdpp sign-in` at the terminal prints a new one."
            };
            entry.code.clear();
            return page(context, StatusCode::FORBIDDEN, &entry).await;
        }
        Attempt::Unchecked => {
            entry.mistake = "Too many passwords are being checked, and yours was not yet. Try again in a moment, or use a link that `pdpp sign-in` prints at the terminal: it never waits.";
            let mut response = page(context, StatusCode::SERVICE_UNAVAILABLE, &entry).await?;
            let seconds = HeaderValue::from(LONGEST_WAIT.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            return Ok(response);
        }
    };
    let response = if supports_second_half(&context) {
        let back = utf8_percent_encode(&entry.return_to, NON_ALPHANUMERIC);
        let path = format!("{SIGNED_IN_PATH}?return_to={back}");
        see_other(with_second(context.service.console.origin(), &path, &session.second).expose())
    } else {
        see_other(&entry.return_to)
    };
    let response = session::set_cookie(response, &context.service, "form", None);
    let browser = session.browser.expose();
    let response = session::set_cookie(response, &context.service, session::BROWSER, Some(browser));
    let session_secret = session.secret.expose();
    Ok(session::set_cookie(
        response,
        &context.service,
        "session",
        Some(session_secret),
    ))
}

/// Whether the browser takes credentials from a URL without asking, as those based on Chromium do. It matters where
/// the pages share a host with programs at other ports of this machine.
fn supports_second_half(context: &RequestContext) -> bool {
    let browser = context.headers.get(header::USER_AGENT);
    let browser = browser.map(HeaderValue::as_bytes).unwrap_or_default();
    context.service.console.is_apart() && String::from_utf8_lossy(browser).contains("Chrome/")
}

/// `GET /signed-in`: once the browser has sent the second half, the session requires it. A browser that does not send
/// it goes on with the cookie alone.
pub(super) async fn confirm_second_half(context: RequestContext) -> HandlerResult {
    let entry = Entry::from_form(&Form::from_query(context.query())?);
    let onward = format!("{}{}", context.service.console.origin(), entry.return_to);
    let presented = session::session_secrets(&context.service, &context.headers);
    if let Some((secret, Some(second))) = presented {
        let required = blocking(context.service, move |service| {
            let presented = Presented {
                secret: &secret,
                second: Some(second.expose()),
            };
            require_second(&*service.store, presented, service.now())
                .map_err(|error| Problem::internal("a session could not be kept", &error))
        });
        required.await?;
        return Ok(see_other(&onward));
    }
    let Some(session) = session::session(&context).await? else {
        return Ok(see_other(&onward));
    };
    let page = SignedInPage {
        frame: Frame::new(&session, Section::None),
        onward: &onward,
    };
    let mut response = html(StatusCode::UNAUTHORIZED, &page)?;
    let challenge = HeaderValue::from_static("Basic realm=\"pdpp\", charset=\"UTF-8\"");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, challenge);
    Ok(response)
}

/// `POST /sign-out`
pub(super) async fn sign_out(mut context: RequestContext) -> HandlerResult {
    let form = Form::read(&mut context).await?;
    if let Some(session) = session::session(&context).await? {
        session::check_form(&session, &context, &form)?;
        let id = session.id().to_owned();
        blocking(Arc::clone(&context.service), move |service| {
            end_session(&*service.store, &id, service.now())
                .map_err(|error| Problem::internal("a session could not be ended", &error))
        })
        .await?;
    }
    let response = see_other("/sign-in");
    Ok(session::set_cookie(
        response,
        &context.service,
        "session",
        None,
    ))
}

/// The sign-in form, with a CSRF token in a cookie: there is no session yet.
async fn page(context: RequestContext, status: StatusCode, entry: &Entry) -> HandlerResult {
    let has_password = blocking(Arc::clone(&context.service), |service| {
        has_password(&*service.store, service.now())
            .map_err(|error| Problem::internal("the password could not be looked up", &error))
    });
    let has_password = has_password.await?;
    let name = session::cookie_name(&context.service, "form");
    let known = session::cookie(&context.headers, &name).filter(|known| is_form_token(known));
    let csrf = match known {
        Some(known) => known.to_owned(),
        None => new_form_token()?,
    };
    let mut response: Response = html(
        status,
        &SignInPage {
            frame: Frame::signed_out(),
            csrf: &csrf,
            return_to: &entry.return_to,
            code: &entry.code,
            has_password,
            mistake: entry.mistake,
        },
    )?;
    // With this policy the browser sends `Origin` with the form, and still tells other sites nothing.
    let policy = HeaderValue::from_static("same-origin");
    response
        .headers_mut()
        .insert(header::REFERRER_POLICY, policy);
    Ok(session::set_cookie(
        response,
        &context.service,
        "form",
        Some(&csrf),
    ))
}

/// Extracts the code from what was entered: the code itself, or the link that the terminal printed.
fn extract_code(entered: &str) -> String {
    let entered = entered.trim();
    let linked = entered.split_once("code=").map(|(_, after)| {
        let value = after.split(['&', '#']).next().unwrap_or_default();
        percent_decode_str(value).decode_utf8_lossy()
    });
    linked.unwrap_or(entered.into()).trim().to_owned()
}

fn is_form_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn new_form_token() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Problem::internal("there is no randomness for a form", &error))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
