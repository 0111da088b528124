//! `schema`: what the grant lets be read. Without a stream an index of everything, with one all that it accepts.

mod capability;
mod document;
mod full;
mod shape;
mod text;

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::segment;
use contract::upstream::Get;
use serde_json::{Value, json};

use super::{Definition, Running};
use crate::args::{Arg, Args, Kind};
use crate::budget;
use crate::call::{Answered, Call};
use crate::evidence::envelope::{self, Paging};
use crate::evidence::plain;
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};
pub(super) use capability::{takes_exact_filter, takes_range_filter};
use document::Document;

pub(super) static TOOL: Definition = Definition {
    name: "schema",
    title: "What can be read",
    description: include_str!("schema.md"),
    args: &[
        Arg::new("stream", Kind::Text, "tell all that this stream accepts"),
        Arg::new("connection_id", Kind::Text, "only this connection"),
        Arg::new(
            "detail",
            Kind::Choice(&["compact", "full"]),
            "compact if absent; full needs stream",
        ),
    ],
    output: || json!({"data": {"type": "object"}, "provider_url": {"type": "string"}}),
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

/// A whole result with the full schema of one stream, both channels together.
const FULL_RESULT: usize = 100_000;
/// What a result has around its two channels.
const FRAME: usize = 512;

/// What was asked for.
struct Scope<'a> {
    stream: Option<&'a str>,
    connection: Option<&'a str>,
}

async fn run(call: Call<'_>, args: Args) -> Outcome {
    let scope = Scope {
        stream: args.text("stream"),
        connection: args.text("connection_id"),
    };
    scope.check()?;
    if args.text("detail") == Some("full") {
        return full(call, &scope).await;
    }
    let answered = ask_compact(call, &scope).await?;
    let read = Read::of(answered, &scope)?;
    let (text, data) = if scope.stream.is_some() {
        (
            text::scoped(&read.document, &scope, &read.handles),
            shape::scoped(&read.document),
        )
    } else {
        (
            text::index(&read.document, &scope, &read.handles),
            shape::index(&read.document),
        )
    };
    Ok(reply(call, text, &data, read.request_id.as_deref()))
}

async fn full(call: Call<'_>, scope: &Scope<'_>) -> Outcome {
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
    let read = Read::of(answered, scope)?;
    // A server that does not refuse it may send the schema of several connections in one row, or name none at all.
    let document = &read.document;
    let is_shared = document.rows().count() > 1 || document.connections().len() > 1;
    if scope.connection.is_none() && is_shared {
        return Err(ambiguous(&read, scope));
    }
    let full = full::shape(&read.document);
    let room = FULL_RESULT.saturating_sub(shape::size(&full.data) + FRAME);
    let text = text::full(&read, scope, &full, room);
    Ok(reply(call, text, &full.data, read.request_id.as_deref()))
}

fn reply(call: Call<'_>, text: String, data: &Value, request_id: Option<&str>) -> Reply {
    let structured =
        json!({"data": data, "provider_url": call.provider_url(), "request_id": request_id});
    Reply::new(text, structured)
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
    let structured = fault.structured();
    let kind = structured.pointer("/error/type").and_then(Value::as_str);
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

/// An answer, read and narrowed.
struct Read {
    document: Document,
    /// Cursors, counts and warnings of the envelope, each with a space before it.
    handles: String,
    request_id: Option<String>,
}

impl Read {
    fn of(answered: Answered, scope: &Scope<'_>) -> Result<Self, Fault> {
        let Answered { body, request_id } = answered;
        let mut handles = Paging::of(&body).written();
        let warnings = envelope::warnings(&body);
        let inner = body.get("data").and_then(envelope::warnings);
        if let Some(warnings) = warnings.or(inner) {
            handles.push_str(" warnings=");
            handles.push_str(&warnings);
        }
        let Some(mut document) = Document::read(body) else {
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
        "{} connections have the stream {}",
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
