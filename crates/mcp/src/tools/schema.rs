//! `schema`: what the grant lets be read. Without a stream an index of everything, with one all that it accepts.

mod shape;
mod text;

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::segment;
use contract::upstream::Get;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::{Definition, Running};
use crate::answer::schema::capability::Capabilities;
use crate::answer::schema::document::{Connector, Stream};
use crate::answer::schema::{Document, FullSchema};
use crate::answer::{Answered, size};
use crate::args::{Arguments as _, Chosen, Schema, arguments};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::reply::{Reply, ToolResult};
use crate::text::{paging, plain};

contract::names! {
    enum Detail {
        Compact = "compact",
        Full = "full",
    }
}

arguments! {
    struct SchemaArgs {
        stream: Option<String> = "tell all that this stream accepts";
        connection_id: Option<String> = "only this connection";
        detail: Option<Chosen<Detail>> = "compact if absent; full needs stream";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "schema",
    title: "What can be read",
    description: include_str!("schema.md"),
    input: SchemaArgs::schema,
    output: || {
        vec![
            ("data", Schema::new("object")),
            ("provider_url", Schema::new("string")),
        ]
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move { run(call, SchemaArgs::read(given)?).await })
    },
};

/// A whole result with the full schema of one stream, both channels together.
const FULL_RESULT: usize = 100_000;
/// What a result has around its two channels.
const FRAME: usize = 512;

#[skip_serializing_none]
#[derive(Serialize)]
struct Content<'a, D> {
    data: &'a D,
    provider_url: Option<String>,
    #[serialize_always]
    request_id: Option<&'a str>,
}

struct Scope<'a> {
    stream: Option<&'a str>,
    connection: Option<&'a str>,
}

async fn run(call: Call<'_>, args: SchemaArgs) -> ToolResult {
    let scope = Scope {
        stream: args.stream.as_deref(),
        connection: args.connection_id.as_deref(),
    };
    scope.check()?;
    if args.detail == Some(Chosen(Detail::Full)) {
        return full(call, &scope).await;
    }
    let answered = ask_compact(call, &scope).await?;
    let read = Read::from_answer(answered, &scope)?;
    let around = FRAME + call.provider_url().map_or(0, |url| url.len());
    let rows;
    let (text, data) = if scope.stream.is_some() {
        rows = read.rows();
        let room = budget::STREAM_STRUCTURED.saturating_sub(around);
        (
            text::scoped(&read, &scope, &rows),
            shape::scoped(&read.document, &rows, room),
        )
    } else {
        let room = budget::INDEX_STRUCTURED.saturating_sub(around);
        (
            text::index(&read, &scope),
            shape::index(&read.document, room),
        )
    };
    reply(call, text, &data, read.request_id.as_deref())
}

async fn full(call: Call<'_>, scope: &Scope<'_>) -> ToolResult {
    if scope.stream.is_none() {
        let message =
            "detail \"full\" needs a stream: the whole grant in full is too large for one result";
        return Err(
            Fault::refused(ErrorCode::InvalidRequest, "detail", message).with_next(
                "compact discovery first: schema {}, then schema(stream, connection_id, detail: \"full\")",
            ),
        );
    }
    let answered = call.get(scope.question("detail", "full")).await?;
    let read = Read::from_answer(answered, scope)?;
    // A server that does not refuse it may send the schema of several connections in one row, or name none at all.
    let document = &read.document;
    let is_shared = document.rows().count() > 1 || document.connections().len() > 1;
    if scope.connection.is_none() && is_shared {
        return Err(ambiguous(&read, scope));
    }
    let full = FullSchema::new(&read.document);
    let room = FULL_RESULT.saturating_sub(size(&full) + FRAME);
    let text = text::full(&read, scope, &full, room);
    reply(call, text, &full, read.request_id.as_deref())
}

fn reply(
    call: Call<'_>,
    text: String,
    data: &impl Serialize,
    request_id: Option<&str>,
) -> ToolResult {
    let content = Content {
        data,
        provider_url: call.provider_url(),
        request_id,
    };
    Reply::new(text, &content)
}

