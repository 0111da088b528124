//! HD-04: from the index on, every handle that any text shows is followed to its end, in worlds that mean harm.
//!
//! A handle is what our own lines say: ids, cursors, printed calls, export routes, and the address in `_meta`. Text of
//! records is never taken for one: windows are skipped by their stated size, quoted labels are read as strings. What is
//! reached is compared with the world.

use std::collections::{BTreeSet, VecDeque};

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use testkit::fake::{Call, NEEDLE, Record, State, hostile};

use crate::answer::Answer;
use crate::host::Caller;
use crate::paging::{ids, shown};
use crate::wire::CURRENT;

const TOOLS: [&str; 6] = [
    "schema",
    "search",
    "query_records",
    "aggregate",
    "fetch",
    "read_record_field",
];
/// Calls of one crawl; a world is small, so that what needs more goes in circles.
const MOST: usize = 6_000;

struct Crawl {
    caller: Caller,
    records: Vec<Record>,
    /// Calls to make, each with the text that showed it.
    waiting: VecDeque<(String, Value, String)>,
    /// The text that is being followed.
    from: String,
    known: BTreeSet<String>,
    /// Records that `fetch` reached, by their place in the world.
    fetched: BTreeSet<usize>,
    /// Ids that a list or search showed.
    shown: usize,
    calls: usize,
}

impl Crawl {
    fn over(caller: Caller, state: &State) -> Crawl {
        Crawl {
            caller,
            records: state
                .world
                .records
                .iter()
                .filter(|record| !record.deleted)
                .cloned()
                .collect(),
            waiting: VecDeque::new(),
            from: String::new(),
            known: BTreeSet::new(),
            fetched: BTreeSet::new(),
            shown: 0,
            calls: 0,
        }
    }

    fn found(&mut self, tool: &str, args: Value) {
        if self.known.insert(format!("{tool} {args}")) {
            self.waiting
                .push_back((tool.to_owned(), args, self.from.clone()));
        }
    }

    fn run(&mut self) {
        self.found("schema", json!({}));
        self.found("search", json!({"query": NEEDLE, "limit": 100}));
        while let Some((tool, args, from)) = self.waiting.pop_front() {
            self.calls += 1;
            assert!(self.calls < MOST, "the crawl goes in circles");
            let (answer, asked) = self.caller.asked(&tool, args.clone());
            assert!(
                !answer.is_error,
                "dead end: {tool} {args}: {}\nshown by:\n{}",
                answer.text,
                without_window(&from)
            );
            self.from.clone_from(&answer.text);
            self.reached(&tool, &args, &answer, &asked);
            self.follow(&tool, &args, &answer);
        }
    }

    /// What a read reached is what its arguments mean.
    fn reached(&mut self, tool: &str, args: &Value, answer: &Answer, asked: &[Call]) {
        let Some(path) = asked
            .last()
            .filter(|_| ["fetch", "read_record_field"].contains(&tool))
        else {
            return;
        };
        let place = self.records.iter().position(|record| {
            let connection = path
                .value("connection_id")
                .is_none_or(|id| id == record.connection_id);
            connection && path.segments[2] == record.stream && path.segments[4] == record.key
        });
        let place = place.unwrap_or_else(|| panic!("{tool} {args} asked {}", path.raw_target));
        let record = &self.records[place];
        if tool == "fetch" {
            let metadata = &answer.structured["metadata"];
            assert_eq!(metadata["record_id"], record.key, "{args}");
            assert_eq!(metadata["stream"], record.stream, "{args}");
            assert_eq!(metadata["connection_id"], record.connection_id, "{args}");
            if let Some(field) = metadata["text_field"].as_str()
                && metadata["text_complete"] == true
            {
                assert_eq!(answer.structured["text"], record.data[field], "{args}");
            }
            self.fetched.insert(place);
        } else if let Some(text) = answer.structured["window"]["text"].as_str() {
            let field = args["field_path"].as_str().unwrap();
            let whole = match &record.data[field] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let start =
                usize::try_from(answer.structured["window"]["start_chars"].as_u64().unwrap())
                    .unwrap();
            let exact: String = whole
                .chars()
                .skip(start)
                .take(text.chars().count())
                .collect();
            assert_eq!(text, exact, "{args}");
        }
    }

