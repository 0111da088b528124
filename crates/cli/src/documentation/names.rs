//! Commands, options, variables, tools and error codes: all are documented, and no others are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::CommandFactory as _;
use contract::error::ErrorCode;
use ingest::RejectionCode;

use super::markdown::{code_spans, first_column};
use super::{commands, documents, program, root, text_of};

pub(super) type Names = BTreeSet<String>;

fn names<T: Into<String>>(all: impl IntoIterator<Item = T>) -> Names {
    all.into_iter().map(Into::into).collect()
}

/// Both directions at once: what only one of the two has.
fn differences(there: &Names, documented: &Names) -> Vec<String> {
    let missing = there.difference(documented);
    let invented = documented.difference(there);
    missing
        .map(|name| format!("{name} is not documented"))
        .chain(invented.map(|name| format!("{name} is documented and not there")))
        .collect()
}

#[test]
fn every_command_stands_in_the_table_of_commands() {
    let program = program();
    let there = names(program.get_subcommands().map(clap::Command::get_name));
    let documented = names(first_column(&text_of("docs/cli.md"), "Command"));
    assert_eq!(differences(&there, &documented), [""; 0]);
}

#[test]
fn every_tool_stands_in_the_table_of_tools() {
    let tools = mcp::Server::tools();
    let there = names(tools.iter().map(|tool| tool.name.as_ref()));
    let documented = names(first_column(&text_of("docs/mcp.md"), "Tool"));
    assert_eq!(differences(&there, &documented), [""; 0]);
}

/// That all codes are documented is held where the table of them is written.
#[test]
fn every_error_code_that_a_document_explains_is_there() {
    let there = names(ErrorCode::ALL.iter().map(|code| code.as_str()));
    for path in ["docs/api.md", "docs/mcp.md"] {
        let told = names(first_column(&text_of(path), "Code"));
        let invented: Vec<&String> = told.difference(&there).collect();
        assert!(
            !told.is_empty() && invented.is_empty(),
            "{path}: {invented:?}"
        );
    }
}

#[test]
fn every_reason_to_refuse_a_line_is_documented() {
    let there = names(RejectionCode::NAMES.iter().copied());
    let documented = names(first_column(&text_of("docs/importing.md"), "Code"));
    assert_eq!(differences(&there, &documented), [""; 0]);
}

/// Variables of ours in a text.
pub(super) fn variables(text: &str) -> Names {
    let starts = text.match_indices("PDPP_").map(|(at, _)| &text[at..]);
    let letters = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let whole = starts.map(|rest| rest.split(|c| !letters(c)).next().unwrap_or_default());
    names(whole.filter(|name| !name.ends_with('_')))
}

/// The source of all crates, without their tests and without this.
fn sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = ["tests", "tests.rs", "documentation", "documentation.rs"]
            .iter()
            .any(|name| path.ends_with(name));
        if is_test {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
            found.push_str(code);
        }
    }
}

/// Variables that the program reads.
pub(super) fn known_variables() -> Names {
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    let there = variables(&code);
    assert!(there.contains("PDPP_DATA_DIR"));
    there
}

#[test]
fn every_variable_of_the_environment_is_documented() {
    let there = known_variables();
    let documented = variables(&text_of("docs/configuration.md"));
    assert_eq!(differences(&there, &documented), [""; 0]);
    for (name, text) in documents() {
        let elsewhere = variables(&text);
        let invented: Vec<&String> = elsewhere.difference(&there).collect();
        assert!(invented.is_empty(), "{name}: {invented:?}");
    }
}

#[test]
fn every_option_that_a_document_names_is_there() {
    let others = [program(), bench::Arguments::command()];
    let mut there = Names::new();
    for command in commands().iter().map(|(_, command)| command).chain(&others) {
        there.extend(names(
            command.get_arguments().filter_map(clap::Arg::get_long),
        ));
    }
    let mut seen = 0;
    for (name, text) in documents() {
        for span in code_spans(&text) {
            let first = span.split([' ', '=']).next().unwrap_or_default();
            if let Some(option) = first.strip_prefix("--").filter(|rest| !rest.is_empty()) {
                seen += 1;
                assert!(there.contains(option), "{name}: `{span}`");
            }
        }
    }
    assert!(seen > 20, "only {seen} options were found");
}

#[test]
fn what_is_missing_and_what_is_invented_is_told() {
    let there = names(["a", "b"]);
    assert_eq!(differences(&there, &there), [""; 0]);
    assert_eq!(
        differences(&there, &names(["b", "c"])),
        ["a is not documented", "c is documented and not there"]
    );
    assert_eq!(
        variables("`PDPP_LOG`, PDPP_A_B=1 and PDPP_*"),
        names(["PDPP_A_B", "PDPP_LOG"])
    );
}
