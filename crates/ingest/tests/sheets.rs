//! Workbooks and databases: every table of them becomes a stream, as it is found to be.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use crate::archives::{self, Packed};
use crate::fuzzing::{Changes, fuzz};
use crate::memory::{Memory, refused};
use contract::declaration::Declaration;
use ingest::table::{self, Inferred, Told, ToldType};
use ingest::{Companions, Format, ImportReport, Input, SheetsImporter};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    fs::read(folder.join(name)).unwrap()
}

/// Makes a database.
pub(crate) fn make_database(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

fn input(name: &str, bytes: &[u8]) -> Input {
    Input::from_file(name, name, Cursor::new(bytes.to_vec())).unwrap()
}

fn infer_with(
    name: &str,
    bytes: &[u8],
    log: Option<PathBuf>,
    told: &Told,
) -> Result<Inferred, String> {
    let inferred = table::infer(input(name, bytes), log, ("boat", "boat"), told);
    inferred.map_err(|error| error.to_string())
}

fn infer(name: &str, bytes: &[u8]) -> Result<Inferred, String> {
    infer_with(name, bytes, None, &Told::default())
}

fn store_of(inferred: &Inferred) -> Memory {
    Memory::new(Declaration::parse(&inferred.declaration).unwrap())
}

fn import(store: &Memory, name: &str, bytes: &[u8]) -> ImportReport {
    let (acceptor, companions) = (store.acceptor(), Companions::default());
    let input = input(name, bytes);
    let mut importer = SheetsImporter::new(input, &acceptor, &store.declaration, &companions);
    store.import(&mut importer)
}

/// A workbook of one sheet, with these parts instead of its own.
fn workbook(rows: &str, others: &[(&str, &str)]) -> Vec<u8> {
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id=\"{id}\" Type=\"x/{kind}\" Target=\"{target}\"/>")
    };
    let main = format!(
        "<Relationships>{}</Relationships>",
        relation("a", "officeDocument", "xl/workbook.xml")
    );
    let sheets = format!(
        "<Relationships>{}</Relationships>",
        relation("s", "worksheet", "worksheets/one.xml")
    );
    let rows = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let mut parts = vec![
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", main.as_str()),
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"Sheet1\" r:id=\"s\"/></sheets></workbook>",
        ),
        ("xl/_rels/workbook.xml.rels", sheets.as_str()),
        ("xl/worksheets/one.xml", rows.as_str()),
    ];
    parts.retain(|(name, _)| !others.iter().any(|(other, _)| other == name));
    parts.extend(others.iter().copied());
    let parts: Vec<(&str, &[u8])> = parts
        .iter()
        .map(|(name, text)| (*name, text.as_bytes()))
        .collect();
    archives::zip(&parts)
}

fn row(cells: &[&str]) -> String {
    let cells = cells
        .iter()
        .map(|cell| format!("<c t=\"str\"><v>{cell}</v></c>"));
    format!("<row>{}</row>", cells.collect::<String>())
}

fn streams(inferred: &Inferred) -> Vec<&str> {
    inferred
        .tables
        .iter()
        .map(|table| table.stream.as_str())
        .collect()
}

