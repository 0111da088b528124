//! Recurring events are written out: each occurrence within two years of the import is a record that names its series.

use crate::memory::Memory;
use contract::time::{Clock, Instant};
use ingest::{Acceptor, CalendarImporter, Export, ImportReport, LineForm, StreamChoice};
use serde_json::{Value, json};

struct Day(&'static str);

impl Clock for Day {
    fn now(&self) -> Instant {
        Instant::parse(self.0).unwrap()
    }
}

const TODAY: Day = Day("2026-03-01T10:00:00Z");

fn store() -> Memory {
    Memory::with_export(Export::CALENDAR)
}

fn import(store: &Memory, events: &[&str], day: &Day) -> ImportReport {
    let events = events.join("\nEND:VEVENT\nBEGIN:VEVENT\n");
    let file = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{events}\nEND:VEVENT\nEND:VCALENDAR\n");
    let form = LineForm::EnvelopeOrBare;
    let acceptor = Acceptor::new(&store.declaration, StreamChoice::Named, form, day);
    let report = store.import(&mut CalendarImporter::new(file.as_bytes(), &acceptor));
    assert_eq!(report.rejected, 0, "{:?}", report.rejections);
    report
}

fn all(store: &Memory) -> Vec<Value> {
    let mut records = store.records_of("events");
    records.sort_by_key(|record| record["starts_at"].as_str().unwrap().to_owned());
    records
}

/// When a series takes place, by all its records.
fn starts(events: &[&str]) -> Vec<String> {
    let store = store();
    import(&store, events, &TODAY);
    let records = all(&store);
    let starts = records.iter().map(|record| record["starts_at"].as_str());
    starts.map(|start| start.unwrap().to_owned()).collect()
}

#[test]
fn every_occurrence_is_a_record_that_names_its_series() {
    // AN-30, AN-35
    let store = store();
    let event = "UID:w\nDTSTART;TZID=Europe/Berlin:20260316T090000\nDURATION:PT45M\nRRULE:FREQ=WEEKLY;COUNT=3\nSUMMARY:Stand-up\nLOCATION:Room 5\nDESCRIPTION:Agenda";
    let report = import(&store, &[event], &TODAY);
    assert_eq!((report.read, report.added), (1, 1), "a series is one event");
    assert_eq!(report.occurrences.added, 2);
    let records = all(&store);
    // The series stands for its first occurrence, so that each time it takes place counts once.
    assert_eq!(records.len(), 3);
    assert_eq!(records[0]["recurrence"], "FREQ=WEEKLY;COUNT=3");
    // The clocks change in between, and the meeting stays at nine.
    assert_eq!(
        records[2],
        json!({
            "id": "w_20260330T090000", "uid": "w", "title": "Stand-up", "all_day": false,
            "timezone": "Europe/Berlin", "location": "Room 5", "busy": true,
            "starts_at": "2026-03-30T09:00:00+02:00", "ends_at": "2026-03-30T09:45:00+02:00",
            "repeats": false, "recurrence_id": "2026-03-30T09:00:00+02:00", "occurrence_of": "w",
        })
    );
    assert_eq!(records[1]["starts_at"], "2026-03-23T09:00:00+01:00");
}

#[test]
fn excluded_and_changed_occurrences_are_not_written_out_again() {
    // AN-31
    let series = "UID:d\nDTSTART:20260301T080000Z\nDTEND:20260301T083000Z\nRRULE:FREQ=DAILY;COUNT=5\nEXDATE:20260302T080000Z\nSUMMARY:Tea";
    let changed =
        "UID:d\nRECURRENCE-ID:20260303T080000Z\nDTSTART:20260303T150000Z\nSUMMARY:Late tea";
    let expected = [
        "2026-03-01T08:00:00Z",
        "2026-03-03T15:00:00Z",
        "2026-03-04T08:00:00Z",
        "2026-03-05T08:00:00Z",
    ];
    // Files have them in either order.
    assert_eq!(starts(&[series, changed]), expected);
    assert_eq!(starts(&[changed, series]), expected);
    // An exclusion in another zone is the same moment, and one by its day is all of it.
    let zoned = series.replace(
        "EXDATE:20260302T080000Z",
        "EXDATE;TZID=Europe/Berlin:20260302T090000\nEXDATE;VALUE=DATE:20260304",
    );
    assert_eq!(
        starts(&[&zoned]),
        [
            "2026-03-01T08:00:00Z",
            "2026-03-03T08:00:00Z",
            "2026-03-05T08:00:00Z"
        ]
    );
}

#[test]
fn a_series_whose_first_occurrence_is_gone_begins_with_the_next() {
    // AN-31, AN-35
    let series = "UID:d\nDTSTART:20260301T080000Z\nDTEND:20260301T083000Z\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260301T080000Z";
    let store = store();
    import(&store, &[series], &TODAY);
    let records = all(&store);
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["id"], "d");
    assert_eq!(records[0]["starts_at"], "2026-03-02T08:00:00Z");
    assert_eq!(records[0]["ends_at"], "2026-03-02T08:30:00Z");
    assert_eq!(records[0]["series_starts_at"], "2026-03-01T08:00:00Z");
    assert_eq!(records[1]["starts_at"], "2026-03-03T08:00:00Z");
}

