//! Requests without a token: public documents and challenges, as a new client sees them.

use contract::error::ReadError;
use serde_json::Value;

use crate::metadata::endpoint;
use crate::provider_url::ProviderUrl;
use crate::transport::{Limits, Transport};

/// A response to a request without a token.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeResponse {
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// The `Date` header, by the server's clock.
    pub date: Option<String>,
    pub body: Option<Value>,
}

/// `GET` of a path below the server's address, without a token.
pub async fn get(
    provider: &ProviderUrl,
    path: &str,
    limits: Limits,
) -> Result<ProbeResponse, ReadError> {
    let url = endpoint(provider, &format!("{provider}{path}"))?;
    let transport = Transport::new(limits);
    let response = transport.get(provider.as_str(), url, None).await?;
    let header = |name| response.header(name).map(str::to_owned);
    Ok(ProbeResponse {
        status: response.status,
        challenge: header("www-authenticate"),
        date: header("date"),
        body: serde_json::from_slice(&response.body).ok(),
    })
}
