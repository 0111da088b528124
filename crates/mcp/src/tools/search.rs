//! `search`: by words, or where the server can by meaning, over everything that was granted.
//!
//! The server's answer is kept as it is; beside it stands a flat list of results, and a text that leads with what the
//! server proved.

mod hit_line;
mod nothing;
mod text;

#[cfg(test)]
mod tests;

use contract::error::{ErrorCode, ReadError};
use contract::page::Page;
use contract::query::Count;
use contract::search::{Matching, SearchMode, SearchOrder, parse_period};
use contract::time::{Instant, TimeRange};
use contract::upstream::{Get, PageBytes};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::paged::{Around, NOTE, OverBudget, PageSize, Shortened};
use super::{Definition, Running};
use crate::answer::{Answered, Hit, Hits, size};
use crate::args::{Arguments as _, Chosen, Filter, Limit, Names, Schema, Whole, arguments};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::ladder::{Ladder, Rung};
use crate::reply::{Reply, ToolResult};
use crate::text::{paging, plain};

arguments! {
    struct SearchArgs {
        query: String = "Words to find.", also "q";
        matching as "match": Option<Chosen<Matching>> = "all: every word must occur, as written.";
        streams: Option<Names> = "Only these streams.";
        connection_id: Option<String> = "Only this connection.";
        filter: Option<Filter> = "{field: value} or {field: {gte|gt|lte|lt: value}}; needs exactly one stream.";
        since: Option<String> = "A date: from then on.";
        until: Option<String> = "A date: before it.";
        limit: Option<Limit> = "Default: the best, up to 10.";
        order: Option<Chosen<SearchOrder>> = "By time instead of by match.";
        cursor: Option<String> = "A next_cursor.";
        count: Option<Chosen<Count>> = "Of all hits.";
        mode: Option<Chosen<SearchMode>> = "Default lexical; hybrid adds meaning.";
    }
}

pub(super) static TOOL: Definition = Definition {
    name: "search",
    title: "Search records",
    description: include_str!("search.md"),
    input: SearchArgs::schema,
    output: || {
        let result = Schema {
            items: Some(Box::new(Schema::new("object"))),
            ..Schema::new("array")
        };
        vec![
            ("data", Schema::one_of(&["object", "array"])),
            ("results", result),
            ("content_ladder", Schema::new("object")),
            ("provider_url", Schema::new("string")),
        ]
    },
    run: |call, given| -> Running<'_> {
        Box::pin(async move { run(call, SearchArgs::read(given)?).await })
    },
};

/// The most hits that are taken from a server that was told no limit by the caller and heeds none of ours.
const DEFAULT_PAGE: usize = 25;

/// What stands around the hits of a page, usually: its cursor, what it says of the words, and this answer's own members.
const AROUND: usize = 680;
/// What stands beside a hit, usually, without its handle and its title: its result and its rung.
const BESIDE_HIT: usize = 500;
/// Both name it, where it is looked at, and in the call that reads it.
const HANDLES: usize = 4;

/// Where no limit is given, a page has so many hits before one that scores far less may end it.
const CLEAR: usize = 2;

/// A page of hits, read.
struct Found {
    page: Page<Hit>,
    source_mix: Vec<(String, u64)>,
    /// Hits the server sent beyond the limit.
    beyond: usize,
    /// Hits the server sent from connections other than the one asked for.
    elsewhere: usize,
    /// Hits of another time, from a server that does not heed the period.
    other_times: usize,
    /// Whether hits stand by time, where that was asked for.
    is_ordered: bool,
    shortened: Option<Shortened>,
    over_budget: Option<OverBudget>,
}

/// What stands beside the server's page in structured content.
#[derive(Serialize)]
struct Beside<'a> {
    results: Vec<SearchResult<'a>>,
    /// Said only where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_heeded: Option<bool>,
    #[serde(flatten)]
    around: Around<'a>,
}

/// An entry of `results`.
#[skip_serializing_none]
#[derive(Serialize)]
struct SearchResult<'a> {
    id: &'a str,
    title: &'a str,
    url: String,
    connection_id: Option<&'a str>,
    connector_key: Option<&'a str>,
    stream: Option<&'a str>,
    record_key: Option<&'a str>,
    display_name: Option<String>,
    authored_at: Option<&'a str>,
    evidence_preview: Option<&'a str>,
    /// Said only where it is not.
    fetchable: Option<bool>,
}

