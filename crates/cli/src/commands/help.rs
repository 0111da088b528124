//! `pdpp help`: help for a command, and topics that no single option can explain.

mod overview;

use clap::{Args, CommandFactory as _};

pub(crate) use self::overview::overview;
use crate::args::Cli;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::spelling::did_you_mean;
use crate::usage::fitted;

/// Explain a command, or a topic: declarations, ids, filters, grants
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp help filters")]
pub(crate) struct Options {
    /// A command, or a topic: declarations, ids, filters or grants
    about: Vec<String>,
}

/// What needs more room than an option has.
const TOPICS: [(&str, &str); 4] = [
    ("declarations", include_str!("help/declarations.txt")),
    ("ids", include_str!("help/ids.txt")),
    ("filters", include_str!("help/filters.txt")),
    ("grants", include_str!("help/grants.txt")),
];

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    match options.about.as_slice() {
        [] => return output.text(&overview()),
        // What is both stands in the topic; the command has --help.
        [name] => {
            if let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == name) {
                return output.text(text);
            }
        }
        _ => {}
    }
    let mut command = Cli::command();
    command.build();
    for name in &options.about {
        let Some(found) = command.find_subcommand(name).cloned() else {
            return Err(unknown(name, &command));
        };
        command = found;
    }
    let text = command.render_long_help().to_string();
    output.text(&fitted(&text, output.style().width()))
}

fn unknown(name: &str, within: &clap::Command) -> Failure {
    let commands = within.get_subcommands().map(clap::Command::get_name);
    let known: Vec<&str> = commands
        .chain(TOPICS.iter().map(|(topic, _)| *topic))
        .collect();
    let message = format!("there is no command or topic '{}'", visible(name));
    let meant = did_you_mean(name, &known).into_iter();
    let hints = meant.chain(["`pdpp help` lists them".to_owned()]);
    Failure::new(message).hints(hints).with_exit(2)
}