/// Asks for the compact view; a server that does not know it is asked for all, which is then made compact here.
async fn ask_compact(call: Call<'_>, scope: &Scope<'_>) -> Result<Answered, Fault> {
    let answer = call.get(scope.question("view", "compact")).await;
    match answer {
        Err(fault) if is_unknown_view(&fault) => {
            let question = Get::v1(["schema"])
                .with("stream", scope.stream)
                .with("connection_id", scope.connection);
            call.get(question).await
        }
        answer => answer,
    }
}

fn is_unknown_view(fault: &Fault) -> bool {
    const CODES: [&str; 3] = ["bad_request", "invalid_request", "unsupported_query"];
    let kind = fault.error_type();
    fault.http_status() == Some(400)
        && (CODES.contains(&fault.code()) || kind.is_some_and(|kind| CODES.contains(&kind)))
}

impl Scope<'_> {
    fn check(&self) -> Result<(), Fault> {
        if let Some(Err(error)) = self.stream.map(segment::guard) {
            let message = format!("the stream name {error}");
            return Err(Fault::refused(ErrorCode::InvalidStream, "stream", message)
                .with_next("call schema without a stream to see their names"));
        }
        // It travels as a parameter, and ids of other servers are opaque.
        if let Some(Err(error)) = self.connection.map(segment::printable) {
            let message = format!("the connection id {error}");
            let fault = Fault::refused(ErrorCode::InvalidConnectionId, "connection_id", message);
            return Err(fault.with_next("call schema without connection_id to see them"));
        }
        Ok(())
    }

    fn question(&self, name: &str, value: &str) -> Get {
        Get::v1(["schema"])
            .with(name, Some(value))
            .with("stream", self.stream)
            .with("connection_id", self.connection)
    }
}

struct Read {
    document: Document,
    /// Cursors, counts and warnings of the envelope, each with a space before it.
    handles: String,
    request_id: Option<String>,
}

/// A stream of one source, and what it accepts.
struct Row<'a> {
    connector: &'a Connector,
    stream: &'a Stream,
    accepts: Capabilities,
}

impl Read {
    fn rows(&self) -> Vec<Row<'_>> {
        let row = |(connector, stream)| Row {
            connector,
            stream,
            accepts: Capabilities::new(stream),
        };
        self.document.rows().map(row).collect()
    }

    fn from_answer(answered: Answered, scope: &Scope<'_>) -> Result<Self, Fault> {
        let request_id = answered.request_id.clone();
        let page = answered.schema_page();
        let mut handles = paging::extent(&page) + &paging::way_on(&page);
        if let Some(warnings) = paging::page_warnings(&page) {
            handles.push_str(" warnings=");
            handles.push_str(&warnings);
        }
        let Some(mut document) = answered.into_schema() else {
            let message = "the resource server's answer is not a schema document";
            let error = ReadError::new(ErrorCode::RsBadResponse, message).with_hint(
                "check that the provider URL is a PDPP server; `pdpp doctor URL` tells more",
            );
            return Err(Fault::from(error).with_answer(None, request_id));
        };
        document.scope(scope.stream, scope.connection);
        Ok(Self {
            document,
            handles,
            request_id,
        })
    }
}

fn ambiguous(read: &Read, scope: &Scope<'_>) -> Fault {
    let document = &read.document;
    let connections = document.connections();
    let listed = connections
        .iter()
        .map(|(connector, one)| AvailableConnection {
            grant_id: one
                .grant_id
                .as_deref()
                .or_else(|| document.grant_id())
                .map(str::to_owned),
            connector_key: Some(connector.key.clone()),
            connection_id: one.id.clone(),
            display_name: one
                .label
                .as_deref()
                .map(|label| plain::cut(label, budget::LABEL).into_owned()),
        });
    let message = format!(
        "{} connections carry the stream {}",
        connections.len(),
        plain::quoted(scope.stream.unwrap_or_default(), budget::LABEL)
    );
    let error = ReadError::new(ErrorCode::AmbiguousSchemaDetail, message)
        .with_param("connection_id")
        .with_connections(listed.collect());
    Fault::from(error).with_answer(None, read.request_id.clone())
}

#[cfg(test)]
mod tests;
