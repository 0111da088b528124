//! A small library to read in, the same each time, and how the commands it prints are run.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test program uses a part of it"
)]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, Ran};

const LIBRARY: &str = include_str!("library.json");
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_pdpp");

/// A text of 520 characters, a hundred and four words of which one is rare.
pub fn long_text() -> String {
    let words = |count: usize| "word ".repeat(count);
    format!("{}lamp {}", words(60), words(43))
}

/// Three books and three loans of one of them, in the connection `library-home`.
pub fn library() -> Home {
    let home = Home::new();
    let file = home.file("library.json", LIBRARY);
    home.run(&["declare", &file]).succeeds();
    add(&home, "Home");
    fill(&home, "library-home");
    home
}

/// The same in `library-home` and `library-town`.
pub fn two_libraries() -> Home {
    let home = library();
    add(&home, "Town");
    fill(&home, "library-town");
    home
}

fn add(home: &Home, name: &str) {
    home.run(&["connections", "add", "library", "--name", name])
        .succeeds();
}

fn fill(home: &Home, connection: &str) {
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
        home.run_with(
            &["import", "-", "--as", stream, "--connection", connection],
            lines.as_bytes(),
        )
        .succeeds();
    }
}

/// Runs the program in a time zone that needs no database.
pub fn read(home: &Home, args: &[&str]) -> Ran {
    let ran = home.command(args).env("TZ", "<+02>-2").output().unwrap();
    Ran::new(ran, home.folder())
}

/// Runs a command as it was printed, through a shell in which `pdpp` is the program.
pub fn verbatim(home: &Home, line: &str) -> Ran {
    let line = line.trim().replace('~', home.folder().to_str().unwrap());
    let folder = Path::new(PROGRAM).parent().unwrap();
    // Started by the harness, so that a server runs where one is to run.
    let mut ready = home.command(&[]);
    ready.arg("--version");
    let ran = Command::new("sh")
        .args(["-c", &format!("PATH={}:$PATH; {line}", folder.display())])
        .env("PDPP_DATA_DIR", home.data_dir())
        .env("TZ", "<+02>-2")
        .output()
        .unwrap();
    Ran::new(ran, home.folder())
}

/// The commands a text shows.
pub fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with("pdpp "))
        .map(str::to_owned)
        .collect()
}

/// The only command a text shows that starts like this.
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

/// A grant over the home library, its id and its token.
pub fn grant(home: &Home, args: &[&str]) -> (String, String) {
    let fixed = [
        "grant",
        "create",
        "--client",
        "agent",
        "--json",
        "--connection",
        "library-home",
    ];
    let made = home.run(&[&fixed, args].concat()).succeeds().json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("grant_id"), text("access_token"))
}
