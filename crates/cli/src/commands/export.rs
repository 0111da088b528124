//! `pdpp export`: a stream, or one record, as lines that `pdpp import` takes.

use std::borrow::Cow;
use std::io::Write;

use clap::Args;
use contract::handle::Handle;
use contract::id::StreamName;
use contract::key::RecordKey;
use store::catalog::{Connection, StreamRef};
use store::records::{Direction, OrderBy, PageRequest, StoredRecord};
use store::{Catalog, EmbeddedStore, Records};

use crate::choice;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;

/// Records read at a time.
const PAGE_RECORDS: usize = 256;

/// Print a stream or one record as JSON lines
///
/// Records come in the order of their keys, with their content as it was imported. `pdpp import` takes the lines again.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp export messages --connection mail-work > messages.jsonl")]
pub(crate) struct Options {
    /// A stream, or the id of a record
    #[arg(value_name = "STREAM|ID")]
    what: String,
    /// The connection, where several have such a stream
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let store = context.open("pdpp export")?;
    let named = options.connection.as_deref();
    // No stream name holds a colon and every id does.
    if options.what.contains(':') {
        let (stream, record) = find(&store, &options.what, named)?;
        return context
            .output
            .write(|out| print(out, &stream.stream, &record));
    }
    let (connection, stream) = choice::connection_with_stream(&store, &options.what, named)?;
    let stream = StreamRef {
        connection: connection.id,
        stream,
    };
    context.output.write(|out| print_all(out, &store, &stream))
}

fn find(
    store: &EmbeddedStore,
    id: &str,
    named: Option<&str>,
) -> Outcome<(StreamRef, StoredRecord)> {
    let refused = |error: contract::handle::HandleError| Failure::new(error.to_string());
    let given = match named {
        Some(named) => Some(choice::connection_named(store, named)?),
        None => None,
    };
    let given = given.as_ref().map(|connection| connection.id.as_str());
    let handle = Handle::parse(id).map_err(refused)?;
    let handle = handle
        .record()
        .clone()
        .with_connection(given)
        .map_err(refused)?;
    let (connection, stream) =
        choice::connection_with_stream(store, handle.stream(), handle.connection())?;
    let parts = key_parts(store, &connection, &stream);
    let key = RecordKey::from_wire(handle.record(), parts)
        .map_err(|error| Failure::new(error.to_string()))?;
    let stream = StreamRef {
        connection: connection.id,
        stream,
    };
    match store.get(&stream, &key)? {
        Some(record) => Ok((stream, record)),
        None => Err(Failure::new(format!(
            "stream '{}' of connection '{}' has no record '{}'",
            stream.stream,
            stream.connection,
            visible(key.as_str())
        ))),
    }
}

fn key_parts(store: &EmbeddedStore, connection: &Connection, stream: &StreamName) -> usize {
    let declaration = store.declaration(&connection.connector);
    let stream = declaration
        .as_ref()
        .and_then(|found| found.stream(stream.as_str()));
    stream.map_or(1, |stream| stream.primary_key.len())
}

fn print_all(out: &mut dyn Write, store: &EmbeddedStore, stream: &StreamRef) -> Outcome {
    let mut request = PageRequest {
        by: OrderBy::Key,
        direction: Direction::Ascending,
        after: None,
        limit: PAGE_RECORDS,
    };
    loop {
        let records = store.page(stream, &request)?;
        for record in &records {
            print(out, &stream.stream, record)?;
        }
        match records.into_iter().next_back() {
            Some(last) => request.after = Some(last.position),
            None => return Ok(()),
        }
    }
}

fn print(out: &mut dyn Write, stream: &StreamName, record: &StoredRecord) -> Outcome {
    let parts = record.key.parts();
    let key = match parts.as_slice() {
        [only] => serde_json::Value::from(only.as_str()),
        parts => serde_json::Value::from(parts),
    };
    let emitted_at = serde_json::Value::from(record.emitted_at.as_str());
    let stream = serde_json::Value::from(stream.as_str());
    let body = one_line(&record.body);
    writeln!(
        out,
        r#"{{"key":{key},"stream":{stream},"emitted_at":{emitted_at},"data":{body}}}"#
    )
    .map_err(|error| Failure::of_output(&error))
}

/// JSON on one line. Line ends in JSON stand between tokens only, so spaces do as well.
fn one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    }
}
