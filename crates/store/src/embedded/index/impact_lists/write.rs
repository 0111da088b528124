//! The lists as they are written, after the engine has written a segment.

use std::any::Any;
use std::io::Write;
use std::sync::Arc;

use tantivy::directory::TerminatingWrite;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::Bm25Weight;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Segment, SegmentReader};

use super::{COMMON, ENTRY_BYTES, EXTENSION, Occurrence, component, limit};

/// How many documents are noted at most, up to the end of each tier: a search reads no more tiers than it needs.
const TIERS: [u32; 4] = [32, 128, 512, 2048];
/// No more than one document in so many is noted of a field in which a word is common.
const SHARE: u32 = 8;
/// How many levels of scores are distinguished when the best are chosen.
const LEVELS: usize = 4096;

/// Makes the engine write the lists.
pub(in crate::embedded::index) struct ImpactListsPlugin;

/// Nothing is gathered while documents arrive.
struct AfterTheFact;

impl SegmentPlugin for ImpactListsPlugin {
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

/// Reads back the words of a segment that was just written, and writes their impact lists.
fn write_lists(segment: &Segment) -> tantivy::Result<()> {
    let mut file = segment.open_write(component())?;
    let lists = Lists::build(&SegmentReader::open(segment)?)?;
    let count = lists.entries.len() as u64;
    file.write_all(&count.to_le_bytes())?;
    for number in lists.entries.as_flattened() {
        file.write_all(&number.to_le_bytes())?;
    }
    file.write_all(&lists.data)?;
    file.terminate()?;
    Ok(())
}

/// The lists of a segment.
#[derive(Default)]
struct Lists {
    /// Field, entry of the word's own list, beginning and end of the data: in order.
    entries: Vec<[u64; ENTRY_BYTES / 8]>,
    data: Vec<u8>,
}

impl Lists {
    fn build(reader: &SegmentReader) -> tantivy::Result<Self> {
        let mut lists = Self::default();
        let mut fields = Vec::new();
        for (field, entry) in reader.schema().fields() {
            let kept = entry.field_type().get_index_record_option();
            if kept.is_some_and(IndexRecordOption::has_positions) {
                fields.extend(WordField::open(reader, field)?);
            }
        }
        for (at, field) in fields.iter().enumerate() {
            let mut words = field.index.terms().stream()?;
            while words.advance() {
                if words.value().doc_freq < COMMON {
                    continue;
                }
                let occurring = occurring(&fields, words.key())?;
                let is_common = |one: &&(usize, WordIn<'_>)| one.1.info.doc_freq >= COMMON;
                // A word that is common in several fields is taken when it comes in the first of them.
                if occurring
                    .iter()
                    .find(is_common)
                    .is_some_and(|one| one.0 == at)
                {
                    let words: Vec<_> = occurring.into_iter().map(|one| one.1).collect();
                    lists.add(&words)?;
                }
            }
        }
        lists.entries.sort_unstable();
        Ok(lists)
    }

    /// Adds the lists of one word in all fields in which it occurs.
    fn add(&mut self, words: &[WordIn<'_>]) -> tantivy::Result<()> {
        for (at, word) in words.iter().enumerate() {
            let begin = self.data.len() as u64;
            let others = words.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<_> = others.map(|(_, other)| other).collect();
            for tier in word.tiers()? {
                tier.write(&others, &mut self.data)?;
            }
            let own = word.info.postings_range.start as u64;
            let field = u64::from(word.field.number);
            self.entries
                .push([field, own, begin, self.data.len() as u64]);
        }
        Ok(())
    }
}

/// The fields in which a word occurs, with their entries.
fn occurring<'f>(
    fields: &'f [WordField],
    word: &[u8],
) -> tantivy::Result<Vec<(usize, WordIn<'f>)>> {
    let mut found = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let info = field.index.terms().get(word)?;
        found.extend(info.map(|info| (at, WordIn { field, info })));
    }
    Ok(found)
}

/// A field whose words are noted.
struct WordField {
    number: u32,
    index: Arc<InvertedIndexReader>,
    lengths: FieldNormReader,
    /// Scores for choosing; statistics of the whole index are not known yet.
    weight: Bm25Weight,
}

impl WordField {
    fn open(reader: &SegmentReader, field: Field) -> tantivy::Result<Option<Self>> {
        let Some(lengths) = reader.fieldnorms_readers().get_field(field)? else {
            return Ok(None);
        };
        // The reader itself does not know yet how many there are.
        let documents = lengths.num_docs();
        if documents < COMMON {
            return Ok(None);
        }
        let index = reader.inverted_index(field)?;
        #[expect(clippy::cast_precision_loss, reason = "an average for choosing")]
        let average = index.total_num_tokens() as f32 / documents as f32;
        Ok(Some(Self {
            number: field.field_id(),
            index,
            lengths,
            weight: Bm25Weight::for_one_term_without_explain(1, u64::from(documents), average),
        }))
    }

    fn level(&self, length: u8, times: u32) -> usize {
        let share = self.weight.score(length, times) / limit(&self.weight);
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

/// A word in one field.
struct WordIn<'f> {
    field: &'f WordField,
    info: TermInfo,
}

impl WordIn<'_> {
    fn list(&self) -> tantivy::Result<BlockSegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        let index = &self.field.index;
        Ok(index.read_block_postings_from_terminfo(&self.info, option)?)
    }

