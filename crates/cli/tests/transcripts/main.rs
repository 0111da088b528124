//! Whole sessions at a terminal, word for word: every command, what it answers and what it refuses. Each `.txt` file is what
//! a person would see; lines with `!` were told on the error output, and an exit code other than 0 stands in brackets.
//! `UPDATE=1 cargo test -p pdpp --test transcripts` writes them anew, to be reviewed.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod masks;
mod session;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use session::Session;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// Plays the commands of a file and holds what they say against it.
fn plays(name: &str) {
    let file = folder().join(format!("{name}.txt"));
    let written = fs::read_to_string(&file).unwrap();
    let mut session = Session::new();
    let mut played = String::new();
    for line in written.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            played.push_str(&session.run(command));
        } else if line.starts_with("# ") {
            played.push_str(line);
            played.push('\n');
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &played).unwrap();
    }
    // The whole is long; the first line that differs says enough.
    let mut lines = played.lines().zip(written.lines()).enumerate();
    if let Some((at, (now, before))) = lines.find(|(_, (now, before))| now != before) {
        assert_eq!(now, before, "line {} of {name}.txt", at + 1);
    }
    assert_eq!(played, written, "{name}");
}

macro_rules! transcripts {
    ($($name:ident $says:ident;)*) => {
        $(#[test]
        fn $says() {
            plays(stringify!($name));
        })*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

transcripts! {
    beginning an_empty_directory_says_what_to_do_first;
    sources sources_are_declared_added_filled_and_removed;
    reading the_six_reads_answer_and_refuse;
    granting grants_are_issued_shown_used_and_revoked;
    serving a_server_starts_is_asked_and_looked_after;
    taking_out records_leave_as_they_came;
    words the_words_themselves_are_answered;
}

#[test]
fn every_transcript_is_played() {
    let files = fs::read_dir(folder()).unwrap();
    let files: BTreeSet<String> = files
        .filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".txt").map(str::to_owned)
        })
        .collect();
    let played: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, played);
}

/// Commands that are seen to do something elsewhere, where there is somebody to approve, something to take or a database.
const DONE_ELSEWHERE: &[&str] = &["connect", "blob", "migrate", "move", "nodes"];

/// The commands of a help text: the lines of its groups.
fn commands() -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pdpp"));
    let help = program.arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, groups) = help.split_once("\nBring data in:\n").unwrap();
    let (groups, _) = groups.split_once("\nOptions of every command:").unwrap();
    let lines = groups.lines().filter(|line| line.starts_with("  "));
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_command_is_seen_to_do_and_to_refuse() {
    let (mut done, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for name in NAMES {
        let text = fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
        let text = format!("\n{text}");
        for step in text.split("\n$ ").skip(1) {
            let command = step.lines().next().unwrap();
            // The last one decides how a line ends.
            let mut parts = command.rsplit('|');
            let last = parts
                .find(|part| part.contains("pdpp "))
                .unwrap_or_default();
            let words = last.split_whitespace().skip_while(|word| *word != "pdpp");
            let Some(word) = words.skip(1).find(|word| !word.starts_with('-')) else {
                continue;
            };
            let failed = step.lines().any(|line| line.starts_with("[exit "));
            let kind = if failed { &mut refused } else { &mut done };
            kind.insert(word.to_owned());
        }
    }
    for command in commands() {
        let done = done.contains(&command) || DONE_ELSEWHERE.contains(&command.as_str());
        assert!(done, "{command} never does anything");
        assert!(refused.contains(&command), "{command} refuses nothing");
    }
}
