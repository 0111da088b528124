//! Apple Health (`export.xml`): measurements, workouts and the rings of each day. The file can have gigabytes; it is read element by
//! element.

use serde_json::{Map, Number, Value, json};

use super::pieces::{Converter, Cut, Made, malformed};
use super::xml::{Node, XmlCut};
use crate::exports::{Candidate, Declared, Known, Verdict, has_ending};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "apple-health",
    title: "an Apple Health export (export.xml)",
    declaration: Declared::Shape(SHAPE),
    origin: "Health on the iPhone: your picture > Export All Health Data; the archive, or export.xml in it",
    contents: "measurements, workouts and the sums of each day; routes are GPX, and electrocardiograms are left",
    recognise,
    importer: |input, acceptor, _| {
        let cut = Cut::Xml(XmlCut {
            // Measurements that belong together stand by themselves too, so only these are taken.
            pieces: &["Record", "Correlation", "Workout", "ActivitySummary"],
            // The seconds of a heart beat.
            without: &[],
        });
        cut.importer(input.into_reader(), acceptor, Health)
    },
};

const SHAPE: Shape = Shape {
    key: "apple-health",
    name: "Apple Health",
    streams: &[
        Stream {
            name: "measurements",
            label: "Measurements",
            about: "What was measured or noted, such as steps, heart rate, weight and sleep.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("kind")
                    .role("title")
                    .searched()
                    .grouped()
                    .about("Such as StepCount, HeartRate, BodyMass or SleepAnalysis."),
                shape::number("value"),
                shape::text("unit").grouped(),
                shape::text("category")
                    .searched()
                    .grouped()
                    .about("What was noted, where it is no number, such as AsleepDeep."),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::text("source").searched().grouped(),
                shape::object("details"),
            ],
            children: &[],
        },
        Stream {
            name: "workouts",
            label: "Workouts",
            about: "Workouts with their sums.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("activity").role("title").searched().grouped(),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::number("minutes"),
                shape::number("distance"),
                shape::text("distance_unit").grouped(),
                shape::number("energy"),
                shape::text("energy_unit").grouped(),
                shape::text("source").searched().grouped(),
                shape::text("route").about("The file with its route, in the same archive."),
                shape::object("details"),
            ],
            children: &[],
        },
        Stream {
            name: "days",
            label: "Days",
            about: "What the rings say of each day.",
            time: Some("day"),
            fields: &[
                shape::text("id"),
                shape::date("day"),
                shape::number("active_energy"),
                shape::text("energy_unit").grouped(),
                shape::number("exercise_minutes"),
                shape::number("stand_hours"),
            ],
            children: &[],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = String::from_utf8_lossy(file.head);
    match file.file_name() {
        _ if head.contains("<HealthData") || head.contains("<!DOCTYPE HealthData") => {
            Verdict::Takes
        }
        "export_cda.xml" if head.contains("<ClinicalDocument") => {
            Verdict::Leaves("measurements of Apple Health in another form")
        }
        name if name.starts_with("ecg_") && has_ending(name, "csv") => {
            Verdict::Leaves("electrocardiograms of Apple Health")
        }
        "export.xml" => Verdict::Misses("it has no element HealthData"),
        _ => Verdict::Unlike,
    }
}

struct Health;

impl Converter for Health {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let node = Node::parse(piece)?;
        match node.name.as_str() {
            "Record" => measurement(&node, made),
            "Workout" => workout(&node, made),
            "ActivitySummary" => day(&node, made),
            // Its measurements stand by themselves too.
            _ => Ok(()),
        }
    }
}

fn measurement(node: &Node, made: &mut Made) -> Result<(), Rejection> {
    let kind = node.attribute("type").map(kind_of);
    let Some((kind, started_at)) = kind.zip(time(node, "startDate")) else {
        return Err(malformed("the measurement has no type or no startDate"));
    };
    let value = node.attribute("value");
    let number = value.and_then(number_of);
    let category = value.filter(|_| number.is_none()).map(|value| {
        let value = value.strip_prefix("HKCategoryValue").unwrap_or(value);
        value.strip_prefix(kind).unwrap_or(value)
    });
    made.add(
        "measurements",
        json!({
            "id": id(node, kind, &["type", "sourceName", "startDate", "endDate", "value", "unit"]),
            "kind": kind,
            "value": number,
            "unit": node.attribute("unit"),
            "category": category,
            "started_at": started_at,
            "ended_at": time(node, "endDate"),
            "source": node.attribute("sourceName"),
            "details": details(node),
        }),
    );
    Ok(())
}

