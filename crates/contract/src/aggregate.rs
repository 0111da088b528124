//! One number over many records, or one per group.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::error::ReadError;
use crate::id::{FieldName, StreamName};
use crate::page::{Links, Meta};
use crate::query::{Filter, refused};
use crate::wire::{Nullable, ObjectTag, present};

/// Groups by a field that are returned when the request names no limit.
pub const DEFAULT_GROUP_LIMIT: u32 = 10;

pub const MAX_GROUP_LIMIT: u32 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateQuery {
    pub stream: StreamName,
    pub connection_id: Option<String>,
    pub metric: Metric,
    pub grouping: Option<Grouping>,
    pub filters: Vec<Filter>,
}

impl AggregateQuery {
    /// An aggregate over all that may be seen of a stream. Distinct values cannot be counted per group.
    pub fn new(
        stream: StreamName,
        metric: Metric,
        grouping: Option<Grouping>,
    ) -> Result<AggregateQuery, ReadError> {
        if grouping.is_some() && matches!(metric, Metric::CountDistinct(_)) {
            return Err(refused(
                "metric",
                "count_distinct cannot be grouped; use count, sum, min or max",
            ));
        }
        Ok(AggregateQuery {
            stream,
            connection_id: None,
            metric,
            grouping,
            filters: Vec::new(),
        })
    }
}

crate::names! {
    pub enum MetricKind {
        Count = "count",
        Sum = "sum",
        Min = "min",
        Max = "max",
        CountDistinct = "count_distinct",
    }
}

/// What to compute, and over which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    Count,
    Sum(FieldName),
    Min(FieldName),
    Max(FieldName),
    /// How many distinct non-null values; exact.
    CountDistinct(FieldName),
}

impl Metric {
    /// Reads both parameters: every metric but `count` needs a field.
    pub fn parse(metric: &str, field: Option<&str>) -> Result<Metric, ReadError> {
        let over = match MetricKind::named(metric) {
            Some(MetricKind::Count) => {
                return match field {
                    None => Ok(Metric::Count),
                    Some(_) => Err(refused("field", "metric=count takes no field")),
                };
            }
            Some(MetricKind::Sum) => Metric::Sum,
            Some(MetricKind::Min) => Metric::Min,
            Some(MetricKind::Max) => Metric::Max,
            Some(MetricKind::CountDistinct) => Metric::CountDistinct,
            None => {
                let names = MetricKind::NAMES.join(", ");
                return Err(refused("metric", format!("metric must be one of {names}")));
            }
        };
        let field =
            field.ok_or_else(|| refused("field", format!("metric={metric} needs a field")))?;
        FieldName::parse(field)
            .map(over)
            .map_err(|error| refused("field", error.to_string()))
    }

    pub fn kind(&self) -> MetricKind {
        match self {
            Metric::Count => MetricKind::Count,
            Metric::Sum(_) => MetricKind::Sum,
            Metric::Min(_) => MetricKind::Min,
            Metric::Max(_) => MetricKind::Max,
            Metric::CountDistinct(_) => MetricKind::CountDistinct,
        }
    }

