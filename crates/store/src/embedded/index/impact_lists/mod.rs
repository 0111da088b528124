//! Where a common word stands out: per segment, the documents in which it scores highest in a field.
//!
//! Documents lie in the order of their arrival, so the best occurrences of a common word are spread over its whole
//! list, and no part of the list can be skipped. When the engine writes a segment, by flush or by merge, the best
//! occurrences of every common word are therefore noted in a file beside its own, with what is left: for each length of
//! the field, the most occurrences in any document that was not noted. From that the highest score outside the notes
//! follows exactly, whatever the statistics are by the time of a search.
//!
//! A note tells how often the word occurs in every field of the document, so that a search over any of them scores it
//! without looking into the lists.
//!
//! The file holds no words. A list is found by the field and by where the engine keeps the word's own list.

mod read;
mod write;

use tantivy::index::SegmentComponent;
use tantivy::query::Bm25Weight;

pub(crate) use read::{ImpactList, ImpactLists};
pub(super) use write::ImpactListsPlugin;

/// How the file's name ends.
const EXTENSION: &str = "strong";
/// A word is common in a segment when a field has it in so many documents. Other lists are short enough to be read
/// whole.
const COMMON: u32 = 1024;
/// Bytes of one entry of the directory: four numbers.
const ENTRY_BYTES: usize = 32;

/// How a word occurs in one field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The number of the field.
    pub(crate) field: u32,
    /// How often.
    pub(crate) times: u32,
    /// The length of the field, as the engine notes it.
    pub(crate) length: u8,
}

fn component() -> SegmentComponent {
    SegmentComponent::Custom(EXTENSION.to_owned())
}

/// The limit of scores as occurrences grow, for any length. The engine's own highest score is lower: it assumes that a word
/// cannot occur more often than the field is long.
pub(crate) fn limit(weight: &Bm25Weight) -> f32 {
    weight.score(0, u32::MAX)
}

#[cfg(test)]
mod tests;
