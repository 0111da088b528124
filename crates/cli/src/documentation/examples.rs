//! Every command line that a document shows is one the program takes.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::markdown::{blocks, code_spans};
use super::{commands, documents, program, shell, text_of};
use crate::commands::help::overview;

/// Whether a word stands for one that the reader fills in.
fn is_placeholder(word: &str) -> bool {
    let marks = |letter: char| "_,=/|-".contains(letter);
    word.contains(|letter: char| letter.is_ascii_uppercase())
        && word
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || marks(letter))
}

/// Why the program would not take these words. In prose a command may be named without all that it needs.
pub(super) fn objection(words: &[String], in_prose: bool) -> Option<String> {
    let line = std::iter::once("pdpp").chain(words.iter().map(String::as_str));
    let error = program().try_get_matches_from(line).err()?;
    let blamed = [ContextKind::InvalidValue, ContextKind::InvalidSubcommand]
        .into_iter()
        .find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(word)) => Some(word.clone()),
            _ => None,
        });
    let taken = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::InvalidValue
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if in_prose && blamed.as_deref().is_none_or(str::is_empty) =>
        {
            true
        }
        _ => blamed.is_some_and(|word| is_placeholder(&word)),
    };
    (!taken).then(|| error.to_string())
}

/// A command as prose writes it: `[--option VALUE]…` is optional, and may come again.
fn without_notation(span: &str) -> String {
    span.replace(['[', ']', '…'], " ")
}

#[test]
fn every_example_in_a_block_can_be_run() {
    let mut seen = 0;
    for (name, text) in documents() {
        let lines = blocks(&text).join("\n").replace("\\\n", " ");
        for words in lines.lines().flat_map(shell::calls) {
            seen += 1;
            if let Some(objection) = objection(&words, false) {
                panic!("{name}: pdpp {}\n{objection}", words.join(" "));
            }
        }
    }
    assert!(seen > 20, "only {seen} examples were found");
}

#[test]
fn every_command_named_in_prose_is_there() {
    let mut seen = 0;
    for (name, text) in documents() {
        for span in code_spans(&text) {
            if !span.starts_with("pdpp ") {
                continue;
            }
            for words in shell::calls(&without_notation(&span)) {
                seen += 1;
                if let Some(objection) = objection(&words, true) {
                    panic!("{name}: `{span}`\n{objection}");
                }
            }
        }
    }
    assert!(seen > 60, "only {seen} commands were found");
}

#[test]
fn every_step_of_the_first_steps_can_be_run() {
    let script = text_of("examples/first-steps");
    let steps: Vec<Vec<String>> = script
        .lines()
        .flat_map(shell::calls)
        // The function that shows a step passes it on.
        .filter(|words| *words != ["$@"])
        .collect();
    for words in &steps {
        assert_eq!(objection(words, false), None, "{words:?}");
    }
    assert!(steps.len() > 3, "only {steps:?} were found");
}

#[test]
fn every_example_and_first_step_in_the_help_can_be_run() {
    let overview = overview();
    let steps = overview.lines().filter(|line| line.starts_with("  pdpp "));
    let mut examples: Vec<String> = steps.map(str::to_owned).collect();
    for (_, command) in commands() {
        let after = command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        let shown = after
            .lines()
            .filter_map(|line| line.strip_prefix("Example: "));
        examples.extend(shown.map(str::to_owned));
    }
    assert!(examples.len() > 40, "only {} were found", examples.len());
    for example in examples {
        let line = example.trim().split("  ").next().unwrap_or_default();
        for words in shell::calls(line) {
            assert_eq!(objection(&words, false), None, "{example}");
        }
    }
}

#[test]
fn what_the_program_does_not_take_is_noticed() {
    let objects = |line: &str, in_prose| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        objection(&words, in_prose).is_some()
    };
    assert!(objects("serves", true) && objects("serve --dem", true) && objects("grant make", true));
    assert!(objects("completions basch", true) && objects("grant create", false));
    assert!(objects("fetch a b", true) && objects("blob x", false));
    assert!(!objects("COMMAND --help", true) && !objects("completions SHELL", true));
    assert!(!objects("grant", true) && !objects("grant create", true) && !objects("serve", false));
}
