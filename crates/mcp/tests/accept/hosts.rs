//! Hosts as they are: each sees only a part of an answer, and each completes the same journey.
//!
//! Discover, search, inspect, read a long field to the end, fetch a projection, recover from an ambiguity.

use serde_json::{Value, json};
use testkit::fake::{Connector, Field, State, Stream, World};

use crate::answer::{Answer, printed};
use crate::host::{Caller, each_way};
use crate::windows::fenced;

/// Which part of an answer a host shows its model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sight {
    Content,
    Structured,
    Clipped(usize),
    /// The text without its middle, so many bytes in all.
    Gutted(usize),
}

/// Text with what a host leaves of it.
fn seen(text: &str, sight: Sight) -> String {
    let floor = |at: usize| text.floor_char_boundary(at.min(text.len()));
    match sight {
        Sight::Clipped(bytes) => text[..floor(bytes)].to_owned(),
        Sight::Gutted(bytes) if text.len() > bytes => {
            let half = bytes / 2;
            format!(
                "{}\n[…]\n{}",
                &text[..floor(half)],
                &text[floor(text.len() - half)..]
            )
        }
        _ => text.to_owned(),
    }
}

/// Two accounts with the same stream, and a long letter in each.
fn state() -> State {
    let stream = Stream::new("letters")
        .field(Field::id("id"))
        .field(Field::text("subject"))
        .field(Field::text("body"))
        .field(Field::time("sent_at").range(&["gte", "lt"]))
        .ordered_by("sent_at");
    let mail = Connector::new("mail")
        .connection("work", "Work")
        .connection("home", "Home")
        .stream(stream);
    let mut world = World::default().with(mail);
    for connection in ["work", "home"] {
        world.put(
            connection,
            "letters",
            "l1",
            json!({"id": "l1", "subject": format!("A letter at {connection}"),
            "body": letter(connection), "sent_at": "2026-04-01T00:00:00Z"}),
        );
    }
    State::new(world)
}

fn letter(connection: &str) -> String {
    let words: Vec<String> = (0..4_000).map(|i| format!("word{i}")).collect();
    let (before, after) = words.split_at(2_000);
    format!(
        "{} the porcelain {connection} agreement {}",
        before.join(" "),
        after.join(" ")
    )
}

/// The journey of one host. Everything it does next comes from what it saw.
struct Journey<'a> {
    caller: &'a Caller,
    sight: Sight,
    reads_resources: bool,
}

