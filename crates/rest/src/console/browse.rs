//! Browsing: all streams, and the table of one, with its columns, conditions and order in the address.

mod chosen;
pub(super) mod download;
mod table;

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use contract::aggregate::{AggregateQuery, Granularity, GroupBy, Grouping, Metric};
use contract::error::ReadError;
use contract::id::StreamName;
use contract::query::Filter;
use contract::reader::ReadContract as _;
use jiff::civil::Date;
use serde_json::value::RawValue;

use self::chosen::Chosen;
pub(super) use self::table::day_of;
use self::table::{Chip, Column, RangeForm, Row, Turn};
use super::address::Address;
use super::chart::{Bucket, Chart};
use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::html;
use super::sources::{Source, Sources};
use super::stream_shape::{CURRENCY, FieldShape, StreamShape, title};
use super::time_counts::{self, after, by_time, is_monthly};
use super::value::figure;
use super::viewer::Viewer;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

const SUMS: usize = 3;
/// How many currencies have a sum of their own.
const CURRENCIES: u32 = 6;

#[derive(Template)]
#[template(path = "browse.html")]
struct BrowsePage {
    frame: Frame,
    sources: Vec<SourceCard>,
    total: String,
    timeline: String,
}

struct SourceCard {
    id: String,
    name: String,
    connector: String,
    colour: usize,
    total: String,
    streams: Vec<StreamLink>,
}

struct StreamLink {
    name: String,
    address: String,
    records: String,
}

#[derive(Template)]
#[template(path = "stream.html")]
struct StreamPage {
    frame: Frame,
    label: String,
    about: String,
    source: String,
    browse: String,
    total: String,
    sums: Vec<(String, String)>,
    chart: Chart,
    chips: Vec<Chip>,
    columns: Vec<Column>,
    /// All fields, to choose columns from.
    choices: Vec<Column>,
    ranges: Vec<RangeForm>,
    /// The parameters a form keeps.
    kept: Vec<(String, String)>,
    /// The order of the rows, where they have one.
    turn: Option<Turn>,
    rows: Vec<Row>,
    clear: String,
    csv: String,
    jsonl: String,
    next: String,
    first: String,
}