#[test]
fn days_stay_days_and_times_without_a_zone_stay_without_one() {
    // AN-32
    assert_eq!(
        starts(&["UID:b\nDTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY;COUNT=3"]),
        // Only leap years have the day, and a month may lie too far ahead.
        ["2024-02-29", "2028-02-29"]
    );
    assert_eq!(
        starts(&["UID:f\nDTSTART:20260328T023000\nRRULE:FREQ=DAILY;COUNT=2"]),
        ["2026-03-28T02:30:00", "2026-03-29T02:30:00"]
    );
    // A zone that only the file describes.
    let store = store();
    let file = "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:Own\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0330\nTZOFFSETTO:+0330\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:o\nDTSTART;TZID=Own:20260301T100000\nRRULE:FREQ=DAILY;COUNT=2\nEND:VEVENT\nEND:VCALENDAR\n";
    let acceptor = store.acceptor();
    store.import(&mut CalendarImporter::new(file.as_bytes(), &acceptor));
    let records = all(&store);
    assert_eq!(records[1]["starts_at"], "2026-03-02T10:00:00+03:30");
}

#[test]
fn rules_end_where_they_say_and_further_times_are_added() {
    // AN-33
    let until = |until: &str| {
        starts(&[&format!(
            "UID:u\nDTSTART;TZID=Europe/Berlin:20260301T233000\nRRULE:FREQ=DAILY;UNTIL={until}"
        )])
        .len()
    };
    // Half past eleven in Berlin is half past ten in UTC; the last occurrence counts, and so does a last day.
    assert_eq!(until("20260303T223000Z"), 3);
    assert_eq!(until("20260303T222959Z"), 2);
    assert_eq!(until("20260303"), 3);
    assert_eq!(until("20260303T233000"), 3);
    let store = store();
    import(
        &store,
        &[
            "UID:r\nDTSTART:20260301T100000Z\nDTEND:20260301T110000Z\nRDATE:20260310T100000Z\nRDATE;VALUE=PERIOD:20260312T100000Z/PT15M",
        ],
        &TODAY,
    );
    let ends: Vec<Value> = all(&store)
        .iter()
        .map(|one| one["ends_at"].clone())
        .collect();
    assert_eq!(
        ends,
        [
            "2026-03-01T11:00:00Z",
            "2026-03-10T11:00:00Z",
            "2026-03-12T10:15:00Z"
        ]
    );
}

#[test]
fn what_is_written_out_is_bounded_by_time_and_number() {
    // AN-33
    let store = store();
    import(
        &store,
        &["UID:m\nDTSTART:19900115T100000Z\nRRULE:FREQ=MONTHLY"],
        &TODAY,
    );
    let records = all(&store);
    assert_eq!(
        records.len(),
        1 + 48,
        "the series, and four years of months"
    );
    assert_eq!(records[1]["starts_at"], "2024-03-15T10:00:00Z");
    assert_eq!(records[48]["starts_at"], "2028-02-15T10:00:00Z");
    let hourly = import(
        &store,
        &["UID:h\nDTSTART:20260301T100000Z\nRRULE:FREQ=HOURLY"],
        &TODAY,
    );
    assert_eq!(hourly.occurrences.added, 1_500);
    assert!(
        hourly.notes[0].contains("more occurrences than are written out: 1"),
        "{hourly:?}"
    );
    let odd = import(
        &store,
        &["UID:x\nDTSTART:20260301T100000Z\nRRULE:FREQ=SOMETIMES"],
        &TODAY,
    );
    assert_eq!((odd.added, odd.occurrences.added), (1, 0));
    assert!(odd.notes[0].contains("rule cannot be read"), "{odd:?}");
}

#[test]
fn importing_again_adds_what_the_horizon_reaches_and_removes_what_no_longer_takes_place() {
    // AN-34
    let series = "UID:m\nDTSTART:20260115T100000Z\nRRULE:FREQ=MONTHLY\nSUMMARY:Rent";
    let store = store();
    let first = import(&store, &[series], &TODAY);
    assert_eq!((first.added, first.occurrences.added), (1, 25));
    let same = import(&store, &[series], &TODAY);
    assert_eq!((same.unchanged, same.occurrences.unchanged), (1, 25));
    assert_eq!(
        (same.added, same.updated, same.occurrences.added),
        (0, 0, 0)
    );
    let later = import(&store, &[series], &Day("2026-06-01T10:00:00Z"));
    assert_eq!(
        (later.added, later.updated),
        (0, 0),
        "events are counted apart"
    );
    assert_eq!((later.occurrences.added, later.occurrences.removed), (3, 0));
    let ended = series.replace("FREQ=MONTHLY", "FREQ=MONTHLY;COUNT=4");
    let ended = import(&store, &[&ended], &Day("2026-06-01T10:00:00Z"));
    assert_eq!((ended.updated, ended.occurrences.removed), (1, 25));
    assert_eq!(all(&store).len(), 4);
    // A changed occurrence takes the place of the planned one.
    let changed = "UID:m\nRECURRENCE-ID:20260215T100000Z\nDTSTART:20260216T100000Z\nSUMMARY:Rent";
    import(
        &store,
        &[
            &series.replace("FREQ=MONTHLY", "FREQ=MONTHLY;COUNT=4"),
            changed,
        ],
        &TODAY,
    );
    let records = all(&store);
    assert_eq!(records.len(), 4);
    assert_eq!(records[1]["starts_at"], "2026-02-16T10:00:00Z");
    assert_eq!(records[1]["occurrence_of"], "m");
}
