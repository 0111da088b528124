//! Searching by meaning: which model there is, how far its vectors are, and the search itself.

use std::collections::HashMap;
use std::path::Path;

use contract::id::FieldName;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::catalog::StreamRef;
use crate::search::{SearchAnswer, SearchRequest};

/// The model of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// What to call it: the name of the folder it came from.
    pub name: String,
    /// How long its vectors are.
    pub dimensions: usize,
    /// Names its files.
    pub fingerprint: String,
}

/// How far the vectors are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeaningStatus {
    /// The model they are made with.
    pub model: ModelInfo,
    /// Records that have their vectors, or have no text.
    pub embedded: u64,
    /// All records.
    pub records: u64,
    /// The vectors there are.
    pub vectors: u64,
}

/// What is asked beside the words of a [`SearchRequest`].
#[derive(Debug, Clone)]
pub struct MeaningQuestion {
    /// The question as it was written.
    pub text: String,
    /// Whether words count as well.
    pub with_words: bool,
    /// The fields of each stream whose meaning may be looked at.
    pub fields: HashMap<StreamRef, Vec<FieldName>>,
}

/// The part of a field that comes nearest to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestWindow {
    /// The field.
    pub field: FieldName,
    /// The first character.
    pub start_chars: u64,
    /// The first character after it.
    pub end_chars: u64,
}

/// The port for models and their vectors.
pub trait Meaning {
    /// The model, if there is one. Takes no time.
    fn model(&self) -> Option<ModelInfo>;
    /// Copies a model into the store and uses it from now on; vectors of another one are dropped.
    fn add_model(&self, folder: &Path) -> Result<ModelInfo>;
    /// Drops the model and its vectors. Returns which it was.
    fn remove_model(&self) -> Result<Option<ModelInfo>>;
    /// How far the vectors are; `None` without a model.
    fn meaning_status(&self) -> Result<Option<MeaningStatus>>;
    /// Makes vectors of some records that have none yet, newly written ones included. Returns whether there are more. To be
    /// called repeatedly by one background thread, whose priority it lowers; what was made is kept when it is stopped.
    fn embed_some(&self) -> Result<bool>;
    /// Ranks records by what they mean, or by that and words. Sees every acknowledged write; records whose vectors are not
    /// made yet are found by words alone, and their streams are named. Fails with [`crate::StoreError::NoModel`] without one.
    fn search_by_meaning(
        &self,
        request: &SearchRequest,
        question: &MeaningQuestion,
    ) -> Result<SearchAnswer>;
}
