//! All sources in one order, a day at a time, with the days of the month and the months before and after it.

use std::ops::Bound;

use askama::Template;
use axum::http::StatusCode;
use contract::aggregate::Granularity;
use contract::error::{ErrorCode, ReadError};
use contract::query::{Order, PageLimit, RecordsQuery};
use contract::reader::ReadContract as _;
use contract::time::Instant;
use jiff::civil::Date;

use super::address::Address;
use super::browse::{stream_address, unit_name};
use super::chart::{Bucket, Chart};
use super::format::format_count;
use super::frame::{Frame, Section};
use super::html;
use super::moment;
use super::sources::Sources;
use super::summary::{self, Summary};
use super::time_counts::{
    Counts, Days, TimedStream, after, counts, is_monthly, timed_streams, within,
};
use super::value;
use super::viewer::Viewer;
use crate::params::invalid_param;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

/// The most records of one stream on a day.
const RECORDS: u32 = 50;

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage {
    frame: Frame,
    heading: String,
    total: String,
    sources: Vec<SourceLink>,
    days: Chart,
    months: Chart,
    /// Where there are more years than `months` shows.
    years: Chart,
    before: String,
    next: String,
    day: String,
    /// What a form keeps.
    kept: Vec<(String, String)>,
    rows: Vec<Row>,
    more: Vec<MoreLink>,
}

struct SourceLink {
    name: String,
    address: String,
    here: bool,
    colour: usize,
}

struct Row {
    summary: Summary,
    address: String,
    source: String,
    stream: String,
    colour: usize,
    at: Instant,
}

/// A stream that has more on this day than is shown.
struct MoreLink {
    name: String,
    address: String,
}

/// `GET /timeline`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Timeline).await?;
    let sources = Sources::read(&viewer).await?;
    let connection = viewer.params.text("connection").map(str::to_owned);
    if let Some(id) = connection.as_deref()
        && sources.get(id).is_none()
    {
        let unknown = ReadError::new(ErrorCode::NotFound, "there is no such connection");
        return Err(unknown
            .with_hint("the timeline without it has all connections")
            .into());
    }
    let asked = viewer.params.text("day").map(Period::parse).transpose()?;
    let streams = timed_streams(&viewer, &sources, connection.as_deref()).await?;
    let known = Known::read(&viewer, &streams, asked).await?;
    let day = known.day;
    let (rows, more) = records(&viewer, &streams, day).await?;
    let total = known.by_day.get(&day).into_iter().flatten();
    let total: u64 = total.map(|(_, count)| count).sum();
    let address = |day: Option<Date>| day.map(|day| day_address(&viewer, day)).unwrap_or_default();
    let page = TimelinePage {
        heading: day.strftime("%A, %-d %B %Y").to_string(),
        total: format_count(total, "record"),
        sources: links(&viewer, &sources, connection.as_deref()),
        days: day_chart(&viewer, &known),
        months: chart(&viewer, &known.by_month, Granularity::Month, day),
        years: if is_monthly(&known.by_year) {
            Chart::new(Vec::new())
        } else {
            chart(&viewer, &known.by_year, Granularity::Year, day)
        },
        before: address(known.beside(&viewer, &streams, Order::Descending).await?),
        next: address(known.beside(&viewer, &streams, Order::Ascending).await?),
        day: day.to_string(),
        kept: kept(&viewer),
        rows,
        more,
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

/// What the address asks for: a day, or a month or year, which opens at its first day that has records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Period {
    day: Date,
    unit: Granularity,
}

impl Period {
    fn parse(text: &str) -> Result<Self, Problem> {
        let units = [
            ("", Granularity::Day, 10),
            ("-01", Granularity::Month, 7),
            ("-01-01", Granularity::Year, 4),
        ];
        let mut units = units
            .into_iter()
            .filter(|(.., length)| *length == text.len());
        let asked = units.find_map(|(rest, unit, _)| {
            let day = format!("{text}{rest}").parse().ok()?;
            Some(Self { day, unit })
        });
        asked.ok_or_else(|| {
            invalid_param("day", "this is no day")
                .with_hint("write it as 2026-03-01, a month as 2026-03, a year as 2026")
                .into()
        })
    }
}

/// A unit of time as the address of the timeline takes it.
pub(super) fn unit_address(day: Date, unit: Granularity) -> String {
    let format = match unit {
        Granularity::Year => "%Y",
        Granularity::Month => "%Y-%m",
        _ => "%Y-%m-%d",
    };
    day.strftime(format).to_string()
}

