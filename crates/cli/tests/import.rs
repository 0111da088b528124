//! Importing files: formats, targets, reports.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::Home;

const LINES: &str = r#"{"key":"m1","emitted_at":"2026-03-01T10:00:00Z","data":{"id":"m1","subject":"Hello","size":1.0}}
{"id":"m2","subject":"Again","size":2}
{"key":"m3","stream":"messages","op":"upsert","data":{"subject":"No id inside"}}
"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn envelopes_and_bare_records_are_imported_once() {
    let home = Home::with_mail();
    let file = home.file("any.jsonl", LINES);
    let first = home
        .run(&["import", &file, "--as", "mail/messages"])
        .succeeds();
    assert_eq!(first.stdout, "");
    assert_eq!(
        first.stderr,
        "Imported into 'Work': 3 read, 3 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
    let again = home
        .run(&["import", &file, "--as", "mail/messages", "--json"])
        .succeeds();
    assert_eq!(
        again.stdout,
        "{\"read\":3,\"added\":0,\"updated\":0,\"unchanged\":3,\"rejected\":0,\"rejections\":[]}\n"
    );
    assert_eq!(again.stderr, "");
    let exported = home.messages();
    let m1 = "{\"key\":\"m1\",\"stream\":\"messages\",\"emitted_at\":\"2026-03-01T10:00:00Z\",\"data\":{\"id\":\"m1\",\"subject\":\"Hello\",\"size\":1.0}}\n";
    assert!(exported.starts_with(m1), "{exported}");
}

#[test]
fn refused_lines_are_reported_and_the_others_kept() {
    let home = Home::with_mail();
    let lines = "{\"id\":\"a\"}\n\nnot json\n{\"id\":\"b\",\"size\":\"big\"}\n{\"key\":\"c\",\"data\":{\"id\":\"d\"}}\n{\"subject\":\"x\"}\n";
    let file = home.file("messages.jsonl", lines);
    let ran = home.run(&["import", &file, "--connection", "mail-work"]).refused(
        "Imported into 'Work': 5 read, 1 added, 0 updated, 0 unchanged, 4 rejected.\n  line 3: malformed_ndjson: expected a JSON value (at byte 0)\n  line 4: invalid_field_type: field 'size' must be integer, got 'big'\n  line 5: invalid_record_identity: 'key' says 'c' and the primary key field 'id' says 'd'\n  line 6: missing_key: the primary key field 'id' is missing",
    );
    assert_eq!(ran.stdout, "");
    let json = home.run(&["import", &file, "--connection", "Work", "--json"]);
    assert_eq!(json.code, Some(1));
    assert_eq!(
        json.json(),
        serde_json::json!({"read": 5, "added": 0, "updated": 0, "unchanged": 1, "rejected": 4, "rejections": [
            {"line": 3, "code": "malformed_ndjson", "message": "expected a JSON value (at byte 0)"},
            {"line": 4, "code": "invalid_field_type", "message": "field 'size' must be integer, got 'big'", "field": "size", "value": "big"},
            {"line": 5, "code": "invalid_record_identity", "message": "'key' says 'c' and the primary key field 'id' says 'd'", "field": "id"},
            {"line": 6, "code": "missing_key", "message": "the primary key field 'id' is missing", "field": "id"},
        ]})
    );
}

#[test]
fn many_rejections_are_shown_in_part_and_counted_in_full() {
    let home = Home::with_mail();
    let file = home.file("messages.jsonl", "[]\n".repeat(1_500));
    let ran = home.run(&["import", &file]).refused_saying(&[
        "line 20: ",
        "  and 1,480 more; --json lists the first 1,000\n",
    ]);
    assert!(!ran.stderr.contains("line 21: "));
    let json = home.run(&["import", &file, "--json"]).json();
    assert_eq!(json["rejected"], 1_500);
    assert_eq!(json["rejections"].as_array().unwrap().len(), 1_000);
}

