//! Importing files: formats, targets, reports.

use crate::harness::Home;

#[test]
fn refused_lines_are_reported_and_the_others_kept() {
    let home = Home::with_mail();
    let lines = "{\"id\":\"a\"}\n\nnot json\n{\"id\":\"b\",\"size\":\"big\"}\n{\"key\":\"c\",\"data\":{\"id\":\"d\"}}\n{\"subject\":\"x\"}\n";
    let file = home.file("messages.jsonl", lines);
    let json = home
        .run(format!("import {file} --connection Work --json"))
        .exits(1);
    assert_eq!(
        json.json(),
        serde_json::json!({"read": 5, "added": 1, "updated": 0, "unchanged": 0, "rejected": 4, "records": {"messages": 1}, "rejections": [
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
    let ran = home.run(format!("import {file}")).refused_saying(&[
        "line 20: ",
        "  and 1,480 more; --json lists the first 1,000\n",
    ]);
    ran.hides("line 21: ");
    let json = home.run(format!("import {file} --json")).json();
    assert_eq!(json["rejected"], 1_500);
    assert_eq!(json["rejections"].as_array().unwrap().len(), 1_000);
}

#[test]
fn several_files_make_one_report_that_names_them() {
    let home = Home::with_mail();
    let one = home.file("messages.jsonl", "{\"id\":\"a\"}\nx\n");
    let two = home.file("receipts.csv", "message,number,note\na,1,sent\na,x,sent\n");
    let json = home
        .run(format!("import {one} {two} --json"))
        .exits(1)
        .json();
    assert_eq!((&json["read"], &json["added"]), (&4.into(), &2.into()));
    assert_eq!(json["rejections"][0]["file"], "~/messages.jsonl");
    assert_eq!(json["rejections"][1]["file"], "~/receipts.csv");
    assert_eq!(json["rejections"][1]["line"], 3);
    let ran = home.run(format!("import {one} {two}"));
    ran.says(
        "  ~/receipts.csv line 3: invalid_field_type: column 'number' must be integer, got 'x'\n",
    );
}

#[test]
fn a_table_whose_stream_is_not_known_is_refused_with_the_streams_there_are() {
    let home = Home::with_mail();
    let file = home.file("other.csv", "id\nx\n");
    home.run(format!("import {file}")).refused_saying(&[
        "error: ~/other.csv: nothing tells which stream it belongs to\nhint: pass --as mail/STREAM with one of: messages, receipts\n",
    ]);
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let home = Home::with_mail();
    home.import_messages("{\"id\":\"a\",\"subject\":\"old\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n")
        .succeeds();
    let before = home.messages();
    let lines = "{\"id\":\"a\",\"subject\":\"new\"}\n{\"id\":\"b\"}\n{\"key\":\"c\",\"op\":\"delete\"}\n{\"id\":\"d\"}\n{\"id\":\"d\"}\n{}\n";
    let file = home.file("messages.jsonl", lines);
    home.run(format!("import {file} --dry-run")).refused(
        "Dry run for 'Work', nothing was written: 5 messages: 1 added, 2 updated, 2 unchanged, 1 rejected.\n  line 6: missing_key: the primary key field 'id' is missing",
    );
    assert_eq!(home.messages(), before);
    let dry = home.run(format!("import {file} --dry-run --json"));
    let wet = home.run(format!("import {file} --json"));
    assert_eq!(dry.stdout, wet.stdout);
    assert_ne!(home.messages(), before);
}

#[test]
fn acknowledged_batches_are_told_with_v() {
    let home = Home::with_mail();
    let file = home.file("messages.jsonl", "{\"id\":\"a\"}\nx\n{\"id\":\"b\"}\n");
    let ran = home.run(format!("import {file} -v --batch-lines 2"));
    ran.says("acknowledged 2\nacknowledged 3\n");
    let quiet = home.run(format!("import {file} -q"));
    assert!(quiet.stderr.starts_with("  line 2: "), "{}", quiet.stderr);
}

#[test]
fn what_a_newer_export_lacks_is_deleted_only_where_it_is_asked_for() {
    let home = Home::new();
    let card = |id: &str| format!("BEGIN:VCARD\nVERSION:3.0\nUID:{id}\nFN:Card {id}\nEND:VCARD\n");
    home.file("all.vcf", card("a") + &card("b") + &card("c"));
    home.file("fewer.vcf", card("a") + &card("d"));
    home.file("broken.vcf", card("a") + "BEGIN:VCARD\nFN:Cut off\n");
    home.run("import ~/all.vcf").succeeds();
    home.run("import ~/fewer.vcf")
        .succeeds()
        .says("2 contacts: 1 added, 0 updated, 1 unchanged");
    home.run("import --prune --dry-run ~/fewer.vcf")
        .succeeds()
        .says("Would be deleted because the import does not have them: 2.");
    home.run("import --prune ~/broken.vcf")
        .exits(1)
        .says("nothing was deleted, because not all of the input could be taken");
    home.run("import --prune ~/fewer.vcf")
        .succeeds()
        .says("Deleted because the import does not have them: 2.");
    let left = home.run("query contacts --json").succeeds().json();
    assert_eq!(left["data"].as_array().unwrap().len(), 2, "{left}");
    let again = home
        .run("import --prune --json ~/fewer.vcf")
        .succeeds()
        .json();
    assert_eq!(again["pruned"].as_u64().unwrap_or_default(), 0, "{again}");
}
