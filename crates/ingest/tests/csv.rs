//! How rows become records.

use std::io::{BufRead, BufReader};

use crate::memory::{self, Memory, refused, stream};
use ingest::{CsvImporter, ImportError, ImportReport, StreamChoice};

fn import(
    store: &Memory,
    name: &str,
    text: impl BufRead,
    limit: usize,
) -> Result<ImportReport, ImportError> {
    let acceptor = store.acceptor_for(StreamChoice::Always(stream(name)));
    let mut importer = CsvImporter::with_limit(text, &acceptor, limit);
    let (report, error) = store.try_import(&mut importer, "f.csv");
    error.map_or(Ok(report), Err)
}

fn notes(text: &[u8]) -> (Memory, ImportReport) {
    let store = Memory::new(memory::declaration());
    let report = import(&store, "notes", text, 1000).unwrap();
    (store, report)
}

fn header_error(text: &[u8]) -> String {
    let store = Memory::new(memory::declaration());
    import(&store, "notes", text, 1000).unwrap_err().to_string()
}

#[test]
fn cells_take_the_declared_type_and_numbers_keep_their_digits() {
    let (store, report) = notes(
        b"\xEF\xBB\xBFid,title,size,rating,done,tags,place,either,extra\r\n\
          1,\"a \"\"b\"\"\nc\",10,1.50,TRUE,\"[1, 2]\",\"{\"\"x\"\": 1}\",5,007\r\n",
    );
    assert_eq!(report.added, 1, "{:?}", report.rejections);
    assert_eq!(
        store.body("notes", "1").unwrap(),
        r#"{"id":"1","title":"a \"b\"\nc","size":10,"rating":1.50,"done":true,"tags":[1, 2],"place":{"x": 1},"either":"5","extra":"007"}"#
    );
}

#[test]
fn an_empty_cell_is_null_where_null_is_declared_and_absent_otherwise() {
    let (store, report) = notes(b"id,title,subtitle,size,rating,extra\n1,,,,,\n");
    assert_eq!(report.added, 1);
    assert_eq!(
        store.body("notes", "1").unwrap(),
        r#"{"id":"1","subtitle":null,"rating":null}"#
    );
}

#[test]
fn a_wrong_cell_is_refused_with_its_column_and_physical_line() {
    let (_, report) = notes(
        b"\xEF\xBB\xBFid,title,size\n\n1,\"two\nlines\",x\r\n\r\n2,t,1.5\n,t,1\n3,t\n4,t,1,2\n5,\xff,1\n6,t,+1\n7,t,1\n",
    );
    assert_eq!(
        refused(&report),
        [
            "3 invalid_field_type: column 'size' must be integer, got 'x'",
            "6 invalid_field_type: column 'size' must be integer, got 1.5",
            "7 missing_key: the primary key field 'id' is missing",
            "8 malformed_csv: the row has 2 cells and the header 3",
            "9 malformed_csv: the row has 4 cells and the header 3",
            "10 invalid_utf8: column 'title' is not UTF-8, got '\u{fffd}'",
            "11 invalid_field_type: column 'size' must be integer, got '+1'",
        ]
    );
    assert_eq!((report.read, report.added), (8, 1));
}

#[test]
fn a_cell_that_breaks_the_declaration_is_refused_with_line_column_and_value() {
    // TR-13: types, formats, allowed values, bounds, and what is required.
    let store = Memory::new(memory::declaration());
    let report = import(
        &store,
        "bookings",
        b"id,booked,valued_at,currency,amount,note\n\
          1,2026-03-01,2026-03-01T10:00:00Z,EUR,1.50,rent\n\
          2,01.03.2026,,EUR,1,x\n\
          3,,,EUR,1,x\n\
          4,2026-03-01,soon,EUR,1,x\n\
          5,2026-03-01,,CHF,1,x\n\
          6,2026-03-01,,EUR,-1,x\n\
          7,2026-03-01,,,,\n"
            .as_slice(),
        1000,
    )
    .unwrap();
    let told: Vec<_> = report
        .rejections
        .iter()
        .map(|one| {
            let (field, value) = (one.field.as_deref(), one.value.as_deref());
            (one.line, one.code.as_str(), field, value)
        })
        .collect();
    assert_eq!(
        told,
        [
            (3, "invalid_field_value", Some("booked"), Some("01.03.2026")),
            (4, "missing_field", Some("booked"), Some("")),
            (5, "invalid_field_value", Some("valued_at"), Some("soon")),
            (6, "invalid_field_value", Some("currency"), Some("CHF")),
            (7, "invalid_field_value", Some("amount"), Some("-1")),
        ]
    );
    assert_eq!(
        report.rejections[0].message,
        "column 'booked' must be a date such as 2026-03-01, got '01.03.2026'"
    );
    assert_eq!(
        report.rejections[1].message,
        "column 'booked' is required and its cell is empty"
    );
    assert_eq!((report.read, report.added), (7, 2));
    // Empty is null where null may stand, also in a required field.
    assert_eq!(
        store.body("bookings", "7").unwrap(),
        r#"{"id":"7","booked":"2026-03-01","valued_at":null,"note":null}"#
    );
    let headless = import(&store, "bookings", &b"id,note\n1,x\n"[..], 1000);
    assert_eq!(
        headless.unwrap_err().to_string(),
        "f.csv: the header row has no column 'booked', which is required by stream 'bookings'; it was read as UTF-8 with commas between the cells, and its columns are 'id', 'note'"
    );
}

