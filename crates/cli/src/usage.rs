//! The error text for a command line that cannot be parsed: what is wrong, what was probably meant, and which help
//! explains it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, Error};

use crate::args::Cli;
use crate::output::visible;
use crate::render::wrap_hanging;
use crate::spelling::did_you_mean;
use crate::style::Style;

/// The whole text: one error, then hints.
pub(crate) fn error_text(error: &Error, words: impl Iterator<Item = OsString>) -> String {
    let named = NamedCommand::from_args(words);
    let mut lines = vec![error_line(error, &named)];
    let mut hints: Vec<String> = suggestion(error, &named).into_iter().collect();
    let wrong = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let is_word = wrong.is_some_and(|wrong| wrong.starts_with('-') && !wrong.starts_with("--"));
    if named.path == "pdpp search" && is_word {
        hints.push("write -- before words that begin with -".to_owned());
    }
    hints.push(match error.kind() {
        ErrorKind::InvalidSubcommand => format!("`{} --help` lists the commands", named.path),
        _ => format!("`{} --help` explains it", named.path),
    });
    lines.extend(hints.into_iter().map(|hint| format!("hint: {hint}")));
    lines.join("\n")
}

/// The columns a help text takes up at most.
const HELP_COLUMNS: usize = 100;

/// A help text with its lines broken between words, at the end of the screen or before. Examples stay whole.
pub(crate) fn fitted(help: &str, screen: Option<usize>) -> String {
    let columns = screen.unwrap_or(HELP_COLUMNS).min(HELP_COLUMNS);
    let style = Style::new(false).within(Some(columns));
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        // Beside an option stands what it is for.
        let text = line.trim_start();
        let beside = text
            .rfind("  ")
            .filter(|at| *at < 30)
            .map_or(0, |at| at + 2);
        if line.starts_with("Example: ") {
            return line.to_owned();
        }
        format!(
            "{}{}",
            " ".repeat(indent),
            wrap_hanging(text, indent, indent + beside, style)
        )
    };
    help.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The command that was named, as far as there is one.
struct NamedCommand {
    command: Command,
    /// As one would write it.
    path: String,
}

impl NamedCommand {
    fn from_args(words: impl Iterator<Item = OsString>) -> Self {
        let mut command = Cli::command();
        command.build();
        let mut path = "pdpp".to_owned();
        for word in words.skip(1) {
            let found = word.to_str().and_then(|word| command.find_subcommand(word));
            if let Some(found) = found.cloned() {
                path = format!("{path} {}", found.get_name());
                command = found;
            }
        }
        Self { command, path }
    }
}

fn error_line(error: &Error, named: &NamedCommand) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(visible(text)),
        _ => None,
    };
    let path = &named.path;
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let place = match path.as_str() {
                "pdpp" => "there is".to_owned(),
                path => format!("`{path}` has"),
            };
            format!("error: {place} no command '{name}'")
        }
        ErrorKind::UnknownArgument => match text(ContextKind::InvalidArg) {
            Some(option) if option.starts_with('-') => {
                format!("error: `{path}` has no option '{option}'")
            }
            other => format!(
                "error: `{path}` takes no argument '{}' here",
                other.unwrap_or_default()
            ),
        },
        _ => {
            let whole = error.to_string();
            let parts = whole.trim_end().split("\n\n");
            let own = parts.filter(|part| {
                !part.starts_with("  tip:") && !part.starts_with("For more information")
            });
            own.collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// What was probably meant instead.
fn suggestion(error: &Error, named: &NamedCommand) -> Option<String> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    };
    let known: Vec<String> = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let all = named.command.get_subcommands();
            all.map(|one| one.get_name().to_owned()).collect()
        }
        ErrorKind::UnknownArgument => {
            let all = named.command.get_arguments().filter_map(Arg::get_long);
            all.map(|name| format!("--{name}")).collect()
        }
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => known.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let wrong = [
        ContextKind::InvalidSubcommand,
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
    ];
    let wrong = wrong.into_iter().find_map(text)?;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    did_you_mean(&wrong, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_error(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        error_text(&Cli::read(words()).unwrap_err(), words())
    }

    #[test]
    fn help_is_broken_between_words_and_examples_are_not() {
        let long = "word ".repeat(30);
        let text = format!("About {long}\n\n      --an <OPTION>  {long}\nExample: pdpp {long}");
        let fitted = fitted(&text, Some(60));
        let (help, example) = fitted.split_once("Example: ").unwrap();
        assert!(help.lines().all(|line| line.len() <= 60), "{help}");
        assert!(
            help.contains(&format!("\n{}word", " ".repeat(21))),
            "{help}"
        );
        assert_eq!(example.lines().count(), 1);
    }

    #[test]
    fn a_word_from_outside_cannot_steer_the_terminal() {
        assert!(usage_error("pdpp \u{1b}[2J").contains("'\\u{1b}[2J'"));
    }
}
