//! Ranked search over many streams with one ranking, and the upkeep of the index.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::Hasher;

use rusqlite::OptionalExtension;
use siphasher::sip::SipHasher13;
use tantivy::query::EnableScoring;
use tantivy::{DocAddress, Searcher};

use super::EmbeddedStore;
use super::catalog::live_rows;
use super::changes::parse_stored;
use super::index::{Indexable, OpenIndex, ROW};
use super::layout::SlotKind;
use super::query;
use super::records::stored;
use super::restrict::{Restriction, SegmentScopes, by_stream};
use super::sources::Sources;
use crate::records::{PageRequest, StoredRecord};
use crate::search::{
    AggregateAnswer, AggregateRequest, Hit, IndexStatus, Scope, Search, SearchAnswer,
    SearchPosition, SearchRequest,
};
use crate::{Result, StoreError};

/// Records indexed again between two commits.
const REINDEX_CHUNK: usize = 20_000;

impl Search for EmbeddedStore {
    fn search(&self, request: &SearchRequest) -> Result<SearchAnswer> {
        let sources = self.sources();
        let open = self.current_index()?;
        let searcher = open.searcher();
        let generation = generation(&searcher);
        let rebuilding = self.rebuilding_streams(&sources)?;
        let mut groups = self.groups(&sources, &open, request)?;
        // While a stream is being indexed again, its documents may still hold words of fields it no longer searches.
        if rebuilding.is_empty() {
            merge_whole_streams(&mut groups, &sources);
        }
        let moved = request
            .after
            .is_some_and(|after| after.generation != generation);
        let ranking = Ranking {
            by_row: moved,
            // Documents come in order within a group, so of equal scores the first one stays; else all must be seen.
            visit_ties: moved || groups.len() > 1,
            after: request.after,
        };
        let failed = super::index::failed(self.path());
        let mut best = Best::new(request.limit.saturating_add(1));
        let mut total = 0;
        for (slots, restrictions) in &groups {
            let fields: Vec<_> = slots
                .iter()
                .filter_map(|slot| open.fields.slot(SlotKind::Text, *slot))
                .collect();
            let query = query::build(&request.expression, &fields, &searcher).map_err(&failed)?;
            let Some(query) = query else { continue };
            let found = rank(&searcher, query.as_ref(), restrictions, &ranking, &mut best);
            found.map_err(&failed)?;
            if request.count {
                total += count(&searcher, query.as_ref(), restrictions).map_err(&failed)?;
            }
        }
        let mut ranked = best.into_sorted();
        let has_more = ranked.len() > request.limit;
        ranked.truncate(request.limit);
        Ok(SearchAnswer {
            hits: self.fetch_hits(&sources, &searcher, &ranked, generation)?,
            has_more,
            total: request.count.then_some(total),
            ranking_changed: moved,
            rebuilding,
        })
    }

    fn aggregate(&self, request: &AggregateRequest) -> Result<AggregateAnswer> {
        self.compute(request)
    }

    fn select(&self, scope: &Scope, request: &PageRequest) -> Result<Vec<StoredRecord>> {
        self.select_page(scope, request)
    }

    fn index_status(&self) -> Result<IndexStatus> {
        self.status()
    }

    fn settle_index(&self) -> Result<()> {
        let open = self.current_index()?;
        while self.reindex_chunk(&open)? {}
        open.rest()
    }

    fn rebuild_index(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        self.index.discard()?;
        self.database.transact(|transaction| {
            transaction
                .execute("DELETE FROM reindexing", [])
                .map_err(self.database.failed())
        })?;
        let open = self.current_index()?;
        open.rest()?;
        progress(open.searcher().num_docs());
        Ok(())
    }
}

/// Scopes that look at the same slots can share a query.
type Groups = BTreeMap<Vec<usize>, Vec<Restriction>>;

impl EmbeddedStore {
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
                .filter_map(|field| entry.layout.place(field, SlotKind::Text))
                .map(|place| place.slot)
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

