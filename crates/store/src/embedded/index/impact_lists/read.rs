//! The lists as a search reads them.

use tantivy::directory::OwnedBytes;
use tantivy::error::DataCorruption;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{DocId, SegmentReader, TantivyError};

use super::{COMMON, ENTRY_BYTES, Occurrence, component};

/// The lists of a segment.
pub(crate) struct ImpactLists {
    bytes: OwnedBytes,
    documents: DocId,
}

/// Where one word stands out in one field: tiers of documents, the best first.
#[derive(Clone, Copy)]
pub(crate) struct ImpactList<'a> {
    pub(super) data: &'a [u8],
    pub(super) field: u32,
    /// How many documents the segment has.
    pub(super) documents: DocId,
}

/// Lengths of the field with the most occurrences in any document of no tier so far, without those that cannot score
/// highest.
pub(crate) type Left = Vec<(u8, u32)>;

/// Receives a document of a tier with the occurrences of the word in all its fields.
pub(crate) type Take<'t> = &'t mut dyn FnMut(DocId, &[Occurrence]);

impl ImpactLists {
    pub(crate) fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let lists = Self {
            bytes: reader.open_read(component())?.read_bytes()?,
            documents: reader.max_doc(),
        };
        match lists.entries() {
            Some(_) => Ok(lists),
            None => Err(damaged()),
        }
    }

    /// The list of a word in a field. There is one when the word is common in any field of the segment.
    pub(crate) fn find(
        &self,
        field: Field,
        info: &TermInfo,
    ) -> tantivy::Result<Option<ImpactList<'_>>> {
        let field = field.field_id();
        match self.list(field, info.postings_range.start as u64) {
            None if info.doc_freq >= COMMON => Err(damaged()),
            data => Ok(data.map(|data| ImpactList {
                data,
                field,
                documents: self.documents,
            })),
        }
    }

    fn list(&self, field: u32, own: u64) -> Option<&[u8]> {
        let sought = (u64::from(field), own);
        let (entries, data) = self.entries()?;
        let at = entries.binary_search_by_key(&sought, |entry| (word(entry, 0), word(entry, 1)));
        let entry = entries.get(at.ok()?)?;
        let [begin, end] = [word(entry, 2), word(entry, 3)].map(usize::try_from);
        data.get(begin.ok()?..end.ok()?)
    }

    /// The directory and the data.
    fn entries(&self) -> Option<(&[[u8; ENTRY_BYTES]], &[u8])> {
        let (count, rest) = self.bytes.split_at_checked(8)?;
        let count = usize::try_from(word(count, 0)).ok()?;
        let (entries, data) = rest.split_at_checked(count.checked_mul(ENTRY_BYTES)?)?;
        Some((entries.as_chunks().0, data))
    }
}

impl ImpactList<'_> {
    /// Whether there are no more tiers.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Hands over the documents of the next tier in ascending order, and returns what is left after it. `None` when there
    /// are no more tiers.
    pub(crate) fn next_tier(&mut self, take: Take<'_>) -> tantivy::Result<Option<Left>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.decode(take).map(Some).ok_or_else(damaged)
    }

    fn decode(&mut self, take: Take<'_>) -> Option<Left> {
        let mut left = Left::new();
        for _ in 0..number(&mut self.data)? {
            let length = byte(&mut self.data)?;
            left.push((length, number(&mut self.data)?));
        }
        let mut next = 0;
        let mut occurrences = Vec::new();
        for _ in 0..number(&mut self.data)? {
            let document = number(&mut self.data)?.checked_add(next)?;
            if document >= self.documents {
                return None;
            }
            occurrences.clear();
            occurrences.push(self.occurrence(self.field)?);
            for _ in 0..number(&mut self.data)? {
                let field = number(&mut self.data)?;
                occurrences.push(self.occurrence(field)?);
            }
            take(document, &occurrences);
            next = document + 1;
        }
        Some(left)
    }

    fn occurrence(&mut self, field: u32) -> Option<Occurrence> {
        Some(Occurrence {
            field,
            times: number(&mut self.data)?,
            length: byte(&mut self.data)?,
        })
    }
}

fn byte(data: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = data.split_first()?;
    *data = rest;
    Some(*byte)
}

/// Seven bits per byte, the low ones first; the last byte has no high bit. Only the shortest encoding is accepted.
pub(super) fn number(data: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let byte = byte(data)?;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn damaged() -> TantivyError {
    TantivyError::DataCorruption(DataCorruption::comment_only(
        "the lists of strong occurrences are not readable as written",
    ))
}
