//! `pdpp fetch`: one record, all of it that is for people.

use clap::Args;
use contract::handle::RecordHandle;
use contract::record::Record;
use contract::upstream::Get;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::reading::{self, CommandLine, Reading, Source};
use crate::render::{RecordView, WHOLE_CHARS, has_more_related, record};

/// Show one record
///
/// Ids are those that search and query print, see `pdpp help ids`. Very long texts are cut and say how to read on.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp fetch mail-work/messages:m-0001")]
pub(crate) struct Options {
    /// The id of a record
    id: String,
    /// The connection, where the id does not say it
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Only these fields
    #[arg(long, value_name = "A,B", conflicts_with = "view")]
    fields: Vec<String>,
    /// Only the fields of a declared view
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// Relationships to bring along
    #[arg(long, value_name = "A,B")]
    expand: Vec<String>,
    /// How many related records: relationship=number
    #[arg(long, value_name = "A=NUMBER")]
    expand_limit: Vec<String>,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let (handle, _) = reading::handle(&options.id, options.connection_id.as_deref())?;
    let line = CommandLine::new("fetch")
        .argument(&options.id)
        .option("connection-id", options.connection_id.as_ref())
        .options("fields", &options.fields)
        .option("view", options.view.as_ref())
        .options("expand", &options.expand)
        .options("expand-limit", &options.expand_limit);
    let question = line.add_params_to(question(&handle))?;
    let reading = Reading::open(&options.source, "pdpp fetch", line, context)?;
    let style = context.output.style();
    reading.show(question, |one: &Record| {
        let mut one = one.clone();
        // What a server leaves out of a single record, the question said.
        if one.stream.is_empty() {
            handle.stream().clone_into(&mut one.stream);
        }
        one.connection_id = one
            .connection_id
            .or_else(|| handle.connection().map(str::to_owned));
        let cut = has_more_related(&one);
        let view = RecordView {
            line: &reading.line,
            style,
            chars: WHOLE_CHARS,
            keep_lines: true,
            relations: if cut {
                reading.relations(&one)
            } else {
                Vec::new()
            },
            times: reading.times(&one),
        };
        record(&one, &view)
    })
}

fn question(handle: &RecordHandle) -> Get {
    Get::v1(["streams", handle.stream(), "records", handle.record()])
        .with("connection_id", handle.connection())
}
