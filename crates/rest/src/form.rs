//! HTML forms: names and values from a body of bounded size.

use axum::http::{StatusCode, header};
use contract::error::ErrorCode;
use grants::oauth::Parameters;

use crate::params::decode_pairs;
use crate::problem::Problem;
use crate::table::RequestContext;

/// The largest form: an authorization detail for every stream, percent-encoded.
const MAX_BYTES: usize = 512 * 1024;
/// The most fields of a form; a stream with many columns has one for each.
const MAX_FIELDS: usize = 20_000;

/// The fields of a form, decoded, in the order sent.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) async fn read(context: &mut RequestContext) -> Result<Self, Problem> {
        let kind = context.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let message = "the body must be a form: application/x-www-form-urlencoded";
            return Err(Problem::new(ErrorCode::InvalidRequest, message));
        }
        let text = read_text(context, MAX_BYTES).await?;
        Ok(Self(decode_pairs(&text, MAX_FIELDS)?))
    }

    pub(crate) fn from_query(query: &str) -> Result<Self, Problem> {
        Ok(Self(decode_pairs(query, MAX_FIELDS)?))
    }

    /// A form filled in by us.
    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first value of a name; empty if there is none.
    pub(crate) fn value(&self, name: &str) -> &str {
        let first = self.0.iter().find(|(known, _)| known == name);
        first.map_or("", |(_, value)| value)
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = self.0.iter().filter(move |(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str())
    }

    pub(crate) fn into_parameters(self) -> Parameters {
        self.0.into_iter().collect()
    }
}

/// The body as text, within a size and a time limit.
pub(crate) async fn read_text(
    context: &mut RequestContext,
    most: usize,
) -> Result<String, Problem> {
    let body = std::mem::take(&mut context.body);
    let read = axum::body::to_bytes(body, most);
    let Ok(read) = tokio::time::timeout(context.service.limits.body_pause, read).await else {
        return Err(Problem::from_status(StatusCode::REQUEST_TIMEOUT));
    };
    let bytes = read.map_err(|_| Problem::from_status(StatusCode::PAYLOAD_TOO_LARGE))?;
    String::from_utf8(bytes.into())
        .map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the body is not UTF-8"))
}
