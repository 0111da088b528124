//! What changed since a bookmark. Each surface has a ledger of its own, because these cases write.

use serde_json::json;

use crate::answer::Page;
use crate::surface::{Surface, plain};
use crate::world::{Grant, ledgers};

/// A ledger with five lines, read under these options.
fn ledger(surface: Surface, case: &str, options: &str) -> (String, Grant) {
    let name = format!("{case}-{surface:?}").to_lowercase();
    let world = ledgers();
    world.connect("archive", &name, &name);
    let lines: Vec<String> = (1..=5).map(|number| line(number, "first")).collect();
    world.import("archive/entries", &name, &lines.join("\n"));
    let who = world.grant(format!("--connection {name} {options}").trim());
    (name, who)
}

fn line(number: u32, title: &str) -> String {
    let key = format!("l{number}");
    let at = format!("2026-02-{number:02}T00:00:00Z");
    json!({"key": key, "data": {"id": key, "title": title, "secret": "s", "size": number, "at": at}}).to_string()
}

fn gone(number: u32) -> String {
    json!({"key": format!("l{number}"), "op": "delete"}).to_string()
}

fn sorted(page: &Page) -> Vec<(&str, bool)> {
    let mut all: Vec<(&str, bool)> = page
        .records
        .iter()
        .map(|record| (record.id.record.as_str(), record.deleted))
        .collect();
    all.sort_unstable();
    all
}

pub(crate) fn changes_are_told_once_with_tombstones(surface: Surface) {
    let (name, who) = ledger(surface, "told", "");
    let since = |bookmark: &str| {
        let ask = plain().with("changes_since", bookmark);
        surface.page(&who, "entries", ask)
    };
    let first = since("beginning");
    assert_eq!(first.records.len(), 5);
    assert!(first.cursor.is_none());
    let bookmark = first.bookmark.unwrap();
    let none = since(&bookmark);
    assert!(none.records.is_empty());
    let changes = [
        line(2, "second"),
        gone(4),
        line(6, "first"),
        line(1, "first"),
    ];
    ledgers().import("archive/entries", &name, &changes.join("\n"));
    let later = since(&bookmark);
    // What was sent again unchanged is no change.
    assert_eq!(sorted(&later), [("l2", false), ("l4", true), ("l6", false)]);
    let tombstone = later.records.iter().find(|record| record.deleted).unwrap();
    assert!(tombstone.data.is_empty());
    assert_eq!(tombstone.id.connection.as_deref(), Some(name.as_str()));
    // Whoever begins now never hears of what is gone.
    let anew = since("beginning");
    assert_eq!(anew.records.len(), 5);
    assert!(anew.records.iter().all(|record| !record.deleted));
    assert!(since(&later.bookmark.unwrap()).records.is_empty());
}

pub(crate) fn changes_page_to_the_end_and_then_nothing_follows(surface: Surface) {
    let (name, who) = ledger(surface, "paged", "");
    let ask = plain().limit(2).with("changes_since", "beginning");
    let mut page = surface.page(&who, "entries", ask.clone());
    let mut seen: Vec<String> = Vec::new();
    // The cursor alone goes on, and so does the same question with the cursor.
    for question in [ask, plain().limit(2)].into_iter().cycle() {
        seen.extend(page.keys().iter().map(ToString::to_string));
        let Some(cursor) = page.cursor.clone() else {
            break;
        };
        // A change while pages are read is for the next bookmark.
        ledgers().import("archive/entries", &name, &line(9, "late"));
        page = surface.page(&who, "entries", question.cursor(&cursor));
    }
    seen.sort_unstable();
    assert_eq!(seen, ["l1", "l2", "l3", "l4", "l5"]);
    let ask = plain().with("changes_since", page.bookmark.unwrap());
    let late = surface.page(&who, "entries", ask);
    assert_eq!(late.keys(), ["l9"]);
}

pub(crate) fn a_change_outside_the_grant_is_no_change(surface: Surface) {
    let options = "--stream entries --fields id,size,at --until 2026-02-04";
    let (name, who) = ledger(surface, "hidden", options);
    let since = |bookmark: &str| {
        let ask = plain().with("changes_since", bookmark);
        surface.page(&who, "entries", ask)
    };
    let first = since("beginning");
    assert_eq!(
        sorted(&first),
        [("l1", false), ("l2", false), ("l3", false)]
    );
    // A field that is not granted, a record that is out of time, one that leaves its time.
    let moved = json!({"key": "l3", "data": {"id": "l3", "secret": "s", "size": 3, "at": "2026-05-01T00:00:00Z"}});
    let changes = [
        line(1, "other"),
        line(5, "other"),
        gone(4),
        moved.to_string(),
    ];
    ledgers().import("archive/entries", &name, &changes.join("\n"));
    let later = since(&first.bookmark.unwrap());
    assert_eq!(sorted(&later), [("l3", true)]);
}

pub(crate) fn a_search_that_goes_on_in_a_changed_index_says_so(surface: Surface) {
    let (name, who) = ledger(surface, "ranked", "");
    let ask = || plain().limit(2);
    let first = surface.found(&who, "first", ask());
    assert!(first.warnings.is_empty());
    ledgers().import("archive/entries", &name, &line(7, "first"));
    let cursor = first.cursor.unwrap();
    let next = surface.found(&who, "first", ask().cursor(&cursor));
    assert_eq!(next.warnings, ["ranking_changed"]);
    assert_eq!(next.hits.len(), 2);
}