    fn fetch_hits(
        &self,
        sources: &Sources,
        searcher: &Searcher,
        ranked: &[Ranked],
        generation: u64,
    ) -> Result<Vec<Hit>> {
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, emitted_at, data, sort, stream_id FROM records WHERE row_id = ?1 AND data IS NOT NULL",
            )?;
            let mut hits = Vec::with_capacity(ranked.len());
            for one in ranked {
                let Some(row) = row_of(searcher, one.address) else { continue };
                let found = statement
                    .query_row([row], |found| Ok((stored(found)?, found.get::<_, i64>(4)?)))
                    .optional()?;
                // A record may have gone since the index was read; then it is no hit any more.
                let Some((record, stream)) = found else { continue };
                let Some(entry) = sources.by_id(stream) else { continue };
                hits.push(Hit {
                    stream: entry.stream.clone(),
                    record,
                    position: SearchPosition {
                        score: one.score,
                        row,
                        place: place(one.address),
                        generation,
                    },
                });
            }
            Ok(hits)
        })
    }

    /// Indexes some more records of a stream whose declaration changed. Answers whether there may be more.
    pub(super) fn reindex_chunk(&self, open: &OpenIndex) -> Result<bool> {
        let next: Option<(i64, i64, i64)> = self.database.read(|connection| {
            connection
                .prepare_cached("SELECT stream_id, next_row, last_row FROM reindexing LIMIT 1")?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })?;
        let Some((stream, next_row, last_row)) = next else {
            return Ok(false);
        };
        let sources = self.sources();
        let rows = self.database.read(|connection| {
            live_rows(connection, stream, (next_row - 1, last_row), REINDEX_CHUNK)
        })?;
        let done = rows.len() < REINDEX_CHUNK;
        let resume = rows.last().map_or(last_row, |(row, ..)| row + 1);
        if let Some(entry) = sources.by_id(stream) {
            let mut bodies = Vec::with_capacity(rows.len());
            for (row, emitted_at, data) in rows {
                bodies.push((row, emitted_at, parse_stored(data, self.path())?));
            }
            open.reindex(bodies.iter().map(|(row, emitted_at, body)| Indexable {
                row: row.cast_unsigned(),
                stream: stream.cast_unsigned(),
                emitted_at,
                layout: &entry.layout,
                body,
            }))?;
        }
        let sql = if done {
            "DELETE FROM reindexing WHERE stream_id = ?1 AND ?2 > 0"
        } else {
            "UPDATE reindexing SET next_row = ?2 WHERE stream_id = ?1"
        };
        self.database.transact(|transaction| {
            transaction
                .execute(sql, [stream, resume])
                .map_err(self.database.failed())
        })?;
        Ok(true)
    }
}

