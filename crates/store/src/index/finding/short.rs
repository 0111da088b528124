//! The documents of a clause that stand in short lists, all of them scored at once. Other forms of a word have many short lists;
//! what they score together is kept for as long as the segment and the figures stay as they are.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, PoisonError};

use siphasher::sip::SipHasher13;
use tantivy::DocId;

use super::lists::{Texts, Ways};
use super::ranges::{RANGE, levels_of};
use super::{Factors, Gate};

/// Lists with fewer documents are always read as a whole.
const SHORT: u32 = 1024;
/// Fewer documents are scored as fast as looked up.
const WORTH_KEEPING: usize = 64;
/// Where there are so many documents for so many ranges, the best of each range is known.
const DENSE: usize = 4;

/// What the documents of short lists score, by what was looked up.
#[derive(Default)]
pub(in crate::index) struct SegmentShortLists(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_key: HashMap<u64, Arc<ShortLists>>,
    /// How many documents these are together.
    documents: usize,
}

/// Documents in order, each with what its best alternative scores.
#[derive(Default)]
pub(super) struct ShortLists {
    pub(super) scored: Vec<(DocId, f32)>,
    /// The most that any of them scores.
    pub(super) most: f32,
    /// The best of each range as a share of the most, in steps of a byte, where there are many documents.
    pub(super) by_range: Option<Box<[u8]>>,
}

impl ShortLists {
    pub(super) fn new(scored: Vec<(DocId, f32)>, documents: DocId) -> Self {
        let most = scored.iter().map(|one| one.1).fold(0.0, f32::max);
        let ranges = documents.div_ceil(RANGE) as usize;
        let is_dense = most > 0.0 && scored.len() * DENSE >= ranges;
        let shares = scored
            .iter()
            .map(|(document, score)| (*document, score / most));
        Self {
            most,
            by_range: is_dense.then(|| levels_of(shares, ranges)),
            scored,
        }
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
    compute: impl FnOnce() -> tantivy::Result<Vec<(DocId, f32)>>,
) -> tantivy::Result<Arc<ShortLists>> {
    let key = key(ways, gate);
    let kept = &gate.segment.columns.short.0;
    let known = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.by_key.get(&key) {
        return Ok(Arc::clone(known));
    }
    drop(known);
    let documents = gate.segment.reader.max_doc();
    let lists = Arc::new(ShortLists::new(compute()?, documents));
    let size = lists.scored.len();
    if size >= WORTH_KEEPING {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // No more than the segment has. Any other goes: which words come next is not known.
        while kept.documents + size > documents as usize
            && let Some(any) = kept.by_key.keys().next().copied()
        {
            let gone = kept.by_key.remove(&any);
            kept.documents -= gone.map_or(0, |gone| gone.scored.len());
        }
        kept.documents += size;
        kept.by_key.insert(key, Arc::clone(&lists));
    }
    Ok(lists)
}

/// Names everything that scores depend on.
fn key(ways: &[Ways<'_>], gate: &Gate<'_>) -> u64 {
    let mut hasher = SipHasher13::new();
    for way in ways {
        hasher.write_u32(way.factor.to_bits());
        for place in &way.places {
            hasher.write_u32(place.field.field.field_id());
            hasher.write_usize(place.info.postings_range.start);
            hasher.write_u32(place.most.to_bits());
            hash_factors(&place.field.factors, &mut hasher);
            hash_lengths(&place.texts, gate, &mut hasher);
        }
        // Ends a way.
        hasher.write_u8(u8::MAX);
    }
    hasher.finish()
}

fn hash_factors(factors: &Factors, hasher: &mut SipHasher13) {
    match factors {
        Factors::Uniform(factor) => hasher.write_u32(factor.to_bits()),
        Factors::ByStream(factors) => {
            for factor in factors {
                hasher.write_u32(factor.to_bits());
            }
            hasher.write_u8(u8::MAX);
        }
    }
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