#[test]
fn every_sheet_of_a_workbook_is_a_stream() {
    let bytes = fixture("boat.xlsx");
    let inferred = infer("boat.xlsx", &bytes).unwrap();
    assert_eq!(streams(&inferred), ["household-costs", "trips"]);
    assert_eq!(
        inferred.doubts,
        [
            "sheet 'Household costs': 1 row before the header is passed over",
            "sheet 'Household costs': 1 cell holds an error such as #N/A and counts as empty",
            "sheet 'Household costs': no column identifies a row, so a hash of the whole row does; a row that changes comes as a new one",
            "sheet 'Trips': 'trip_id' identifies a row, because no two have the same",
            "sheet 'Empty' has no rows and is left out",
        ]
    );
    let store = store_of(&inferred);
    let report = import(&store, "boat.xlsx", &bytes);
    assert_eq!(
        (report.added, report.rejected),
        (6, 0),
        "{:?}",
        report.rejections
    );
    let mut costs = store.records_of("household-costs");
    costs.sort_by_key(|cost| cost["day"].to_string());
    let first = costs[0].as_object_mut().unwrap();
    first.remove("row_id");
    assert_eq!(
        costs[0],
        json!({"day": "2024-01-31", "what": "Varnish & brushes", "amount": 84.3, "paid": true, "note": "two tins\nred"})
    );
    assert_eq!(costs[2]["what"], "New sail");
    assert_eq!(costs[2]["amount"].to_string(), "843");
    let trips = store.records_of("trips");
    assert_eq!(
        trips[0],
        json!({"trip_id": "T-1", "harbour": "Skagen", "left_at": "2024-01-31T09:00:00", "miles": 31.5})
    );
    assert_eq!(trips[2]["miles"].to_string(), "18.5");
    store.twice_alike(|| import(&store, "boat.xlsx", &bytes));
}

#[test]
fn every_table_of_a_database_is_a_stream_with_its_primary_key() {
    let bytes = fixture("boat.db");
    let inferred = infer("boat.db", &bytes).unwrap();
    assert_eq!(streams(&inferred), ["crew", "watches", "log"]);
    assert_eq!(
        inferred.doubts,
        [
            "table 'crew': 1 cell is binary data and counts as empty",
            "table 'log': no column identifies a row, so a hash of the whole row does; a row that changes comes as a new one",
            "table 'unused' has no rows and is left out",
        ]
    );
    let declared: Value = serde_json::from_str(&inferred.declaration).unwrap();
    assert_eq!(declared["streams"][0]["primary_key"], json!(["id"]));
    assert_eq!(
        declared["streams"][1]["primary_key"],
        json!(["day", "crew_id"])
    );
    // Digits that a database keeps as a text are one.
    assert_eq!(
        declared["streams"][0]["schema"]["properties"]["phone"]["type"],
        json!(["string", "null"])
    );
    let store = store_of(&inferred);
    let report = import(&store, "boat.db", &bytes);
    assert_eq!(
        (report.added, report.rejected),
        (8, 0),
        "{:?}",
        report.rejections
    );
    let crew = store.body("crew", "1").unwrap();
    let crew: Value = serde_json::from_str(&crew).unwrap();
    assert_eq!(
        crew,
        json!({"id": 1, "name": "Noor Haddad", "phone": "0701234567", "joined": "2023-05-01", "share": 0.25, "picture": null})
    );
    store.twice_alike(|| import(&store, "boat.db", &bytes));
}

#[test]
fn a_newer_database_adds_and_updates_also_what_is_not_yet_in_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("boat.db");
    fs::write(&path, fixture("boat.db")).unwrap();
    let inferred = infer("boat.db", &fixture("boat.db")).unwrap();
    let store = store_of(&inferred);
    import(&store, "boat.db", &fixture("boat.db"));
    let program = Connection::open(&path).unwrap();
    program.pragma_update(None, "journal_mode", "wal").unwrap();
    program
        .execute_batch(
            "INSERT INTO crew(name) VALUES('Eva'); UPDATE crew SET phone = '1' WHERE id = 2;",
        )
        .unwrap();
    let log = fs::read(folder.path().join("boat.db-wal")).unwrap();
    assert!(!log.is_empty());
    let shown = infer_with(
        "boat.db",
        &fs::read(&path).unwrap(),
        Some(folder.path().join("boat.db-wal")),
        &Told::default(),
    );
    assert!(shown.unwrap().tables[0].samples[2].contains("Eva"));
    let companions = Companions::default();
    let acceptor = store.acceptor();
    let mut report = ImportReport::default();
    for (name, bytes) in [("boat.db-wal", log), ("boat.db", fs::read(&path).unwrap())] {
        let input = input(name, &bytes);
        assert_eq!(input.format().unwrap(), Format::Database);
        let mut importer = SheetsImporter::new(input, &acceptor, &store.declaration, &companions);
        report = store.import(&mut importer);
    }
    assert_eq!((report.added, report.updated, report.unchanged), (1, 1, 7));
}

