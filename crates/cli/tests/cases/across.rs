//! The surfaces held against each other: one question, equal answers, and continuations that work as they are given.

use std::collections::BTreeSet;

use contract::upstream::Get;
use serde_json::{Value, json};

use crate::answer::{Excerpt, Found, Id, Page, Window};
use crate::body;
use crate::generated::{CONNECTIONS, WORDS, keys};
use crate::surface::{Ask, Surface, get, plain};
use crate::tool::{self, Reply, named};
use crate::world::{Grant, archives, life, only, whole};

/// Asks all surfaces and expects one answer.
fn agree<T: PartialEq + std::fmt::Debug>(ask: impl Fn(Surface) -> T) -> T {
    let mut answers = Surface::ALL
        .map(|surface| (surface, ask(surface)))
        .into_iter();
    let (_, first) = answers.next().unwrap();
    for (surface, answer) in answers {
        assert_eq!(answer, first, "{surface:?}");
    }
    first
}

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
fn every_surface_shows_the_same_schema() {
    // PA-01
    for who in readers() {
        let index = agree(|surface| {
            let mut streams = surface.streams(&who, plain());
            // The index of the tools leaves the fields to the next call.
            for stream in &mut streams {
                stream.fields.clear();
            }
            streams
        });
        for stream in index {
            let ask = || {
                plain()
                    .with("stream", stream.name.as_str())
                    .connection(&stream.connections[0])
            };
            let _ = agree(|surface| surface.streams(&who, ask()));
        }
    }
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
                    restore_long_previews(other, first);
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
/// taken for the same.
fn restore_long_previews(found: &mut Found, whole: &Found) {
    let excerpts =
        |found: &Found| -> usize { found.hits.iter().map(|hit| hit.excerpts.len()).sum() };
    assert_eq!(excerpts(found), excerpts(whole));
    let cut = found.hits.iter_mut().flat_map(|hit| &mut hit.excerpts);
    let long = whole.hits.iter().flat_map(|hit| &hit.excerpts);
    for (cut, long) in cut.zip(long) {
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
fn every_surface_lists_and_counts_the_same() {
    // PA-01
    for who in readers() {
        for stream in ["entries", "messages", "items"] {
            for ask in [
                plain(),
                plain().connection(CONNECTIONS[0]).range("size", "gte", 50),
                plain().connection("mail-work").with("count", "exact"),
                plain().connection("shop-kueche").fields(&["line"]),
                plain()
                    .connection(CONNECTIONS[0])
                    .with("changes_since", "beginning"),
            ] {
                let _ = agree(|surface| {
                    let told = surface.query(&who, stream, ask.clone().limit(5));
                    told.map(Page::steady)
                });
            }
            let groups = plain().connection(CONNECTIONS[0]).with("group_by", "kind");
            for ask in [plain(), groups] {
                let _ = agree(|surface| surface.aggregate(&who, stream, "count", ask.clone()));
            }
        }
    }
}

#[test]
fn every_surface_reads_the_same_record_and_window() {
    // PA-01
    for who in readers() {
        for (connection, stream, key) in [
            (CONNECTIONS[0], "entries", "a/b/c"),
            (CONNECTIONS[1], "entries", "e-010"),
            ("mail-work", "messages", "m-03041"),
            ("notes", "notes", "Family/Lina, health.md"),
            ("nowhere", "entries", "plain"),
        ] {
            let id = Id::new(connection, stream, key);
            for id in [&id, &id.bare()] {
                let _ = agree(|surface| {
                    let told = surface.fetch(&who, id, plain());
                    told.map(|mut record| {
                        // Where nothing stands, the tools show nothing.
                        record.data.retain(|_, value| !value.is_null());
                        record
                    })
                });
            }
            for (field, ask) in [
                (
                    "text",
                    plain().with("offset_chars", 30).with("limit_chars", 17),
                ),
                ("body", plain().with("q", "e").with("before_chars", 3)),
                ("secret", plain()),
            ] {
                let _ = agree(|surface| surface.read(&who, &id, field, &ask));
            }
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

/// The calls that a text shows, as tool and arguments.
fn calls(text: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for tool in [
        "schema",
        "query_records",
        "aggregate",
        "search",
        "read_record_field",
        "fetch",
    ] {
        for (at, _) in text.match_indices(&format!("{tool} {{")) {
            let args = text.get(at + tool.len() + 1..).unwrap();
            let mut values = serde_json::Deserializer::from_str(args).into_iter::<Value>();
            if let Some(Ok(args)) = values.next() {
                found.push((tool.to_owned(), args));
            }
        }
    }
    found
}

#[test]
fn calls_that_the_tools_show_work_as_they_are() {
    // EV-18, HD-04: from the index down to the whole record, each step named by the one before
    for surface in [Surface::Mcp, Surface::McpFar, Surface::McpHosted] {
        let who = whole();
        let call = |(name, args): (String, Value)| {
            let told: Reply = surface
                .call(&who, &name, &args)
                .unwrap_or_else(|refused| panic!("{name} {args}: {refused:?}"));
            told
        };
        let show = |name: &str, args: Value| call((name.to_owned(), args));
        let index = show("schema", json!({}));
        let shown = calls(&index.text);
        assert!(
            shown.iter().any(|(name, _)| name == "schema"),
            "{}",
            index.text
        );
        for shown in shown {
            call(shown);
        }
        let stream = show("schema", json!({"stream": "notes"}));
        for shown in calls(&stream.text) {
            call(shown);
        }

        let found = show("search", json!({"query": WORDS[0], "limit": 3}));
        let reads = calls(&found.text);
        assert!(!reads.is_empty(), "{}", found.text);
        for (name, args) in reads {
            assert_eq!(name, "read_record_field");
            let mut window = tool::window(&call((name.clone(), args.clone())));
            assert!(window.text.contains(WORDS[0]), "{window:?}");
            assert_eq!(window.id, named(&args));
            // On to the end, by nothing but what is shown.
            let mut next = calls(&call((name, args)).text);
            let mut end = window.end;
            for _ in 0..3 {
                let Some(step) = next
                    .into_iter()
                    .find(|(_, args)| args["offset_chars"].as_u64() == Some(end))
                else {
                    break;
                };
                let reply = call(step);
                window = tool::window(&reply);
                assert_eq!(window.start, end);
                end = window.end;
                next = calls(&reply.text);
            }
        }
        let first = found.text.split("first_fetch_id=").nth(1).unwrap();
        let id = first.split([' ', '\n']).next().unwrap();
        let id: Value = serde_json::from_str(id).unwrap_or_else(|_| id.into());
        let document = tool::record(&show("fetch", json!({"id": id})));
        assert!(document.data["text"].as_str().unwrap().contains(WORDS[0]));
    }
}

/// The word or JSON string that a text begins with, and what follows.
fn first_id(text: &str) -> (String, &str) {
    let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
    if let Some(Ok(id)) = quoted.next() {
        return (id, text.get(quoted.byte_offset()..).unwrap());
    }
    let end = text.find(' ').unwrap_or(text.len());
    let (id, rest) = text.split_at(end);
    (id.to_owned(), rest)
}

/// The ids that a list shows: one in each line, and the rest of them without their records.
fn shown_ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(". id=") {
            ids.push(first_id(rest).0);
        }
        let mut rest = line.strip_prefix("More ids: ").unwrap_or_default();
        while !rest.is_empty() {
            let (id, after) = first_id(rest);
            ids.push(id);
            rest = after.trim_start();
        }
    }
    ids
}

#[test]
fn ids_that_the_tools_show_name_the_records_beside_them() {
    // HD-04, ID-26
    for surface in [Surface::Mcp, Surface::McpFar, Surface::McpHosted] {
        let who = archives();
        let mut fetched = BTreeSet::new();
        let mut cursor = Value::Null;
        loop {
            let mut args = json!({"stream": "entries", "connection_id": CONNECTIONS[1], "limit": 5, "fields": ["id"]});
            if cursor.is_string() {
                args["cursor"] = cursor;
            }
            let reply = surface.call(&who, "query_records", &args).unwrap();
            let keys: Vec<Id> = tool::page(&reply)
                .records
                .into_iter()
                .map(|record| record.id)
                .collect();
            let ids = shown_ids(&reply.text);
            assert_eq!(ids.len(), keys.len(), "{}", reply.text);
            for (id, key) in ids.iter().zip(keys) {
                let args = json!({"id": id, "fields": ["id"]});
                let document = tool::record(&surface.call(&who, "fetch", &args).unwrap());
                assert_eq!(document.id, key);
                fetched.insert(key.record);
            }
            cursor = reply.structured["data"]["next_cursor"].clone();
            if !cursor.is_string() {
                break;
            }
        }
        assert_eq!(fetched, keys().into_iter().collect());
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
