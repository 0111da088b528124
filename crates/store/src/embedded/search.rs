//! Search over many streams with one ranking.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::EmbeddedStore;
use super::index::{OpenIndex, View};
use super::layout::SlotKind;
use super::prefix::Expansions;
use super::query;
use super::rank::{Question, Ranked, count, document_order};
use super::records::{BYTES, MEASURED, measured};
use super::restrict::Restriction;
use super::sources::Sources;
use crate::records::{ByteBudget, PageRequest, StoredPage};
use crate::search::{
    AggregateAnswer, AggregateRequest, Extent, Hit, IndexStatus, Scope, Search, SearchAnswer,
    SearchPosition, SearchRequest,
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

/// How many records an index that is being built has, and how many there are.
type Built = (u64, u64);

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
        let mut plans = Vec::with_capacity(groups.len());
        for (slots, restrictions) in &groups {
            let fields: Vec<_> = slots
                .iter()
                .filter_map(|slot| open.fields.slot(SlotKind::Text, *slot))
                .collect();
            let searched = (fields.as_slice(), restrictions.as_slice());
            let plan = query::plan(&request.expression, searched, &view, &mut expansions);
            let plan = plan.map_err(&failed)?;
            stop::check()?;
            plans.extend(plan.map(|plan| (plan, restrictions.as_slice())));
        }
        let mut total = 0;
        if request.count {
            for (plan, restrictions) in &plans {
                total += count(&view, plan.query().as_ref(), restrictions).map_err(&failed)?;
            }
        }
        let mut question = Question {
            plans,
            // One more than a page, to know whether there are more.
            limit: request.limit.saturating_add(1),
            after: request.after,
            by_row: moved,
            only: None,
        };
        if moved {
            question
                .follow_the_last_hit(&view, open.fields.row)
                .map_err(&failed)?;
        }
        let mut ranked = question.answer(&view).map_err(&failed)?;
        stop::check()?;
        let has_more = ranked.len() > request.limit;
        ranked.truncate(request.limit);
        let (hits, complete) = self.fetch_hits(&sources, (&view, version), &ranked)?;
        Ok(SearchAnswer {
            hits,
            has_more: has_more || !complete,
            total: request.count.then_some(total),
            ranking_changed: moved,
            rebuilding,
            building,
            prefix_truncated: expansions.cut,
        })
    }

    /// A filter must be exact, so columns that are being filled are filled first. Where that takes long, records without
    /// their columns do not pass, and the stream is named as not complete.
    fn fill_columns(&self, sources: &Sources, request: &SearchRequest) -> Result<()> {
        for scope in &request.scopes {
            if scope.time.is_some() || !scope.filters.is_empty() {
                match self.index_with_columns(sources.stream(&scope.stream)?.id) {
                    Ok(_) | Err(StoreError::IndexBuilding { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The index, or what is built of it so far, if that is not empty.
    fn searchable_index(&self) -> Result<(Arc<OpenIndex>, Option<Built>)> {
        match self.current_index() {
            Ok(open) => Ok((open, None)),
            Err(StoreError::IndexBuilding { indexed, written }) => {
                let open = self.open_index()?;
                if open.committed() == 0 {
                    return Err(StoreError::IndexBuilding { indexed, written });
                }
                Ok((open, Some((indexed, written))))
            }
            // Without room it stays as it is, which answers still.
            Err(error @ (StoreError::Full { .. } | StoreError::NoRoom { .. })) => {
                let open = self.open_index()?;
                match open.committed() {
                    0 => Err(error),
                    indexed => Ok((open, Some((indexed, self.newest())))),
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
        (view, version): (&View, u64),
        ranked: &[Ranked],
    ) -> Result<(Vec<Hit>, bool)> {
        let columns = MEASURED.as_str();
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {columns} FROM records WHERE row_id = ?1 AND data IS NOT NULL"
            ))?;
            let (mut hits, mut budget) = (Vec::with_capacity(ranked.len()), ByteBudget::default());
            for one in ranked {
                let Some(row) = view.row_of(one.address) else {
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
                        score: one.score,
                        row,
                        document: document_order(one.address),
                        generation: view.generation,
                        version,
                    },
                });
            }
            Ok((hits, true))
        })
    }
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
