//! What the commands print for people: every command in it can be run as it stands, and leads where it says.

use std::collections::BTreeSet;

use crate::answer::Id;
use crate::body;
use crate::generated::{CONNECTIONS, WORDS, entry, hard_keys, keys};
use crate::surface::{Named, Step, Surface, get, plain, words};
use crate::world::{Grant, archives, life, whole};

/// Both places a command can read from, as options.
fn places(who: &Grant) -> [Vec<String>; 2] {
    let near = vec!["--grant".to_owned(), who.id.clone()];
    [near, who.world.place_afar(who).to_vec()]
}

/// What a command prints at a place.
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

/// The commands a text shows.
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
        let all = ["fetch", "query", "read", "schema", "search"];
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

#[test]
fn printed_pages_show_every_record_once() {
    let who = archives();
    for place in places(&who) {
        let ask = plain()
            .connection(CONNECTIONS[0])
            .limit(20)
            .fields(&["size"]);
        let mut shown = print(&who, &place, &Step::Query("entries"), &ask);
        let mut handles = Vec::new();
        loop {
            let heads = shown.lines().filter(|line| {
                line.starts_with("archive-east/") || line.starts_with("pdpp://record/")
            });
            handles.extend(heads.map(|line| line.split("  ").next().unwrap().to_owned()));
            let next = starting(&shown, "pdpp query entries");
            let Some(next) = next.iter().find(|line| line.contains("--cursor")) else {
                break;
            };
            shown = who.world.run_printed(next).succeeds().stdout;
        }
        assert_eq!(handles.len(), keys().len());
        let once: BTreeSet<&String> = handles.iter().collect();
        assert_eq!(once.len(), handles.len());
    }
}

#[test]
fn printed_windows_make_the_whole_text_whatever_the_key() {
    let who = archives();
    for key in ["plain", "$HOME $(id)", "👩\u{200d}👩\u{200d}👧"] {
        let id = Id::new(CONNECTIONS[1], "entries", key);
        let text = entry(key, 1)["text"].as_str().unwrap().to_owned();
        let place = &places(&who)[1];
        let ask = plain().with("limit_chars", 4_000);
        let step = Step::Read(Named::Parts(&id), "text");
        let mut shown = print(&who, place, &step, &ask);
        let mut whole = String::new();
        let mut end = 0;
        loop {
            let next = shown
                .split_once("\nNext:\n")
                .map(|(_, rest)| rest.to_owned());
            // The exact characters are those of JSON; what is printed makes some visible.
            let line = next.as_deref().and_then(|rest| rest.lines().next());
            let here = format!("--offset-chars {end}");
            let json = match line.map(str::trim) {
                Some(line) => {
                    let at = line.split("--offset-chars ").nth(1).unwrap();
                    let at = at.split(' ').next().unwrap();
                    line.replace(&format!("--offset-chars {at}"), &here)
                }
                None => break,
            };
            let ran = who.world.run_printed(&format!("{json} --json"));
            let window = body::window(&ran.succeeds().json());
            assert_eq!(window.start, end);
            whole.push_str(&window.text);
            end = window.end;
            shown = who.world.run_printed(line.unwrap()).succeeds().stdout;
        }
        // The last one shows the end.
        let rest: String = text.chars().skip(usize::try_from(end).unwrap()).collect();
        whole.push_str(&rest);
        assert_eq!(whole, text);
        let last = rest.split_whitespace().last();
        assert!(last.is_none_or(|word| shown.contains(word)), "{shown}");
    }
}

#[test]
fn what_grant_shows_is_what_its_token_sees() {
    // PA-08: the owner's look and the client's answer are one
    let narrow = life().grant(&[
        "--connection",
        "mail-work",
        "--stream",
        "messages",
        "--fields",
        "id,subject,received_at,folder",
    ]);
    for who in [whole(), archives(), narrow] {
        for (target, step, ask) in [
            ("/v1/schema", Step::Schema, plain()),
            ("/v1/search?q=bridge", Step::Search("bridge"), plain()),
            (
                "/v1/search?q=zanzibarix",
                Step::Search("zanzibarix"),
                plain(),
            ),
            (
                "/v1/streams/messages/records",
                Step::Query("messages"),
                plain(),
            ),
            (
                "/v1/streams/messages/records?connection_id=mail-work&limit=3",
                Step::Query("messages"),
                plain().connection("mail-work").limit(3),
            ),
            (
                "/v1/streams/entries/records",
                Step::Query("entries"),
                plain(),
            ),
            (
                "/v1/streams/messages/aggregate?metric=count&connection_id=mail-work",
                Step::Aggregate("messages", "count"),
                plain().connection("mail-work"),
            ),
        ] {
            let over = get(&who, target);
            let looked = Surface::Cli.shown(&who, &step, &ask);
            match (over, looked) {
                (Ok(body), Ok(printed)) => {
                    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
                    assert_eq!(steady(printed), steady(body), "{target}");
                }
                (over, looked) => assert_eq!(over.unwrap_err(), looked.unwrap_err(), "{target}"),
            }
        }
    }
}

/// The same but for what is sealed anew on every answer, and for how it was asked.
fn steady(mut body: serde_json::Value) -> serde_json::Value {
    for name in ["next_cursor", "next_changes_since"] {
        if body.get(name).is_some_and(serde_json::Value::is_string) {
            body[name] = "sealed".into();
        }
    }
    body["links"] = serde_json::Value::Null;
    for one in body["data"].as_array_mut().into_iter().flatten() {
        if let Some(url) = one["citation_url"].as_str() {
            one["citation_url"] = url.split_once("/records/").unwrap().1.to_owned().into();
        }
    }
    body
}
