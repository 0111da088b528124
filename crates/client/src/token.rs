//! Responses of token endpoints.

use std::fmt::Write as _;
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use contract::time::Instant;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use serde_json::{Map, Value};

use crate::credentials::{is_owner, owner_refused};
use crate::failure;
use crate::secret::Secret;
use crate::transport::{HttpResponse, RequestBody, Transport};

/// The longest error code taken over from a server.
const CODE_CHARS: usize = 64;

/// The members of a token response that are stored.
const KEPT: [&str; 6] = [
    "token_type",
    "scope",
    "grant_id",
    "grant_package_id",
    "token_kind",
    "pdpp_token_kind",
];

pub(crate) struct Granted {
    pub(crate) access_token: Secret,
    pub(crate) refresh_token: Option<Secret>,
    expires_in: Option<u64>,
    kept: Map<String, Value>,
}

impl Granted {
    pub(crate) fn grant(&self) -> Option<&str> {
        let named = |name| self.kept.get(name).and_then(Value::as_str);
        named("grant_id").or(named("grant_package_id"))
    }

    pub(crate) fn is_package(&self) -> bool {
        self.kept.contains_key("grant_package_id")
    }

    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.expires_in.map(Duration::from_secs)
    }

    pub(crate) fn expires_at(&self, now: Instant) -> Option<Instant> {
        let micros = i64::try_from(self.lifetime()?.as_micros()).ok()?;
        Some(Instant(now.0.checked_add(micros)?))
    }

    /// Writes it into the `credential` of a file; other members stay.
    pub(crate) fn write_into(&self, credential: &mut Map<String, Value>, now: Instant) {
        let mut put = |name: &str, value: Option<Value>| match value {
            Some(value) => credential.insert(name.to_owned(), value),
            None => credential.remove(name),
        };
        put("access_token", Some(self.access_token.expose().into()));
        let expires_at = self.expires_at(now);
        put(
            "expires_at",
            expires_at.map(|at| at.to_rfc3339_millis().into()),
        );
        if let Some(token) = &self.refresh_token {
            put("refresh_token", Some(token.expose().into()));
        }
        for (name, value) in &self.kept {
            put(name, Some(value.clone()));
        }
    }
}

pub(crate) enum TokenResponse {
    Granted(Box<Granted>),
    /// No token, with this OAuth error code.
    Refused(String),
}

pub(crate) async fn request_token(
    transport: &Transport,
    endpoint: &Url,
    fields: &[(&str, &str)],
) -> Result<TokenResponse, ReadError> {
    let server = endpoint.origin().ascii_serialization();
    let response = transport
        .post(&server, endpoint.clone(), form_body(fields))
        .await?;
    parse_response(&server, &response)
}

fn parse_response(server: &str, response: &HttpResponse) -> Result<TokenResponse, ReadError> {
    let Some(body) = json_object(response) else {
        let reason = format!(
            "its token endpoint answered {} without JSON",
            response.status
        );
        return Err(failure::not_the_contract(server, &reason));
    };
    if response.status != 200 {
        return error_code(&body)
            .map(TokenResponse::Refused)
            .ok_or_else(|| {
                let reason = format!("its token endpoint answered {}", response.status);
                failure::not_the_contract(server, &reason)
            });
    }
    if is_owner(&body) {
        return Err(owner_refused(&format!("{server} gave")));
    }
    let secret = |name: &str| {
        let text = body.get(name).and_then(Value::as_str);
        text.and_then(Secret::new)
    };
    let Some(access_token) = secret("access_token") else {
        let reason = "its token endpoint gave no usable access_token";
        return Err(failure::not_the_contract(server, reason));
    };
    let bearer = body.get("token_type").and_then(Value::as_str);
    if bearer.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        let reason = "its tokens are not bearer tokens";
        return Err(failure::not_the_contract(server, reason));
    }
    let kept = KEPT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())));
    Ok(TokenResponse::Granted(Box::new(Granted {
        access_token,
        refresh_token: secret("refresh_token"),
        expires_in: body.get("expires_in").and_then(Value::as_u64),
        kept: kept.collect(),
    })))
}

pub(crate) fn json_object(response: &HttpResponse) -> Option<Map<String, Value>> {
    serde_json::from_slice(&response.body).ok()
}

/// The code of an OAuth error, in either spelling.
pub(crate) fn error_code(body: &Map<String, Value>) -> Option<String> {
    let error = body.get("error")?;
    sanitize_code(error.as_str().or_else(|| error.get("code")?.as_str())?)
}

/// The characters that may stand in a code.
pub(crate) fn sanitize_code(text: &str) -> Option<String> {
    let named = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '.';
    let code: String = text.chars().filter(named).take(CODE_CHARS).collect();
    (!code.is_empty()).then_some(code)
}

/// An error of an authorization server that no retry repairs.
pub(crate) fn refused(server: &str, code: &str) -> ReadError {
    let message = format!("{server} gave no credential: {code}");
    ReadError::new(ErrorCode::NotConnected, message)
        .with_hint("run `pdpp connect` again; if it stays, look at the server's log")
}

/// An error of a request without secrets, so that its description can be shown too.
pub(crate) fn refused_as(
    server: &str,
    response: &HttpResponse,
    body: &Map<String, Value>,
) -> ReadError {
    let mut code = error_code(body).unwrap_or_else(|| format!("status {}", response.status));
    if let Some(told) = body.get("error_description").and_then(Value::as_str) {
        code = format!("{code} ({})", failure::short(told));
    }
    refused(server, &code)
}

pub(crate) fn form_body(fields: &[(&str, &str)]) -> RequestBody {
    let mut body = String::new();
    for (name, value) in fields {
        let sign = if body.is_empty() { "" } else { "&" };
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        // Writing to a String cannot fail.
        let _ = write!(body, "{sign}{name}={value}");
    }
    RequestBody {
        media_type: "application/x-www-form-urlencoded",
        text: body,
    }
}
