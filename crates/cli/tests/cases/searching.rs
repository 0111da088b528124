//! Records by words, with what proves them.

use std::collections::BTreeSet;

use crate::answer::{Excerpt, Found, Hit, Id};
use crate::generated::{CONNECTIONS, WORDS, entry};
use crate::surface::{Ask, Surface, plain};
use crate::world::{Grant, archives, only, whole};

/// The marked words of a preview, and the preview without marks.
fn unmarked(preview: &str) -> (Vec<&str>, String) {
    let mut words = Vec::new();
    let mut text = String::new();
    let mut rest = preview;
    while let Some((before, after)) = rest.split_once("<mark>") {
        let (word, after) = after.split_once("</mark>").unwrap();
        words.push(word);
        text.push_str(before);
        text.push_str(word);
        rest = after;
    }
    text.push_str(rest);
    let text = text.replace("&lt;mark", "<mark");
    (words, text.replace("&lt;/mark", "</mark"))
}

/// All pages of a search.
fn all(surface: Surface, who: &Grant, words: &str, ask: &Ask) -> Vec<Found> {
    let mut pages = vec![surface.found(who, words, ask.clone())];
    while let Some(cursor) = pages[pages.len() - 1].cursor.clone() {
        let ask = ask.clone().cursor(&cursor);
        pages.push(surface.found(who, words, ask));
        assert!(pages.len() < 100, "pages without end");
    }
    pages
}

/// Reads an excerpt again through its continuation.
fn read_again(surface: Surface, who: &Grant, hit: &Hit, excerpt: &Excerpt) {
    let read = &excerpt.read;
    assert_eq!((&read.id, &read.field), (&hit.id, &excerpt.field));
    let ask = plain()
        .with("offset_chars", read.offset)
        .with("limit_chars", read.limit);
    let window = surface.window(who, &read.id, &read.field, ask);
    let (words, text) = unmarked(&excerpt.preview);
    assert!(!words.is_empty(), "{excerpt:?}");
    // A preview that a surface had to cut is a part of the window.
    let shown = text.trim_matches('\u{2026}');
    assert!(
        window.text.contains(shown.trim()),
        "{shown:?} in {window:?}"
    );
    // A part leads to more around it; what is whole is not read again for nothing.
    assert_eq!(excerpt.truncated, window.text.len() > text.len());
    assert!(excerpt.truncated || (window.complete && window.text == text));
}

pub(crate) fn evidence_is_found_again_at_its_offsets(surface: Surface) {
    // PA-01, PA-02, PA-03, PA-06
    let who = whole();
    for words in [
        "bridge vendor",
        "ozean*",
        "会議",
        "السفر",
        "\"Ironleaf Works\"",
        "café",
    ] {
        let found = surface.found(&who, words, plain().limit(4));
        for hit in &found.hits {
            assert!(
                !hit.excerpts.is_empty() && hit.excerpts.len() <= 3,
                "{hit:?}"
            );
            for excerpt in &hit.excerpts {
                read_again(surface, &who, hit, excerpt);
            }
        }
    }
    for words in WORDS {
        let found = surface.found(&archives(), words, plain().limit(3));
        assert_eq!(found.hits.len(), 3, "{words}");
        for hit in &found.hits {
            for excerpt in &hit.excerpts {
                assert!(excerpt.truncated, "{excerpt:?}");
                read_again(surface, &archives(), hit, excerpt);
            }
        }
    }
}

pub(crate) fn evidence_is_marked_and_stands_in_its_field(surface: Surface) {
    // EV-16, EV-17, PA-02
    let found = surface.found(&archives(), WORDS[0], plain().limit(5));
    for hit in &found.hits {
        let place = CONNECTIONS
            .iter()
            .position(|id| Some(*id) == hit.id.connection.as_deref());
        let record = entry(&hit.id.record, place.unwrap());
        for excerpt in &hit.excerpts {
            let (words, _) = unmarked(&excerpt.preview);
            assert!(words.iter().all(|word| *word == WORDS[0]), "{excerpt:?}");
            let text = record[excerpt.field.as_str()].as_str().unwrap();
            let at = text
                .chars()
                .skip(usize::try_from(excerpt.read.offset).unwrap())
                .take(usize::try_from(excerpt.read.limit).unwrap());
            let (_, shown) = unmarked(&excerpt.preview);
            let window: String = at.collect();
            assert!(window.contains(shown.trim_matches('\u{2026}').trim()));
            // Both sides of the match are shown.
            let (before, after) = shown.split_once(WORDS[0]).unwrap();
            assert!(before.trim().len() > 3 && after.trim().len() > 3, "{shown}");
        }
    }
}

