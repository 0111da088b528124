//! Holds the documents and packages against the program, in both directions: what there is, is documented, and what is documented, is
//! there. Blocks that repeat a table of the program are written by it; `UPDATE=1 cargo test -p pdpp documentation` writes
//! them anew.

mod examples;
mod generated;
mod markdown;
mod names;
mod packaging;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// The folder of the whole project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// The text of a file of the project.
fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What users read: the root's documents and those of `docs`, each with its path.
fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["", "docs"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                let text = text_of(&name);
                found.push((name, text));
            }
        }
    }
    found.sort();
    found
}

/// The program's own description of itself.
fn program() -> Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// Every command with the words that call it, subcommands after the one they belong to.
fn commands() -> Vec<(String, Command)> {
    fn collect(words: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let words = format!("{words} {}", one.get_name());
            found.push((words.clone(), one.clone()));
            collect(&words, one, found);
        }
    }
    let mut found = Vec::new();
    collect("pdpp", &program(), &mut found);
    found
}
