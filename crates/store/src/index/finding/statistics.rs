//! The figures that order hits: how many documents there are, how long their fields are, and how many hold a word. They count
//! admitted documents and searched fields only, and are kept for as long as a segment stays as it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::DocId;
use tantivy::fieldnorm::FieldNormReader;

use super::dictionary::{Listed, Pattern};
use super::rows::RowSet;
use super::{Gate, Searched, SearchedField};
use crate::stop;

/// For how many kinds of searches figures of a segment are kept, and of how many words each.
const KEPT_SEARCHES: usize = 16;
const KEPT_WORDS: usize = 8192;
/// After how many documents cancellation is checked.
const LOOK_EVERY: DocId = 65_536;

/// The figures of one segment, by the key of what is searched.
#[derive(Default)]
pub(in crate::index) struct SegmentFigures(Mutex<HashMap<u64, Figures>>);

/// What is known of the part of a segment that a search may see.
#[derive(Default)]
struct Figures {
    sizes: Option<Sizes>,
    /// By number of the field and what was looked for.
    words: HashMap<(u32, Pattern), Arc<[Listed]>>,
    /// How many words these are together.
    kept: usize,
    /// The rows of admitted records, where not all of a stream are.
    rows: Option<Arc<RowSet>>,
}

/// How many documents there are, and for each searched field and stream, by their numbers, how many words in how many texts.
#[derive(Clone, Default)]
struct Sizes {
    documents: u64,
    texts: BTreeMap<(usize, u64), (u64, u64)>,
}

impl Sizes {
    fn add_text(&mut self, field: usize, stream: u64, length: u32) {
        if length > 0 {
            let (words, texts) = self.texts.entry((field, stream)).or_default();
            *words += u64::from(length);
            *texts += 1;
        }
    }
}

impl SegmentFigures {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Figures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sizes(&self, key: u64) -> Option<Sizes> {
        self.lock().get(&key)?.sizes.clone()
    }

    pub(super) fn words(&self, key: u64, name: &(u32, Pattern)) -> Option<Arc<[Listed]>> {
        self.lock().get(&key)?.words.get(name).cloned()
    }

    pub(super) fn rows(&self, key: u64) -> Option<Arc<RowSet>> {
        self.lock().get(&key)?.rows.clone()
    }

    pub(super) fn keep_rows(&self, key: u64, rows: Arc<RowSet>) {
        self.keep(key, |figures| figures.rows = Some(rows));
    }

    pub(super) fn keep_words(&self, key: u64, name: (u32, Pattern), words: Arc<[Listed]>) {
        self.keep(key, |figures| {
            // That there is none is worth knowing too.
            figures.kept += words.len() + 1;
            if figures.kept > KEPT_WORDS {
                figures.words.clear();
                figures.kept = words.len() + 1;
            }
            figures.words.insert(name, words);
        });
    }

    fn keep(&self, key: u64, keep: impl FnOnce(&mut Figures)) {
        let mut kept = self.lock();
        if kept.len() >= KEPT_SEARCHES && !kept.contains_key(&key) {
            // Any one: which searches come next is not known.
            let any = kept.keys().next().copied();
            any.map(|any| kept.remove(&any));
        }
        keep(kept.entry(key).or_default());
    }
}

/// The figures of everything that is searched.
pub(in crate::index) struct Statistics<'s> {
    pub(super) searched: &'s Searched<'s>,
    /// Admitted documents.
    pub(super) documents: u64,
    /// By searched field.
    pub(super) lengths: Vec<Lengths>,
}

/// How the length of a field counts: the longer it is, the less an occurrence says. Fields of different streams are measured
/// apart: which of them share a place in the index depends on fields that may not be seen.
#[derive(Default)]
pub(super) struct Lengths {
    by_stream: BTreeMap<u64, Length>,
}

/// Lengths in one stream.
pub(super) struct Length {
    /// Of the texts that are not empty.
    pub(super) average: f32,
    /// What stands beside the number of occurrences in a score, by encoded length.
    pub(super) terms: Box<[f32; 256]>,
}

/// How soon more occurrences say nothing new, and how much lengths count.
const SATURATION: f32 = 1.2;
const LENGTH_SHARE: f32 = 0.75;

