//! Calendar files as programs really write them become events and tasks.

use crate::memory::{self, Memory, refused, refused_codes};
use ingest::{CalendarImporter, Export, ImportReport};
use proptest::prelude::*;
use serde_json::{Value, json};

fn store() -> Memory {
    Memory::with_export(Export::CALENDAR)
}

fn import(store: &Memory, bytes: &[u8], limit: usize) -> ImportReport {
    let acceptor = store.acceptor();
    store.import(&mut CalendarImporter::with_limit(bytes, &acceptor, limit))
}

/// What a file becomes when nothing is wrong with it.
fn records(file: &str) -> Vec<Value> {
    let store = store();
    let report = import(&store, file.as_bytes(), 1 << 20);
    assert_eq!(report.rejected, 0, "{:?}", report.rejections);
    let again = import(&store, file.replace('\n', "\r\n").as_bytes(), 1 << 20);
    assert_eq!(
        (again.read, again.unchanged),
        (report.read, report.read),
        "a second import changes nothing, whatever the line ends"
    );
    store.records_of("events")
}

fn event(properties: &str) -> Value {
    let file = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{properties}\nEND:VEVENT\nEND:VCALENDAR\n");
    let mut records = records(&file);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn an_event_keeps_what_people_need_to_know() {
    let found = records(include_str!("exports/google.ics"));
    let expected: Value = serde_json::from_str(include_str!("exports/google.json")).unwrap();
    assert_eq!(Value::Array(found), expected);
}

#[test]
fn outlook_describes_its_zones_and_the_description_is_understood() {
    let found = records(include_str!("exports/outlook.ics"));
    let times: Vec<_> = found
        .iter()
        .map(|record| {
            let member = |name: &str| record[name].as_str().unwrap_or("-");
            [member("id"), member("starts_at"), member("timezone")].join(" ")
        })
        .collect();
    assert_eq!(
        times,
        [
            "custom-summer 2026-07-01T10:00:00+02:00 Customized Time Zone",
            "custom-twice 2026-10-25T02:30:00+02:00 Customized Time Zone",
            "custom-winter 2026-01-05T10:00:00+01:00 Customized Time Zone",
            "never 2026-03-29T03:30:00+02:00 Customized Time Zone",
            "notes 2026-07-01T10:00:00+02:00 Western/Central Europe",
            "once 1999-06-01T10:00:00+03:30 Once",
            "once-before 1949-06-01T10:00:00+03:00 Once",
            "unknown 2026-07-01T10:00:00 Odd Rule",
            "windows 2026-07-01T10:00:00-07:00 America/Los_Angeles",
        ]
    );
}

#[test]
fn days_stay_days_and_end_with_the_day_after() {
    let one = event("UID:1\nDTSTART;VALUE=DATE:20260301");
    assert_eq!(one["starts_at"], "2026-03-01");
    assert_eq!(one["ends_at"], "2026-03-02");
    assert_eq!(one["all_day"], true);
    let many = event("UID:1\nDTSTART;VALUE=DATE:20260228\nDURATION:P3D");
    assert_eq!(many["ends_at"], "2026-03-03");
    let outlook = event("UID:1\nDTSTART:20260301T000000\nX-MICROSOFT-CDO-ALLDAYEVENT:TRUE");
    assert_eq!(outlook["all_day"], true);
    assert_eq!(outlook["starts_at"], "2026-03-01T00:00:00");
    assert_eq!(outlook.get("ends_at"), None);
    assert_eq!(outlook.get("timezone"), None);
}

#[test]
fn people_without_an_address_are_named_and_addresses_without_a_name_stand_for_themselves() {
    let found = event(
        "UID:1\nORGANIZER;CN=\"Room 5\":invalid:nomail\nATTENDEE;CN=Lee:invalid:nomail\nATTENDEE;EMAIL=kim@example.org:urn:uuid:1\nATTENDEE:",
    );
    assert_eq!(found["organizer"], "Room 5");
    assert_eq!(found.get("organizer_address"), None);
    assert_eq!(
        found["attendees"],
        json!([{ "name": "Lee" }, { "address": "kim@example.org" }])
    );
    assert_eq!(found["attendees_text"], "Lee, kim@example.org");
}

#[test]
fn a_series_keeps_its_rule_and_a_changed_occurrence_is_a_record_of_its_own() {
    let found = records(
        "BEGIN:VCALENDAR
BEGIN:VEVENT
UID:weekly
DTSTART;TZID=Europe/Berlin:20260302T090000
DURATION:PT45M
RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2
EXDATE;TZID=Europe/Berlin:20260316T090000,20260330T090000
EXDATE:nonsense
SUMMARY:Stand-up
END:VEVENT
BEGIN:VEVENT
UID:weekly
RECURRENCE-ID;TZID=Europe/Berlin:20260309T090000
DTSTART;TZID=Europe/Berlin:20260309T110000
SUMMARY:Stand-up\\, later
END:VEVENT
END:VCALENDAR
",
    );
    assert_eq!(
        found,
        [
            json!({
                "id": "weekly", "uid": "weekly", "title": "Stand-up",
                "starts_at": "2026-03-02T09:00:00+01:00", "ends_at": "2026-03-02T09:45:00+01:00",
                "all_day": false, "timezone": "Europe/Berlin", "busy": true, "repeats": true,
                "recurrence": "FREQ=WEEKLY;BYDAY=MO;COUNT=2",
                "excluded_times": ["2026-03-16T09:00:00+01:00", "2026-03-30T09:00:00+02:00", "nonsense"],
            }),
            json!({
                "id": "weekly_20260309T090000", "uid": "weekly", "title": "Stand-up, later",
                "starts_at": "2026-03-09T11:00:00+01:00", "all_day": false, "timezone": "Europe/Berlin",
                "busy": true, "repeats": false, "recurrence_id": "2026-03-09T09:00:00+01:00",
                "occurrence_of": "weekly",
            }),
        ]
    );
}

#[test]
fn tasks_have_their_own_stream() {
    let store = store();
    let file = "BEGIN:VCALENDAR\nX-WR-CALNAME:Chores\nBEGIN:VTODO\nUID:t1\nSUMMARY:Water the plants\nDUE;VALUE=DATE:20260305\nPRIORITY:1\nPERCENT-COMPLETE:\nSTATUS:IN-PROCESS\nCREATED:20260301T080000Z\nBEGIN:VALARM\nACTION:DISPLAY\nDESCRIPTION:not this\nEND:VALARM\nEND:VTODO\nBEGIN:VTODO\nUID:t2\nEND:VTODO\nBEGIN:VTODO\nUID:t3\nCOMPLETED:20260302T080000Z\nEND:VTODO\nEND:VCALENDAR";
    assert_eq!(import(&store, file.as_bytes(), 1 << 20).added, 3);
    let tasks = store.records_of("tasks");
    assert_eq!(
        tasks[0],
        json!({
            "id": "t1", "uid": "t1", "title": "Water the plants", "calendar": "Chores", "due_at": "2026-03-05",
            "status": "in_process", "priority": 1, "created_at": "2026-03-01T08:00:00Z",
        })
    );
    assert_eq!(tasks[1]["status"], "needs_action");
    assert_eq!(tasks[2]["status"], "completed");
}

#[test]
fn without_a_uid_the_content_is_the_key_and_stamps_are_no_content() {
    let one = event("SUMMARY:Tea\nDTSTART:20260301T160000\nDTSTAMP:20260101T000000Z");
    let same = event("SUMMARY:Tea\nDTSTART:20260301T160000\nDTSTAMP:20260202T000000Z\nSEQUENCE:4");
    let other = event("SUMMARY:Te\nDTSTART:20260301T160000");
    assert!(one["id"].as_str().unwrap().starts_with("sha256-"));
    assert_eq!(one["id"], same["id"]);
    assert_ne!(one["id"], other["id"]);
    let long = event(&format!("UID:{}\nSUMMARY:Tea", "u".repeat(600)));
    assert!(long["id"].as_str().unwrap().starts_with("sha256-"));
    assert_eq!(long["uid"].as_str().unwrap().len(), 600);
}

#[test]
fn bad_entries_are_refused_by_line_and_the_rest_is_kept() {
    let store = store();
    let acceptor = store.acceptor();
    let file: &[u8] = include_bytes!("exports/broken.ics");
    let mut importer = CalendarImporter::with_limit(file, &acceptor, 2000);
    let (report, error) = store.try_import(&mut importer, "broken.ics");
    assert!(error.is_some(), "the file is cut");
    assert_eq!(
        refused(&report),
        [
            "3 malformed_export: DTSTART is no time: 'soon'",
            "7 malformed_export: DURATION is no duration: '-PT5M'",
            "12 malformed_export: VEVENT is not ended before line 15",
            "19 malformed_export: line 21: 'this was never folded' is not of the form NAME:VALUE",
            "23 unsupported_item: 'VJOURNAL' is not imported; events (VEVENT) and tasks (VTODO) are",
            "26 malformed_export: END:'VEVENT' ends nothing",
            "27 invalid_utf8: line 28: the value of SUMMARY is not UTF-8",
            "33 malformed_export: VEVENT is not ended before the file ends",
        ]
    );
    assert_eq!(report.read, 10);
    let records = store.records.borrow();
    let kept: Vec<&str> = records.keys().map(|(_, key)| key.as_str()).collect();
    assert_eq!(kept, ["kept-1", "kept-2"]);
}

#[test]
fn a_file_that_was_cut_says_so_and_what_is_whole_is_kept() {
    let event = "BEGIN:VEVENT\nUID:1\nSUMMARY:a\nDTSTART:20260301T100000Z\nEND:VEVENT\n";
    for (file, read, line) in [
        (format!("BEGIN:VCALENDAR\n{event}"), 1, 6),
        (
            format!("BEGIN:VCALENDAR\n{event}BEGIN:VEVENT\nUID:2\n"),
            2,
            8,
        ),
        (
            format!("BEGIN:VCALENDAR\nEND:VCALENDAR\nBEGIN:VCALENDAR\n{event}"),
            1,
            8,
        ),
    ] {
        let store = store();
        let acceptor = store.acceptor();
        let mut importer = CalendarImporter::new(file.as_bytes(), &acceptor);
        let (report, error) = store.try_import(&mut importer, "cut.ics");
        let error = error.unwrap().to_string();
        let expected = format!("cut.ics: line {line}: the file ends too early.");
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!((report.read, report.added), (read, 1), "{file}");
    }
}

#[test]
fn an_entry_that_is_too_long_is_refused_and_nothing_of_it_held() {
    let long = "x".repeat(3000);
    let many = "COMMENT:x\n".repeat(300);
    let file = format!(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nSUMMARY:{long}\nEND:VEVENT\nBEGIN:VEVENT\nUID:2\n{many}END:VEVENT\nBEGIN:VEVENT\nUID:3\nATTACH:data\n {long}\nEND:VEVENT\nBEGIN:VEVENT\nUID:4\nEND:VEVENT\nEND:VCALENDAR\n"
    );
    let store = store();
    let report = import(&store, file.as_bytes(), 2000);
    let told = ["2 line_too_long", "6 line_too_long"];
    assert_eq!(refused_codes(&report), told);
    assert_eq!(report.added, 2, "what is not kept anyway may be long");
}

/// Pieces of which calendars, right and wrong, are put together.
const PIECES: &[&str] = &[
    "BEGIN:VCALENDAR",
    "END:VCALENDAR",
    "BEGIN:VEVENT",
    "END:VEVENT",
    "BEGIN:VTODO",
    "END:VTODO",
    "BEGIN:VTIMEZONE",
    "END:VTIMEZONE",
    "BEGIN:STANDARD",
    "END:STANDARD",
    "TZID:Z",
    "TZOFFSETFROM:+0100",
    "TZOFFSETTO:-1200",
    "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU",
    "RRULE:FREQ=YEARLY;BYMONTHDAY=31;UNTIL=99991231T235959Z",
    "RRULE:FREQ=MONTHLY;COUNT=30",
    "RDATE:20260301T100000,20270101T120000Z",
    "DTSTART:20260110T100000",
    "DTSTART:99991231T235959",
    "DTSTART:00000101T000000Z",
    "DTSTART;TZID=Z:20260329T023000",
    "DTSTART;TZID=Europe/Berlin:99991231T235959",
    "DTSTART;VALUE=DATE:99991231",
    "DURATION:P9999999W",
    "DURATION:PT1H",
    "UID:1",
    "UID:2",
    "RECURRENCE-ID:20260301",
    "EXDATE:20260301,,x",
    "ATTENDEE;CN=\":mailto",
    "SUMMARY;ENCODING=QUOTED-PRINTABLE:=",
    "CATEGORIES:\\,,;",
    "X",
    ":",
    ";",
    " ",
];

proptest! {
    #[test]
    fn whatever_the_bytes_every_entry_is_answered_for_and_twice_is_the_same(
        bytes in memory::bytes_of(PIECES, &["\n", "\r\n", "\n ", ""]),
        limit in proptest::sample::select(vec![300, 1 << 20]),
    ) {
        let store = store();
        let acceptor = store.acceptor();
        store.twice_alike(|| {
            let mut importer = CalendarImporter::with_limit(bytes.as_slice(), &acceptor, limit);
            store.try_import(&mut importer, "a file").0
        });
    }
}