/// Slots beyond those a stream uses are empty for it, so streams admitted with all their lexical fields can share the
/// query of the widest one: then one flat query serves a whole owner.
fn merge_whole_streams(groups: &mut Groups, sources: &Sources) {
    let complete = |slots: &[usize], restriction: &Restriction| {
        sources
            .by_id(restriction.stream.cast_signed())
            .is_some_and(|entry| {
                let mut places = entry
                    .layout
                    .places
                    .iter()
                    .filter(|place| place.kind == SlotKind::Text);
                places.all(|place| slots.contains(&place.slot))
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

/// How hits are ordered and where the page starts.
struct Ranking {
    by_row: bool,
    visit_ties: bool,
    after: Option<SearchPosition>,
}

impl Ranking {
    /// Whether a hit comes after the previous page. Of equal scores, the smaller number comes first.
    fn follows(&self, score: f32, tie: u64) -> bool {
        self.after.is_none_or(|after| {
            let previous = if self.by_row { after.row } else { after.place };
            match score.total_cmp(&after.score) {
                Ordering::Less => true,
                Ordering::Equal => tie > previous,
                Ordering::Greater => false,
            }
        })
    }
}

fn rank(
    searcher: &Searcher,
    query: &dyn tantivy::query::Query,
    restrictions: &[Restriction],
    ranking: &Ranking,
    best: &mut Best,
) -> tantivy::Result<()> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let by_stream = by_stream(restrictions);
    for (ordinal, segment) in (0_u32..).zip(searcher.segment_readers()) {
        let scopes = SegmentScopes::new(segment, restrictions, &by_stream)?;
        let alive = segment.alive_bitset();
        let rows = if ranking.by_row {
            Some(segment.fast_fields().u64(ROW)?)
        } else {
            None
        };
        weight.for_each_pruning(
            best.threshold(ranking.visit_ties),
            segment,
            &mut |document, score| {
                if alive.is_none_or(|alive| alive.is_alive(document)) && scopes.admit(document) {
                    let address = DocAddress::new(ordinal, document);
                    let tie = match &rows {
                        Some(rows) => rows.first(document).unwrap_or(u64::MAX),
                        None => place(address),
                    };
                    if ranking.follows(score, tie) {
                        best.offer(Ranked {
                            score,
                            tie,
                            address,
                        });
                    }
                }
                best.threshold(ranking.visit_ties)
            },
        )?;
    }
    Ok(())
}

fn count(
    searcher: &Searcher,
    query: &dyn tantivy::query::Query,
    restrictions: &[Restriction],
) -> tantivy::Result<u64> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    let by_stream = by_stream(restrictions);
    let mut total = 0;
    for segment in searcher.segment_readers() {
        let scopes = SegmentScopes::new(segment, restrictions, &by_stream)?;
        let alive = segment.alive_bitset();
        weight.for_each_no_score(segment, &mut |documents| {
            let admitted = documents.iter().filter(|document| {
                alive.is_none_or(|alive| alive.is_alive(**document)) && scopes.admit(**document)
            });
            total += admitted.count() as u64;
        })?;
    }
    Ok(total)
}

/// A document that matched.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked {
    score: f32,
    tie: u64,
    address: DocAddress,
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

/// The best few documents so far.
struct Best {
    limit: usize,
    worst_first: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            worst_first: BinaryHeap::with_capacity(limit.min(1024) + 1),
        }
    }

    /// The score a document must exceed to matter.
    fn threshold(&self, visit_ties: bool) -> f32 {
        match self.worst_first.peek() {
            Some(Reverse(worst)) if self.worst_first.len() >= self.limit => {
                if visit_ties {
                    worst.score.next_down()
                } else {
                    worst.score
                }
            }
            _ => f32::MIN,
        }
    }

    fn offer(&mut self, ranked: Ranked) {
        if self.worst_first.len() < self.limit {
            self.worst_first.push(Reverse(ranked));
        } else if let Some(mut worst) = self.worst_first.peek_mut()
            && ranked > worst.0
        {
            *worst = Reverse(ranked);
        }
    }

    fn into_sorted(self) -> Vec<Ranked> {
        self.worst_first
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(ranked)| ranked)
            .collect()
    }
}

/// A document's place as one number that orders like segment and document.
fn place(address: DocAddress) -> u64 {
    u64::from(address.segment_ord) << 32 | u64::from(address.doc_id)
}

/// The record row of a document.
pub(super) fn row_of(searcher: &Searcher, address: DocAddress) -> Option<u64> {
    let segment = searcher.segment_reader(address.segment_ord);
    segment.fast_fields().u64(ROW).ok()?.first(address.doc_id)
}

/// Names a state of the index: scores and places are comparable within it.
fn generation(searcher: &Searcher) -> u64 {
    let mut hasher = SipHasher13::new();
    for (segment, deletes) in searcher.generation().segments() {
        hasher.write(segment.uuid_string().as_bytes());
        hasher.write_u64(deletes.unwrap_or_default());
    }
    hasher.finish()
}

impl EmbeddedStore {
    /// An aggregate must be exact, so columns that are being filled are filled first.
    pub(super) fn index_with_columns(
        &self,
        stream: i64,
    ) -> Result<std::sync::Arc<OpenIndex>, StoreError> {
        let open = self.current_index()?;
        loop {
            let pending: Option<i64> = self.database.read(|connection| {
                connection
                    .prepare_cached("SELECT 1 FROM reindexing WHERE stream_id = ?1")?
                    .query_row([stream], |row| row.get(0))
                    .optional()
            })?;
            if pending.is_none() {
                return Ok(open);
            }
            self.reindex_chunk(&open)?;
        }
    }
}
