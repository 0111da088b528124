//! Search over many streams with one ranking.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::RecordIndex;
use super::by_time::{TimePage, Times};
use super::engine::{OpenIndex, View};
use super::finding::{
    self, AfterScore, AskedWords, Counts, Name, Page, Question, Ranking, Searched, Statistics, Ties,
};
use super::meaning::Meant;
use super::restrict::{Restriction, by_stream};
use super::searched_fields::searched_fields;
use super::sources::{Sources, StreamEntry};
use super::truth::RowRecord;
use crate::catalog::StreamRef;
use crate::meaning::NearestWindow;
use crate::records::{Direction, PageRequest, StoredPage, StoredRecord};
use crate::search::{
    AggregateAnswer, AggregateRequest, Building, Extent, Hit, IndexStatus, Rank, Scope, Search,
    SearchAnswer, SearchOrder, SearchPosition, SearchRequest,
};
use crate::{Result, StoreError, stop};
use contract::key::RecordKey;
use contract::time::Instant;

impl Search for RecordIndex {
    fn search(&self, request: &SearchRequest) -> Result<SearchAnswer> {
        self.with_index(|| self.with_one_layout(&request.scopes, || self.find(request, None)))
    }

    fn neighbours(&self, scope: &Scope, rows: &[u64]) -> Result<Vec<[Option<StoredRecord>; 2]>> {
        self.with_index(|| self.with_one_layout([scope], || self.next_to(scope, rows)))
    }

    fn aggregate(&self, request: &AggregateRequest) -> Result<AggregateAnswer> {
        self.with_index(|| self.with_one_layout([&request.scope], || self.compute(request)))
    }

    fn select(&self, scope: &Scope, request: &PageRequest) -> Result<StoredPage> {
        self.with_index(|| self.with_one_layout([scope], || self.select_page(scope, request)))
    }

    fn extent(&self, scope: &Scope, latest: usize) -> Result<Extent> {
        self.with_index(|| self.with_one_layout([scope], || self.extent_of(scope, latest)))
    }

    fn passing_keys(&self, scope: &Scope) -> Result<Arc<Vec<RecordKey>>> {
        self.with_index(|| self.keys_that_pass(scope))
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
        let progress = RefCell::new(progress);
        let records = self.with_index(|| {
            let open = self.whole_index(&mut |taken| progress.borrow_mut()(taken))?;
            open.rest()?;
            Ok(open.view().searcher.num_docs())
        })?;
        progress.into_inner()(records);
        self.index.forget_damage()
    }
}

