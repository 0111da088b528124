//! `pdpp verify`: whether what was quoted from a record still stands there.

use clap::Args;
use contract::citation::{CitationCheck, CitationStatus};
use contract::upstream::Get;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::output::visible;
use crate::reading::{self, CommandLine, Reading, Source};
use crate::render::{Lines as _, window_text};
use crate::style::Style;

/// Check what was quoted from a record
///
/// Every excerpt and window has a citation, its `cite`. It tells, also years later, whether the record says this now, said it
/// once, or is gone. The owner can check what any application was shown; an application only what it was shown itself.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp verify mail-work/messages:m-0001 ABCDEFGHIJKLMNOPQRS")]
pub(crate) struct Options {
    #[arg(help = "The id of the record")]
    id: String,
    /// The citation
    #[arg(value_name = "CITE", allow_hyphen_values = true)]
    cite: String,
    /// The connection, where the id does not say it
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// The field, where it is known
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let (record, _) = reading::handle(&options.id, options.connection_id.as_deref())?;
    let line = CommandLine::new("verify")
        .argument(record.to_string())
        .argument(&options.cite)
        .option("connection-id", options.connection_id.as_ref())
        .option("field", options.field.as_ref());
    let path = [
        "streams",
        record.stream(),
        "records",
        record.record(),
        "verify",
    ];
    let question = Get::v1(path)
        .with("connection_id", record.connection())
        .with("cite", Some(&options.cite));
    let question = line.add_params_to(question)?;
    let reading = Reading::open(&options.source, "pdpp verify", line, context)?;
    let style = context.output.style();
    let fetch = reading.line.for_record("fetch", &record);
    reading.show(question, |check| show(check, &fetch, style))
}

fn show(check: &CitationCheck, fetch: &CommandLine, style: Style) -> String {
    let mut text = String::new();
    text.push_line(format_args!(
        "{}: {}",
        check.status.as_str(),
        check.status.words()
    ));
    if let Some(window) = &check.window {
        let field = visible(check.field_path.as_deref().unwrap_or_default());
        let (start, end) = (window.start_chars, window.end_chars);
        text.push_line(format_args!(
            "\nQuoted from {field}, characters {start} to {end}:\n"
        ));
        text.push_str(&window_text(&window.text, None, style));
        text.push('\n');
    }
    if matches!(
        check.status,
        CitationStatus::Current | CitationStatus::Changed
    ) {
        text.push_str("\nThe record as it is:\n");
        text.push_command("  ", fetch, style);
    }
    text
}
