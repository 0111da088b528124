//! `fetch`: one record as a document of five members, the same in both channels.

use contract::error::{ErrorCode, ReadError};
use contract::handle::RecordHandle;
use contract::numeral;
use contract::upstream::Get;
use rmcp::model::MetaObject;
use serde_json::{Map, Value, json};

use super::document::{self, Asked};
use super::expand::{self, Relation};
use super::{Definition, Running, expanded};
use crate::args::{Arg, Args, Kind};
use crate::call::{Answered, Call};
use crate::evidence::payload::Payload;
use crate::evidence::{envelope, identity};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

/// The server's request id, for hosts: a document has no place for it (FE-03).
const REQUEST_ID_KEY: &str = "dev.pdpp/request_id";

pub(super) static TOOL: Definition = Definition {
    name: "fetch",
    title: "Fetch a record",
    description: include_str!("fetch.md"),
    args: &[
        Arg::new("id", Kind::Text, "As printed").required(),
        Arg::new("fields", Kind::Texts, "Only these top-level fields"),
        Arg::new("expand", Kind::Texts, "Relations to add"),
        Arg::new("expand_limit", Kind::Limits, "Records per relation"),
        Arg::new(
            "connection_id",
            Kind::Text,
            "Where it was shown beside the id",
        ),
    ],
    output: || {
        let text = || json!({"type": "string"});
        json!({"id": text(), "title": text(), "text": text(), "url": text(), "metadata": {"type": "object"}})
    },
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

async fn run(call: Call<'_>, args: Args) -> Outcome {
    let id = args.text("id").unwrap_or_default();
    let handle = RecordHandle::parse(id)
        .and_then(|handle| handle.with_connection(args.text("connection_id")))
        .map_err(ReadError::from)?;
    let relations = args.texts("expand");
    let relations = expand::gate(call, handle.stream(), handle.connection(), &relations).await?;
    let mut question = record_question(&handle);
    args.write(&["fields", "expand", "expand_limit"], &mut question);
    let Answered { body, request_id } = call.get(question).await?;
    about(&handle, &body, request_id.as_deref())?;
    let fields = args.texts("fields");
    let warnings = envelope::warnings(&body);
    let Some(payload) = Payload::of(body, &fields) else {
        return Err(not_a_record(request_id));
    };
    let asked = Asked {
        given: id,
        handle: &handle,
        related: related(call, &payload, &handle, relations).await,
        warnings,
    };
    let document = document::of(&payload, &asked, call.provider_url().as_deref());
    let mut reply = Reply::new(numeral::write(&document), document);
    reply.meta = request_id.map(|id| {
        let mut meta = MetaObject::new();
        meta.0.insert(REQUEST_ID_KEY.to_owned(), json!(id));
        meta
    });
    Ok(reply)
}

/// The related records, each relation with the way to what it leaves out.
async fn related(
    call: Call<'_>,
    payload: &Payload,
    handle: &RecordHandle,
    mut relations: Vec<Relation>,
) -> Map<String, Value> {
    let parent = document::identity(payload, handle);
    let mut written = expanded::of(&payload.expanded, &relations, &parent);
    let connection = parent.handle.as_ref().and_then(RecordHandle::connection);
    let cut = relations
        .iter_mut()
        .filter(|relation| expanded::is_cut(&written, relation));
    expand::look_ahead(call, connection, cut).await;
    expanded::lead_on(&mut written, &payload.expanded, &relations, &parent);
    written
}

/// The question for one record.
pub(crate) fn record_question(handle: &RecordHandle) -> Get {
    Get::v1(["streams", handle.stream(), "records", handle.record()])
        .with("connection_id", handle.connection())
}

/// Refuses an answer that says it is about something else: shown under the id that was asked for, it would be cited as it.
pub(crate) fn about(
    asked: &RecordHandle,
    answer: &Value,
    request_id: Option<&str>,
) -> Result<(), Fault> {
    let Some(other) = identity::contradiction(answer, asked) else {
        return Ok(());
    };
    let message = format!("the resource server answered about another {other} than was asked for");
    let error = ReadError::new(ErrorCode::RsBadResponse, message)
        .with_hint("its answer is left out; search again for the record, or ask another server");
    Err(Fault::from(error).with_answer(Some(200), request_id.map(str::to_owned)))
}

/// The fault for an answer that is some other JSON.
pub(crate) fn not_a_record(request_id: Option<String>) -> Fault {
    let message = "the resource server's answer is not a record";
    let error = ReadError::new(ErrorCode::RsBadResponse, message)
        .with_hint("check that the provider URL is a PDPP server; `pdpp doctor URL` tells more");
    Fault::from(error).with_answer(Some(200), request_id)
}

#[cfg(test)]
pub(super) mod tests;
