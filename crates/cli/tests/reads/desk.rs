//! A small library to read in, the same each time, and how the commands it prints are run.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test program uses a part of it"
)]

use serde_json::{Value, json};

use crate::harness::Home;

const LIBRARY: &str = include_str!("library.json");

/// A text of 520 characters, a hundred and four words of which one is rare.
pub fn long_text() -> String {
    let words = |count: usize| "word ".repeat(count);
    format!("{}lamp {}", words(60), words(43))
}

/// Three books and three loans of one of them, in the connection `library-home`.
pub fn library() -> Home {
    let home = Home::new();
    let file = home.file("library.json", LIBRARY);
    home.run(format!("declare {file}")).succeeds();
    home.run("connections add library --name Home").succeeds();
    fill(&home);
    home
}

fn fill(home: &Home) {
    let book = |id: &str, day: u32, more: Value| {
        let mut data = json!({"id": id, "bought_at": format!("2026-03-{day:02}T10:00:00Z")});
        let members = data.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        json!({"key": id, "emitted_at": format!("2026-03-{day:02}T12:00:00Z"), "data": data})
    };
    let books = [
        book(
            "b1",
            1,
            json!({"title": "Tides", "text": long_text(), "genre": "sea", "pages": 320, "tags": ["salt", "moon"]}),
        ),
        book(
            "b2",
            2,
            json!({"title": "Bread", "text": "Flour.\n\tWater, and \u{1b}[31m salt\u{202e}.", "genre": "food", "pages": 96}),
        ),
        book(
            "b3",
            3,
            json!({"title": "Salt", "text": null, "genre": "food", "pages": 210}),
        ),
    ];
    let loan = |id: &str| json!({"key": id, "emitted_at": "2026-04-01T00:00:00Z", "data": {"id": id, "book_id": "b1", "to": "Ada"}});
    let loans = ["l1", "l2", "l3"].map(loan);
    for (stream, lines) in [("library/books", &books), ("library/loans", &loans)] {
        let lines = lines.each_ref().map(ToString::to_string).join("\n");
        let import = format!("import - --as {stream}");
        home.run_with(import, lines.as_bytes()).succeeds();
    }
}

pub fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with("pdpp "))
        .map(str::to_owned)
        .collect()
}

pub fn command(text: &str, start: &str) -> String {
    let mut found = commands(text);
    found.retain(|line| line.starts_with(start));
    assert_eq!(found.len(), 1, "{start} in {text}");
    found.remove(0)
}

/// The text with cursors and bookmarks, which are sealed anew each time, as a word.
pub fn without_cursors(text: &str) -> String {
    let mut out = String::new();
    let mut sealed = false;
    for (place, word) in text.split_inclusive([' ', '\n']).enumerate() {
        let bare = word.trim_end();
        let cursor = bare.len() > 40 && !bare.contains(['/', '[']);
        assert!(
            place == 0 || !sealed || cursor || bare == "beginning",
            "{text}"
        );
        sealed = matches!(bare, "--cursor" | "--changes-since");
        if let (true, Some((name, _))) = (cursor, bare.split_once('=')) {
            // A cursor that starts with a dash is written after a sign.
            out.push_str(name);
            out.push_str(" CURSOR");
            out.push_str(&word[bare.len()..]);
        } else if cursor {
            out.push_str("CURSOR");
            out.push_str(&word[bare.len()..]);
        } else {
            out.push_str(word);
        }
    }
    out
}
