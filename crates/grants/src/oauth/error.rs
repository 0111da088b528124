//! The errors of the OAuth endpoints: the code the wire prescribes, words for people, and the HTTP status.

use serde::Serialize;
use store::StoreError;
use thiserror::Error;

use crate::secret::NoRandomness;
use crate::selection::{Mistake, SelectionError};

/// How many mistakes in details are listed one by one.
const LISTED_MISTAKES: usize = 20;

/// An error as an OAuth endpoint sends it. It never carries a secret, nor what failed inside the store.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{error}: {description}")]
pub struct OAuthError {
    /// The code of the wire.
    pub error: &'static str,
    /// What happened and what to do, for people.
    #[serde(rename = "error_description")]
    pub description: String,
    /// The HTTP status when it is not sent by redirect.
    #[serde(skip)]
    pub status: u16,
    /// What failed inside, for the log; never sent.
    #[serde(skip)]
    pub cause: Option<String>,
}

/// One constructor per code, so that a code and its status cannot drift apart.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal;)*) => {
        impl OAuthError {
            $($(#[$doc])*
            pub fn $name(description: impl Into<String>) -> Self {
                Self { error: stringify!($name), description: on_the_wire(&description.into()), status: $status, cause: None }
            })*
        }
    };
}

codes! {
    /// A parameter is missing, given twice or malformed.
    invalid_request = 400;
    /// The client is not known.
    invalid_client = 401;
    /// The code or token does not hold, for this client, here and now.
    invalid_grant = 400;
    /// This client may not do that.
    unauthorized_client = 400;
    /// Not one of our grant types.
    unsupported_grant_type = 400;
    /// Only codes are given.
    unsupported_response_type = 400;
    /// The scope cannot be had.
    invalid_scope = 400;
    /// The resource is not ours.
    invalid_target = 400;
    /// The owner said no.
    access_denied = 400;
    /// The owner has not decided.
    authorization_pending = 400;
    /// Asked too often.
    slow_down = 400;
    /// The device code's time is over.
    expired_token = 400;
    /// A client described itself in a way that cannot be accepted.
    invalid_client_metadata = 400;
    /// A redirect URI that codes are not sent to.
    invalid_redirect_uri = 400;
    /// The authorization details cannot be granted.
    invalid_authorization_details = 400;
    /// It failed on our side.
    server_error = 500;
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        Self {
            cause: Some(error.to_string()),
            ..Self::server_error("the server could not complete this; try again")
        }
    }
}

impl From<NoRandomness> for OAuthError {
    fn from(error: NoRandomness) -> Self {
        Self::server_error(error.to_string())
    }
}

impl OAuthError {
    /// The mistakes in the form of a client's details. None of them depends on the catalog.
    pub(super) fn from_selection(error: &SelectionError) -> Self {
        let one =
            |mistake: &Mistake| format!("authorization_details{}: {}", mistake.path, mistake.rule);
        let mut listed: Vec<String> = error.0.iter().take(LISTED_MISTAKES).map(one).collect();
        let more = error.0.len().saturating_sub(LISTED_MISTAKES);
        if more > 0 {
            listed.push(format!("and {more} more mistakes"));
        }
        Self::invalid_authorization_details(listed.join("; "))
    }
}

/// A description as the wire allows it (RFC 6749): printable ASCII without quotation mark and backslash.
fn on_the_wire(text: &str) -> String {
    let allowed = |letter: char| match letter {
        '"' => '\'',
        ' '..='~' if letter != '\\' => letter,
        _ => '?',
    };
    text.chars().map(allowed).collect()
}
