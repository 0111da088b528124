//! How texts are compared by meaning: a sentence model turns each into a vector of unit length, and texts that mean alike
//! have vectors that point alike.
//!
//! A model is a folder in the layout of sentence-transformers, named by the owner and read from the disk; nothing is ever
//! fetched. [`Model`] runs it in this process. Useful for models of the BERT family of some hundred megabytes on a
//! processor; not useful for larger ones, which need other hardware.

#![warn(clippy::indexing_slicing)]

mod bert;
mod folder;
mod model;

pub use folder::ModelError;
pub use model::{MAX_QUESTION_CHARS, MAX_TEXT_CHARS, MAX_WINDOWS, Model};

/// A part of a text that gets a vector of its own, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Numbers of the model's vocabulary, with those that frame a text.
    pub tokens: Vec<u32>,
    /// The first character, counted in Unicode scalar values.
    pub start_chars: usize,
    /// The first character after it.
    pub end_chars: usize,
}

/// Whatever turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Names the model: vectors of models with different fingerprints cannot be compared.
    fn fingerprint(&self) -> &str;
    /// How long a vector is.
    fn dimensions(&self) -> usize;
    /// Cuts a text into windows, at most [`MAX_WINDOWS`]; what is beyond them has no vector.
    fn windows(&self, text: &str) -> Result<Vec<Window>, ModelError>;
    /// The vectors of windows, of unit length.
    fn embed(&self, windows: &[Window]) -> Result<Vec<Vec<f32>>, ModelError>;
    /// The vector of a question, of which at most one window counts; `None` if it has no word.
    fn embed_question(&self, question: &str) -> Result<Option<Vec<f32>>, ModelError>;
}
