//! The reader itself: one method per query, each run on a thread that may block, logged for the owner when a client asked,
//! and answered with the contract's error when it failed.

use std::sync::Arc;

use contract::aggregate::{AggregateQuery, Aggregation};
use contract::citation::{CitationCheck, VerifyQuery};
use contract::error::{ErrorCode, ReadError};
use contract::grant::{Authority, GrantedRow};
use contract::page::Page;
use contract::query::{
    BlobQuery, Filter, RecordQuery, RecordsQuery, StreamQuery, StreamsQuery, WindowQuery,
};
use contract::reader::{Blob, ReadContract};
use contract::record::{FieldWindow, Record};
use contract::schema::{SchemaAnswer, SchemaQuery, StreamMetadata, StreamSummary};
use contract::seal::{Binding, SealingKey};
use contract::search::{SearchHit, SearchQuery};
use contract::time::Clock;
use contract::upstream::PageBytes;
use serde::Serialize;
use store::Store;
use store::grants::Disclosure;
use store::records::ByteBudget;

use crate::ambiguity::one_row;
use crate::cursor::Tokens;
use crate::disclosure::{Disclosures, NotNoted, Shown};
use crate::enforce::{Reach, Row};
use crate::failure::Result;
use crate::measure::{page_budget, written_bytes};
use crate::related::{RelatedRule, RelatedRules};
use crate::work::run_while_awaited;
use crate::{
    blob, citation, conditions, record, records, related, schema, search, streams, window,
};

/// How often a step is taken while the records that rules look at change.
const ATTEMPTS: usize = 5;

/// What shows no record.
const FIGURES: [&str; 4] = ["schema", "streams", "stream", "aggregate"];

/// What a reader needs besides data and authority.
#[derive(Clone)]
pub struct ReaderSettings {
    pub sealing_key: SealingKey,
    /// The server's public address, for citations.
    pub public_url: String,
    pub clock: Arc<dyn Clock>,
    /// Who takes note of what clients were shown.
    pub disclosures: Option<Arc<dyn Disclosures>>,
    /// The most bytes the entries of a page may have as JSON; the first one is always given.
    pub max_bytes: Option<PageBytes>,
}

/// Answers the read contract over a store, on behalf of an authority. Cheap to clone.
///
/// It must be called inside a Tokio runtime, whose blocking threads do the work.
#[derive(Clone)]
pub struct GrantReader(Arc<Session>);

pub(crate) struct Session {
    pub(crate) store: Arc<dyn Store>,
    authority: Authority,
    /// The rules on related records that the authority was resolved from.
    related: RelatedRules,
    pub(crate) settings: ReaderSettings,
}

pub(crate) type Answer<T> = Result<(T, Shown)>;

impl GrantReader {
    pub fn new(store: Arc<dyn Store>, authority: Authority, settings: ReaderSettings) -> Self {
        Self(Arc::new(Session {
            store,
            authority,
            related: RelatedRules::default(),
            settings,
        }))
    }

    /// The same reader, with pages whose entries have at most so many bytes as JSON; the first one is always given.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: Option<PageBytes>) -> Self {
        let settings = ReaderSettings {
            max_bytes,
            ..self.0.settings.clone()
        };
        Self::new(self.0.store.clone(), self.0.authority.clone(), settings)
    }

    async fn answer<Q, T>(
        &self,
        operation: &'static str,
        query: Q,
        step: fn(&Session, &Q) -> Answer<T>,
    ) -> Result<T, ReadError>
    where
        Q: Send + 'static,
        T: Serialize + Send + 'static,
    {
        let bytes = |answer: &T| u64::try_from(written_bytes(answer)).unwrap_or(u64::MAX);
        self.answer_of_size(operation, query, step, bytes).await
    }

    /// The same for an answer of any kind, whose size is told.
    async fn answer_of_size<Q, T>(
        &self,
        operation: &'static str,
        query: Q,
        step: fn(&Session, &Q) -> Answer<T>,
        bytes: fn(&T) -> u64,
    ) -> Result<T, ReadError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        let session = Arc::clone(&self.0);
        let work = move || session.run(operation, &query, step, bytes);
        match run_while_awaited(work).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(operation, error = %error, "a read did not come to its end");
                Err(ReadError::internal())
            }
        }
    }
}

impl Session {
    fn run<Q, T>(
        &self,
        operation: &'static str,
        query: &Q,
        step: fn(&Session, &Q) -> Answer<T>,
        bytes: fn(&T) -> u64,
    ) -> Result<T, ReadError> {
        if !FIGURES.contains(&operation) {
            self.admit()?;
        }
        match self.take(query, step) {
            Ok((answer, shown)) => {
                self.note(operation, shown, || bytes(&answer))?;
                Ok(answer)
            }
            Err(failure) => {
                let is_owner = matches!(self.authority, Authority::Owner);
                Err(failure.into_read_error(operation, is_owner))
            }
        }
    }

    /// Takes a step, again if the records that rules look at changed meanwhile.
    fn take<Q, T>(&self, query: &Q, step: fn(&Session, &Q) -> Answer<T>) -> Answer<T> {
        let resolve = || related::resolved(self.store.as_ref(), &self.authority);
        let Some(mut resolved) = resolve()? else {
            return step(self, query);
        };
        for _ in 0..ATTEMPTS {
            let session = Session {
                store: Arc::clone(&self.store),
                authority: resolved.authority.clone(),
                related: resolved.related.clone(),
                settings: self.settings.clone(),
            };
            let taken = step(&session, query);
            match resolve()? {
                Some(now) if now != resolved => resolved = now,
                _ => return taken,
            }
        }
        let message = "the records that the rules of the grant look at are changing now";
        Err(ReadError::new(ErrorCode::StorageUnavailable, message)
            .with_hint("ask again")
            .into())
    }

