//! What a table is found to be holds for all its rows, whatever they are.

use std::io::Cursor;

use crate::memory::{Memory, stream};
use contract::declaration::Declaration;
use ingest::table::{
    self, DeclaredSource, Inferred, TableColumns, TablePlace, Told, ToldType, WrittenDate,
};
use ingest::{CsvImporter, Format, Input, JsonArrayImporter, StreamChoice};
use proptest::prelude::*;

fn infer(name: &str, text: &str) -> Option<Inferred> {
    let content = Cursor::new(text.as_bytes().to_vec());
    let input = Input::from_file(name, name, content).unwrap();
    table::infer(input, None, ("a table", "a-table"), &Told::default()).ok()
}

fn store_of(inferred: &Inferred) -> Memory {
    Memory::new(Declaration::parse(&inferred.declaration).unwrap())
}

#[test]
fn what_no_value_proves_is_said() {
    let inferred = infer("x.csv", "day,amount\n01/02/2024,\"1,234\"\n").unwrap();
    assert_eq!(
        inferred.doubts,
        [
            "no column identifies a row, so a hash of the whole row does; a row that changes comes as a new one",
            "'day': no date tells the order of day and month; day-month-year is assumed",
            "'amount': no number tells its decimal sign; '.' is assumed",
        ]
    );
    let numbered = infer("x.csv", "1;2024-01-31\n2;2024-02-01\n").unwrap();
    assert_eq!(
        numbered.doubts[0],
        "no row names the columns, so they are numbered"
    );
    assert!(numbered.declaration.contains("\"column_2\""));
}

/// Ten days and amounts, of which some values are others.
fn nearly(day: &str, amount: &str) -> String {
    let rows = (10..19).map(|day| format!("{day}.03.2024;{day},50\n"));
    format!("Tag;Summe\n{}{day};{amount}\n", rows.collect::<String>())
}

#[test]
fn a_column_that_few_values_make_a_text_says_so_and_can_be_told_to_be_none() {
    let table = nearly("31.02.2024", "n/a");
    let said = infer("x.csv", &table).unwrap().doubts;
    assert_eq!(
        said[1..],
        [
            "'Tag' is a text, because 1 of its 10 values cannot be read as date, such as '31.02.2024'; --type 'Tag=date' refuses their rows instead",
            "'Summe' is a text, because 1 of its 10 values cannot be read as number, such as 'n/a'; --type 'Summe=number' refuses their rows instead",
        ]
    );
    let told = Told {
        types: vec![
            ("Tag".to_owned(), ToldType::Date),
            ("Summe".to_owned(), ToldType::Number),
        ],
        ..Told::default()
    };
    let infer_told = |table: &str| {
        let input = Input::from_file("x.csv", "x.csv", Cursor::new(table.to_owned())).unwrap();
        table::infer(input, None, ("a table", "a-table"), &told)
    };
    let inferred = infer_told(&table).unwrap();
    assert_eq!(
        inferred.doubts[1..],
        [
            "'Tag': 1 of its 10 values cannot be read so, such as '31.02.2024'; their rows are refused",
            "'Summe': 1 of its 10 values cannot be read so, such as 'n/a'; their rows are refused",
        ]
    );
    let store = store_of(&inferred);
    let acceptor = store.acceptor_for(StreamChoice::Always(stream("a-table")));
    let report = store.import(&mut CsvImporter::new(table.as_bytes(), &acceptor));
    assert_eq!((report.added, report.rejected), (9, 1));
    // Below a statement stands its sum.
    let footed = infer(
        "x.csv",
        "Tag;Betrag\n05.03.2024;1,50\n31.03.2024;2,50\nSumme;4,00\n",
    );
    let said = &footed.unwrap().doubts[1];
    assert!(
        said.contains("1 of its 3 values") && said.contains("'Summe'"),
        "{said}"
    );
    // Ten names are no days with a slip.
    let names = table.replace(".03.2024", ". Haus");
    assert!(infer_told(&names).is_err());
    assert!(infer("x.csv", &names).unwrap().doubts[1].starts_with("'Summe'"));
}

#[test]
fn columns_without_rows_tell_no_types() {
    assert!(infer("x.csv", "day,amount\n").is_none());
    assert!(infer("x.csv", "day,amount\n1\n").is_none());
    assert!(infer("x.json", "[]").is_none());
}

#[test]
fn tables_of_banks_are_read_as_they_are_written() {
    for (text, expected) in [
        // A delimiter at the end of each row, but not of the header.
        (
            "Details,Posting Date,Amount,Check or Slip #\nDEBIT,06/03/2024,-5.75,,\nCREDIT,05/31/2024,2000.00,,\n",
            "{\"row_id\":\"3\",\"Details\":\"CREDIT\",\"Posting Date\":\"2024-05-31\",\"Amount\":2000.00,\"Check or Slip #\":null}",
        ),
        // A day in digits alone.
        (
            "\"Date\",\"Debit/credit\",\"Amount (EUR)\"\n\"20240603\",\"Debit\",\"12,34\"\n",
            "{\"row_id\":\"1\",\"Date\":\"2024-06-03\",\"Debit/credit\":\"Debit\",\"Amount (EUR)\":12.34}",
        ),
        (
            "Ticket;Code\n20240603;1\n",
            "{\"row_id\":\"1\",\"Ticket\":20240603,\"Code\":1}",
        ),
    ] {
        let inferred = infer("x.csv", text).unwrap();
        let store = store_of(&inferred);
        let acceptor = store.acceptor_for(StreamChoice::Always(stream("a-table")));
        let report = store.import(&mut CsvImporter::new(text.as_bytes(), &acceptor));
        assert_eq!(report.rejected, 0, "{:?}", report.rejections);
        let records = store.records.borrow();
        let bodies = records.values().map(|(_, body)| body.as_str());
        // Whatever the key is.
        let without_key = |body: &str| body.split_once(',').map(|(_, rest)| rest.to_owned());
        let bodies: Vec<_> = bodies.map(without_key).collect();
        assert!(bodies.contains(&without_key(expected)), "{bodies:?}");
    }
}

