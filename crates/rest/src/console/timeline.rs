//! All sources in one order, a day at a time, with the days of the month and the months before and after it.

use askama::Template;
use axum::http::StatusCode;
use contract::aggregate::Granularity;
use contract::query::{PageLimit, RecordsQuery};
use contract::reader::ReadContract as _;
use contract::time::Instant;
use jiff::civil::Date;

use super::browse::{after, stream_address, unit_name};
use super::chart::{Bucket, Chart};
use super::format::format_count;
use super::frame::{Frame, Section};
use super::html;
use super::moment;
use super::sources::Sources;
use super::summary::{self, Summary};
use super::time_counts::{Counts, Days, TimedStream, counts, timed_streams, within};
use super::value;
use super::viewer::Viewer;
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
    let viewer = match Viewer::enter(&context, Section::Timeline).await? {
        Ok(viewer) => viewer,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let sources = Sources::read(&viewer).await?;
    let connection = viewer.params.text("connection").map(str::to_owned);
    let streams = timed_streams(&viewer, &sources, connection.as_deref()).await?;
    let today = moment::today(viewer.service.now());
    let asked = viewer.params.text("day").and_then(|day| day.parse().ok());
    let middle: Date = asked.unwrap_or(today);
    let months = Days::months_around(middle);
    let by_month = counts(&viewer, &streams, months, Granularity::Month).await?;
    let month = match asked {
        Some(day) => day.first_of_month(),
        None => latest(&by_month, today.first_of_month()),
    };
    let days = Days {
        from: month,
        until: after(month, Granularity::Month).unwrap_or(month),
    };
    let by_day = counts(&viewer, &streams, days, Granularity::Day).await?;
    let day = asked.unwrap_or_else(|| latest(&by_day, today));
    let (rows, more) = records(&viewer, &streams, day).await?;
    let total: u64 = by_day
        .get(&day)
        .iter()
        .flat_map(|day| day.iter())
        .map(|(_, n)| n)
        .sum();
    let (before, next) = beside(&viewer, &by_day, &by_month, day);
    let page = TimelinePage {
        heading: day.strftime("%A, %-d %B %Y").to_string(),
        total: format_count(total, "record"),
        sources: links(&viewer, &sources, connection.as_deref()),
        days: day_chart(&viewer, &by_day, days, day),
        months: month_chart(&viewer, &by_month, day),
        before,
        next,
        day: day.to_string(),
        kept: kept(&viewer),
        rows,
        more,
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
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

fn day_chart(viewer: &Viewer, counts: &Counts, days: Days, here: Date) -> Chart {
    let mut buckets = Vec::new();
    let mut day = days.from;
    while day < days.until {
        buckets.push(Bucket {
            name: unit_name(day, Granularity::Day),
            address: day_address(viewer, day),
            counts: counts.get(&day).cloned().unwrap_or_default(),
            here: day == here,
        });
        let Some(next) = after(day, Granularity::Day) else {
            break;
        };
        day = next;
    }
    Chart::new(buckets)
}

fn month_chart(viewer: &Viewer, counts: &Counts, here: Date) -> Chart {
    month_buckets(
        counts,
        |month| day_address(viewer, month),
        Some(here.first_of_month()),
    )
}

/// A bar for each month from the first to the last that has records.
pub(super) fn month_buckets(
    counts: &Counts,
    address: impl Fn(Date) -> String,
    here: Option<Date>,
) -> Chart {
    let mut buckets = Vec::new();
    let (first, last) = (counts.keys().next(), counts.keys().next_back());
    let mut next = first.copied();
    while let Some(month) = next.filter(|month| Some(month) <= last) {
        buckets.push(Bucket {
            name: unit_name(month, Granularity::Month),
            address: address(month),
            counts: counts.get(&month).cloned().unwrap_or_default(),
            here: here == Some(month),
        });
        next = after(month, Granularity::Month);
    }
    Chart::new(buckets)
}

/// The days before and after one that have records; in another month, its first or last day that is known to be near.
fn beside(viewer: &Viewer, days: &Counts, months: &Counts, day: Date) -> (String, String) {
    let month = day.first_of_month();
    let earlier = days.range(..day).next_back().map(|(day, _)| *day);
    let earlier = earlier.or_else(|| {
        let (month, _) = months.range(..month).next_back()?;
        Some(month.last_of_month())
    });
    let later = days
        .range(day..)
        .map(|(day, _)| *day)
        .find(|one| *one > day);
    let later = later.or_else(|| months.keys().copied().find(|one| *one > day));
    let address = |day: Option<Date>| day.map(|day| day_address(viewer, day)).unwrap_or_default();
    (address(earlier), address(later))
}

/// The records of a day, earliest first.
async fn records(
    viewer: &Viewer,
    streams: &[TimedStream],
    day: Date,
) -> Result<(Vec<Row>, Vec<MoreLink>), Problem> {
    let days = Days {
        from: day,
        until: after(day, Granularity::Day).unwrap_or(day),
    };
    let (mut rows, mut more) = (Vec::new(), Vec::new());
    for stream in streams {
        let Some(time) = stream.shape.time() else {
            continue;
        };
        let mut query = RecordsQuery::new(stream.stream.clone());
        query.connection_id = Some(stream.connection.clone());
        query.filters = vec![within(time, days)];
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
        let chart = month_buckets(&counts, |month| month.to_string(), Some(month(4)));
        assert_eq!(chart.bars.len(), 4);
        assert!(chart.bars[3].here && chart.bars[1].parts.is_empty());
        assert!(month_buckets(&Counts::new(), |month| month.to_string(), None).is_empty());
    }
}
