//! Fifty imports are killed at some moment, and after each the records are those of a whole number of batches, not
//! fewer than were acknowledged, and search agrees with them. Erasures that are killed are finished at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Home, holding, lines};
use contract::id::{ConnectionId, FieldName, StreamName};
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{Scope, SearchRequest};
use store::{Catalog, EmbeddedStore, Records, Search, StreamRef, directory};
use testkit::Dice;
use text::Expression;

const ROUNDS: u64 = 50;
const LINES: usize = 1_000;
const BATCH: usize = 50;
const WORDS: [&str; 6] = ["amber", "birch", "copper", "dune", "ember", "fjord"];

type State = BTreeMap<String, Vec<&'static str>>;

enum Step {
    Put(String, Vec<&'static str>),
    Delete(String),
    Refused,
}

/// Adds, updates and deletes, some keys again and again, and a line that is none now and then.
fn steps(dice: &mut Dice) -> Vec<Step> {
    let step = |_| {
        let key = match dice.below(3) {
            0 => format!("hot{}", dice.below(5)),
            _ => format!("k{}", dice.below(400)),
        };
        match dice.below(20) {
            0 => Step::Refused,
            1..=3 => Step::Delete(key),
            _ => {
                let count = 1 + dice.below(3);
                Step::Put(
                    key,
                    (0..count).map(|_| WORDS[dice.below(WORDS.len())]).collect(),
                )
            }
        }
    };
    (0..LINES).map(step).collect()
}

fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Put(key, words) => {
                writeln!(text, r#"{{"id":"{key}","subject":"{}"}}"#, words.join(" "))
            }
            Step::Delete(key) => writeln!(text, r#"{{"key":"{key}","op":"delete"}}"#),
            Step::Refused => writeln!(text, r#"{{"id":"#),
        }
        .unwrap();
    }
    text
}

fn replay(state: &mut State, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Put(key, words) => drop(state.insert(key.clone(), words.clone())),
            Step::Delete(key) => drop(state.remove(key)),
            Step::Refused => {}
        }
    }
}

/// Kills the import at some moment and says how many lines it had acknowledged by then.
fn kill_somewhere(mut child: Child, dice: &mut Dice) -> usize {
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut acknowledged = 0;
    let mut hear = |line: String| {
        if let Some(number) = line.strip_prefix("acknowledged ") {
            acknowledged = number.parse().unwrap();
        }
        acknowledged
    };
    // Some die while they start, most between two batches or inside one, a few when all is done.
    let enough = match dice.below(8) {
        0 => 0,
        _ => dice.below(LINES + 1),
    };
    if enough == 0 {
        sleep(Duration::from_millis(
            u64::try_from(dice.below(60)).unwrap(),
        ));
    } else {
        for line in stderr.by_ref() {
            if hear(line.unwrap()) >= enough {
                break;
            }
        }
        sleep(Duration::from_micros(
            u64::try_from(dice.below(8_000)).unwrap(),
        ));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died still stands in the pipe.
    for line in stderr {
        hear(line.unwrap());
    }
    acknowledged
}

fn stream() -> StreamRef {
    StreamRef::new(
        &ConnectionId::parse("mail-work").unwrap(),
        &StreamName::parse("messages").unwrap(),
    )
}

fn stored(store: &EmbeddedStore) -> State {
    let request = PageRequest::first(OrderBy::Key, Direction::Ascending, 100_000);
    let known = |word: &str| *WORDS.iter().find(|known| **known == word).unwrap();
    let read = |body: &str| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let subject = body["subject"].as_str().unwrap().to_owned();
        subject.split(' ').map(known).collect()
    };
    let page = store.page(&stream(), &request).unwrap();
    assert!(page.is_last);
    page.records
        .into_iter()
        .map(|record| (record.key.to_string(), read(&record.body)))
        .collect()
}

fn found(store: &EmbeddedStore, word: &str) -> BTreeSet<String> {
    let request = SearchRequest {
        expression: Expression::parse(word),
        scopes: vec![Scope::whole(
            stream(),
            vec![FieldName::parse("subject").unwrap()],
        )],
        limit: 100_000,
        count: true,
        ..SearchRequest::default()
    };
    let answer = store.search(&request).unwrap();
    assert_eq!(answer.total, Some(answer.hits.len() as u64), "{word}");
    let keys = answer.hits.iter().map(|hit| hit.record.key.to_string());
    let unique: BTreeSet<String> = keys.collect();
    assert_eq!(
        unique.len(),
        answer.hits.len(),
        "{word} finds a record twice"
    );
    unique
}

#[test]
fn whatever_was_acknowledged_survives_a_kill_and_search_agrees() {
    let home = Home::with_mail();
    let mut dice = Dice(7);
    let mut state = State::new();
    let mut cut_short = 0;
    for round in 0..ROUNDS {
        let steps = steps(&mut dice);
        home.file("messages.jsonl", written(&steps));
        let child = home
            .command(format!("import ~/messages.jsonl -v --batch-lines {BATCH}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let acknowledged = kill_somewhere(child, &mut dice);
        cut_short += usize::from(acknowledged < LINES);
        if dice.below(5) == 0 {
            // The index is derived: losing it loses nothing.
            let _ = fs::remove_dir_all(home.data_dir().join(directory::INDEX));
        }

        let store = home.open_store();
        let records = stored(&store);
        replay(&mut state, &steps[..acknowledged]);
        let mut boundary = acknowledged;
        while state != records && boundary < LINES {
            let next = (boundary + BATCH).min(LINES);
            replay(&mut state, &steps[boundary..next]);
            boundary = next;
        }
        assert_eq!(
            state, records,
            "round {round}: no batch boundary from line {acknowledged} on has these records"
        );
        for word in WORDS {
            let holding = records.iter().filter(|(_, words)| words.contains(&word));
            let expected: BTreeSet<String> = holding.map(|(key, _)| key.clone()).collect();
            assert_eq!(found(&store, word), expected, "round {round}: {word}");
        }
    }
    assert!(cut_short > 25, "only {cut_short} imports were cut short");
}

#[test]
fn an_erasure_that_is_killed_has_not_begun_or_is_finished_at_the_next_start() {
    let mut dice = Dice(11);
    let mut cut_short = 0;
    for round in 0..12 {
        let home = Home::with_mail();
        let message = |at| format!("{{\"id\":\"m{at}\",\"subject\":\"zyzzyva {at}\"}}\n");
        home.import_messages(&lines(2_000, message)).succeeds();
        home.run("search zyzzyva").succeeds();
        let mut child = home
            .command("connections remove mail-work --yes")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // At least until it has begun; what comes then takes longer the slower the machine is.
        while !holding_log(&home) && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_micros(200));
        }
        sleep(Duration::from_micros(
            u64::try_from(dice.below(40_000)).unwrap(),
        ));
        cut_short += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();

        let store = home.open_store();
        let removed = store.connections().is_empty();
        let left = stored_count(&store);
        drop(store);
        if removed {
            let left = holding(&home.data_dir(), "zyzzyva");
            assert_eq!(left, Vec::<PathBuf>::new(), "round {round}");
        } else {
            assert_eq!(left, 2_000, "round {round}");
        }
    }
    assert!(cut_short > 0, "no erasure was cut short");
}

/// Whether somebody has the records open to write.
fn holding_log(home: &Home) -> bool {
    home.data_dir().join("records.db-wal").exists()
}

fn stored_count(store: &EmbeddedStore) -> u64 {
    let stats = store.stream_stats().unwrap();
    stats.iter().map(|stats| stats.records).sum()
}
