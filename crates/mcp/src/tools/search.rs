//! `search`: by words, over everything that was granted.
//!
//! The server's answer is kept as it is; beside it stands a flat list of results, and a text that leads with what the
//! server proved. Nothing is taken for evidence but a text with its field, in a place where servers put evidence.

mod hit;
mod text;

#[cfg(test)]
mod tests;

use contract::error::{ErrorCode, ReadError};
use contract::search::SearchMode;
use contract::upstream::Get;
use serde_json::{Value, json};

use self::hit::Hit;
use super::{Definition, Running};
use crate::args::{Arg, Args, Kind};
use crate::budget;
use crate::call::{Answered, Call};
use crate::evidence::envelope::{self, Paging};
use crate::evidence::{ladder, oversize};
use crate::fault::Fault;
use crate::reply::{Outcome, Reply};

pub(super) static TOOL: Definition = Definition {
    name: "search",
    title: "Search records",
    description: include_str!("search.md"),
    args: &[
        Arg::new("query", Kind::Text, "Words to find.").required(),
        Arg::new("q", Kind::Text, "").standing_for("query"),
        Arg::new("streams", Kind::Texts, "Only these streams."),
        Arg::new("connection_id", Kind::Text, "Only this connection."),
        Arg::new(
            "filter",
            Kind::Filter,
            "{field: value} or {field: {gte|gt|lte|lt: value}}; needs exactly one stream.",
        ),
        Arg::new(
            "limit",
            Kind::Whole {
                least: 1,
                most: budget::MAX_LIMIT,
            },
            "Over all connections; default 10.",
        ),
        Arg::new("cursor", Kind::Text, "A next_cursor."),
        Arg::new(
            "count",
            Kind::Choice(&["none", "estimated", "exact"]),
            "Of all hits.",
        ),
        Arg::new(
            "mode",
            Kind::Choice(&["lexical", "semantic", "hybrid"]),
            "Default lexical; few servers have others.",
        ),
    ],
    output: || {
        json!({
            "data": super::one_of(&["object", "array"]),
            "results": {"type": "array", "items": {"type": "object"}},
            "content_ladder": {"type": "object"},
            "provider_url": {"type": "string"}
        })
    },
    run: |call, args| -> Running<'_> { Box::pin(run(call, args)) },
};

/// The most hits that are taken from a server that was told no limit by the caller and heeds none of ours.
const DEFAULT_PAGE: usize = 25;

/// A page of hits, read.
struct Page<'a> {
    args: &'a Args,
    body: &'a Value,
    hits: Vec<Hit<'a>>,
    paging: Paging,
    /// Hits the server sent beyond the limit.
    beyond: usize,
    /// Hits the server sent from connections other than the one asked for.
    elsewhere: usize,
}

async fn run(call: Call<'_>, args: Args) -> Outcome {
    args.refuse_empty(&["streams"])?;
    let mode = args.text("mode").and_then(SearchMode::parse);
    let mode = mode.unwrap_or_default();
    let answered = call
        .get(question(&args, mode))
        .await
        .map_err(|fault| without_mode(fault, mode))?;
    Ok(reply(call.provider_url().as_deref(), &args, answered))
}

fn question(args: &Args, mode: SearchMode) -> Get {
    let segments = mode.route().split('/').skip(2);
    let mut question = Get::v1(segments).with("q", args.text("query"));
    let names = [
        "streams",
        "connection_id",
        "filter",
        "limit",
        "cursor",
        "count",
    ];
    args.write(&names, &mut question);
    if !args.has("limit") {
        question.push("limit", budget::DEFAULT_LIMIT.to_string());
    }
    question
}

/// A route that is not there is a mode the server does not have; a fault in the other arguments stays what it is.
fn without_mode(fault: Fault, mode: SearchMode) -> Fault {
    let is_bare = fault.code().starts_with("http_");
    let blames_another = fault.structured()["error"]["param"]
        .as_str()
        .is_some_and(|param| param != "mode");
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
    let structured = fault.structured();
    let request_id = structured["request_id"].as_str().map(str::to_owned);
    let error = ReadError::new(ErrorCode::ModeNotSupported, message).with_param("mode");
    Fault::from(error)
        .with_next(next)
        .with_answer(fault.http_status(), request_id)
}

fn reply(provider: Option<&str>, args: &Args, answered: Answered) -> Reply {
    let Answered {
        mut body,
        request_id,
    } = answered;
    envelope::drop_window_uris(&mut body);
    let query = args.text("query").unwrap_or_default();
    let all = envelope::hits(&body);
    let most = args.whole("limit").map_or(DEFAULT_PAGE, |limit| {
        usize::try_from(limit).unwrap_or(DEFAULT_PAGE)
    });
    let mut hits: Vec<(usize, Hit<'_>)> = all
        .iter()
        .enumerate()
        .map(|(place, hit)| (place, Hit::read(hit, place, query)))
        .collect();
    // A server that does not heed the connection must not pass others off as it (SE-17).
    if let Some(asked) = args.text("connection_id") {
        hits.retain(|(_, hit)| hit.connection().is_none_or(|found| found == asked));
    }
    let elsewhere = all.len() - hits.len();
    let beyond = hits.len().saturating_sub(most);
    hits.truncate(most);
    let mut fetches: Vec<Option<Value>> = vec![None; all.len()];
    for (place, hit) in &hits {
        if let Some(fetch) = fetches.get_mut(*place) {
            *fetch = hit.fetch();
        }
    }
    let mut paging = Paging::of(&body);
    if beyond > 0 {
        paging.has_more = Some(true);
    }
    let page = Page {
        args,
        body: &body,
        hits: hits.into_iter().map(|(_, hit)| hit).collect(),
        paging,
        beyond,
        elsewhere,
    };
    let text = text::write(&page);
    let results: Vec<Value> = page.hits.iter().map(|hit| hit.result(provider)).collect();
    let rungs: Vec<Value> = page.hits.into_iter().filter_map(Hit::into_rung).collect();
    let mut structured = json!({"data": null});
    structured["results"] = Value::Array(results);
    if !rungs.is_empty() {
        structured["content_ladder"] = ladder::ladder("search_results", rungs);
    }
    structured["provider_url"] = json!(provider);
    structured["request_id"] = json!(request_id);
    structured["data"] = body;
    oversize::fit(&mut structured, &text, |structured, threshold| {
        let hits = envelope::hits_mut(&mut structured["data"]);
        for (place, hit) in hits.iter_mut().enumerate() {
            let way_on = fetches.get(place).and_then(Option::as_ref);
            oversize::shrink_texts(hit, way_on, threshold.max(oversize::SMALL_TEXT));
        }
    });
    Reply::new(text, structured)
}