    fn follow(&mut self, tool: &str, args: &Value, answer: &Answer) {
        // A document's text is JSON that mirrors the structured content; the calls in it are objects.
        if tool == "fetch" {
            self.follow_objects(&answer.structured["metadata"]);
            return;
        }
        let text = without_window(&answer.text);
        for next in TOOLS {
            for (call, is_ours) in printed_by_us(&text, next) {
                if is_ours {
                    self.found(next, usable(call));
                }
            }
        }
        for name in ["next_cursor"] {
            if let Some(cursor) = shown(answer, name) {
                let mut args = args.clone();
                args["cursor"] = json!(cursor);
                self.found(tool, args);
            }
        }
        if let Some(bookmark) = shown(answer, "next_changes_since") {
            let mut args = args.clone();
            args.as_object_mut().unwrap().remove("cursor");
            args["changes_since"] = json!(bookmark);
            self.found(tool, args);
        }
        if ["search", "query_records"].contains(&tool) {
            self.follow_ids(&text);
            self.follow_objects(&answer.structured["content_ladder"]);
        }
        if tool == "schema" {
            self.follow_index(&text);
        }
        if let Some(uri) = answer.raw["_meta"]["dev.pdpp/field_window_uri"].as_str() {
            assert_eq!(
                self.caller.resource(uri).as_ref(),
                Ok(&answer.text),
                "{uri}"
            );
        }
        self.follow_export(&text);
    }

    fn follow_objects(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if let (Some(tool), Some(args)) = (
                    members.get("tool").and_then(Value::as_str),
                    members.get("args"),
                ) {
                    self.found(tool, args.clone());
                    return;
                }
                // `fields` holds what the record says, which is no handle of ours.
                for (_, value) in members.iter().filter(|(name, _)| *name != "fields") {
                    self.follow_objects(value);
                }
            }
            Value::Array(many) => many.iter().for_each(|value| self.follow_objects(value)),
            _ => {}
        }
    }

    /// Ids of a list, with the connection where it is shown separately.
    fn follow_ids(&mut self, text: &str) {
        for line in text.lines() {
            let separate = line
                .split(" connection_id=")
                .nth(1)
                .filter(|_| line.contains(". id="));
            for id in ids(line) {
                let mut args = json!({"id": id});
                if let Some(rest) = separate {
                    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                    let quoted = rest.starts_with('"').then(|| values.next()?.ok()).flatten();
                    let bare = rest.split(' ').next().unwrap_or_default().to_owned();
                    args["connection_id"] = json!(quoted.unwrap_or(bare));
                }
                assert!(
                    !id.contains('…')
                        || self.records.iter().any(|record| id.ends_with(&record.key)),
                    "{id}"
                );
                self.shown += 1;
                self.found("fetch", args);
            }
        }
    }

    /// Every stream of the index with every connection beside it.
    fn follow_index(&mut self, text: &str) {
        for row in text
            .lines()
            .filter_map(|line| line.strip_prefix("stream name="))
        {
            let mut values = serde_json::Deserializer::from_str(row).into_iter::<String>();
            let stream = values.next().unwrap().unwrap();
            self.found("schema", json!({"stream": stream}));
            let connections = row.split(" connections=").nth(1).unwrap();
            for connection in connection_ids(connections) {
                self.found(
                    "schema",
                    json!({"stream": stream, "connection_id": connection}),
                );
                self.found(
                    "query_records",
                    json!({"stream": stream, "connection_id": connection, "limit": 100}),
                );
                self.found("aggregate", json!({"stream": stream, "connection_id": connection, "metric": "count", "group_by": "author"}));
            }
        }
    }

    /// A route that is named is answered.
    fn follow_export(&self, text: &str) {
        for line in text
            .lines()
            .filter_map(|line| line.strip_prefix("export: GET "))
        {
            let route = line.split(" at http").next().unwrap();
            let path = route.split('?').next().unwrap();
            let segments: Vec<_> = path
                .split('/')
                .skip(1)
                .map(|one| percent_decode_str(one).decode_utf8().unwrap())
                .collect();
            match segments
                .iter()
                .map(AsRef::as_ref)
                .collect::<Vec<_>>()
                .as_slice()
            {
                // The fake has no blobs; a blob is named by the id the record has.
                ["v1", "blobs", id] => assert_eq!(*id, "b1"),
                ["v1", "streams", stream, "records", key] => {
                    assert!(
                        self.records
                            .iter()
                            .any(|record| record.stream == *stream && record.key == *key),
                        "{route}"
                    );
                }
                _ => panic!("no such route: {route}"),
            }
        }
    }
}

