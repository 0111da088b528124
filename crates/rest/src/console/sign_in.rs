//! Signing in and out. A link with a one-time code only fills in the form: what merely looks at links signs nobody in.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grants::sign_in::{end_session, has_password};

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
    let word = if entry.code.is_empty() {
        Word::Password(form.one("password").to_owned())
    } else {
        Word::Code(entry.code.clone())
    };
    let Some(session) = door::enter(&ask, word).await? else {
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
