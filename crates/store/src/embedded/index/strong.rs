//! Where a common word stands out: per segment, the documents in which it scores highest in a field.
//!
//! Documents lie in the order of their arrival, so the best occurrences of a common word are spread over its whole
//! list, and no part of the list can be skipped. When the engine writes a segment, by flush or by merge, the best
//! occurrences of every common word are therefore noted in a file beside its own, with what is left: for each length of
//! the field, the most occurrences in any document that was not noted. From that the highest score outside the notes
//! follows exactly, whatever the statistics are by the time of a search.
//!
//! The file holds no words. A list is found by the field and by where the engine keeps the word's own list.

use std::any::Any;
use std::io::Write;

use tantivy::directory::{OwnedBytes, TerminatingWrite};
use tantivy::error::DataCorruption;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentComponent};
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::Bm25Weight;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Segment, SegmentReader, TantivyError};

/// How the file's name ends.
const EXTENSION: &str = "strong";
/// Words in fewer documents of a segment get no list: their own is short enough to be read whole.
pub(crate) const COMMON: u32 = 4096;
/// One occurrence in so many is noted, ...
const SHARE: u32 = 32;
/// ... and never more than this.
const MOST: u32 = 2048;
/// How finely scores are told apart when the best are chosen.
const LEVELS: usize = 4096;

/// Makes the engine write the lists.
pub(super) struct StrongPlugin;

/// Nothing is gathered while documents arrive.
struct AfterTheFact;

impl SegmentPlugin for StrongPlugin {
    fn extensions(&self) -> &[&str] {
        &[EXTENSION]
    }

    fn create_writer(
        &self,
        _context: &PluginWriterContext<'_>,
    ) -> tantivy::Result<Box<dyn PluginWriter>> {
        Ok(Box::new(AfterTheFact))
    }

    fn merge(&self, context: PluginMergeContext<'_>) -> tantivy::Result<()> {
        write_lists(context.target_segment)
    }
}

impl PluginWriter for AfterTheFact {
    fn serialize(
        self: Box<Self>,
        segment: &Segment,
        _moved: Option<&tantivy::indexer::doc_id_mapping::DocIdMapping>,
    ) -> tantivy::Result<()> {
        write_lists(segment)
    }

    fn mem_usage(&self) -> usize {
        0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Reads back the words of a segment that was just written, and notes where they stand out.
fn write_lists(segment: &Segment) -> tantivy::Result<()> {
    let mut file = segment.open_write(component())?;
    let reader = SegmentReader::open(segment)?;
    let mut lists = Lists::default();
    for (field, entry) in segment.schema().fields() {
        let kept = entry.field_type().get_index_record_option();
        if kept.is_some_and(IndexRecordOption::has_positions) {
            lists.add_field(&reader, field)?;
        }
    }
    let count = u64::try_from(lists.places.len() / PLACE).unwrap_or(0);
    file.write_all(&count.to_le_bytes())?;
    file.write_all(&lists.places)?;
    file.write_all(&lists.data)?;
    file.terminate()?;
    Ok(())
}

fn component() -> SegmentComponent {
    SegmentComponent::Custom(EXTENSION.to_owned())
}

/// The lists of a segment as they are written.
#[derive(Default)]
struct Lists {
    /// Field, place of the word's own list, beginning and end of the data: in order, [`PLACE`] bytes each.
    places: Vec<u8>,
    data: Vec<u8>,
}

/// Bytes of one entry of the directory.
const PLACE: usize = 32;

impl Lists {
    fn add_field(&mut self, reader: &SegmentReader, field: Field) -> tantivy::Result<()> {
        let Some(lengths) = reader.fieldnorms_readers().get_field(field)? else {
            return Ok(());
        };
        let documents = lengths.num_docs();
        if documents < COMMON {
            return Ok(());
        }
        let index = reader.inverted_index(field)?;
        #[expect(clippy::cast_precision_loss, reason = "an average for choosing")]
        let average = index.total_num_tokens() as f32 / documents as f32;
        let mut choice = Choice {
            lengths,
            weight: Bm25Weight::for_one_term_without_explain(1, u64::from(documents), average),
            counts: vec![0; LEVELS + 1],
        };
        let mut words = index.terms().stream()?;
        while words.advance() {
            let info = words.value();
            if info.doc_freq >= COMMON {
                let begin = self.data.len();
                choice.write(&index, info, &mut self.data)?;
                let own = info.postings_range.start;
                let place = [field.field_id() as usize, own, begin, self.data.len()];
                for number in place {
                    self.places.extend((number as u64).to_le_bytes());
                }
            }
        }
        Ok(())
    }
}

/// Chooses the best occurrences of the words of one field.
struct Choice {
    lengths: FieldNormReader,
    weight: Bm25Weight,
    /// How many documents there are on each level.
    counts: Vec<u32>,
}

impl Choice {
    fn write(
        &mut self,
        index: &InvertedIndexReader,
        info: &TermInfo,
        data: &mut Vec<u8>,
    ) -> tantivy::Result<()> {
        let list = || index.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs);
        let least = self.least_level(list()?, (info.doc_freq / SHARE).min(MOST));
        let mut left = [0_u32; 256];
        let mut noted = Vec::new();
        let mut previous = 0;
        each(list()?, &mut |document, occurrences| {
            let length = self.lengths.fieldnorm_id(document);
            if self.level(length, occurrences) >= least {
                push_number(&mut noted, document - previous);
                push_number(&mut noted, occurrences);
                previous = document;
            } else {
                let most = &mut left[usize::from(length)];
                *most = occurrences.max(*most);
            }
        });
        // Of two lengths with as many occurrences, the shorter one scores higher: the longer one says nothing more.
        let mut most = 0;
        let mut steps = 0;
        let mut staircase = Vec::new();
        for (length, occurrences) in (0_u8..=255).zip(left) {
            if occurrences > most {
                most = occurrences;
                steps += 1;
                staircase.push(length);
                push_number(&mut staircase, occurrences);
            }
        }
        push_number(data, steps);
        data.extend(staircase);
        data.extend(noted);
        Ok(())
    }

    /// The lowest level of which everything is noted. Levels are taken whole: what was left then scores less than what
    /// was noted, and not the same.
    fn least_level(&mut self, list: BlockSegmentPostings, most: u32) -> usize {
        self.counts.fill(0);
        each(list, &mut |document, occurrences| {
            let level = self.level(self.lengths.fieldnorm_id(document), occurrences);
            self.counts[level] += 1;
        });
        let mut noted = 0;
        let level = self.counts.iter().rposition(|count| {
            noted += count;
            noted > most
        });
        level.map_or(0, |level| level + 1)
    }

    fn level(&self, length: u8, occurrences: u32) -> usize {
        let share = self.weight.score(length, occurrences) / self.weight.max_score();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a score is a positive share of the highest possible one"
        )]
        let level = (share * LEVELS as f32) as usize;
        level.min(LEVELS)
    }
}

