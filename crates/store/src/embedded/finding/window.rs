//! Scores of all documents of a segment that hold anything of a question, some thousand documents at a time.

use tantivy::{DocId, TERMINATED};

use super::Gate;
use super::lists::{List, SegmentLookups, Ways};
use crate::stop;

/// How many documents are looked at together: their scores fit the processor's cache.
const SIZE: usize = 8192;
/// The same as a number of documents.
const DOCUMENTS: DocId = 8192;

/// Scores of the documents of one window.
struct Scores<T> {
    values: Vec<T>,
    /// One bit for each document that has a value.
    present: Vec<u64>,
}

impl<T: Copy + Default> Scores<T> {
    fn new() -> Self {
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
    fn change(&mut self, place: usize, change: impl FnOnce(T) -> T) {
        let place = place % SIZE;
        self.values[place] = change(self.values[place]);
        self.present[place / 64] |= 1 << (place % 64);
    }

    /// Hands over all values in order, and forgets them.
    #[inline]
    fn drain(&mut self, mut each: impl FnMut(usize, T)) {
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
    fn places(&self, places: &mut Vec<usize>) {
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

/// A document that holds something of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) document: DocId,
    /// The sum over clauses. It is exact, so it does not depend on the order in which they are added.
    pub(super) sum: f64,
    /// The clauses it holds, one bit each.
    pub(super) clauses: u64,
}

/// The open lists of one clause: for each alternative its factor and its lists.
type ClauseLists<'l> = Vec<(f32, Vec<List<'l>>)>;

fn open<'l>(clauses: &'l [Vec<Ways<'l>>]) -> tantivy::Result<Vec<ClauseLists<'l>>> {
    let mut opened = Vec::with_capacity(clauses.len());
    for ways in clauses {
        let lists = ways.iter().map(|one| Ok((one.factor, one.lists()?)));
        opened.push(lists.collect::<tantivy::Result<Vec<_>>>()?);
    }
    Ok(opened)
}

/// Who looks at the matches of a segment.
pub(super) trait Matches {
    /// Clauses, one bit each, of which documents with no other clause do not matter any more. Once in it, a clause stays.
    fn negligible(&mut self) -> u64;
    /// Takes the next document.
    fn take(&mut self, found: Match);
}

/// Hands over the documents that hold a wanted clause and none that is excluded, in order; those that hold negligible clauses
/// only may be left out. Whether a document is admitted is not asked.
pub(super) fn for_each_match(
    lookups: &SegmentLookups<'_>,
    matches: &mut dyn Matches,
) -> tantivy::Result<()> {
    let mut window = Window {
        gate: lookups.gate,
        way: Scores::new(),
        clause: Scores::new(),
        sums: Scores::new(),
        masks: vec![0; SIZE],
        begin: 0,
        end: 0,
    };
    let mut wanted = open(&lookups.wanted)?;
    let mut excluded = open(&lookups.excluded)?;
    let mut touched = Vec::new();
    while !stop::asked() {
        let negligible = matches.negligible();
        let is_read = |number: usize| negligible >> (number % 64) & 1 == 0;
        let clauses = wanted.iter().enumerate();
        let lists = clauses.filter(|(number, _)| is_read(*number));
        let lists = lists.flat_map(|(_, ways)| ways.iter().flat_map(|(_, lists)| lists));
        let Some(next) = lists
            .map(List::next)
            .min()
            .filter(|next| *next != TERMINATED)
        else {
            break;
        };
        window.begin = next - next % DOCUMENTS;
        window.end = window.begin.saturating_add(DOCUMENTS);
        for (number, ways) in wanted.iter_mut().enumerate() {
            if is_read(number) {
                window.read(number, ways);
            }
        }
        if negligible != 0 {
            window.sums.places(&mut touched);
            for (number, ways) in wanted.iter_mut().enumerate() {
                if !is_read(number) {
                    window.probe(number, ways, &touched);
                }
            }
        }
        for list in excluded.iter_mut().flatten().flat_map(|(_, lists)| lists) {
            window.exclude(list);
        }
        window.finish(matches);
    }
    Ok(())
}

/// Some thousand documents of a segment, and what they score.
struct Window<'g> {
    gate: &'g Gate<'g>,
    way: Scores<f32>,
    clause: Scores<f32>,
    sums: Scores<f64>,
    masks: Vec<u64>,
    begin: DocId,
    end: DocId,
}

impl Window<'_> {
    /// Adds all documents of a clause.
    fn read(&mut self, number: usize, ways: &mut ClauseLists<'_>) {
        let (gate, begin, end) = (self.gate, self.begin, self.end);
        let place = |document: DocId| (document - begin) as usize;
        let (sums, masks) = (&mut self.sums, &mut self.masks);
        let mut add = |place: usize, score: f32| {
            sums.change(place, |sum| sum + f64::from(score));
            if let Some(mask) = masks.get_mut(place) {
                *mask |= 1 << (number % 64);
            }
        };
        // Most words stand in one field and have no other form here.
        if let [(factor, lists)] = ways.as_mut_slice()
            && let [only] = lists.as_mut_slice()
        {
            let factor = *factor;
            only.read_until(gate, end, |document, score| {
                if score > 0.0 {
                    add(place(document), score * factor);
                }
            });
            return;
        }
        for (factor, lists) in ways {
            let factor = *factor;
            for list in lists.iter_mut().filter(|list| list.next() < end) {
                list.read_until(gate, end, |document, score| {
                    if score > 0.0 {
                        let change = |sum| sum + score * factor;
                        self.way.change(place(document), change);
                    }
                });
            }
            let clause = &mut self.clause;
            self.way
                .drain(|place, score| clause.change(place, |best| best.max(score)));
        }
        self.clause.drain(add);
    }

    /// Adds a clause to documents that have others.
    fn probe(&mut self, number: usize, ways: &mut ClauseLists<'_>, places: &[usize]) {
        for &place in places {
            let document = document_at(self.begin, place);
            let best = best_way(self.gate, ways, document);
            if best > 0.0 {
                self.sums.change(place, |sum| sum + f64::from(best));
                if let Some(mask) = self.masks.get_mut(place) {
                    *mask |= 1 << (number % 64);
                }
            }
        }
    }

    fn exclude(&mut self, list: &mut List<'_>) {
        let (begin, masks) = (self.begin, &mut self.masks);
        list.read_until(self.gate, self.end, |document, score| {
            if document >= begin
                && score > 0.0
                && let Some(mask) = masks.get_mut((document - begin) as usize)
            {
                *mask = 0;
            }
        });
    }

    /// Hands over what was added up.
    fn finish(&mut self, matches: &mut dyn Matches) {
        let (begin, masks) = (self.begin, &mut self.masks);
        self.sums.drain(|place, sum| {
            let clauses = masks.get_mut(place).map(std::mem::take).unwrap_or_default();
            if clauses != 0 {
                let document = document_at(begin, place);
                matches.take(Match {
                    document,
                    sum,
                    clauses,
                });
            }
        });
    }
}

/// The document at a place of a window.
fn document_at(begin: DocId, place: usize) -> DocId {
    begin + DocId::try_from(place).unwrap_or(0)
}

/// What a document scores by a clause: its best alternative.
fn best_way(gate: &Gate<'_>, ways: &mut ClauseLists<'_>, document: DocId) -> f32 {
    let mut best = 0.0_f32;
    for (factor, lists) in ways {
        let scores = lists
            .iter_mut()
            .filter_map(|list| list.score_of(gate, document));
        best = best.max(scores.fold(0.0, |sum, score| sum + score * *factor));
    }
    best
}

/// What some documents, in ascending order, hold of the question; those that hold nothing of it, or something excluded, are
/// left out.
pub(super) fn matches_of(
    lookups: &SegmentLookups<'_>,
    documents: &[DocId],
    each: &mut dyn FnMut(Match),
) -> tantivy::Result<()> {
    let gate = lookups.gate;
    let mut wanted = open(&lookups.wanted)?;
    let mut excluded = open(&lookups.excluded)?;
    for &document in documents {
        let mut found = Match {
            document,
            sum: 0.0,
            clauses: 0,
        };
        for (number, ways) in wanted.iter_mut().enumerate() {
            let best = best_way(gate, ways, document);
            if best > 0.0 {
                found.sum += f64::from(best);
                found.clauses |= 1 << (number % 64);
            }
        }
        let mut others = excluded.iter_mut().flatten().flat_map(|(_, lists)| lists);
        let is_excluded = others.any(|list| {
            list.score_of(gate, document)
                .is_some_and(|score| score > 0.0)
        });
        if found.clauses != 0 && !is_excluded {
            each(found);
        }
    }
    Ok(())
}
