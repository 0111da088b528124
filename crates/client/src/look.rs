//! Looking at a server as somebody does who has no token yet: what it publishes, and how it sends strangers on.

use contract::error::ReadError;
use serde_json::Value;

use crate::metadata::endpoint;
use crate::provider_url::ProviderUrl;
use crate::transport::{Limits, Transport};

/// What a stranger is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The HTTP status.
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// The `Date` header, by the server's clock.
    pub date: Option<String>,
    /// The body, where it is JSON.
    pub body: Option<Value>,
}

/// `GET` of a path below the server's address, without a token.
pub async fn at(provider: &ProviderUrl, path: &str, limits: Limits) -> Result<Seen, ReadError> {
    let url = endpoint(provider, &format!("{provider}{path}"))?;
    let transport = Transport::new(limits);
    let said = transport.get(provider.as_str(), url, None).await?;
    let header = |name| said.header(name).map(str::to_owned);
    Ok(Seen {
        status: said.status,
        challenge: header("www-authenticate"),
        date: header("date"),
        body: serde_json::from_slice(&said.body).ok(),
    })
}