impl RecordIndex {
    /// The scopes of a request as tests on columns, and their streams.
    fn resolved<'s>(
        &self,
        request: &SearchRequest,
        sources: &'s Sources,
        open: &OpenIndex,
        rebuilding: &[StreamRef],
    ) -> Result<(Vec<Restriction>, Vec<&'s Arc<StreamEntry>>)> {
        let mut restrictions = Vec::with_capacity(request.scopes.len());
        let mut entries = Vec::with_capacity(request.scopes.len());
        for scope in &request.scopes {
            let entry = sources.stream(&scope.stream)?;
            let restriction = self.restriction(entry, scope, &open.fields)?;
            restrictions.push(restriction.unless_unfilled(scope, rebuilding));
            entries.push(entry);
        }
        Ok((restrictions, entries))
    }

    /// Answers a question by its words, or by what it means.
    pub(super) fn find(
        &self,
        request: &SearchRequest,
        meant: Option<&Meant<'_>>,
    ) -> Result<SearchAnswer> {
        let measured = self.measured_request(request);
        let request = measured.as_ref().unwrap_or(request);
        let sources = self.sources();
        self.fill_columns(&sources, request)?;
        // Read before the view is taken, which may hold more by then, but never less.
        let (version, _) = self.head()?;
        let (open, building) = self.searchable_index()?;
        // Also read before: the view may be complete by then, but a stream that is not is never missed.
        let rebuilding = self.rebuilding_streams(&sources)?;
        let view = open.view();
        let (restrictions, entries) = self.resolved(request, &sources, &open, &rebuilding)?;
        let fields = searched_fields(&sources, &open, &request.scopes, !rebuilding.is_empty())?;
        let by_stream = by_stream(&restrictions);
        let failed = super::engine::failed(self.path());
        let searched = Searched::new(&view, &restrictions, &by_stream, fields).map_err(&failed)?;
        let statistics = Statistics::new(&searched).map_err(&failed)?;
        stop::check()?;
        let words = AskedWords {
            expression: &request.expression,
            left_out: &self.left_out,
            row_field: open.fields.row,
        };
        let question = Question::new(&words, &statistics).map_err(&failed)?;
        stop::check()?;
        let times = Times::for_request(&view, request, &restrictions).map_err(&failed)?;
        let search = finding::Search::new(&question, request.by_year.then_some(&times));
        let vectors = self.look_up_vectors(meant, &entries)?;
        // As much of it as a cursor holds.
        let generation = view.generation.wrapping_add(vectors.generation) >> 24;
        let is_other = |after: SearchPosition| after.generation != generation;
        let asked = PageQuery {
            request,
            sources: &sources,
            view: &view,
            restrictions: &restrictions,
            times: &times,
            searched: &searched,
            moved: request.after.is_some_and(is_other),
        };
        let (ranking, mut chosen) = self.ranked(&search, &asked, meant)?;
        stop::check()?;
        let has_more = chosen.len() > request.limit;
        chosen.truncate(request.limit);
        let (hits, complete) = self.fetch_hits(&entries, (generation, version), &chosen)?;
        let counts = ranking.counts.filter(|_| request.count);
        Ok(SearchAnswer {
            hits,
            has_more: has_more || !complete,
            total: counts.as_ref().map(|counts| counts.values().sum()),
            by_stream: counts
                .as_ref()
                .map_or_else(Vec::new, |counts| by_stream_of(request, counts)),
            by_year: counts.as_ref().map_or_else(Vec::new, by_year_of),
            with_every_word: ranking.with_every_word,
            occurring: question.occurring(),
            prefix_truncated: question.prefix_truncated,
            expression: question.expression.clone(),
            ranking_changed: asked.moved,
            reindexed: self.reindexed_of(&rebuilding)?,
            rebuilding,
            building,
            behind: vectors.behind,
        })
    }

    fn ranked(
        &self,
        search: &finding::Search<'_>,
        asked: &PageQuery<'_>,
        meant: Option<&Meant<'_>>,
    ) -> Result<(Ranking, Vec<Chosen>)> {
        match (meant, asked.request.order) {
            (Some(meant), _) => self.by_meaning(search, asked, meant),
            (None, SearchOrder::Relevance) => self.by_relevance(search, asked),
            (None, SearchOrder::Time(direction)) => self.by_time(search, asked, direction),
        }
    }

    fn by_relevance(
        &self,
        search: &finding::Search<'_>,
        asked: &PageQuery<'_>,
    ) -> Result<(Ranking, Vec<Chosen>)> {
        let request = asked.request;
        let page = Page {
            limit: asked.limit(),
            after: asked.after_score(),
            count: request.count,
            moved: asked.moved,
        };
        let mut ranking = self.with_ties(asked, |ties| finding::rank(search, &page, ties))?;
        let found = std::mem::take(&mut ranking.found).into_iter();
        let chosen = found.map(|one| Chosen {
            rank: Rank::Score(one.score),
            row: one.row,
            near: one.near,
            window: None,
        });
        Ok((ranking, chosen.collect()))
    }

    /// Runs something that needs to know what orders equal scores.
    pub(super) fn with_ties<T>(
        &self,
        asked: &PageQuery<'_>,
        run: impl FnOnce(&Ties<'_>) -> tantivy::Result<T>,
    ) -> Result<T> {
        let lookup = Cell::new(Ok(()));
        let names = |rows: &[u64]| self.names_of(asked.sources, rows, &lookup);
        let ties = if asked.request.scopes.iter().any(Scope::is_limited) {
            Ties::Names(&names)
        } else {
            Ties::Rows
        };
        let outcome = run(&ties).map_err(super::engine::failed(self.path()))?;
        lookup.replace(Ok(()))?;
        Ok(outcome)
    }

    fn by_time(
        &self,
        search: &finding::Search<'_>,
        asked: &PageQuery<'_>,
        direction: Direction,
    ) -> Result<(Ranking, Vec<Chosen>)> {
        let page = TimePage {
            direction,
            limit: asked.limit(),
            after: asked.request.after.and_then(after_time),
        };
        let (view, sources) = (asked.view, asked.sources);
        let candidates = page.candidates(search, asked.times);
        let (candidates, ranking) = candidates.map_err(super::engine::failed(self.path()))?;
        let names = |rows: &[u64]| self.names(sources, rows);
        let chosen = page.choose(view, &names, candidates)?.into_iter();
        let chosen = chosen.filter_map(|(rank, address)| {
            Some(Chosen {
                rank,
                row: view.row_of(address)?,
                near: None,
                window: None,
            })
        });
        Ok((ranking, chosen.collect()))
    }

    fn next_to(&self, scope: &Scope, rows: &[u64]) -> Result<Vec<[Option<StoredRecord>; 2]>> {
        let sources = self.sources();
        let (open, _) = self.searchable_index()?;
        let rebuilding = self.rebuilding_streams(&sources)?;
        let view = open.view();
        let entry = sources.stream(&scope.stream)?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let restrictions = [restriction.unless_unfilled(scope, &rebuilding)];
        let by_stream = by_stream(&restrictions);
        let failed = super::engine::failed(self.path());
        let searched = Searched::new(&view, &restrictions, &by_stream, Vec::new());
        let searched = searched.map_err(&failed)?;
        let beside = finding::neighbours(&searched, open.fields.row, rows).map_err(&failed)?;
        let wanted: Vec<u64> = beside.iter().flatten().copied().flatten().collect();
        let (found, _) = self.truth.records(&[entry.id], &wanted)?;
        let found: BTreeMap<u64, StoredRecord> = found
            .into_iter()
            .map(|found| (found.row, found.record))
            .collect();
        // A record may stand between two of them.
        let record = |row: Option<u64>| row.and_then(|row| found.get(&row).cloned());
        Ok(beside.into_iter().map(|sides| sides.map(record)).collect())
    }

    /// The names of records. What goes wrong is left in `outcome`.
    fn names_of(
        &self,
        sources: &Sources,
        rows: &[u64],
        outcome: &Cell<Result<()>>,
    ) -> Vec<Option<Name>> {
        self.names(sources, rows).unwrap_or_else(|error| {
            outcome.set(Err(error));
            vec![None; rows.len()]
        })
    }

    fn names(&self, sources: &Sources, rows: &[u64]) -> Result<Vec<Option<Name>>> {
        let named = self.truth.names_of(rows)?.into_iter().map(|name| {
            let (stream, key) = name?;
            Some((sources.by_id(stream)?.stream.clone(), key))
        });
        Ok(named.collect())
    }

    /// A filter and an order must be exact, so columns that are being filled are filled first. Where that takes long, records without
    /// their columns do not pass, and the stream is named as not complete.
    fn fill_columns(&self, sources: &Sources, request: &SearchRequest) -> Result<()> {
        for scope in &request.scopes {
            let ordered = request.is_timed() && !scope.times.is_empty();
            let restricted = scope.time.is_some() || !scope.rules.is_empty();
            let tested = restricted || !scope.period.is_open();
            if ordered || tested || !scope.filters.is_empty() {
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
                        let (written, _) = self.head()?;
                        Ok((open, Some(Building { indexed, written })))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the records of the ranking, as far as a page holds them, and tells whether it holds all.
    fn fetch_hits(
        &self,
        entries: &[&Arc<StreamEntry>],
        (generation, version): (u64, u64),
        chosen: &[Chosen],
    ) -> Result<(Vec<Hit>, bool)> {
        let rows: Vec<u64> = chosen.iter().map(|one| one.row).collect();
        let streams: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
        let (records, complete) = self.truth.records(&streams, &rows)?;
        let near: Vec<u64> = chosen.iter().filter_map(|one| one.near).collect();
        let mut keys: BTreeMap<u64, RecordKey> = BTreeMap::new();
        if !near.is_empty() {
            let names = self.truth.names_of(&near)?.into_iter().zip(near);
            keys.extend(names.filter_map(|(name, row)| {
                let (_, key) = name?;
                Some((row, RecordKey::from_ordering_form(&key)))
            }));
        }
        let mut chosen = chosen.iter();
        let mut hits = Vec::with_capacity(records.len());
        for RowRecord {
            row,
            stream,
            record,
        } in records
        {
            // A record may have gone since the index was read; then it is no hit any more.
            let one = chosen.find(|one| one.row == row);
            let entry = entries.iter().find(|entry| entry.id == stream);
            let (Some(one), Some(entry)) = (one, entry) else {
                continue;
            };
            hits.push(Hit {
                stream: entry.stream.clone(),
                record,
                position: SearchPosition {
                    rank: one.rank,
                    row,
                    generation,
                    version,
                },
                near: one.near.and_then(|row| keys.get(&row).cloned()),
                window: one.window.clone(),
            });
        }
        Ok((hits, complete))
    }
}

pub(super) struct PageQuery<'a> {
    pub(super) request: &'a SearchRequest,
    sources: &'a Sources,
    view: &'a View,
    pub(super) restrictions: &'a [Restriction],
    /// Read where hits are ordered or counted by time.
    times: &'a [Times],
    pub(super) searched: &'a Searched<'a>,
    /// The index has changed since the previous page.
    pub(super) moved: bool,
}

impl PageQuery<'_> {
    /// One more than a page, to know whether there are more.
    pub(super) fn limit(&self) -> usize {
        self.request.limit.saturating_add(1)
    }

    pub(super) fn after_score(&self) -> Option<AfterScore> {
        self.request.after.and_then(after_score)
    }
}

/// A hit before its record is read.
pub(super) struct Chosen {
    pub(super) rank: Rank,
    pub(super) row: u64,
    /// The row of the record next to which it stands, if that is all that speaks for it.
    pub(super) near: Option<u64>,
    /// What comes nearest to the question, where no word does.
    pub(super) window: Option<NearestWindow>,
}

fn after_score(position: SearchPosition) -> Option<AfterScore> {
    match position.rank {
        Rank::Score(score) => Some(AfterScore {
            score,
            row: position.row,
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

/// The streams of a request, each with what was counted of it.
fn by_stream_of(request: &SearchRequest, counts: &Counts) -> Vec<(StreamRef, u64)> {
    let scopes = request.scopes.iter().enumerate();
    let count = |at: usize| {
        let here = counts.range((at, None)..(at + 1, None));
        here.map(|(_, count)| count).sum()
    };
    scopes
        .map(|(at, scope)| (scope.stream.clone(), count(at)))
        .collect()
}

fn by_year_of(counts: &Counts) -> Vec<(i16, u64)> {
    let mut by_year = BTreeMap::new();
    for ((_, year), count) in counts {
        if let Some(year) = year {
            *by_year.entry(*year).or_default() += count;
        }
    }
    by_year.into_iter().collect()
}