/// How many records there are around the day that is shown: in each day of its month, each month of the years around it, and
/// each year.
struct Known {
    day: Date,
    by_day: Counts,
    by_month: Counts,
    by_year: Counts,
}

impl Known {
    async fn read(
        viewer: &Viewer,
        streams: &[TimedStream],
        asked: Option<Period>,
    ) -> Result<Self, Problem> {
        let today = moment::today(viewer.service.now());
        let by_year = counts(viewer, streams, Days::default(), Granularity::Year).await?;
        let day = match asked {
            Some(asked) => asked.day,
            None => latest(&by_year, today.first_of_year()),
        };
        let years = if is_monthly(&by_year) {
            Days::default()
        } else {
            Days::years_around(day)
        };
        let by_month = counts(viewer, streams, years, Granularity::Month).await?;
        let month = match asked {
            Some(asked) if asked.unit == Granularity::Year => {
                let mut months = by_month.range(asked.day..=asked.day.last_of_year());
                months.next().map_or(asked.day, |(month, _)| *month)
            }
            Some(asked) => asked.day.first_of_month(),
            None => latest(&by_month, today.first_of_month()),
        };
        let days = Days::of(month, Granularity::Month);
        let by_day = counts(viewer, streams, days, Granularity::Day).await?;
        let day = match asked {
            Some(asked) if asked.unit == Granularity::Day => asked.day,
            Some(_) => by_day.keys().next().copied().unwrap_or(month),
            None => latest(&by_day, today),
        };
        Ok(Self {
            day,
            by_day,
            by_month,
            by_year,
        })
    }

    /// The next day in a direction that has records.
    async fn beside(
        &self,
        viewer: &Viewer,
        streams: &[TimedStream],
        order: Order,
    ) -> Result<Option<Date>, Problem> {
        let next = |counts: &Counts, than: Date| {
            let mut later = counts.range((Bound::Excluded(than), Bound::Unbounded));
            let found = match order {
                Order::Ascending => later.next(),
                Order::Descending => counts.range(..than).next_back(),
            };
            found.map(|(day, _)| *day)
        };
        let nearest = |counts: Counts| match order {
            Order::Ascending => counts.keys().next().copied(),
            Order::Descending => counts.keys().next_back().copied(),
        };
        if let Some(day) = next(&self.by_day, self.day) {
            return Ok(Some(day));
        }
        let mut month = next(&self.by_month, self.day.first_of_month());
        if let (None, Some(year)) = (month, next(&self.by_year, self.day.first_of_year())) {
            let year = Days::of(year, Granularity::Year);
            month = nearest(counts(viewer, streams, year, Granularity::Month).await?);
        }
        let Some(month) = month else {
            return Ok(None);
        };
        let month = Days::of(month, Granularity::Month);
        let days = counts(viewer, streams, month, Granularity::Day).await?;
        Ok(nearest(days))
    }
}

/// The last unit up to one that has records, else the first that has.
fn latest(counts: &Counts, upto: Date) -> Date {
    let mut before = counts.range(..=upto);
    let found = before.next_back().or_else(|| counts.iter().next());
    found.map_or(upto, |(day, _)| *day)
}

fn kept(viewer: &Viewer) -> Vec<(String, String)> {
    let kept = ["connection", "as"].iter().filter_map(|name| {
        let value = viewer.params.text(name)?;
        Some(((*name).to_owned(), value.to_owned()))
    });
    kept.collect()
}

fn links(viewer: &Viewer, sources: &Sources, here: Option<&str>) -> Vec<SourceLink> {
    let all = SourceLink {
        name: "All".to_owned(),
        address: viewer.here.clone().without(&["connection"]).to_string(),
        here: here.is_none(),
        colour: usize::MAX,
    };
    let each = sources.0.iter().map(|source| SourceLink {
        name: source.name.clone(),
        address: viewer
            .here
            .clone()
            .set("connection", &source.id)
            .to_string(),
        here: here == Some(source.id.as_str()),
        colour: source.colour,
    });
    std::iter::once(all).chain(each).collect()
}

fn day_address(viewer: &Viewer, day: Date) -> String {
    viewer.here.clone().set("day", &day.to_string()).to_string()
}

fn day_chart(viewer: &Viewer, known: &Known) -> Chart {
    let days = Days::of(known.day, Granularity::Month);
    let mut buckets = Vec::new();
    let mut next = days.from;
    while let Some(day) = next.filter(|day| Some(*day) < days.until) {
        buckets.push(Bucket {
            name: unit_name(day, Granularity::Day),
            address: day_address(viewer, day),
            counts: known.by_day.get(&day).cloned().unwrap_or_default(),
            here: day == known.day,
        });
        next = after(day, Granularity::Day);
    }
    Chart::new(buckets)
}

