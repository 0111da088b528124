//! One HTTP request with limits of time and size, to no other server than the named one.

use std::sync::OnceLock;
use std::time::Duration;

use contract::error::ReadError;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::failure;
use crate::provider_url::is_loopback;
use crate::secret::Secret;

pub(crate) const USER_AGENT: &str = concat!("pdpp/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    pub total: Duration,
    /// The largest response, decompressed.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(30),
            body_bytes: 32 * 1024 * 1024,
        }
    }
}

pub(crate) struct RequestBody {
    pub(crate) media_type: &'static str,
    pub(crate) text: String,
}

pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The HTTP client. It is created at the first request, because loading certificates costs milliseconds.
pub(crate) struct Transport {
    limits: Limits,
    /// One client per combination of encrypted and local.
    clients: [OnceLock<Client>; 4],
}

impl Transport {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            clients: Default::default(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// `GET`, with a token if there is one. `server` is the name for messages.
    pub(crate) async fn get(
        &self,
        server: &str,
        url: Url,
        token: Option<&Secret>,
    ) -> Result<HttpResponse, ReadError> {
        let mut request = self.client(server, &url)?.request(Method::GET, url);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(token)?);
        }
        self.send(server, request).await
    }

    pub(crate) async fn post(
        &self,
        server: &str,
        url: Url,
        body: RequestBody,
    ) -> Result<HttpResponse, ReadError> {
        let request = self.client(server, &url)?.request(Method::POST, url);
        let request = request
            .header(CONTENT_TYPE, body.media_type)
            .body(body.text);
        self.send(server, request).await
    }

    async fn send(&self, server: &str, request: RequestBuilder) -> Result<HttpResponse, ReadError> {
        let sent = request
            .header(ACCEPT, "application/json")
            .timeout(self.limits.total)
            .send()
            .await;
        let response = sent.map_err(|error| failure::from_reqwest(server, &self.limits, &error))?;
        if response.status().is_redirection() {
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            return Err(failure::redirected(server, response.url(), location));
        }
        self.read(server, response).await
    }

    async fn read(&self, server: &str, mut response: Response) -> Result<HttpResponse, ReadError> {
        let most = self.limits.body_bytes;
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |bytes| bytes > most) {
            return Err(failure::too_large(server, most));
        }
        let mut body = Vec::new();
        // Decompressed bytes are counted as they come, against decompression bombs.
        loop {
            let chunk = response.chunk().await;
            match chunk.map_err(|error| failure::from_reqwest(server, &self.limits, &error))? {
                Some(bytes) if body.len() + bytes.len() > most => {
                    return Err(failure::too_large(server, most));
                }
                Some(bytes) => body.extend_from_slice(&bytes),
                None => break,
            }
        }
        Ok(HttpResponse {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        })
    }

    fn client(&self, server: &str, url: &Url) -> Result<&Client, ReadError> {
        let (encrypted, local) = (url.scheme() == "https", is_loopback(url));
        let slot = &self.clients[usize::from(encrypted) * 2 + usize::from(local)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let built = self
            .build(encrypted, local)
            .map_err(|detail| failure::no_client(server, &detail))?;
        Ok(slot.get_or_init(|| built))
    }

    fn build(&self, encrypted: bool, local: bool) -> Result<Client, String> {
        let tls = tls(encrypted).map_err(|error| error.to_string())?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(USER_AGENT)
            .connect_timeout(self.limits.connect)
            .redirect(redirect::Policy::none())
            .referer(false)
            .http1_only();
        if local {
            // A proxy of the environment is for the network, not for this machine.
            builder = builder.no_proxy().default_headers(identity_encoding());
        }
        builder.build().map_err(|error| error.to_string())
    }
}

/// Asks for uncompressed answers: on one machine compression costs more than it saves.
fn identity_encoding() -> HeaderMap {
    let identity = (ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    HeaderMap::from_iter([identity])
}

/// TLS with the certificates this machine trusts. A machine without any can still use plain HTTP; encrypted servers
/// then fail verification.
pub(crate) fn tls(encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let start = || {
        let provider = rustls::crypto::ring::default_provider();
        ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions()
    };
    if encrypted && let Ok(trusting) = start()?.with_platform_verifier() {
        return Ok(trusting.with_no_client_auth());
    }
    Ok(start()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// The `Authorization` header, marked as sensitive.
fn bearer(token: &Secret) -> Result<HeaderValue, ReadError> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))
        .map_err(|_| ReadError::internal())?;
    value.set_sensitive(true);
    Ok(value)
}