/// Hands over the entries of a word's list.
pub(crate) fn each(mut list: BlockSegmentPostings, take: &mut dyn FnMut(DocId, u32)) {
    while !list.docs().is_empty() {
        for (document, occurrences) in list.docs().iter().zip(list.freqs()) {
            take(*document, *occurrences);
        }
        list.advance();
    }
}

/// Seven bits per byte, the low ones first; the last byte has no high bit.
fn push_number(data: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        data.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    data.push(number.to_le_bytes()[0]);
}

fn number(data: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The lists of a segment.
pub(crate) struct StrongLists {
    bytes: OwnedBytes,
    documents: DocId,
}

/// Where one word stands out in one field.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StrongList {
    /// Documents in ascending order with the word's occurrences there.
    pub(crate) noted: Vec<(DocId, u32)>,
    /// Lengths of the field with the most occurrences in any other document, without those that cannot score highest.
    pub(crate) left: Vec<(u8, u32)>,
}

impl StrongLists {
    pub(crate) fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let lists = Self {
            bytes: reader.open_read(component())?.read_bytes()?,
            documents: reader.max_doc(),
        };
        match lists.places() {
            Some(_) => Ok(lists),
            None => Err(damaged()),
        }
    }

    /// The list of a word, if it is common in the segment.
    pub(crate) fn find(
        &self,
        field: Field,
        info: &TermInfo,
    ) -> tantivy::Result<Option<StrongList>> {
        if info.doc_freq < COMMON {
            return Ok(None);
        }
        let sought = (
            u64::from(field.field_id()),
            info.postings_range.start as u64,
        );
        let list = self.places().and_then(|(places, data)| {
            let at = places.binary_search_by_key(&sought, |place| (word(place, 0), word(place, 1)));
            let place = &places[at.ok()?];
            let [begin, end] = [word(place, 2), word(place, 3)].map(usize::try_from);
            self.decode(data.get(begin.ok()?..end.ok()?)?)
        });
        list.map(Some).ok_or_else(damaged)
    }

    /// The directory and the data.
    fn places(&self) -> Option<(&[[u8; PLACE]], &[u8])> {
        let (count, rest) = self.bytes.split_at_checked(8)?;
        let count = usize::try_from(word(count, 0)).ok()?;
        let (places, data) = rest.split_at_checked(count.checked_mul(PLACE)?)?;
        Some((places.as_chunks().0, data))
    }

    fn decode(&self, mut data: &[u8]) -> Option<StrongList> {
        let mut list = StrongList::default();
        for _ in 0..number(&mut data)? {
            let (length, rest) = data.split_first()?;
            data = rest;
            list.left.push((*length, number(&mut data)?));
        }
        let mut previous = 0;
        while !data.is_empty() {
            let gap = number(&mut data)?;
            let document = gap.checked_add(previous)?;
            // The engine's lists are walked along with this one, and they go only forward.
            if document >= self.documents || (gap == 0 && !list.noted.is_empty()) {
                return None;
            }
            list.noted.push((document, number(&mut data)?));
            previous = document;
        }
        Some(list)
    }
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