#[test]
fn a_header_that_cannot_name_fields_is_an_error_that_says_how_it_was_read() {
    // TR-14
    let commas = "it was read as UTF-8 with commas between the cells, and its columns are";
    let no_id = "has no column 'id', which is the primary key of stream 'notes'";
    for (file, expected) in [
        (
            b"id,title,id\n1,2,3\n".as_slice(),
            format!("names the column 'id' twice; {commas} 'id', 'title', 'id'"),
        ),
        (
            b"id,,x\n",
            format!("gives column 2 no name; {commas} 'id', '', 'x'"),
        ),
        (b"name\nx\n", format!("{no_id}; {commas} 'name'")),
        (
            b"Buchungstag;Betr\xe4ge\n1;2\n",
            format!(
                "{no_id}; it was read as Windows-1252 with semicolons between the cells, \
                 and its columns are 'Buchungstag', 'Betr\u{e4}ge'"
            ),
        ),
    ] {
        assert_eq!(
            header_error(file),
            format!("f.csv: the header row {expected}")
        );
    }
}

/// What a file makes of the first note, read in chunks of a few bytes and all at once.
fn first_note(file: &[u8]) -> (String, Vec<String>) {
    let mut read = Vec::new();
    for capacity in [3, 7, 4096] {
        let store = Memory::new(memory::declaration());
        let reader = BufReader::with_capacity(capacity, file);
        let report = import(&store, "notes", reader, 1000).unwrap();
        assert_eq!(report.rejected, 0, "{:?}", report.rejections);
        read.push((store.body("notes", "1").unwrap(), report.notes));
    }
    assert!(read.windows(2).all(|two| two[0] == two[1]), "{read:?}");
    read.remove(0)
}

#[test]
fn what_stands_between_cells_is_found() {
    // TR-14
    let expected = r#"{"id":"1","title":"a, b","size":3}"#;
    for file in [
        "id;title;size\r\n1;a, b;3\r\n",
        "id\ttitle\tsize\n1\ta, b\t3\n",
        "id|title|size\n1|a, b|3",
        "id,title,size\n1,\"a, b\",3\n",
        "sep=;\r\nid;title;size\r\n1;a, b;3\r\n",
        "\"id\";\"title\";\"size\"\n1;\"a, b\";3\n",
    ] {
        assert_eq!(first_note(file.as_bytes()).0, expected, "{file}");
    }
    // Known names decide, not how often a character occurs.
    let named = b"id;title;what, when, where, why\n1;x;y\n";
    assert_eq!(
        first_note(named).0,
        r#"{"id":"1","title":"x","what, when, where, why":"y"}"#
    );
    let line = import(
        &Memory::new(memory::declaration()),
        "notes",
        &b"sep=;\nid;size\n1;x\n"[..],
        1000,
    );
    assert_eq!(line.unwrap().rejections[0].line, 3);
}

#[test]
fn what_the_bytes_mean_is_found() {
    // TR-14
    let text = "id;title\r\n1;M\u{fc}ller 5 \u{20ac}\r\n2;x\r\n";
    let expected = "{\"id\":\"1\",\"title\":\"M\u{fc}ller 5 \u{20ac}\"}";
    let wide = |bytes: fn(u16) -> [u8; 2], marked: bool| -> Vec<u8> {
        let mark = marked.then_some('\u{feff}');
        let text: String = mark.into_iter().chain(text.chars()).collect();
        text.encode_utf16().flat_map(bytes).collect()
    };
    for file in [
        text.as_bytes().to_vec(),
        format!("\u{feff}{text}").into_bytes(),
        wide(u16::to_le_bytes, true),
        wide(u16::to_be_bytes, true),
        wide(u16::to_le_bytes, false),
        wide(u16::to_be_bytes, false),
    ] {
        assert_eq!(first_note(&file), (expected.to_owned(), Vec::new()));
    }
    let western = b"id;title\r\n1;M\xfcller 5 \x80\r\n2;x\r\n";
    let (note, told) = first_note(western);
    assert_eq!(note, expected);
    assert_eq!(
        told,
        ["the file is not UTF-8; its letters are read as Windows-1252"]
    );
}

