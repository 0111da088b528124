//! Matches in the order of their own time, with pages that continue exactly.
//!
//! Equal times, and records without a time, are ordered by connection, stream and key. The order of the index would show in
//! which order records arrived, which may be that of a field the reader does not see.

use std::collections::BTreeMap;

use contract::time::Instant;
use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId};

use super::engine::{Segment, View};
use super::finding::{self, Name};
use super::restrict::Restriction;
use crate::Result;
use crate::records::Direction;
use crate::search::{Rank, SearchRequest};

/// The first of these comes first. Records without a time come last in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The time, reversed where the newest come first.
    Timed(i64),
    Untimed,
}

impl Class {
    fn new(time: Option<i64>, direction: Direction) -> Self {
        match (time, direction) {
            (None, _) => Self::Untimed,
            (Some(time), Direction::Ascending) => Self::Timed(time),
            // The complement orders the other way round, without overflow.
            (Some(time), Direction::Descending) => Self::Timed(!time),
        }
    }

    fn rank(self, direction: Direction) -> Rank {
        Rank::Time(match (self, direction) {
            (Self::Untimed, _) => None,
            (Self::Timed(time), Direction::Ascending) => Some(Instant(time)),
            (Self::Timed(time), Direction::Descending) => Some(Instant(!time)),
        })
    }
}

/// Looks up the names of records; `None` where one was erased.
pub(super) type Names<'a> = dyn Fn(&[u64]) -> Result<Vec<Option<Name>>> + 'a;

pub(super) struct TimePage {
    pub(super) direction: Direction,
    pub(super) limit: usize,
    /// The time and the row of the last hit of the previous page.
    pub(super) after: Option<(Option<Instant>, u64)>,
}

/// Matches that may be on the page, by class: all of a class, or none.
#[derive(Default)]
pub(super) struct Candidates {
    classes: BTreeMap<Class, Vec<DocAddress>>,
    /// How many of them surely come after the previous page.
    certain: usize,
}

impl TimePage {
    fn after_class(&self) -> Option<Class> {
        let (time, _) = self.after?;
        Some(Class::new(time.map(|time| time.0), self.direction))
    }

    /// The matches that may be on the page, and figures about all.
    pub(super) fn candidates(
        &self,
        search: &finding::Search<'_>,
        times: &[Times],
    ) -> tantivy::Result<(Candidates, finding::Ranking)> {
        let mut candidates = Candidates::default();
        let figures = search.for_each(&mut |gate, document| {
            let ordinal = gate.segment.ordinal;
            let times = times.get(ordinal as usize);
            if let (Some(scope), Some(times)) = (gate.scope_of(document), times) {
                let class = Class::new(times.first_time(scope, document), self.direction);
                let address = DocAddress::new(ordinal, document);
                self.offer(&mut candidates, class, address);
            }
        })?;
        Ok((candidates, figures))
    }

    fn offer(&self, candidates: &mut Candidates, class: Class, address: DocAddress) {
        let after = self.after_class();
        let full = candidates.certain >= self.limit;
        let last = candidates.classes.last_key_value();
        if after.is_some_and(|after| class < after)
            || (full && last.is_some_and(|(last, _)| class > *last))
        {
            return;
        }
        candidates.classes.entry(class).or_default().push(address);
        // Of the class of the last hit it is not known yet which come after it.
        if Some(class) != after {
            candidates.certain += 1;
        }
        while let Some(last) = candidates.classes.last_entry() {
            let (is_certain, size) = (Some(*last.key()) != after, last.get().len());
            if !is_certain || candidates.certain.saturating_sub(size) < self.limit {
                break;
            }
            candidates.certain -= size;
            last.remove();
        }
    }

    /// The hits of the page, in order.
    pub(super) fn choose(
        &self,
        view: &View,
        names: &Names<'_>,
        candidates: Candidates,
    ) -> Result<Vec<(Rank, DocAddress)>> {
        let mut chosen = Vec::new();
        for (class, documents) in candidates.classes {
            if chosen.len() >= self.limit {
                break;
            }
            let with_row = |address| Some((address, view.row_of(address)?));
            let (addresses, rows): (Vec<_>, Vec<_>) =
                documents.into_iter().filter_map(with_row).unzip();
            let with_name = names(&rows)?.into_iter().zip(addresses);
            let mut found: Vec<_> = with_name
                .filter_map(|(name, address)| Some((name?, address)))
                .collect();
            if let (true, Some((_, row))) = (self.after_class() == Some(class), self.after)
                && let Some(last) = names(&[row])?.pop().flatten()
            {
                found.retain(|(name, _)| *name > last);
            }
            found.sort_unstable();
            let rank = class.rank(self.direction);
            chosen.extend(found.into_iter().map(|(_, address)| (rank, address)));
        }
        chosen.truncate(self.limit);
        Ok(chosen)
    }
}

/// The time columns of one segment, for each restriction.
pub(super) struct Times(Vec<Vec<Column<i64>>>);

impl Times {
    /// Those of all segments, where a request looks at times.
    pub(super) fn for_request(
        view: &View,
        request: &SearchRequest,
        restrictions: &[Restriction],
    ) -> tantivy::Result<Vec<Self>> {
        let segments = view.segments().filter(|_| request.is_timed());
        segments
            .map(|segment| Self::new(segment, restrictions))
            .collect()
    }

    fn new(segment: Segment<'_>, restrictions: &[Restriction]) -> tantivy::Result<Self> {
        let columns = segment.reader.fast_fields();
        let mut times = Vec::with_capacity(restrictions.len());
        for restriction in restrictions {
            let mut found = Vec::new();
            for name in &restriction.times {
                found.extend(columns.column_opt(name)?);
            }
            times.push(found);
        }
        Ok(Self(times))
    }

    fn first_time(&self, scope: usize, document: DocId) -> Option<i64> {
        let mut columns = self.0.get(scope)?.iter();
        columns.find_map(|column| column.first(document))
    }

    pub(super) fn year(&self, scope: usize, document: DocId) -> Option<i16> {
        Instant(self.first_time(scope, document)?).year()
    }
}