    /// A row as it was granted, with its rules on related records, if it has such rules.
    pub(crate) fn related_of(&self, row: &Row) -> Option<&(GrantedRow, Vec<RelatedRule>)> {
        self.related.of_row(row)
    }

    fn admit(&self) -> Result<(), ReadError> {
        let client = self.reach().client();
        if let (Some(disclosures), Some(client)) = (&self.settings.disclosures, client) {
            let grants = client.rows().iter().map(|row| row.grant_id.clone());
            disclosures.admit(&grants.collect())?;
        }
        Ok(())
    }

    fn note(
        &self,
        operation: &'static str,
        shown: Shown,
        bytes: impl FnOnce() -> u64,
    ) -> Result<(), ReadError> {
        let client = self.reach().client();
        if let (Some(disclosures), Some(client)) = (&self.settings.disclosures, client) {
            let bytes = disclosures.counts_bytes(&shown.grants).then(bytes);
            let noted = disclosures.note(Disclosure {
                at: self.settings.clock.now(),
                grant_ids: shown.grants.into_iter().collect(),
                client_id: client.client_id().clone(),
                operation: operation.to_owned(),
                records: shown.records,
                fields: shown.fields.into_iter().collect(),
                bytes,
            });
            return noted.map_err(|not_noted| match not_noted {
                NotNoted::Unlogged(cause) => unlogged(operation, &cause),
                NotNoted::Refused(refusal) => *refusal,
            });
        }
        Ok(())
    }

    /// The bytes that the entries of a page may take.
    pub(crate) fn page_budget(&self) -> ByteBudget {
        page_budget(self.settings.max_bytes.map(|bytes| bytes.all))
    }

    pub(crate) fn reach(&self) -> Reach<'_> {
        Reach::new(
            self.store.as_ref(),
            &self.authority,
            &self.settings.sealing_key,
        )
    }

    pub(crate) fn row(
        &self,
        stream: &contract::id::StreamName,
        connection: Option<&str>,
    ) -> Result<Row> {
        Ok(one_row(self.reach(), stream, connection)?)
    }

    /// Seals and opens what is bound to one row, its conditions and its order.
    pub(crate) fn row_tokens<'a>(&'a self, row: &'a Row, bound: &'a Bound) -> Tokens<'a> {
        self.tokens(Binding {
            stream: Some(row.stream().name.as_str()),
            connection: Some(row.connection().id.as_str()),
            filter: &bound.filter,
            order: &bound.order,
            grant: row.grant_id().map(contract::id::GrantId::as_str),
        })
    }

    pub(crate) fn tokens<'a>(&'a self, binding: Binding<'a>) -> Tokens<'a> {
        Tokens {
            key: &self.settings.sealing_key,
            binding,
            now: self.settings.clock.now(),
        }
    }
}

fn unlogged(operation: &'static str, cause: &str) -> ReadError {
    tracing::error!(
        operation,
        cause,
        "a read was refused because it could not be logged"
    );
    let message = "what the answer shows cannot be logged on the server now, so it is not given";
    ReadError::new(ErrorCode::StorageUnavailable, format!("{message}: {cause}"))
        .with_hint("ask again later; the owner of the server learns with `pdpp doctor` what to do")
}

/// What a token is bound to besides its row.
pub(crate) struct Bound {
    pub(crate) filter: String,
    pub(crate) order: String,
}

impl Bound {
    pub(crate) fn new(filters: &[Filter], order: impl Into<String>) -> Self {
        Self {
            filter: conditions::fingerprint(filters),
            order: order.into(),
        }
    }
}

impl ReadContract for GrantReader {
    async fn schema(&self, query: SchemaQuery) -> Result<SchemaAnswer, ReadError> {
        self.answer("schema", query, schema::schema).await
    }

    async fn streams(&self, query: StreamsQuery) -> Result<Page<StreamSummary>, ReadError> {
        self.answer("streams", query, streams::streams).await
    }

    async fn stream(&self, query: StreamQuery) -> Result<StreamMetadata, ReadError> {
        self.answer("stream", query, schema::stream).await
    }

    async fn records(&self, query: RecordsQuery) -> Result<Page<Record>, ReadError> {
        self.answer("records", query, records::records).await
    }

    async fn record(&self, query: RecordQuery) -> Result<Record, ReadError> {
        self.answer("record", query, record::record).await
    }

    async fn aggregate(&self, query: AggregateQuery) -> Result<Aggregation, ReadError> {
        self.answer("aggregate", query, crate::aggregate::aggregate)
            .await
    }

    async fn search(&self, query: SearchQuery) -> Result<Page<SearchHit>, ReadError> {
        self.answer("search", query, search::search).await
    }

    async fn field_window(&self, query: WindowQuery) -> Result<FieldWindow, ReadError> {
        self.answer("field_window", query, window::field_window)
            .await
    }

    async fn verify(&self, query: VerifyQuery) -> Result<CitationCheck, ReadError> {
        self.answer("verify", query, citation::verify).await
    }

    async fn blob(&self, query: BlobQuery) -> Result<Blob, ReadError> {
        self.answer_of_size("blob", query, blob::blob, |blob| blob.size_bytes)
            .await
    }
}
