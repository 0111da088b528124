//! Blocks of the documents that the program writes itself: its options and its error codes.

use std::env;
use std::fmt::Write as _;
use std::fs;

use clap::{Arg, Command};
use contract::error::ErrorCode;

use super::{commands, program, root, text_of};

/// Ends a block that the program writes.
const END: &str = "<!-- end -->";

/// Holds a block of a document against what it should be, or writes it.
fn check(path: &str, name: &str, wanted: &str) {
    let begin = format!("<!-- {name}: written by `UPDATE=1 cargo test -p pdpp documentation` -->");
    let text = text_of(path);
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let (found, after) = rest.split_once(END)?;
        Some((before, found, after))
    });
    let Some((before, found, after)) = parts else {
        panic!("{path} has no block that begins with\n{begin}\nand ends with\n{END}");
    };
    let wanted = format!("\n{}\n", wanted.trim());
    if found == wanted {
        return;
    }
    assert!(
        env::var_os("UPDATE").is_some(),
        "{path}: the {name} are not those of the program; UPDATE=1 cargo test -p pdpp documentation writes them anew"
    );
    fs::write(
        root().join(path),
        format!("{before}{begin}{wanted}{END}{after}"),
    )
    .unwrap();
}

/// A text in a cell of a table.
fn table_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// An argument as it is written on the command line.
fn spelling(argument: &Arg) -> String {
    let values: Vec<&str> = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .map(|names| names.iter().map(clap::builder::Str::as_str).collect())
        .unwrap_or_default();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let mut text = names.join(", ");
    for value in values {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(value);
    }
    let again = argument
        .get_num_args()
        .is_some_and(|times| times.max_values() > 1);
    if again {
        text.push('…');
    }
    text
}

/// What an argument is for, with its choices and default.
fn meaning(argument: &Arg) -> String {
    let mut text = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if !choices.is_empty() {
        let _ = write!(text, ": {}", choices.join(", "));
    }
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if takes && !defaults.is_empty() {
        let _ = write!(text, " [default: {}]", defaults.join(", "));
    }
    text
}

/// A table of these arguments, positions first.
fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut arguments: Vec<&Arg> = arguments.filter(|one| !one.is_hide_set()).collect();
    arguments.sort_by_key(|argument| !argument.is_positional());
    if arguments.is_empty() {
        return String::new();
    }
    let mut text = "\n| Argument | Means |\n|---|---|\n".to_owned();
    for argument in arguments {
        let (name, meaning) = (
            table_cell(&spelling(argument)),
            table_cell(&meaning(argument)),
        );
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    text
}

fn options() -> String {
    let program = program();
    let is_help = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
    let globals = program.get_arguments().filter(is_help);
    let mut text = "Every command takes, before or after its name:\n".to_owned();
    text.push_str(&table(globals));
    text.push_str(
        "\n`-h` and `--help` explain a command, `-V` and `--version` name the release.\n",
    );
    for (words, command) in commands() {
        let own = |argument: &&Arg| is_help(argument) && !argument.is_global_set();
        let about = command.get_about().map(ToString::to_string);
        let _ = writeln!(text, "\n### `{words}`\n\n{}.", about.unwrap_or_default());
        text.push_str(&table(command.get_arguments().filter(own)));
        let _ = write_subcommands(&mut text, &command);
    }
    text
}

fn write_subcommands(text: &mut String, command: &Command) -> std::fmt::Result {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|one| format!("`{}`", one.get_name()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nSubcommands: {}.", names.join(", "))
}

fn error_codes() -> String {
    let mut text =
        "| Code | Status | `type` | Exit code | Means |\n|---|---|---|---|---|\n".to_owned();
    for code in ErrorCode::ALL {
        let (status, kind, exit) = (code.http_status(), code.error_type(), code.exit_code());
        let _ = writeln!(
            text,
            "| `{code}` | {status} | `{kind}` | {exit} | {} |",
            code.meaning()
        );
    }
    text
}

#[test]
fn the_options_of_every_command_are_documented_as_they_are() {
    let options = options();
    for (words, _) in commands() {
        assert!(options.contains(&format!("### `{words}`\n")), "{words}");
    }
    check("docs/cli.md", "options", &options);
}

#[test]
fn the_error_codes_are_documented_as_they_are() {
    check("docs/api.md", "error codes", &error_codes());
}
