//! How much a scope holds: its records counted, and which of them were emitted latest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use contract::id::FieldName;
use contract::json::RecordBody;
use contract::time::{Instant, TimeRange};
use tantivy::DocAddress;

use super::RecordIndex;
use super::documents::Blocks;
use super::engine::EMITTED;
use super::indexed_record::{IndexedRecords, LeftOut, steady};
use super::remembered::Remembered;
use crate::catalog::StreamRef;
use crate::records::{LARGE_BYTES, StoredRecord};
use crate::search::{Extent, Scope};
use crate::{Result, stop};

/// The key of a cached extent: a scope without keys and filters. The rules stand in it as text.
type Span = (StreamRef, Option<(FieldName, TimeRange)>, String);

/// Extents measured since the last change. A schema asks for those of all its streams each time, and what it costs must
/// not depend on how many records there are.
pub(super) type Extents = Remembered<Span, Extent>;

impl RecordIndex {
    pub(super) fn extent_of(&self, scope: &Scope, latest: usize) -> Result<Extent> {
        if latest != 1 || scope.keys.is_some() || !scope.filters.is_empty() {
            return self.measure(scope, latest);
        }
        let (head, sources) = (self.head()?, self.sources());
        let rules = format!("{:?}", scope.rules);
        let span = (scope.stream.clone(), scope.time.clone(), rules);
        if let Some(known) = self.extents.get(&head, &sources, &span) {
            return Ok(known);
        }
        let extent = self.measure(scope, latest)?;
        // The measured extent may already include later changes; it is then forgotten with the version it is kept under.
        let is_small = |record: &StoredRecord| record.body.len() <= LARGE_BYTES;
        if extent.latest.iter().all(is_small) {
            self.extents.keep(&head, &sources, span, extent.clone());
        }
        Ok(extent)
    }

    fn measure(&self, scope: &Scope, latest: usize) -> Result<Extent> {
        // What is damaged has no date that can be told; those who read it are.
        steady(self, |left_out| self.measured(scope, latest, left_out)).map(|(extent, _)| extent)
    }

    /// The extent; `None` if a record of it was erased meanwhile, or is damaged.
    fn measured(
        &self,
        scope: &Scope,
        latest: usize,
        left_out: &mut LeftOut,
    ) -> Result<Option<Extent>> {
        let sources = self.sources();
        let entry = sources.stream(&scope.stream)?;
        let open = self.index_with_columns(entry.id)?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let view = open.view();
        let failed = super::engine::failed(self.path());
        let mut records = 0;
        let mut found = Latest {
            limit: latest,
            earliest_first: BinaryHeap::new(),
        };
        for segment in view.segments() {
            let column = segment.reader.fast_fields().i64(EMITTED).map_err(&failed)?;
            let blocks = Blocks::new(&open, segment, &restriction).map_err(&failed)?;
            let mut moments = Vec::new();
            records += blocks.for_each(&mut |documents| {
                documents.values(&column, &mut moments, |index, moment| {
                    let address = DocAddress::new(segment.ordinal, documents.at(index));
                    let is_left_out = || {
                        let row = view.row_of(address);
                        row.is_some_and(|row| left_out.rows.contains(&row))
                    };
                    if found.wants(moment) && !is_left_out() {
                        found.add(moment, address);
                    }
                });
            });
            stop::check()?;
        }
        let indexed = IndexedRecords {
            store: self,
            entry,
            fields: &open.fields,
            restriction: &restriction,
            view: &view,
        };
        let mut latest = Vec::with_capacity(found.earliest_first.len());
        for (moment, address) in found.latest_first() {
            let emitted_then = |record: &StoredRecord, _: &RecordBody| {
                Instant::parse(&record.emitted_at) == Some(Instant(moment))
            };
            let Some((record, _)) = indexed.record(address, left_out, emitted_then)? else {
                return Ok(None);
            };
            latest.push(record);
        }
        Ok(Some(Extent { records, latest }))
    }
}

/// The latest documents so far; of equal moments those that came first.
struct Latest {
    limit: usize,
    earliest_first: BinaryHeap<Reverse<(i64, Reverse<DocAddress>)>>,
}

impl Latest {
    fn wants(&self, moment: i64) -> bool {
        let earliest = self.earliest_first.peek();
        self.earliest_first.len() < self.limit
            || earliest.is_some_and(|Reverse((earliest, _))| moment > *earliest)
    }

    fn add(&mut self, moment: i64, address: DocAddress) {
        if self.earliest_first.len() == self.limit {
            self.earliest_first.pop();
        }
        self.earliest_first
            .push(Reverse((moment, Reverse(address))));
    }

    /// Moments and documents, latest first.
    fn latest_first(self) -> impl Iterator<Item = (i64, DocAddress)> {
        let sorted = self.earliest_first.into_sorted_vec().into_iter();
        sorted.map(|Reverse((moment, Reverse(address)))| (moment, address))
    }
}
