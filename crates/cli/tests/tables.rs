//! Tables of which nothing is declared: looked at, shown, confirmed and imported.

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
        "Imported into 'bank': 3 rows: 3 added, 0 updated, 0 unchanged, 0 rejected.\n",
        "read as Windows-1252",
    ]);
    home.file("bank.csv", BANK);
    let again = home.run("import ~/bank.csv").exits(1);
    again.says_all(&[
        "Imported into 'bank': 3 rows: 0 added, 0 updated, 3 unchanged, 2 rejected.\n",
        "line 8: invalid_field_value: column 'Buchungstag' must be a date written day-month-year, got '30.02.2024'",
        "line 9: malformed_csv: the row has 5 cells and the header 4",
    ]);
    let rows = home.run("export rows").succeeds().stdout;
    assert!(
        rows.contains(
            r#""Buchungstag":"2024-01-31","Empfänger":"Müller","Betrag":-1234.56,"Konto":"007""#
        ),
        "{rows}"
    );
    let sum = home
        .run("aggregate rows sum --field Betrag --json")
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
        .says("2 rows: 2 added");
    home.run("import ~/books.json")
        .succeeds()
        .says("2 rows: 0 added, 0 updated, 2 unchanged");
    home.file(
        "walks.ndjson",
        "{\"place\":\"Shore\",\"km\":3.5}\n{\"place\":\"Shore\",\"km\":3.5}\n",
    );
    home.run("import ~/walks.ndjson --yes")
        .succeeds()
        .says("2 rows: 2 added");
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
        .says("Imported into 'list': 2 rows: 2 added");
}

#[test]
fn a_declaration_is_written_for_editing() {
    let home = Home::new();
    home.file("walks.tsv", "place\tkm\nShore\t3.5\n");
    let written = home.run("declare --from ~/walks.tsv").succeeds();
    home.file(
        "d.json",
        written.stdout.replace("\"walks\"", "\"My walks\""),
    );
    home.run("declare ~/d.json").succeeds().shows("walks\n");
    home.run("connections add walks --name Walks").succeeds();
    home.run("import ~/walks.tsv")
        .succeeds()
        .says("1 row: 1 added");
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
        .says("2 rows: 2 added");
    let found = home.run("query rows --json").succeeds().json();
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