    pub fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }

    pub fn field(&self) -> Option<&FieldName> {
        match self {
            Metric::Count => None,
            Metric::Sum(field)
            | Metric::Min(field)
            | Metric::Max(field)
            | Metric::CountDistinct(field) => Some(field),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    by: GroupBy,
    limit: Option<u32>,
}

impl Grouping {
    /// A grouping; a limit must lie between 1 and [`MAX_GROUP_LIMIT`].
    pub fn new(by: GroupBy, limit: Option<u32>) -> Result<Grouping, ReadError> {
        if limit.is_some_and(|limit| limit == 0 || limit > MAX_GROUP_LIMIT) {
            return Err(refused(
                "limit",
                "limit must be an integer between 1 and 100",
            ));
        }
        Ok(Grouping { by, limit })
    }

    pub fn by(&self) -> &GroupBy {
        &self.by
    }

    /// How many groups to return. A year of months or a quarter of days is only understood whole, so groups by time are all
    /// that may be asked for.
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(match self.by {
            GroupBy::Field(_) => DEFAULT_GROUP_LIMIT,
            GroupBy::Time { .. } => MAX_GROUP_LIMIT,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupBy {
    /// Equal values of a field.
    Field(FieldName),
    /// The same calendar unit.
    Time {
        field: FieldName,
        granularity: Granularity,
        /// The IANA time zone that cuts the units; UTC when not named.
        time_zone: Option<String>,
    },
}

crate::names! {
    pub enum Granularity {
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        /// A week, from Monday.
        Week = "week",
        Month = "month",
        Quarter = "quarter",
        Year = "year",
    }
}

impl Granularity {
    pub fn parse(name: &str) -> Result<Granularity, ReadError> {
        Self::named(name).ok_or_else(|| {
            let names = Self::NAMES.join(", ");
            refused("granularity", format!("granularity must be one of {names}"))
        })
    }
}

/// The answer: `value` for one figure, `groups` for many.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Aggregation {
    /// `aggregation`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub stream: Option<String>,
    pub metric: String,
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub field: Nullable<String>,
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub group_by: Nullable<String>,
    /// Grouped by the calendar unit of which field.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub group_by_time: Nullable<String>,
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub granularity: Nullable<String>,
    /// The time zone that cuts the units.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub time_zone: Nullable<String>,
    /// The connection, when the answer is about one.
    pub connection_id: Option<String>,
    pub filtered_record_count: Option<u64>,
    pub approximate: Option<bool>,
    /// The figure as written; JSON null where no record has a value, absent when grouped.
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    pub groups: Option<Vec<Group>>,
    pub limit: Option<u32>,
    /// How many records fell into groups that are not shown.
    pub other_count: Option<u64>,
    pub links: Option<Links>,
    pub meta: Option<Meta>,
}

impl Aggregation {
    /// The answer to a request, without its figures.
    pub fn for_query(query: &AggregateQuery) -> Aggregation {
        let (mut group_by, mut group_by_time, mut granularity, mut time_zone) =
            (None, None, None, None);
        match query.grouping.as_ref().map(Grouping::by) {
            Some(GroupBy::Field(field)) => group_by = Some(field.to_string()),
            Some(GroupBy::Time {
                field,
                granularity: unit,
                time_zone: zone,
            }) => {
                group_by_time = Some(field.to_string());
                granularity = Some(unit.as_str().to_owned());
                time_zone = Some(zone.clone().unwrap_or_else(|| "UTC".to_owned()));
            }
            None => {}
        }
        Aggregation {
            object: ObjectTag::AGGREGATION,
            stream: Some(query.stream.to_string()),
            metric: query.metric.as_str().to_owned(),
            field: Nullable::or_null(query.metric.field().map(ToString::to_string)),
            group_by: Nullable::or_null(group_by),
            group_by_time: Nullable::or_null(group_by_time),
            granularity: Nullable::or_null(granularity),
            time_zone: Nullable::or_null(time_zone),
            connection_id: query.connection_id.clone(),
            approximate: Some(false),
            limit: query.grouping.as_ref().map(Grouping::limit),
            meta: Some(Meta::default()),
            ..Aggregation::default()
        }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Group {
    /// The value they share, as written; JSON null for records without one.
    pub key: Box<RawValue>,
    pub count: u64,
    /// The figure, for `sum`, `min` and `max`.
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> FieldName {
        FieldName::parse(name).unwrap()
    }

    #[test]
    fn only_count_stands_without_a_field() {
        assert_eq!(Metric::parse("count", None).unwrap(), Metric::Count);
        assert_eq!(
            Metric::parse("sum", Some("size")).unwrap(),
            Metric::Sum(field("size"))
        );
        for (metric, given, param) in [
            ("count", Some("x"), "field"),
            ("sum", None, "field"),
            ("avg", None, "metric"),
        ] {
            assert_eq!(
                Metric::parse(metric, given).unwrap_err().param.as_deref(),
                Some(param)
            );
        }
    }

    #[test]
    fn groups_are_limited_and_never_hold_distinct_counts() {
        let by = || GroupBy::Field(field("folder"));
        assert_eq!(Grouping::new(by(), None).unwrap().limit(), 10);
        let by_time = GroupBy::Time {
            field: field("sent_at"),
            granularity: Granularity::Day,
            time_zone: None,
        };
        // AN-14
        assert_eq!(Grouping::new(by_time, None).unwrap().limit(), 100);
        assert!(Grouping::new(by(), Some(0)).is_err() && Grouping::new(by(), Some(101)).is_err());
        let stream = StreamName::parse("messages").unwrap();
        let grouping = Grouping::new(by(), Some(100)).ok();
        assert!(
            AggregateQuery::new(
                stream.clone(),
                Metric::CountDistinct(field("a")),
                grouping.clone()
            )
            .is_err()
        );
        // Decision 21: groups also take sum, min and max.
        assert!(AggregateQuery::new(stream, Metric::Sum(field("a")), grouping).is_ok());
    }

    #[test]
    fn a_request_by_month_is_written_and_answered_in_wire_names() {
        let by = GroupBy::Time {
            field: field("at"),
            granularity: Granularity::parse("month").unwrap(),
            time_zone: None,
        };
        let stream = StreamName::parse("messages").unwrap();
        let query = AggregateQuery::new(
            stream,
            Metric::Count,
            Some(Grouping::new(by, None).unwrap()),
        )
        .unwrap();
        let answer = serde_json::to_value(Aggregation::for_query(&query)).unwrap();
        assert_eq!(answer["time_zone"], "UTC");
        assert_eq!(answer["field"], serde_json::Value::Null);
        assert_eq!(answer["limit"], 100);
        assert!(Granularity::parse("decade").is_err());
    }

    #[test]
    fn figures_keep_all_their_digits_and_null_is_not_absent() {
        for text in [
            r#"{"metric":"sum","value":123456789012345678901234567890.50}"#,
            r#"{"metric":"min","value":null}"#,
            r#"{"metric":"sum","groups":[{"key":null,"count":2,"value":1.10}]}"#,
        ] {
            let answer: Aggregation = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
        }
    }
}
