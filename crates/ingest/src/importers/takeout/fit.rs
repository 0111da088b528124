//! Google Fit: the sums of each day, and the sessions. Sums of quarters of an hour are left.

use serde_json::{Map, Number, Value, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::{list, members_of, moment, text};
use crate::importers::pieces::{
    Converter, Cut, Made, begins_with, has_columns, malformed, parse_json,
};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "google-fit",
    title: "Google Fit (Takeout)",
    declaration: Declared::Shape(SHAPE),
    origin: "takeout.google.com: choose Fit; the archive, or its folder Fit",
    contents: "the sums of each day, and sessions with their sums",
    recognise,
    importer: |input, acceptor, _| {
        let mut reader = input.into_reader();
        let is_session = begins_with(&mut reader, b"{");
        let cut = if is_session { Cut::Whole } else { Cut::Rows };
        cut.importer(reader, acceptor, Fit)
    },
};

const SHAPE: Shape = Shape {
    key: "google-fit",
    name: "Google Fit",
    streams: &[
        Stream {
            name: "days",
            label: "Days",
            about: "The sums of each day.",
            time: Some("day"),
            fields: &[
                shape::text("id"),
                shape::date("day"),
                shape::integer("steps"),
                shape::number("calories").about("In kcal."),
                shape::number("distance_metres"),
                shape::number("move_minutes"),
                shape::number("heart_rate").about("Beats a minute, on average."),
                shape::number("weight_kg"),
                shape::object("details").about("Everything else that the table says."),
            ],
            children: &[],
        },
        Stream {
            name: "sessions",
            label: "Sessions",
            about: "Activities with a beginning and an end.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("activity").role("title").searched().grouped(),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::number("minutes"),
                shape::object("details"),
            ],
            children: &[],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let members = members_of(file.head);
    let has = |name: &str| members.iter().any(|one| one == name);
    if has("fitnessActivity") && has("startTime") {
        return Verdict::Takes;
    }
    if has_columns(file.head, &["Date", "Move Minutes count"]) {
        return Verdict::Takes;
    }
    if has_columns(file.head, &["Start time", "End time", "Move Minutes count"]) {
        return Verdict::Leaves("sums of Google Fit by the quarter of an hour");
    }
    let is_raw = has("Data Source") && has("Data Points");
    if is_raw {
        return Verdict::Leaves("single measurements of Google Fit");
    }
    Verdict::Unlike
}

struct Fit;

impl Converter for Fit {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        match value.get("Date") {
            Some(_) => day(&value, made),
            None => session(&value, made),
        }
    }
}

fn day(row: &Value, made: &mut Made) -> Result<(), Rejection> {
    let day = text(row, "Date").filter(|day| day.parse::<jiff::civil::Date>().is_ok());
    let Some(day) = day else {
        return Err(malformed("the row has no date").in_field("Date"));
    };
    let number = |name: &str| text(row, name)?.parse::<Number>().ok();
    let taken = [
        ("steps", "Step count"),
        ("calories", "Calories (kcal)"),
        ("distance_metres", "Distance (m)"),
        ("move_minutes", "Move Minutes count"),
        ("heart_rate", "Average heart rate (bpm)"),
        ("weight_kg", "Average weight (kg)"),
    ];
    let columns = row.as_object().into_iter().flatten();
    let others = columns.filter_map(|(name, _)| {
        let is_taken = name == "Date" || taken.iter().any(|(_, column)| column == name);
        let value = number(name).filter(|_| !is_taken)?;
        Some((name.clone(), Value::from(value)))
    });
    let others: Map<String, Value> = others.collect();
    let mut record =
        json!({"id": day, "day": day, "details": (!others.is_empty()).then_some(others)});
    for (field, column) in taken {
        if let Some(members) = record.as_object_mut() {
            members.insert(field.to_owned(), json!(number(column)));
        }
    }
    made.add("days", record);
    Ok(())
}

fn session(session: &Value, made: &mut Made) -> Result<(), Rejection> {
    let activity = text(session, "fitnessActivity");
    let Some((activity, started_at)) = activity.zip(moment(session, "startTime")) else {
        return Err(malformed("the session has no activity or no startTime"));
    };
    let seconds = text(session, "duration").and_then(|text| text.strip_suffix('s'));
    let seconds: Option<f64> = seconds.and_then(|seconds| seconds.parse().ok());
    let sums = list(session, "aggregate").iter().filter_map(|sum| {
        let name = text(sum, "metricName")?.trim_start_matches("com.google.");
        let value = sum.get("floatValue").or(sum.get("intValue"))?;
        Some((name.to_owned(), value.clone()))
    });
    let sums: Map<String, Value> = sums.collect();
    made.add(
        "sessions",
        json!({
            "id": readable_key(&format!("{started_at} {activity}")),
            "activity": activity,
            "started_at": started_at,
            "ended_at": moment(session, "endTime"),
            "minutes": seconds.map(|seconds| seconds / 60.0),
            "details": (!sums.is_empty()).then_some(sums),
        }),
    );
    Ok(())
}
