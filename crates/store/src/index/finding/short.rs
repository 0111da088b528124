//! The documents of a clause that stand in short lists, all of them scored at once. Other forms of a word have many short lists;
//! what they score together is kept for as long as the segment and the figures stay as they are.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, PoisonError};

use siphasher::sip::SipHasher13;
use tantivy::DocId;

use super::Gate;
use super::levels::{Levels, LevelsBuilder, RANGE};
use super::lists::{Texts, Ways};
use super::scores::SIZE;

/// Lists with fewer documents are always read as a whole.
const SHORT: u32 = 1024;
/// Fewer documents are scored as fast as looked up.
const WORTH_KEEPING: usize = 64;
/// Where there are so many documents for so many ranges, the best of each range is known.
const DENSE: usize = 64;
/// So much is kept for each document of a segment.
const BYTES: usize = 16;

/// What the documents of short lists score, by what was looked up.
#[derive(Default)]
pub(in crate::index) struct SegmentShortLists(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_key: HashMap<u64, Arc<ShortLists>>,
    /// How many bytes these are together.
    bytes: usize,
}

/// Documents in order, each with what its best alternative scores.
#[derive(Default)]
pub(super) struct ShortLists {
    pub(super) scored: Vec<(DocId, f32)>,
    /// The most that any of them scores.
    pub(super) most: f32,
    /// The most that any of them scores by another form of a word.
    pub(super) most_by_forms: f32,
    /// The best of each range, where there are many documents.
    pub(super) levels: Option<Levels>,
}

impl ShortLists {
    pub(super) fn new(scored: Vec<(DocId, f32)>, most_by_forms: f32, documents: DocId) -> Self {
        let most = scored.iter().map(|one| one.1).fold(0.0, f32::max);
        let ranges = documents.div_ceil(RANGE) as usize;
        let is_dense = most > 0.0 && scored.len() >= WORTH_KEEPING.max(ranges / DENSE);
        let levels = is_dense.then(|| {
            let mut levels = LevelsBuilder::new(documents, most);
            for (document, score) in &scored {
                levels.raise(*document, *score);
            }
            levels.finish()
        });
        Self {
            scored,
            most,
            most_by_forms,
            levels,
        }
    }

    pub(super) fn is_worth_keeping(&self) -> bool {
        self.scored.len() >= WORTH_KEEPING
    }

    fn bytes(&self) -> usize {
        let levels = self.levels.as_ref().map_or(0, Levels::bytes);
        self.scored.len() * size_of::<(DocId, f32)>() + levels
    }

    /// The best score in a window.
    pub(super) fn best_in_window(&self, window: usize) -> f32 {
        if let Some(levels) = &self.levels {
            return levels.best_in_window(window);
        }
        let here = self.in_window(window).iter();
        here.map(|one| one.1).fold(0.0, f32::max)
    }

    /// The best score in a range.
    pub(super) fn in_range(&self, range: usize) -> f32 {
        if let Some(levels) = &self.levels {
            return levels.in_range(range);
        }
        let (first, size) = (range * RANGE as usize, RANGE as usize);
        let here = self.between(first, first + size).iter();
        here.map(|one| one.1).fold(0.0, f32::max)
    }

    /// The documents of a window.
    pub(super) fn in_window(&self, window: usize) -> &[(DocId, f32)] {
        self.between(window * SIZE, window * SIZE + SIZE)
    }

    fn between(&self, first: usize, end: usize) -> &[(DocId, f32)] {
        let begin = self.scored.partition_point(|one| (one.0 as usize) < first);
        let left = self.scored.get(begin..).unwrap_or_default();
        let count = left.partition_point(|one| (one.0 as usize) < end);
        left.get(..count).unwrap_or_default()
    }
}

/// Takes the alternatives that are read as a whole out of those of a clause.
pub(super) fn take_short<'q>(ways: &mut Vec<Ways<'q>>) -> Vec<Ways<'q>> {
    let is_short = |way: &Ways<'_>| way.places.iter().all(|place| place.info.doc_freq < SHORT);
    let (short, long) = std::mem::take(ways).into_iter().partition(is_short);
    *ways = long;
    short
}

/// What short lists score in a segment: as it was kept, or as it is computed now.
pub(super) fn scored(
    ways: &[Ways<'_>],
    gate: &Gate<'_>,
    compute: impl FnOnce() -> tantivy::Result<(Vec<(DocId, f32)>, f32)>,
) -> tantivy::Result<Arc<ShortLists>> {
    let key = key(ways, gate);
    let kept = &gate.segment.columns.short.0;
    let known = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.by_key.get(&key) {
        return Ok(Arc::clone(known));
    }
    drop(known);
    let documents = gate.segment.reader.max_doc();
    let (scored, most_by_forms) = compute()?;
    let lists = Arc::new(ShortLists::new(scored, most_by_forms, documents));
    if lists.is_worth_keeping() {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Any other goes: which words come next is not known.
        while kept.bytes + lists.bytes() > documents as usize * BYTES
            && let Some(any) = kept.by_key.keys().next().copied()
        {
            let gone = kept.by_key.remove(&any);
            kept.bytes -= gone.map_or(0, |gone| gone.bytes());
        }
        kept.bytes += lists.bytes();
        kept.by_key.insert(key, Arc::clone(&lists));
    }
    Ok(lists)
}

/// Names everything that scores depend on.
fn key(ways: &[Ways<'_>], gate: &Gate<'_>) -> u64 {
    let (mut hasher, mut fields) = (SipHasher13::new(), Vec::new());
    for way in ways {
        hasher.write_u32(way.most.to_bits());
        hasher.write_u8(u8::from(way.is_first()));
        for place in &way.places {
            place.hash_into(&mut hasher);
            let field = place.field.field;
            if !fields.contains(&field) {
                fields.push(field);
                hash_lengths(&place.opened.texts, gate, &mut hasher);
            }
        }
        // Ends a way.
        hasher.write_u8(u8::MAX);
    }
    hasher.finish()
}

fn hash_lengths(texts: &Texts<'_>, gate: &Gate<'_>, hasher: &mut SipHasher13) {
    let only = gate.only_stream();
    for (stream, average) in texts.averages() {
        if only.is_none_or(|only| only == stream) {
            hasher.write_u64(stream);
            hasher.write_u32(average.to_bits());
        }
    }
}
