//! Finding the best few documents without looking at most of the others.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use tantivy::query::{EnableScoring, Query};
use tantivy::schema::Field;
use tantivy::{DocAddress, DocId, Term};

use super::index::{Segment, View};
use super::query::Plan;
use super::restrict::{Restriction, SegmentScopes, by_stream};
use super::shortlist::Shortlist;
use super::word::{FieldWord, SegmentWord};
use crate::stop;

/// After how many documents cancellation is checked. What the engine skips by itself, in lists of single words, is not
/// counted: a segment's list is walked in milliseconds.
const LOOK_EVERY: u32 = 1024;

/// A document that matched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: f32,
    /// Orders equal scores; the smaller comes first.
    tie: u64,
    pub(super) address: DocAddress,
}

/// Where the previous page of a ranking ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct AfterScore {
    pub(super) score: f32,
    pub(super) row: u64,
    pub(super) document: u64,
}

/// What is looked for, where, and which part of the ranking is wanted.
pub(super) struct Question<'a> {
    pub(super) plans: Vec<(Plan, &'a [Restriction])>,
    pub(super) limit: usize,
    pub(super) after: Option<AfterScore>,
    /// Equal scores are ordered by record row: the position in the index means nothing to a page of an earlier index.
    pub(super) by_row: bool,
    /// Only this document counts.
    pub(super) only: Option<DocAddress>,
}

impl Question<'_> {
    /// Scores move a little with every write. A page that continues an earlier ranking goes on after the score that the
    /// last hit of the previous page has now, so that no hit is lost or shown twice for that reason alone.
    pub(super) fn follow_the_last_hit(&mut self, view: &View, row: Field) -> tantivy::Result<()> {
        let Some(after) = self.after else {
            return Ok(());
        };
        let Some(address) = view.address_of(row, after.row)? else {
            return Ok(());
        };
        let alone = self.after.take();
        self.only = Some(address);
        let found = self.rank(view);
        self.only = None;
        self.after = alone;
        if let (Some(after), Some(now)) = (&mut self.after, found?.first()) {
            after.score = now.score;
        }
        Ok(())
    }

    /// The best documents, best first.
    pub(super) fn answer(&self, view: &View) -> tantivy::Result<Vec<Ranked>> {
        let mut found = self.rank(view)?;
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found)
    }

    /// The best documents, in no order.
    fn rank(&self, view: &View) -> tantivy::Result<Vec<Ranked>> {
        let mut ranking = Ranking::new(self);
        for (plan, restrictions) in &self.plans {
            match plan {
                Plan::Word(terms) if terms.len() > 1 => {
                    ranking.add_word(view, terms, restrictions)?;
                }
                // In a single field the engine skips whole blocks by itself.
                Plan::Word(_) => ranking.add_query(view, plan.query().as_ref(), restrictions)?,
                Plan::Query(query) => ranking.add_query(view, query.as_ref(), restrictions)?,
            }
        }
        let found = ranking.worst_first.into_iter();
        Ok(found.map(|Reverse(ranked)| ranked).collect())
    }

    /// Whether documents come in the order of the index, so that of equal scores the first one stays.
    fn in_order(&self) -> bool {
        match self.plans.as_slice() {
            [(Plan::Word(terms), _)] => terms.len() == 1,
            [(Plan::Query(_), _)] | [] => true,
            _ => false,
        }
    }
}

/// The best documents so far, and the rules they are chosen by.
struct Ranking {
    limit: usize,
    worst_first: BinaryHeap<Reverse<Ranked>>,
    after: Option<AfterScore>,
    by_row: bool,
    only: Option<DocAddress>,
    /// Documents do not come in the order of the index, so those that equal the worst so far matter as well.
    visit_ties: bool,
}

impl Ranking {
    fn new(question: &Question<'_>) -> Self {
        Self {
            limit: question.limit,
            worst_first: BinaryHeap::new(),
            after: question.after,
            by_row: question.by_row,
            only: question.only,
            visit_ties: question.by_row || !question.in_order(),
        }
    }

