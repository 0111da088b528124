//! `pdpp help`: help for a command, and topics that no single option can explain.

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;
use crate::reading::nearest;

/// Explain a command, or a topic: ids, filters, grants
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp help filters")]
pub(crate) struct Options {
    /// A command, or ids, filters or grants
    about: Vec<String>,
}

const IDS: &str = "\
Every record has an id, and every command that shows records prints it:

  mail-work/messages:m-0001     connection, stream and record key
  messages:m-0001               without the connection, where only one has the stream
  pdpp://record/eyJ2Ijox...     the same for keys that hold / or other marks

`pdpp fetch ID` shows the record, `pdpp read ID FIELD` a part of one long text.
An id of the second form with several such connections is refused with the commands to choose from;
--connection-id names the connection beside an id that does not say it.

With --fields only the payload is narrowed. These stay, whatever is asked: id, stream,
connection_id, connector_key, display_name, emitted_at.
";

const FILTERS: &str = "\
--filter narrows `query`, `aggregate` and `search` (there with exactly one stream in --streams).
Several filters must all hold. Quote them: < and > mean something to the shell.

  --filter folder=inbox                       exactly this value
  --filter 'received_at>=2026-03-01'          from then on; a date is its midnight in UTC
  --filter 'received_at<2026-04-01T00:00:00+02:00'
  --filter 'size_bytes>1000'

`pdpp schema --stream STREAM` lists which fields take = and which take >=, >, <= and <.
A missing or null value matches no filter.
";

const GRANTS: &str = "\
A grant says what one client may read: connections, streams, fields, time. Nothing else is visible
to it, neither in answers nor in counts nor in errors.

  pdpp grant create --client NAME --connection ID     issue one at the terminal
  pdpp grants                                         what was granted, and when it was last used
  pdpp grant show ID                                  what it has been used for
  pdpp query STREAM --grant ID                        look through its eyes, with any read
  pdpp grant revoke ID                                end it, from the next request on

What clients read is noted in the disclosure log; what you look at with --grant is not.
";

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let topics = [("ids", IDS), ("filters", FILTERS), ("grants", GRANTS)];
    let output = context.output;
    if let [name] = options.about.as_slice()
        && let Some((_, text)) = topics.iter().find(|(topic, _)| topic == name)
    {
        return output.data(text.trim_end());
    }
    let mut command = Cli::command();
    command.build();
    for name in &options.about {
        let known: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let known: Vec<String> = known
            .into_iter()
            .chain(topics.map(|(topic, _)| topic))
            .map(str::to_owned)
            .collect();
        let Some(found) = command.find_subcommand(name).cloned() else {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message = format!("there is no command or topic '{}'", visible(name));
            let failure = Failure::coded(2, message, "`pdpp help` lists them");
            return Err(match nearest(name, &known) {
                Some(near) => failure.hint(format!("did you mean '{near}'?")),
                None => failure,
            });
        };
        command = found;
    }
    let text = command.render_long_help().to_string();
    output.data(text.trim_end())
}
