//! Questions that the sample life answers, in several languages and in other words than the records, each with the records
//! that hold the answer. `bench --answers` asks them.

use serde::Deserialize;

use crate::error::DemoError;

/// A question with its answer.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// The language it is asked in: `en`, `de`, `es` or `ja`.
    pub language: String,
    /// As a person would ask.
    pub ask: String,
    /// The part of a record's text that answers it.
    pub sentence: String,
    /// The records that hold the sentence.
    pub records: Vec<GoldRecord>,
}

/// A record that answers a question: its connection, stream and key.
#[derive(Debug, Clone, Deserialize)]
pub struct GoldRecord(pub String, pub String, pub String);

/// All questions.
pub fn questions() -> Result<Vec<Question>, DemoError> {
    serde_json::from_str(include_str!("../data/questions.json"))
        .map_err(|error| DemoError::Story(format!("the questions are not readable: {error}")))
}
