//! The first page: a search box, what is kept and from when, who may read it, and what needs attention.

mod attention;
mod readings;
mod since;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::aggregate::Granularity;
use jiff::civil::Date;

pub(super) use self::attention::indexing_words;
use self::attention::{Attention, attention};
pub(crate) use self::readings::Readings;
use self::since::Since;
use super::chart::Chart;
use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::grant::{GrantRow, names};
use super::import::ReportRow;
use super::moment::Moment;
use super::sources::{Source, Sources};
use super::time_counts::{Counts, Days, TimedStream, counts, is_monthly, timed_streams};
use super::timeline::buckets;
use super::viewer::{Viewer, client};
use super::{browse, html};
use crate::history;
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// How many of the last imports are named.
const IMPORTS: usize = 5;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    mcp_url: String,
    total: String,
    connections: String,
    first: String,
    last: String,
    browse: String,
    timeline: String,
    chart: Chart,
    /// Whether its bars are years, as there are too many months.
    by_year: bool,
    sources: Vec<SourceCard>,
    /// What only the owner sees.
    own: Option<Own>,
}

struct SourceCard {
    name: String,
    colour: usize,
    total: String,
    newest: Option<Moment>,
    address: String,
    /// All of its streams.
    all: String,
}

struct Own {
    attention: Vec<Attention>,
    /// What changed since the last visit, if there was one.
    since: Option<Since>,
    imports: Vec<ReportRow>,
    readers: Vec<GrantRow>,
    may_read: String,
    /// Empty for none.
    ended: String,
}

/// `GET /` for a browser.
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Overview).await?;
    let sources = Sources::read(&viewer).await?;
    let streams = timed_streams(&viewer, &sources, None).await?;
    let (counts, unit) = spread(&viewer, &streams).await?;
    let (own, sources) = if viewer.is_owner() {
        let looked = blocking(Arc::clone(&viewer.service), move |service| {
            Ok((own(service, &sources)?, sources))
        });
        let (own, sources) = looked.await?;
        (Some(own), sources)
    } else {
        (None, sources)
    };
    let page = OverviewPage {
        mcp_url: format!("{}/mcp", viewer.service.public_url),
        total: format_number(sources.records()),
        connections: format_number(u64::try_from(sources.0.len()).unwrap_or_default()),
        first: short_name(counts.keys().next(), unit),
        last: short_name(counts.keys().next_back(), unit),
        browse: viewer.address("/browse").to_string(),
        timeline: viewer.address("/timeline").to_string(),
        chart: Chart::new(buckets(&counts, unit, &viewer.address("/timeline"), None)),
        by_year: unit == Granularity::Year,
        sources: sources
            .0
            .iter()
            .map(|source| card(&viewer, source))
            .collect(),
        own,
        frame: viewer.frame,
    };
    html(StatusCode::OK, &page)
}

/// All records by month, or by year where there are many.
async fn spread(
    viewer: &Viewer,
    streams: &[TimedStream],
) -> Result<(Counts, Granularity), Problem> {
    let years = counts(viewer, streams, Days::default(), Granularity::Year).await?;
    if !is_monthly(&years) {
        return Ok((years, Granularity::Year));
    }
    let months = counts(viewer, streams, Days::default(), Granularity::Month).await?;
    Ok((months, Granularity::Month))
}

fn short_name(day: Option<&Date>, unit: Granularity) -> String {
    let format = match unit {
        Granularity::Year => "%Y",
        _ => "%b %Y",
    };
    day.map(|day| day.strftime(format).to_string())
        .unwrap_or_default()
}

fn card(viewer: &Viewer, source: &Source) -> SourceCard {
    let largest = source.streams.iter().max_by_key(|stream| stream.records);
    let address = largest.map_or_else(
        || viewer.address("/browse"),
        |stream| viewer.seen(browse::stream_address(&source.id, stream.name.as_str())),
    );
    let newest = source
        .streams
        .iter()
        .filter_map(|stream| stream.newest.as_deref());
    SourceCard {
        name: source.name.clone(),
        colour: source.colour,
        total: format_count(source.records(), "record"),
        newest: newest.max().and_then(Moment::parse),
        address: address.to_string(),
        all: format!("{}#{}", viewer.address("/browse"), source.id),
    }
}

fn own(service: &Service, sources: &Sources) -> Result<Own, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the first page", error);
    flush_disclosures(service);
    let (store, now) = (&*service.store, service.now());
    let all = grants::list(store, now).map_err(|error| failed(&error))?;
    let (open, ended): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.state.is_open());
    let read = service.readings.catch_up(store, now);
    read.map_err(|error| failed(&error))?;
    let name = |id: &str| {
        let known = all.iter().find(|one| one.client_id.as_str() == id);
        known.map_or_else(|| label(id), client)
    };
    let before = since::visit(store, now, since::counts(sources));
    let before = before.map_err(|error| failed(&error))?;
    let imports = history::imports(store, now).map_err(|error| failed(&error))?;
    let connections = names(service);
    Ok(Own {
        attention: attention(service, &open, &name)?,
        since: before.map(|before| since::since(&before, sources, &service.readings, name)),
        imports: imports
            .iter()
            .take(IMPORTS)
            .map(|record| ReportRow::from_record(service, record))
            .collect(),
        may_read: format_number(u64::try_from(open.len()).unwrap_or_default()),
        readers: open
            .into_iter()
            .map(|one| GrantRow::named(one, &connections))
            .collect(),
        ended: match ended.len() {
            0 => String::new(),
            ended => format_number(u64::try_from(ended).unwrap_or_default()),
        },
    })
}