async fn run(call: Call<'_>, args: SearchArgs) -> ToolResult {
    let mode = args.mode.map_or(SearchMode::default(), |mode| mode.0);
    let size = PageSize::new(args.limit.map(|limit| limit.0));
    let period = parse_period(args.since.as_deref(), args.until.as_deref())?;
    // Our own server heeds the period, by times that a hit may not show.
    let period = if call.pages_by_bytes() {
        TimeRange::default()
    } else {
        period
    };
    let first = size.ask(call, |size| question(&args, mode, size)).await;
    let (mut answered, is_asked_again) = first.map_err(|fault| without_mode(fault, mode))?;
    let provider = call.provider_url();
    let provider = provider.as_deref();
    let mut found = read(&args, period, &mut answered);
    let mut whole = answered.structured_size(&beside(&found, provider)) + NOTE;
    let ends_before_weaker = paging::weaker_follow(&found.page);
    let mut is_shortened =
        is_asked_again || (call.pages_by_bytes() && found.goes_on() && !ends_before_weaker);
    // What is left out here is not shown, so that fewer of it would not help.
    if whole > size.bytes
        && !is_asked_again
        && found.elsewhere + found.other_times == 0
        && let Some(rows) = size.rows_that_fit(whole, &hit_sizes(&answered, &found, provider))
    {
        let fewer = PageSize { rows, ..size };
        // A server that fails now has answered before: that answer stands.
        if let Ok(mut shorter) = call.get(question(&args, mode, fewer)).await {
            found = read(&args, period, &mut shorter);
            answered = shorter;
            is_shortened = true;
            whole = answered.structured_size(&beside(&found, provider)) + NOTE;
        }
    }
    found.shortened = size
        .shortened(found.page.data.len())
        .filter(|_| is_shortened);
    if whole > size.bytes {
        answered.shrink_hits(budget::RESULT / 2);
        found.over_budget = size.over(answered.structured_size(&beside(&found, provider)));
    }
    let text = text::write(&args, &found);
    Reply::around(text, answered, &beside(&found, provider))
}

fn question(args: &SearchArgs, mode: SearchMode, size: PageSize) -> Get {
    let segments = mode.route().split('/').skip(2);
    let mut question = Get::v1(segments).with("q", Some(args.query.as_str()));
    let clear = args.limit.map_or(CLEAR, |_| 0);
    let mut args = args.clone();
    args.limit = Some(Whole(size.rows));
    args.write(&mut question, &["query", "mode"]);
    question.within_bytes(PageBytes {
        all: size.bytes.saturating_sub(AROUND),
        beside_each: BESIDE_HIT,
        handles: HANDLES,
        clear,
    })
}

/// A route that is not there is a mode the server does not have; a fault in the other arguments stays what it is.
fn without_mode(fault: Fault, mode: SearchMode) -> Fault {
    let is_bare = fault.code().starts_with("http_");
    let blames_another = fault.param().is_some_and(|param| param != "mode");
    let is_missing = match (mode, fault.http_status()) {
        (SearchMode::Lexical, Some(404)) => is_bare,
        (SearchMode::Lexical, _) => false,
        (_, Some(404 | 405 | 501)) => fault.code() != "connection_not_found",
        (_, Some(400)) => {
            let is_vague = is_bare || matches!(fault.code(), "invalid_request" | "not_found");
            is_vague && !blames_another
        }
        _ => false,
    };
    if !is_missing {
        return fault;
    }
    let message = format!("this server has no {} search", mode.as_str());
    let next = match mode {
        SearchMode::Lexical => {
            "check that the provider URL is a PDPP server; query_records may still work"
        }
        _ => "repeat the search without mode",
    };
    let error = ReadError::new(ErrorCode::ModeNotSupported, message).with_param("mode");
    Fault::from(error)
        .with_next(next)
        .with_answer(fault.http_status(), fault.request_id().map(str::to_owned))
}

