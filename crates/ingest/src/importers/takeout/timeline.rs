//! Google's Timeline: where one was and how one got there. Older exports have `Records.json` and a file per month, newer ones
//! `Timeline.json` from an Android phone or `location-history.json` from an iPhone; each says the same in its own words.

use contract::time::Instant;
use serde_json::{Value, json};

use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::{list, members_of, moment, seconds_to_moment, text};
use crate::importers::pieces::{Converter, Cut, Made, malformed, parse_json};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

/// The lists in which the exports have their entries.
const LISTS: &[&str] = &["locations", "timelineObjects", "semanticSegments"];

/// Of points that are closer to each other, one is kept.
const SECONDS_APART: i64 = 60;

pub(crate) const EXPORT: Known = Known {
    name: "google-timeline",
    title: "Google's Timeline (Records.json, Timeline.json)",
    declaration: Declared::Shape(SHAPE),
    origin: "Android: Settings > Location > Location services > Timeline > Export; iPhone: Google Maps > Your Timeline > Export. Before 2025: takeout.google.com",
    contents: "visits, trips, and where one was, once a minute at most",
    recognise,
    importer: |input, acceptor, _| {
        let reader = input.into_reader();
        let converter = Timeline { last: None };
        Cut::Members(LISTS).importer(reader, acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "google-timeline",
    name: "Google Timeline",
    streams: &[
        Stream {
            name: "visits",
            label: "Visits",
            about: "Places where one was for a while.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("place").role("title").searched().grouped(),
                shape::text("address").searched(),
                shape::text("kind")
                    .grouped()
                    .about("What Google takes it for, such as HOME or WORK."),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::number("latitude"),
                shape::number("longitude"),
                shape::text("place_id").grouped(),
            ],
            children: &[],
        },
        Stream {
            name: "trips",
            label: "Trips",
            about: "Ways from one place to another.",
            time: Some("started_at"),
            fields: &[
                shape::text("id"),
                shape::text("kind")
                    .role("title")
                    .searched()
                    .grouped()
                    .about("Such as WALKING or IN_PASSENGER_VEHICLE."),
                shape::time("started_at"),
                shape::time("ended_at"),
                shape::number("metres"),
                shape::number("start_latitude"),
                shape::number("start_longitude"),
                shape::number("end_latitude"),
                shape::number("end_longitude"),
            ],
            children: &[],
        },
        Stream {
            name: "points",
            label: "Points",
            about: "Where one was, once a minute at most.",
            time: Some("at"),
            fields: &[
                shape::text("id"),
                shape::time("at"),
                shape::number("latitude"),
                shape::number("longitude"),
                shape::number("accuracy_metres"),
                shape::text("source").grouped(),
            ],
            children: &[],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let members = members_of(file.head);
    let has = |name: &str| members.iter().any(|one| one == name);
    let is_list = file.head.trim_ascii_start().starts_with(b"[");
    let is_segment = has("startTime") && (has("visit") || has("activity") || has("timelinePath"));
    match file.file_name() {
        _ if is_list && is_segment => Verdict::Takes,
        _ if !is_list && (has("timelineObjects") || has("semanticSegments")) => Verdict::Takes,
        _ if !is_list && has("locations") && contains(file.head, b"latitudeE7") => Verdict::Takes,
        "Records.json" | "Timeline.json" => {
            Verdict::Misses("it has no locations, timelineObjects or semanticSegments")
        }
        _ => Verdict::Unlike,
    }
}

fn contains(head: &[u8], what: &[u8]) -> bool {
    head.windows(what.len()).any(|at| at == what)
}

struct Timeline {
    last: Option<Instant>,
}

impl Converter for Timeline {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        if let Some(visit) = value.get("placeVisit") {
            return old_visit(visit, made);
        }
        if let Some(segment) = value.get("activitySegment") {
            return old_trip(segment, made);
        }
        if let Some(place) = e7(&value) {
            return self.point(&value, place, made);
        }
        let Some(started_at) = moment(&value, "startTime") else {
            // What the phone noted where it did not know its place.
            let is_no_place = ["timestamp", "timestampMs"]
                .iter()
                .any(|name| value.get(*name).is_some());
            return if is_no_place {
                Ok(())
            } else {
                Err(malformed("the entry has no time"))
            };
        };
        let ended_at = moment(&value, "endTime");
        if let Some(visit) = value.get("visit") {
            let best = visit.get("topCandidate").unwrap_or(&Value::Null);
            let place = best.get("placeLocation").and_then(place);
            let kind = text(best, "semanticType");
            let level = visit.get("hierarchyLevel").map(Value::to_string);
            made.add(
                "visits",
                json!({
                    "id": id(&started_at, &format!("{place:?} {level:?}")),
                    "place": kind,
                    "kind": kind,
                    "started_at": started_at,
                    "ended_at": ended_at,
                    "latitude": place.map(|(latitude, _)| latitude),
                    "longitude": place.map(|(_, longitude)| longitude),
                    "place_id": text(best, "placeId").or(text(best, "placeID")),
                }),
            );
        } else if let Some(activity) = value.get("activity") {
            let best = activity.get("topCandidate").unwrap_or(&Value::Null);
            let metres = activity.get("distanceMeters").and_then(number);
            let ends = ["start", "end"].map(|end| activity.get(end).and_then(place));
            trip(
                text(best, "type"),
                [Some(started_at), ended_at],
                metres,
                ends,
                made,
            );
        } else {
            self.path(&value, &started_at, made);
        }
        Ok(())
    }
}

impl Timeline {
    fn path(&mut self, value: &Value, started_at: &str, made: &mut Made) {
        for point in list(value, "timelinePath") {
            let Some(place) = point.get("point").and_then(place) else {
                made.reject("a point of the path has no place");
                continue;
            };
            let offset = point
                .get("durationMinutesOffsetFromStartTime")
                .and_then(number);
            let later = offset.and_then(|minutes| later(started_at, minutes));
            if let Some(at) = moment(point, "time").or(later) {
                self.keep(&at, place, &Value::Null, made);
            }
        }
    }

    fn point(
        &mut self,
        value: &Value,
        place: (f64, f64),
        made: &mut Made,
    ) -> Result<(), Rejection> {
        let Some(at) = moment(value, "timestamp").or_else(|| millis(value, "timestampMs")) else {
            return Err(malformed("the point has no time"));
        };
        self.keep(&at, place, value, made);
        Ok(())
    }

    fn keep(
        &mut self,
        at: &str,
        (latitude, longitude): (f64, f64),
        value: &Value,
        made: &mut Made,
    ) {
        let Some(instant) = Instant::parse(at) else {
            return;
        };
        let is_close = self.last.is_some_and(|last| {
            instant.0.abs_diff(last.0) < (SECONDS_APART * 1_000_000).unsigned_abs()
        });
        if is_close {
            return;
        }
        self.last = Some(instant);
        made.add(
            "points",
            json!({
                "id": id(at, &format!("{latitude} {longitude}")),
                "at": at,
                "latitude": latitude,
                "longitude": longitude,
                "accuracy_metres": value.get("accuracy").and_then(number),
                "source": text(value, "source"),
            }),
        );
    }
}

fn old_visit(visit: &Value, made: &mut Made) -> Result<(), Rejection> {
    let location = visit.get("location").unwrap_or(&Value::Null);
    let [Some(started_at), ended_at] = duration(visit) else {
        return Err(malformed("the visit has no time"));
    };
    let place = e7(location);
    made.add(
        "visits",
        json!({
            "id": id(&started_at, &format!("{place:?}")),
            "place": text(location, "name").or(text(location, "address")),
            "address": text(location, "address"),
            "kind": text(location, "semanticType").map(|kind| kind.trim_start_matches("TYPE_")),
            "started_at": started_at,
            "ended_at": ended_at,
            "latitude": place.map(|(latitude, _)| latitude),
            "longitude": place.map(|(_, longitude)| longitude),
            "place_id": text(location, "placeId"),
        }),
    );
    Ok(())
}

fn old_trip(segment: &Value, made: &mut Made) -> Result<(), Rejection> {
    let times = duration(segment);
    if times.first().is_none_or(Option::is_none) {
        return Err(malformed("the trip has no time"));
    }
    let ends = ["startLocation", "endLocation"].map(|end| segment.get(end).and_then(e7));
    let metres = segment.get("distance").and_then(number);
    trip(text(segment, "activityType"), times, metres, ends, made);
    Ok(())
}

fn trip(
    kind: Option<&str>,
    [started_at, ended_at]: [Option<String>; 2],
    metres: Option<f64>,
    [start, end]: [Option<(f64, f64)>; 2],
    made: &mut Made,
) {
    let began = started_at.as_deref().unwrap_or_default();
    made.add(
        "trips",
        json!({
            "id": id(began, &format!("{start:?} {end:?}")),
            "kind": kind.map(str::to_uppercase),
            "started_at": started_at,
            "ended_at": ended_at,
            "metres": metres,
            "start_latitude": start.map(|(latitude, _)| latitude),
            "start_longitude": start.map(|(_, longitude)| longitude),
            "end_latitude": end.map(|(latitude, _)| latitude),
            "end_longitude": end.map(|(_, longitude)| longitude),
        }),
    );
}

/// When an entry of an older export began and ended.
fn duration(value: &Value) -> [Option<String>; 2] {
    let duration = value.get("duration").unwrap_or(&Value::Null);
    [
        ("startTimestamp", "startTimestampMs"),
        ("endTimestamp", "endTimestampMs"),
    ]
    .map(|(name, in_millis)| moment(duration, name).or_else(|| millis(duration, in_millis)))
}

fn millis(value: &Value, name: &str) -> Option<String> {
    let millis: i64 = text(value, name)?.parse().ok()?;
    let (seconds, rest) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    seconds_to_moment(&format!("{seconds}.{rest:03}"))
}

fn later(start: &str, minutes: f64) -> Option<String> {
    let start = Instant::parse(start)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number beyond is cut to the largest, and then is no time"
    )]
    let micros = (minutes * 60e6) as i64;
    Some(Instant(start.0.checked_add(micros)?).to_rfc3339_millis())
}

