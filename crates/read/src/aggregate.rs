//! One figure over many records, or one per group.

use contract::aggregate::{AggregateQuery, Aggregation, Group, GroupBy, Grouping, Metric};
use contract::declaration::Aggregations;
use contract::error::ReadError;
use contract::id::FieldName;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;
use store::search::{self, AggregateRequest, GroupKey, Value};

use crate::conditions::{Conditions, refused};
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::project::raw_json;
use crate::reader::{Answer, Session};

pub(crate) fn aggregate(session: &Session, query: &AggregateQuery) -> Answer<Aggregation> {
    let row = session.row(&query.stream, query.connection_id.as_deref())?;
    check(&row, query)?;
    let conditions = Conditions::new(&row, &query.filters)?;
    let request = AggregateRequest {
        scope: row.scope(Vec::new(), conditions.filters()),
        metric: query.metric.clone(),
        grouping: query.grouping.as_ref().map(grouping).transpose()?,
    };
    let computed = session.store.aggregate(&request)?;

    let mut answer = Aggregation::for_query(query);
    answer.connection_id = Some(row.connection().id.to_string());
    answer.filtered_record_count = Some(computed.matched);
    if query.grouping.is_some() {
        let groups = computed.groups.into_iter().map(group);
        answer.groups = Some(groups.collect::<Result<_>>()?);
        answer.other_count = Some(computed.other_count);
    } else {
        answer.value = Some(value(computed.value)?);
    }
    let mut shown = Shown::for_row(&row);
    for key in &computed.damaged {
        shown.damaged.note(&row, key);
    }
    if !shown.damaged.is_empty() {
        shown.damaged.warn_in(answer.meta.get_or_insert_default());
    }
    shown.fields(fields_of(query).map(|used| used.field.as_str()));
    shown.fields(conditions.fields());
    Ok((answer, shown))
}

struct FieldUse<'q> {
    param: &'static str,
    field: &'q FieldName,
    list: &'static str,
}

fn fields_of(query: &AggregateQuery) -> impl Iterator<Item = FieldUse<'_>> {
    let metric = query.metric.as_str();
    let measured = query.metric.field().map(|field| FieldUse {
        param: "field",
        field,
        list: metric,
    });
    let by = query.grouping.as_ref().map(Grouping::by);
    let grouped = by.map(|by| match by {
        GroupBy::Field(field) => FieldUse {
            param: "group_by",
            field,
            list: "group_by",
        },
        GroupBy::Time { field, .. } => FieldUse {
            param: "group_by_time",
            field,
            list: "group_by_time",
        },
    });
    measured.into_iter().chain(grouped)
}

/// Whether the row offers the metric and its fields. A field that is not granted is refused before anything else is
/// checked.
fn check(row: &Row, query: &AggregateQuery) -> Result<(), ReadError> {
    for used in fields_of(query) {
        row.field(used.field.as_str(), used.param)?;
    }
    let stream = &query.stream;
    let offered = row.aggregations().ok_or_else(|| {
        refused(
            "metric",
            format!("Aggregations are not declared for stream '{stream}'"),
        )
    })?;
    if query.metric == Metric::Count && !offered.count {
        let message = format!("Aggregation count is not declared for stream '{stream}'");
        return Err(refused("metric", message));
    }
    for FieldUse { param, field, list } in fields_of(query) {
        if !declared(&offered, list).contains(field) {
            let message = format!("Aggregation {list} is not declared for '{field}'");
            return Err(refused(param, message));
        }
    }
    Ok(())
}

fn declared<'a>(offered: &'a Aggregations, list: &str) -> &'a [FieldName] {
    match list {
        "sum" => &offered.sum,
        "min" => &offered.min,
        "max" => &offered.max,
        "count_distinct" => &offered.count_distinct,
        "group_by" => &offered.group_by,
        "group_by_time" => &offered.group_by_time,
        _ => &[],
    }
}

fn grouping(grouping: &Grouping) -> Result<search::Grouping, ReadError> {
    let limit = usize::try_from(grouping.limit()).unwrap_or(usize::MAX);
    Ok(match grouping.by() {
        GroupBy::Field(field) => search::Grouping::Values {
            field: field.clone(),
            limit,
        },
        GroupBy::Time {
            field,
            granularity,
            time_zone,
        } => search::Grouping::Time {
            field: field.clone(),
            granularity: *granularity,
            zone: zone_of(time_zone.as_deref())?,
            limit,
        },
    })
}

fn zone_of(name: Option<&str>) -> Result<TimeZone, ReadError> {
    let Some(name) = name else {
        return Ok(TimeZone::UTC);
    };
    TimeZone::get(name).map_err(|_| {
        refused("time_zone", format!("Unknown time_zone: '{name}'"))
            .with_hint("name an IANA time zone, such as Europe/Berlin")
    })
}

fn group(group: search::Group) -> Result<Group> {
    Ok(Group {
        key: raw_json(match group.key {
            GroupKey::Missing => "null".to_owned(),
            GroupKey::Text(text) => serde_json::Value::String(text).to_string(),
            GroupKey::Integer(number) => number.to_string(),
            GroupKey::Number(number) => number_text(number),
            GroupKey::Boolean(truth) => truth.to_string(),
        })?,
        count: group.count,
        value: group.value.map(value).transpose()?,
    })
}

fn value(value: Value) -> Result<Box<RawValue>> {
    raw_json(match value {
        Value::None => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number_text(number),
        Value::Json(raw) => raw,
    })
}

/// A number as JSON, a whole one without a fraction. A sum that overflowed has no JSON form and becomes `null`.
fn number_text(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    let text = format!("{number:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_json() {
        for (number, text) in [
            (3.0, "3"),
            (-0.5, "-0.5"),
            (1e300, "1e300"),
            (f64::INFINITY, "null"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(number_text(number), text);
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
    }

    #[test]
    fn zones_travel_with_the_program() {
        assert!(zone_of(Some("Europe/Berlin")).is_ok());
        assert_eq!(
            zone_of(Some("Mars/X")).unwrap_err().param.as_deref(),
            Some("time_zone")
        );
    }
}
