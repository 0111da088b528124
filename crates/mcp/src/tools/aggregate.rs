//! `aggregate`: one number over the records of a stream, or one per group.

mod groups;

use std::fmt::Write as _;

use contract::aggregate::{Granularity, MetricKind};
use contract::error::{ErrorCode, ReadError};
use contract::segment;
use contract::upstream::Get;

use super::expand::{self, Filters};
use super::paged::{Around, NOTE, PageSize, Shortened};
use super::{Definition, Running};
use crate::answer::{Answered, FieldValue, Figure, Group};
use crate::args::{Arguments as _, Chosen, Filter, Limit, Schema, Whole, arguments};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::reply::{Reply, ToolResult};
use crate::text::lines::Lines;
use crate::text::{paging, plain};
use crate::tool_call::ToolCall;

arguments! {
    struct AggregateArgs {
        stream: String = "";
        metric: Chosen<MetricKind> = "";
        field: Option<String> = "for every metric but count";
        group_by: Option<String> = "field to group by";
        group_by_time: Option<String> = "date field to group by; needs granularity";
        granularity: Option<Chosen<Granularity>> = "";
        time_zone: Option<String> = "IANA name; UTC if absent";
        limit: Option<Limit> = "most groups";
        filter: Option<Filter> = "{field: value} or {field: {gte|gt|lte|lt: value}}";
        connection_id: Option<String> = "if several connections have the stream";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "aggregate",
    title: "Count or sum records",
    description: include_str!("aggregate.md"),
    input: AggregateArgs::schema,
    output: || {
        vec![
            ("data", Schema::new("object")),
            ("provider_url", Schema::new("string")),
        ]
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move { run(call, AggregateArgs::read(given)?).await })
    },
};

async fn run(call: Call<'_>, args: AggregateArgs) -> ToolResult {
    if let Err(error) = segment::guard(&args.stream) {
        let message = format!("the stream name {error}");
        return Err(Fault::refused(ErrorCode::InvalidStream, "stream", message)
            .with_next("call schema to see the streams of this grant"));
    }
    let mut answered = call.get(question(&args, None)).await?;
    let provider = call.provider_url();
    let provider = provider.as_deref();
    let mut shortened = None;
    if let Some(groups) = groups_that_fit(&answered, provider) {
        let sent = answered.group_sizes().len() as u64;
        // A server that fails now has answered before: that answer stands, as far as it fits.
        if let Ok(shorter) = call.get(question(&args, Some(groups))).await {
            answered = shorter;
        }
        answered.truncate_groups(usize::try_from(groups).unwrap_or(usize::MAX));
        shortened = Some(Shortened {
            asked: sent,
            shown: groups,
        });
    }
    let Some(figure) = answered.figure() else {
        let message = "the resource server's answer holds neither a value nor groups";
        let error = ReadError::new(ErrorCode::RsBadResponse, message)
            .with_hint("query_records reads the records themselves");
        return Err(Fault::from(error).with_answer(None, answered.request_id));
    };
    let counted = Counted {
        args: &args,
        figure: &figure,
    };
    let text = match &figure.groups {
        Some(groups) => groups::text(&counted, groups, filters(call, &args).await),
        None => counted.text(),
    };
    let beside = Around {
        page_shortened: shortened,
        provider_url: provider,
        ..Around::default()
    };
    Reply::around(text, answered, &beside)
}

fn question(args: &AggregateArgs, groups: Option<u64>) -> Get {
    let mut question = Get::v1(["streams", args.stream.as_str(), "aggregate"]);
    let mut args = args.clone();
    args.limit = groups.map(Whole).or(args.limit);
    args.write(&mut question, &["stream"]);
    question
}

/// How many groups an answer within its budget has, where this one is larger.
fn groups_that_fit(answered: &Answered, provider: Option<&str>) -> Option<u64> {
    let beside = Around {
        provider_url: provider,
        ..Around::default()
    };
    let whole = answered.structured_size(&beside) + NOTE;
    PageSize::new(None).rows_that_fit(whole, &answered.group_sizes())
}