#[test]
fn bytes_that_are_no_text_of_the_encoding_refuse_their_row_alone() {
    let utf8 = "id,title\n1,\u{e4}\u{f6}\u{fc}\n2,".as_bytes();
    let (_, report) = notes(&[utf8, b"\xff\n3,x\n"].concat());
    assert_eq!((report.added, report.rejected), (2, 1));
    // TR-13: with what can be read of the value.
    let refused = &report.rejections[0];
    assert_eq!(refused.code.as_str(), "invalid_utf8");
    assert_eq!(refused.value.as_deref(), Some("\u{fffd}"));
    assert_eq!(
        refused.message,
        "column 'title' is not UTF-8, got '\u{fffd}'"
    );
    // A half of a pair in UTF-16.
    let mut wide: Vec<u8> = Vec::new();
    let (head, tail) = ("\u{feff}id,title\n1,", "\n2,y\n");
    wide.extend(head.encode_utf16().flat_map(u16::to_le_bytes));
    wide.extend([0x00, 0xd8]);
    wide.extend(tail.encode_utf16().flat_map(u16::to_le_bytes));
    let (_, report) = notes(&wide);
    assert_eq!((report.added, report.rejected), (1, 1));
    assert_eq!(report.rejections[0].code.as_str(), "invalid_utf8");
}

#[test]
fn a_refused_value_is_told_as_it_is_and_escaped_only_in_the_message() {
    // TR-13
    let (_, report) = notes(b"id,size\n1,\"t\xc3\xa4n \x1b[31m'\t\"\n");
    let refused = &report.rejections[0];
    assert_eq!(refused.value.as_deref(), Some("t\u{e4}n \u{1b}[31m'\t"));
    assert_eq!(
        refused.message,
        "column 'size' must be integer, got 't\u{e4}n \\u{1b}[31m'\\t'"
    );
    let long = format!("id,size\n1,{}\n", "x".repeat(200));
    let (_, report) = notes(long.as_bytes());
    let cut = format!("{}\u{2026}", "x".repeat(64));
    assert_eq!(report.rejections[0].value, Some(cut));
}

#[test]
fn a_file_without_records_says_so() {
    for empty in ["", "\n", "\n\n", "id,title", "id,title\n"] {
        let (_, report) = notes(empty.as_bytes());
        let told = ["the input holds no record, so nothing was imported"];
        assert_eq!(
            (report.read, &report.notes[..]),
            (0, &told.map(str::to_owned)[..]),
            "{empty:?}"
        );
    }
}

#[test]
fn a_row_that_is_too_long_is_refused_without_being_held() {
    let store = Memory::new(memory::declaration());
    let text = format!("id,title\n1,\"{}\"\n2,x\n", "long\n".repeat(50));
    let report = import(&store, "notes", text.as_bytes(), 100).unwrap();
    assert_eq!((report.read, report.added, report.rejected), (2, 1, 1));
    assert_eq!(report.rejections[0].code.as_str(), "line_too_long");
    assert_eq!(report.rejections[0].line, 2);
}

#[test]
fn a_quote_that_is_never_closed_refuses_its_row_and_says_what_was_lost() {
    let (store, report) = notes(b"id,title\n1,fine\n2,\"never closed\n3,x\n4,y\n");
    let lost = "the quote opened in line 3 is never closed; nothing from this row to the end of the file in line";
    let told = format!("3 malformed_csv: {lost} 5 was imported");
    assert_eq!(refused(&report), [told]);
    assert_eq!((report.read, report.added, report.rejected), (2, 1, 1));
    assert!(store.body("notes", "2").is_none());

    let (_, report) = notes(b"id,title\n\"1\n\",\"open");
    let told = format!("2 malformed_csv: {lost} 3 was imported");
    assert_eq!(refused(&report), [told]);

    // However much it swallows, it is still known to be the quote.
    let store = Memory::new(memory::declaration());
    let text = format!("id,title\n1,\"{}", "long\n".repeat(50));
    let report = import(&store, "notes", text.as_bytes(), 100).unwrap();
    assert_eq!(report.rejections[0].code.as_str(), "malformed_csv");
    assert_eq!((report.read, report.added), (1, 0));
}

#[test]
fn a_cell_that_goes_on_after_its_closing_quote_is_refused() {
    let (store, report) = notes(
        b"id,title\n1,\"ab\"cd\n2,\"ab\" \n3,\"open\n4,\"x\"\n5,\"\"\"q\"\"\"\n6,a \"b\" c\n7,\"\"\n",
    );
    let told = |row, line| {
        format!(
            "{row} malformed_csv: a cell goes on after its closing quote in line {line}; \
             write a quote inside a cell twice, and close each at the end of its cell"
        )
    };
    assert_eq!(refused(&report), [told(2, 2), told(3, 3), told(4, 5)]);
    assert_eq!((report.read, report.added), (6, 3));
    assert_eq!(
        store.body("notes", "5").unwrap(),
        r#"{"id":"5","title":"\"q\""}"#
    );
    assert_eq!(
        store.body("notes", "6").unwrap(),
        r#"{"id":"6","title":"a \"b\" c"}"#
    );
}

#[test]
fn the_quotes_of_a_header_must_fit_as_well() {
    assert_eq!(
        header_error(b"id,\"title\n1,x\n"),
        "f.csv: the header row has a quote that is opened in line 1 and never closed"
    );
    assert_eq!(
        header_error(b"\xEF\xBB\xBF\"id\"x,title\n"),
        "f.csv: the header row goes on after a closing quote in line 1; write a quote inside a cell twice"
    );
    assert_eq!(notes(b"\xEF\xBB\xBF\"id\",title\n1,x\n").1.added, 1);
}
