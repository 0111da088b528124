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
const COMMON: u32 = 1024;
/// How many documents are noted at most, up to the end of each tier: a search reads no more tiers than it needs.
const TIERS: [u32; 3] = [128, 512, 2048];
/// No more than one document in so many is noted.
const SHARE: u32 = 8;
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
        self.counts.fill(0);
        each(list()?, &mut |document, occurs| {
            let level = self.level(self.lengths.fieldnorm_id(document), occurs);
            self.counts[level] += 1;
        });
        let mut tiers: Vec<Gathered> = Vec::with_capacity(TIERS.len());
        for most in TIERS {
            let least = self.least_level(most.min(info.doc_freq / SHARE));
            if tiers.last().is_none_or(|tier| least < tier.least) {
                tiers.push(Gathered::down_to(least));
            }
        }
        let mut others = [0; 256];
        each(list()?, &mut |document, occurs| {
            let length = self.lengths.fieldnorm_id(document);
            let level = self.level(length, occurs);
            let most = match tiers.iter_mut().find(|tier| level >= tier.least) {
                Some(tier) => tier.note(document, length, occurs),
                None => &mut others[usize::from(length)],
            };
            *most = occurs.max(*most);
        });
        // Beside a tier stands what is left after it, and that is all that comes later.
        for tier in tiers.iter_mut().rev() {
            for (here, later) in tier.most.iter_mut().zip(&mut others) {
                let most = *here.max(later);
                *here = std::mem::replace(later, most);
            }
        }
        for tier in &tiers {
            push_staircase(data, &tier.most);
            push_number(data, tier.documents);
            data.extend(&tier.noted);
        }
        Ok(())
    }

    /// The lowest level down to which no more than so many are noted. Levels are taken whole: what was left then scores
    /// less than what was noted, and not the same.
    fn least_level(&self, most: u32) -> usize {
        let mut noted = 0;
        let level = self.counts.iter().rposition(|count| {
            noted += count;
            noted > most
        });
        level.map_or(0, |level| level + 1)
    }

    fn level(&self, length: u8, occurs: u32) -> usize {
        let share = self.weight.score(length, occurs) / limit(&self.weight);
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

/// What scores approach as occurrences grow, whatever the length. The engine's own highest score is lower: it takes
/// no text for more frequent than long.
pub(crate) fn limit(weight: &Bm25Weight) -> f32 {
    weight.score(0, u32::MAX)
}

/// A tier while it is gathered.
struct Gathered {
    least: usize,
    documents: u32,
    noted: Vec<u8>,
    previous: DocId,
    /// The most occurrences for each length of the field.
    most: [u32; 256],
}

impl Gathered {
    fn down_to(least: usize) -> Self {
        Self {
            least,
            documents: 0,
            noted: Vec::new(),
            previous: 0,
            most: [0; 256],
        }
    }

    fn note(&mut self, document: DocId, length: u8, occurs: u32) -> &mut u32 {
        push_number(&mut self.noted, document - self.previous);
        push_number(&mut self.noted, occurs);
        self.noted.push(length);
        self.previous = document;
        self.documents += 1;
        &mut self.most[usize::from(length)]
    }
}

/// Of two lengths with as many occurrences, the shorter one scores higher: the longer one says nothing more.
fn push_staircase(data: &mut Vec<u8>, most: &[u32; 256]) {
    let mut highest = 0;
    let mut steps = Vec::new();
    for (length, occurs) in (0_u8..=255).zip(most) {
        if *occurs > highest {
            highest = *occurs;
            steps.push((length, *occurs));
        }
    }
    push_number(data, u32::try_from(steps.len()).unwrap_or(0));
    for (length, occurs) in steps {
        data.push(length);
        push_number(data, occurs);
    }
}

/// Hands over the entries of a word's list.
pub(crate) fn each(mut list: BlockSegmentPostings, take: &mut dyn FnMut(DocId, u32)) {
    while !list.docs().is_empty() {
        for (document, occurs) in list.docs().iter().zip(list.freqs()) {
            take(*document, *occurs);
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

fn byte(data: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = data.split_first()?;
    *data = rest;
    Some(*byte)
}

fn number(data: &mut &[u8]) -> Option<u32> {
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

/// The lists of a segment.
pub(crate) struct StrongLists {
    bytes: OwnedBytes,
    documents: DocId,
}

/// Where one word stands out in one field: tiers of documents, the best first.
#[derive(Clone, Copy)]
pub(crate) struct StrongList<'a> {
    data: &'a [u8],
    documents: DocId,
}

/// A document in which a word stands out. With the length of the field, which would cost a look elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) document: DocId,
    pub(crate) occurs: u32,
    pub(crate) length: u8,
}

/// The documents of one tier.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tier {
    /// In ascending order.
    pub(crate) noted: Vec<Noted>,
    /// Lengths of the field with the most occurrences in any document of no tier so far, without those that cannot
    /// score highest.
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
    ) -> tantivy::Result<Option<StrongList<'_>>> {
        if info.doc_freq < COMMON {
            return Ok(None);
        }
        let sought = (
            u64::from(field.field_id()),
            info.postings_range.start as u64,
        );
        let data = self.places().and_then(|(places, data)| {
            let at = places.binary_search_by_key(&sought, |place| (word(place, 0), word(place, 1)));
            let place = &places[at.ok()?];
            let [begin, end] = [word(place, 2), word(place, 3)].map(usize::try_from);
            data.get(begin.ok()?..end.ok()?)
        });
        let data = data.ok_or_else(damaged)?;
        let documents = self.documents;
        Ok(Some(StrongList { data, documents }))
    }

    /// The directory and the data.
    fn places(&self) -> Option<(&[[u8; PLACE]], &[u8])> {
        let (count, rest) = self.bytes.split_at_checked(8)?;
        let count = usize::try_from(word(count, 0)).ok()?;
        let (places, data) = rest.split_at_checked(count.checked_mul(PLACE)?)?;
        Some((places.as_chunks().0, data))
    }
}

