//! Parsing responses: JSON by its content, whatever its media type; the beginning of anything else.

use contract::error::ReadError;
use contract::numeral;
use contract::upstream::{Answer, Body};

use crate::failure;
use crate::secret::Secret;
use crate::transport::HttpResponse;

/// How much of a body that is not JSON is kept.
const OTHER_BYTES: usize = 2048;

/// The longest request id taken over.
const REQUEST_ID_BYTES: usize = 200;

/// Parses a response, and returns its text too. The token is removed, should the server have repeated it.
pub(crate) fn parse(
    server: &str,
    response: HttpResponse,
    token: &Secret,
) -> Result<(Answer, String), ReadError> {
    let request_id = ["request-id", "x-request-id"]
        .into_iter()
        .find_map(|name| response.header(name))
        .filter(|id| !id.is_empty() && id.len() <= REQUEST_ID_BYTES)
        .map(|id| token.hide_in(id.to_owned()));
    let declared_json = response.header("content-type").is_some_and(is_json);
    let status = response.status;
    let failed = status >= 400;
    let text = match String::from_utf8(response.body) {
        Ok(text) => text,
        // A failure's status says more than its text.
        Err(other) if failed => String::from_utf8_lossy(other.as_bytes()).into_owned(),
        Err(_) => return Err(failure::not_the_contract(server, "its answer is not UTF-8")),
    };
    let text = token.hide_in(text);
    let text = text.trim_start_matches('\u{feff}');
    let body = match numeral::read(text) {
        Ok(value) => Body::Json(value),
        Err(error) if declared_json && !failed => {
            let place = format!("line {}, column {}", error.line(), error.column());
            let reason = format!("its answer is called JSON, but ends being so at {place}");
            return Err(failure::not_the_contract(server, &reason));
        }
        Err(_) => Body::Other(beginning(text).to_owned()),
    };
    let answer = Answer {
        status,
        request_id,
        body,
    };
    Ok((answer, text.to_owned()))
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(OTHER_BYTES)]
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
    let code = match &answer.body {
        Body::Json(body) => body["error"]["code"].as_str().or(body["error"].as_str()),
        Body::Other(_) => None,
    };
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
