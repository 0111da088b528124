//! The form of a request: pairs of name and value from a body of bounded size.

use axum::http::{StatusCode, header};
use contract::error::ErrorCode;
use grants::oauth::Parameters;

use crate::params::pairs;
use crate::problem::Problem;
use crate::table::Ask;

/// The largest form: an authorization detail for every stream, percent-encoded.
const MAX_BYTES: usize = 512 * 1024;
/// The most fields of a form; a stream with many columns has a tick for each.
const MAX_FIELDS: usize = 20_000;

/// The fields of a form, decoded, in the order sent.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the body of a request as a form.
    pub(crate) async fn read(ask: &mut Ask) -> Result<Self, Problem> {
        let kind = ask.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let message = "the body must be a form: application/x-www-form-urlencoded";
            return Err(Problem::new(ErrorCode::InvalidRequest, message));
        }
        let text = text(ask, MAX_BYTES).await?;
        Ok(Self(pairs(&text, MAX_FIELDS)?))
    }

    /// The fields of a query.
    pub(crate) fn of_query(query: &str) -> Result<Self, Problem> {
        Ok(Self(pairs(query, MAX_FIELDS)?))
    }

    /// The first value of a name, or nothing at all.
    pub(crate) fn one(&self, name: &str) -> &str {
        let first = self.0.iter().find(|(known, _)| known == name);
        first.map_or("", |(_, value)| value)
    }

    /// Every value of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = self.0.iter().filter(move |(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str())
    }

    /// The form as parameters of OAuth.
    pub(crate) fn into_parameters(self) -> Parameters {
        self.0.into_iter().collect()
    }
}

/// The body of a request as text, if it is not too long and comes in time.
pub(crate) async fn text(ask: &mut Ask, most: usize) -> Result<String, Problem> {
    let body = std::mem::take(&mut ask.body);
    let read = axum::body::to_bytes(body, most);
    let Ok(read) = tokio::time::timeout(ask.service.limits.body_pause, read).await else {
        return Err(Problem::of_status(StatusCode::REQUEST_TIMEOUT));
    };
    let bytes = read.map_err(|_| Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE))?;
    String::from_utf8(bytes.into())
        .map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the body is not UTF-8"))
}
