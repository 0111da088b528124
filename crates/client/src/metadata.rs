//! Metadata of servers, trusted only as far as its documents agree.

use contract::error::ReadError;
use reqwest::Url;
use serde_json::{Map, Value};

use crate::failure;
use crate::provider_url::ProviderUrl;
use crate::token::json_object;
use crate::transport::Transport;

pub(crate) struct AuthorizationServer {
    pub(crate) issuer: ProviderUrl,
    pub(crate) token: Url,
    pub(crate) authorization: Option<Url>,
    pub(crate) device_authorization: Option<Url>,
    pub(crate) registration: Option<Url>,
    pub(crate) document: Map<String, Value>,
}

impl AuthorizationServer {
    /// Whether it names itself in redirects (RFC 9207).
    pub(crate) fn sends_issuer(&self) -> bool {
        let says = self
            .document
            .get("authorization_response_iss_parameter_supported");
        says.and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The authorization server of a resource server: the one it names, or itself.
pub(crate) async fn authorization_server_of(
    transport: &Transport,
    provider: &ProviderUrl,
) -> Result<ProviderUrl, ReadError> {
    let Some(document) = document(transport, provider, "oauth-protected-resource").await? else {
        return ProviderUrl::parse(&provider.origin());
    };
    let resource = document.get("resource").and_then(Value::as_str);
    if let Some(resource) = resource {
        let named = ProviderUrl::parse(resource).ok();
        let same = named.is_some_and(|named| {
            named == *provider || named.as_str() == provider.origin().as_str()
        });
        if !same {
            let reason = "its metadata is that of another resource";
            return Err(failure::not_the_contract(provider.as_str(), reason));
        }
    }
    let first = document
        .get("authorization_servers")
        .and_then(|servers| servers.get(0))
        .or_else(|| document.get("authorization_server"))
        .and_then(Value::as_str);
    let Some(first) = first else {
        return ProviderUrl::parse(&provider.origin());
    };
    let unusable = || {
        let reason = "the authorization server it names has no usable address";
        failure::not_the_contract(provider.as_str(), reason)
    };
    let server = ProviderUrl::parse(first).map_err(|_| unusable())?;
    if provider.is_encrypted() && !server.is_encrypted() {
        return Err(unusable());
    }
    Ok(server)
}

/// The endpoints of an authorization server; `None` if it publishes no metadata.
pub(crate) async fn authorization_server(
    transport: &Transport,
    issuer: &ProviderUrl,
) -> Result<Option<AuthorizationServer>, ReadError> {
    let Some(document) = document(transport, issuer, "oauth-authorization-server").await? else {
        return Ok(None);
    };
    let named = document.get("issuer").and_then(Value::as_str);
    if named
        .and_then(|text| ProviderUrl::parse(text).ok())
        .as_ref()
        != Some(issuer)
    {
        let reason = "its metadata is that of another authorization server";
        return Err(failure::not_the_contract(issuer.as_str(), reason));
    }
    let named = |name: &str| {
        let text = document.get(name).and_then(Value::as_str);
        text.map(|text| endpoint(issuer, text)).transpose()
    };
    let token = match named("token_endpoint")? {
        Some(token) => token,
        None => default_token_endpoint(issuer)?,
    };
    Ok(Some(AuthorizationServer {
        issuer: issuer.clone(),
        token,
        authorization: named("authorization_endpoint")?,
        device_authorization: named("device_authorization_endpoint")?,
        registration: named("registration_endpoint")?,
        document,
    }))
}

pub(crate) fn default_token_endpoint(issuer: &ProviderUrl) -> Result<Url, ReadError> {
    endpoint(issuer, &format!("{issuer}/oauth/token"))
}

/// Parses an endpoint. Secrets are sent there, so it must be encrypted if the server is.
pub(crate) fn endpoint(issuer: &ProviderUrl, text: &str) -> Result<Url, ReadError> {
    let url = Url::parse(text).ok().filter(|url| match url.scheme() {
        "https" => true,
        "http" => !issuer.is_encrypted(),
        _ => false,
    });
    url.ok_or_else(|| {
        failure::not_the_contract(
            issuer.as_str(),
            "an endpoint it names has no usable address",
        )
    })
}

/// A metadata document, at the standard path or where older servers have it.
async fn document(
    transport: &Transport,
    server: &ProviderUrl,
    name: &str,
) -> Result<Option<Map<String, Value>>, ReadError> {
    let (origin, path) = (server.origin(), server.path());
    let mut addresses = vec![
        format!("{origin}/.well-known/{name}{path}"),
        format!("{server}/.well-known/{name}"),
        format!("{origin}/.well-known/{name}"),
    ];
    addresses.dedup();
    for address in addresses {
        let url = endpoint(server, &address)?;
        let response = transport.get(server.as_str(), url, None).await?;
        match (response.status, json_object(&response)) {
            (200, Some(document)) => return Ok(Some(document)),
            (404, _) => {}
            (status, _) => {
                let reason = format!("its metadata ({name}) cannot be read: status {status}");
                return Err(failure::not_the_contract(server.as_str(), &reason));
            }
        }
    }
    Ok(None)
}