fn workout(node: &Node, made: &mut Made) -> Result<(), Rejection> {
    let activity = node.attribute("workoutActivityType").map(kind_of);
    let Some((activity, started_at)) = activity.zip(time(node, "startDate")) else {
        return Err(malformed("the workout has no type or no startDate"));
    };
    // Newer exports have statistics instead of totals.
    let sum = |total: &str, kinds: &[&str]| {
        let said = node.attribute(total).and_then(number_of);
        let unit = node.attribute(&format!("{total}Unit"));
        let mut statistics = node.named("WorkoutStatistics").filter(|one| {
            let kind = one.attribute("type").map(kind_of).unwrap_or_default();
            kinds.iter().any(|wanted| kind.starts_with(wanted))
        });
        let found =
            statistics.find_map(|one| Some((one.attribute("sum").and_then(number_of)?, one)));
        match (said, found) {
            (Some(said), _) => (Some(said), unit),
            (None, Some((sum, one))) => (Some(sum), one.attribute("unit")),
            (None, None) => (None, None),
        }
    };
    let (distance, distance_unit) = sum("totalDistance", &["Distance"]);
    let (energy, energy_unit) = sum("totalEnergyBurned", &["ActiveEnergyBurned"]);
    let minutes = node.attribute("duration").and_then(number_of);
    let is_minutes = node
        .attribute("durationUnit")
        .is_none_or(|unit| unit == "min");
    made.add(
        "workouts",
        json!({
            "id": id(node, activity, &["workoutActivityType", "sourceName", "startDate", "endDate"]),
            "activity": activity,
            "started_at": started_at,
            "ended_at": time(node, "endDate"),
            "minutes": minutes.filter(|_| is_minutes),
            "distance": distance,
            "distance_unit": distance_unit,
            "energy": energy,
            "energy_unit": energy_unit,
            "source": node.attribute("sourceName"),
            "route": node.find("FileReference").and_then(|file| file.attribute("path")),
            "details": details(node),
        }),
    );
    Ok(())
}

fn day(node: &Node, made: &mut Made) -> Result<(), Rejection> {
    let day = node.attribute("dateComponents");
    let Some(day) = day.filter(|day| day.parse::<jiff::civil::Date>().is_ok()) else {
        return Err(malformed("the day has no date"));
    };
    let number = |name: &str| node.attribute(name).and_then(number_of);
    made.add(
        "days",
        json!({
            "id": day,
            "day": day,
            "active_energy": number("activeEnergyBurned"),
            "energy_unit": node.attribute("activeEnergyBurnedUnit"),
            "exercise_minutes": number("appleExerciseTime"),
            "stand_hours": number("appleStandHours"),
        }),
    );
    Ok(())
}

/// The name of a type without what all of them begin with.
fn kind_of(name: &str) -> &str {
    let prefixes = [
        "HKQuantityTypeIdentifier",
        "HKCategoryTypeIdentifier",
        "HKCorrelationTypeIdentifier",
        "HKWorkoutActivityType",
        "HKDataType",
    ];
    let mut kinds = prefixes
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix));
    kinds.next().unwrap_or(name)
}

fn number_of(text: &str) -> Option<Number> {
    let number: Number = text.parse().ok()?;
    number
        .as_f64()
        .is_some_and(f64::is_finite)
        .then_some(number)
}

/// There are no ids: what, from where, when and how much.
fn id(node: &Node, kind: &str, attributes: &[&str]) -> String {
    let values = attributes
        .iter()
        .map(|name| node.attribute(name).unwrap_or_default());
    let hash = short_hash(&values.collect::<Vec<_>>().join("\n"));
    let start = node.attribute("startDate").unwrap_or_default();
    let digits = start.chars().take(19).filter(char::is_ascii_digit);
    let start: String = digits.collect();
    readable_key(&format!("{kind}-{start}-{hash}"))
}

/// `2024-03-05 10:00:00 +0100`
fn time(node: &Node, name: &str) -> Option<String> {
    let text = node.attribute(name)?;
    let (date, rest) = text.split_once(' ')?;
    let (time, offset) = rest.split_once(' ')?;
    let (hours, minutes) = offset.split_at_checked(3)?;
    let text = format!("{date}T{time}{hours}:{minutes}");
    contract::time::Instant::parse(&text).map(|_| text)
}

fn details(node: &Node) -> Option<Map<String, Value>> {
    let entries = node.named("MetadataEntry").filter_map(|entry| {
        let name = entry.attribute("key")?.trim_start_matches("HK").to_owned();
        Some((name, Value::from(entry.attribute("value")?)))
    });
    let entries: Map<String, Value> = entries.collect();
    (!entries.is_empty()).then_some(entries)
}