fn id(at: &str, what: &str) -> String {
    let digits: String = at.chars().take(19).filter(char::is_ascii_digit).collect();
    readable_key(&format!(
        "{digits}-{}",
        short_hash(&format!("{at}\n{what}"))
    ))
}

/// A number, or a text that is one.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite())
}

/// A place in ten millionths of degrees. Some exports have those beyond 180 degrees wrapped around at 32 bits.
fn e7(value: &Value) -> Option<(f64, f64)> {
    let degrees = |name: &str, most: i64| {
        let e7 = value.get(name)?.as_i64()?;
        let e7 = if e7 > most {
            e7.checked_sub(1 << 32)?
        } else {
            e7
        };
        #[expect(clippy::cast_precision_loss, reason = "what fits 32 bits is exact")]
        let degrees = (e7.abs() <= most).then_some(e7 as f64 / 1e7);
        degrees
    };
    Some((
        degrees("latitudeE7", 900_000_000)?,
        degrees("longitudeE7", 1_800_000_000)?,
    ))
}

/// A place as a text: `geo:48.1,11.5` or `48.1°, 11.5°`, also inside an object.
fn place(value: &Value) -> Option<(f64, f64)> {
    let text = value.as_str().or_else(|| text(value, "latLng"))?;
    let text = text.trim_start_matches("geo:").replace('°', "");
    let (latitude, longitude) = text.split_once(',')?;
    let (latitude, longitude): (f64, f64) = (
        latitude.trim().parse().ok()?,
        longitude.trim().parse().ok()?,
    );
    let is_place = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
    is_place.then_some((latitude, longitude))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_in_all_their_forms() {
        let here = Some((48.1, -11.5));
        assert_eq!(place(&json!("geo:48.1,-11.5")), here);
        assert_eq!(place(&json!({"latLng": "48.1°, -11.5°"})), here);
        assert_eq!(place(&json!("geo:148.1,11.5")), None);
        assert_eq!(
            e7(&json!({"latitudeE7": 481_000_000, "longitudeE7": -115_000_000})),
            here
        );
        let wrapped = json!({"latitudeE7": 481_000_000, "longitudeE7": 4_179_967_296_i64});
        assert_eq!(e7(&wrapped), here);
        assert_eq!(e7(&json!({"latitudeE7": 481_000_000})), None);
    }
}
