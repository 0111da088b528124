//! What a person sees.

use crate::desk::{library, read, without_cursors};

#[test]
fn the_schema_is_an_index_and_then_one_stream_in_detail() {
    // EV-18
    let home = library();
    let index = read(&home, &["schema"]).succeeds().stdout;
    assert_eq!(
        index,
        "STREAM  CONNECTOR  FIELDS  CONNECTIONS
books   library    8       library-home (Home)
loans   library    3       library-home (Home)

The fields of a stream and what they accept:
  pdpp schema --stream books
Records of all streams by words:
  pdpp search WORDS
"
    );
    let detail = "books  library
  about        Books on the shelf.
  connections  library-home (Home)
  key          id
  sort         bought_at
  views        short
  expand       loans

  FIELD      TYPE         ROLE   SEARCH  FILTER       AGGREGATE
  id         string                      =
  title      string       title  words   =
  text       string|null  body   words   =
  genre      string                      =            count_distinct group_by
  pages      integer                     = >= > <= <  max sum
  price      number                      =
  bought_at  string                      = >= > <= <  group_by_time max min
  tags       array

Its records:
  pdpp query books --connection-id library-home
";
    for more in [
        &[][..],
        &["--detail", "full"],
        &["--connection-id", "library-home"],
    ] {
        let args = [&["schema", "--stream", "books"], more].concat();
        assert_eq!(read(&home, &args).succeeds().stdout, detail);
    }
    let short = read(&home, &["schema", "--stream", "books", "--view", "compact"]);
    let short = short.succeeds().stdout;
    assert!(
        short.contains("bought_at  string                      = >= > <= <"),
        "{short}"
    );
}

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
fn figures_are_one_line_or_a_table() {
    let home = library();
    for (args, shown) in [
        (&["books", "count"][..], "3\n"),
        (
            &["books", "sum", "--field", "pages", "--filter", "genre=food"],
            "306\n",
        ),
        (
            &["books", "max", "--field", "bought_at"],
            "2026-03-03 12:00:00 +02:00\n",
        ),
        (
            &["books", "max", "--field", "pages", "--filter", "genre=law"],
            "null\n",
        ),
        (
            &["books", "sum", "--field", "pages", "--group-by", "genre"],
            "GENRE  COUNT  SUM\nfood   2      306\nsea    1      320\n",
        ),
        (
            &[
                "books",
                "count",
                "--group-by-time",
                "bought_at",
                "--granularity",
                "day",
                "--limit",
                "2",
            ],
            "BOUGHT_AT   COUNT\n2026-03-01  1\n2026-03-02  1\n\nRecords in groups that are not shown: 1; more groups:\n  pdpp aggregate books count --group-by-time bought_at --granularity day --limit 4\n",
        ),
        (
            &[
                "books",
                "count",
                "--group-by",
                "genre",
                "--filter",
                "genre=law",
            ],
            "no groups: no record matches\n",
        ),
    ] {
        let args = [&["aggregate"], args].concat();
        assert_eq!(read(&home, &args).succeeds().stdout, shown, "{args:?}");
    }
}

#[test]
fn hits_show_their_evidence_and_the_command_that_reads_on() {
    // PA-05
    let home = library();
    let found = read(&home, &["search", "salt", "--count", "exact"]);
    assert_eq!(
        found.succeeds().stdout,
        "Bread  Home  2026-03-02 12:00:00 +02:00
  text: Flour. Water, and \\u{1b}[31m [salt]\\u{202e}.
    pdpp read library-home/books:b2 text --offset-chars 0 --limit-chars 31
  pdpp fetch library-home/books:b2

Salt  Home  2026-03-03 12:00:00 +02:00
  title: [Salt]
    pdpp read library-home/books:b3 title --offset-chars 0 --limit-chars 4
  pdpp fetch library-home/books:b3

2 hits of 2.
"
    );
    let none = read(&home, &["search", "--", "-salt"]).succeeds();
    assert_eq!(
        none.stdout,
        "0 hits.\nTo try: a word that must occur: -words only leave out.\n"
    );
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
