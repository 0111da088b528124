//! The first help one sees: first steps, then every command in the order of use.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::TOPICS;
use crate::args::Cli;

/// From nothing to an agent that reads, and the end of it.
const FIRST_STEPS: &[(&str, &str)] = &[
    (
        "pdpp serve --demo",
        "look around first, in an invented life",
    ),
    (
        "pdpp help declarations",
        "how to say what your records look like",
    ),
    ("pdpp declare notes.json", "say it"),
    (
        "pdpp connections add notes --name 'My notes'",
        "one account of that source",
    ),
    ("pdpp import notes.jsonl", "bring its records in"),
    (
        "pdpp search 'garden plan'",
        "find them; each hit says how to read on",
    ),
    ("pdpp serve", "let agents ask; open the link it prints"),
    ("pdpp setup claude-code", "how to connect one"),
    ("pdpp grants", "what you granted, and what for"),
    ("pdpp grant revoke ID", "the end of it, at once"),
];

/// Every command, in the order of use.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Bring data in",
        &["declare", "connections", "import", "collect"],
    ),
    (
        "Read it",
        &[
            "schema",
            "search",
            "query",
            "aggregate",
            "fetch",
            "read",
            "verify",
        ],
    ),
    (
        "Let agents read",
        &["serve", "setup", "grant", "grants", "connect", "mcp"],
    ),
    (
        "Take data out",
        &["export", "blob", "backup", "restore", "move"],
    ),
    (
        "Look after it",
        &[
            "doctor",
            "sign-in",
            "owner-password",
            "owner-token",
            "index",
            "model",
            "nodes",
            "migrate",
            "delete",
            "purge",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// What `pdpp --help` and `pdpp help` print.
pub(crate) fn overview() -> String {
    let command = Cli::command();
    let about = |command: &Command| command.get_about().map(ToString::to_string);
    let mut text = about(&command).unwrap_or_default();
    text.push_str("\n\nUsage: pdpp COMMAND [OPTIONS]\n");
    section(&mut text, "First steps", FIRST_STEPS.iter().copied());
    for (title, names) in GROUPS {
        let commands = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let commands: Vec<(&str, String)> = commands
            .map(|one| (one.get_name(), about(one).unwrap_or_default()))
            .collect();
        let rows = commands.iter().map(|(name, about)| (*name, about.as_str()));
        section(&mut text, title, rows);
    }
    let options = options(&command);
    let rows = options
        .iter()
        .map(|(name, help)| (name.as_str(), help.as_str()));
    section(&mut text, "Options of every command", rows);
    let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\nMore: pdpp COMMAND --help; pdpp help TOPIC, with TOPIC one of {}",
        topics.join(", ")
    );
    text
}

fn section<'a>(text: &mut String, title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let rows: Vec<(&str, &str)> = rows.collect();
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let _ = writeln!(text, "\n{title}:");
    for (name, about) in rows {
        let _ = writeln!(text, "  {name:widest$}  {about}");
    }
}

fn options(command: &Command) -> Vec<(String, String)> {
    let shown = |option: &Arg| {
        let long = option.get_long()?;
        let short = option.get_short().map(|short| format!("-{short}, "));
        let value = option
            .get_value_names()
            .filter(|_| option.get_action().takes_values());
        let value = value.and_then(<[_]>::first).map(|name| format!(" {name}"));
        let name = format!(
            "{}--{long}{}",
            short.as_deref().unwrap_or("    "),
            value.unwrap_or_default()
        );
        Some((name, option.get_help()?.to_string()))
    };
    let own = command.get_arguments().filter_map(shown);
    let fixed = [
        ("-h, --help", "Explain the command"),
        ("-V, --version", "Print the version"),
    ];
    let fixed = fixed.map(|(name, help)| (name.to_owned(), help.to_owned()));
    own.chain(fixed).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = Cli::command();
        let all: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(grouped.len(), all.len());
    }

    #[test]
    fn it_fits_a_terminal() {
        let text = overview();
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    /// Every command, with the path that leads to it.
    fn walk(command: &Command, path: &str, visit: &mut dyn FnMut(&Command, &str)) {
        for one in command.get_subcommands() {
            let path = format!("{path} {}", one.get_name());
            visit(one, &path);
            walk(one, &path, visit);
        }
    }

    #[test]
    fn every_command_and_option_says_what_it_is_for() {
        walk(&Cli::command(), "pdpp", &mut |command, path| {
            assert!(command.get_about().is_some(), "{path}");
            for option in command.get_arguments().filter(|one| !one.is_hide_set()) {
                let help = option.get_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(help.len() > 5, "{path}: {}", option.get_id());
            }
        });
    }

    #[test]
    fn every_command_shows_an_example_of_itself() {
        walk(&Cli::command(), "pdpp", &mut |command, path| {
            let after = command.get_after_help().map(ToString::to_string);
            let after = after.unwrap_or_default();
            assert!(
                after.contains(&format!("Example: {path}")),
                "{path}: {after}"
            );
        });
    }
}
