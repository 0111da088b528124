//! `aggregate`: one number over the records of a stream, or one per group.

mod groups;

use std::fmt::Write as _;

use contract::error::{ErrorCode, ReadError};
use contract::numeral;
use contract::segment;
use contract::upstream::Get;
use serde_json::{Map, Value, json};

use super::expand::{self, Filters};
use super::{Definition, Running};
use crate::args::{Arg, Args, Kind};
use crate::budget;
use crate::call::{Answered, Call};
use crate::evidence::envelope::{self, Paging};
use crate::evidence::lines::Lines;
use crate::evidence::{oversize, plain};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

pub(super) static TOOL: Definition = Definition {
    name: "aggregate",
    title: "Count or sum records",
    description: include_str!("aggregate.md"),
    args: &[
        Arg::new("stream", Kind::Text, "").required(),
        Arg::new(
            "metric",
            Kind::Choice(&["count", "sum", "min", "max", "count_distinct"]),
            "",
        )
        .required(),
        Arg::new("field", Kind::Text, "for every metric but count"),
        Arg::new("group_by", Kind::Text, "field to group by"),
        Arg::new(
            "group_by_time",
            Kind::Text,
            "date field to group by; needs granularity",
        ),
        Arg::new(
            "granularity",
            Kind::Choice(&["minute", "hour", "day", "week", "month", "quarter", "year"]),
            "",
        ),
        Arg::new("time_zone", Kind::Text, "IANA name; UTC if absent"),
        Arg::new(
            "limit",
            Kind::Whole {
                least: 1,
                most: budget::MAX_LIMIT,
            },
            "most groups",
        ),
        Arg::new(
            "filter",
            Kind::Filter,
            "{field: value} or {field: {gte|gt|lte|lt: value}}",
        ),
        Arg::new(
            "connection_id",
            Kind::Text,
            "if several connections have the stream",
        ),
    ],
    output: || json!({"data": {"type": "object"}, "provider_url": {"type": "string"}}),
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

async fn run(call: Call<'_>, args: Args) -> Outcome {
    let stream = args.text("stream").unwrap_or_default();
    if let Err(error) = segment::guard(stream) {
        let message = format!("the stream name {error}");
        return Err(Fault::refused(ErrorCode::InvalidStream, "stream", message)
            .with_next("call schema to see the streams of this grant"));
    }
    let mut question = Get::v1(["streams", stream, "aggregate"]);
    let names: Vec<&str> = TOOL.args.iter().map(|arg| arg.name).collect();
    let forwarded: Vec<&str> = names.into_iter().filter(|name| *name != "stream").collect();
    args.write(&forwarded, &mut question);
    let Answered { body, request_id } = call.get(question).await?;
    let Some(figure) = Figure::of(&args, &body) else {
        let message = "the resource server's answer holds neither a value nor groups";
        let error = ReadError::new(ErrorCode::RsBadResponse, message)
            .with_hint("query_records reads the records themselves");
        return Err(Fault::from(error).with_answer(None, request_id));
    };
    let text = match figure.body.get("groups").and_then(Value::as_array) {
        Some(groups) => groups::text(&figure, groups, filters(call, &args).await),
        None => figure.text(),
    };
    let data = bounded(body);
    let structured =
        json!({"data": data, "provider_url": call.provider_url(), "request_id": request_id});
    Ok(Reply::new(text, structured))
}

/// Which filters the grouped field takes: a call that leads on must not be one that is refused.
async fn filters(call: Call<'_>, args: &Args) -> Filters {
    let grouped = args.text("group_by").or(args.text("group_by_time"));
    let place = (
        args.text("stream").unwrap_or_default(),
        args.text("connection_id"),
    );
    match grouped {
        Some(field) => expand::filters(call, place, field).await,
        None => Filters::default(),
    }
}

/// The answer as it came, unless a server sends more groups than a result may hold.
fn bounded(mut body: Value) -> Value {
    if oversize::size(&body) <= budget::RESULT - 2 * budget::GROUPS_TEXT {
        return body;
    }
    for place in ["", "/data"] {
        if let Some(Value::Object(figure)) = body.pointer_mut(place)
            && let Some(Value::Array(groups)) = figure.get_mut("groups")
        {
            let most = usize::try_from(budget::MAX_LIMIT).unwrap_or(usize::MAX);
            let omitted = groups.len().saturating_sub(most);
            groups.truncate(most);
            figure.insert("groups_omitted".to_owned(), json!(omitted));
        }
    }
    body
}

/// What was asked and what came.
struct Figure<'a> {
    args: &'a Args,
    /// The answer without the `data` some servers wrap it in.
    body: &'a Value,
    /// The whole answer, for what stands around the figure.
    envelope: &'a Value,
}

