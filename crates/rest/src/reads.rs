//! The read handlers: each turns a request into one query of the read contract and completes the answer.

use contract::query::{StreamQuery, StreamsQuery};
use contract::reader::ReadContract;
use contract::schema::SchemaQuery;

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
    let schema = caller.reader(&context.service).schema(query).await?;
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

pub(crate) async fn aggregate(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::resolve(&context, caller.is_owner(), Some(context.part(0)))?;
    let stream = query_params::stream(context.part(0), caller.is_owner())?;
    let query = query_params::aggregate(stream, &selector, &context.params)?;
    let aggregation = caller.reader(&context.service).aggregate(query).await?;
    respond(&context, &selector, aggregation)
}

pub(crate) async fn search(context: RequestContext, caller: Caller) -> HandlerResult {
    let selector = ConnectionSelector::from_params(&context.params)?;
    let query = query_params::search(&selector, &context.params, caller.is_owner())?;
    let page = caller.reader(&context.service).search(query).await?;
    respond(&context, &selector, page)
}
