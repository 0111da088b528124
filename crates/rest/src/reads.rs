//! The reads: each handler turns a request into one question of the read contract and completes the answer.

use contract::query::{StreamQuery, StreamsQuery};
use contract::reader::ReadContract;
use contract::schema::SchemaQuery;

use crate::ask::{self, Source};
use crate::auth::Caller;
use crate::envelope::answer;
use crate::source::CONNECTOR;
use crate::table::{Ask, Outcome};

pub(crate) async fn schema(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::of(&ask.params)?;
    let stream = ask.params.text("stream");
    let stream = stream
        .map(|name| ask::stream(name, caller.is_owner()))
        .transpose()?;
    let query = SchemaQuery::parse(
        ask.params.text("view"),
        ask.params.text("detail"),
        stream,
        source.connection_id.clone(),
    )?
    .of_connector(ask.params.text(CONNECTOR).map(str::to_owned));
    let schema = caller.reader(&ask.service).schema(query).await?;
    answer(&ask, &source, schema)
}

pub(crate) async fn streams(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), None)?;
    let query = StreamsQuery {
        connection_id: source.connection_id.clone(),
    };
    let is_owner = caller.is_owner();
    let mut page = caller.reader(&ask.service).streams(query).await?;
    if let Some(key) = ask.params.text(CONNECTOR).filter(|_| is_owner) {
        page.data
            .retain(|row| row.connector_key.as_deref() == Some(key));
    }
    answer(&ask, &source, page)
}

pub(crate) async fn stream(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), Some(ask.part(0)))?;
    let query = StreamQuery {
        stream: ask::stream(ask.part(0), caller.is_owner())?,
        connection_id: source.connection_id.clone(),
    };
    let stream = caller.reader(&ask.service).stream(query).await?;
    answer(&ask, &source, stream)
}

pub(crate) async fn records(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), Some(ask.part(0)))?;
    let stream = ask::stream(ask.part(0), caller.is_owner())?;
    let query = ask::records(stream, &source, &ask.params)?;
    let page = caller.reader(&ask.service).records(query).await?;
    answer(&ask, &source, page)
}

pub(crate) async fn record(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), Some(ask.part(0)))?;
    let stream = ask::stream(ask.part(0), caller.is_owner())?;
    let query = ask::record((stream, ask.part(1)), &source, &ask.params)?;
    let record = caller.reader(&ask.service).record(query).await?;
    answer(&ask, &source, record)
}

pub(crate) async fn field_window(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), Some(ask.part(0)))?;
    let stream = ask::stream(ask.part(0), caller.is_owner())?;
    let query = ask::window((stream, ask.part(1)), &source, &ask.params)?;
    let window = caller.reader(&ask.service).field_window(query).await?;
    answer(&ask, &source, window)
}

pub(crate) async fn aggregate(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::asked(&ask, caller.is_owner(), Some(ask.part(0)))?;
    let stream = ask::stream(ask.part(0), caller.is_owner())?;
    let query = ask::aggregate(stream, &source, &ask.params)?;
    let aggregation = caller.reader(&ask.service).aggregate(query).await?;
    answer(&ask, &source, aggregation)
}

pub(crate) async fn search(ask: Ask, caller: Caller) -> Outcome {
    let source = Source::of(&ask.params)?;
    let query = ask::search(&source, &ask.params, caller.is_owner())?;
    let page = caller.reader(&ask.service).search(query).await?;
    answer(&ask, &source, page)
}
