//! Tables of which nothing is declared: looked at, shown, confirmed and imported.

use crate::archives;
use crate::harness::Home;

/// As a bank writes it: lines before the header, decimal commas, days first, Windows letters, a total at the end.
const BANK: &[u8] =
    b"Konto;DE00\r\nZeitraum;Januar\r\n\r\nBuchungstag;Empf\xe4nger;Betrag;Konto\r\n\
    31.01.2024;M\xfcller;-1.234,56 EUR;007\r\n\
    02.02.2024;B\xe4cker;3,50 EUR;007\r\n\
    02.02.2024;B\xe4cker;3,50 EUR;007\r\n\
    30.02.2024;Niemand;1,00 EUR;007\r\n\
    Summe;;9;;\r\n";

/// Without the last two rows, which are none of the table.
fn good_rows() -> Vec<u8> {
    let lines = BANK.split_inclusive(|byte| *byte == b'\n').take(7);
    lines.collect::<Vec<_>>().concat()
}

#[test]
fn a_table_is_shown_and_imported_as_it_is_found_to_be() {
    let home = Home::new();
    home.file("Umsätze 2024.csv", good_rows());
    let shown = home.run("import '~/Umsätze 2024.csv'").exits(1);
    shown.says_all(&[
        "It would become:\n  FIELD        TYPE                  ROLE              EXAMPLE\n",
        "  row_id       text                  identifies a row  (a hash of it)\n",
        "  Buchungstag  date, day-month-year  time              31.01.2024\n",
        "  Betrag       number with ','",
        "Between cells stands ';'.\n",
        "The first rows:\n  {\"Buchungstag\":\"31.01.2024\",\"Empfänger\":\"Müller\"",
        "Guessed:\n  2 rows before the header are passed over\n",
        "no column identifies a row, so a hash of the whole row does",
        "hint: --yes imports it as shown above\n",
    ]);
    assert_eq!(home.run("connections --json").stdout, "[]\n");
    home.run("import '~/Umsätze 2024.csv' --dry-run").succeeds();
    assert_eq!(home.run("connections --json").stdout, "[]\n");
}

#[test]
fn rows_that_do_not_fit_are_refused_with_line_and_value_and_the_same_again_changes_nothing() {
    let home = Home::new();
    home.file("bank.csv", good_rows());
    let first = home.run("import ~/bank.csv --yes").succeeds();
    first.says_all(&[
        "Added the connection 'bank' for it.\n",
        "Imported into 'bank': 3 rows of bank: 3 added, 0 updated, 0 unchanged, 0 rejected.\n",
        "read as Windows-1252",
    ]);
    home.file("bank.csv", BANK);
    let again = home.run("import ~/bank.csv").exits(1);
    again.says_all(&[
        "Imported into 'bank': 3 rows of bank: 0 added, 0 updated, 3 unchanged, 2 rejected.\n",
        "line 8: invalid_field_value: column 'Buchungstag' must be a date written day-month-year, got '30.02.2024'",
        "line 9: malformed_csv: the row has 5 cells and the header 4",
    ]);
    let rows = home.run("export bank").succeeds().stdout;
    assert!(
        rows.contains(
            r#""Buchungstag":"2024-01-31","Empfänger":"Müller","Betrag":-1234.56,"Konto":"007""#
        ),
        "{rows}"
    );
    let sum = home
        .run("aggregate bank sum --field Betrag --json")
        .succeeds()
        .json();
    assert!(sum.to_string().contains("-1227.56"), "{sum}");
}

