//! Signing in and out. A link with a one-time code only fills in the form: what merely looks at links signs nobody in.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use grants::sign_in::{Presented, end_session, has_password, require_second, with_second};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::door::{self, Word};
use super::{html, see_other, visit};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::table::{Ask, Outcome};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    session: &'a str,
    csrf: &'a str,
    return_to: &'a str,
    code: &'a str,
    has_password: bool,
    mistake: &'a str,
}

#[derive(Template)]
#[template(path = "signed_in.html")]
struct SignedInPage<'a> {
    session: &'a str,
    onward: &'a str,
}

/// Where the second half of a session is taken. At the root, since browsers send such a password below the folder in
/// which it was asked for.
const KEEPING: &str = "/signed-in";

/// What a visitor filled in, or a link did for them.
struct Entry {
    return_to: String,
    code: String,
    mistake: &'static str,
}

impl Entry {
    fn of(form: &Form) -> Self {
        Self {
            return_to: visit::own_path(form.one("return_to"))
                .unwrap_or("/")
                .to_owned(),
            code: code_in(form.one("code")),
            mistake: "",
        }
    }
}

/// `GET /sign-in`
pub(super) async fn show(ask: Ask) -> Outcome {
    let entry = Entry::of(&Form::of_query(ask.query())?);
    if visit::session(&ask).await?.is_some() {
        return Ok(see_other(&entry.return_to));
    }
    page(ask, StatusCode::OK, &entry).await
}

/// `POST /sign-in`
pub(super) async fn enter(mut ask: Ask) -> Outcome {
    let form = Form::read(&mut ask).await?;
    let expected = visit::cookie(&ask.headers, &visit::cookie_name(&ask.service, "form"));
    let same =
        expected.is_some_and(|expected| !expected.is_empty() && expected == form.one("csrf"));
    if visit::is_from_elsewhere(&ask) || !same {
        return Err(visit::foreign_form(&ask));
    }
    let mut entry = Entry::of(&form);
    let word = if entry.code.is_empty() {
        Word::Password(form.one("password").to_owned())
    } else {
        Word::Code(entry.code.clone())
    };
    let Some(session) = door::enter(&ask, word).await? else {
        entry.mistake = if entry.code.is_empty() {
            "That is not the password."
        } else {
            "That sign-in link or code is not valid any more: each works once and for 15 minutes. `pdpp sign-in` at the terminal prints a new one."
        };
        entry.code.clear();
        return page(ask, StatusCode::FORBIDDEN, &entry).await;
    };
    let response = if takes_second(&ask) {
        let back = utf8_percent_encode(&entry.return_to, NON_ALPHANUMERIC);
        let path = format!("{KEEPING}?return_to={back}");
        see_other(with_second(ask.service.console.origin(), &path, &session.second).expose())
    } else {
        see_other(&entry.return_to)
    };
    let response = visit::set_cookie(response, &ask.service, "form", None);
    let browser = session.browser.expose();
    let response = visit::set_cookie(response, &ask.service, visit::BROWSER, Some(browser));
    let secret = session.secret.expose();
    Ok(visit::set_cookie(
        response,
        &ask.service,
        "session",
        Some(secret),
    ))
}

/// Whether the browser takes the second half of a session from an address without asking anybody: those of Chromium's
/// family do. It matters where the pages share their host with whatever listens at other ports of this machine.
fn takes_second(ask: &Ask) -> bool {
    let browser = ask.headers.get(header::USER_AGENT);
    let browser = browser.map(HeaderValue::as_bytes).unwrap_or_default();
    ask.service.console.is_apart() && String::from_utf8_lossy(browser).contains("Chrome/")
}

/// `GET /signed-in`: once the browser has shown that it sends the second half, the session counts with it alone. One
/// that does not is told so and goes on with the cookie.
pub(super) async fn keep(ask: Ask) -> Outcome {
    let entry = Entry::of(&Form::of_query(ask.query())?);
    let onward = format!("{}{}", ask.service.console.origin(), entry.return_to);
    let presented = visit::presented(&ask.service, &ask.headers);
    if let Some((secret, Some(second))) = presented {
        let required = blocking(ask.service, move |service| {
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
    let Some(session) = visit::session(&ask).await? else {
        return Ok(see_other(&onward));
    };
    let page = SignedInPage {
        session: &visit::token(&session),
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
pub(super) async fn leave(mut ask: Ask) -> Outcome {
    let form = Form::read(&mut ask).await?;
    if let Some(session) = visit::session(&ask).await? {
        visit::check(&session, &ask, &form)?;
        let id = session.id().to_owned();
        blocking(Arc::clone(&ask.service), move |service| {
            end_session(&*service.store, &id, service.now())
                .map_err(|error| Problem::internal("a session could not be ended", &error))
        })
        .await?;
    }
    let response = see_other("/sign-in");
    Ok(visit::set_cookie(response, &ask.service, "session", None))
}

/// The form, with a token of its own: there is no session yet that it could belong to.
async fn page(ask: Ask, status: StatusCode, entry: &Entry) -> Outcome {
    let has_password = blocking(Arc::clone(&ask.service), |service| {
        has_password(&*service.store, service.now())
            .map_err(|error| Problem::internal("the password could not be looked up", &error))
    });
    let has_password = has_password.await?;
    let name = visit::cookie_name(&ask.service, "form");
    let known = visit::cookie(&ask.headers, &name).filter(|known| is_form_token(known));
    let csrf = match known {
        Some(known) => known.to_owned(),
        None => new_form_token()?,
    };
    let mut response: Response = html(
        status,
        &SignInPage {
            session: "",
            csrf: &csrf,
            return_to: &entry.return_to,
            code: &entry.code,
            has_password,
            mistake: entry.mistake,
        },
    )?;
    // With this the browser says in the form's `Origin` which host it is at, and still tells no other site.
    let policy = HeaderValue::from_static("same-origin");
    response
        .headers_mut()
        .insert(header::REFERRER_POLICY, policy);
    Ok(visit::set_cookie(
        response,
        &ask.service,
        "form",
        Some(&csrf),
    ))
}

/// The code in what was entered: the code itself, or the link that the terminal printed.
fn code_in(entered: &str) -> String {
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
