//! A page of the records that pass a scope, in cursor order.
//!
//! The index knows which records pass, the database knows their order. Few that pass are fetched and sorted; when many
//! pass, walking the order meets enough of them soon. Either way the work is bounded by a few thousand steps, however
//! large the stream is.

use std::cmp::Ordering;

use super::documents::Blocks;
use super::indexed_record::value_of;
use super::parse_stored;
use super::sources::StreamEntry;
use super::{RecordIndex, still_building};
use crate::records::{
    ByteBudget, Direction, OrderBy, PagePosition, PageRequest, SortValue, StoredPage,
};
use crate::search::Scope;
use crate::{Result, StoreError, stop};

/// Up to this many matches are fetched and sorted.
const FEW: usize = 4_000;
/// How many records are looked at for a page while the index is being built.
const WALKED: usize = 20_000;
/// After how many records cancellation is checked.
const LOOK_EVERY: u32 = 1024;

impl RecordIndex {
    pub(super) fn select_page(&self, scope: &Scope, request: &PageRequest) -> Result<StoredPage> {
        let sources = self.sources();
        let entry = sources.stream(&scope.stream)?;
        if scope.is_whole_stream() {
            return self.truth.page(entry.id, request);
        }
        let open = match self.index_with_columns(entry.id) {
            Err(StoreError::IndexBuilding { .. }) => {
                let page = self.page_without_index(entry, scope, request, WALKED)?;
                return match page {
                    Some(page) => Ok(page),
                    None => Err(still_building(&*self.open_index()?, self.head()?.0)),
                };
            }
            open => open?,
        };
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let view = open.view();
        let failed = super::engine::failed(self.path());
        let mut rows = Vec::new();
        for segment in view.segments() {
            let blocks = Blocks::new(&open, segment, &restriction).map_err(&failed)?;
            let mut numbers = Vec::new();
            blocks.for_each(&mut |documents| {
                documents.values(&segment.columns.rows, &mut numbers, |_, row| rows.push(row));
            });
            stop::check()?;
        }
        rows.sort_unstable();
        let page = if rows.len() <= FEW {
            self.sorted(entry.id, &rows, request)
        } else {
            self.walked(entry.id, &rows, request)
        }?;
        stop::check()?;
        Ok(page)
    }

    /// A page without asking the index: the order is walked, and each record held against the scope. `None` where too many
    /// do not pass.
    fn page_without_index(
        &self,
        entry: &StreamEntry,
        scope: &Scope,
        request: &PageRequest,
        most: usize,
    ) -> Result<Option<StoredPage>> {
        let open = self.open_index()?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let (mut records, mut budget) = (Vec::new(), ByteBudget::default());
        let mut looked = 0;
        let mut is_last = request.limit > 0;
        if !is_last {
            return Ok(Some(StoredPage { records, is_last }));
        }
        self.truth.walk(entry.id, request, &mut |row, record| {
            if record.is_damaged {
                records.push(record);
                looked += 1;
                is_last = records.len() < request.limit;
                return Ok(is_last);
            }
            let body = parse_stored(record.body.clone(), self.path())?;
            let value = |name: &str| value_of(entry, &open.fields, name, &body);
            if restriction.admits(row, value) {
                is_last = budget.take(record.body.len());
                if !is_last {
                    return Ok(false);
                }
                records.push(record);
            }
            looked += 1;
            is_last = records.len() < request.limit;
            Ok(is_last && looked < most && !stop::asked())
        })?;
        stop::check()?;
        if looked >= most && is_last {
            return Ok(None);
        }
        Ok(Some(StoredPage { records, is_last }))
    }

    /// Fetches all matches and cuts the page out of them.
    fn sorted(&self, stream: i64, rows: &[u64], request: &PageRequest) -> Result<StoredPage> {
        let mut found = self.truth.positions(rows)?;
        found.retain(|(position, _)| {
            request
                .after
                .as_ref()
                .is_none_or(|after| compare(request, after, position) == Ordering::Less)
        });
        found.sort_by(|(one, _), (other, _)| compare(request, one, other));
        let is_last = found.len() < request.limit;
        found.truncate(request.limit);
        let chosen: Vec<u64> = found.into_iter().map(|(_, row)| row).collect();
        self.page_of(stream, &chosen, is_last)
    }

    /// Walks the order and keeps what passes, until the page is full.
    fn walked(&self, stream: i64, rows: &[u64], request: &PageRequest) -> Result<StoredPage> {
        let (mut chosen, mut walked) = (Vec::new(), 0_u32);
        if request.limit == 0 {
            return self.page_of(stream, &chosen, false);
        }
        self.truth.walk_rows(stream, request, &mut |row| {
            if rows.binary_search(&row).is_ok() {
                chosen.push(row);
            }
            walked += 1;
            let gone = walked.is_multiple_of(LOOK_EVERY) && stop::asked();
            chosen.len() < request.limit && !gone
        })?;
        let is_last = chosen.len() < request.limit;
        self.page_of(stream, &chosen, is_last)
    }

    /// The records of these rows of a stream, as far as a page holds them.
    fn page_of(&self, stream: i64, rows: &[u64], is_last: bool) -> Result<StoredPage> {
        let (records, complete) = self.truth.records(&[stream], rows)?;
        Ok(StoredPage {
            records: records.into_iter().map(|found| found.record).collect(),
            is_last: is_last && complete,
        })
    }
}

/// The order of a page: by cursor value where asked, missing ones last in both directions, then by key.
fn compare(request: &PageRequest, one: &PagePosition, other: &PagePosition) -> Ordering {
    let directed = |ordering: Ordering| match request.direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    };
    let by_sort = match request.by {
        OrderBy::Key => Ordering::Equal,
        OrderBy::Cursor => match (one.sort, other.sort) {
            (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
            (SortValue::Missing, _) => Ordering::Greater,
            (_, SortValue::Missing) => Ordering::Less,
            (one, other) => directed(compare_present(one, other)),
        },
    };
    by_sort.then_with(|| directed(one.key.ordering_form().cmp(&other.key.ordering_form())))
}

/// As the database compares: integers exactly, and mixed with floats by value.
fn compare_present(one: SortValue, other: SortValue) -> Ordering {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a stream's cursor has one type, so mixed pairs do not arise from records"
    )]
    let float = |value: SortValue| match value {
        SortValue::Integer(value) => value as f64,
        SortValue::Real(value) => value,
        SortValue::Missing => f64::INFINITY,
    };
    match (one, other) {
        (SortValue::Integer(one), SortValue::Integer(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}
