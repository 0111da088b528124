//! Metadata documents: the authorization server (RFC 8414) and the two protected resources, the origin and its `/mcp`
//! (RFC 9728).

use axum::http::StatusCode;
use contract::query::{DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT};
use contract::search::{DEFAULT_EXCERPTS, MAX_EXCERPTS, Matching, SearchMode, SearchOrder};
use grants::oauth::GrantType;
use serde_json::{Value, json};
use store::meaning::ModelInfo;

use super::DEVICE_PAGE;
use crate::problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const DETAILS_TYPE: &str = "https://pdpp.dev/data-access";
const CONNECT_VERSION: &str = "draft-2026-04-16";
/// Required parameters of the device flow; resource and details are optional, and without details the owner chooses.
const DEVICE_NEEDS: [&str; 1] = ["client_id"];

/// The authorization server's document. Clients that only know `/mcp` look for it below that path too.
pub(crate) async fn authorization_server(context: RequestContext) -> HandlerResult {
    let url = &*context.service.public_url;
    let by_document = context.service.documents.is_some();
    let mut ways = vec!["dynamic"];
    if by_document {
        ways.push("client_id_metadata_document");
    }
    let document = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/oauth/authorize"),
        "token_endpoint": format!("{url}/oauth/token"),
        "registration_endpoint": format!("{url}/oauth/register"),
        "device_authorization_endpoint": format!("{url}/oauth/device_authorization"),
        "revocation_endpoint": format!("{url}/oauth/revoke"),
        "introspection_endpoint": format!("{url}/oauth/introspect"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": GrantType::NAMES,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": by_document,
        "authorization_details_types_supported": [DETAILS_TYPE],
        "protected_resources": [url, format!("{url}/mcp")],
        "pdpp_registration_modes_supported": ways,
        "pdpp_authorization_details_types_supported": [DETAILS_TYPE],
        "pdpp_device_authorization_profiles_supported": [{
            "profile": "grant_scoped_mcp",
            "pdpp_token_kind": "client",
            "authorization_details_type": DETAILS_TYPE,
            "normal_mcp_setup": true,
            "required_parameters": DEVICE_NEEDS,
        }],
        "pdpp_provider_connect_capabilities": ["cli_device_connect", "third_party_client_connect"],
    });
    problem::json(StatusCode::OK, &document)
}

pub(crate) async fn resource(context: RequestContext) -> HandlerResult {
    let url = &*context.service.public_url;
    let mut document = described(url, url, &["owner", "client", "mcp_package"]);
    document["pdpp_core_query_base"] = format!("{url}/v1").into();
    document["pdpp_self_export_supported"] = true.into();
    document["pdpp_discovery_hints"] = hints();
    document["capabilities"] = capabilities(context.service.store.model());
    document["pdpp_agent_discovery"] = agents(&context.service);
    problem::json(StatusCode::OK, &document)
}

pub(crate) async fn mcp_resource(context: RequestContext) -> HandlerResult {
    let url = &*context.service.public_url;
    let mut document = described(url, &format!("{url}/mcp"), &["client", "mcp_package"]);
    document["pdpp_agent_discovery"] = agents(&context.service);
    problem::json(StatusCode::OK, &document)
}

fn described(url: &str, resource: &str, kinds: &[&str]) -> Value {
    json!({
        "resource": resource,
        "resource_name": "pdpp",
        "authorization_servers": [url],
        "bearer_methods_supported": ["header"],
        "authorization_details_types_supported": [DETAILS_TYPE],
        "pdpp_provider_connect_version": CONNECT_VERSION,
        "pdpp_token_kinds_supported": kinds,
    })
}

fn agents(service: &Service) -> Value {
    let url = &*service.public_url;
    let resource = format!("{url}/mcp");
    json!({
        "mcp": {
            "endpoint": resource,
            "transport": "streamable_http",
            "setup_intent": "grant_scoped_read",
            "no_owner_token": true,
            "authorization": {
                "authorization_code_pkce": {
                    "flow": "authorization_code_pkce",
                    "authorization_endpoint": format!("{url}/oauth/authorize"),
                    "token_endpoint": format!("{url}/oauth/token"),
                    "pdpp_token_kind": "client",
                    "resource": resource,
                    "resource_parameter": "supported",
                },
                "device_code": {
                    "flow": "device_code",
                    "grant_type": GrantType::DeviceCode.as_str(),
                    "device_authorization_endpoint": format!("{url}/oauth/device_authorization"),
                    "token_endpoint": format!("{url}/oauth/token"),
                    "verification_uri": format!("{url}{DEVICE_PAGE}"),
                    "authorization_details_type": DETAILS_TYPE,
                    "pdpp_token_kind": "client",
                    "required_parameters": DEVICE_NEEDS,
                    "resource": resource,
                    "owner_bearer_accepted": false,
                },
            },
        },
    })
}

fn hints() -> Value {
    json!({
        "schema_endpoint": "/v1/schema",
        "query_base": "/v1",
        "connectors_endpoint": "/v1/connectors",
        "streams_endpoint_template": "/v1/streams/{stream}",
        "changes_since_bootstrap": "beginning",
        "blob_indirection": "data.blob_ref.fetch_url",
        "aggregate": {"endpoint_template": "/v1/streams/{stream}/aggregate"},
        "search": {
            "endpoint": "/v1/search",
            "scope_param": "streams[]",
            "filter_requires_single_stream": true,
        },
    })
}

fn capabilities(model: Option<ModelInfo>) -> Value {
    let mut capabilities = json!({
        "lexical_retrieval": {
            "supported": true,
            "endpoint": "/v1/search",
            "cross_stream": true,
            "snippets": true,
            "default_limit": DEFAULT_PAGE_LIMIT,
            "max_limit": MAX_PAGE_LIMIT,
            "cursor_supported": true,
            "count_supported": true,
            "orders": SearchOrder::NAMES,
            "matches": Matching::NAMES,
            "default_excerpts": DEFAULT_EXCERPTS,
            "max_excerpts": MAX_EXCERPTS,
            // There always is an index. A search says when part of it is being rebuilt; this public document does not.
            "index_state": "built",
        },
    });
    if let Some(model) = model {
        let by = |mode: SearchMode| {
            json!({
                "supported": true,
                "endpoint": mode.route(),
                "cross_stream": true,
                "snippets": true,
                "default_limit": DEFAULT_PAGE_LIMIT,
                "max_limit": MAX_PAGE_LIMIT,
                "cursor_supported": true,
                "count_supported": false,
            })
        };
        capabilities["semantic_retrieval"] = by(SearchMode::Semantic);
        capabilities["semantic_retrieval"]["model"] = json!(model.name);
        capabilities["semantic_retrieval"]["dimensions"] = json!(model.dimensions);
        capabilities["semantic_retrieval"]["distance_metric"] = json!("cosine");
        capabilities["hybrid_retrieval"] = by(SearchMode::Hybrid);
        capabilities["hybrid_retrieval"]["sources"] = json!(["lexical", "semantic"]);
    }
    capabilities
}