impl Lengths {
    fn add(&mut self, stream: u64, average: f32) {
        let mut terms = Box::new([0.0; 256]);
        for (code, term) in (0..=u8::MAX).zip(terms.iter_mut()) {
            #[expect(clippy::cast_precision_loss, reason = "a ratio of lengths")]
            let relative = FieldNormReader::id_to_fieldnorm(code) as f32 / average;
            *term = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * relative);
        }
        self.by_stream.insert(stream, Length { average, terms });
    }

    /// Those of the only stream, where there is one.
    pub(super) fn only(&self) -> Option<&Length> {
        let only = self.by_stream.first_key_value();
        only.filter(|_| self.by_stream.len() == 1)
            .map(|(_, one)| one)
    }

    pub(super) fn of_stream(&self, stream: u64) -> Option<&Length> {
        self.by_stream.get(&stream)
    }

    pub(super) fn by_stream(&self) -> impl Iterator<Item = (u64, &Length)> {
        self.by_stream
            .iter()
            .map(|(stream, length)| (*stream, length))
    }
}

/// What a word scores with so many occurrences, as a share of the most it can score.
pub(super) fn saturated(times: u32, length_term: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    let times = times as f32;
    times / (times + length_term)
}

/// The most that something so rare can score.
pub(super) fn most(rarity: f32) -> f32 {
    rarity * (1.0 + SATURATION)
}

impl<'s> Statistics<'s> {
    pub(in crate::index) fn new(searched: &'s Searched<'s>) -> tantivy::Result<Self> {
        let mut all = Sizes::default();
        for gate in &searched.gates {
            let figures = &gate.segment.columns.figures;
            let known = figures.sizes(searched.key);
            let sizes = if let Some(sizes) = known {
                sizes
            } else {
                let Some(sizes) = sizes(gate, &searched.fields)? else {
                    break;
                };
                figures.keep(searched.key, |kept| kept.sizes = Some(sizes.clone()));
                sizes
            };
            all.documents += sizes.documents;
            for (place, (words, texts)) in sizes.texts {
                let sum = all.texts.entry(place).or_default();
                *sum = (sum.0 + words, sum.1 + texts);
            }
        }
        let mut lengths: Vec<Lengths> = Vec::new();
        lengths.resize_with(searched.fields.len(), Lengths::default);
        for ((field, stream), (words, texts)) in all.texts {
            #[expect(clippy::cast_precision_loss, reason = "an average")]
            let average = words as f32 / texts as f32;
            if let Some(lengths) = lengths.get_mut(field) {
                lengths.add(stream, average);
            }
        }
        Ok(Self {
            searched,
            documents: all.documents,
            lengths,
        })
    }

    /// How rare something is that so many documents have.
    pub(super) fn rarity(&self, frequency: u64) -> f32 {
        let frequency = frequency.min(self.documents);
        #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
        let (without, with) = ((self.documents - frequency) as f32, frequency as f32);
        (1.0 + (without + 0.5) / (with + 0.5)).ln()
    }
}

/// Reads the lengths of all admitted documents of a segment; `None` when the search is stopped.
fn sizes(gate: &Gate<'_>, fields: &[SearchedField]) -> tantivy::Result<Option<Sizes>> {
    let reader = gate.segment.reader;
    let mut lengths = Vec::with_capacity(fields.len());
    for field in fields {
        lengths.push(reader.get_fieldnorms_reader(field.field)?);
    }
    let mut sizes = Sizes::default();
    let (streams, only) = (&gate.segment.columns.streams, gate.only_stream());
    if let (Some(only), true, false) = (only, gate.is_open, reader.has_deletes())
        && fields.iter().all(SearchedField::is_everywhere)
    {
        sizes.documents = u64::from(reader.max_doc());
        for (field, lengths) in lengths.iter().enumerate() {
            let (mut words, mut texts) = (0, 0);
            for document in 0..reader.max_doc() {
                let length = lengths.fieldnorm(document);
                words += u64::from(length);
                texts += u64::from(length > 0);
            }
            if texts > 0 {
                sizes.texts.insert((field, only), (words, texts));
            }
        }
        return Ok(Some(sizes));
    }
    for document in 0..reader.max_doc() {
        if document % LOOK_EVERY == 0 && stop::asked() {
            return Ok(None);
        }
        if !gate.admits(document) {
            continue;
        }
        sizes.documents += 1;
        let stream = only.or_else(|| streams.first(document)).unwrap_or_default();
        for (number, (field, lengths)) in fields.iter().zip(&lengths).enumerate() {
            let length = length(gate, field, lengths, document);
            sizes.add_text(number, stream, length);
        }
    }
    Ok(Some(sizes))
}

fn length(
    gate: &Gate<'_>,
    field: &SearchedField,
    lengths: &FieldNormReader,
    document: DocId,
) -> u32 {
    let length = lengths.fieldnorm(document);
    if length > 0 && gate.factor(&field.factors, document) > 0.0 {
        length
    } else {
        0
    }
}
