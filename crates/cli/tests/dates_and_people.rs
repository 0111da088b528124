//! Calendars and contacts as they were downloaded: imported with nothing declared, found, counted, and the same when
//! imported again.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use harness::Home;
use serde_json::{Value, json};

const CALENDAR: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:Family\r\nX-WR-TIMEZONE:Europe/Berlin\r\n\
    BEGIN:VEVENT\r\nUID:dentist@example.org\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260312T170000Z\r\nDTEND:20260312T180000Z\r\n\
    SUMMARY:Dentist\r\nDESCRIPTION:Bring the marzi\r\n pan.<br>Ask for Ms Weber.\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:fair@example.org\r\nDTSTART;VALUE=DATE:20260501\r\nSUMMARY:May fair\r\n\
    ATTENDEE;CN=Jonas Huber:mailto:jonas@example.org\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:bad\r\nDTSTART:soon\r\nEND:VEVENT\r\n\
    BEGIN:VTODO\r\nUID:plants\r\nSUMMARY:Water the plants\r\nEND:VTODO\r\nEND:VCALENDAR\r\n";

const CONTACTS: &str = "BEGIN:VCARD\nVERSION:3.0\nFN:Jonas Huber\nORG:Bakery Huber;\nEMAIL:jonas@example.org\nADR:;;Lane 1;Graz;;8010;Austria\nEND:VCARD\n\
    BEGIN:VCARD\nVERSION:2.1\nN;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:M=C3=BCller;Eva;;;\nTEL;CELL:0170 1234\nEND:VCARD\n";

#[test]
fn a_calendar_is_imported_with_nothing_declared() {
    let home = Home::new();
    let file = home.file("basic.ics", CALENDAR);
    home.run(format!("import {file}")).refused(
        "Recognised calendars (ics). Added the connection 'calendar-file' for it.\nImported into 'Calendar file': 4 read, 3 added, 0 updated, 0 unchanged, 1 rejected.\n  line 20: malformed_export: DTSTART is no time: 'soon'",
    );
    // What another download of the same calendar stamps anew is no change.
    let later = CALENDAR.replace("DTSTAMP:20260101T000000Z", "DTSTAMP:20260202T000000Z");
    let later = home.file("later", later);
    let report = home.run(format!("import {later} --json")).exits(1).json();
    let rejected = json!([{ "line": 20, "code": "malformed_export", "message": "DTSTART is no time: 'soon'", "field": "starts_at" }]);
    assert_eq!(
        report,
        json!({ "read": 4, "added": 0, "updated": 0, "unchanged": 3, "rejected": 1, "rejections": rejected })
    );
    let found = home.run("search 'marzipan weber' --json").succeeds().json();
    assert_eq!(found["data"][0]["record_key"], "dentist@example.org");
    home.run("search jonas --json")
        .succeeds()
        .shows("fair@example.org");
    let spring = home.run("query events --filter starts_at>=2026-05-01 --json");
    let spring = spring.succeeds().json();
    assert_eq!(spring["data"][0]["id"], json!("fair@example.org"));
    assert_eq!(spring["data"].as_array().unwrap().len(), 1);
    let by_month = "aggregate events count --group-by-time starts_at --granularity month";
    home.run(by_month).succeeds().shows("2026-05");
}

#[test]
fn contacts_are_imported_with_nothing_declared() {
    let home = Home::new();
    let file = home.file("contacts.vcf", CONTACTS);
    let first = home.run(format!("import {file}")).succeeds();
    assert_eq!(
        first.stderr,
        "Recognised contacts (vcf). Added the connection 'contacts-file' for it.\nImported into 'Contacts file': 2 read, 2 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
    let again = home.run(format!("import {file}")).succeeds();
    assert_eq!(
        again.stderr,
        "Imported into 'Contacts file': 2 read, 0 added, 0 updated, 2 unchanged, 0 rejected.\n"
    );
    for (words, name) in [
        ("graz", "Jonas Huber"),
        ("bakery", "Jonas Huber"),
        ("muller", "Eva Müller"),
        ("1234", "Eva Müller"),
    ] {
        let found = home.run(format!("search {words} --json")).succeeds().json();
        assert_eq!(found["data"][0]["title"], json!(name), "{words}");
        assert_eq!(found["data"].as_array().unwrap().len(), 1, "{words}");
    }
}

#[test]
fn a_recurring_event_is_written_out_also_where_an_earlier_release_declared_calendars() {
    // AN-30: in a store whose declaration knows no occurrences yet.
    let home = Home::new();
    let bundled = include_str!("../../ingest/declarations/calendar-file.json");
    let mut earlier: Value = serde_json::from_str(bundled).unwrap();
    earlier["declaration_version"] = json!("1");
    let events = &mut earlier["streams"][0];
    let fields = events["schema"]["properties"].as_object_mut().unwrap();
    fields.retain(|name, _| name != "occurrence_of" && name != "series_starts_at");
    let groups = events.pointer_mut("/query/aggregations/group_by").unwrap();
    groups
        .as_array_mut()
        .unwrap()
        .retain(|name| name != "occurrence_of");
    let declaration = home.file("earlier.json", earlier.to_string());
    home.run(format!("declare {declaration}")).succeeds();
    let file = home.file(
        "weekly.ics",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:w\nDTSTART:20260302T090000Z\nRRULE:FREQ=WEEKLY;COUNT=3\nSUMMARY:Choir\nEND:VEVENT\nEND:VCALENDAR\n",
    );
    let report = home.run(format!("import {file}")).succeeds();
    assert!(
        report.stderr.ends_with("1 read, 1 added, 0 updated, 0 unchanged, 0 rejected.\nOccurrences of recurring events: 2 added, 0 updated, 0 removed, 0 unchanged.\n"),
        "{report:?}"
    );
    let found = home.run(
        "query events --filter starts_at>=2026-03-09 --filter starts_at<2026-03-10 --filter occurrence_of=w --json",
    );
    let found = found.succeeds().json();
    assert_eq!(found["data"][0]["id"], json!("w_20260309T090000Z"));
    let count = home.run("aggregate events count --json").succeeds();
    assert_eq!(count.json()["value"], json!(3));
}
