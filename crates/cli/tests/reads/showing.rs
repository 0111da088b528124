//! What a person sees.

use super::desk::{library, without_cursors};

#[test]
fn records_are_listed_with_their_fields_and_every_cut_says_how_to_go_on() {
    // TR-15: beside a record stands the time its stream declares, and apart from it when it was emitted or imported.
    let home = library();
    let listed = home.run("query books --limit 2 --count exact");
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
    let query = "query books --filter pages>=300 --fields title,text,tags --expand loans";
    let cut = "word ".repeat(32).trim_end().to_owned();
    assert_eq!(
        home.run(query).succeeds().stdout,
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
    let none = home.run("query books --filter genre=law");
    assert_eq!(none.succeeds().stdout, "0 records.\n");
}

#[test]
fn a_record_is_shown_as_it_is_set() {
    let home = library();
    assert_eq!(
        home.run("fetch books:b2").succeeds().stdout,
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
}

#[test]
fn digits_and_order_are_kept_as_written() {
    let home = library();
    let line =
        r#"{"key":"b9","data":{"title":"Digits","id":"b9","price":12345678901234567890.1250}}"#;
    home.run_with("import - --as library/books", line.as_bytes())
        .succeeds();
    home.run("fetch books:b9 --json")
        .succeeds()
        .shows(r#""price":12345678901234567890.1250"#);
    home.run("fetch books:b9")
        .succeeds()
        .shows("price  12345678901234567890.1250\n");
}
