//! Search over many streams with one ranking.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use contract::time::Instant;
use tantivy::DocAddress;
use tantivy::schema::Field;
use text::Expression;

use super::EmbeddedStore;
use super::by_time::TimePage;
use super::index::{OpenIndex, View};
use super::layout::SlotKind;
use super::prefix::Expansions;
use super::query::{self, Plan, SearchedFields};
use super::rank::{AfterScore, Question, count, document_order};
use super::records::{BYTES, MEASURED, measured};
use super::restrict::Restriction;
use super::sources::Sources;
use crate::records::{ByteBudget, PageRequest, StoredPage};
use crate::search::{
    AggregateAnswer, AggregateRequest, Building, Extent, Hit, IndexStatus, Rank, Scope, Search,
    SearchAnswer, SearchOrder, SearchPosition, SearchRequest,
};
use crate::{Result, StoreError, stop};

impl Search for EmbeddedStore {
    fn search(&self, request: &SearchRequest) -> Result<SearchAnswer> {
        self.with_index(|| self.find(request))
    }
    fn aggregate(&self, request: &AggregateRequest) -> Result<AggregateAnswer> {
        self.with_index(|| self.compute(request))
    }

    fn select(&self, scope: &Scope, request: &PageRequest) -> Result<StoredPage> {
        self.with_index(|| self.select_page(scope, request))
    }

    fn extent(&self, scope: &Scope, latest: usize) -> Result<Extent> {
        self.with_index(|| self.extent_of(scope, latest))
    }

    fn index_status(&self) -> Result<IndexStatus> {
        self.status()
    }

    fn tend_index(&self) -> Result<()> {
        self.tend()
    }

    fn settle_index(&self) -> Result<()> {
        self.with_index(|| {
            let open = self.whole_index(&mut |_| {})?;
            while self.reindex_chunk(&open)? {}
            open.rest()
        })
    }

    fn rebuild_index(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.index.discard(self.index.opened().as_ref());
        self.database.transact(|transaction| {
            transaction
                .execute("DELETE FROM reindexing", [])
                .map_err(self.database.failed())
        })?;
        let progress = RefCell::new(progress);
        let records = self.with_index(|| {
            let open = self.whole_index(&mut |taken| progress.borrow_mut()(taken))?;
            open.rest()?;
            Ok(open.view().searcher.num_docs())
        })?;
        progress.into_inner()(records);
        self.forget_index_damage()
    }
}

/// Scopes that look at the same slots can share a query.
type Groups = BTreeMap<Vec<usize>, Vec<Restriction>>;

impl EmbeddedStore {
    fn find(&self, request: &SearchRequest) -> Result<SearchAnswer> {
        let sources = self.sources();
        self.fill_columns(&sources, request)?;
        // Read before the view is taken, which may hold more by then, but never less.
        let version = self.newest();
        let (open, building) = self.searchable_index()?;
        let view = open.view();
        let rebuilding = self.rebuilding_streams(&sources)?;
        let mut groups = self.groups(&sources, &open, request)?;
        // While a stream is being indexed again, its documents may still hold words of fields it no longer searches.
        if rebuilding.is_empty() {
            merge_whole_streams(&mut groups, &sources);
        }
        let moved = request
            .after
            .is_some_and(|after| after.generation != view.generation);
        let failed = super::index::failed(self.path());
        let mut expansions = Expansions::default();
        let plans = plans(&request.expression, &groups, &open, &view, &mut expansions);
        let plans = plans.map_err(&failed)?;
        stop::check()?;
        let total = request.count.then(|| count(&view, &plans));
        let total = total.transpose().map_err(&failed)?;
        // One more than a page, to know whether there are more.
        let limit = request.limit.saturating_add(1);
        let mut chosen = match request.order {
            SearchOrder::Relevance => {
                let after = request.after.and_then(after_score);
                let question = Question {
                    plans,
                    limit,
                    after,
                    by_row: moved,
                    only: None,
                };
                ranked(question, &view, open.fields.row).map_err(&failed)?
            }
            SearchOrder::Time(direction) => {
                let page = TimePage {
                    direction,
                    limit,
                    after: request.after.and_then(after_time),
                };
                let candidates = page.candidates(&view, &plans).map_err(&failed)?;
                let choose = |connection: &_| page.choose(connection, &view, &sources, candidates);
                self.database.read(choose)?
            }
        };
        stop::check()?;
        let has_more = chosen.len() > request.limit;
        chosen.truncate(request.limit);
        let (hits, complete) = self.fetch_hits(&sources, &view, version, &chosen)?;
        Ok(SearchAnswer {
            hits,
            has_more: has_more || !complete,
            total,
            ranking_changed: moved,
            reindexed: self.reindexed_of(&rebuilding)?,
            rebuilding,
            building,
            prefix_truncated: expansions.cut,
        })
    }

