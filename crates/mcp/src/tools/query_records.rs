//! `query_records`: the records of one stream, page by page.
//!
//! The server's page is kept as it is, but for two things: with `fields`, whatever was not asked for is taken out, also
//! when the server did not; and a page too large for one answer gets previews in place of its largest values.

mod project;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde_json::{Map, Value, json};

use super::expand::{self, Relation, WayOn};
use super::{Definition, Running, expanded};
use crate::args::{Arg, Args, Kind};
use crate::budget;
use crate::call::{Answered, Call};
use crate::evidence::envelope;
use crate::evidence::identity::Identity;
use crate::evidence::{ladder, oversize, plain};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

pub(super) static TOOL: Definition = Definition {
    name: "query_records",
    title: "List records",
    description: include_str!("query_records.md"),
    args: &[
        Arg::new("stream", Kind::Text, "").required(),
        Arg::new(
            "connection_id",
            Kind::Text,
            "Needed if several have the stream.",
        ),
        Arg::new(
            "filter",
            Kind::Filter,
            "{field: value} or {field: {gte|gt|lte|lt: value}}.",
        ),
        Arg::new("fields", Kind::Texts, "Only these, to keep answers small."),
        Arg::new("view", Kind::Text, "A named set, instead of fields."),
        Arg::new(
            "sort",
            Kind::Text,
            "A sortable field; -field for newest first.",
        ),
        Arg::new("order", Kind::Text, "asc or desc, where sort has no sign."),
        Arg::new(
            "limit",
            Kind::Whole {
                least: 1,
                most: budget::MAX_LIMIT,
            },
            "Default 10.",
        ),
        Arg::new("cursor", Kind::Text, "A next_cursor."),
        Arg::new(
            "count",
            Kind::Choice(&["none", "estimated", "exact"]),
            "Of all that match.",
        ),
        Arg::new("expand", Kind::Texts, "Relations to add."),
        Arg::new("expand_limit", Kind::Limits, "{relation: number}."),
        Arg::new(
            "changes_since",
            Kind::Text,
            "\"beginning\" or a next_changes_since.",
        ),
    ],
    output: || {
        json!({
            "data": super::one_of(&["object", "array"]),
            "content_ladder": {"type": "object"},
            "provider_url": {"type": "string"}
        })
    },
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

/// Records the ladder lists; the others are in the envelope like them.
const RUNGS: usize = 10;

/// What was asked for, as far as reading the answer needs it.
struct Asked<'a> {
    args: &'a Args,
    stream: &'a str,
    connection: Option<&'a str>,
    /// The relations to add, as the schema tells of them.
    relations: Vec<Relation>,
}

impl Asked<'_> {
    fn identity(&self, record: &Value) -> Option<Identity> {
        Identity::of_record(record, self.stream, self.connection)
    }

    /// The relations of a record that hold more than was sent, each with how many were and the way on.
    fn cut_relations(&self, record: &Value) -> Vec<(&Relation, usize, WayOn)> {
        let identity = self.identity(record);
        let cut = self.relations.iter().filter_map(|relation| {
            let related = record.get("expanded")?.get(&relation.name)?;
            let entries = envelope::records(related);
            let first = entries.first().unwrap_or(&Value::Null);
            expanded::has_more(related).then(|| {
                let way_on = match &identity {
                    Some(identity) => relation.way_on(identity, first, entries.len()),
                    None => WayOn::None("no call names this record, so none shows more"),
                };
                (relation, entries.len(), way_on)
            })
        });
        cut.collect()
    }
}

async fn run(call: Call<'_>, args: Args) -> Outcome {
    let stream = args.text("stream").unwrap_or_default();
    if let Err(why) = contract::segment::guard(stream) {
        let shown = plain::quoted(stream, budget::LABEL);
        let message = format!("the stream {shown} {why}");
        return Err(Fault::refused(ErrorCode::InvalidStream, "stream", message)
            .with_next("call schema to see the streams of this grant"));
    }
    args.refuse_empty(&["fields", "expand"])?;
    let connection = args.text("connection_id");
    let relations = expand::gate(call, stream, connection, &args.texts("expand")).await?;
    let mut asked = Asked {
        args: &args,
        stream,
        connection,
        relations,
    };
    let answered = call.get(question(&asked)).await?;
    look_ahead(call, &mut asked, &answered.body).await;
    Ok(reply(call.provider_url().as_deref(), &asked, answered))
}

/// Learns how the relations that hold more than was sent are read on.
async fn look_ahead(call: Call<'_>, asked: &mut Asked<'_>, body: &Value) {
    let records = envelope::records(body);
    let is_cut = |relation: &&mut Relation| {
        let related = |record: &Value| {
            let related = record.get("expanded")?.get(&relation.name)?;
            Some(expanded::has_more(related))
        };
        records.iter().any(|record| related(record) == Some(true))
    };
    let cut = asked.relations.iter_mut().filter(is_cut);
    expand::look_ahead(call, asked.connection, cut).await;
}