/// `GET /browse`
pub(super) async fn index(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let sources = Sources::read(&viewer).await?;
    let cards = sources.0.iter().map(|source| card(&viewer, source));
    let page = BrowsePage {
        total: format_count(sources.records(), "record"),
        timeline: viewer.address("/timeline").to_string(),
        sources: cards.collect(),
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

fn card(viewer: &Viewer, source: &Source) -> SourceCard {
    let streams = source.streams.iter().map(|stream| StreamLink {
        name: stream.label.clone(),
        address: viewer
            .seen(stream_address(&source.id, stream.name.as_str()))
            .to_string(),
        records: format_number(stream.records),
    });
    SourceCard {
        id: source.id.clone(),
        name: source.name.clone(),
        connector: label(&title(&source.connector)),
        colour: source.colour,
        total: format_count(source.records(), "record"),
        streams: streams.collect(),
    }
}

/// The page of a stream.
pub(super) fn stream_address(connection: &str, stream: &str) -> Address {
    Address::of_parts("/browse", &[connection, stream])
}

/// `GET /browse/{connection_id}/{stream}`
pub(super) async fn stream(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Browse).await?;
    let (connection, name) = (context.part(0).to_owned(), context.part(1).to_owned());
    drop(context);
    let name = crate::query_params::stream(&name, viewer.is_owner())?;
    let shape = StreamShape::read(&viewer, &name, &connection).await?;
    let chosen = Chosen::new(&viewer, &shape, (&connection, name))?;
    let found = viewer.reader.records(chosen.with_currency(&shape)).await?;
    let meta = found.meta.as_ref();
    let count = meta.and_then(|meta| meta.count.as_option()?.value());
    let sources = Sources::read(&viewer).await?;
    let bare = viewer.seen(stream_address(&connection, chosen.query.stream.as_str()));
    let saved = stream_address(&connection, chosen.query.stream.as_str()).to_string() + "/download";
    let saved = viewer.here.clone().without(&[]).on(&saved);
    let next = found.next_cursor();
    let ranges = table::ranges(&shape, &chosen);
    let page = StreamPage {
        label: shape.label.clone(),
        about: shape.about.clone(),
        source: sources
            .get(&connection)
            .map_or_else(|| label(&connection), |source| source.name.clone()),
        browse: viewer.address("/browse").to_string(),
        total: count
            .map(|count| format_count(count, "record"))
            .unwrap_or_default(),
        sums: sums(&viewer, &shape, &chosen).await,
        chart: histogram(&viewer, &shape, &chosen).await?,
        chips: table::chips(&viewer, &shape, &chosen),
        columns: table::columns(&viewer, &shape, &chosen),
        choices: table::choices(&shape, &chosen),
        kept: table::kept(&viewer, &ranges),
        ranges,
        turn: table::turn(&viewer, &shape, &chosen),
        rows: found
            .data
            .iter()
            .map(|one| table::row(&viewer, &shape, &chosen, one))
            .collect(),
        clear: bare.to_string(),
        csv: saved.clone().set("format", "csv").to_string(),
        jsonl: saved.set("format", "jsonl").to_string(),
        next: next
            .map(|cursor| viewer.here.clone().at(cursor).to_string())
            .unwrap_or_default(),
        first: if chosen.cursor {
            viewer.here.clone().without(&[]).to_string()
        } else {
            String::new()
        },
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

/// The sums that the stream declares, of what is shown. One that cannot be computed now is left out.
async fn sums(viewer: &Viewer, shape: &StreamShape, chosen: &Chosen) -> Vec<(String, String)> {
    let mut sums = Vec::new();
    for field in shape.fields.iter().filter(|field| field.sums).take(SUMS) {
        if let Ok(sum) = sum(viewer, shape, chosen, field).await
            && !sum.is_empty()
        {
            sums.push((field.title.clone(), sum));
        }
    }
    sums
}

/// The sum of a field; of amounts one for each currency, for they do not add up.
async fn sum(
    viewer: &Viewer,
    shape: &StreamShape,
    chosen: &Chosen,
    field: &FieldShape,
) -> Result<String, ReadError> {
    let currency = shape.field(CURRENCY).filter(|_| field.is_money());
    let grouping = match currency {
        None => None,
        // What cannot be told apart is not added.
        Some(currency) if !currency.groups => return Ok(String::new()),
        Some(currency) => Some(Grouping::new(
            GroupBy::Field(currency.name.clone()),
            Some(CURRENCIES),
        )?),
    };
    let metric = Metric::Sum(field.name.clone());
    let mut query = AggregateQuery::new(chosen.query.stream.clone(), metric, grouping)?;
    query.connection_id.clone_from(&chosen.query.connection_id);
    query.filters.clone_from(&chosen.query.filters);
    let answer = viewer.reader.aggregate(query).await?;
    let shown = |value: &RawValue| {
        (value.get() != "null").then(|| figure(value.get(), field.is_in_cents()))
    };
    let Some(groups) = &answer.groups else {
        return Ok(answer.value.as_deref().and_then(shown).unwrap_or_default());
    };
    let mut sums: Vec<String> = groups
        .iter()
        .filter_map(|group| {
            let sum = shown(group.value.as_deref()?)?;
            let name: Option<String> = serde_json::from_str(group.key.get()).ok()?;
            Some(match name {
                Some(name) => format!("{sum} {}", label(&name)),
                None => format!("{sum} without a currency"),
            })
        })
        .collect();
    if answer.other_count.is_some_and(|others| others > 0) {
        sums.push("other currencies".to_owned());
    }
    Ok(sums.join(", "))
}

/// How what is shown is spread over time: by month where it fits, else by year.
async fn histogram(
    viewer: &Viewer,
    shape: &StreamShape,
    chosen: &Chosen,
) -> Result<Chart, Problem> {
    let Some(time) = shape.time() else {
        return Ok(Chart::new(Vec::new()));
    };
    let years = spread(viewer, chosen, time, Granularity::Year).await?;
    let (buckets, unit) = if is_monthly(&years) {
        let months = spread(viewer, chosen, time, Granularity::Month).await?;
        (months, Granularity::Month)
    } else {
        (years, Granularity::Year)
    };
    let bucket = |(day, count): (Date, u64)| Bucket {
        name: unit_name(day, unit),
        address: table::narrowed(viewer, time, day, unit),
        counts: vec![(0, count)],
        here: false,
    };
    Ok(Chart::new(
        filled(buckets, unit).into_iter().map(bucket).collect(),
    ))
}

async fn spread(
    viewer: &Viewer,
    chosen: &Chosen,
    time: &FieldShape,
    granularity: Granularity,
) -> Result<BTreeMap<Date, u64>, Problem> {
    let stream: StreamName = chosen.query.stream.clone();
    let grouping = Some(by_time(time, granularity)?);
    let mut query = AggregateQuery::new(stream, Metric::Count, grouping)?;
    query.connection_id.clone_from(&chosen.query.connection_id);
    let filters: Vec<Filter> = chosen.query.filters.clone();
    query.filters = filters;
    Ok(time_counts::spread(&viewer.reader, query).await?)
}

/// The same with the units in between that have no record.
fn filled(buckets: BTreeMap<Date, u64>, unit: Granularity) -> Vec<(Date, u64)> {
    let mut all: Vec<(Date, u64)> = Vec::new();
    for (day, count) in buckets {
        while let Some((last, _)) = all.last()
            && let Some(next) = after(*last, unit)
            && next < day
        {
            all.push((next, 0));
        }
        all.push((day, count));
    }
    all
}

pub(super) fn unit_name(day: Date, unit: Granularity) -> String {
    let format = match unit {
        Granularity::Year => "%Y",
        Granularity::Month => "%B %Y",
        _ => "%-d %B %Y",
    };
    day.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_without_a_record_are_not_left_out() {
        let day = |month| Date::constant(2026, month, 1);
        let all = filled([(day(1), 2), (day(4), 1)].into(), Granularity::Month);
        assert_eq!(all, [(day(1), 2), (day(2), 0), (day(3), 0), (day(4), 1)]);
        assert_eq!(unit_name(day(4), Granularity::Month), "April 2026");
    }
}