/// Which filters the grouped field takes: a call that leads on must not be one that is refused.
async fn filters(call: Call<'_>, args: &AggregateArgs) -> Filters {
    match args.group_by.as_ref().or(args.group_by_time.as_ref()) {
        Some(field) => {
            expand::filters(call, &args.stream, args.connection_id.as_deref(), field).await
        }
        None => Filters::default(),
    }
}

struct Counted<'a> {
    args: &'a AggregateArgs,
    figure: &'a Figure<'a>,
}

impl Counted<'_> {
    /// `sum(orders) field=amount`
    fn name(&self) -> String {
        let metric = self.args.metric.0.as_str();
        let stream = label(&self.args.stream);
        match &self.args.field {
            Some(field) => format!("{metric}({stream}) field={}", label(field)),
            None => format!("{metric}({stream})"),
        }
    }

    /// What a reader must know to trust the number, each part with a space before it.
    fn facts(&self) -> String {
        let mut facts = String::new();
        // Writing to a String cannot fail.
        if self.figure.approximate {
            facts.push_str(" approximate=true");
        }
        let has_filter = self.args.filter.is_some();
        if let Some(counted) = self.figure.record_count {
            let which = if has_filter {
                "matching the filter"
            } else {
                "without a filter"
            };
            let _ = write!(facts, " records={counted} {which}");
        } else if has_filter {
            facts.push_str(" filter applied");
        }
        if let Some(connection) = &self.args.connection_id {
            let _ = write!(facts, " connection_id={}", label(connection));
        }
        facts.push_str(&paging::extent(&self.figure.page));
        facts.push_str(&paging::way_on(&self.figure.page));
        facts
    }

    fn text(&self) -> String {
        let value = match self.figure.value {
            Some(value) if value.kind() == "null" => {
                "null (no record has a value there)".to_owned()
            }
            Some(value) => scalar(value),
            None => self
                .figure
                .record_count
                .map_or_else(|| "null".to_owned(), |count| count.to_string()),
        };
        let first = format!("{} = {value};{}", self.name(), self.facts());
        let mut lines = Lines::new(budget::FIGURE_TEXT, first.trim_end_matches(';'));
        let short = "next: query_records with the same stream, filter and connection_id";
        let next = format!("next: {}", self.records(None, false));
        lines.reserve(short.len());
        if let Some(warnings) = paging::page_warnings(&self.figure.page) {
            lines.offer(&format!("warnings: {warnings}"));
        }
        lines.release(short.len());
        if !lines.offer(&next) {
            lines.offer(short);
        }
        lines.finish()
    }

    /// The call that lists the records behind the number, or behind one group of a field.
    fn records(&self, group: Option<(&str, &Group<'_>)>, by_items: bool) -> ToolCall {
        let filter = self.args.filter.clone();
        let group = group.and_then(|(field, group)| Some((field, group.key.scalar()?)));
        let filter = match group {
            Some((field, item)) if by_items => {
                let narrower = filter.clone().unwrap_or_default().containing(field, item);
                narrower.or(filter)
            }
            Some((field, value)) => Some(filter.unwrap_or_default().and(field, value)),
            None => filter,
        };
        self.listing()
            .with_some("filter", filter)
            .with("limit", budget::DEFAULT_LIMIT)
    }

    /// A list of the same records, not filtered yet.
    fn listing(&self) -> ToolCall {
        ToolCall::new("query_records")
            .with("stream", &self.args.stream)
            .with_some("connection_id", self.args.connection_id.as_ref())
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
fn scalar(value: FieldValue<'_>) -> String {
    match value.text() {
        Some(text) => short(text),
        None => plain::cut(&plain::json(&value.json()), budget::LABEL).into_owned(),
    }
}

#[cfg(test)]
mod tests;
