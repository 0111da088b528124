//! Scores of all documents of a segment that hold anything of a question, some thousand documents at a time.

use std::ops::Range;

use tantivy::DocId;

use super::Gate;
use super::levels::{RANGE, WINDOW, windows};
use super::lists::List;
use super::lookups::{ClauseLookup, SegmentLookups};
use super::scores::{FieldScores, SIZE, Scores};
use crate::stop;

/// A document that holds something of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) document: DocId,
    /// The sum over clauses. It is exact, so it does not depend on the order in which they are added.
    pub(super) sum: f64,
    /// The clauses it holds, one bit each.
    pub(super) clauses: u64,
}

/// One clause, read forwards.
struct OpenClause<'l> {
    /// For each alternative that stands in many documents what it scores at most, and its lists.
    long: Vec<(f32, Vec<List<'l>>)>,
    /// What is left of the documents of all others.
    short: &'l [(DocId, f32)],
}

impl<'l> OpenClause<'l> {
    fn all(clauses: &'l [ClauseLookup<'l>]) -> tantivy::Result<Vec<Self>> {
        let mut opened = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let long = clause.long.iter();
            let long = long.map(|ways| Ok((ways.most, ways.lists()?)));
            opened.push(Self {
                long: long.collect::<tantivy::Result<_>>()?,
                short: &clause.short.scored,
            });
        }
        Ok(opened)
    }

    /// What a document scores: its best alternative. Documents are asked for in ascending order.
    fn score_of(&mut self, gate: &Gate<'_>, document: DocId) -> f32 {
        self.skip_to(document);
        let first = self.short.first().filter(|one| one.0 == document);
        let mut best = first.map_or(0.0, |one| one.1);
        for (most, lists) in &mut self.long {
            let lists = lists.iter_mut();
            let shares = lists.filter_map(|list| list.share_of(gate, document));
            let fields = shares.fold(FieldScores::default(), FieldScores::and);
            best = best.max(fields.together() * *most);
        }
        best
    }

    fn skip_to(&mut self, document: DocId) {
        // What comes next is near, mostly.
        let mut near = 8;
        while (self.short.get(near)).is_some_and(|one| one.0 < document) {
            near *= 2;
        }
        let near = self.short.get(..=near).unwrap_or(self.short);
        let before = near.partition_point(|one| one.0 < document);
        self.short = self.short.get(before..).unwrap_or_default();
    }

    /// Hands over the documents of short lists in a part of the segment.
    fn read_short(&mut self, part: &Range<DocId>, mut each: impl FnMut(DocId, f32)) {
        self.skip_to(part.start);
        while let Some(((document, score), rest)) = self.short.split_first() {
            if *document >= part.end {
                return;
            }
            each(*document, *score);
            self.short = rest;
        }
    }
}

/// Clauses that only documents with other clauses are held against.
#[derive(Debug, Clone, Default)]
pub(super) struct Negligible {
    /// One bit each.
    pub(super) clauses: u64,
    /// Their numbers with the most that a document can score by each, the least first.
    pub(super) by_ceiling: Vec<(usize, f32)>,
}

/// Who looks at the matches of a segment.
pub(super) trait Matches {
    /// The next window that is read, from this one on, and its ranges that are, one bit each.
    fn next(&mut self, window: usize) -> Option<(usize, u64)> {
        Some((window, u64::MAX))
    }

    /// Clauses of which documents with no other clause do not matter any more. Once in it, a clause stays.
    fn negligible(&mut self) -> Negligible {
        Negligible::default()
    }

    /// Whether a document with these clauses that scores no more than this can matter.
    fn can_matter(&mut self, _sum: f64, _clauses: u64) -> bool {
        true
    }

    /// Takes the next document.
    fn take(&mut self, found: Match);
}

/// Hands over the documents that hold a wanted clause and none that is excluded, in order; those in other ranges, and those
/// that hold negligible clauses only, may be left out. Whether a document is admitted is not asked.
pub(super) fn for_each_match(
    lookups: &SegmentLookups<'_>,
    scores: &mut WindowScores,
    matches: &mut dyn Matches,
) -> tantivy::Result<()> {
    let mut window = Window::new(lookups.gate, scores);
    // Opened for the first window that is read: of many segments none is.
    let mut opened = None;
    let (mut from, windows) = (0, windows(lookups.gate.segment.reader.max_doc()));
    while from < windows
        && let Some((number, ranges)) = matches.next(from)
        && !stop::asked()
    {
        from = number + 1;
        let (wanted, excluded) = match &mut opened {
            Some(opened) => opened,
            none => none.insert((
                OpenClause::all(&lookups.wanted)?,
                OpenClause::all(&lookups.excluded)?,
            )),
        };
        let negligible = matches.negligible();
        window.open(number, ranges);
        for (number, clause) in wanted.iter_mut().enumerate() {
            if negligible.clauses >> (number % 64) & 1 == 0 {
                window.read(number, clause);
            }
        }
        window.probe_all(&negligible, wanted, matches);
        for clause in excluded {
            window.exclude(clause);
        }
        window.finish(matches);
    }
    Ok(())
}

