//! What was looked up of a word in the segments of one state of the index. A word has up to a hundred other forms; when it is asked for
//! again, none of them is looked at that stands in few documents.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::levels::{MARGIN, WordLevels};
use super::short::ShortLists;
use crate::stop;

pub(super) struct Prepared {
    /// By segment, and by whether other forms of the word count.
    by_segment: Box<[[OnceLock<SegmentWord>; 2]]>,
    /// The most that a document scores by another form of the word.
    most_by_forms: OnceLock<f32>,
}

impl Prepared {
    pub(super) fn new(segments: usize) -> Self {
        let none = || [OnceLock::new(), OnceLock::new()];
        Self {
            by_segment: std::iter::repeat_with(none).take(segments).collect(),
            most_by_forms: OnceLock::new(),
        }
    }

    pub(super) fn segments(&self) -> usize {
        self.by_segment.len()
    }

    pub(super) fn of(&self, segment: usize, with_forms: bool) -> Option<&OnceLock<SegmentWord>> {
        let segment = self.by_segment.get(segment)?;
        segment.get(usize::from(with_forms))
    }

    /// The most that a document scores by another form of the word, where forms were looked up in every segment. `weight_of` is what an
    /// alternative scores with a share of one.
    pub(super) fn most_by_forms(&self, weight_of: impl Fn(usize) -> f32) -> Option<f32> {
        if let Some(known) = self.most_by_forms.get() {
            return Some(*known);
        }
        let mut most = 0.0;
        for [_, with_forms] in &self.by_segment {
            most = with_forms.get()?.most_by_forms(&weight_of)?.max(most);
        }
        Some(*self.most_by_forms.get_or_init(|| most))
    }
}

/// A word in one segment. What the segment itself keeps within bounds is not kept alive here.
#[derive(Default)]
pub(super) struct SegmentWord {
    /// The alternatives that stand in many documents, by number, and which of their entries are of the segment.
    pub(super) long: Box<[(usize, Range<usize>)]>,
    short: Mutex<Kept>,
    /// Of the word, and of all its forms together.
    levels: [Mutex<KeptLevels>; 2],
}

/// Levels, and how many times larger scores may have become since.
#[derive(Clone, Default)]
struct KeptLevels(Weak<WordLevels>, f32);

/// What all other alternatives score.
enum Kept {
    Few(Arc<ShortLists>),
    BySegment(Weak<ShortLists>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::BySegment(Weak::new())
    }
}

impl SegmentWord {
    pub(super) fn new(long: Box<[(usize, Range<usize>)]>) -> Self {
        Self {
            long,
            ..Self::default()
        }
    }

    pub(super) fn short(&self) -> Option<Arc<ShortLists>> {
        match &*self.short.lock().unwrap_or_else(PoisonError::into_inner) {
            Kept::Few(lists) => Some(Arc::clone(lists)),
            Kept::BySegment(lists) => lists.upgrade(),
        }
    }

    pub(super) fn keep_short(&self, lists: &Arc<ShortLists>) {
        let kept = if lists.is_worth_keeping() {
            Kept::BySegment(Arc::downgrade(lists))
        } else {
            Kept::Few(Arc::clone(lists))
        };
        *self.short.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// The levels of the word, or of its forms: as they are known, or as they are found now.
    pub(super) fn levels(
        &self,
        of_forms: bool,
        find: impl FnOnce() -> tantivy::Result<(Arc<WordLevels>, f32)>,
    ) -> tantivy::Result<(Arc<WordLevels>, f32)> {
        let [word, forms] = &self.levels;
        let kept = if of_forms { forms } else { word };
        let KeptLevels(known, ratio) = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.upgrade() {
            return Ok((known, ratio));
        }
        let (levels, ratio) = find()?;
        // A search that is stopped has not seen all of a list.
        if stop::asked() {
            return Ok((levels, ratio));
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = KeptLevels(Arc::downgrade(&levels), ratio);
        Ok((levels, ratio))
    }

    /// The most that a document scores by another form, if that is still known.
    fn most_by_forms(&self, weight_of: impl Fn(usize) -> f32) -> Option<f32> {
        let mut most = self.short()?.most_by_forms;
        for ((number, _), kept) in self.long.iter().zip(&self.levels) {
            if *number > 0 {
                let KeptLevels(levels, ratio) =
                    kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let best = levels.upgrade()?.levels.best();
                most = (best * weight_of(*number) * ratio * MARGIN).max(most);
            }
        }
        Some(most)
    }
}