    fn each(&self, take: &mut dyn FnMut(DocId, u8, u32)) -> tantivy::Result<()> {
        let mut list = self.list()?;
        while !list.docs().is_empty() {
            for (document, times) in list.docs().iter().zip(list.freqs()) {
                let length = self.field.lengths.fieldnorm_id(*document);
                take(*document, length, *times);
            }
            list.advance();
        }
        Ok(())
    }

    /// The documents in which the word stands out, the best first.
    #[expect(clippy::indexing_slicing, reason = "there is a count for every length")]
    fn tiers(&self) -> tantivy::Result<Vec<Tier>> {
        let mut tiers = self.empty_tiers()?;
        let mut others = [0; 256];
        self.each(&mut |document, length, times| {
            let level = self.field.level(length, times);
            let most = match tiers.iter_mut().find(|tier| level >= tier.least) {
                Some(tier) => tier.note(document, length, times),
                None => &mut others[usize::from(length)],
            };
            *most = times.max(*most);
        })?;
        // A tier is stored with what is left after it, which is everything that comes later.
        for tier in tiers.iter_mut().rev() {
            for (here, later) in tier.most.iter_mut().zip(&mut others) {
                let most = *here.max(later);
                *here = std::mem::replace(later, most);
            }
        }
        Ok(tiers)
    }

    #[expect(clippy::indexing_slicing, reason = "there is a count for every level")]
    fn empty_tiers(&self) -> tantivy::Result<Vec<Tier>> {
        // Common in another field only: all its documents are noted.
        if self.info.doc_freq < COMMON {
            return Ok(vec![Tier::down_to(0)]);
        }
        let mut counts = vec![0; LEVELS + 1];
        self.each(&mut |_, length, times| counts[self.field.level(length, times)] += 1)?;
        let mut tiers: Vec<Tier> = Vec::with_capacity(TIERS.len());
        for most in TIERS {
            let least = least_level(&counts, most.min(self.info.doc_freq / SHARE));
            if tiers.last().is_none_or(|tier| least < tier.least) {
                tiers.push(Tier::down_to(least));
            }
        }
        Ok(tiers)
    }
}

/// The lowest level down to which no more than `most` documents are noted. Levels are taken whole: whatever is left out
/// then scores strictly less than whatever was noted.
fn least_level(counts: &[u32], most: u32) -> usize {
    let mut noted = 0;
    let level = counts.iter().rposition(|count| {
        noted += count;
        noted > most
    });
    level.map_or(0, |level| level + 1)
}

/// A tier while it is gathered.
pub(super) struct Tier {
    least: usize,
    /// Documents with length and occurrences, in ascending order.
    noted: Vec<(DocId, u8, u32)>,
    /// The most occurrences for each length of the field.
    pub(super) most: [u32; 256],
}

impl Tier {
    pub(super) fn down_to(least: usize) -> Self {
        Self {
            least,
            noted: Vec::new(),
            most: [0; 256],
        }
    }

    #[expect(clippy::indexing_slicing, reason = "there is a count for every length")]
    pub(super) fn note(&mut self, document: DocId, length: u8, times: u32) -> &mut u32 {
        self.noted.push((document, length, times));
        &mut self.most[usize::from(length)]
    }

    /// Writes the tier with what the word does in the other fields of its documents.
    fn write(&self, others: &[&WordIn<'_>], data: &mut Vec<u8>) -> tantivy::Result<()> {
        let mut lists = Vec::with_capacity(others.len());
        for other in others {
            lists.push((other.field, other.list()?));
        }
        self.write_with(data, &mut |document, elsewhere| {
            for (field, list) in &mut lists {
                let at = list.seek(document);
                if list.doc(at) == document {
                    elsewhere.push(Occurrence {
                        field: field.number,
                        times: list.freq(at),
                        length: field.lengths.fieldnorm_id(document),
                    });
                }
            }
        });
        Ok(())
    }

    pub(super) fn write_with(
        &self,
        data: &mut Vec<u8>,
        look_elsewhere: &mut dyn FnMut(DocId, &mut Vec<Occurrence>),
    ) {
        push_staircase(data, &self.most);
        push_number(data, count(self.noted.len()));
        let mut next = 0;
        let mut elsewhere = Vec::new();
        for (document, length, times) in &self.noted {
            push_number(data, document - next);
            push_number(data, *times);
            data.push(*length);
            elsewhere.clear();
            look_elsewhere(*document, &mut elsewhere);
            push_number(data, count(elsewhere.len()));
            for one in &elsewhere {
                push_number(data, one.field);
                push_number(data, one.times);
                data.push(one.length);
            }
            next = document + 1;
        }
    }
}

/// Of two lengths with equally many occurrences, the shorter one scores higher, so the longer one is left out.
fn push_staircase(data: &mut Vec<u8>, most: &[u32; 256]) {
    let mut highest = 0;
    let mut steps = Vec::new();
    for (length, times) in (0_u8..=255).zip(most) {
        if *times > highest {
            highest = *times;
            steps.push((length, *times));
        }
    }
    push_number(data, count(steps.len()));
    for (length, times) in steps {
        data.push(length);
        push_number(data, times);
    }
}

/// Seven bits per byte, the low ones first; the last byte has no high bit.
pub(super) fn push_number(data: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        data.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    data.push(number.to_le_bytes()[0]);
}

/// A count that cannot exceed the documents of a segment.
fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