#[test]
fn lists_and_lines_of_json_are_tables_too() {
    let home = Home::new();
    home.file(
        "books.json",
        r#"[{"isbn":"1","title":"The sea","read_at":"2024-01-31","pages":310},{"isbn":"2","title":"Boats","read_at":null,"pages":12}]"#,
    );
    home.run("import ~/books.json --yes")
        .succeeds()
        .says("2 books: 2 added");
    home.run("import ~/books.json")
        .succeeds()
        .says("2 books: 0 added, 0 updated, 2 unchanged");
    home.file(
        "walks.ndjson",
        "{\"place\":\"Shore\",\"km\":3.5}\n{\"place\":\"Shore\",\"km\":3.5}\n",
    );
    home.run("import ~/walks.ndjson --yes")
        .succeeds()
        .says("2 walks: 2 added");
    // Beside another connection, the lines still know theirs.
    home.run("import ~/walks.ndjson")
        .succeeds()
        .says("2 walks: 0 added, 0 updated, 2 unchanged");
    let found = home.run("search shore --json").succeeds().json();
    assert_eq!(found["data"].as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn a_table_does_not_go_into_a_chat_because_both_have_an_id_and_a_name() {
    let home = Home::new();
    home.file(
        "_chat.txt",
        "12/31/2026, 21:14 - Anna: hello\n12/31/2026, 21:15 - Ben: hi\n",
    );
    home.run("import ~/_chat.txt").succeeds();
    home.file(
        "list.json",
        r#"[{"id":1,"name":"a","at":"2026-01-01"},{"id":2,"name":"b","at":"2026-01-02"}]"#,
    );
    home.run("import ~/list.json --yes")
        .succeeds()
        .says("Imported into 'list': 2 rows of list: 2 added");
}

#[test]
fn a_declaration_is_written_for_editing() {
    let home = Home::new();
    home.file("walks.tsv", "place\tkm\nShore\t3.5\n");
    let written = home.run("declare --from ~/walks.tsv").succeeds();
    home.file(
        "d.json",
        written.stdout.replacen("\"walks\"", "\"My walks\"", 1),
    );
    home.run("declare ~/d.json").succeeds().shows("walks\n");
    home.run("connections add walks --name Walks").succeeds();
    home.run("import ~/walks.tsv")
        .succeeds()
        .says("1 walk: 1 added");
    home.file("nothing.csv", "");
    home.run("declare --from ~/nothing.csv")
        .refused("error: ~/nothing.csv: it holds no rows that a declaration could be made of");
}

#[test]
fn what_is_said_of_a_table_is_not_guessed() {
    let home = Home::new();
    home.file(
        "odd.csv",
        "code;day;sum\n01;01/02/2024;1,5\n02;03/04/2024;2,5\n",
    );
    let said = "--key code --delimiter ';' --dates mdy --decimal , --type code=text";
    home.run(format!("import ~/odd.csv --yes {said}"))
        .succeeds()
        .says("2 rows of odd: 2 added");
    let found = home.run("query odd --json").succeeds().json();
    let first = found["data"].as_array().unwrap().iter();
    let first = first
        .map(|one| &one["data"])
        .find(|one| one["code"] == "01");
    assert_eq!(first.unwrap()["day"], "2024-01-02", "{found}");
    assert_eq!(first.unwrap()["sum"], 1.5, "{found}");
    home.run("declare --from ~/odd.csv --key nothing")
        .exits(1)
        .says("it has no column 'nothing'");
    home.run("declare --from ~/odd.csv --type day=integer")
        .exits(1)
        .says("not every cell of 'day' can be read as integer");
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/tables");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

#[test]
fn workbooks_and_databases_are_shown_and_imported_table_by_table() {
    for (file, name, shown, counts, word) in [
        (
            "boat.xlsx",
            "download.csv",
            "Stream 'household-costs', of sheet 'Household costs':\n  FIELD",
            "3 household costs, 3 trips: 6 added",
            "varnish",
        ),
        (
            "boat.db",
            "download",
            "Stream 'watches', of table 'watches':\n  FIELD    TYPE     ROLE              EXAMPLE\n  day      date",
            "2 rows of crew, 3 rows of log, 3 watches: 8 added",
            "lindqvist",
        ),
    ] {
        let home = Home::new();
        home.file(name, fixture(file));
        let asked = home.run(format!("import ~/{name}")).exits(1);
        asked.says_all(&[
            shown,
            "The first rows of ",
            "Guessed:\n",
            "--yes imports it as shown above",
        ]);
        home.run(format!("import ~/{name} --dry-run")).succeeds();
        assert_eq!(home.run("connections --json").stdout, "[]\n");
        home.run(format!("import ~/{name} --yes"))
            .succeeds()
            .says(format!("Imported into 'download': {counts}, 0 updated"));
        // Again, also under another name, nothing changes and nothing is asked.
        home.file("again", fixture(file));
        home.run("import ~/again")
            .succeeds()
            .says_all(&["Imported into 'download': ", ": 0 added, 0 updated"]);
        let found = home.run(format!("search {word} --json")).succeeds().json();
        assert_eq!(found["data"].as_array().unwrap().len(), 1, "{found}");
    }
}

#[test]
fn a_declaration_of_a_workbook_is_written_for_editing() {
    let home = Home::new();
    home.file("boat.xlsx", fixture("boat.xlsx"));
    let written = home.run("declare --from ~/boat.xlsx").succeeds().stdout;
    home.file(
        "d.json",
        written.replace("\"name\": \"trips\"", "\"name\": \"sailed\""),
    );
    home.run("declare ~/d.json").succeeds();
    home.run("connections add boat --name Boat").succeeds();
    home.run("import ~/boat.xlsx --as boat/sailed")
        .succeeds()
        .says("3 rows of sailed: 3 added");
    home.run("import ~/boat.xlsx --connection boat")
        .succeeds()
        .says("3 household costs, 3 rows of sailed: 3 added, 0 updated, 3 unchanged");
}

#[test]
fn tables_in_folders_and_archives_are_taken_where_they_stand_alone_or_are_asked_for() {
    let home = Home::new();
    let table = fixture("boat.xlsx");
    let rows = b"place,km\nShore,3.5\nHarbour,4\n".as_slice();
    let files: [(&str, &[u8]); 4] = [
        ("in/boat.xlsx", &table),
        ("in/walks.csv", rows),
        ("in/settings.json", b"{\"theme\": \"dark\"}"),
        ("in/numbers.json", b"[1, 2]"),
    ];
    home.file("tables.zip", archives::zip(&files));
    home.run("import ~/tables.zip --yes").succeeds().says_all(&[
        "3 household costs, 3 trips: 6 added",
        "Imported into 'walks': 2 walks: 2 added",
        "Files: 2 taken, 0 known and left, 2 unknown.",
    ]);
    let with_mail = [
        files.as_slice(),
        &[(
            "in/one.eml",
            b"From: a@example.org\nTo: b@example.org\nSubject: x\n\nHello",
        )],
    ];
    home.file("all.zip", archives::zip(&with_mail.concat()));
    home.run("import ~/all.zip").succeeds().says_all(&[
        "Files: 1 taken, 2 known and left, 2 unknown.",
        "left: 2 files: tables and JSON lines, which are imported with --yes or by themselves",
    ]);
    home.run("import ~/all.zip --yes").succeeds().says_all(&[
        "1 message: 0 added",
        "3 household costs, 3 trips: 0 added",
        "2 walks: 0 added",
    ]);
}

#[test]
fn a_table_goes_on_into_the_stream_that_an_earlier_release_made() {
    let home = Home::new();
    let rows = "id,place\n1,Shore\n2,Harbour\n";
    home.file("walks.csv", rows);
    // As it was declared when every table became the stream `rows`.
    let written = home.run("declare --from ~/walks.csv").succeeds().stdout;
    home.file(
        "d.json",
        written.replace(
            "\"name\": \"walks\",\n      \"description",
            "\"name\": \"rows\",\n      \"description",
        ),
    );
    home.run("declare ~/d.json").succeeds();
    home.run("connections add walks --name walks").succeeds();
    home.run("import ~/walks.csv --as walks/rows").succeeds();
    let before = home.run("export rows").succeeds().stdout;
    home.run("import ~/walks.csv --yes")
        .succeeds()
        .says("Imported into 'walks': 2 rows: 0 added, 0 updated, 2 unchanged");
    assert_eq!(home.run("export rows").succeeds().stdout, before);
    let connections = home.run("connections --json").succeeds().json();
    assert_eq!(connections.as_array().unwrap().len(), 1, "{connections}");
}

#[test]
fn a_folder_of_photos_is_taken_and_keeps_its_pictures_where_that_is_asked_for() {
    let home = Home::new();
    let photos = "../ingest/tests/exports/photos";
    home.run(format!("import {photos}"))
        .succeeds()
        .says("4 photos: 4 added");
    home.run(format!("import {photos} --pictures"))
        .succeeds()
        .says("4 photos, 4 files: 0 added, 4 updated");
}