    /// Ranks the documents of any query.
    fn add_query(
        &mut self,
        view: &View,
        query: &dyn Query,
        restrictions: &[Restriction],
    ) -> tantivy::Result<()> {
        let weight = query.weight(EnableScoring::enabled_from_searcher(&view.searcher))?;
        let by_stream = by_stream(restrictions);
        for segment in view.segments() {
            if stop::asked() {
                break;
            }
            let gate = Gate::new(segment, restrictions, &by_stream)?;
            let threshold = self.threshold();
            let mut seen = 0_u32;
            weight.for_each_pruning(threshold, segment.reader, &mut |document, score| {
                seen = seen.wrapping_add(1);
                if seen.is_multiple_of(LOOK_EVERY) && stop::asked() {
                    return f32::MAX;
                }
                if gate.admit(document) {
                    self.offer(&gate, document, score);
                }
                self.threshold()
            })?;
        }
        Ok(())
    }

    /// Ranks the documents of one word in several fields; scores add up over the fields.
    ///
    /// First come the documents in which the word stands out. Then the fields take turns, the one with the highest
    /// possible score first. In a field's turn its list is walked for documents that could still make it with the best
    /// the later fields can add; those of earlier turns are left out. A turn that cannot win any more is left out as
    /// well: for a common word that is usually the first one already.
    fn add_word(
        &mut self,
        view: &View,
        terms: &[Term],
        restrictions: &[Restriction],
    ) -> tantivy::Result<()> {
        let mut words = Vec::with_capacity(terms.len());
        for term in terms {
            words.push(FieldWord::new(view, term)?);
        }
        words.sort_by(|one, other| other.ceiling.total_cmp(&one.ceiling));
        let by_stream = by_stream(restrictions);
        let mut parts = Vec::new();
        for segment in view.segments() {
            let gate = Gate::new(segment, restrictions, &by_stream)?;
            parts.push((gate, Shortlist::new(&words, segment)?));
        }
        let mut reading = true;
        while reading && !stop::asked() {
            reading = false;
            for (gate, shortlist) in &mut parts {
                reading |= self.read_on(gate, shortlist)?;
            }
        }
        for turn in 0..words.len() {
            for (gate, shortlist) in &parts {
                if stop::asked() {
                    return Ok(());
                }
                self.take_turn(turn, gate, shortlist)?;
            }
        }
        Ok(())
    }

    /// Ranks more documents of a segment in which a word stands out; false when there are none that matter.
    fn read_on(&mut self, gate: &Gate<'_>, shortlist: &mut Shortlist<'_>) -> tantivy::Result<bool> {
        if self.is_beyond(shortlist.left_from(0)) {
            return Ok(false);
        }
        let Some(documents) = shortlist.next_documents()? else {
            return Ok(false);
        };
        for (document, score) in documents {
            if self.is_beyond(score) {
                break;
            }
            if gate.admit(document) {
                self.offer(gate, document, score);
            }
        }
        Ok(true)
    }

    /// Ranks the documents of a segment that hold a word in one field and not in those before it, except those of the
    /// shortlist.
    fn take_turn(
        &mut self,
        turn: usize,
        gate: &Gate<'_>,
        shortlist: &Shortlist<'_>,
    ) -> tantivy::Result<()> {
        let Some(driver) = shortlist.word(turn) else {
            return Ok(());
        };
        if self.is_beyond(shortlist.left_from(turn)) {
            return Ok(());
        }
        let addable = shortlist.left_from(turn + 1);
        let lists = |fields: Range<usize>| {
            let words = fields.filter_map(|field| shortlist.word(field));
            let lists = words.map(SegmentWord::list);
            lists.collect::<tantivy::Result<Vec<_>>>()
        };
        let mut earlier = lists(0..turn)?;
        let mut later = lists(turn + 1..shortlist.fields())?;
        let threshold = self.threshold_with(addable);
        let mut walked = 0_u32;
        driver
            .list()?
            .for_each_above(threshold, &mut |document, score| {
                walked = walked.wrapping_add(1);
                if walked.is_multiple_of(LOOK_EVERY) && stop::asked() {
                    return f32::MAX;
                }
                let mut earlier = earlier.iter_mut();
                let seen = shortlist.tried(document)
                    || earlier.any(|list| list.score_of(document).is_some());
                if !seen && gate.admit(document) {
                    let more = later.iter_mut().filter_map(|list| list.score_of(document));
                    let score = score + more.sum::<f32>();
                    self.offer(gate, document, score);
                }
                self.threshold_with(addable)
            });
        Ok(())
    }

