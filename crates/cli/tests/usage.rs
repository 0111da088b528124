//! The command line itself: global options, manual pages, versions.

use std::fs;
use std::path::Path;

use crate::harness::Home;

#[test]
fn global_options_stand_before_or_after_the_command() {
    let home = Home::with_mail();
    for line in ["--json connections", "connections --json"] {
        assert_eq!(home.run(line).json().as_array().unwrap().len(), 1);
    }
    fs::create_dir(home.path("elsewhere")).unwrap();
    let other = home.run("connections --json --data-dir ~/elsewhere");
    assert_eq!(other.succeeds().stdout, "[]\n");
    let other = home.run("--data-dir ~/elsewhere -q connections").succeeds();
    assert_eq!((other.stdout.as_str(), other.stderr.as_str()), ("", ""));
}

#[test]
fn every_command_has_a_manual_page_and_says_its_version() {
    // TR-28
    let home = Home::new();
    let page = home.run("man").succeeds();
    page.shows("\n.TH pdpp 1 ");
    assert_eq!(page.stderr, "");
    let dir = home.path("share/man1");
    let written = home.run(format!("man {}", dir.display())).succeeds();
    assert_eq!(written.stdout, "");
    let pages = fs::read_dir(&dir).unwrap().count();
    written.says(format!("Wrote {pages} pages"));
    assert_eq!(pages, looked_up(&home, &dir, ""));
    assert!(!home.data_dir().exists());
}

/// Looks at the page of a command and of those that its help lists, and counts them.
fn looked_up(home: &Home, dir: &Path, command: &str) -> usize {
    says_its_version(home, command);
    let name = format!("pdpp {command}").trim_end().replace(' ', "-");
    let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
    assert!(page.contains(&format!("\n.TH {name} 1 ")), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "NOTES"] {
        let heading = format!("\n.SH {section}\n");
        let is_bare = section == "NOTES" && matches!(command, "" | "index");
        assert!(page.contains(&heading) || is_bare, "{name}: {section}");
    }
    let help = home.run(format!("{command} --help")).succeeds();
    let below = listed(&help.stdout, command.is_empty());
    let below = below.map(|one| looked_up(home, dir, format!("{command} {one}").trim_start()));
    1 + below.sum::<usize>()
}

/// TR-28: on standard output, but for the command whose standard output belongs to a protocol.
fn says_its_version(home: &Home, command: &str) {
    for option in ["--version", "-V"] {
        let ran = home.run(format!("{command} {option}")).succeeds();
        let told = match command {
            "mcp" => (ran.stderr.as_str(), ran.stdout.as_str()),
            _ => (ran.stdout.as_str(), ran.stderr.as_str()),
        };
        let version = concat!("pdpp ", env!("CARGO_PKG_VERSION"), "\n");
        assert_eq!(told, (version, ""), "{command}");
    }
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
