//! A collection in a data directory of its own: documents are declared and imported as any other data, and asked for under a
//! grant of everything.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use contract::declaration::Declaration;
use contract::id::StreamName;
use contract::json::RecordBody;
use contract::time::Clock;
use ingest::{Acceptor, BatchLimits, Import, JsonlImporter, LineForm, StreamChoice};
use serde_json::{Map, Value, json};
use store::catalog::{Connection, NewConnection};
use store::records::{Direction, OrderBy, PageRequest};
use store::{Catalog as _, EmbeddedStore, Meaning as _, Records as _, Search as _, StreamRef};

use super::collection::Document;
use crate::BenchError;
use crate::surface::directory::open;

const STREAM: &str = "documents";
const PAGE: usize = 1_000;

/// All the text of a document that is searched.
pub(super) struct SearchedText {
    pub(super) id: String,
    pub(super) text: String,
}

/// Declares and imports documents.
pub(super) fn import(
    folder: &Path,
    documents: &[Document],
    clock: &Arc<dyn Clock>,
) -> Result<(), BenchError> {
    let store = open(folder, clock)?;
    let declaration = declaration(documents).to_string();
    let declaration = Declaration::parse(&declaration).map_err(setup)?;
    store.declare(&declaration)?;
    let connection = store.add_connection(NewConnection {
        connector: declaration.connector_key().clone(),
        name: "Judged".to_owned(),
        id: None,
    })?;
    let mut lines = Vec::new();
    for document in documents {
        serde_json::to_writer(&mut lines, document)?;
        lines.push(b'\n');
    }
    let stream = StreamName::parse(STREAM).map_err(setup)?;
    let (choice, form) = (StreamChoice::Always(stream), LineForm::EnvelopeOrBare);
    let acceptor = Acceptor::new(&declaration, choice, form, &**clock);
    let mut import = Import::new(&store, &connection.id, BatchLimits::default());
    import
        .run(
            &mut JsonlImporter::new(lines.as_slice(), &acceptor),
            None,
            &mut |_| {},
        )
        .map_err(|stopped| setup(stopped.named("corpus.jsonl")))?;
    match import.into_report().rejections.into_iter().next() {
        Some(first) => Err(BenchError::Rejected(first.message)),
        None => Ok(store.settle_index()?),
    }
}

/// Adds a model and makes all vectors. Returns how many records a second got theirs.
pub(super) fn embed(
    folder: &Path,
    model: &Path,
    clock: &Arc<dyn Clock>,
) -> Result<f64, BenchError> {
    let store = open(folder, clock)?;
    store.add_model(model)?;
    let begin = Instant::now();
    while store.embed_some()? {}
    let records = store.meaning_status()?.map_or(0, |status| status.embedded);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = records as f64 / begin.elapsed().as_secs_f64();
    Ok(rate)
}

/// What documents of this collection look like: only the fields that some of them have.
fn declaration(documents: &[Document]) -> Value {
    let has = |present: fn(&Document) -> bool| documents.iter().any(present);
    let is_whole = |document: &Document| {
        let order = document.order.as_ref();
        order.is_none_or(serde_json::Number::is_i64)
    };
    let order = if documents.iter().all(is_whole) {
        "integer"
    } else {
        "number"
    };
    let fields = [
        ("title", "string", has(|one| !one.title.is_empty())),
        ("text", "string", true),
        ("author", "string", has(|one| one.author.is_some())),
        ("thread", "string", has(|one| one.thread.is_some())),
        ("order", order, has(|one| one.order.is_some())),
    ];
    let fields = fields.iter().filter(|(_, _, present)| *present);
    let mut properties = Map::from_iter([("id".to_owned(), json!({"type": "string"}))]);
    let mut searched = Vec::new();
    for (name, kind, _) in fields {
        let role = if *name == "text" { "body" } else { name };
        let property = json!({"type": kind, "x_pdpp_role": role});
        properties.insert((*name).to_owned(), property);
        if ["title", "text", "author"].contains(name) {
            searched.push(*name);
        }
    }
    json!({
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://pdpp.example/connectors/judged"},
        "declaration_version": "1",
        "publisher": {"id": "https://pdpp.example"},
        "display": {"name": "Judged"},
        "streams": [{
            "name": STREAM,
            "semantics": "mutable_state",
            "primary_key": ["id"],
            "schema": {"type": "object", "required": ["id"], "properties": properties},
            "query": {"search": {"lexical_fields": searched}},
        }],
    })
}

/// How judgements name the records of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By their key: there is one stream.
    Key,
    /// As `connection/stream:key`.
    Whole,
}

impl Naming {
    pub(super) fn id(self, connection: &str, stream: &str, key: &str) -> String {
        match self {
            Self::Key => key.to_owned(),
            Self::Whole => format!("{connection}/{stream}:{key}"),
        }
    }
}

/// What stands in the searched fields of every record.
pub(super) fn searched_texts(
    folder: &Path,
    naming: Naming,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<SearchedText>, BenchError> {
    let store = open(folder, clock)?;
    let mut texts = Vec::new();
    for connection in store.connections() {
        let Some(declaration) = store.declaration(&connection.connector) else {
            continue;
        };
        for stream in &declaration.streams {
            let fields: Vec<&str> = stream
                .query
                .lexical_fields
                .iter()
                .map(contract::id::FieldName::as_str)
                .collect();
            let place = place(&connection, &stream.name);
            walk(&store, &place, &mut |key, body| {
                let parts: Vec<_> = fields.iter().filter_map(|field| body.text(field)).collect();
                texts.push(SearchedText {
                    id: naming.id(connection.id.as_str(), stream.name.as_str(), key),
                    text: parts.join("\n"),
                });
            })?;
        }
    }
    Ok(texts)
}

fn place(connection: &Connection, stream: &StreamName) -> StreamRef {
    StreamRef::new(&connection.id, stream)
}

/// Hands over every record of a stream.
fn walk(
    store: &EmbeddedStore,
    stream: &StreamRef,
    each: &mut dyn FnMut(&str, &RecordBody),
) -> Result<(), BenchError> {
    let mut request = PageRequest {
        by: OrderBy::Key,
        direction: Direction::Ascending,
        after: None,
        limit: PAGE,
    };
    loop {
        let page = store.page(stream, &request)?;
        let Some(last) = page.records.last() else {
            return Ok(());
        };
        request.after = Some(last.position.clone());
        for record in page.records {
            let body = RecordBody::parse(record.body).map_err(setup)?;
            each(&record.key.to_string(), &body);
        }
    }
}

fn setup(error: impl std::fmt::Display) -> BenchError {
    BenchError::Setup(error.to_string())
}
