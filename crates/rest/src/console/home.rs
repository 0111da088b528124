//! The home page: what is stored, who may read it, and how to start. Clients other than browsers get an index of
//! documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::grant::GrantRow;
use super::{html, see_other, session};
use crate::discovery::METADATA_PATH;
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const QUESTIONS: usize = 4;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    mcp_url: String,
    connections: Vec<ConnectionRow>,
    live: Vec<GrantRow>,
    ended: Vec<GrantRow>,
    questions: Vec<String>,
}

struct ConnectionRow {
    name: String,
    kind: String,
    id: String,
    total: String,
    streams: String,
}

/// `GET /`
pub(super) async fn index(context: RequestContext) -> HandlerResult {
    if !wants_page(&context.headers) {
        let mut response = discovery()?;
        let vary = HeaderValue::from_static("accept");
        response.headers_mut().insert(header::VARY, vary);
        return Ok(response);
    }
    let Some(session) = session::session(&context).await? else {
        return Ok(see_other("/sign-in"));
    };
    let frame = Frame::new(&session, Section::Overview);
    let page = blocking(Arc::clone(&context.service), move |service| {
        home(service, frame)
    });
    html(StatusCode::OK, &page.await?)
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

fn home(service: &Service, frame: Frame) -> Result<HomePage, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the first page", error);
    flush_disclosures(service);
    let grants = grants::list(&*service.store, service.now()).map_err(|error| failed(&error))?;
    let (live, ended): (Vec<_>, Vec<_>) =
        grants.iter().partition(|overview| overview.state.is_open());
    let stats = service
        .store
        .stream_stats()
        .map_err(|error| failed(&error))?;
    let mut by_connection: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for stats in &stats {
        let streams = by_connection
            .entry(stats.stream.connection.as_str())
            .or_default();
        streams.push((stats.stream.stream.as_str(), stats.records));
    }
    let mut connections = Vec::new();
    let mut questions = Vec::new();
    for connection in service.store.connections() {
        let streams = by_connection.remove(connection.id.as_str());
        let mut streams = streams.unwrap_or_default();
        streams.sort_by_key(|(_, records)| std::cmp::Reverse(*records));
        let name = label(&connection.display_name);
        if let Some((stream, 1..)) = streams.first() {
            questions.push(question(questions.len(), &name, stream));
        }
        let declaration = service.store.declaration(&connection.connector);
        connections.push(ConnectionRow {
            kind: declaration.map_or_else(String::new, |one| label(&one.display_name)),
            id: connection.id.to_string(),
            total: format_count(streams.iter().map(|(_, records)| records).sum(), "record"),
            streams: streams
                .iter()
                .map(|(stream, records)| format!("{}: {}", label(stream), format_number(*records)))
                .collect::<Vec<_>>()
                .join(", "),
            name,
        });
    }
    questions.truncate(QUESTIONS);
    Ok(HomePage {
        frame,
        mcp_url: format!("{}/mcp", service.public_url),
        connections,
        live: live.into_iter().map(GrantRow::from_overview).collect(),
        ended: ended.into_iter().map(GrantRow::from_overview).collect(),
        questions,
    })
}

fn question(at: usize, name: &str, stream: &str) -> String {
    match at % 3 {
        0 => format!("What is new in {name} this week? Quote what you find."),
        1 => format!("How many {stream} in {name} are there for each month?"),
        _ => format!("Search {name} for the last mention of a plan, and show me where it stands."),
    }
}
