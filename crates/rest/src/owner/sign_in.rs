//! Where the server is that runs over this data, and how the owner signs in at its pages: their password, or a link.

use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use grants::sign_in::{PasswordError, SignInError, new_code, set_password};

use super::wire::{NewPassword, ServerPlace, SignInLink};
use super::{blocking, question, refused, store_problem};
use crate::problem::{self, Problem};
use crate::table::{Ask, Outcome};

/// Sets the password. Browsers that are signed in have to sign in again.
pub(super) async fn password(mut ask: Ask) -> Outcome {
    let new: NewPassword = question(&mut ask).await?;
    blocking(ask.service, move |service| {
        let set = set_password(&*service.store, &new.password, service.now());
        set.map_err(|error| match error {
            PasswordError::Store(error) => store_problem(&error),
            other => refused(other.to_string()),
        })
    })
    .await?;
    problem::json(StatusCode::OK, &serde_json::json!({ "set": true }))
}

/// Where the server is, if one listens.
pub(super) async fn server(ask: Ask) -> Outcome {
    let place = ServerPlace {
        public_url: ask.service.reading.public_url.clone(),
    };
    problem::json(StatusCode::OK, &place)
}

/// A fresh link to the pages, with a code that signs in once.
pub(super) async fn link(ask: Ask) -> Outcome {
    if !ask.service.listening {
        let message = "no server runs over this data, so there is no page to sign in at";
        let hint = "start one with `pdpp serve`, which prints a link";
        return Err(ReadError::new(ErrorCode::InvalidRequest, message)
            .with_hint(hint)
            .into());
    }
    let link = blocking(ask.service, |service| {
        let code = new_code(&*service.store, service.now()).map_err(|error| match error {
            SignInError::Store(error) => store_problem(&error),
            other => Problem::internal("no sign-in code could be made", &other),
        })?;
        let console = service.console.origin();
        Ok(format!("{console}/sign-in?code={}", code.expose()))
    });
    problem::json(StatusCode::OK, &SignInLink { link: link.await? })
}
