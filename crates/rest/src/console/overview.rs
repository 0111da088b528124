//! The first page: a search box, what is kept and from when, who may read it, and what needs attention.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use contract::aggregate::Granularity;
use contract::time::Instant;
use grants::Overview;
use grants::sign_in::has_password;
use jiff::civil::Date;

use super::chart::Chart;
use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::grant::GrantRow;
use super::moment::{self, Moment};
use super::sources::{Source, Sources};
use super::time_counts::{Counts, Days, counts, timed_streams};
use super::timeline::month_buckets;
use super::viewer::{Viewer, client};
use super::{browse, html};
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// A grant that ends within this time is worth a look.
const SOON: Duration = Duration::from_hours(7 * 24);
/// So many records within a day are unusually many for one client.
const MANY_RECORDS: usize = 2_000;
const CALLS: usize = 1_000;

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
}

struct Own {
    attention: Vec<Attention>,
    readers: Vec<ReaderRow>,
    ended: usize,
}

struct Attention {
    text: String,
    address: &'static str,
    link: &'static str,
}

/// A grant: what it allows with every limit, and until when.
struct ReaderRow {
    grant: GrantRow,
    until: Option<Moment>,
    used: Option<Moment>,
}

/// `GET /` for a browser.
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let viewer = match Viewer::enter(&context, Section::Overview).await? {
        Ok(viewer) => viewer,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let sources = Sources::read(&viewer).await?;
    let streams = timed_streams(&viewer, &sources, None).await?;
    let months = Days::months_around(moment::today(viewer.service.now()));
    let counts = counts(&viewer, &streams, months, Granularity::Month).await?;
    let own = if viewer.is_owner() {
        Some(blocking(Arc::clone(&viewer.service), own).await?)
    } else {
        None
    };
    let page = OverviewPage {
        mcp_url: format!("{}/mcp", viewer.service.public_url),
        total: format_number(sources.records()),
        connections: format_number(u64::try_from(sources.0.len()).unwrap_or_default()),
        first: month_name(counts.keys().next()),
        last: month_name(counts.keys().next_back()),
        browse: viewer.address("/browse").to_string(),
        timeline: viewer.address("/timeline").to_string(),
        chart: chart(&viewer, &counts),
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

fn month_name(month: Option<&Date>) -> String {
    month
        .map(|month| month.strftime("%b %Y").to_string())
        .unwrap_or_default()
}

fn chart(viewer: &Viewer, counts: &Counts) -> Chart {
    let address = |month: Date| {
        let timeline = viewer.address("/timeline");
        timeline.with("day", &month.to_string()).to_string()
    };
    month_buckets(counts, address, None)
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
    }
}

fn own(service: &Service) -> Result<Own, Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::internal("the first page", error);
    flush_disclosures(service);
    let now = service.now();
    let all = grants::list(&*service.store, now).map_err(|error| failed(&error))?;
    let (open, ended): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.state.is_open());
    let mut attention: Vec<Attention> = open.iter().filter_map(|one| ends_soon(one, now)).collect();
    if !has_password(&*service.store, now).map_err(|error| failed(&error))? {
        attention.push(Attention {
            text: "There is no password: you can sign in only with a link that pdpp sign-in prints at the terminal.".to_owned(),
            address: "/settings",
            link: "Settings",
        });
    }
    let calls = service.store.disclosures(None, None, CALLS);
    attention.extend(read_much(&calls.map_err(|error| failed(&error))?, now));
    Ok(Own {
        attention,
        readers: open.iter().map(|one| reader_row(one)).collect(),
        ended: ended.len(),
    })
}

fn ends_soon(grant: &Overview, now: Instant) -> Option<Attention> {
    let ends = Instant::parse(grant.expires_at.as_deref()?)?;
    let soon = i64::try_from(SOON.as_micros()).unwrap_or(i64::MAX);
    let at = Moment::new(ends)?;
    (ends.0.saturating_sub(now.0) < soon).then(|| Attention {
        text: format!("What {} may read ends on {}.", client(grant), at.shown),
        address: "/grants",
        link: "Look at grants",
    })
}

/// Clients that were shown unusually many records within a day.
fn read_much(calls: &[store::grants::LoggedDisclosure], now: Instant) -> Vec<Attention> {
    let day = i64::try_from(Duration::from_hours(24).as_micros()).unwrap_or(i64::MAX);
    let mut records: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls.iter().map(|call| &call.disclosure) {
        if now.0.saturating_sub(call.at.0) < day {
            *records.entry(call.client_id.as_str()).or_default() += call.records.len();
        }
    }
    let many = records
        .into_iter()
        .filter(|(_, records)| *records >= MANY_RECORDS);
    let told = many.map(|(client, records)| Attention {
        text: format!(
            "{} was shown records {} times within a day.",
            label(client),
            format_number(u64::try_from(records).unwrap_or(u64::MAX))
        ),
        address: "/grants",
        link: "Look at grants",
    });
    told.collect()
}

fn reader_row(grant: &Overview) -> ReaderRow {
    let moment = |at: &Option<String>| at.as_deref().and_then(Moment::parse);
    ReaderRow {
        until: moment(&grant.expires_at),
        used: moment(&grant.last_used_at),
        grant: GrantRow::from_overview(grant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::id::ClientId;
    use store::grants::{Disclosure, LoggedDisclosure};

    #[test]
    fn reading_very_much_within_a_day_is_told() {
        let call = |at: i64, client: &str, records: usize| LoggedDisclosure {
            sequence: 1,
            disclosure: Disclosure {
                at: Instant(at),
                grant_ids: Vec::new(),
                client_id: ClientId::parse(client).unwrap(),
                operation: "records".to_owned(),
                records: vec!["a".to_owned(); records],
                fields: Vec::new(),
            },
        };
        let day = 86_400_000_000;
        let calls = [
            call(10 * day, "keen", MANY_RECORDS),
            call(10 * day, "calm", MANY_RECORDS - 1),
            call(8 * day, "early", MANY_RECORDS),
        ];
        let told = read_much(&calls, Instant(10 * day));
        assert_eq!(told.len(), 1);
        assert!(
            told[0]
                .text
                .starts_with("keen was shown records 2\u{202f}000 times")
        );
    }
}