impl Journey<'_> {
    fn call(&self, tool: &str, args: &Value) -> Answer {
        let answer = self.caller.call(tool, args.clone());
        for part in answer.raw["content"].as_array().unwrap() {
            assert_eq!(part["type"], "text", "a host that knows only text goes on");
        }
        answer
    }

    fn sees(&self, answer: &Answer) -> String {
        match self.sight {
            Sight::Structured => answer.structured.to_string(),
            sight => seen(&answer.text, sight),
        }
    }

    /// Finds the first complete call of a tool in what is seen.
    fn next(&self, answer: &Answer, tool: &str) -> Option<Value> {
        match self.sight {
            Sight::Structured => structured_call(&answer.structured, tool),
            sight => printed(&seen(&answer.text, sight), tool).into_iter().next(),
        }
    }

    fn run(&self) {
        let index = self.call("schema", &json!({}));
        let saw = self.sees(&index);
        assert!(saw.contains("letters"), "{:?}: {saw}", self.sight);
        let stream = self.call("schema", &json!({"stream": "letters"}));
        let saw = self.sees(&stream);
        assert!(saw.contains("letters"), "{saw}");

        let hits = self.call("search", &json!({"query": "porcelain"}));
        let id = match self.sight {
            Sight::Structured => hits.structured["results"][0]["id"]
                .as_str()
                .unwrap()
                .to_owned(),
            sight => {
                let saw = seen(&hits.text, sight);
                let rest = saw.split("first_fetch_id=").nth(1).unwrap();
                rest.split_whitespace().next().unwrap().to_owned()
            }
        };
        let connection = id.split('/').next().unwrap();

        // Inspect: the proven words, by the printed call or by the id and field that were seen.
        let read = self.next(&hits, "read_record_field").unwrap_or_else(|| {
            assert!(
                matches!(self.sight, Sight::Clipped(_)),
                "{:?} saw no call: {}",
                self.sight,
                self.sees(&hits)
            );
            json!({"id": id, "field_path": "body", "q": "porcelain"})
        });
        let window = self.call("read_record_field", &read);
        if !matches!(self.sight, Sight::Clipped(_)) {
            assert!(self.sees(&window).contains("porcelain"), "{:?}", self.sight);
        }
        assert_eq!(self.long_field(&id), letter(connection), "{:?}", self.sight);

        let projected = self.call("fetch", &json!({"id": id, "fields": ["subject"]}));
        assert!(
            self.sees(&projected)
                .contains(&format!("A letter at {connection}")),
            "{:?}",
            self.sight
        );

        // Ambiguity: the error itself names what to choose from.
        let ambiguous = self.call("query_records", &json!({"stream": "letters"}));
        assert!(ambiguous.is_error);
        let saw = self.sees(&ambiguous);
        assert!(
            saw.contains("ambiguous_connection") && saw.contains("connection_id"),
            "{saw}"
        );
        assert!(saw.contains("work") && saw.contains("home"), "{saw}");
        let page = self.call(
            "query_records",
            &json!({"stream": "letters", "connection_id": "home"}),
        );
        assert!(self.sees(&page).contains("home/letters:l1"));
    }

    /// The field to its end, window by window.
    fn long_field(&self, id: &str) -> String {
        // A host that clips asks for windows it can show.
        let limit = match self.sight {
            Sight::Clipped(bytes) => bytes / 10,
            _ => 4_096,
        };
        let mut args =
            json!({"id": id, "field_path": "body", "offset_chars": 0, "limit_chars": limit});
        let mut whole = String::new();
        for _ in 0..4_000 {
            let window = self.call("read_record_field", &args);
            let next = self.next(&window, "read_record_field");
            whole += &self.window_text(&window);
            match next.filter(|next| next["offset_chars"].as_u64() > args["offset_chars"].as_u64())
            {
                Some(next) => args = next,
                None => return whole,
            }
        }
        panic!("no end");
    }

    fn window_text(&self, window: &Answer) -> String {
        if self.reads_resources {
            let uri = window.raw["_meta"]["dev.pdpp/field_window_uri"]
                .as_str()
                .unwrap();
            return fenced(&self.caller.resource(uri).unwrap());
        }
        match self.sight {
            Sight::Structured => window.structured["window"]["text"]
                .as_str()
                .unwrap()
                .to_owned(),
            Sight::Clipped(_) => {
                // The frame is clipped; what the fence begins is the window, as far as it is stated.
                let saw = self.sees(window);
                let stated = saw
                    .split("\nwindow of ")
                    .nth(1)
                    .unwrap_or_else(|| panic!("{saw}"));
                let chars: usize = stated.split(' ').next().unwrap().parse().unwrap();
                let body = stated.splitn(3, '\n').nth(2).unwrap_or_default();
                assert!(
                    body.chars().count() >= chars,
                    "the window is within sight: {saw}"
                );
                body.chars().take(chars).collect()
            }
            _ => fenced(&self.sees(window)),
        }
    }
}

/// The first `{tool, args}` in structured content, `next` before all others.
fn structured_call(value: &Value, tool: &str) -> Option<Value> {
    if let Some(next) = value.get("next")
        && next["tool"] == tool
    {
        return Some(next["args"].clone());
    }
    match value {
        Value::Object(members) if members.get("tool").is_some_and(|found| found == tool) => {
            members.get("args").cloned()
        }
        // The previous window leads back.
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "previous")
            .find_map(|(_, value)| structured_call(value, tool)),
        Value::Array(many) => many.iter().find_map(|value| structured_call(value, tool)),
        _ => None,
    }
}

// EV-18, EV-19
#[test]
fn every_host_completes_the_journey() {
    for (sight, reads_resources) in [
        (Sight::Content, false),
        (Sight::Structured, false),
        (Sight::Content, true),
        (Sight::Clipped(300), false),
        (Sight::Gutted(10_240), false),
    ] {
        each_way(&state(), |caller| {
            Journey {
                caller,
                sight,
                reads_resources,
            }
            .run();
        });
    }
}
