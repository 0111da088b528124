//! Values of some thousand documents at once, of which few have one.

/// How many documents are looked at together: their scores fit the processor's cache, and their ranges the bits of a number.
pub(super) const SIZE: usize = 2048;

/// Scores of the documents of one window.
pub(super) struct Scores<T> {
    values: Vec<T>,
    /// One bit for each document that has a value.
    present: Vec<u64>,
}

impl<T: Copy + Default> Scores<T> {
    pub(super) fn new() -> Self {
        Self {
            values: vec![T::default(); SIZE],
            present: vec![0; SIZE / 64],
        }
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "the place is taken modulo the size"
    )]
    pub(super) fn change(&mut self, place: usize, change: impl FnOnce(T) -> T) {
        let place = place % SIZE;
        self.values[place] = change(self.values[place]);
        self.present[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn get(&self, place: usize) -> T {
        self.values.get(place).copied().unwrap_or_default()
    }

    /// Hands over all values in order, and forgets them.
    #[inline]
    pub(super) fn drain(&mut self, mut each: impl FnMut(usize, T)) {
        for (word, bits) in self.present.iter_mut().enumerate() {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let place = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if let Some(value) = self.values.get_mut(place) {
                    each(place, std::mem::take(value));
                }
            }
        }
    }

    /// The places that have a value, in order.
    pub(super) fn places(&self, places: &mut Vec<usize>) {
        places.clear();
        for (word, bits) in self.present.iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                places.push(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// How much of what other fields add counts (bounds know it, see `ranges.rs`): more serves collections of titled articles, less those of letters and messages.
const OTHER_FIELDS: f32 = 0.5;

/// What a word scores in the fields of a document: the best of them, and a part of what the others add. A word that stands in the
/// title as well as in the text says little more than one that stands in one of them, and texts without a title have only one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FieldScores {
    best: f32,
    sum: f32,
}

impl FieldScores {
    #[inline]
    pub(super) fn and(self, score: f32) -> Self {
        Self {
            best: self.best.max(score),
            sum: self.sum + score,
        }
    }

    #[inline]
    pub(super) fn together(self) -> f32 {
        self.best + OTHER_FIELDS * (self.sum - self.best)
    }
}
