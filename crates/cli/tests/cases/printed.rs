//! What the commands print for people: every command in it can be run as it stands, and leads where it says.

use std::collections::BTreeSet;

use crate::answer::Id;
use crate::body;
use crate::generated::{CONNECTIONS, WORDS, entry, hard_keys};
use crate::surface::{Named, Step, plain, words};
use crate::world::{Grant, archives};

/// Both places a command can read from, as options.
fn places(who: &Grant) -> [Vec<String>; 2] {
    let near = vec!["--grant".to_owned(), who.id.clone()];
    [near, who.world.place_afar(who).to_vec()]
}

fn print(who: &Grant, place: &[String], step: &Step<'_>, ask: &crate::surface::Ask) -> String {
    let words = words(step, ask);
    let all: Vec<&str> = words[..1]
        .iter()
        .chain(place)
        .chain(&words[1..])
        .map(String::as_str)
        .collect();
    who.world.run(&all).succeeds().stdout
}

fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| line.starts_with("pdpp ")).collect()
}

/// The commands that begin like this.
fn starting<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let mut found = commands(text);
    found.retain(|line| line.starts_with(start));
    found
}

#[test]
fn a_search_prints_its_evidence_and_the_commands_that_read_it() {
    // PA-05
    let who = archives();
    for place in places(&who) {
        for word in WORDS {
            let ask = plain().limit(2);
            let shown = print(&who, &place, &Step::Search(word), &ask);
            let marked = format!("[{word}]");
            assert!(shown.contains(&marked), "{shown}");
            let reads = starting(&shown, "pdpp read ");
            assert!(!reads.is_empty(), "{shown}");
            for line in reads {
                let window = who.world.run_printed(line).succeeds().stdout;
                assert!(window.contains(word), "{line}: {window}");
                // The window, and nothing else of the record.
                assert!(!window.contains("quodlibetum"), "{window}");
                let json = who.world.run_printed(&format!("{line} --json"));
                let window = body::window(&json.succeeds().json());
                assert!(window.text.contains(word) && window.text.chars().count() <= 4_096);
            }
            let fetches = starting(&shown, "pdpp fetch ");
            assert_eq!(fetches.len(), 2, "{shown}");
            for line in fetches {
                who.world.run_printed(line).succeeds();
            }
        }
    }
}

#[test]
fn every_command_on_the_way_down_works() {
    // EV-18 at the terminal
    let who = archives();
    for place in places(&who) {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let first = print(&who, &place, &Step::Schema, &plain());
        let mut open: Vec<(String, usize)> = commands(&first)
            .iter()
            .map(|line| ((*line).to_owned(), 0))
            .collect();
        let mut kinds: BTreeSet<String> = BTreeSet::new();
        while let Some((line, depth)) = open.pop() {
            if seen.len() > 60 || !seen.insert(line.clone()) {
                continue;
            }
            // The one word that is to be replaced.
            let line = line.replace("search WORDS", &format!("search {}", WORDS[1]));
            let shown = who.world.run_printed(&line).succeeds().stdout;
            kinds.extend(line.split(' ').nth(1).map(str::to_owned));
            if depth < 5 {
                let more = commands(&shown).into_iter().take(6);
                open.extend(more.map(|line| (line.to_owned(), depth + 1)));
            }
        }
        let all = ["fetch", "query", "read", "schema", "search", "verify"];
        assert_eq!(kinds, all.map(str::to_owned).into());
    }
}

#[test]
fn a_key_of_any_form_is_printed_so_that_a_shell_takes_it() {
    // PA-05
    let who = archives();
    let ask = plain().connection(CONNECTIONS[0]).limit(100);
    let ask = ask.fields(&["text"]);
    let place = &places(&who)[0];
    let shown = print(&who, place, &Step::Query("entries"), &ask);
    let long: BTreeSet<String> = hard_keys()
        .into_iter()
        .filter(|key| entry(key, 0)["text"].as_str().unwrap().chars().count() > 160)
        .collect();
    assert!(long.len() > 2);
    let mut read = BTreeSet::new();
    for line in starting(&shown, "pdpp read ") {
        let window = who.world.run_printed(&format!("{line} --json"));
        let window = body::window(&window.succeeds().json());
        read.insert(window.id.record);
    }
    assert!(read.is_superset(&long), "{read:?}");
    // A window of any field names the record as a whole.
    for key in hard_keys() {
        let id = Id::new(CONNECTIONS[0], "entries", &key);
        let step = Step::Read(Named::Parts(&id), "kind");
        let shown = print(&who, place, &step, &plain());
        let [fetch] = starting(&shown, "pdpp fetch ")[..] else {
            panic!("{shown}")
        };
        let record = who.world.run_printed(&format!("{fetch} --json"));
        assert_eq!(body::record(&record.succeeds().json()).id, id);
    }
}
