//! The page where a person types the code a device shows.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use grants::oauth::DecisionError;
use grants::sign_in::{Lane, Throttle};

use super::consent::{consent_path, decision_problem};
use super::frame::{Frame, Section};
use super::{html, see_other, session};
use crate::form::Form;
use crate::owner::blocking;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "device.html")]
struct DevicePage<'a> {
    frame: Frame,
    code: &'a str,
    mistake: &'a str,
}

/// `GET /device`: a link with the code fills in the form, which the person still has to send.
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let form = Form::from_query(context.query())?;
    let page = DevicePage {
        frame: Frame::new(&session, Section::Grants),
        code: form.value("user_code"),
        mistake: "",
    };
    html(StatusCode::OK, &page)
}

/// `POST /device`
pub(super) async fn enter(mut context: RequestContext) -> HandlerResult {
    let form = Form::read(&mut context).await?;
    let session = session::signed_in(&context).await?;
    session::check_form(&session, &context, &form)?;
    let code = form.value("user_code").to_owned();
    let lane = Lane::Browser(session.id().to_owned());
    let found = blocking(Arc::clone(&context.service), move |service| {
        match service.issuer().request_of_user_code(&code) {
            Ok(request) => {
                Throttle::new(&*service.store).right(&lane, service.now());
                Ok(Ok(request))
            }
            Err(DecisionError::Unknown) => {
                let wait = Throttle::new(&*service.store).wrong(&lane, service.now());
                Ok(Err(wait))
            }
            Err(error) => Err(decision_problem(&error)),
        }
    });
    match found.await? {
        Ok(request) => return Ok(see_other(&consent_path(&request))),
        Err(wait) => tokio::time::sleep(wait).await,
    }
    let page = DevicePage {
        frame: Frame::new(&session, Section::Grants),
        code: form.value("user_code"),
        mistake: "No device waits with this code. Look at the device again; a code is good for 10 minutes.",
    };
    html(StatusCode::NOT_FOUND, &page)
}
