//! Where a person types the code that a device shows.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use grants::oauth::DecisionError;
use grants::sign_in::Lane;

use super::consent::{consent_path, decision_problem};
use super::{html, see_other, visit};
use crate::form::Form;
use crate::owner::blocking;
use crate::table::{Ask, Outcome};

#[derive(Template)]
#[template(path = "device.html")]
struct DevicePage<'a> {
    session: &'a str,
    code: &'a str,
    mistake: &'a str,
}

/// `GET /device`: a link with the code fills it in, and the person still has to send it.
pub(super) async fn show(ask: Ask) -> Outcome {
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    let form = Form::of_query(ask.query())?;
    let page = DevicePage {
        session: &visit::token(&session),
        code: form.one("user_code"),
        mistake: "",
    };
    html(StatusCode::OK, &page)
}

/// `POST /device`
pub(super) async fn enter(mut ask: Ask) -> Outcome {
    let form = Form::read(&mut ask).await?;
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    visit::check(&session, &ask, &form)?;
    let code = form.one("user_code").to_owned();
    let lane = Lane::Browser(session.id().to_owned());
    let found = blocking(Arc::clone(&ask.service), move |service| {
        match service.issuer().request_of_user_code(&code) {
            Ok(request) => {
                service.throttle.right(&lane);
                Ok(Ok(request))
            }
            Err(DecisionError::Unknown) => Ok(Err(service.throttle.wrong(&lane, service.now()))),
            Err(error) => Err(decision_problem(&error)),
        }
    });
    match found.await? {
        Ok(request) => return Ok(see_other(&consent_path(&request))),
        Err(wait) => tokio::time::sleep(wait).await,
    }
    let page = DevicePage {
        session: &visit::token(&session),
        code: form.one("user_code"),
        mistake: "No device waits with this code. Look at the device again; a code is good for 10 minutes.",
    };
    html(StatusCode::NOT_FOUND, &page)
}
