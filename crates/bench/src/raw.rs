//! The raw engines doing the work that the store does, written by hand as someone would who knows
//! both: SQLite for records, tantivy for words and columns, nothing in between. Every figure of our
//! own stands beside the figure of this module.

mod aggregate;
mod ingest;
mod pages;
mod search;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tantivy::directory::MmapDirectory;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RAW_TOKENIZER_NAME, SimpleTokenizer, TextAnalyzer,
};
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy};

use crate::BenchError;
pub use aggregate::{RawAggregate, RawGroups};
pub use ingest::RawPipeline;
pub use pages::{RawPosition, RawRecord};
pub use search::{RawFilter, RawHit, RawQuery};

/// The only stream of the corpus, as the record table numbers it.
const STREAM: i64 = 1;
const TOKENIZER: &str = "words";
const CREATE: &str = "
    CREATE TABLE record (
        rid INTEGER PRIMARY KEY,
        stream_id INTEGER NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        sort INTEGER,
        emitted_at TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE UNIQUE INDEX record_by_key ON record (stream_id, key);
    CREATE INDEX record_by_seq ON record (stream_id, seq);
    CREATE INDEX record_by_sort ON record (stream_id, sort, key);
";

/// What may be chosen about the raw engines.
#[derive(Clone)]
pub struct RawSettings {
    /// How text becomes words. Pass our own analysis here to compare engines on equal words.
    pub tokenizer: TextAnalyzer,
    pub writer_threads: usize,
    /// Memory of the indexing threads together, in bytes.
    pub writer_memory: usize,
    /// The index is committed with the batch that brings so many records since the last commit; 0
    /// commits it with every batch.
    pub index_commit_every: u64,
    /// Page cache of the record database, in KiB.
    pub cache_kib: u32,
}

impl Default for RawSettings {
    fn default() -> Self {
        let tokenizer = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(LowerCaser)
            .filter(AsciiFoldingFilter)
            .build();
        Self {
            tokenizer,
            writer_threads: 1,
            writer_memory: 160_000_000,
            index_commit_every: 0,
            cache_kib: 16 << 10,
        }
    }
}

impl std::fmt::Debug for RawSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSettings")
            .field("writer_threads", &self.writer_threads)
            .field("writer_memory", &self.writer_memory)
            .field("index_commit_every", &self.index_commit_every)
            .field("cache_kib", &self.cache_kib)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy)]
struct Columns {
    subject: Field,
    body: Field,
    author: Field,
    folder: Field,
    sent_at: Field,
    size_bytes: Field,
    amount: Field,
    rid: Field,
}

impl Columns {
    /// The schema and its columns, always built in the same order.
    fn schema() -> (Schema, Self) {
        let words = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let words = TextOptions::default().set_indexing_options(words);
        let exact = TextFieldIndexing::default()
            .set_tokenizer(RAW_TOKENIZER_NAME)
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        let exact = TextOptions::default()
            .set_indexing_options(exact)
            .set_fast(RAW_TOKENIZER_NAME);
        let mut schema = Schema::builder();
        let columns = Self {
            subject: schema.add_text_field("subject", words.clone()),
            body: schema.add_text_field("body", words),
            author: schema.add_text_field("author", exact.clone()),
            folder: schema.add_text_field("folder", exact),
            sent_at: schema.add_i64_field("sent_at", FAST),
            size_bytes: schema.add_i64_field("size_bytes", FAST),
            amount: schema.add_f64_field("amount", FAST),
            rid: schema.add_u64_field("rid", FAST | INDEXED),
        };
        (schema.build(), columns)
    }
}

/// Where the raw engines keep their files.
#[derive(Debug, Clone)]
pub struct RawPaths {
    folder: PathBuf,
}

impl RawPaths {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn database(&self) -> PathBuf {
        self.folder.join("records.db")
    }
}

pub struct RawReader {
    records: Connection,
    index: IndexReader,
    columns: Columns,
    tokenizer: TextAnalyzer,
}

impl RawReader {
    /// Opens both engines and readies them for the first question.
    pub fn open(paths: &RawPaths, settings: &RawSettings) -> Result<Self, BenchError> {
        let records = open_database(&paths.database(), settings)?;
        let (index, columns) = open_index(&paths.index(), settings)?;
        let index = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        Ok(Self {
            records,
            index,
            columns,
            tokenizer: settings.tokenizer.clone(),
        })
    }
}

impl std::fmt::Debug for RawReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawReader").finish_non_exhaustive()
    }
}

fn open_database(path: &Path, settings: &RawSettings) -> Result<Connection, BenchError> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "page_size", 8_192)?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.pragma_update(None, "wal_autocheckpoint", 8_000)?;
    database.pragma_update(None, "cache_size", -i64::from(settings.cache_kib))?;
    let is_new: i64 = database.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })?;
    if is_new == 1 {
        database.execute_batch(CREATE)?;
    }
    database.set_prepared_statement_cache_capacity(32);
    Ok(database)
}

fn open_index(path: &Path, settings: &RawSettings) -> Result<(Index, Columns), BenchError> {
    std::fs::create_dir_all(path).map_err(BenchError::file(path))?;
    let (schema, columns) = Columns::schema();
    let directory = MmapDirectory::open(path).map_err(tantivy::TantivyError::from)?;
    let index = if Index::exists(&directory).map_err(tantivy::TantivyError::from)? {
        Index::open(directory)?
    } else {
        Index::create(directory, schema, IndexSettings::default())?
    };
    index
        .tokenizers()
        .register(TOKENIZER, settings.tokenizer.clone());
    Ok((index, columns))
}
