//! Aggregates: one number, or one per group. All times are in one calendar unit, since no adapter looks into a key.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::call::Call;
use super::filter::{filters, granted, values};
use super::projection::refuse_client_extras;
use super::reply::Failure;
use super::sources::resolve;
use super::state::State;
use super::world::{Record, Stream};

const DEFAULT_GROUPS: usize = 10;
const MAX_GROUPS: usize = 100;
const GRANULARITIES: [&str; 7] = ["minute", "hour", "day", "week", "month", "quarter", "year"];
/// The one calendar unit of every time.
const UNIT: &str = "2026-01-01";

pub(crate) fn answer(state: &State, call: &Call, stream: &str) -> Result<Value, Failure> {
    call.only(&[
        "connection_id",
        "metric",
        "field",
        "group_by",
        "group_by_time",
        "granularity",
        "time_zone",
        "limit",
        "filter[]",
    ])?;
    refuse_client_extras(state, call)?;
    let source = resolve(state, stream, call.once("connection_id")?)?;
    let question = Question::read(call, source.stream)?;
    let filters = filters(call, source.stream)?;
    let records: Vec<&Record> = source
        .records(&state.world)
        .filter(|record| filters.iter().all(|filter| filter.keeps(record)))
        .collect();
    let mut body = question.echo(stream);
    body.insert("filtered_record_count".to_owned(), json!(records.len()));
    match question.groups(&records) {
        None => {
            body.insert("value".to_owned(), question.value(&records));
        }
        Some(groups) => {
            let rest = groups.iter().skip(question.limit);
            let other: usize = rest.map(|(_, records)| records.len()).sum();
            let shown: Vec<Value> = groups
                .iter()
                .take(question.limit)
                .map(|(key, records)| question.group(key, records))
                .collect();
            body.insert("groups".to_owned(), json!(shown));
            body.insert("limit".to_owned(), json!(question.limit));
            body.insert("other_count".to_owned(), json!(other));
        }
    }
    body.insert("links".to_owned(), json!({"self": call.raw_target}));
    body.insert(
        "meta".to_owned(),
        json!({"count": {"kind": "none"}, "warnings": state.warnings}),
    );
    Ok(Value::Object(body))
}

struct Question<'a> {
    metric: &'a str,
    field: Option<&'a str>,
    grouping: Grouping<'a>,
    limit: usize,
}

enum Grouping<'a> {
    None,
    Value(&'a str),
    Time {
        field: &'a str,
        granularity: &'a str,
        time_zone: &'a str,
    },
}

type Group<'a> = (Value, Vec<&'a Record>);

