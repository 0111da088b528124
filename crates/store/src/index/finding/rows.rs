//! The rows of admitted records, where a search sees only some records of a stream. They are kept for as long as a segment
//! stays as it is, for finding them takes a look at every document.

use std::sync::Arc;

use super::{Gate, Searched};
use crate::stop;

/// After how many documents cancellation is checked.
const LOOK_EVERY: u32 = 65_536;

/// A set of rows: bits from a first row on, sixty-four at a time.
#[derive(Debug, Default)]
pub(in crate::index) struct RowSet {
    first: usize,
    bits: Vec<u64>,
}

impl RowSet {
    pub(in crate::index) fn insert(&mut self, row: u64) {
        if let Ok(at) = usize::try_from(row / 64) {
            self.add(at, &[1 << (row % 64)]);
        }
    }

    pub(in crate::index) fn contains(&self, row: u64) -> bool {
        let at = usize::try_from(row / 64).ok();
        let at = at.and_then(|at| at.checked_sub(self.first));
        let word = at.and_then(|at| self.bits.get(at));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Adds all rows of another set.
    fn join(&mut self, other: &Self) {
        self.add(other.first, &other.bits);
    }

    fn add(&mut self, first: usize, bits: &[u64]) {
        if bits.is_empty() {
            return;
        }
        if self.bits.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let before = std::iter::repeat_n(0, self.first - first);
            self.bits.splice(..0, before);
            self.first = first;
        }
        let begin = first - self.first;
        if self.bits.len() < begin + bits.len() {
            self.bits.resize(begin + bits.len(), 0);
        }
        for (known, more) in self.bits.iter_mut().skip(begin).zip(bits) {
            *known |= more;
        }
    }
}

/// The rows of admitted records of those restrictions that do not admit a whole stream.
pub(in crate::index) fn listed_rows(
    searched: &Searched<'_>,
    is_listed: &dyn Fn(usize) -> bool,
) -> RowSet {
    let mut all = RowSet::default();
    for gate in &searched.gates {
        let figures = &gate.segment.columns.figures;
        if let Some(known) = figures.rows(searched.key) {
            all.join(&known);
            continue;
        }
        let Some(rows) = rows_of(gate, is_listed) else {
            break;
        };
        all.join(&rows);
        figures.keep_rows(searched.key, Arc::new(rows));
    }
    all
}

/// Looks at all documents of a segment; `None` when the search is stopped.
fn rows_of(gate: &Gate<'_>, is_listed: &dyn Fn(usize) -> bool) -> Option<RowSet> {
    let mut rows = RowSet::default();
    for document in 0..gate.segment.reader.max_doc() {
        if document % LOOK_EVERY == 0 && stop::asked() {
            return None;
        }
        if gate.scope_of(document).is_some_and(is_listed)
            && let Some(row) = gate.segment.columns.rows.first(document)
        {
            rows.insert(row);
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_wherever_a_set_begins() {
        let (mut early, mut late) = (RowSet::default(), RowSet::default());
        for row in [700, 130, 701] {
            early.insert(row);
        }
        late.insert(9_000);
        late.insert(700);
        late.join(&early);
        late.join(&RowSet::default());
        for row in 0..10_000 {
            let expected = [130, 700, 701, 9_000].contains(&row);
            assert_eq!(late.contains(row), expected, "{row}");
        }
        assert!(!RowSet::default().contains(0));
    }
}
