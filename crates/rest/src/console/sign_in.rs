//! Signing in and out. A link with a one-time code only fills in the form: what merely looks at links signs nobody in.

use std::sync::Arc;

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::Response;
use contract::error::ErrorCode;
use grants::sign_in::{Door, SignInError, Visitor, end_session, has_password};

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
            code: form.one("code").to_owned(),
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
    if visit::is_from_elsewhere(&ask.headers) || !same {
        return Err(visit::foreign_form());
    }
    let mut entry = Entry::of(&form);
    let browser = ask.headers.get(header::USER_AGENT);
    let visitor = Visitor {
        address: ask.address,
        browser: browser
            .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
            .unwrap_or_default(),
    };
    let (code, password) = (entry.code.clone(), form.one("password").to_owned());
    let entered = blocking(Arc::clone(&ask.service), move |service| {
        let door = Door {
            store: &*service.store,
            throttle: &service.throttle,
            now: service.now(),
        };
        let entered = if code.is_empty() {
            door.by_password(&visitor, &password)
        } else {
            door.by_code(&visitor, &code)
        };
        match entered {
            Ok(session) => Ok(Some(session)),
            Err(SignInError::Refused) => Ok(None),
            Err(SignInError::Throttled(throttled)) => {
                let seconds = throttled.retry_after.as_secs().max(1);
                Err(
                    Problem::new(ErrorCode::RateLimitExceeded, throttled.to_string())
                        .with_header(header::RETRY_AFTER, &seconds.to_string()),
                )
            }
            Err(error) => Err(Problem::internal("nobody could sign in", &error)),
        }
    });
    let Some(session) = entered.await? else {
        entry.mistake = if entry.code.is_empty() {
            "That is not the password."
        } else {
            "That sign-in code is not valid any more. A code works once and for 15 minutes."
        };
        entry.code.clear();
        return page(ask, StatusCode::FORBIDDEN, &entry).await;
    };
    let response = see_other(&entry.return_to);
    let response = visit::set_cookie(response, &ask.service, "form", None);
    let secret = session.secret.expose();
    Ok(visit::set_cookie(
        response,
        &ask.service,
        "session",
        Some(secret),
    ))
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
    let response: Response = html(
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
    Ok(visit::set_cookie(
        response,
        &ask.service,
        "form",
        Some(&csrf),
    ))
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
