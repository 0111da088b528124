//! The read handlers: each turns a request into one query of the read contract and completes the answer.

use contract::aggregate::{Aggregation, MAX_GROUP_LIMIT};
use contract::page::{Meta, Warning, WarningCode};
use contract::query::{StreamQuery, StreamsQuery};
use contract::reader::ReadContract;
use contract::schema::{SchemaAnswer, SchemaQuery};
use contract::search::{MAX_EXCERPTS, Matching, SearchMode, SearchOrder};
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::connection_selector::CONNECTOR;
use crate::envelope::respond;
use crate::query_params::{self, ConnectionSelector};
use crate::table::{HandlerResult, RequestContext};

pub(crate) async fn schema(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::from_params(&context.params)?;
    let stream = context.params.text("stream");
    let stream = stream
        .map(|name| query_params::stream(name, caller.is_owner()))
        .transpose()?;
    let query = SchemaQuery::parse(
        context.params.text("view"),
        context.params.text("detail"),
        stream,
        selector.connection_id.clone(),
    )?
    .for_connector(context.params.text(CONNECTOR).map(str::to_owned));
    let mut schema = caller.reader(&context.service).schema(query).await?;
    let search = match &mut schema {
        SchemaAnswer::Full(schema) => &mut schema.search,
        SchemaAnswer::Compact(schema) => &mut schema.search,
    };
    *search = Some(search_options(context.service.has_model()));
    respond(&context, &selector, schema)
}

pub(crate) async fn streams(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), None)?;
    let query = StreamsQuery {
        connection_id: selector.connection_id.clone(),
    };
    let is_owner = caller.is_owner();
    let mut page = caller.reader(&context.service).streams(query).await?;
    if let Some(key) = context.params.text(CONNECTOR).filter(|_| is_owner) {
        page.data
            .retain(|row| row.connector_key.as_deref() == Some(key));
    }
    respond(&context, &selector, page)
}

pub(crate) async fn stream(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let query = StreamQuery {
        stream: query_params::stream(context.part(0), caller.is_owner())?,
        connection_id: selector.connection_id.clone(),
    };
    let stream = caller.reader(&context.service).stream(query).await?;
    respond(&context, &selector, stream)
}

pub(crate) async fn records(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::records(stream, &selector, &context.params)?;
    let page = caller.reader(&context.service).records(query).await?;
    respond(&context, &selector, page)
}

pub(crate) async fn record(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::record(stream, context.part(1), &selector, &context.params)?;
    let record = caller.reader(&context.service).record(query).await?;
    respond(&context, &selector, record)
}

pub(crate) async fn field_window(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::window(stream, context.part(1), &selector, &context.params)?;
    let window = caller.reader(&context.service).field_window(query).await?;
    respond(&context, &selector, window)
}

pub(crate) async fn verify(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::verify(stream, context.part(1), &selector, &context.params)?;
    let check = caller.reader(&context.service).verify(query).await?;
    respond(&context, &selector, check)
}

pub(crate) async fn aggregate(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::aggregate(stream, &selector, &context.params)?;
    let mut aggregation = caller.reader(&context.service).aggregate(query).await?;
    name_left_groups(&mut aggregation);
    respond(&context, &selector, aggregation)
}

pub(crate) async fn search(context: RequestContext, caller: Caller) -> HandlerResult {
    search_in(SearchMode::Lexical, context, caller).await
}

pub(crate) async fn search_semantic(context: RequestContext, caller: Caller) -> HandlerResult {
    search_in(SearchMode::Semantic, context, caller).await
}

pub(crate) async fn search_hybrid(context: RequestContext, caller: Caller) -> HandlerResult {
    search_in(SearchMode::Hybrid, context, caller).await
}

async fn search_in(mode: SearchMode, context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::from_params(&context.params)?;
    let mut query = query_params::search(&selector, &context.params, caller.is_owner())?;
    query.mode = mode;
    let is_first = query.cursor.is_none();
    let mut page = caller.reader(&context.service).search(query).await?;
    let is_empty = is_first && page.data.is_empty();
    if let Some(meta) = &mut page.meta {
        meta.next = next_search(meta, is_empty);
    }
    respond(&context, &selector, page)
}

/// What a search may be asked for besides words.
fn search_options(has_model: bool) -> Value {
    let mut options = json!({
        "orders": SearchOrder::NAMES,
        "matches": Matching::NAMES,
        "max_excerpts": MAX_EXCERPTS,
    });
    if has_model {
        options["modes"] = json!(SearchMode::NAMES);
    }
    options
}

/// What to ask after a search that did not look at everything, or found nothing.
fn next_search(meta: &Meta, is_empty: bool) -> Option<String> {
    if meta.index_maintenance.is_some() {
        let next = "repeat the search in a moment: not every record can be found yet";
        return Some(next.to_owned());
    }
    let words = meta.words.as_ref().filter(|_| is_empty);
    words.and_then(|words| words.summary(0))
}

/// Says how much the groups that are not shown hold, and how to see them.
fn name_left_groups(aggregation: &mut Aggregation) {
    let (Some(left @ 1..), Some(limit)) = (aggregation.other_count, aggregation.limit) else {
        return;
    };
    let how = if limit < MAX_GROUP_LIMIT {
        format!("limit={MAX_GROUP_LIMIT} shows more of them")
    } else {
        "a filter, or a larger granularity, makes fewer".to_owned()
    };
    let message = format!("{left} records are in groups beyond the first {limit}; {how}.");
    let warning = Warning::new(WarningCode::PartialResults, message).about("limit");
    aggregation.meta.get_or_insert_default().warn(warning);
}