pub(crate) fn every_hit_names_its_source(surface: Surface) {
    // SE-12, SE-19, PA-01
    let found = surface.found(&whole(), "Bergen", plain().limit(100));
    let sources: BTreeSet<(&str, Option<&str>, Option<&str>)> = found
        .hits
        .iter()
        .map(|hit| {
            let connection = hit.id.connection.as_deref();
            (hit.connector.as_str(), connection, hit.label.as_deref())
        })
        .collect();
    assert!(sources.len() > 2, "{sources:?}");
    assert!(
        sources
            .iter()
            .all(|(_, connection, label)| connection.is_some() && label.is_some())
    );
    for hit in found.hits.iter().take(8) {
        let record = surface.record(&whole(), &hit.id, plain());
        assert_eq!((&record.id, &record.label), (&hit.id, &hit.label));
    }
}

pub(crate) fn hits_page_to_the_end_once_each(surface: Surface) {
    let who = whole();
    let pages = all(surface, &who, "Ironleaf", &plain().limit(30));
    let ids: Vec<Id> = pages.iter().flat_map(Found::ids).collect();
    let once: BTreeSet<&Id> = ids.iter().collect();
    assert_eq!(once.len(), ids.len());
    assert!(pages.len() > 2, "{}", ids.len());
    assert!(pages.iter().all(|page| page.warnings.is_empty()));
    let larger = all(surface, &who, "Ironleaf", &plain().limit(100));
    let larger: Vec<Id> = larger.iter().flat_map(Found::ids).collect();
    assert_eq!(larger, ids);
}

pub(crate) fn a_search_is_narrowed_by_stream_connection_and_filter(surface: Surface) {
    // SE-17, SE-18
    let who = whole();
    let find = |ask: Ask| {
        let ids = surface.found(&who, "Ironleaf", ask.limit(50)).ids();
        assert!(!ids.is_empty());
        ids
    };
    let of = |id: &Id| (id.connection.clone().unwrap(), id.stream.clone());
    let stream = find(plain().with("streams", vec!["messages"]));
    assert!(stream.iter().all(|id| id.stream == "messages"));
    let connection = find(plain().connection("mail-work"));
    assert!(connection.iter().all(|id| of(id).0 == "mail-work"));
    let ask = plain()
        .connection("mail-work")
        .with("streams", vec!["messages"])
        .filter("folder", "inbox");
    let shown = surface.streams(
        &who,
        plain().with("stream", "messages").connection("mail-work"),
    );
    assert!(shown[0].fields.contains_key("folder"));
    let folders = surface.figures(
        &who,
        "messages",
        "count",
        plain().connection("mail-work").with("group_by", "folder"),
    );
    let groups = folders.groups.unwrap();
    let known = groups.iter().any(|(key, ..)| key == "inbox");
    assert!(known, "{groups:?}");
    for id in find(ask).iter().take(3) {
        assert_eq!(of(id), ("mail-work".to_owned(), "messages".to_owned()));
        let record = surface.record(&who, id, plain());
        assert_eq!(record.data["folder"], "inbox");
    }
}

pub(crate) fn phrases_prefixes_and_exclusions_are_understood(surface: Surface) {
    let who = only("notes");
    let find = |words: &str| {
        let found = surface.found(&who, words, plain().limit(50));
        found.ids().into_iter().collect::<BTreeSet<Id>>()
    };
    let phrase = find("\"Allergic to hazelnuts\"");
    assert_eq!(phrase.len(), 1);
    assert!(find("hazeln*").is_superset(&phrase));
    assert!(find("HAZELNUTS").is_superset(&phrase));
    assert!(!find("hazelnuts -allergic").contains(phrase.first().unwrap()));
    assert!(find("\"hazelnuts to Allergic\"").is_empty());
    assert!(find("-hazelnuts").is_empty());
}

pub(crate) fn hits_are_counted_when_asked(surface: Surface) {
    let who = archives();
    let ask = plain().limit(2).with("count", "exact");
    let found = surface.found(&who, WORDS[1], ask);
    let all = all(surface, &who, WORDS[1], &plain().limit(10));
    let all: usize = all.iter().map(|page| page.hits.len()).sum();
    assert_eq!(found.count, Some(all as u64));
    let found = surface.found(&who, WORDS[1], plain().limit(2));
    assert_eq!(found.count, None);
}

pub(crate) fn nothing_found_is_an_answer(surface: Surface) {
    let found = surface.found(&whole(), "xylophonquarz", plain().with("count", "exact"));
    assert_eq!((found.hits.len(), found.count), (0, Some(0)));
    assert_eq!(found.cursor, None);
}
