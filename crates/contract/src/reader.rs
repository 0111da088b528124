//! Everything a reader may ask, as one trait.
//!
//! A reader already knows on whose behalf it reads: our own holds an authority, the one for another server a
//! credential. Surfaces are written against this trait alone.

use std::fmt;
use std::io::Read;

use crate::aggregate::{AggregateQuery, Aggregation};
use crate::citation::{CitationCheck, VerifyQuery};
use crate::error::ReadError;
use crate::page::Page;
use crate::query::{BlobQuery, RecordQuery, RecordsQuery, StreamQuery, StreamsQuery, WindowQuery};
use crate::record::{FieldWindow, Record};
use crate::schema::{SchemaAnswer, SchemaQuery, StreamMetadata, StreamSummary};
use crate::search::{SearchHit, SearchQuery};

/// The read contract. `links` are left to the surface, which alone knows the request target.
pub trait ReadContract: Send + Sync + 'static {
    fn schema(
        &self,
        query: SchemaQuery,
    ) -> impl Future<Output = Result<SchemaAnswer, ReadError>> + Send;

    /// The streams, one entry per connection that carries it.
    fn streams(
        &self,
        query: StreamsQuery,
    ) -> impl Future<Output = Result<Page<StreamSummary>, ReadError>> + Send;

    fn stream(
        &self,
        query: StreamQuery,
    ) -> impl Future<Output = Result<StreamMetadata, ReadError>> + Send;

    /// Records of a stream, or what changed in it.
    fn records(
        &self,
        query: RecordsQuery,
    ) -> impl Future<Output = Result<Page<Record>, ReadError>> + Send;

    fn record(&self, query: RecordQuery) -> impl Future<Output = Result<Record, ReadError>> + Send;

    /// One figure over many records, or one per group.
    fn aggregate(
        &self,
        query: AggregateQuery,
    ) -> impl Future<Output = Result<Aggregation, ReadError>> + Send;

    fn search(
        &self,
        query: SearchQuery,
    ) -> impl Future<Output = Result<Page<SearchHit>, ReadError>> + Send;

    /// A bounded slice of one long field.
    fn field_window(
        &self,
        query: WindowQuery,
    ) -> impl Future<Output = Result<FieldWindow, ReadError>> + Send;

    /// Whether what was quoted still stands.
    fn verify(
        &self,
        query: VerifyQuery,
    ) -> impl Future<Output = Result<CitationCheck, ReadError>> + Send;

    /// The bytes a record points at.
    fn blob(&self, query: BlobQuery) -> impl Future<Output = Result<Blob, ReadError>> + Send;
}

/// The bytes a record points at. Reading them may block.
pub struct Blob {
    /// What the bytes are, as stored.
    pub media_type: String,
    pub size_bytes: u64,
    pub content: Box<dyn Read + Send>,
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob")
            .field("media_type", &self.media_type)
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}
