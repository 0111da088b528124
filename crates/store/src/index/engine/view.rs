//! One state of the index, as readers see it.
//!
//! The columns every search needs are opened once per state: opening one costs more than reading it for ten hits.

use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use tantivy::columnar::Column;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED, Term};

use super::schema::{ROW, STREAM};
use crate::index::document_set::SegmentAdmitted;
use crate::index::finding::{
    Families, SegmentFigures, SegmentRanges, SegmentShortLists, SegmentThreads,
};

pub(crate) struct View {
    pub(crate) searcher: Searcher,
    /// Names the state: scores and document numbers are comparable within it.
    pub(crate) generation: u64,
    segments: Vec<Columns>,
    /// The words that were asked for.
    pub(in crate::index) families: Families,
}

/// What is read beside the words of one segment.
pub(crate) struct Columns {
    pub(crate) rows: Column<u64>,
    pub(crate) streams: Column<u64>,
    /// Figures for searches, kept as long as the segment and its deletions stay the same.
    pub(in crate::index) figures: Arc<SegmentFigures>,
    /// The best scores of ranges of documents, kept as long as the segment.
    pub(in crate::index) ranges: Arc<SegmentRanges>,
    /// What short lists score, kept as long as the segment.
    pub(in crate::index) short: Arc<SegmentShortLists>,
    /// What passes rules, kept as long as the segment.
    pub(in crate::index) admitted: Arc<SegmentAdmitted>,
    /// Conversations, kept as long as the segment.
    pub(in crate::index) threads: Arc<SegmentThreads>,
}

#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) ordinal: u32,
    pub(crate) reader: &'a SegmentReader,
    pub(crate) columns: &'a Columns,
}

impl View {
    /// The state that a searcher sees. What is known of segments that `before` had already is taken over.
    pub(crate) fn new(searcher: Searcher, before: Option<&Self>) -> tantivy::Result<Self> {
        let mut segments = Vec::with_capacity(searcher.segment_readers().len());
        for reader in searcher.segment_readers() {
            let columns = reader.fast_fields();
            let mut known = before.into_iter().flat_map(View::segments);
            let known = known.find(|one| one.reader.segment_id() == reader.segment_id());
            let unchanged =
                known.filter(|one| one.reader.delete_opstamp() == reader.delete_opstamp());
            segments.push(Columns {
                rows: columns.u64(ROW)?,
                streams: columns.u64(STREAM)?,
                figures: unchanged
                    .map_or_else(Arc::default, |one| Arc::clone(&one.columns.figures)),
                ranges: known.map_or_else(Arc::default, |one| Arc::clone(&one.columns.ranges)),
                short: known.map_or_else(Arc::default, |one| Arc::clone(&one.columns.short)),
                admitted: known.map_or_else(Arc::default, |one| Arc::clone(&one.columns.admitted)),
                threads: known.map_or_else(Arc::default, |one| Arc::clone(&one.columns.threads)),
            });
        }
        let mut hasher = SipHasher13::new();
        for (segment, deletes) in searcher.generation().segments() {
            hasher.write(segment.uuid_string().as_bytes());
            hasher.write_u64(deletes.unwrap_or_default());
        }
        Ok(Self {
            searcher,
            generation: hasher.finish(),
            segments,
            families: Families::default(),
        })
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let readers = self.searcher.segment_readers().iter();
        let parts = readers.zip(&self.segments);
        (0_u32..)
            .zip(parts)
            .map(|(ordinal, (reader, columns))| Segment {
                ordinal,
                reader,
                columns,
            })
    }

    /// The document of a record row.
    pub(crate) fn address_of(&self, field: Field, row: u64) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_u64(field, row);
        for segment in self.segments() {
            let index = segment.reader.inverted_index(field)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !segment.reader.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(segment.ordinal, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// The record row of a document.
    pub(crate) fn row_of(&self, address: DocAddress) -> Option<u64> {
        let columns = self.segments.get(address.segment_ord as usize)?;
        columns.rows.first(address.doc_id)
    }
}