impl StrongList<'_> {
    /// Whether there are no more tiers.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The next tier, if there is one.
    pub(crate) fn next_tier(&mut self) -> tantivy::Result<Option<Tier>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.decode().map(Some).ok_or_else(damaged)
    }

    fn decode(&mut self) -> Option<Tier> {
        let mut tier = Tier::default();
        for _ in 0..number(&mut self.data)? {
            let length = byte(&mut self.data)?;
            tier.left.push((length, number(&mut self.data)?));
        }
        let mut previous = 0;
        for _ in 0..number(&mut self.data)? {
            let gap = number(&mut self.data)?;
            let document = gap.checked_add(previous)?;
            // The engine's lists are walked along with this one, and they go only forward.
            if document >= self.documents || (gap == 0 && !tier.noted.is_empty()) {
                return None;
            }
            let occurs = number(&mut self.data)?;
            let length = byte(&mut self.data)?;
            tier.noted.push(Noted {
                document,
                occurs,
                length,
            });
            previous = document;
        }
        Some(tier)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, u32::MAX];
        let mut data = Vec::new();
        for number in numbers {
            push_number(&mut data, number);
        }
        let mut rest = data.as_slice();
        for expected in numbers {
            assert_eq!(number(&mut rest), Some(expected));
        }
        assert_eq!(number(&mut rest), None);
    }

    /// A tier with two steps and the documents 3 and 7.
    fn tier() -> Vec<u8> {
        let mut most = [0; 256];
        (most[2], most[3], most[9]) = (4, 4, 300);
        let mut tier = Gathered::down_to(1);
        *tier.note(3, 1, 5) = 5;
        *tier.note(7, 1, 6) = 6;
        let mut data = Vec::new();
        push_staircase(&mut data, &most);
        push_number(&mut data, tier.documents);
        data.extend(tier.noted);
        data
    }

    fn first_tier(data: &[u8], documents: DocId) -> tantivy::Result<Option<Tier>> {
        StrongList { data, documents }.next_tier()
    }

    #[test]
    fn a_tier_is_read_as_it_was_written() {
        let noted = |document, occurs| Noted {
            document,
            occurs,
            length: 1,
        };
        let expected = Tier {
            noted: vec![noted(3, 5), noted(7, 6)],
            left: vec![(2, 4), (9, 300)],
        };
        assert_eq!(first_tier(&tier(), 8).unwrap(), Some(expected));
        assert_eq!(first_tier(&[], 8).unwrap(), None);
    }

    #[test]
    fn a_tier_that_ends_early_or_names_no_document_is_an_error() {
        let whole = tier();
        for end in 1..whole.len() {
            assert!(first_tier(&whole[..end], 8).is_err(), "{end}");
        }
        assert!(first_tier(&whole, 7).is_err());
    }
}
