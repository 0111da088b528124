//! Our side of the bench: the corpus taken in through the acceptor that every ingest uses, and read
//! through the ports of the store.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{FieldName, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::scalar::Scalar;
use contract::time::Instant;
use ingest::{Acceptor, LineForm, StreamChoice};
use store::catalog::NewConnection;
use store::evidence;
use store::records::{ChangesRequest, Direction, OrderBy, PagePosition, PageRequest, StoredRecord};
use store::search::{
    AggregateRequest, Conversation, Filter, Granularity, Grouping, Metric, Scope, SearchRequest,
    Test, Value,
};
use store::{EmbeddedStore, OpenOptions, Store, StreamRef};
use text::{ExcerptLimits, Expression};

use crate::contender::{CHANGES, FAR_PAGE, PAGE, TOP};
use crate::{BenchError, Contender, CorpusRecord, DECLARATION, PageDepth, Probe, Question, Window};

/// More groups than any field of the corpus has.
const ALL_GROUPS: usize = 60_000;

pub(crate) struct OurSide {
    store: Arc<dyn Store>,
    declaration: Declaration,
    stream: StreamRef,
    /// Searched fields; the body is looked at first for an excerpt, as on the raw side.
    words: Vec<FieldName>,
    far: Option<PagePosition>,
    middle: u64,
}

/// Time does not pass in a bench.
pub(crate) const NOW: Instant = Instant(1_767_225_600_000_000);

impl OurSide {
    /// Opens or creates the store and registers the corpus.
    pub(crate) fn open(folder: &Path) -> Result<Self, BenchError> {
        let options = OpenOptions::new("pdpp bench", Arc::new(NOW));
        Self::over(Arc::new(EmbeddedStore::open(folder, options)?))
    }

    /// Registers the corpus in a store.
    pub(crate) fn over(store: Arc<dyn Store>) -> Result<Self, BenchError> {
        let declaration = Declaration::parse(DECLARATION).map_err(setup)?;
        if store.declaration(declaration.connector_key()).is_none() {
            store.declare(&declaration)?;
        }
        let connection = match store.connections().into_iter().next() {
            Some(connection) => connection,
            None => store.add_connection(NewConnection {
                connector: declaration.connector_key().clone(),
                name: "Bench".to_owned(),
                id: None,
            })?,
        };
        Ok(Self {
            store,
            declaration,
            stream: StreamRef {
                connection: connection.id,
                stream: StreamName::parse("messages").map_err(setup)?,
            },
            words: vec![field("body")?, field("subject")?],
            far: None,
            middle: 0,
        })
    }

    /// Walks to the far page once, so that reading it starts from a known cursor.
    pub(crate) fn ready(mut self, records: u64) -> Result<Self, BenchError> {
        for _ in 1..FAR_PAGE.min(records / u64::from(PAGE)) {
            let page = self.page_after(self.far.clone())?;
            match page.into_iter().last() {
                Some(last) => self.far = Some(last.position),
                None => break,
            }
        }
        self.middle = records / 2;
        Ok(self)
    }

    /// Takes one batch of lines. When it returns, the batch is durable.
    pub(crate) fn ingest(&self, batch: &[CorpusRecord]) -> Result<(), BenchError> {
        let choice = StreamChoice::Always(self.stream.stream.clone());
        let form = LineForm::EnvelopeOrBare;
        let acceptor = Acceptor::new(&self.declaration, choice, form, &NOW);
        let changes: Result<Vec<_>, _> = batch
            .iter()
            .map(|record| acceptor.line(record.json.as_bytes()))
            .collect();
        let changes = changes.map_err(|rejection| BenchError::Rejected(rejection.message))?;
        self.store.write(&self.stream.connection, changes)?;
        Ok(())
    }

    /// Makes everything searchable and lets the index come to rest.
    pub(crate) fn settle(&self) -> Result<(), BenchError> {
        Ok(self.store.settle_index()?)
    }

    /// Reads one record by its key; returns how many there are.
    pub(crate) fn get(&self, key: &str) -> Result<u64, BenchError> {
        let key = RecordKey::single(key).map_err(setup)?;
        Ok(u64::from(self.store.get(&self.stream, &key)?.is_some()))
    }

    fn page_after(&self, after: Option<PagePosition>) -> Result<Vec<StoredRecord>, BenchError> {
        let request = PageRequest {
            by: OrderBy::Cursor,
            direction: Direction::Descending,
            after,
            limit: PAGE as usize,
        };
        Ok(self.store.page(&self.stream, &request)?.records)
    }