/// The hits that were asked for, whatever the server sent: also of the time that it may not heed.
fn read(args: &SearchArgs, unheeded: TimeRange, answered: &mut Answered) -> Found {
    let Hits {
        mut page,
        source_mix,
    } = answered.hits(&args.query);
    let sent = page.data.len();
    // A server that does not heed the connection must not pass others off as it (SE-17).
    if let Some(asked) = &args.connection_id {
        page.data
            .retain(|hit| hit.connection.as_ref().is_none_or(|found| found == asked));
    }
    let elsewhere = sent - page.data.len();
    page.data.retain(|hit| {
        let at = hit.authored_at.as_deref().and_then(Instant::parse);
        at.is_none_or(|at| unheeded.contains(at))
    });
    let other_times = sent - elsewhere - page.data.len();
    let limit = args.limit.and_then(|limit| usize::try_from(limit.0).ok());
    let most = limit.unwrap_or(DEFAULT_PAGE);
    let beyond = page.data.len().saturating_sub(most);
    page.data.truncate(most);
    if beyond > 0 {
        page.has_more = Some(true);
    }
    // What is nowhere is told once.
    let words = page.meta.as_ref().and_then(|meta| meta.words.as_ref());
    let nowhere = words.map_or(Vec::new(), |words| words.missing.clone());
    for hit in &mut page.data {
        hit.missing
            .retain(|word| !nowhere.contains(word) && !paging::is_fragment(word));
    }
    Found {
        shortened: None,
        is_ordered: stand_by_time(&page.data, args.order.map(|order| order.0)),
        page,
        source_mix,
        beyond,
        elsewhere,
        other_times,
        over_budget: None,
    }
}

/// Whether the times that hits show are in this order. Not every server knows it.
fn stand_by_time(hits: &[Hit], order: Option<SearchOrder>) -> bool {
    let times = hits.iter().filter_map(|hit| hit.authored_at.as_deref());
    let times = times.filter_map(Instant::parse);
    match order {
        Some(SearchOrder::Newest) => times.is_sorted_by(|one, next| one >= next),
        Some(SearchOrder::Oldest) => times.is_sorted(),
        Some(SearchOrder::Relevance) | None => true,
    }
}

impl Found {
    /// Whether a page follows, and the server says where.
    fn goes_on(&self) -> bool {
        self.page.has_more() && self.page.next_cursor().is_some()
    }
}

fn beside<'a>(found: &'a Found, provider: Option<&'a str>) -> Beside<'a> {
    let hits = &found.page.data;
    let rungs: Vec<Rung> = hits.iter().filter_map(Rung::proven).collect();
    Beside {
        results: hits.iter().map(|hit| result(hit, provider)).collect(),
        order_heeded: (!found.is_ordered).then_some(false),
        around: Around {
            content_ladder: (!rungs.is_empty()).then(|| Ladder::new("search_results", rungs)),
            page_shortened: found.shortened,
            over_budget: found.over_budget,
            provider_url: provider,
        },
    }
}

fn result<'a>(hit: &'a Hit, provider: Option<&str>) -> SearchResult<'a> {
    let handle = hit.identity.handle.as_ref();
    let label = hit.label.as_deref();
    SearchResult {
        id: &hit.identity.id,
        title: &hit.title,
        url: hit.identity.url(&hit.addresses, provider),
        connection_id: hit.connection.as_deref(),
        connector_key: hit.connector.as_deref(),
        stream: hit.stream.as_deref(),
        record_key: handle.map(contract::handle::RecordHandle::record),
        display_name: label.map(|label| plain::cut(label, budget::PREVIEW).into_owned()),
        authored_at: hit.authored_at.as_deref(),
        evidence_preview: hit.evidence_preview(),
        fetchable: (!hit.identity.is_fetchable()).then_some(false),
    }
}

/// What each hit takes, with its result and its rung.
fn hit_sizes(answered: &Answered, found: &Found, provider: Option<&str>) -> Vec<usize> {
    let beside = found.page.data.iter().map(|hit| {
        let rung = Rung::proven(hit).map_or(0, |rung| size(&rung) + 1);
        size(&result(hit, provider)) + rung + 1
    });
    let hits = answered.hit_sizes().into_iter().zip(beside);
    hits.map(|(sent, beside)| sent + beside).collect()
}
