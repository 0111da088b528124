//! The command line itself: help, usage errors, global options, completions.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs;
use std::path::Path;

use harness::Home;

const MCP: &[&str] = &["mcp"];
/// Every other command that does something.
const COMMANDS: &[&[&str]] = &[
    &["declare"],
    &["connections"],
    &["connections", "add"],
    &["connections", "rename"],
    &["connections", "remove"],
    &["import"],
    &["serve"],
    &["export"],
    &["blob"],
    &["grant", "create"],
    &["grant", "show"],
    &["grant", "revoke"],
    &["grants"],
    &["grants", "verify"],
    &["owner-token"],
    &["sign-in"],
    &["backup"],
    &["restore"],
    &["index", "rebuild"],
    &["delete"],
    &["purge"],
    &["completions"],
    &["man"],
    &["schema"],
    &["search"],
    &["query"],
    &["aggregate"],
    &["fetch"],
    &["read"],
    &["connect"],
    &["setup"],
    &["doctor"],
    &["help"],
];

#[test]
fn every_command_says_its_version() {
    // TR-28: on standard output, but for the command whose standard output belongs to a protocol.
    let home = Home::new();
    let version = concat!("pdpp ", env!("CARGO_PKG_VERSION"), "\n");
    for command in COMMANDS.iter().copied().chain([MCP]) {
        for option in ["--version", "-V"] {
            let ran = home.run(&[command, &[option]].concat()).succeeds();
            let told = match command.first() {
                Some(&"mcp") => (ran.stderr.as_str(), ran.stdout.as_str()),
                _ => (ran.stdout.as_str(), ran.stderr.as_str()),
            };
            assert_eq!(told, (version, ""), "{command:?}");
        }
    }
}

#[test]
fn every_command_shows_an_example() {
    let home = Home::new();
    for command in COMMANDS.iter().copied() {
        let help = home.run(&[command, &["--help"]].concat()).succeeds();
        let example = format!("Example: pdpp {}", command.join(" "));
        assert!(help.stdout.contains(&example), "{command:?}");
    }
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let home = Home::with_mail();
    let elsewhere = home.path("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    assert_eq!(
        home.run(&["--json", "connections"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        home.run(&["connections", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    fs::create_dir(elsewhere).unwrap();
    let other = home
        .run(&["connections", "--json", "--data-dir", elsewhere])
        .succeeds();
    assert_eq!(other.stdout, "[]\n");
    let other = home
        .run(&["--data-dir", elsewhere, "-q", "connections"])
        .succeeds();
    assert_eq!((other.stdout.as_str(), other.stderr.as_str()), ("", ""));
}

#[test]
fn completions_are_printed_for_a_shell() {
    let script = Home::new().run(&["completions", "bash"]).succeeds().stdout;
    assert!(script.contains("_pdpp()") && script.contains("connections"));
}

#[test]
fn the_manual_page_is_printed_and_every_command_has_one() {
    let home = Home::new();
    let page = home.run(&["man"]).succeeds();
    assert!(page.stdout.contains("\n.TH pdpp 1 "), "{}", page.stdout);
    assert_eq!(page.stderr, "");
    let dir = home.path("share/man1");
    let written = home.run(&["man", dir.to_str().unwrap()]).succeeds();
    assert_eq!(written.stdout, "");
    let pages = fs::read_dir(&dir).unwrap().count();
    assert!(written.stderr.contains(&format!("Wrote {pages} pages")));
    assert_eq!(pages, looked_up(&home, &dir, &[]));
    assert!(!home.data_dir().exists());
}

/// Looks at the page of a command and of those that its help lists, and counts them.
fn looked_up(home: &Home, dir: &Path, command: &[&str]) -> usize {
    let name = [&["pdpp"], command].concat().join("-");
    let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
    assert!(page.contains(&format!("\n.TH {name} 1 ")), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "NOTES"] {
        let heading = format!("\n.SH {section}\n");
        let is_bare = section == "NOTES" && matches!(command, [] | ["index"]);
        assert!(page.contains(&heading) || is_bare, "{name}: {section}");
    }
    let help = home.run(&[command, &["--help"]].concat()).succeeds();
    let below = listed(&help.stdout, command.is_empty());
    let below = below.map(|one| looked_up(home, dir, &[command, &[one]].concat()));
    1 + below.sum::<usize>()
}

/// The commands that a help text lists: those of the program stand in groups, with first steps before them.
fn listed(help: &str, in_groups: bool) -> impl Iterator<Item = &str> {
    let sections = help.split("\n\n").filter(move |section| {
        let title = section.lines().next().unwrap_or_default();
        if in_groups {
            title.ends_with(':') && !title.starts_with("First") && !title.starts_with("Options")
        } else {
            title == "Commands:"
        }
    });
    let lines = sections.flat_map(|section| section.lines().skip(1));
    lines.filter_map(|line| line.split_whitespace().next())
}