/// Hands over the documents that hold every wanted clause and none that is excluded, for as long as `each` returns true.
pub(super) fn for_each_with_all(
    lookups: &SegmentLookups<'_>,
    scores: &mut WindowScores,
    each: &mut dyn FnMut(DocId) -> bool,
) -> tantivy::Result<()> {
    let sizes: Vec<_> = lookups.wanted.iter().map(ClauseLookup::size).collect();
    if sizes.contains(&0) {
        return Ok(());
    }
    let opened = OpenClause::all(&lookups.wanted)?;
    let mut excluded = OpenClause::all(&lookups.excluded)?;
    // The rarest first: few documents have to be held against the others.
    let mut opened: Vec<_> = sizes.into_iter().zip(opened).collect();
    opened.sort_by_key(|(size, _)| *size);
    let mut opened = opened.into_iter().map(|(_, clause)| clause);
    let Some(mut rarest) = opened.next() else {
        return Ok(());
    };
    let mut others: Vec<_> = opened.collect();
    let mut has_all = |document: DocId| {
        others
            .iter_mut()
            .all(|clause| clause.score_of(lookups.gate, document) > 0.0)
            && !excluded
                .iter_mut()
                .any(|clause| clause.score_of(lookups.gate, document) > 0.0)
    };
    if rarest.long.is_empty() {
        let mut documents = rarest.short.iter().map(|one| one.0);
        documents.all(|document| !has_all(document) || each(document));
        return Ok(());
    }
    let mut window = Window::new(lookups.gate, scores);
    for number in 0..windows(lookups.gate.segment.reader.max_doc()) {
        if stop::asked() {
            break;
        }
        window.open(number, u64::MAX);
        window.read(0, &mut rarest);
        for place in window.places() {
            let document = document_at(window.begin, place);
            if has_all(document) && !each(document) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What the documents of a window score. Empty between windows.
pub(super) struct WindowScores {
    /// Of one way to write a word.
    way: Scores<FieldScores>,
    clause: Scores<f32>,
    sums: Scores<f64>,
    masks: Vec<u64>,
    touched: Vec<usize>,
}

impl WindowScores {
    pub(super) fn new() -> Self {
        Self {
            way: Scores::new(),
            clause: Scores::new(),
            sums: Scores::new(),
            masks: vec![0; SIZE],
            touched: Vec::new(),
        }
    }
}

/// Some thousand documents of a segment, and what they score.
struct Window<'g, 's> {
    gate: &'g Gate<'g>,
    scores: &'s mut WindowScores,
    begin: DocId,
    /// The parts that are read, in order.
    parts: Vec<Range<DocId>>,
}

impl<'g, 's> Window<'g, 's> {
    fn new(gate: &'g Gate<'g>, scores: &'s mut WindowScores) -> Self {
        Self {
            gate,
            scores,
            begin: 0,
            parts: Vec::new(),
        }
    }

    /// Goes to a window of which these ranges are read.
    fn open(&mut self, number: usize, ranges: u64) {
        self.begin = DocId::try_from(number).unwrap_or(DocId::MAX / WINDOW) * WINDOW;
        self.parts.clear();
        let mut left = ranges;
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            let start = self.begin + first * RANGE;
            self.parts.push(start..start + count * RANGE);
            left = left.checked_shr(first + count).unwrap_or(0);
            left = left.checked_shl(first + count).unwrap_or(0);
        }
    }

    /// Adds all documents of a clause.
    fn read(&mut self, number: usize, clause: &mut OpenClause<'_>) {
        let (gate, begin) = (self.gate, self.begin);
        let place = |document: DocId| (document - begin) as usize;
        let WindowScores {
            way,
            clause: best,
            sums,
            masks,
            ..
        } = &mut *self.scores;
        let mut add = |place: usize, score: f32| {
            sums.change(place, |sum| sum + f64::from(score));
            if let Some(mask) = masks.get_mut(place) {
                *mask |= 1 << (number % 64);
            }
        };
        // Most words have no other form here, or stand in one field only.
        if clause.long.is_empty() {
            for part in &self.parts {
                clause.read_short(part, |document, score| add(place(document), score));
            }
            return;
        }
        if clause.short.is_empty()
            && let [(most, lists)] = clause.long.as_mut_slice()
            && let [only] = lists.as_mut_slice()
        {
            let most = *most;
            only.read(gate, &self.parts, |document, share| {
                if share > 0.0 {
                    add(place(document), share * most);
                }
            });
            return;
        }
        for (most, lists) in &mut clause.long {
            let most = *most;
            for list in lists {
                list.read(gate, &self.parts, |document, share| {
                    if share > 0.0 {
                        way.change(place(document), |fields| fields.and(share));
                    }
                });
            }
            way.drain(|place, fields| {
                best.change(place, |known| known.max(fields.together() * most));
            });
        }
        for part in &self.parts {
            clause.read_short(part, |document, score| {
                best.change(place(document), |known| known.max(score));
            });
        }
        best.drain(add);
    }

    /// Adds the negligible clauses to documents that have others and can matter, those first that can score most.
    fn probe_all(
        &mut self,
        negligible: &Negligible,
        wanted: &mut [OpenClause<'_>],
        matches: &mut dyn Matches,
    ) {
        if negligible.clauses == 0 {
            return;
        }
        let mut touched = std::mem::take(&mut self.scores.touched);
        self.scores.sums.places(&mut touched);
        let (mut left, mut most) = (negligible.clauses, 0.0);
        most += negligible
            .by_ceiling
            .iter()
            .map(|one| f64::from(one.1))
            .sum::<f64>();
        for (number, ceiling) in negligible.by_ceiling.iter().rev() {
            touched.retain(|place| {
                let scores = &mut *self.scores;
                let (sum, mask) = (scores.sums.get(*place), scores.masks.get_mut(*place));
                mask.is_some_and(|mask| {
                    let matters = matches.can_matter(sum + most, *mask | left);
                    if !matters {
                        *mask = 0;
                    }
                    matters
                })
            });
            if let Some(clause) = wanted.get_mut(*number) {
                self.probe(*number, clause, &touched);
            }
            left &= !(1 << (number % 64));
            most -= f64::from(*ceiling);
        }
        self.scores.touched = touched;
    }

    /// Adds a clause to some documents.
    fn probe(&mut self, number: usize, clause: &mut OpenClause<'_>, places: &[usize]) {
        for &place in places {
            let document = document_at(self.begin, place);
            let best = clause.score_of(self.gate, document);
            if best > 0.0 {
                let change = |sum| sum + f64::from(best);
                self.scores.sums.change(place, change);
                if let Some(mask) = self.scores.masks.get_mut(place) {
                    *mask |= 1 << (number % 64);
                }
            }
        }
    }

    fn exclude(&mut self, clause: &mut OpenClause<'_>) {
        let (begin, masks) = (self.begin, &mut self.scores.masks);
        let mut forget = |document: DocId, score: f32| {
            if score > 0.0
                && let Some(mask) = masks.get_mut((document - begin) as usize)
            {
                *mask = 0;
            }
        };
        for part in &self.parts {
            clause.read_short(part, &mut forget);
        }
        for list in clause.long.iter_mut().flat_map(|(_, lists)| lists) {
            list.read(self.gate, &self.parts, &mut forget);
        }
    }

    /// The places of documents with something that is wanted, in order; then forgets all.
    fn places(&mut self) -> Vec<usize> {
        let mut places = Vec::new();
        self.scores.sums.places(&mut places);
        self.scores.sums.drain(|_, _| ());
        self.scores.masks.fill(0);
        places
    }

    /// Hands over what was added up.
    fn finish(&mut self, matches: &mut dyn Matches) {
        let (begin, masks) = (self.begin, &mut self.scores.masks);
        self.scores.sums.drain(|place, sum| {
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

/// What some documents, in ascending order, hold of the question; those that hold nothing of it, or something excluded, are
/// left out.
pub(super) fn matches_of(
    lookups: &SegmentLookups<'_>,
    documents: &[DocId],
    each: &mut dyn FnMut(Match),
) -> tantivy::Result<()> {
    let gate = lookups.gate;
    let mut wanted = OpenClause::all(&lookups.wanted)?;
    let mut excluded = OpenClause::all(&lookups.excluded)?;
    for &document in documents {
        let mut found = Match {
            document,
            sum: 0.0,
            clauses: 0,
        };
        for (number, clause) in wanted.iter_mut().enumerate() {
            let best = clause.score_of(gate, document);
            if best > 0.0 {
                found.sum += f64::from(best);
                found.clauses |= 1 << (number % 64);
            }
        }
        let mut excluded = excluded.iter_mut();
        let is_excluded = excluded.any(|clause| clause.score_of(gate, document) > 0.0);
        if found.clauses != 0 && !is_excluded {
            each(found);
        }
    }
    Ok(())
}