impl<'a> Figure<'a> {
    fn of(args: &'a Args, envelope: &'a Value) -> Option<Self> {
        let tells = |body: &Value| {
            let members = ["value", "groups", "filtered_record_count"];
            members.iter().any(|name| body.get(name).is_some())
        };
        let body = [Some(envelope), envelope.get("data")]
            .into_iter()
            .flatten()
            .find(|body| tells(body))?;
        Some(Self {
            args,
            body,
            envelope,
        })
    }

    /// `sum(orders) field=amount`
    fn name(&self) -> String {
        let metric = self.args.text("metric").unwrap_or_default();
        let stream = label(self.args.text("stream").unwrap_or_default());
        match self.args.text("field") {
            Some(field) => format!("{metric}({stream}) field={}", label(field)),
            None => format!("{metric}({stream})"),
        }
    }

    fn whole(&self, name: &str) -> Option<u64> {
        self.body.get(name)?.as_u64()
    }

    /// What a reader must know to trust the number, each part with a space before it.
    fn facts(&self) -> String {
        let mut facts = String::new();
        // Writing to a String cannot fail.
        if self.body.get("approximate") == Some(&Value::Bool(true)) {
            facts.push_str(" approximate=true");
        }
        if let Some(counted) = self.whole("filtered_record_count") {
            let which = if self.args.has("filter") {
                "matching the filter"
            } else {
                "without a filter"
            };
            let _ = write!(facts, " records={counted} {which}");
        } else if self.args.has("filter") {
            facts.push_str(" filter applied");
        }
        if let Some(connection) = self.args.text("connection_id") {
            let _ = write!(facts, " connection_id={}", label(connection));
        }
        facts.push_str(&Paging::of(self.envelope).written());
        facts
    }

    /// The text of one number.
    fn text(&self) -> String {
        let value = match self.body.get("value") {
            Some(Value::Null) => "null (no record has a value there)".to_owned(),
            Some(value) => scalar(value),
            None => self
                .whole("filtered_record_count")
                .map_or_else(|| "null".to_owned(), |count| count.to_string()),
        };
        let first = format!("{} = {value};{}", self.name(), self.facts());
        let mut lines = Lines::new(budget::FIGURE_TEXT, first.trim_end_matches(';'));
        let short = "next: query_records with the same stream, filter and connection_id";
        let next = format!("next: {}", self.records(None));
        lines.reserve(short.len());
        if let Some(warnings) = envelope::warnings(self.envelope) {
            lines.offer(&format!("warnings: {warnings}"));
        }
        lines.release(short.len());
        if !lines.offer(&next) {
            lines.offer(short);
        }
        lines.finish()
    }

    /// The call that lists the records behind the number, or behind one group of it.
    fn records(&self, group: Option<(&str, &Value)>) -> String {
        let mut args = Map::new();
        for name in ["stream", "connection_id", "filter"] {
            if let Some(value) = self.args.given().get(name) {
                args.insert(name.to_owned(), value.clone());
            }
        }
        if let Some((field, key)) = group {
            let filter = args.entry("filter").or_insert_with(|| json!({}));
            // Of a number in JSON an agent's host may keep as little as a value does.
            let written = numeral::digits(key);
            filter[field] = written.map_or_else(|| key.clone(), |digits| json!(digits));
        }
        args.insert("limit".to_owned(), json!(budget::DEFAULT_LIMIT));
        format!("query_records {}", plain::json(&Value::Object(args)))
    }
}

/// A name on our own lines: whole where it is short, else cut and quoted.
fn label(text: &str) -> String {
    let whole = plain::token(text);
    if whole.len() <= budget::LABEL {
        whole.into_owned()
    } else {
        short(text)
    }
}

/// A text in quotes that stays short when its characters have to be escaped.
fn short(text: &str) -> String {
    let mut room = budget::LABEL;
    loop {
        let written = plain::quoted(text, room);
        if written.len() <= budget::LABEL + 2 || room < 8 {
            return written;
        }
        room /= 2;
    }
}

/// A value or key: numbers as they are, texts in quotes.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => short(text),
        Value::Array(_) | Value::Object(_) => {
            plain::cut(&plain::json(value), budget::LABEL).into_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
