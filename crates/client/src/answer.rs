//! Parsing responses: text, without the token they were asked with.

use contract::error::ReadError;
use contract::upstream::Answer;
use serde_json::Value;

use crate::failure;
use crate::secret::Secret;
use crate::transport::HttpResponse;

/// The longest request id taken over.
const REQUEST_ID_BYTES: usize = 200;

/// Parses a response. The token is removed, should the server have repeated it.
pub(crate) fn parse(
    server: &str,
    response: HttpResponse,
    token: &Secret,
) -> Result<Answer, ReadError> {
    let request_id = ["request-id", "x-request-id"]
        .into_iter()
        .find_map(|name| response.header(name))
        .filter(|id| !id.is_empty() && id.len() <= REQUEST_ID_BYTES)
        .map(|id| token.hide_in(id.to_owned()));
    let status = response.status;
    let text = match String::from_utf8(response.body) {
        Ok(text) => text,
        // A failure's status says more than its text.
        Err(other) if status >= 400 => String::from_utf8_lossy(other.as_bytes()).into_owned(),
        Err(_) => return Err(failure::not_the_contract(server, "its answer is not UTF-8")),
    };
    let mut body = token.hide_in(text);
    if body.starts_with('\u{feff}') {
        body = body.trim_start_matches('\u{feff}').to_owned();
    }
    Ok(Answer {
        status,
        request_id,
        body,
    })
}

/// Codes of a 401 that say that the token has ended. The reference server has two of its own.
const ENDED_TOKEN_CODES: [&str; 4] = [
    "invalid_token",
    "authentication_error",
    "context.active_false",
    "context.expired",
];

/// Whether an error says that this token has ended, so that renewing it may help.
pub(crate) fn token_has_ended(challenges: &[String], answer: &Answer) -> bool {
    if !matches!(answer.status, 401 | 403) {
        return false;
    }
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let code = body["error"]["code"].as_str().or(body["error"].as_str());
    match answer.status {
        // The reference server reports an ended token as an ended grant. For a grant that really ended, renewing
        // fails.
        403 => code == Some("grant_expired"),
        401 => {
            code.is_some_and(|code| ENDED_TOKEN_CODES.contains(&code))
                || says_invalid_token(challenges)
        }
        _ => false,
    }
}

fn says_invalid_token(challenges: &[String]) -> bool {
    challenges.iter().any(|challenge| {
        let bare: String = challenge
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '"')
            .collect();
        bare.to_ascii_lowercase().contains("error=invalid_token")
    })
}
