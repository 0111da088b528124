//! The address of the running server, and how the owner signs in: a password, or a link.

use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use grants::sign_in::{PasswordError, SignInError, new_code, set_password};

use super::wire::{NewPassword, ServerAddress, SignInLink};
use super::{OwnerProblem, answer, invalid_request, json_body};
use crate::problem::{self, Problem};
use crate::table::{HandlerResult, RequestContext};

/// Sets the password. Browsers that are signed in have to sign in again.
pub(super) async fn password(mut context: RequestContext) -> HandlerResult {
    let new: NewPassword = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let set = set_password(&*service.store, &new.password, service.now());
        set.map_err(|error| match error {
            PasswordError::Store(error) => OwnerProblem::from(error),
            other => invalid_request(other.to_string()).into(),
        })?;
        Ok(serde_json::json!({ "set": true }))
    })
    .await
}

/// The public URL, if a server listens.
pub(super) async fn server(context: RequestContext) -> HandlerResult {
    let service = &context.service;
    let public_url = service.listening.then(|| service.public_url.to_string());
    let address = ServerAddress { public_url };
    problem::json(StatusCode::OK, &address)
}

/// A link with a one-time code that signs in.
pub(super) async fn link(context: RequestContext) -> HandlerResult {
    if !context.service.listening {
        let message = "no server runs over this data, so there is no page to sign in at";
        let hint = "start one with `pdpp serve`, which prints a link";
        return Err(ReadError::new(ErrorCode::InvalidRequest, message)
            .with_hint(hint)
            .into());
    }
    answer(context.service, |service| {
        let code = new_code(&*service.store, service.now()).map_err(|error| match error {
            SignInError::Store(error) => OwnerProblem::from(error),
            other => Problem::internal("no sign-in code could be made", &other).into(),
        })?;
        let console = service.console.origin();
        let link = format!("{console}/sign-in?code={}", code.expose());
        Ok(SignInLink { link })
    })
    .await
}
