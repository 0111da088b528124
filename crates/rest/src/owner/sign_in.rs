//! How the owner signs in at the pages: their password.

use axum::http::StatusCode;
use grants::sign_in::{PasswordError, set_password};

use super::wire::NewPassword;
use super::{blocking, question, refused, store_problem};
use crate::problem;
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