#[test]
fn rows_that_do_not_fit_are_refused_with_sheet_row_and_value() {
    // TR-13
    let inferred = infer("boat.xlsx", &fixture("boat.xlsx")).unwrap();
    let store = store_of(&inferred);
    let rows = [
        row(&["trip_id", "harbour", "left_at", "miles"]),
        row(&["T-4", "Smögen", "soon", "3"]),
        row(&["T-5", "Fjällbacka", "2024-02-01T10:00:00", "far"]),
        row(&["T-6", "Grebbestad", "2024-02-02T10:00:00", "7", "beyond"]),
        row(&["T-7", "Koster", "2024-02-03T10:00:00", "8"]),
    ];
    let sheets = "<workbook><sheets><sheet name=\"Trips\" r:id=\"s\"/><sheet name=\"Other\" r:id=\"s\"/></sheets></workbook>";
    let bytes = workbook(&rows.concat(), &[("xl/workbook.xml", sheets)]);
    let report = import(&store, "newer.xlsx", &bytes);
    assert_eq!((report.added, report.rejected), (1, 3));
    assert_eq!(
        refused(&report),
        [
            "2 invalid_field_value: sheet 'Trips': column 'left_at' must be a date-time such as 2026-03-01T10:00:00Z, got 'soon'",
            "3 invalid_field_value: sheet 'Trips': column 'miles' must be a number with '.' before its fraction, got 'far'",
            "4 malformed_csv: sheet 'Trips': the row has 5 cells and the header 4",
        ]
    );
    assert_eq!(
        report.notes,
        ["no stream is declared for sheet 'Other', so it is left out"]
    );
}

#[test]
fn a_table_without_a_name_is_called_after_its_file_and_what_is_told_is_not_guessed() {
    let rows = [
        row(&["code", "day", "sum"]),
        row(&["01", "01/02/2024", "1,5"]),
        row(&["02", "03/04/2024", "2,5"]),
    ]
    .concat();
    let bytes = workbook(&rows, &[]);
    let inferred = infer("x.xlsx", &bytes).unwrap();
    assert_eq!(streams(&inferred), ["boat"]);
    let told = Told {
        key: Some("code".to_owned()),
        decimal: Some(','),
        types: vec![("code".to_owned(), ToldType::Text)],
        ..Told::default()
    };
    let inferred = infer_with("x.xlsx", &bytes, None, &told).unwrap();
    let store = store_of(&inferred);
    import(&store, "x.xlsx", &bytes);
    let record: Value = serde_json::from_str(&store.body("boat", "01").unwrap()).unwrap();
    assert_eq!(
        record,
        json!({"code": "01", "day": "2024-02-01", "sum": 1.5})
    );
    for told in [
        Told {
            key: Some("nothing".to_owned()),
            ..Told::default()
        },
        Told {
            types: vec![("day".to_owned(), ToldType::Integer)],
            ..Told::default()
        },
    ] {
        assert!(infer_with("x.xlsx", &bytes, None, &told).is_err());
    }
    let without = Told {
        header: Some(false),
        ..Told::default()
    };
    let inferred = infer_with("x.xlsx", &bytes, None, &without).unwrap();
    let store = store_of(&inferred);
    assert_eq!(import(&store, "x.xlsx", &bytes).added, 3);
}

