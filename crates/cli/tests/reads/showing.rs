//! What a person sees.

use crate::desk::{library, read, without_cursors};

#[test]
fn records_are_listed_with_their_fields_and_every_cut_says_how_to_go_on() {
    // TR-15: beside a record stands the time its stream declares, and apart from it when it was emitted or imported.
    let home = library();
    let listed = read(
        &home,
        &["query", "books", "--limit", "2", "--count", "exact"],
    );
    assert_eq!(
        without_cursors(&listed.succeeds().stdout),
        "library-home/books:b3  Home  2026-03-03 12:00:00 +02:00  (emitted or imported 2026-03-03 14:00:00 +02:00)
  id         b3
  bought_at  2026-03-03 12:00:00 +02:00
  title      Salt
  text       null
  genre      food
  pages      210

library-home/books:b2  Home  2026-03-02 12:00:00 +02:00  (emitted or imported 2026-03-02 14:00:00 +02:00)
  id         b2
  bought_at  2026-03-02 12:00:00 +02:00
  title      Bread
  text       Flour. Water, and \\u{1b}[31m salt\\u{202e}.
  genre      food
  pages      96

2 records of 3; more follow:
  pdpp query books --count exact --limit 2 --cursor CURSOR
"
    );
    let args = [
        "query",
        "books",
        "--filter",
        "pages>=300",
        "--fields",
        "title,text,tags",
        "--expand",
        "loans",
    ];
    let cut = "word ".repeat(32).trim_end().to_owned();
    assert_eq!(
        read(&home, &args).succeeds().stdout,
        format!(
            "library-home/books:b1  Home  (emitted or imported 2026-03-01 14:00:00 +02:00)
  title  Tides
  text   {cut} \u{2026}
    160 of 520 characters; the rest:
    pdpp read library-home/books:b1 text --offset-chars 160
  tags   [\"salt\", \"moon\"]
  loans:
    pdpp fetch library-home/loans:l1
    pdpp fetch library-home/loans:l2
    and more; all of them:
    pdpp query loans --connection-id library-home --filter book_id=b1

1 record.
"
        )
    );
    let none = read(&home, &["query", "books", "--filter", "genre=law"]);
    assert_eq!(none.succeeds().stdout, "0 records.\n");
}

#[test]
fn a_record_and_a_window_are_shown_as_they_are_set() {
    let home = library();
    assert_eq!(
        read(&home, &["fetch", "books:b2"]).succeeds().stdout,
        "library-home/books:b2  Home  2026-03-02 12:00:00 +02:00  (emitted or imported 2026-03-02 14:00:00 +02:00)
  id         b2
  bought_at  2026-03-02 12:00:00 +02:00
  title      Bread
  text
    Flour.
    \tWater, and \\u{1b}[31m salt\\u{202e}.
  genre      food
  pages      96
"
    );
    let window = [
        "read",
        "books:b1",
        "text",
        "--q",
        "lamp",
        "--before-chars",
        "5",
        "--after-chars",
        "6",
    ];
    assert_eq!(
        read(&home, &window).succeeds().stdout,
        "word [lamp] word \n
Characters 295 to 310 of 520.
Next:
  pdpp read books:b1 text --offset-chars 310
Before:
  pdpp read books:b1 text --offset-chars 280
The whole record:
  pdpp fetch books:b1
"
    );
    let whole = read(&home, &["read", "library-home/books:b2", "title"]);
    assert_eq!(
        whole.succeeds().stdout,
        "Bread\n\nAll 5 characters.\nThe whole record:\n  pdpp fetch library-home/books:b2\n"
    );
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    let home = library();
    for args in [
        &["schema"][..],
        &["search", "salt"],
        &["query", "books"],
        &["fetch", "books:b1"],
    ] {
        let shown = read(&home, args).succeeds().stdout;
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn help_topics_answer_what_the_options_cannot() {
    let home = crate::harness::Home::new();
    for topic in ["declarations", "ids", "filters", "grants"] {
        let told = home.run(&["help", topic]).succeeds().stdout;
        assert!(
            told.lines().count() > 3 && told.lines().all(|line| line.len() <= 120),
            "{told}"
        );
    }
    let help = home.run(&["help", "query"]).succeeds().stdout;
    assert!(help.contains("--changes-since"), "{help}");
    let all = home.run(&["help"]).succeeds().stdout;
    assert!(
        all.contains("pdpp help TOPIC, with TOPIC one of declarations, ids"),
        "{all}"
    );
    let unknown = home.run(&["help", "idz"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("did you mean 'ids'?"),
        "{}",
        unknown.stderr
    );
}