/// Bars of this page for months or years.
fn chart(viewer: &Viewer, counts: &Counts, unit: Granularity, here: Date) -> Chart {
    let here = Days::of(here, unit).from;
    Chart::new(buckets(counts, unit, &viewer.here, here))
}

/// A bar for each unit from the first to the last that has records, each leading to its place on the timeline.
pub(super) fn buckets(
    counts: &Counts,
    unit: Granularity,
    timeline: &Address,
    here: Option<Date>,
) -> Vec<Bucket> {
    let mut buckets = Vec::new();
    let (first, last) = (counts.keys().next(), counts.keys().next_back());
    let mut next = first.copied();
    while let Some(day) = next.filter(|day| Some(day) <= last) {
        buckets.push(Bucket {
            name: unit_name(day, unit),
            address: timeline
                .clone()
                .set("day", &unit_address(day, unit))
                .to_string(),
            counts: counts.get(&day).cloned().unwrap_or_default(),
            here: here == Some(day),
        });
        next = after(day, unit);
    }
    buckets
}

/// The records of a day, earliest first.
async fn records(
    viewer: &Viewer,
    streams: &[TimedStream],
    day: Date,
) -> Result<(Vec<Row>, Vec<MoreLink>), Problem> {
    let days = Days::of(day, Granularity::Day);
    let (mut rows, mut more) = (Vec::new(), Vec::new());
    for stream in streams {
        let Some(time) = stream.shape.time() else {
            continue;
        };
        let mut query = RecordsQuery::new(stream.stream.clone());
        query.connection_id = Some(stream.connection.clone());
        query.filters = within(time, days).into_iter().collect();
        query.limit = PageLimit::new(RECORDS);
        let page = viewer.reader.records(query).await?;
        if page.has_more() {
            let address = viewer.seen(stream_address(&stream.connection, stream.stream.as_str()));
            more.push(MoreLink {
                name: format!("{}, {}", stream.source, stream.shape.label),
                address: super::browse::day_of(address, time, days).to_string(),
            });
        }
        for record in &page.data {
            let members = value::members(record.data.as_deref());
            let own = value::text(&members, time.name.as_str());
            let own = own.or_else(|| summary::time(&stream.shape, &members));
            rows.push(Row {
                at: own.and_then(|at| Instant::parse(&at)).unwrap_or_default(),
                summary: Summary::of_members(&stream.shape, &members, &record.id),
                address: viewer.record(&stream.connection, stream.stream.as_str(), &record.id),
                source: stream.source.clone(),
                stream: stream.shape.label.clone(),
                colour: stream.colour,
            });
        }
    }
    rows.sort_by_key(|row| row.at);
    Ok((rows, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_opens_at_the_last_day_that_has_records() {
        let day = |n| Date::constant(2026, 3, n);
        let counts: Counts = [(day(2), vec![(0, 1)]), (day(9), vec![(0, 1)])].into();
        assert_eq!(latest(&counts, day(5)), day(2));
        assert_eq!(latest(&counts, day(1)), day(2));
        assert_eq!(latest(&Counts::new(), day(5)), day(5));
    }

    #[test]
    fn every_month_in_between_has_a_bar() {
        let month = |n| Date::constant(2026, n, 1);
        let counts: Counts = [(month(1), vec![(0, 1)]), (month(4), vec![(1, 2)])].into();
        let timeline = Address::new("/timeline");
        let bars = buckets(&counts, Granularity::Month, &timeline, Some(month(4)));
        assert_eq!(bars.len(), 4);
        assert!(bars[3].here && bars[1].counts.is_empty());
        assert_eq!(bars[1].address, "/timeline?day=2026-02");
        assert!(buckets(&Counts::new(), Granularity::Month, &timeline, None).is_empty());
    }

    #[test]
    fn a_day_a_month_and_a_year_can_be_asked_for() {
        let asked =
            |text: &str| Period::parse(text).map(|asked| (asked.day.to_string(), asked.unit));
        for (text, day, unit) in [
            ("2009-03-05", "2009-03-05", Granularity::Day),
            ("2009-03", "2009-03-01", Granularity::Month),
            ("2009", "2009-01-01", Granularity::Year),
        ] {
            assert_eq!(asked(text).unwrap(), (day.to_owned(), unit));
        }
        for text in ["tomorrow", "2009-13", "09", "2009-02-30", "+009"] {
            assert!(Period::parse(text).is_err(), "{text}");
        }
    }
}