    /// Asks with the messages of each author as a conversation.
    pub(crate) fn find_in_conversations(&self, words: &str) -> Result<u64, BenchError> {
        let mut scope = self.scope(None)?;
        scope.conversation = Some(Conversation {
            thread: field("author")?,
            order: field("sent_at")?,
        });
        self.proven_hits(Expression::parse(words), scope)
    }

    fn scope(&self, window: Option<&Window>) -> Result<Scope, BenchError> {
        let mut scope = Scope::whole(self.stream.clone(), self.words.clone());
        if let Some(window) = window {
            let instant = |micros| Scalar::Instant(Instant(micros));
            let since = Bound::Included(instant(window.sent_at.start));
            let until = Bound::Excluded(instant(window.sent_at.end));
            scope.filters = vec![
                Filter {
                    field: field("folder")?,
                    test: Test::Equals(Scalar::Text(window.folder.to_owned())),
                },
                Filter {
                    field: field("sent_at")?,
                    test: Test::Range(since, until),
                },
            ];
        }
        Ok(scope)
    }

    /// The number of hits that are proven by an excerpt.
    fn proven_hits(&self, expression: Expression, scope: Scope) -> Result<u64, BenchError> {
        let request = SearchRequest {
            expression,
            scopes: vec![scope],
            limit: TOP,
            ..SearchRequest::default()
        };
        let answer = self.store.search(&request)?;
        let limits = ExcerptLimits {
            max_excerpts: 1,
            ..ExcerptLimits::default()
        };
        let mut proven = 0;
        for hit in &answer.hits {
            let body = RecordBody::parse(hit.record.body.clone()).map_err(setup)?;
            let found = evidence::excerpts(&body, &self.words, &answer.expression, limits);
            proven += found.len() as u64;
        }
        Ok(proven)
    }

    fn aggregate(
        &self,
        window: Option<&Window>,
        metric: Metric,
        grouping: Option<Grouping>,
    ) -> Result<u64, BenchError> {
        let is_grouped = grouping.is_some();
        let answer = self.store.aggregate(&AggregateRequest {
            scope: self.scope(window)?,
            metric,
            grouping,
        })?;
        Ok(match answer.value {
            _ if is_grouped => answer.groups.len() as u64,
            Value::Integer(value) => u64::try_from(value).unwrap_or_default(),
            _ => 0,
        })
    }
}

impl Contender for OurSide {
    fn search(&mut self, probe: Probe, window: Option<&Window>) -> Result<u64, BenchError> {
        self.proven_hits(
            Expression::parse_all(&probe.expression()),
            self.scope(window)?,
        )
    }

    fn find(&mut self, words: &str) -> Result<u64, BenchError> {
        self.proven_hits(Expression::parse(words), self.scope(None)?)
    }

    fn page(&mut self, depth: PageDepth) -> Result<u64, BenchError> {
        let after = match depth {
            PageDepth::First => None,
            PageDepth::Far => self.far.clone(),
        };
        Ok(self.page_after(after)?.len() as u64)
    }

    fn answer(&mut self, question: Question, window: &Window) -> Result<u64, BenchError> {
        let values = |name| -> Result<_, BenchError> {
            Ok(Some(Grouping::Values {
                field: field(name)?,
                limit: ALL_GROUPS,
            }))
        };
        match question {
            Question::CountFiltered => self.aggregate(Some(window), Metric::Count, None),
            Question::Sum => self.aggregate(None, Metric::Sum(field("size_bytes")?), None),
            Question::GroupByFolder => self.aggregate(None, Metric::Count, values("folder")?),
            Question::GroupByAuthor => self.aggregate(None, Metric::Count, values("author")?),
            Question::Months => {
                let months = Grouping::Time {
                    field: field("sent_at")?,
                    granularity: Granularity::Month,
                    zone: jiff::tz::TimeZone::UTC,
                    limit: ALL_GROUPS,
                };
                self.aggregate(None, Metric::Count, Some(months))
            }
            Question::DistinctAuthors => {
                self.aggregate(None, Metric::CountDistinct(field("author")?), None)
            }
        }
    }

    fn changes(&mut self) -> Result<u64, BenchError> {
        let request = ChangesRequest::since(self.middle, CHANGES as usize);
        let page = self.store.changes(&self.stream, &request)?;
        Ok(page.entries.len() as u64)
    }
}

fn field(name: &str) -> Result<FieldName, BenchError> {
    FieldName::parse(name).map_err(setup)
}

fn setup(error: impl std::fmt::Display) -> BenchError {
    BenchError::Setup(error.to_string())
}
