//! The server over HTTP: one POST, one answer, nothing kept between requests. Both protocol eras share the endpoint.
//!
//! Who may call is decided before a request comes here; what is checked here is that it is not too large, and unless
//! that was done before, that a browser was not tricked into sending it (Host and Origin).

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

#[derive(Debug, Clone)]
pub struct HttpSettings {
    config: StreamableHttpServerConfig,
    sessions: Arc<NeverSessionManager>,
}

impl HttpSettings {
    /// Takes requests for these hosts (`name` or `name:port`), and from pages of these origins only. A request without
    /// an `Origin` was not sent by a page.
    pub fn new(
        hosts: impl IntoIterator<Item = String>,
        origins: impl IntoIterator<Item = String>,
        max_body_bytes: usize,
    ) -> Self {
        let mut settings = Self::checked_before(max_body_bytes);
        settings.config = settings
            .config
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        settings
    }

    /// Takes every request: its host and origin were looked at before.
    pub fn checked_before(max_body_bytes: usize) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(None)
            .with_max_request_body_bytes(max_body_bytes)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        Self {
            config,
            sessions: Arc::default(),
        }
    }
}

/// Answers one request with this server, which is made for its caller.
pub async fn serve_http<S, B>(
    server: S,
    settings: &HttpSettings,
    request: Request<B>,
) -> Response<BoxBody<Bytes, Infallible>>
where
    S: ServerHandler + Clone,
    B: Body + Send + 'static,
    B::Error: Display,
{
    let sessions = Arc::clone(&settings.sessions);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        sessions,
        settings.config.clone(),
    );
    service.handle(request).await
}
