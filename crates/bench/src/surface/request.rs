//! The questions, each of which can be put to a reader in process and to a server.

use contract::aggregate::{AggregateQuery, GroupBy, Grouping, Metric};
use contract::error::ReadError;
use contract::id::{FieldName, StreamName};
use contract::query::{ListOptions, PageLimit, Reading, RecordQuery, RecordsQuery, WindowQuery};
use contract::reader::ReadContract as _;
use contract::schema::SchemaQuery;
use contract::search::SearchQuery;
use contract::upstream::Get;
use contract::window::WindowSelector;
use read::GrantReader;
use serde_json::Value;

use crate::contender::TOP;
use crate::{BenchError, Corpus, PROBES, Probe};

/// A record that is longer than this has a body worth a window.
const LONG_RECORD: usize = 6_000;
/// How many records are looked through for a long one.
const LOOKS: u64 = 5_000;

const STREAM: &str = "messages";

#[derive(Debug, Clone)]
pub(super) enum BenchRequest {
    Search(SearchQuery),
    Schema(SchemaQuery),
    Records(RecordsQuery),
    Record(RecordQuery),
    Window(WindowQuery),
    Aggregate(AggregateQuery),
}

impl BenchRequest {
    pub(super) fn search(probe: Probe) -> Result<Self, BenchError> {
        let mut query = SearchQuery::new(probe.expression())?;
        query.limit = PageLimit::new(u32::try_from(TOP).unwrap_or(u32::MAX));
        Ok(Self::Search(query))
    }

    pub(super) fn schema() -> Result<Self, BenchError> {
        let query = SchemaQuery::parse(None, None, Some(stream()?), None)?;
        Ok(Self::Schema(query))
    }

    /// The newest page, of the size clients get unless they ask otherwise.
    pub(super) fn page() -> Result<Self, BenchError> {
        Ok(Self::Records(RecordsQuery::new(stream()?)))
    }

    pub(super) fn record(corpus: &Corpus) -> Result<Self, BenchError> {
        Ok(Self::Record(RecordQuery::new(
            stream()?,
            long_record(corpus),
        )))
    }

    /// The beginning of its body.
    pub(super) fn window(corpus: &Corpus) -> Result<Self, BenchError> {
        Ok(Self::Window(WindowQuery {
            stream: stream()?,
            record_id: long_record(corpus),
            field: field("body")?,
            connection_id: None,
            selector: WindowSelector::default(),
        }))
    }

    pub(super) fn aggregate() -> Result<Self, BenchError> {
        let grouping = Grouping::new(GroupBy::Field(field("folder")?), None)?;
        let query = AggregateQuery::new(stream()?, Metric::Count, Some(grouping))?;
        Ok(Self::Aggregate(query))
    }

    /// All of them with their names, searches first.
    pub(super) fn all(corpus: &Corpus) -> Result<Vec<(&'static str, Self)>, BenchError> {
        Ok(vec![
            ("search, rare word", Self::search(PROBES.rare)?),
            ("search, common word", Self::search(PROBES.common)?),
            ("search, two words", Self::search(PROBES.pair)?),
            ("search, phrase", Self::search(PROBES.phrase)?),
            ("schema of a stream", Self::schema()?),
            ("page of 25 records", Self::page()?),
            ("one long record", Self::record(corpus)?),
            ("window of a long field", Self::window(corpus)?),
            ("count by folder", Self::aggregate()?),
        ])
    }

    /// The page that begins where another ended.
    pub(super) fn continued(&self, cursor: &str) -> Self {
        let mut next = self.clone();
        if let Self::Records(query) = &mut next {
            query.reading = Reading::List(ListOptions {
                cursor: Some(cursor.to_owned()),
                ..ListOptions::default()
            });
        }
        next
    }

    pub(super) fn target(&self) -> String {
        let request = match self {
            Self::Search(query) => Get::v1(["search"]).with("q", Some(query.q.as_str())).with(
                "limit",
                query.limit.requested().map(|limit| limit.to_string()),
            ),
            Self::Schema(_) => Get::v1(["schema"]).with("stream", Some(STREAM)),
            Self::Records(query) => {
                let cursor = match &query.reading {
                    Reading::List(list) => list.cursor.clone(),
                    Reading::Changes(_) => None,
                };
                Get::v1(["streams", STREAM, "records"]).with("cursor", cursor)
            }
            Self::Record(query) => Get::v1(["streams", STREAM, "records", &query.record_id]),
            Self::Window(query) => {
                let path = [
                    "streams",
                    STREAM,
                    "records",
                    &query.record_id,
                    "field-window",
                ];
                Get::v1(path).with("field", Some(query.field.as_str()))
            }
            Self::Aggregate(_) => Get::v1(["streams", STREAM, "aggregate"])
                .with("metric", Some("count"))
                .with("group_by", Some("folder")),
        };
        request.target()
    }

    /// Asks in process; returns the number of things found.
    pub(super) async fn in_process(&self, reader: &GrantReader) -> Result<u64, ReadError> {
        Ok(match self.clone() {
            Self::Search(query) => reader.search(query).await?.data.len() as u64,
            Self::Records(query) => reader.records(query).await?.data.len() as u64,
            Self::Aggregate(query) => {
                let groups = reader.aggregate(query).await?.groups;
                groups.map_or(1, |groups| groups.len() as u64)
            }
            Self::Schema(query) => reader.schema(query).await.map(|_| 1)?,
            Self::Record(query) => reader.record(query).await.map(|_| 1)?,
            Self::Window(query) => reader.field_window(query).await.map(|_| 1)?,
        })
    }

    /// Asks in process and writes the answer, as a server would before it sends it; returns its size.
    pub(super) async fn written_in_process(&self, reader: &GrantReader) -> Result<u64, BenchError> {
        let written = match self.clone() {
            Self::Search(query) => serde_json::to_vec(&reader.search(query).await?),
            Self::Records(query) => serde_json::to_vec(&reader.records(query).await?),
            Self::Aggregate(query) => serde_json::to_vec(&reader.aggregate(query).await?),
            Self::Schema(query) => serde_json::to_vec(&reader.schema(query).await?),
            Self::Record(query) => serde_json::to_vec(&reader.record(query).await?),
            Self::Window(query) => serde_json::to_vec(&reader.field_window(query).await?),
        };
        Ok(written?.len() as u64)
    }

    /// The number of things in the answer of a server.
    pub(super) fn found(&self, body: &[u8]) -> Result<u64, BenchError> {
        let answer: Value = serde_json::from_slice(body)?;
        let list = match self {
            Self::Search(_) | Self::Records(_) => answer.get("data"),
            Self::Aggregate(_) => answer.get("groups"),
            Self::Schema(_) | Self::Record(_) | Self::Window(_) => None,
        };
        let list = list.and_then(Value::as_array);
        Ok(list.map_or(1, |list| list.len() as u64))
    }
}

/// The key of a long record, or of the first where the corpus has none.
pub(super) fn long_record(corpus: &Corpus) -> String {
    let mut records = corpus
        .iter()
        .take(usize::try_from(LOOKS).unwrap_or(usize::MAX));
    let long = records.find(|record| record.json.len() > LONG_RECORD);
    long.unwrap_or_else(|| corpus.record(0)).key
}

fn stream() -> Result<StreamName, BenchError> {
    StreamName::parse(STREAM).map_err(|error| BenchError::Setup(error.to_string()))
}

fn field(name: &str) -> Result<FieldName, BenchError> {
    FieldName::parse(name).map_err(|error| BenchError::Setup(error.to_string()))
}
