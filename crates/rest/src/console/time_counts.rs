//! How many records there are in each day, month or year, over all streams that say when. Every count is an aggregate of
//! the read contract, one for each stream.

use std::collections::BTreeMap;

use contract::aggregate::{AggregateQuery, Granularity, GroupBy, Grouping, Metric};
use contract::declaration::FilterOperator;
use contract::error::ReadError;
use contract::id::StreamName;
use contract::query::Filter;
use contract::reader::ReadContract as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use read::GrantReader;
use tokio::task::JoinSet;

use super::moment;
use super::sources::{Source, Sources};
use super::stream_shape::{FieldShape, StreamShape};
use super::viewer::Viewer;
use crate::problem::Problem;

/// A stream whose records have a time that can be asked for.
pub(super) struct TimedStream {
    pub(super) connection: String,
    pub(super) source: String,
    pub(super) colour: usize,
    pub(super) stream: StreamName,
    pub(super) shape: StreamShape,
}

/// Days, from the first to before the last; without one, all of that side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Days {
    pub(super) from: Option<Date>,
    pub(super) until: Option<Date>,
}

/// Up to so many years are shown month by month.
const MONTHLY_YEARS: i16 = 8;

impl Days {
    /// A year, a month or a day.
    pub(super) fn of(day: Date, unit: Granularity) -> Self {
        let first = match unit {
            Granularity::Year => day.first_of_year(),
            Granularity::Month => day.first_of_month(),
            _ => day,
        };
        Self {
            from: Some(first),
            until: after(first, unit),
        }
    }

    /// The years around a day that can be shown month by month.
    pub(super) fn years_around(day: Date) -> Self {
        let shifted = |years: i16| {
            let span = jiff::Span::new().years(years);
            day.first_of_year().checked_add(span).ok()
        };
        Self {
            from: shifted(-MONTHLY_YEARS / 2),
            until: shifted(MONTHLY_YEARS / 2),
        }
    }
}

/// Whether these years are few enough to be shown month by month.
pub(super) fn is_monthly<T>(years: &BTreeMap<Date, T>) -> bool {
    let span = years.keys().next_back().zip(years.keys().next());
    span.is_none_or(|(last, first)| last.year() - first.year() < MONTHLY_YEARS)
}

/// The first day of the next unit.
pub(super) fn after(day: Date, unit: Granularity) -> Option<Date> {
    let span = match unit {
        Granularity::Year => jiff::Span::new().years(1),
        Granularity::Month => jiff::Span::new().months(1),
        _ => jiff::Span::new().days(1),
    };
    day.checked_add(span).ok()
}

/// Records by the first day of each unit, and there by colour.
pub(super) type Counts = BTreeMap<Date, Vec<(usize, u64)>>;

/// The streams that say when, of one connection or of all.
pub(super) async fn timed_streams(
    viewer: &Viewer,
    sources: &Sources,
    connection: Option<&str>,
) -> Result<Vec<TimedStream>, Problem> {
    let mut timed = Vec::new();
    let wanted = |source: &&Source| connection.is_none_or(|id| id == source.id);
    for source in sources.0.iter().filter(wanted) {
        for stream in source.streams.iter().filter(|stream| stream.records > 0) {
            let shape = StreamShape::read(viewer, &stream.name, &source.id).await?;
            if shape.time().is_some() {
                timed.push(TimedStream {
                    connection: source.id.clone(),
                    source: source.name.clone(),
                    colour: source.colour,
                    stream: stream.name.clone(),
                    shape,
                });
            }
        }
    }
    Ok(timed)
}

/// Counts of all streams together.
pub(super) async fn counts(
    viewer: &Viewer,
    streams: &[TimedStream],
    days: Days,
    granularity: Granularity,
) -> Result<Counts, Problem> {
    let mut running = JoinSet::new();
    for stream in streams {
        let Some(time) = stream.shape.time() else {
            continue;
        };
        let grouping = Some(by_time(time, granularity)?);
        let mut query = AggregateQuery::new(stream.stream.clone(), Metric::Count, grouping)?;
        query.connection_id = Some(stream.connection.clone());
        query.filters = within(time, days).into_iter().collect();
        let (reader, colour) = (viewer.reader.clone(), stream.colour);
        running.spawn(async move { (colour, spread(&reader, query).await) });
    }
    let mut counts = Counts::new();
    while let Some(done) = running.join_next().await {
        let (colour, counted) =
            done.map_err(|error| Problem::internal("records could not be counted", &error))?;
        for (day, count) in counted? {
            let of_day = counts.entry(day).or_default();
            match of_day.iter_mut().find(|(known, _)| *known == colour) {
                Some((_, sum)) => *sum += count,
                None => of_day.push((colour, count)),
            }
        }
    }
    for of_day in counts.values_mut() {
        of_day.sort_unstable();
    }
    Ok(counts)
}

/// By a unit of time, as it is cut here.
pub(super) fn by_time(time: &FieldShape, granularity: Granularity) -> Result<Grouping, ReadError> {
    let by = GroupBy::Time {
        field: time.name.clone(),
        granularity,
        time_zone: if time.is_date { None } else { moment::zone() },
    };
    Grouping::new(by, None)
}

/// The units of time that have records, each with how many.
pub(super) async fn spread(
    reader: &GrantReader,
    query: AggregateQuery,
) -> Result<BTreeMap<Date, u64>, ReadError> {
    let answer = reader.aggregate(query).await?;
    let groups = answer.groups.unwrap_or_default().into_iter();
    let groups = groups.filter_map(|group| {
        let key: String = serde_json::from_str(group.key.get()).ok()?;
        let day: Date = key.get(..10)?.parse().ok()?;
        Some((day, group.count))
    });
    Ok(groups.collect())
}

/// The condition that a record's time lies in these days, as they are counted here; none where they are all days.
pub(super) fn within(time: &FieldShape, days: Days) -> Option<Filter> {
    let bounds: Vec<(FilterOperator, String)> = [
        (FilterOperator::Gte, days.from),
        (FilterOperator::Lt, days.until),
    ]
    .into_iter()
    .filter_map(|(operator, day)| Some((operator, bound(time, day?))))
    .collect();
    (!bounds.is_empty()).then(|| Filter::range(time.name.clone(), bounds))
}

/// Where a day begins, as a field's values are compared.
pub(super) fn bound(time: &FieldShape, day: Date) -> String {
    match day.to_zoned(TimeZone::system()) {
        Ok(midnight) if !time.is_date => midnight.timestamp().to_string(),
        _ => day.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::query::FilterTest;

    #[test]
    fn a_day_of_dates_is_not_moved_into_a_zone() {
        let mut field = FieldShape::named("booked_on");
        field.is_date = true;
        let days = Days::of(Date::constant(2026, 3, 1), Granularity::Day);
        let filter = within(&field, days).unwrap();
        let bounds = [
            (FilterOperator::Gte, "2026-03-01".to_owned()),
            (FilterOperator::Lt, "2026-03-02".to_owned()),
        ];
        assert_eq!(filter.test, FilterTest::Range(bounds.to_vec()));
        field.is_date = false;
        let FilterTest::Range(bounds) = within(&field, days).unwrap().test else {
            panic!("it is a range");
        };
        assert!(bounds.iter().all(|(_, at)| at.ends_with('Z')));
        assert!(within(&field, Days::default()).is_none());
    }
}
