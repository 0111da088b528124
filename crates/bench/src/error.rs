//! Why a bench run stopped.

use std::path::PathBuf;

/// A bench run that could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The record database of the raw side failed.
    #[error("the raw record database failed: {0}; run again with an empty --dir")]
    Database(#[from] rusqlite::Error),
    /// The search engine of the raw side failed.
    #[error("the raw search engine failed: {0}; run again with an empty --dir")]
    Engine(#[from] tantivy::TantivyError),
    #[error("our store failed: {0}")]
    Store(#[from] store::StoreError),
    /// Our ingest refused a record of the corpus.
    #[error("our ingest refused a corpus record: {0}; please report it")]
    Rejected(String),
    /// The corpus and its declaration do not fit our own rules.
    #[error("the bench contradicts our own rules: {0}; please report it")]
    Setup(String),
    /// A corpus record or an aggregation request is not the JSON that was expected.
    #[error("unexpected JSON in the bench itself: {0}; please report it")]
    Json(#[from] serde_json::Error),
    /// A file or folder could not be read or written.
    #[error("{path}: {source}; choose another folder")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file of a judged collection is not in the layout.
    #[error("{path}, line {line}: {what}; docs/benchmarks.md says what --finding takes")]
    Collection {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        what: String,
    },
    /// The report could not be written.
    #[error("the report could not be written: {0}")]
    Output(#[from] std::io::Error),
    #[error("{0} is not empty and no earlier bench of this size; choose another --dir")]
    ForeignFolder(PathBuf),
    /// A grant could not be issued or used on our own corpus.
    #[error("the bench could not grant itself its corpus: {0}; please report it")]
    Grant(String),
    /// A question failed in process.
    #[error("a read of the corpus failed: {0}; please report it")]
    Read(#[from] contract::error::ReadError),
    /// A process under measurement did not start, ended early or did not answer.
    #[error("`{command}` {what}; run it by hand to see why")]
    Process { command: String, what: String },
    /// A connection to the measured server failed.
    #[error("the connection to the measured server failed: {0}; run again")]
    Connection(#[from] hyper::Error),
    /// The measured server or adapter refused a question.
    #[error("{question} was answered with {answer}; please report it")]
    Refused { question: String, answer: String },
    /// The sample life could not be made or loaded.
    #[error("the sample life: {0}; please report it")]
    Demo(#[from] demo::DemoError),
    /// A corpus record lacks what the raw engines need.
    #[error("the corpus record {0} has no readable sent_at; please report it")]
    CorpusDate(String),
}

impl BenchError {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