#[test]
fn several_files_make_one_report_that_names_them() {
    let home = Home::with_mail();
    let one = home.file("messages.jsonl", "{\"id\":\"a\"}\nx\n");
    let two = home.file("receipts.csv", "message,number,note\na,1,sent\na,x,sent\n");
    let ran = home.run(&["import", &one, &two, "--json"]);
    assert_eq!(ran.code, Some(1));
    let json = ran.json();
    assert_eq!((&json["read"], &json["added"]), (&4.into(), &2.into()));
    assert_eq!(json["rejections"][0]["file"], "~/messages.jsonl");
    assert_eq!(json["rejections"][1]["file"], "~/receipts.csv");
    assert_eq!(json["rejections"][1]["line"], 3);
    let ran = home.run(&["import", &one, &two]);
    assert!(ran.stderr.contains(
        "  ~/receipts.csv line 3: invalid_field_type: column 'number' must be integer, got 'x'\n"
    ));
}

#[test]
fn a_table_whose_stream_is_not_known_is_refused_with_the_streams_there_are() {
    let home = Home::with_mail();
    let file = home.file("other.csv", "id\nx\n");
    home.run(&["import", &file]).refused_saying(&[
        "error: ~/other.csv: nothing tells which stream it belongs to\nhint: pass --as mail/STREAM with one of: messages, receipts\n",
    ]);
}

#[test]
fn gzip_is_read_as_it_is_whatever_its_name() {
    let home = Home::with_mail();
    let mut members = gzip(LINES.as_bytes());
    members.extend(gzip(b"{\"id\":\"m4\"}"));
    let file = home.file("messages.jsonl", members);
    let json = home.run(&["import", &file, "--json"]).succeeds().json();
    assert_eq!(json["added"], 4);
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"old\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n")
        .succeeds();
    let before = home.messages();
    let lines = "{\"id\":\"a\",\"subject\":\"new\"}\n{\"id\":\"b\"}\n{\"key\":\"c\",\"op\":\"delete\"}\n{\"id\":\"d\"}\n{\"id\":\"d\"}\n{}\n";
    let file = home.file("messages.jsonl", lines);
    home.run(&["import", &file, "--dry-run"]).refused(
        "Dry run for 'Work', nothing was written: 6 read, 1 added, 2 updated, 2 unchanged, 1 rejected.\n  line 6: missing_key: the primary key field 'id' is missing",
    );
    assert_eq!(home.messages(), before);
    let dry = home.run(&["import", &file, "--dry-run", "--json"]);
    let wet = home.run(&["import", &file, "--json"]);
    assert_eq!(dry.stdout, wet.stdout);
    assert_ne!(home.messages(), before);
}

#[test]
fn what_cannot_be_imported_is_told() {
    let home = Home::with_mail();
    let missing = home.path("none.jsonl");
    home.run(&["import", missing.to_str().unwrap()])
        .refused("error: ~/none.jsonl: No such file or directory (os error 2)");
    let text = home.file("notes.txt", "Dear diary");
    home.run(&["import", &text]).refused_saying(&[
        "error: ~/notes.txt: neither its name nor its content tells what it holds; name it .jsonl, .ndjson or .csv. Known exports",
    ]);
    let array = home.file("notes.json", "[{}]");
    home.run(&["import", &array])
        .refused_saying(&["error: ~/notes.json: it begins with '['"]);
    let folder = home.path("folder");
    std::fs::create_dir(&folder).unwrap();
    home.run(&["import", folder.to_str().unwrap()])
        .refused_saying(&["error: ~/folder: it is a folder"]);
    let empty = home.file("messages", "");
    let ran = home.run(&["import", &empty]).succeeds();
    assert!(ran.stderr.contains(" 0 read, "));
}

#[test]
fn acknowledged_batches_are_told_with_v() {
    let home = Home::with_mail();
    let file = home.file("messages.jsonl", "{\"id\":\"a\"}\nx\n{\"id\":\"b\"}\n");
    let ran = home.run(&["import", &file, "-v", "--batch-lines", "2"]);
    let told: Vec<_> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("acknowledged "))
        .collect();
    assert_eq!(told, ["acknowledged 2", "acknowledged 3"]);
    let quiet = home.run(&["import", &file, "-q"]);
    assert!(quiet.stderr.starts_with("  line 2: "), "{}", quiet.stderr);
}
