//! How much a scope holds: its records counted, and which of them were emitted latest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tantivy::DocAddress;

use super::EmbeddedStore;
use super::documents::Blocks;
use super::index::{EMITTED, View};
use super::select::fetch;
use crate::Result;
use crate::search::{Extent, Scope};

impl EmbeddedStore {
    pub(super) fn extent_of(&self, scope: &Scope, latest: usize) -> Result<Extent> {
        let sources = self.sources();
        let entry = sources.stream(&scope.stream)?;
        let open = self.index_with_columns(entry.id)?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let view = open.view();
        let failed = super::index::failed(self.path());
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
                documents.values(&column, &mut moments, |place, moment| {
                    if found.wants(moment) {
                        found.add(
                            moment,
                            DocAddress::new(segment.ordinal, documents.at(place)),
                        );
                    }
                });
            });
        }
        let rows = found.rows(&view);
        Ok(Extent {
            records,
            latest: self
                .database
                .read(|connection| fetch(connection, rows.into_iter()))?,
        })
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

    /// Their records, latest first.
    fn rows(self, view: &View) -> Vec<u64> {
        let sorted = self.earliest_first.into_sorted_vec().into_iter();
        sorted
            .filter_map(|Reverse((_, Reverse(address)))| view.row_of(address))
            .collect()
    }
}
