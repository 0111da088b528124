//! `fetch`: one record as a document of five members, the same in both channels.

use contract::error::{ErrorCode, ReadError};
use contract::handle::RecordHandle;
use contract::upstream::Get;

use super::document::{Document, FetchRequest};
use super::expand::{self, Relation};
use super::expanded::{self, RelationContent};
use super::{Definition, Running};
use crate::answer::{Answered, Payload};
use crate::args::{Arguments as _, ExpandLimits, Names, Schema, arguments};
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::reply::{Reply, ToolResult};
use crate::text::paging;

/// The server's request id, for hosts: a document has no place for it (FE-03).
const REQUEST_ID_KEY: &str = "dev.pdpp/request_id";

arguments! {
    struct FetchArgs {
        id: String = "As printed";
        fields: Option<Names> = "Only these top-level fields";
        expand: Option<Names> = "Relations to add";
        expand_limit: Option<ExpandLimits> = "Records per relation";
        connection_id: Option<String> = "Where it was shown beside the id";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "fetch",
    title: "Fetch a record",
    description: include_str!("fetch.md"),
    input: FetchArgs::schema,
    output: || {
        let texts = ["id", "title", "text", "url"];
        let texts = texts.map(|name| (name, Schema::new("string")));
        let metadata = ("metadata", Schema::new("object"));
        texts.into_iter().chain([metadata]).collect()
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move { run(call, FetchArgs::read(given)?).await })
    },
};

async fn run(call: Call<'_>, args: FetchArgs) -> ToolResult {
    let handle = RecordHandle::parse(&args.id)
        .and_then(|handle| handle.with_connection(args.connection_id.as_deref()))
        .map_err(ReadError::from)?;
    let relations = Names::given(args.expand.as_ref());
    let relations = expand::gate(call, handle.stream(), handle.connection(), &relations).await?;
    let mut question = record_question(&handle);
    args.write(&mut question, &["id", "connection_id"]);
    let answered = call.get(question).await?;
    refuse_another(&handle, &answered)?;
    let warnings = paging::warnings(&answered.warnings());
    let request_id = answered.request_id.clone();
    let fields = Names::given(args.fields.as_ref());
    let Some(payload) = answered.into_payload(&fields) else {
        return Err(not_a_record(request_id));
    };
    let identity = payload.identity(&handle);
    let asked = FetchRequest {
        given: &args.id,
        handle: &handle,
        related: related(call, &payload, &identity, relations).await,
        warnings,
    };
    let provider = call.provider_url();
    let document = Document::new(&payload, &asked, &identity, provider.as_deref());
    let reply = Reply::new(document.json(), &document)?;
    Ok(reply.with_meta(REQUEST_ID_KEY, request_id))
}

/// The related records, each relation with the way to what it leaves out.
async fn related(
    call: Call<'_>,
    payload: &Payload,
    parent: &Identity,
    mut relations: Vec<Relation>,
) -> Vec<RelationContent> {
    if relations.is_empty() {
        return Vec::new();
    }
    let related = payload.related(parent.connection());
    let mut written = expanded::contents(&related, &relations);
    let is_cut = |relation: &&mut Relation| {
        let mut known = written.iter();
        known.any(|one| one.relation == relation.name && one.is_cut())
    };
    let cut = relations.iter_mut().filter(is_cut);
    expand::learn_filters(call, parent.connection(), cut).await;
    for one in written.iter_mut().filter(|one| one.is_cut()) {
        let relation = relations.iter().find(|known| known.name == one.relation);
        let related = related.iter().find(|known| known.relation == one.relation);
        if let (Some(relation), Some(related)) = (relation, related) {
            one.lead_on(related, relation, parent);
        }
    }
    written
}

pub(crate) fn record_question(handle: &RecordHandle) -> Get {
    Get::v1(["streams", handle.stream(), "records", handle.record()])
        .with("connection_id", handle.connection())
}

/// Refuses an answer that says it is about something else: shown under the id that was asked for, it would be cited as it.
pub(crate) fn refuse_another(asked: &RecordHandle, answered: &Answered) -> Result<(), Fault> {
    let Some(other) = answered.contradiction(asked) else {
        return Ok(());
    };
    let message = format!("the resource server answered about another {other} than was asked for");
    let error = ReadError::new(ErrorCode::RsBadResponse, message)
        .with_hint("its answer is left out; search again for the record, or ask another server");
    Err(Fault::from(error).with_answer(Some(200), answered.request_id.clone()))
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