    /// A filter and an order must be exact, so columns that are being filled are filled first. Where that takes long, records without
    /// their columns do not pass, and the stream is named as not complete.
    fn fill_columns(&self, sources: &Sources, request: &SearchRequest) -> Result<()> {
        for scope in &request.scopes {
            let ordered = request.order != SearchOrder::Relevance && !scope.times.is_empty();
            if ordered || scope.time.is_some() || !scope.filters.is_empty() {
                match self.index_with_columns(sources.stream(&scope.stream)?.id) {
                    Ok(_) | Err(StoreError::IndexBuilding { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The index, or what is built of it so far, if that is not empty.
    fn searchable_index(&self) -> Result<(Arc<OpenIndex>, Option<Building>)> {
        match self.current_index() {
            Ok(open) => Ok((open, None)),
            Err(StoreError::IndexBuilding { indexed, written }) => {
                let open = self.open_index()?;
                if open.committed() == 0 {
                    return Err(StoreError::IndexBuilding { indexed, written });
                }
                Ok((open, Some(Building { indexed, written })))
            }
            // Without room it stays as it is, which answers still.
            Err(error @ (StoreError::Full { .. } | StoreError::NoRoom { .. })) => {
                let open = self.open_index()?;
                match open.committed() {
                    0 => Err(error),
                    indexed => {
                        let written = self.newest();
                        Ok((open, Some(Building { indexed, written })))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }

    fn groups(
        &self,
        sources: &Sources,
        open: &OpenIndex,
        request: &SearchRequest,
    ) -> Result<Groups> {
        let mut groups = Groups::new();
        for scope in &request.scopes {
            let entry = sources.stream(&scope.stream)?;
            let mut slots: Vec<usize> = scope
                .fields
                .iter()
                .filter_map(|field| entry.layout.slot(field, SlotKind::Text))
                .map(|slot| slot.number)
                .collect();
            slots.sort_unstable();
            slots.dedup();
            if !slots.is_empty() {
                let restriction = self.restriction(entry, scope, &open.fields)?;
                groups.entry(slots).or_default().push(restriction);
            }
        }
        Ok(groups)
    }

    /// Reads the records of the ranking, as far as a page holds them, and tells whether it holds all.
    fn fetch_hits(
        &self,
        sources: &Sources,
        view: &View,
        version: u64,
        chosen: &[(Rank, DocAddress)],
    ) -> Result<(Vec<Hit>, bool)> {
        let columns = MEASURED.as_str();
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {columns} FROM records WHERE row_id = ?1 AND data IS NOT NULL"
            ))?;
            let (mut hits, mut budget) = (Vec::with_capacity(chosen.len()), ByteBudget::default());
            for (rank, address) in chosen {
                let Some(row) = view.row_of(*address) else {
                    continue;
                };
                let mut found = statement.query([row])?;
                // A record may have gone since the index was read; then it is no hit any more.
                let Some(found) = found.next()? else {
                    continue;
                };
                let Some(entry) = sources.by_id(found.get(6)?) else {
                    continue;
                };
                if !budget.take(found.get(BYTES)?) {
                    return Ok((hits, false));
                }
                let record = measured(connection, found)?;
                hits.push(Hit {
                    stream: entry.stream.clone(),
                    record,
                    position: SearchPosition {
                        rank: *rank,
                        row,
                        document: document_order(*address),
                        generation: view.generation,
                        version,
                    },
                });
            }
            Ok((hits, true))
        })
    }
}

fn after_score(position: SearchPosition) -> Option<AfterScore> {
    match position.rank {
        Rank::Score(score) => Some(AfterScore {
            score,
            row: position.row,
            document: position.document,
        }),
        Rank::Time(_) => None,
    }
}

fn after_time(position: SearchPosition) -> Option<(Option<Instant>, u64)> {
    match position.rank {
        Rank::Time(time) => Some((time, position.row)),
        Rank::Score(_) => None,
    }
}

/// The best matches, best first.
fn ranked(
    mut question: Question<'_>,
    view: &View,
    row: Field,
) -> tantivy::Result<Vec<(Rank, DocAddress)>> {
    if question.by_row {
        question.follow_the_last_hit(view, row)?;
    }
    let ranked = question.answer(view)?.into_iter();
    Ok(ranked
        .map(|one| (Rank::Score(one.score), one.address))
        .collect())
}

/// A plan for each group in which something can match.
fn plans<'g>(
    expression: &Expression,
    groups: &'g Groups,
    open: &OpenIndex,
    view: &View,
    expansions: &mut Expansions,
) -> tantivy::Result<Vec<(Plan, &'g [Restriction])>> {
    let mut plans = Vec::with_capacity(groups.len());
    for (slots, restrictions) in groups {
        let slots = slots.iter();
        let fields: Vec<_> = slots
            .filter_map(|slot| open.fields.slot(SlotKind::Text, *slot))
            .collect();
        let within = SearchedFields {
            fields: &fields,
            restrictions,
        };
        let plan = query::plan(expression, within, view, expansions)?;
        plans.extend(plan.map(|plan| (plan, restrictions.as_slice())));
        if stop::asked() {
            break;
        }
    }
    Ok(plans)
}

/// Slots beyond those a stream uses are empty for it, so streams admitted with all their lexical fields can share the
/// query of the widest one: then one flat query serves a whole owner.
fn merge_whole_streams(groups: &mut Groups, sources: &Sources) {
    let complete = |slots: &[usize], restriction: &Restriction| {
        sources
            .by_id(restriction.stream.cast_signed())
            .is_some_and(|entry| {
                let mut assigned = entry
                    .layout
                    .slots
                    .iter()
                    .filter(|slot| slot.kind == SlotKind::Text);
                assigned.all(|slot| slots.contains(&slot.number))
            })
    };
    if groups.len() < 2
        || !groups
            .iter()
            .all(|(slots, all)| all.iter().all(|one| complete(slots, one)))
    {
        return;
    }
    let mut slots = Vec::new();
    let mut restrictions = Vec::new();
    for (these, those) in std::mem::take(groups) {
        slots.extend(these);
        restrictions.extend(those);
    }
    slots.sort_unstable();
    slots.dedup();
    groups.insert(slots, restrictions);
}
