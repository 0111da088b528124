//! The raw write path: parse, insert, commit durably, index, commit the index, batch by batch.

use std::borrow::Cow;

use rusqlite::{Connection, params};
use serde::Deserialize;
use tantivy::{IndexWriter, TantivyDocument};

use super::{Columns, RawPaths, RawSettings, STREAM, open_database, open_index};
use crate::{BenchError, CorpusRecord};

const INSERT: &str = "INSERT INTO record (rid, stream_id, key, seq, sort, emitted_at, data)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// The members that the index needs.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) author: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) subject: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) body: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) sent_at: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) folder: Cow<'a, str>,
    pub(super) size_bytes: i64,
    pub(super) amount: Option<f64>,
}

/// Both engines opened for writing.
pub struct RawPipeline {
    records: Connection,
    index: IndexWriter,
    columns: Columns,
    last: i64,
    commit_every: u64,
    uncommitted: u64,
}

impl RawPipeline {
    pub fn create(paths: &RawPaths, settings: &RawSettings) -> Result<Self, BenchError> {
        std::fs::create_dir_all(paths.folder()).map_err(BenchError::file(paths.folder()))?;
        let records = open_database(&paths.database(), settings)?;
        let (index, columns) = open_index(&paths.index(), settings)?;
        let index =
            index.writer_with_num_threads(settings.writer_threads, settings.writer_memory)?;
        let last = records.query_row("SELECT ifnull(max(rid), 0) FROM record", [], |row| {
            row.get(0)
        })?;
        Ok(Self {
            records,
            index,
            columns,
            last,
            commit_every: settings.index_commit_every,
            uncommitted: 0,
        })
    }

    /// Writes one batch. When it returns, the batch is durable, and searchable once the index is
    /// committed.
    pub fn ingest(&mut self, batch: &[CorpusRecord]) -> Result<(), BenchError> {
        let mut documents = Vec::with_capacity(batch.len());
        let transaction = self.records.transaction()?;
        let mut rid = self.last;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for record in batch {
                let message: Message<'_> = serde_json::from_str(&record.json)?;
                let sent_at = message.sent_at.parse::<jiff::Timestamp>();
                let sent_at = sent_at.map_err(|_| BenchError::CorpusDate(record.key.clone()))?;
                let sent_at = sent_at.as_microsecond();
                rid += 1;
                let emitted_at: &str = &message.sent_at;
                insert.execute(params![
                    rid,
                    STREAM,
                    record.key,
                    rid,
                    sent_at,
                    emitted_at,
                    record.json
                ])?;
                documents.push(document(self.columns, &message, (rid, sent_at)));
            }
        }
        transaction.commit()?;
        self.last = rid;
        for document in documents {
            self.index.add_document(document)?;
        }
        self.uncommitted += batch.len() as u64;
        if self.uncommitted >= self.commit_every {
            self.index.commit()?;
            self.uncommitted = 0;
        }
        Ok(())
    }

    /// Commits what is left and waits for background merges, so that reads are measured on an index
    /// at rest.
    pub fn settle(mut self) -> Result<(), BenchError> {
        if self.uncommitted > 0 {
            self.index.commit()?;
        }
        self.index.wait_merging_threads()?;
        Ok(())
    }
}

impl std::fmt::Debug for RawPipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawPipeline")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

fn document(columns: Columns, message: &Message<'_>, place: (i64, i64)) -> TantivyDocument {
    let (rid, sent_at) = place;
    let mut document = TantivyDocument::default();
    document.add_text(columns.subject, &message.subject);
    document.add_text(columns.body, &message.body);
    document.add_text(columns.author, &message.author);
    document.add_text(columns.folder, &message.folder);
    document.add_i64(columns.sent_at, sent_at);
    document.add_i64(columns.size_bytes, message.size_bytes);
    if let Some(amount) = message.amount {
        document.add_f64(columns.amount, amount);
    }
    document.add_u64(columns.rid, rid.unsigned_abs());
    document
}
