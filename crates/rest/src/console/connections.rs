//! Connections: what each holds, its name, and its removal, which asks for its id.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::id::ConnectionId;
use store::StoreError;
use store::catalog::Connection;

use super::browse::stream_address;
use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::stream_shape::title;
use super::{html, see_other, session};
use crate::owner::blocking;
use crate::owner::sources::remove_connection;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "connections.html")]
struct ConnectionsPage {
    frame: Frame,
    rows: Vec<ConnectionRow>,
}

struct ConnectionRow {
    id: String,
    name: String,
    kind: String,
    total: String,
}

#[derive(Template)]
#[template(path = "connection.html")]
struct ConnectionPage {
    frame: Frame,
    id: String,
    label: String,
    /// As it is kept, for the form.
    name: String,
    kind: String,
    added: Option<Moment>,
    total: String,
    streams: Vec<StreamRow>,
    /// Grants that would lose it, by the names of their clients.
    readers: Vec<String>,
    mistake: &'static str,
}

struct StreamRow {
    name: String,
    about: String,
    records: String,
    address: String,
}

/// `GET /connections`
pub(super) async fn index(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let rows = blocking(Arc::clone(&context.service), |service| {
        let stats = service
            .store
            .stream_stats()
            .map_err(|error| problem(&error))?;
        let connections = service.store.connections().into_iter();
        let row = |connection: Connection| {
            let own = stats
                .iter()
                .filter(|one| one.stream.connection == connection.id);
            ConnectionRow {
                total: format_count(own.map(|one| one.records).sum(), "record"),
                kind: kind(service, &connection),
                name: label(&connection.display_name),
                id: connection.id.to_string(),
            }
        };
        Ok(connections.map(row).collect())
    });
    let page = ConnectionsPage {
        rows: rows.await?,
        frame: Frame::new(&session, Section::Settings),
    };
    html(StatusCode::OK, &page)
}

fn kind(service: &Service, connection: &Connection) -> String {
    let declaration = service.store.declaration(&connection.connector);
    declaration.map_or_else(String::new, |one| label(&one.display_name))
}

/// `GET /connections/{id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let frame = Frame::new(&session, Section::Settings);
    let id = context.part(0).to_owned();
    let page = blocking(Arc::clone(&context.service), move |service| {
        page(service, frame, &id)
    });
    html(StatusCode::OK, &page.await?)
}

fn page(service: &Service, frame: Frame, id: &str) -> Result<ConnectionPage, Problem> {
    let connection = find(service, id)?;
    let stats = service
        .store
        .stream_stats()
        .map_err(|error| problem(&error))?;
    let declaration = service.store.declaration(&connection.connector);
    let own = stats
        .iter()
        .filter(|one| one.stream.connection == connection.id);
    let mut streams = Vec::new();
    let mut total = 0;
    for one in own {
        total += one.records;
        let name = one.stream.stream.as_str();
        let declared = declaration
            .as_deref()
            .and_then(|declared| declared.stream(name));
        let declared_label = declared.and_then(|declared| declared.label.clone());
        let about = declared.and_then(|declared| declared.description.as_deref());
        streams.push(StreamRow {
            name: label(&declared_label.unwrap_or_else(|| title(name))),
            about: label(about.unwrap_or_default()),
            records: format_number(one.records),
            address: stream_address(connection.id.as_str(), name).to_string(),
        });
    }
    let grants = grants::list(&*service.store, service.now()).map_err(|error| problem(&error))?;
    let of_it = grants.iter().filter(|grant| grant.state.is_open());
    let of_it = of_it.filter(|grant| {
        grant
            .streams
            .iter()
            .any(|row| row.connection_id == connection.id)
    });
    Ok(ConnectionPage {
        frame,
        readers: of_it.map(super::viewer::client).collect(),
        kind: kind(service, &connection),
        added: Moment::new(connection.created_at),
        total: format_count(total, "record"),
        label: label(&connection.display_name),
        name: connection.display_name.clone(),
        id: connection.id.to_string(),
        streams,
        mistake: "",
    })
}

fn find(service: &Service, id: &str) -> Result<Connection, Problem> {
    let id = ConnectionId::parse(id).ok();
    let found = id.and_then(|id| service.store.connection(&id));
    let missing = || ReadError::new(ErrorCode::NotFound, "there is no such connection");
    found.ok_or_else(|| missing().with_hint("it may have been removed").into())
}

fn problem(error: &StoreError) -> Problem {
    Problem::internal("a connection could not be looked at", error)
}

/// `POST /connections/{id}/rename`
pub(super) async fn rename(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    let frame = Frame::new(&session, Section::Settings);
    let renamed = blocking(Arc::clone(&context.service), move |service| {
        let connection = find(service, &id)?;
        let name = form.value("name").trim();
        if name.is_empty() || name.len() > 200 {
            let mut page = page(service, frame, &id)?;
            page.mistake = "A name has 1 to 200 bytes.";
            return Ok(Err(page));
        }
        let renamed = service.store.rename_connection(&connection.id, name);
        renamed.map_err(|error| problem(&error))?;
        Ok(Ok(format!("/connections/{}", connection.id)))
    });
    match renamed.await? {
        Ok(address) => Ok(see_other(&address)),
        Err(page) => html(StatusCode::BAD_REQUEST, &page),
    }
}

/// `POST /connections/{id}/remove`: erases it, once its id was typed.
pub(super) async fn remove(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    let frame = Frame::new(&session, Section::Settings);
    let removed = blocking(Arc::clone(&context.service), move |service| {
        let connection = find(service, &id)?;
        if form.value("confirm").trim() != connection.id.as_str() {
            let mut page = page(service, frame, &id)?;
            page.mistake = "Nothing was removed: what you typed is not its id.";
            return Ok(Err(page));
        }
        let removed = remove_connection(service, &connection.id);
        removed.map_err(|error| problem(&error))?;
        Ok(Ok(()))
    });
    match removed.await? {
        Ok(()) => Ok(see_other("/connections")),
        Err(page) => html(StatusCode::BAD_REQUEST, &page),
    }
}
