//! The root: the overview for browsers, an index of documents for everybody else.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use super::overview;
use crate::discovery::METADATA_PATH;
use crate::problem;
use crate::table::{HandlerResult, RequestContext};

/// `GET /`
pub(super) async fn index(context: RequestContext) -> HandlerResult {
    if wants_page(&context.headers) {
        return overview::show(context).await;
    }
    let mut response = discovery()?;
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(header::VARY, vary);
    Ok(response)
}

/// Whether the client prefers HTML over JSON; only browsers say so.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted
        .iter()
        .filter_map(|list| list.to_str().ok())
        .any(|list| list.contains("text/html") || list.contains("application/xhtml+xml"))
}

/// The discovery index: paths of this server.
fn discovery() -> HandlerResult {
    let document = json!({
        "object": "pdpp_discovery_index",
        "role": "resource_server",
        "resource_name": "pdpp",
        "links": {
            "schema": "/v1/schema",
            "connectors": "/v1/connectors",
            "core_query_base": "/v1",
            "well_known": METADATA_PATH,
            "mcp_protected_resource_metadata": format!("{METADATA_PATH}/mcp"),
            "authorization_server_metadata": "/.well-known/oauth-authorization-server",
            "openapi": "/v1/openapi.json",
            "mcp": "/mcp",
        },
    });
    problem::json(StatusCode::OK, &document)
}
