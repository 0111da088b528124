//! The surfaces held against each other: one question, equal answers, and continuations that work as they are given.

use contract::upstream::Get;

use crate::answer::{Excerpt, Found, Id, Window};
use crate::body;
use crate::generated::{CONNECTIONS, WORDS};
use crate::surface::{Ask, Surface, get, plain};
use crate::world::{Grant, archives, life, only, whole};

/// What people ask and what is hard to carry.
fn readers() -> [Grant; 4] {
    let narrow = format!(
        "--connection {} --stream entries --fields id,title,text,size,at --since 2026-02-01",
        CONNECTIONS[0]
    );
    [
        whole(),
        archives(),
        only("mail-work"),
        life().grant(&narrow),
    ]
}

#[test]
fn every_surface_finds_the_same_with_the_same_evidence() {
    // PA-01, PA-06: identity, field path, preview, truncation state, continuation
    let searches = [
        ("bridge vendor", plain()),
        ("Ironleaf", plain().limit(25).with("count", "exact")),
        ("会議", plain().limit(20)),
        ("\"Entry 3\"", plain()),
        (WORDS[0], plain().limit(20)),
        (WORDS[2], plain().connection(CONNECTIONS[0])),
        ("not a word of this stands anywhere", plain()),
        ("-excluded", plain()),
    ];
    for who in readers() {
        for (words, ask) in &searches {
            let ask = if ask_has_limit(ask) {
                ask.clone()
            } else {
                // What is asked when nothing is said differs: tools ask for less.
                ask.clone().limit(10)
            };
            let mut found = Surface::ALL
                .map(|surface| surface.search(&who, words, &ask).map(Found::steady))
                .into_iter();
            let first = found.next().unwrap();
            for mut other in found {
                if let (Ok(first), Ok(other)) = (&first, &mut other) {
                    restore_what_tools_leave_out(other, first);
                }
                assert_eq!(other, first, "{words}");
            }
        }
    }
}

fn ask_has_limit(ask: &Ask) -> bool {
    format!("{ask:?}").contains("\"limit\"")
}

/// The tools cut a preview that is longer than their budget, and say so. Where one is a part of what REST has, it is
/// taken for the same. Of a text that stands there whole they name no window: the one that is read by itself holds it.
fn restore_what_tools_leave_out(found: &mut Found, whole: &Found) {
    let excerpts =
        |found: &Found| -> usize { found.hits.iter().map(|hit| hit.excerpts.len()).sum() };
    assert_eq!(excerpts(found), excerpts(whole));
    let cut = found.hits.iter_mut().flat_map(|hit| &mut hit.excerpts);
    let long = whole.hits.iter().flat_map(|hit| &hit.excerpts);
    for (cut, long) in cut.zip(long) {
        if !long.truncated {
            assert!(cut.read.offset == long.read.offset && cut.read.limit >= long.read.limit);
            cut.read.limit = long.read.limit;
        }
        if cut.preview != long.preview {
            assert!(
                long.preview.len() > 300 && cut.truncated,
                "{cut:?} of {long:?}"
            );
            let part = cut.preview.trim_matches('\u{2026}').trim();
            assert!(long.preview.contains(part), "{part} in {long:?}");
            assert!(part.contains("<mark>"), "{part}");
            *cut = Excerpt {
                read: cut.read.clone(),
                ..long.clone()
            };
        }
    }
}

#[test]
fn links_of_rest_lead_on_as_they_are() {
    let who = whole();
    for target in [
        "/v1/streams/transactions/records?limit=100&fields=number",
        "/v1/search?q=Ironleaf&limit=40",
        "/v1/streams/notes/records?changes_since=beginning&limit=30&fields=id",
    ] {
        let mut next = Some(target.to_owned());
        let mut seen = Vec::new();
        while let Some(link) = next {
            let body = get(&who, &link).unwrap();
            for one in body["data"].as_array().unwrap() {
                let key = one.get("record_key").or(one.get("id")).unwrap();
                seen.push((
                    one["connection_id"].clone(),
                    one["stream"].clone(),
                    key.clone(),
                ));
            }
            next = body["links"]["next"].as_str().map(str::to_owned);
        }
        let before = seen.len();
        assert!(before > 60, "{target}: {before}");
        seen.sort_by_key(|key| format!("{key:?}"));
        seen.dedup();
        assert_eq!(seen.len(), before, "{target}");
    }
    // PA-03: the route of an excerpt with its parameters is a request.
    let body = get(&who, "/v1/search?q=bridge%20vendor").unwrap();
    for hit in body["data"].as_array().unwrap() {
        let text = |name: &str| hit[name].as_str().unwrap();
        let route = Get::v1(["streams", text("stream"), "records", text("record_key")]).target();
        let connection = text("connection_id");
        for excerpt in hit["evidence_excerpts"].as_array().into_iter().flatten() {
            let read = &excerpt["read"];
            let target = format!(
                "{route}/field-window?connection_id={connection}&field={}&offset_chars={}&limit_chars={}",
                excerpt["field_path"].as_str().unwrap(),
                read["offset_chars"],
                read["limit_chars"]
            );
            let window = get(&who, &target).unwrap();
            let around = window["window"]["text"].as_str().unwrap();
            let at = |name: &str| usize::try_from(excerpt[name].as_u64().unwrap()).unwrap();
            let start = at("text_start_chars");
            let from = start - usize::try_from(read["offset_chars"].as_u64().unwrap()).unwrap();
            let length = at("text_end_chars") - start;
            let slice: String = around.chars().skip(from).take(length).collect();
            let escaped = slice
                .replace("<mark", "&lt;mark")
                .replace("</mark", "&lt;/mark");
            let preview = excerpt["preview_text"].as_str().unwrap();
            assert_eq!(
                preview.replace("<mark>", "").replace("</mark>", ""),
                escaped
            );
        }
        let record = get(&who, &format!("{route}?connection_id={connection}")).unwrap();
        assert_eq!(record["id"], hit["record_key"]);
    }
}

#[test]
fn a_window_of_one_surface_goes_on_at_another() {
    // What one surface calls next, every other takes.
    let who = archives();
    let id = Id::new(CONNECTIONS[0], "entries", "plain");
    let mut offset = 0;
    let mut windows: Vec<Window> = Vec::new();
    for surface in Surface::ALL {
        let ask = plain()
            .with("offset_chars", offset)
            .with("limit_chars", 700);
        let window = surface.window(&who, &id, "text", ask);
        offset = window.next.unwrap();
        windows.push(window);
    }
    assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start));
    // A cursor is bound to the question, not to the surface that asked.
    let ask = |cursor: Option<&str>| {
        let ask = plain().connection(CONNECTIONS[0]).limit(3);
        cursor.map_or(ask.clone(), |cursor| ask.cursor(cursor))
    };
    let mut cursor: Option<String> = None;
    let mut keys = Vec::new();
    for surface in Surface::ALL {
        let page = surface.page(&who, "entries", ask(cursor.as_deref()));
        keys.extend(page.keys().iter().map(ToString::to_string));
        cursor = page.cursor;
    }
    let whole = Surface::Rest
        .query(
            &who,
            "entries",
            plain()
                .connection(CONNECTIONS[0])
                .limit(3 * Surface::ALL.len() as u64),
        )
        .unwrap();
    assert_eq!(keys, whole.keys());
    let body = get(
        &who,
        "/v1/streams/entries/records?connection_id=archive-east&limit=1",
    );
    assert_eq!(body::page(&body.unwrap()).keys(), whole.keys()[..1]);
}
