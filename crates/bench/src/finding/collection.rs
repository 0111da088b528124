//! A judged collection: a folder in the BEIR layout. `corpus.jsonl` has the documents, `queries.jsonl` the questions, and
//! `qrels.tsv` says which documents answer which question. A folder without `corpus.jsonl` asks about the sample life; its
//! judgements name records as `connection/stream:key`.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::BenchError;

const CORPUS: &str = "corpus.jsonl";
const QUERIES: &str = "queries.jsonl";
const JUDGEMENTS: &str = "qrels.tsv";

/// One document. It is written as the record that is imported.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct Document {
    #[serde(rename(deserialize = "_id"))]
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<String>,
    /// What the document is a part of, such as a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    /// Where it stands in its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<Number>,
}

/// One question.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Query {
    #[serde(rename = "_id")]
    pub(crate) id: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) metadata: QueryMetadata,
}

/// What the questions about the sample life say besides.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct QueryMetadata {
    /// The part of a record's text that answers the question.
    #[serde(default)]
    pub(crate) answer: String,
    /// The language it is asked in.
    #[cfg(test)]
    #[serde(default)]
    pub(crate) language: String,
}

/// The documents that answer a question, each with how well it does; more is better.
pub(super) type Gold = HashMap<String, u32>;

/// Documents, questions and judgements.
#[derive(Debug)]
pub(super) struct Collection {
    /// `None` for the sample life.
    pub(super) documents: Option<Vec<Document>>,
    pub(super) queries: Vec<Query>,
    /// By the id of the question.
    pub(super) judgements: HashMap<String, Gold>,
}

impl Collection {
    /// Reads a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, BenchError> {
        let read = |name: &str| File::read(folder.join(name));
        let documents = match read(CORPUS) {
            Ok(corpus) => Some(corpus.json_lines()?),
            Err(BenchError::File { source, .. }) if source.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            documents,
            queries: read(QUERIES)?.json_lines()?,
            judgements: read(JUDGEMENTS)?.judgements()?,
        })
    }

    /// The questions about the sample life.
    pub(super) fn sample_life() -> Result<Self, BenchError> {
        let judgements = include_str!("../../data/sample-life/qrels.tsv");
        Ok(Self {
            documents: None,
            queries: sample_questions()?,
            judgements: File::included(JUDGEMENTS, judgements).judgements()?,
        })
    }

    /// The questions that some document answers.
    pub(super) fn judged(&self) -> Vec<(&Query, &Gold)> {
        let queries = self.queries.iter();
        queries
            .filter_map(|query| Some((query, self.judgements.get(&query.id)?)))
            .collect()
    }
}

/// The questions about the sample life, each with its answer.
pub(crate) fn sample_questions() -> Result<Vec<Query>, BenchError> {
    let queries = include_str!("../../data/sample-life/queries.jsonl");
    File::included(QUERIES, queries).json_lines()
}

/// One file of a collection.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn read(path: PathBuf) -> Result<Self, BenchError> {
        let text = std::fs::read_to_string(&path).map_err(BenchError::file(&path))?;
        Ok(Self { path, text })
    }

    fn included(name: &str, text: &str) -> Self {
        Self {
            path: PathBuf::from(name),
            text: text.to_owned(),
        }
    }

    /// The lines that are not blank, each with its number.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().zip(1..);
        lines.filter_map(|(line, number)| (!line.trim().is_empty()).then_some((number, line)))
    }

    fn json_lines<T: DeserializeOwned>(&self) -> Result<Vec<T>, BenchError> {
        self.lines()
            .map(|(number, line)| {
                let parsed = serde_json::from_str(line);
                parsed.map_err(|error| self.wrong(number, error.to_string()))
            })
            .collect()
    }

    /// `query-id`, `corpus-id` and `score`, under a heading. A score of 0 says that the document does not answer.
    fn judgements(&self) -> Result<HashMap<String, Gold>, BenchError> {
        let mut judgements: HashMap<String, Gold> = HashMap::new();
        for (number, line) in self.lines().skip(1) {
            let mut cells = line.split('\t');
            let (Some(query), Some(document), Some(score), None) =
                (cells.next(), cells.next(), cells.next(), cells.next())
            else {
                let what = "three columns are expected, separated by tabs";
                return Err(self.wrong(number, what.to_owned()));
            };
            let score: u32 = score.trim().parse().map_err(|_| {
                self.wrong(number, format!("the score {score:?} is no whole number"))
            })?;
            if score > 0 {
                let gold = judgements.entry(query.to_owned()).or_default();
                gold.insert(document.to_owned(), score);
            }
        }
        Ok(judgements)
    }

    fn wrong(&self, line: usize, what: String) -> BenchError {
        BenchError::Collection {
            path: self.path.clone(),
            line,
            what,
        }
    }
}

#[cfg(test)]
mod tests {
    use demo::Life;
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_no_collection_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        let refused = || Collection::read(folder.path()).unwrap_err().to_string();
        assert!(refused().contains("queries.jsonl"), "{}", refused());
        write(QUERIES, "{\"_id\":\"1\",\"text\":\"why\"}\n\n{\"_id\":2}\n").unwrap();
        assert!(refused().contains("queries.jsonl, line 3"), "{}", refused());
        write(QUERIES, "{\"_id\":\"1\",\"text\":\"why\"}\n").unwrap();
        write(
            JUDGEMENTS,
            "query-id\tcorpus-id\tscore\n1\ta\t0\n1\tb\tyes\n",
        )
        .unwrap();
        assert!(refused().contains("qrels.tsv, line 3"), "{}", refused());
        write(JUDGEMENTS, "query-id\tcorpus-id\tscore\n1\ta\t0\n1\tb\t2\n").unwrap();
        let read = Collection::read(folder.path()).unwrap();
        assert!(read.documents.is_none());
        assert_eq!(read.judgements["1"], Gold::from([("b".to_owned(), 2)]));
    }

    /// The text of every record of the sample life, by the id that judgements use.
    fn sample_records() -> HashMap<String, String> {
        let life = Life::generate().unwrap();
        let mut records = HashMap::new();
        for source in life.all() {
            for line in source.lines.lines() {
                let envelope: Value = serde_json::from_str(line).unwrap();
                let stream = envelope["stream"].as_str().unwrap();
                // A compound key is written as the array it is.
                let key = match &envelope["key"] {
                    Value::String(key) => key.clone(),
                    compound => compound.to_string(),
                };
                let id = format!("{}/{stream}:{key}", source.connection);
                records.insert(id, envelope["data"].to_string());
            }
        }
        records
    }

    #[test]
    fn every_question_is_answered_by_its_records_and_not_by_its_own_words() {
        let sample = Collection::sample_life().unwrap();
        let judged = sample.judged();
        assert_eq!((judged.len(), sample.queries.len()), (60, 60));
        for (language, least) in [("en", 20), ("de", 10), ("es", 10), ("ja", 10)] {
            let asked = sample.queries.iter();
            let asked = asked.filter(|query| query.metadata.language == language);
            assert!(asked.count() >= least, "{language}");
        }
        let records = sample_records();
        for (query, gold) in judged {
            let answer = query.metadata.answer.as_str();
            assert!(!answer.is_empty(), "{}", query.text);
            assert!(!query.text.contains(answer), "{}", query.text);
            for id in gold.keys() {
                // Texts in JSON have their line ends escaped, and answers have none.
                let said = records.get(id);
                assert!(
                    said.is_some_and(|said| said.contains(answer)),
                    "{}: {id} says {said:?}",
                    query.text
                );
            }
        }
    }
}