    /// The score a document must exceed to matter.
    fn threshold(&self) -> f32 {
        match self.worst_first.peek() {
            Some(Reverse(worst)) if self.worst_first.len() >= self.limit => {
                if self.visit_ties {
                    worst.score.next_down()
                } else {
                    worst.score
                }
            }
            _ => f32::MIN,
        }
    }

    /// The score a document must exceed when up to `addable` may still be added to it. A little less than the
    /// difference, because sums of floats round.
    fn threshold_with(&self, addable: f32) -> f32 {
        let threshold = self.threshold();
        let rounding = threshold.abs() * 1e-5;
        if addable > 0.0 && threshold > f32::MIN {
            threshold - addable - rounding
        } else {
            threshold
        }
    }

    /// Whether a document with this score or less cannot matter. A little more counts as well, because sums of floats
    /// round.
    fn is_beyond(&self, reach: f32) -> bool {
        reach + reach.abs() * 1e-5 <= self.threshold()
    }

    fn offer(&mut self, gate: &Gate<'_>, document: DocId, score: f32) {
        let address = DocAddress::new(gate.segment.ordinal, document);
        let tie = if self.by_row {
            gate.segment
                .columns
                .rows
                .first(document)
                .unwrap_or(u64::MAX)
        } else {
            document_order(address)
        };
        if self.only.is_some_and(|only| only != address) || !self.follows(score, tie) {
            return;
        }
        let ranked = Ranked {
            score,
            tie,
            address,
        };
        if self.worst_first.len() < self.limit {
            self.worst_first.push(Reverse(ranked));
        } else if let Some(mut worst) = self.worst_first.peek_mut()
            && ranked > worst.0
        {
            *worst = Reverse(ranked);
        }
    }

    /// Whether a hit comes after the previous page.
    fn follows(&self, score: f32, tie: u64) -> bool {
        self.after.is_none_or(|after| {
            let previous = if self.by_row {
                after.row
            } else {
                after.document
            };
            match score.total_cmp(&after.score) {
                Ordering::Less => true,
                Ordering::Equal => tie > previous,
                Ordering::Greater => false,
            }
        })
    }
}

/// What decides on the documents of one segment.
pub(super) struct Gate<'a> {
    segment: Segment<'a>,
    scopes: SegmentScopes<'a>,
}

impl<'a> Gate<'a> {
    pub(super) fn new(
        segment: Segment<'a>,
        restrictions: &'a [Restriction],
        by_stream: &'a [Option<usize>],
    ) -> tantivy::Result<Self> {
        Ok(Self {
            segment,
            scopes: SegmentScopes::new(segment, restrictions, by_stream)?,
        })
    }

    /// Whether the document is alive and lies in a scope.
    fn admit(&self, document: DocId) -> bool {
        self.scope_of(document).is_some()
    }

    /// The restriction that admits a document, if it is alive.
    pub(super) fn scope_of(&self, document: DocId) -> Option<usize> {
        let alive = !self.segment.reader.is_deleted(document);
        alive.then(|| self.scopes.scope_of(document)).flatten()
    }
}

/// How many documents match and are admitted.
pub(super) fn count(view: &View, plans: &[(Plan, &[Restriction])]) -> tantivy::Result<u64> {
    let mut total = 0;
    for (plan, restrictions) in plans {
        each_admitted(view, plan.query().as_ref(), restrictions, &mut |_| {
            total += 1;
        })?;
    }
    Ok(total)
}

/// Hands over the documents that match and are admitted, in the order of the index.
pub(super) fn each_admitted(
    view: &View,
    query: &dyn Query,
    restrictions: &[Restriction],
    each: &mut dyn FnMut(DocAddress),
) -> tantivy::Result<()> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(&view.searcher))?;
    let by_stream = by_stream(restrictions);
    for segment in view.segments() {
        if stop::asked() {
            break;
        }
        let gate = Gate::new(segment, restrictions, &by_stream)?;
        weight.for_each_no_score(segment.reader, &mut |documents| {
            let admitted = documents.iter().filter(|document| gate.admit(**document));
            for document in admitted {
                each(DocAddress::new(segment.ordinal, *document));
            }
        })?;
    }
    Ok(())
}

/// The position of a document as one number that orders like segment and document.
pub(super) fn document_order(address: DocAddress) -> u64 {
    u64::from(address.segment_ord) << 32 | u64::from(address.doc_id)
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(Reverse(self.tie).cmp(&Reverse(other.tie)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
