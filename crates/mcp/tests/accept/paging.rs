//! QR, UP-05 and LG-05: pages, bookmarks, counts and figures, as text alone shows them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::fake::{Reply, fixtures};

use crate::answer::Answer;
use crate::host::{Caller, each_way};

/// The value after `name=` in the first line, as it is written there: bare or a JSON string.
pub(crate) fn shown(answer: &Answer, name: &str) -> Option<String> {
    let line = answer.text.lines().next().unwrap_or_default();
    let at = line.find(&format!(" {name}="))? + name.len() + 2;
    let rest = &line[at..];
    if rest.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        return values.next()?.ok();
    }
    rest.split(' ').next().map(str::to_owned)
}

pub(crate) fn ids(text: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("More ids: ") {
            ids.extend(tokens(rest));
        } else if let Some((number, rest)) = line.split_once(". id=")
            && number.parse::<usize>().is_ok()
        {
            ids.extend(tokens(rest).into_iter().next());
        }
    }
    ids
}

/// Words, each bare or a JSON string.
fn tokens(mut text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',']);
        if text.is_empty() {
            return tokens;
        }
        if text.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
            let Some(Ok(token)) = values.next() else {
                return tokens;
            };
            let used = values.byte_offset();
            tokens.push(token);
            text = &text[used..];
        } else {
            let end = text.find(' ').unwrap_or(text.len());
            tokens.push(text[..end].to_owned());
            text = &text[end..];
        }
    }
}

// QR-01, QR-02
#[test]
fn cursor_bookmark_and_count_stand_in_text_as_they_are() {
    each_way(&fixtures::page(), |caller| {
        let page = caller.ok("query_records", json!({"stream": "orders"}));
        assert_eq!(shown(&page, "next_cursor").unwrap(), "cur_2");
        assert_eq!(shown(&page, "next_changes_since").unwrap(), "chg_2");
        assert_eq!(shown(&page, "count").unwrap(), "exact:42");
        let last = caller.ok(
            "query_records",
            json!({"stream": "orders", "cursor": "cur_2"}),
        );
        assert_eq!(shown(&last, "next_cursor"), None);
        assert!(!last.text.contains("has_more=true"));
        let hits = caller.ok("search", json!({"query": "order"}));
        assert_eq!(shown(&hits, "next_cursor").unwrap(), "scur_2");
        let last = caller.ok("search", json!({"query": "order", "cursor": "scur_2"}));
        assert_eq!(shown(&last, "next_cursor"), None);
    });
}

/// Every id of a stream, by text alone. What a page does not show is asked for as the text says.
pub(crate) fn read_all(caller: &Caller, tool: &str, args: &Value) -> Vec<String> {
    let mut seen = Vec::new();
    let mut args = args.clone();
    for _ in 0..400 {
        let page = caller.ok(tool, args.clone());
        if let Some(smaller) = page.text.split("not_shown=").nth(1) {
            let printed = crate::answer::printed(smaller, tool);
            let limit = smaller.split("\"limit\":").nth(1).unwrap();
            let limit: u64 = limit
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap()
                .parse()
                .unwrap();
            let mut next = printed.first().cloned().unwrap_or_else(|| args.clone());
            next["limit"] = json!(limit);
            assert_ne!(next, args, "the way to the unshown leads on");
            args = next;
            continue;
        }
        seen.extend(ids(&page.text));
        match shown(&page, "next_cursor") {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => return seen,
        }
    }
    panic!("no end");
}

// QR-04
#[test]
fn a_reader_of_text_alone_reaches_every_row_and_then_only_changes() {
    each_way(&fixtures::rows(60), |caller| {
        for limit in [json!(null), json!(7), json!(100)] {
            let seen = read_all(
                caller,
                "query_records",
                &json!({"stream": "mail", "limit": limit}),
            );
            let distinct: BTreeSet<&String> = seen.iter().collect();
            assert_eq!((seen.len(), distinct.len()), (60, 60));
            assert!(distinct.contains(&"c1/mail:r000".to_owned()));
        }
        // Bookmark, change, and only the change is read.
        let mut args = json!({"stream": "mail", "changes_since": "beginning", "limit": 100});
        let bookmark = loop {
            let page = caller.ok("query_records", args.clone());
            match (
                shown(&page, "next_cursor"),
                shown(&page, "next_changes_since"),
            ) {
                (Some(cursor), _) => {
                    args = json!({"stream": "mail", "limit": 100, "cursor": cursor});
                }
                (None, bookmark) => break bookmark.unwrap(),
            }
        };
        caller.rs.change(|state| {
            state.world.put(
                "c1",
                "mail",
                "r007",
                json!({"id": "r007", "subject": "changed", "folder": "sent", "size": 7}),
            );
        });
        let changes = caller.ok(
            "query_records",
            json!({"stream": "mail", "changes_since": bookmark}),
        );
        assert_eq!(ids(&changes.text), ["c1/mail:r007"]);
        // What a filter does to the count.
        let count = |filter: Value| {
            let args = json!({"stream": "mail", "count": "exact", "limit": 1, "filter": filter});
            shown(&caller.ok("query_records", args), "count").unwrap()
        };
        assert_eq!(count(json!({"folder": "sent"})), "exact:15");
        assert_eq!(count(json!({"size": {"lt": 7}})), "exact:7");
    });
}

// QR-05
#[test]
fn figures_and_schemas_show_such_handles_too() {
    let state = fixtures::schema()
        .on("/v1/streams/messages/aggregate", |_: &testkit::fake::Call| {
            Reply::json(200, &json!({"object": "aggregation", "metric": "count", "value": 3,
                "next_cursor": "acur_2", "has_more": true, "meta": {"count": {"kind": "exact", "value": 9}}}))
        })
        .on("/v1/schema", |_: &testkit::fake::Call| {
            Reply::json(200, &json!({"object": "schema", "connectors": [], "has_more": true, "next_cursor": "hcur_2"}))
        });
    each_way(&state, |caller| {
        let figure = caller.ok(
            "aggregate",
            json!({"stream": "messages", "connection_id": "cin_s1", "metric": "count"}),
        );
        assert!(figure.text.contains("acur_2"), "{}", figure.text);
        let schema = caller.ok("schema", json!({}));
        assert!(schema.text.contains("hcur_2"), "{}", schema.text);
    });
}

// LG-05
#[test]
fn a_long_list_says_how_many_are_not_shown_and_how_to_see_them() {
    each_way(&fixtures::big_of(30, 2_000), |caller| {
        let args = json!({"stream": "mail", "limit": 100});
        let page = caller.ok("query_records", args.clone());
        // AN-40: it ends by bytes, says so in both channels, and its cursor goes on exactly there.
        let shortened = &page.structured["page_shortened"];
        assert_eq!(shortened["asked"], 100, "{}", page.text);
        let told = format!("page_shortened={}of100", shortened["shown"]);
        assert!(page.text.contains(&told), "{}", page.text);
        assert_eq!(read_all(caller, "query_records", &args).len(), 30);
    });
}