#[test]
fn the_content_tells_whatever_the_name() {
    for (bytes, format) in [
        (fixture("boat.xlsx"), Format::Workbook),
        (fixture("boat.db"), Format::Database),
    ] {
        for name in ["x", "download (1).csv", "data.jsonl", "mail.mbox"] {
            assert_eq!(input(name, &bytes).format().unwrap(), format, "{name}");
            assert!(infer(name, &bytes).is_ok());
        }
    }
    for (name, head, why) in [
        (
            "old.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(),
            "an old office program, or one with a password",
        ),
        ("x.xlsx", b"hello", "no workbook in the form xlsx"),
        (
            "x",
            b"PK\x03\x04..mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
            "in the form ods are not read",
        ),
    ] {
        let error = input(name, head).format().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn broken_and_hostile_files_are_named_and_survived() {
    let long = format!(
        "<sst>{}</sst>",
        format!("<si><t>{}</t></si>", "a".repeat(1_000_000)).repeat(140)
    );
    let wide = "<row><c r=\"A1\" t=\"str\"><v>a</v></c><c r=\"B1\" t=\"str\"><v>b</v></c></row><row><c r=\"XFD2\"><v>1</v></c></row>";
    let deep = "<a>".repeat(10_000);
    for (bytes, why) in [
        (
            workbook("", &[("xl/sharedStrings.xml", &long)]),
            "xl/sharedStrings.xml: it, or all files together, would be larger than is read",
        ),
        (
            workbook("", &[]),
            "no rows that a declaration could be made of",
        ),
        (
            workbook(wide, &[]),
            "no rows that a declaration could be made of",
        ),
        (workbook(&deep, &[]), "too deep inside others"),
        (workbook("<row><c><v>1", &[]), "it is not XML from here on"),
        (
            workbook("", &[("xl/workbook.xml", "<workbook/>")]),
            "without a sheet that can be read",
        ),
        (
            workbook("", &[("xl/workbook.xml", "<work")]),
            "the list of its sheets is damaged",
        ),
        (
            workbook(
                "",
                &[(
                    "xl/_rels/workbook.xml.rels",
                    "<Relationships><Relationship Id=\"s\" Type=\"x/worksheet\" Target=\"../../../etc/passwd\"/></Relationships>",
                )],
            ),
            "without a sheet that can be read",
        ),
        (
            fixture("boat.xlsx")[..2_000].to_vec(),
            "it is a damaged workbook",
        ),
        (
            archives::zip_of(&[("xl/workbook.xml", b"<workbook/>", Packed::Encrypted)]),
            "it is a damaged workbook: xl/workbook.xml: it is encrypted",
        ),
    ] {
        let error = infer("x", &bytes).unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn damaged_databases_are_named() {
    let whole = fixture("boat.db");
    for bytes in [
        whole[..1_500].to_vec(),
        [&whole[..100], &[0xff; 4_000]].concat(),
    ] {
        let error = infer("x", &bytes).unwrap_err();
        assert!(error.contains("the database is damaged"), "{error}");
    }
}

#[test]
fn cells_that_cannot_be_read_keep_the_others() {
    // References to texts that are not there, and cells that say nothing, keep the others.
    let rows = [row(&["a", "b"]), "<row><c t=\"s\"><v>7</v></c><c><v>1</v></c></row><row/><row r=\"x\"><c r=\"?\"><v>2</v></c><c t=\"q\"/></row>".to_owned()];
    let inferred = infer("x", &workbook(&rows.concat(), &[])).unwrap();
    assert!(
        inferred
            .doubts
            .iter()
            .any(|doubt| doubt.contains("a text that is not there"))
    );
}

#[test]
fn no_change_of_a_table_makes_anything_panic() {
    for (name, file) in [("workbook", "boat.xlsx"), ("database", "boat.db")] {
        let original = fixture(file);
        let inferred = infer(file, &original).unwrap();
        let change = |changes: &mut Changes| {
            let mut bytes = original.clone();
            changes.apply_inside(&mut bytes);
            bytes
        };
        fuzz(name, change, |bytes| {
            let _ = infer(file, bytes);
            let store = store_of(&inferred);
            let (acceptor, companions) = (store.acceptor(), Companions::default());
            let input = input(file, bytes);
            let mut importer =
                SheetsImporter::new(input, &acceptor, &store.declaration, &companions);
            let _ = store.try_import(&mut importer, file);
        });
    }
}
