//! `pdpp aggregate`: one figure over all records of a stream, or one per group.

use clap::Args;
use contract::aggregate::{Aggregation, Group};
use contract::upstream::Get;
use indicatif::HumanCount;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::reading::{CommandLine, Reading, Source};
use crate::render::{Lines as _, columns, short_value};
use crate::style::Style;

/// The most groups a server gives.
const MOST_GROUPS: u32 = 100;

/// Compute one figure over a stream, or one per group
///
/// Figures are computed over every record that matches. `pdpp schema --stream STREAM` says which fields can be summed,
/// compared and grouped by.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp aggregate messages count --group-by-time received_at --granularity month"
)]
pub(crate) struct Options {
    /// The stream
    stream: String,
    #[arg(help = "count, sum, min, max or count_distinct")]
    metric: String,
    /// The field, for all but count
    #[arg(long)]
    field: Option<String>,
    /// One figure per value of this field
    #[arg(long, value_name = "FIELD")]
    group_by: Option<String>,
    /// One figure per calendar unit of this field
    #[arg(long, value_name = "FIELD")]
    group_by_time: Option<String>,
    /// The calendar unit: minute, hour, day, week, month, quarter or year
    #[arg(long, value_name = "UNIT")]
    granularity: Option<String>,
    /// The time zone that cuts the units; UTC unless said
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// How many groups: 10 unless said, at most 100
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// Only where this holds: 'field=value', 'field>=value' (>=, >, <=, <), 'array~=value'; again for more, all must hold
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<String>,
    /// The connection, where several have such a stream
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    #[command(flatten)]
    source: Source,
}

impl Options {
    fn line(&self) -> CommandLine {
        CommandLine::new("aggregate")
            .argument(&self.stream)
            .argument(&self.metric)
            .option("field", self.field.as_ref())
            .option("group-by", self.group_by.as_ref())
            .option("group-by-time", self.group_by_time.as_ref())
            .option("granularity", self.granularity.as_ref())
            .option("time-zone", self.time_zone.as_ref())
            .options("filter", &self.filter)
            .option("connection-id", self.connection_id.as_ref())
            .option("limit", self.limit)
    }
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let question = Get::v1(["streams", &options.stream, "aggregate"]);
    let question = question.with("metric", Some(&options.metric));
    let line = options.line();
    let question = line.add_params_to(question)?;
    let reading = Reading::open(&options.source, "pdpp aggregate", line, context)?;
    let style = context.output.style();
    reading.show(question, |answer| show(answer, &reading.line, style))
}

fn show(answer: &Aggregation, line: &CommandLine, style: Style) -> String {
    let mut text = match (&answer.groups, &answer.value) {
        (Some(groups), _) => table(groups, answer, style),
        (None, Some(value)) => format!("{}\n", short_value(value)),
        (None, None) => "no figure\n".to_owned(),
    };
    if answer.approximate == Some(true) {
        text.push_str("The server calls this approximate.\n");
    }
    if let Some(others) = answer.other_count.filter(|others| *others > 0) {
        let others = HumanCount(others);
        let limit = answer.limit.unwrap_or(10);
        if limit < MOST_GROUPS {
            let more = (limit * 2).min(MOST_GROUPS);
            text.push_line(format_args!(
                "\nRecords in groups that are not shown: {others}; more groups:"
            ));
            text.push_command("  ", &line.with("limit", more), style);
        } else {
            text.push_line(format_args!(
                "\nRecords in groups that are not shown: {others}; narrow them with --filter."
            ));
        }
    }
    text
}

fn table(groups: &[Group], answer: &Aggregation, style: Style) -> String {
    if groups.is_empty() {
        return "no groups: no record matches\n".to_owned();
    }
    let by = answer
        .group_by
        .as_option()
        .or(answer.group_by_time.as_option());
    let by = by.map_or_else(|| "GROUP".to_owned(), |name| name.to_uppercase());
    let with_value = groups.iter().any(|group| group.value.is_some());
    let figure = if with_value {
        answer.metric.to_uppercase()
    } else {
        String::new()
    };
    let mut rows = vec![[by, "COUNT".to_owned(), figure]];
    let shown = |group: &Group| {
        let value = group.value.as_deref().map(short_value).unwrap_or_default();
        [short_value(&group.key), group.count.to_string(), value]
    };
    rows.extend(groups.iter().map(shown));
    columns(&rows, 0, style)
}