/// The text without what stands between fences.
fn without_window(text: &str) -> String {
    let Some((head, rest)) = text.split_once("\nwindow of ") else {
        return text.to_owned();
    };
    let bytes: usize = rest
        .split(" characters, ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let body = rest.splitn(3, '\n').nth(2).unwrap();
    format!("{head}{}", &body[bytes..])
}

/// Calls of a tool in a text, and whether they are ours: what stands in quotes was said by a record.
fn printed_by_us(text: &str, tool: &str) -> Vec<(Value, bool)> {
    let opening = format!("{tool} {{");
    let mut found = Vec::new();
    for line in text.lines() {
        for (at, _) in line.match_indices(&opening) {
            let rest = &line[at + tool.len() + 1..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(call)) = values.next() {
                found.push((call, !is_quoted(line, at)));
            }
        }
    }
    found
}

/// Whether a place of a line is inside a JSON string.
fn is_quoted(line: &str, at: usize) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in line.bytes().take(at) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

/// A printed example with its placeholder replaced.
fn usable(mut call: Value) -> Value {
    if call["query"] == "words to find" {
        call["query"] = json!(NEEDLE);
    }
    call
}

/// `id "Label"|"odd id" "Label"`, the ids.
fn connection_ids(mut text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let string = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let value = values.next().unwrap().unwrap();
        (value, values.byte_offset())
    };
    loop {
        if text.starts_with('"') {
            let (id, used) = string(text);
            found.push(id);
            text = &text[used..];
        } else {
            let end = text.find([' ', '|']).unwrap_or(text.len());
            found.push(text[..end].to_owned());
            text = &text[end..];
        }
        if let Some(label) = text.strip_prefix(' ')
            && label.starts_with('"')
        {
            text = &label[string(label).1..];
        }
        match text.strip_prefix('|') {
            Some(rest) => text = rest,
            None => return found,
        }
    }
}

// HD-01, HD-04, HD-06, HD-09, ID-01, ID-05, ID-06, ID-26; budgets and schemas of every answer on the way
#[test]
fn every_visible_handle_leads_to_what_it_names() {
    // Small worlds, chosen so that the crawl of all of them stays short.
    for seed in [12, 19, 24, 26, 31, 38, 41, 44] {
        let state = hostile(seed);
        let caller = if seed % 2 == 0 {
            Caller::piped(state.clone(), "2025-11-25")
        } else {
            Caller::posting(state.clone(), CURRENT)
        };
        let mut crawl = Crawl::over(caller, &state);
        crawl.run();
        assert!(
            crawl.shown > 0 && crawl.calls > 20,
            "seed {seed}: {} calls",
            crawl.calls
        );
        assert_eq!(
            crawl.fetched.len(),
            crawl.records.len(),
            "seed {seed}: every record is reached"
        );
    }
}