impl<'a> Question<'a> {
    fn read(call: &'a Call, stream: &Stream) -> Result<Question<'a>, Failure> {
        let metric = call.once("metric")?.unwrap_or_default();
        if !["count", "sum", "min", "max", "count_distinct"].contains(&metric) {
            return Err(Failure::invalid(
                "metric",
                "metric must be one of count, sum, min, max, count_distinct",
            ));
        }
        let field = call.once("field")?;
        match (metric, field) {
            ("count", Some(_)) => return Err(Failure::invalid("field", "count takes no field")),
            ("count", None) => {}
            (_, None) => return Err(Failure::invalid("field", "field is required")),
            (_, Some(field)) => declared(stream, field, metric)?,
        }
        let grouping = Grouping::read(call, stream)?;
        let limit = call.number("limit", 1..=MAX_GROUPS)?;
        if limit.is_some() && matches!(grouping, Grouping::None) {
            return Err(Failure::invalid("limit", "limit is for groups only"));
        }
        Ok(Question {
            metric,
            field,
            grouping,
            limit: limit.unwrap_or(DEFAULT_GROUPS),
        })
    }

    fn echo(&self, stream: &str) -> Map<String, Value> {
        let (by, time, granularity, zone) = match &self.grouping {
            Grouping::None => (None, None, None, None),
            Grouping::Value(field) => (Some(*field), None, None, None),
            Grouping::Time {
                field,
                granularity,
                time_zone,
            } => (None, Some(*field), Some(*granularity), Some(*time_zone)),
        };
        let members = [
            ("object", json!("aggregation")),
            ("stream", json!(stream)),
            ("metric", json!(self.metric)),
            ("field", json!(self.field)),
            ("group_by", json!(by)),
            ("group_by_time", json!(time)),
            ("granularity", json!(granularity)),
            ("time_zone", json!(zone)),
            ("approximate", json!(false)),
        ];
        let owned = members.map(|(name, value)| (name.to_owned(), value));
        owned.into_iter().collect()
    }

    fn value(&self, records: &[&Record]) -> Value {
        let Some(field) = self.field else {
            return json!(records.len());
        };
        let mut found: Vec<&Value> = records
            .iter()
            .filter_map(|record| record.data.get(field))
            .filter(|value| !value.is_null())
            .collect();
        found.sort_by(|one, other| values(one, other));
        match self.metric {
            "sum" => sum(&found),
            "min" => found.first().copied().cloned().unwrap_or_default(),
            "max" => found.last().copied().cloned().unwrap_or_default(),
            _ => {
                found.dedup();
                json!(found.len())
            }
        }
    }

    fn group(&self, key: &Value, records: &[&Record]) -> Value {
        let mut group = json!({"key": key, "count": records.len()});
        if self.field.is_some() {
            group["value"] = self.value(records);
        }
        group
    }

    /// Values by frequency, time in its order.
    fn groups<'r>(&self, records: &[&'r Record]) -> Option<Vec<Group<'r>>> {
        let mut groups: BTreeMap<String, Group<'r>> = BTreeMap::new();
        for record in records {
            let key = match &self.grouping {
                Grouping::None => return None,
                Grouping::Value(field) => record.data.get(*field).cloned().unwrap_or_default(),
                Grouping::Time { field, .. } if !record.data.contains_key(*field) => continue,
                Grouping::Time { .. } => json!(UNIT),
            };
            let group = groups
                .entry(key.to_string())
                .or_insert_with(|| (key, Vec::new()));
            group.1.push(record);
        }
        if matches!(self.grouping, Grouping::None) {
            return None;
        }
        let mut groups: Vec<Group<'_>> = groups.into_values().collect();
        if matches!(self.grouping, Grouping::Value(_)) {
            groups.sort_by_key(|(_, records)| std::cmp::Reverse(records.len()));
        }
        Some(groups)
    }
}

impl<'a> Grouping<'a> {
    fn read(call: &'a Call, stream: &Stream) -> Result<Grouping<'a>, Failure> {
        let (granularity, zone) = (call.once("granularity")?, call.once("time_zone")?);
        match (call.once("group_by")?, call.once("group_by_time")?) {
            (Some(_), Some(_)) => Err(Failure::invalid(
                "group_by",
                "group_by and group_by_time cannot be combined; choose one grouping dimension",
            )),
            (None, Some(field)) => {
                declared(stream, field, "group_by_time")?;
                let granularity = granularity
                    .ok_or_else(|| Failure::invalid("granularity", "granularity is required"))?;
                if !GRANULARITIES.contains(&granularity) {
                    let units =
                        "granularity must be minute, hour, day, week, month, quarter or year";
                    return Err(Failure::invalid("granularity", units));
                }
                let time_zone = zone.unwrap_or("UTC");
                if TimeZone::get(time_zone).is_err() {
                    let unknown = format!("Unknown time_zone: '{time_zone}'");
                    return Err(Failure::invalid("time_zone", unknown));
                }
                Ok(Grouping::Time {
                    field,
                    granularity,
                    time_zone,
                })
            }
            _ if granularity.is_some() || zone.is_some() => Err(Failure::invalid(
                "granularity",
                "granularity and time_zone need group_by_time",
            )),
            (Some(field), None) => {
                declared(stream, field, "group_by")?;
                Ok(Grouping::Value(field))
            }
            (None, None) => Ok(Grouping::None),
        }
    }
}

fn declared(stream: &Stream, field: &str, aggregate: &str) -> Result<(), Failure> {
    if granted(stream, field)?.aggregates.contains(&aggregate) {
        return Ok(());
    }
    Err(Failure::invalid(
        "field",
        format!("Aggregation {aggregate} is not declared for '{field}'"),
    ))
}

/// Whole numbers stay whole.
fn sum(found: &[&Value]) -> Value {
    let whole: Option<i64> = found.iter().map(|value| value.as_i64()).sum();
    whole.map_or_else(
        || json!(found.iter().filter_map(|value| value.as_f64()).sum::<f64>()),
        |whole| json!(whole),
    )
}