fn question(asked: &Asked<'_>) -> Get {
    let mut question = Get::v1(["streams", asked.stream, "records"]);
    let names = [
        "connection_id",
        "filter",
        "fields",
        "view",
        "sort",
        "order",
        "limit",
        "cursor",
        "count",
        "expand",
        "expand_limit",
    ];
    asked.args.write(&names, &mut question);
    // A cursor goes on with the page it came from. Beside a bookmark some servers pass over it and begin anew.
    if !asked.args.has("cursor") {
        asked.args.write(&["changes_since"], &mut question);
    }
    if !asked.args.has("limit") {
        question.push("limit", budget::DEFAULT_LIMIT.to_string());
    }
    question
}

fn reply(provider: Option<&str>, asked: &Asked<'_>, answered: Answered) -> Reply {
    let Answered {
        mut body,
        request_id,
    } = answered;
    drop_window_uris(&mut body);
    if asked.args.has("fields") {
        let fields = asked.args.texts("fields");
        for record in envelope::records_mut(&mut body) {
            project::narrow(record, &fields);
        }
    }
    let text = text::write(asked, &body);
    let mut structured = json!({"data": null});
    if let Some(ladder) = rungs(asked, envelope::records(&body)) {
        structured["content_ladder"] = ladder;
    }
    structured["provider_url"] = json!(provider);
    structured["request_id"] = json!(request_id);
    structured["data"] = body;
    oversize::fit(&mut structured, &text, |structured, threshold| {
        for record in envelope::records_mut(&mut structured["data"]) {
            shrink(record, asked, threshold);
        }
    });
    Reply::new(text, structured)
}

/// Around the payloads only: what people wrote is not rewritten.
fn drop_window_uris(body: &mut Value) {
    for record in envelope::records_mut(body) {
        let has_envelope = record.get("data").is_some_and(Value::is_object);
        let Value::Object(members) = record else {
            continue;
        };
        if has_envelope {
            members.retain(|_, value| !envelope::is_window_uri(value));
            let around = members
                .iter_mut()
                .filter(|(name, _)| !matches!(name.as_str(), "data" | "expanded"));
            around.for_each(|(_, value)| envelope::drop_window_uris(value));
        }
    }
    if let Value::Object(members) = body {
        members.retain(|_, value| !envelope::is_window_uri(value));
    }
}

/// The payload of a record: its `data`, or the record itself where a server has no envelope.
fn payload(record: &Value) -> Option<&Map<String, Value>> {
    match record.get("data") {
        Some(Value::Object(data)) => Some(data),
        _ => record.as_object(),
    }
}

fn rungs(asked: &Asked<'_>, records: &[Value]) -> Option<Value> {
    let listed: Vec<Value> = records
        .iter()
        .take(RUNGS)
        .filter(|record| record.get("deleted") != Some(&Value::Bool(true)))
        .filter_map(|record| {
            let members = own_members(record)?;
            let mut rung = ladder::record(&asked.identity(record)?, &members)?;
            for (relation, _, way_on) in asked.cut_relations(record) {
                let next = way_on.told();
                rung["expanded"][&relation.name] = json!({"has_more": true, "next": next});
            }
            Some(rung)
        })
        .collect();
    if listed.is_empty() {
        return None;
    }
    let mut ladder = ladder::ladder("record_set", listed);
    if records.len() > RUNGS {
        ladder["records_not_listed"] = json!(records.len() - RUNGS);
    }
    Some(ladder)
}

/// The payload without the identity that a flat record mixes into it.
fn own_members(record: &Value) -> Option<Cow<'_, Map<String, Value>>> {
    let members = payload(record)?;
    if record.get("data").is_some_and(Value::is_object) {
        return Some(Cow::Borrowed(members));
    }
    let own = members
        .iter()
        .filter(|(name, _)| !project::is_operational(name));
    let own = own.map(|(name, value)| (name.clone(), value.clone()));
    Some(Cow::Owned(own.collect()))
}

fn shrink(record: &mut Value, asked: &Asked<'_>, threshold: usize) {
    let identity = asked.identity(record);
    let whole = identity
        .as_ref()
        .map(|identity| ladder::call("fetch", identity.args()));
    if let Some(Value::Object(data)) = record.get_mut("data") {
        if threshold == oversize::WHOLE {
            let value = Value::Object(std::mem::take(data));
            record["data"] = oversize::replaced(&value, whole);
            return;
        }
        oversize::shrink_payload(data, identity.as_ref(), threshold);
    }
    // Children, and the members of a flat record.
    if let Value::Object(members) = record {
        for (_, member) in members.iter_mut().filter(|(name, _)| *name != "data") {
            oversize::shrink_texts(member, whole.as_ref(), threshold.max(oversize::SMALL_TEXT));
        }
    }
}
