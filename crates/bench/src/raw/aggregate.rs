//! Raw aggregates over the engine's own columns and collectors.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::agg_result::{AggregationResult, BucketResult, MetricResult};
use tantivy::aggregation::{AggContextParams, AggregationCollector, Key};
use tantivy::query::AllQuery;

use super::RawReader;
use crate::BenchError;

const DAY_MICROS: i64 = 86_400_000_000;

/// More buckets than any column of the corpus has: the engine cuts silently below that.
const ALL_BUCKETS: u32 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawAggregate {
    Sum(&'static str),
    /// The number of records per value of a text column, all values.
    GroupBy(&'static str),
    /// The number of records per calendar month of a time column (UTC).
    Months(&'static str),
    /// The number of different values of a text column, exact: the engine's own estimate is wrong by
    /// some per cent and slower than counting its groups.
    Distinct(&'static str),
}

/// Groups and their values; one pair with an empty group for a single number.
pub type RawGroups = Vec<(String, f64)>;

impl RawReader {
    pub fn aggregate(&self, aggregate: RawAggregate) -> Result<RawGroups, BenchError> {
        let request = match aggregate {
            RawAggregate::Sum(field) => json!({"sum": {"field": field}}),
            RawAggregate::GroupBy(field) | RawAggregate::Distinct(field) => json!({"terms": {
                "field": field, "size": ALL_BUCKETS, "segment_size": ALL_BUCKETS
            }}),
            // The engine has no calendar: it counts days, which are then added up to months.
            RawAggregate::Months(field) => json!({"histogram": {
                "field": field, "interval": DAY_MICROS, "min_doc_count": 1
            }}),
        };
        Ok(match self.collect(&request)? {
            Some(AggregationResult::MetricResult(MetricResult::Sum(single))) => {
                vec![(String::new(), single.value.unwrap_or_default())]
            }
            Some(AggregationResult::BucketResult(BucketResult::Terms { buckets, .. }))
                if matches!(aggregate, RawAggregate::Distinct(_)) =>
            {
                vec![(String::new(), float(buckets.len() as u64))]
            }
            Some(AggregationResult::BucketResult(BucketResult::Terms { buckets, .. })) => buckets
                .into_iter()
                .map(|bucket| (bucket.key.to_string(), float(bucket.doc_count)))
                .collect(),
            Some(AggregationResult::BucketResult(BucketResult::Histogram { buckets })) => {
                months(buckets.iter().map(|day| (&day.key, day.doc_count)))
            }
            _ => Vec::new(),
        })
    }

    fn collect(&self, request: &Value) -> Result<Option<AggregationResult>, BenchError> {
        let request: Aggregations = serde_json::from_value(json!({ "only": request }))?;
        let collector = AggregationCollector::from_aggs(request, AggContextParams::default());
        let mut results = self.index.searcher().search(&AllQuery, &collector)?;
        Ok(results.0.remove("only"))
    }
}

/// Adds ordered days up to months, named like `2019-03`.
fn months<'a>(days: impl Iterator<Item = (&'a Key, u64)>) -> RawGroups {
    let mut months: Vec<((i16, i8), u64)> = Vec::new();
    for (key, count) in days {
        let Key::F64(micros) = key else { continue };
        let day = Timestamp::from_microsecond(whole(*micros)).unwrap_or_default();
        let day = day.to_zoned(TimeZone::UTC);
        let (year, month) = (day.year(), day.month());
        match months.last_mut().filter(|(last, _)| *last == (year, month)) {
            Some((_, sum)) => *sum += count,
            None => months.push(((year, month), count)),
        }
    }
    months
        .into_iter()
        .map(|((year, month), count)| (format!("{year:04}-{month:02}"), float(count)))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "bucket keys are whole microseconds inside ten known years"
)]
fn whole(micros: f64) -> i64 {
    micros as i64
}
