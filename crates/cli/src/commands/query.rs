//! `pdpp query`: the records of a stream, in order, filtered; or what changed in it.

use std::cell::Cell;

use clap::Args;
use contract::page::Page;
use contract::record::Record;
use contract::upstream::Get;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::reading::{CommandLine, Reading, Source};
use crate::render::{
    LISTED_CHARS, Lines as _, PageEnd, RecordView, has_more_related, one_line, record,
};

/// List the records of a stream, newest first
///
/// Long texts are cut, and more records than fit a page follow; both say with which command. `pdpp schema --stream STREAM`
/// lists the fields and what each of them accepts.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp query messages --filter 'received_at>=2026-03-01' --fields subject,from_name --limit 5"
)]
pub(crate) struct Options {
    /// The stream
    stream: String,
    /// The connection, where several have such a stream
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Records per page: 25 unless said, at most 100
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// Continue where a page ended
    #[arg(long, allow_hyphen_values = true)]
    cursor: Option<String>,
    /// Only these fields
    #[arg(long, value_name = "A,B", conflicts_with = "view")]
    fields: Vec<String>,
    /// Only the fields of a declared view
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// Only where this holds: 'field=value', 'field>=value' (>=, >, <=, <), 'array~=value'; again for more, all must hold
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<String>,
    /// The field that orders the stream, with - for descending
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// asc or desc
    #[arg(long, value_name = "DIRECTION")]
    order: Option<String>,
    /// Count all that match: none, estimated or exact
    #[arg(long, value_name = "HOW")]
    count: Option<String>,
    /// Report the time span of all that match: none or exact
    #[arg(long, value_name = "HOW")]
    window: Option<String>,
    /// What changed since: beginning, or the bookmark of an earlier answer
    #[arg(long, value_name = "BOOKMARK", allow_hyphen_values = true)]
    changes_since: Option<String>,
    /// Relationships to bring along
    #[arg(long, value_name = "A,B")]
    expand: Vec<String>,
    /// How many related records per record: relationship=number
    #[arg(long, value_name = "A=NUMBER")]
    expand_limit: Vec<String>,
    #[command(flatten)]
    source: Source,
}

impl Options {
    fn line(&self) -> CommandLine {
        CommandLine::new("query")
            .argument(&self.stream)
            .option("connection-id", self.connection_id.as_ref())
            .options("fields", &self.fields)
            .option("view", self.view.as_ref())
            .options("filter", &self.filter)
            .option("sort", self.sort.as_ref())
            .option("order", self.order.as_ref())
            .option("count", self.count.as_ref())
            .option("window", self.window.as_ref())
            .options("expand", &self.expand)
            .options("expand-limit", &self.expand_limit)
            .option("limit", self.limit)
            .option("changes-since", self.changes_since.as_ref())
            .option("cursor", self.cursor.as_ref())
    }
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let question = Get::v1(["streams", &options.stream, "records"]);
    let line = options.line();
    let question = line.add_params_to(question)?;
    let reading = Reading::open(&options.source, "pdpp query", line, context)?;
    let style = context.output.style();
    let is_empty = Cell::new(false);
    reading.show(question, |page: &Page<Record>| {
        is_empty.set(page.data.is_empty());
        let cut = page.data.iter().find(|record| has_more_related(record));
        let view = RecordView {
            line: &reading.line,
            style,
            chars: LISTED_CHARS,
            keep_lines: false,
            relations: cut.map(|one| reading.relations(one)).unwrap_or_default(),
            times: page
                .data
                .first()
                .map(|one| reading.times(one))
                .unwrap_or_default(),
        };
        show(page, &view)
    })?;
    if is_empty.get() {
        reading.print_first_steps();
    }
    Ok(())
}

fn show(page: &Page<Record>, view: &RecordView<'_>) -> String {
    let (line, style) = (view.line, view.style);
    let mut text = String::new();
    for one in &page.data {
        text.push_str(&record(one, view));
        text.push('\n');
    }
    let end = PageEnd::of(page, "record", |one| one.connection_id.as_deref());
    text.push_str(&end.lines(line, style));
    let span = page.meta.as_ref().and_then(|meta| meta.window.as_ref());
    let ends = span.and_then(|span| span.earliest_at.as_deref().zip(span.latest_at.as_deref()));
    if let Some((first, last)) = ends {
        let shown = |when: &str| moment::to_local(when).unwrap_or_else(|| one_line(when));
        let (first, last) = (shown(first), shown(last));
        text.push_line(format_args!("All that match are from {first} to {last}."));
    }
    if let Some(bookmark) = page.next_changes_since.as_option() {
        text.push_str("What changes later:\n");
        let later = line.without("cursor").with("changes-since", bookmark);
        text.push_command("  ", &later, style);
    }
    text
}
