//! `pdpp read`: a part of one long text, and the commands for the parts around it.

use clap::Args;
use contract::error::{ErrorCode, ReadError};
use contract::handle::{Handle, RecordHandle};
use contract::record::FieldWindow;
use contract::upstream::Get;
use contract::window::WindowSelector;
use indicatif::HumanCount;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::reading::{self, CommandLine, Reading, Source};
use crate::render::{Lines as _, window_text};
use crate::style::Style;

/// Read a part of one text field
///
/// From its beginning, from a place counted in characters, or around a text that stands in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp read mail-work/messages:m-0001 body --q budget --before-chars 200"
)]
pub(crate) struct Options {
    #[arg(help = "The id of a record, or a pdpp://field-window/ handle")]
    id: String,
    /// The field; a window handle names its own
    field: Option<String>,
    /// The connection, where the id does not say it
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Where to start, in characters
    #[arg(long, value_name = "NUMBER")]
    offset_chars: Option<usize>,
    /// How many characters: 4096 unless said, at most 16384
    #[arg(long, value_name = "NUMBER")]
    limit_chars: Option<usize>,
    /// Start at the first place where this text stands
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    q: Option<String>,
    /// Characters before that place
    #[arg(long, value_name = "NUMBER")]
    before_chars: Option<usize>,
    /// Characters after it
    #[arg(long, value_name = "NUMBER")]
    after_chars: Option<usize>,
    #[command(flatten)]
    source: Source,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let (record, handle) = reading::handle(&options.id, options.connection_id.as_deref())?;
    let (field, selector) = asked(options, &handle)?;
    let line = CommandLine::new("read")
        .argument(record.to_string())
        .argument(&field)
        .option("connection-id", options.connection_id.as_ref())
        .option("offset-chars", selector.offset_chars)
        .option("limit-chars", selector.limit_chars)
        .option("q", selector.q.as_ref())
        .option("before-chars", selector.before_chars)
        .option("after-chars", selector.after_chars);
    let question = Get::v1([
        "streams",
        record.stream(),
        "records",
        record.record(),
        "field-window",
    ])
    .with("connection_id", record.connection())
    .with("field", Some(&field));
    let question = line.add_params_to(question)?;
    let reading = Reading::open(&options.source, "pdpp read", line, context)?;
    let style = context.output.style();
    reading.show(question, |window| {
        show(window, &record, &reading.line, style)
    })
}

/// The field and the part of it: as the command line says, else as a window handle does.
fn asked(options: &Options, handle: &Handle) -> CommandResult<(String, WindowSelector)> {
    let named = WindowSelector {
        offset_chars: options.offset_chars,
        limit_chars: options.limit_chars,
        cursor: None,
        q: options.q.clone(),
        before_chars: options.before_chars,
        after_chars: options.after_chars,
    };
    match (&options.field, handle) {
        (Some(field), _) => Ok((field.clone(), named)),
        (None, Handle::Window(window)) => {
            let own = named == WindowSelector::default();
            let mut selector = if own {
                window.selector().clone()
            } else {
                named
            };
            // The cursor of a window is an offset; REST knows only that.
            let cursor = selector.cursor.take().and_then(|text| text.parse().ok());
            selector.offset_chars = selector.offset_chars.or(cursor);
            Ok((window.field().to_owned(), selector))
        }
        (None, Handle::Record(_)) => {
            let message = "which field is to be read must be said";
            Err(ReadError::new(ErrorCode::InvalidArguments, message)
                .with_hint("pdpp read ID FIELD; `pdpp fetch ID` shows the fields of the record")
                .into())
        }
    }
}

fn show(answer: &FieldWindow, record: &RecordHandle, line: &CommandLine, style: Style) -> String {
    let window = &answer.window;
    let place = |at: Option<usize>| at?.checked_sub(window.start_chars);
    let found = place(window.match_start_chars).zip(place(window.match_end_chars));
    let mut text = window_text(&window.text, found, style);
    text.push_str("\n\n");
    let (start, end) = (window.start_chars as u64, window.end_chars as u64);
    let all = HumanCount(window.total_chars as u64);
    if window.complete {
        text.push_line(format_args!("All {all} characters."));
    } else {
        let (start, end) = (HumanCount(start), HumanCount(end));
        text.push_line(format_args!("Characters {start} to {end} of {all}."));
    }
    if let Some(cite) = &answer.cite {
        text.push_line(format_args!("Whether it still says so, later:"));
        let check = line.for_record("verify", record).argument(cite);
        text.push_command("  ", &check, style);
    }
    let bare = ["q", "before-chars", "after-chars", "offset-chars"];
    let line = bare
        .iter()
        .fold(line.clone(), |line, name| line.without(name));
    let mut go_on = |what: &str, at: Option<usize>| {
        if let Some(at) = at {
            text.push_line(format_args!("{what}:"));
            text.push_command("  ", &line.with("offset-chars", at), style);
        }
    };
    go_on("Next", window.next_offset_chars);
    go_on("Before", window.previous_offset_chars.filter(|_| start > 0));
    text.push_str("The whole record:\n");
    text.push_command("  ", &line.for_record("fetch", record), style);
    text
}