#[test]
fn an_order_of_dates_that_is_told_must_be_that_of_the_table() {
    let infer = |dates: &str| {
        let text = b"day,n\n31/05/2024,1\n";
        let input = Input::from_file("x.csv", "x.csv", Cursor::new(text.to_vec())).unwrap();
        let told = Told {
            dates: WrittenDate::parse(dates),
            ..Told::default()
        };
        table::infer(input, None, ("a table", "a-table"), &told)
    };
    assert!(infer("dmy").is_ok());
    let error = infer("mdy").unwrap_err().to_string();
    assert!(error.contains("month-day-year"), "{error}");
}

#[test]
fn a_table_that_shares_half_of_its_columns_is_another_one() {
    let comments = infer("x.csv", "Video ID,Channel ID,Text\nabc,c,Nice\n").unwrap();
    let declaration = Declaration::parse(&comments.declaration).unwrap();
    let declared = [DeclaredSource::from(&declaration)];
    let place = |columns: &[&str]| {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let table = TableColumns {
            stream: "x".to_owned(),
            columns,
        };
        table::place(&[table], ("x", Some(Format::Csv)), &declared)
    };
    assert_eq!(place(&["Video ID", "Added"]), TablePlace::New);
    let known = place(&["Video ID", "Text", "Added"]);
    assert!(matches!(known, TablePlace::Known(_)), "{known:?}");

    // And where it is imported as the other, it is refused, however short it is.
    let store = store_of(&comments);
    let acceptor = store.acceptor_for(StreamChoice::Always(stream("a-table")));
    let text = "Video ID,Added\nabc,2024-06-03\n";
    let (_, error) = store.try_import(&mut CsvImporter::new(text.as_bytes(), &acceptor), "x.csv");
    let error = error.unwrap().to_string();
    assert!(error.contains("names other columns"), "{error}");
}

#[test]
fn a_long_row_below_the_header_hides_no_column() {
    let long = "x".repeat(100_000);
    let text = format!("number,text\n1,\"{long}\"\n2,ok\n");
    let inferred = infer("x.csv", &text).unwrap();
    let names = inferred.tables[0].fields.iter().map(|field| &field.name);
    assert_eq!(names.collect::<Vec<_>>(), ["number", "text"]);
}

proptest! {
    #[test]
    fn every_row_fits_the_declaration_that_was_made_of_it(
        delimiter in prop::sample::select(vec![',', ';', '\t', '|']),
        rows in prop::collection::vec(
            prop::collection::vec(
                prop_oneof![
                    Just(String::new()),
                    "[0-9]{1,6}",
                    "-?[0-9]{1,3}[.,][0-9]{2}( EUR| €)?",
                    "[0-3][0-9][./-][0-1][0-9][./-](20)?[0-9]{2}",
                    "20[0-9]{2}-[0-1][0-9]-[0-3][0-9]( [0-2][0-9]:[0-5][0-9])?",
                    "true|false",
                    "[a-zäß ]{1,12}",
                ],
                3,
            ),
            1..40,
        ),
    ) {
        let mut text = format!("one{delimiter}two{delimiter}three\n");
        for row in &rows {
            let cells: Vec<String> = row.iter().map(|cell| format!("\"{cell}\"")).collect();
            text.push_str(&cells.join(&delimiter.to_string()));
            text.push('\n');
        }
        let inferred = infer("x.csv", &text).unwrap();
        let store = store_of(&inferred);
        let acceptor = store.acceptor_for(StreamChoice::Always(stream("a-table")));
        let import = || store.import(&mut CsvImporter::new(text.as_bytes(), &acceptor));
        let first = import();
        prop_assert_eq!((first.read, first.rejected), (rows.len() as u64, 0), "{:?}", first.rejections);
        prop_assert_eq!(import().added, 0);
    }

    #[test]
    fn every_object_fits_the_declaration_that_was_made_of_it(
        rows in prop::collection::vec(
            prop::collection::vec(
                (prop::sample::select(vec!["a", "b", "c"]), prop::sample::select(vec![
                    "null", "1", "2.5", "true", "\"x\"", "\"\"", "\"2024-01-31\"", "[1]", "[]", "[\"x\"]", "{\"d\":1}", "12345678901234567890",
                ])),
                0..4,
            ),
            1..20,
        ),
    ) {
        let rows: Vec<String> = rows
            .iter()
            .map(|row| {
                let mut members: Vec<String> = Vec::new();
                for (name, value) in row {
                    if !members.iter().any(|member| member.starts_with(&format!("\"{name}\""))) {
                        members.push(format!("\"{name}\":{value}"));
                    }
                }
                format!("{{{}}}", members.join(","))
            })
            .collect();
        let text = format!("[{}]", rows.join(",\n"));
        if let Some(inferred) = infer("x.json", &text) {
            let store = store_of(&inferred);
            let acceptor = store.acceptor_for(StreamChoice::Always(stream("a-table")));
            let report = store.import(&mut JsonArrayImporter::new(text.as_bytes(), &acceptor));
            prop_assert_eq!(report.rejected, 0, "{:?} {}", report.rejections, inferred.declaration);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), name in prop::sample::select(vec!["x.csv", "x.json", "x.jsonl"])) {
        if let Ok(input) = Input::from_file(name, name, Cursor::new(bytes)) {
            let _ = table::infer(input, None, ("x", "x"), &Told::default());
        }
    }
}
