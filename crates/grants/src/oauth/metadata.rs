//! Client metadata (RFC 7591), checked against what we support. Unknown members are ignored.

use serde_json::Value;

use super::clients::GrantType;
use super::error::OAuthError;
use super::uri::{WebAddress, may_receive_codes};

const MAX_NAME_BYTES: usize = 256;
const MAX_REDIRECTS: usize = 20;

#[derive(Debug, Clone)]
pub(super) struct Metadata {
    pub(super) client_name: Option<String>,
    pub(super) client_uri: Option<String>,
    pub(super) redirect_uris: Vec<String>,
    pub(super) grant_types: Vec<GrantType>,
}

pub(super) fn read_metadata(metadata: &Value) -> Result<Metadata, OAuthError> {
    let wrong = OAuthError::invalid_client_metadata;
    if !metadata.is_object() {
        return Err(wrong("client metadata must be one JSON object"));
    }
    let public = match text_member(metadata, "token_endpoint_auth_method")? {
        None => true,
        Some(method) => method == "none",
    };
    if !public || metadata.get("client_secret").is_some() {
        return Err(wrong(
            "only public clients are registered: token_endpoint_auth_method must be \"none\", and there is no secret",
        ));
    }
    let client_name = text_member(metadata, "client_name")?;
    if let Some(name) = &client_name
        && (name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control))
    {
        return Err(wrong(
            "client_name takes at most 256 bytes and no control characters",
        ));
    }
    let redirect_uris = texts_member(metadata, "redirect_uris")?.unwrap_or_default();
    check_redirects(metadata, &redirect_uris)?;
    let grant_types = read_grant_types(metadata, &redirect_uris)?;
    for response_type in texts_member(metadata, "response_types")?.unwrap_or_default() {
        if response_type != "code" {
            return Err(wrong("response_types may only hold \"code\""));
        }
    }
    Ok(Metadata {
        client_name,
        client_uri: text_member(metadata, "client_uri")?
            .filter(|uri| WebAddress::parse(uri).is_some_and(|address| address.is_secure())),
        redirect_uris,
        grant_types,
    })
}

fn check_redirects(metadata: &Value, redirect_uris: &[String]) -> Result<(), OAuthError> {
    if redirect_uris.len() > MAX_REDIRECTS {
        return Err(OAuthError::invalid_redirect_uri(
            "at most 20 redirect_uris are kept",
        ));
    }
    let web = text_member(metadata, "application_type")?.as_deref() == Some("web");
    for uri in redirect_uris {
        let secure = WebAddress::parse(uri).is_some_and(|address| address.is_secure());
        if !may_receive_codes(uri) || (web && !secure) {
            return Err(OAuthError::invalid_redirect_uri(format!(
                "codes are not sent to {:?}: a redirect URI is https, or for a native application http on 127.0.0.1, [::1] or localhost or of a scheme like com.example.app:/, without user or fragment",
                shown(uri)
            )));
        }
    }
    Ok(())
}

/// The grant types asked for; where none are named, what the redirect URIs make possible, renewal included: without
/// it an access token would have to live as long as its grant.
fn read_grant_types(
    metadata: &Value,
    redirect_uris: &[String],
) -> Result<Vec<GrantType>, OAuthError> {
    let wrong = OAuthError::invalid_client_metadata;
    let Some(names) = texts_member(metadata, "grant_types")? else {
        let first = if redirect_uris.is_empty() {
            GrantType::DeviceCode
        } else {
            GrantType::AuthorizationCode
        };
        return Ok(vec![first, GrantType::RefreshToken]);
    };
    let mut grant_types: Vec<GrantType> = Vec::new();
    for name in names {
        let known = GrantType::named(&name).ok_or_else(|| {
            wrong("grant_types may hold authorization_code, refresh_token and urn:ietf:params:oauth:grant-type:device_code")
        })?;
        if !grant_types.contains(&known) {
            grant_types.push(known);
        }
    }
    if grant_types.contains(&GrantType::AuthorizationCode) && redirect_uris.is_empty() {
        return Err(OAuthError::invalid_redirect_uri(
            "authorization_code needs redirect_uris",
        ));
    }
    if grant_types
        .iter()
        .all(|kind| *kind == GrantType::RefreshToken)
    {
        return Err(wrong(
            "grant_types must hold authorization_code or device_code: something has to come before a refresh",
        ));
    }
    Ok(grant_types)
}

fn text_member(metadata: &Value, name: &str) -> Result<Option<String>, OAuthError> {
    match metadata.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(OAuthError::invalid_client_metadata(format!(
            "{name} must be a string"
        ))),
    }
}

fn texts_member(metadata: &Value, name: &str) -> Result<Option<Vec<String>>, OAuthError> {
    let wrong =
        || OAuthError::invalid_client_metadata(format!("{name} must be an array of strings"));
    let items = match metadata.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong()),
    };
    items
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
        .collect::<Result<Vec<String>, OAuthError>>()
        .map(Some)
}

/// The beginning of a text, to quote it in a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
