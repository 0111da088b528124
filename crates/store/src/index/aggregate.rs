//! Aggregates computed exactly from index columns, without reading records.

use std::cmp::Ordering;

use super::RecordIndex;
use super::documents::Blocks;
use super::groups::Groups;
use super::indexed_record::{IndexedRecords, LeftOut, steady};
use super::tally::{FinishedGroup, Measure, Total};
use crate::search::{AggregateAnswer, AggregateRequest, Group, GroupKey, Grouping, Metric, Value};
use crate::{Result, stop};

impl RecordIndex {
    pub(super) fn compute(&self, request: &AggregateRequest) -> Result<AggregateAnswer> {
        if request.is_plain_count() && request.scope.is_limited() {
            // It is remembered, as that of a whole stream is kept.
            let count = self.extent_of(&request.scope, 1)?.records;
            return Ok(AggregateAnswer::number(count, Value::Integer(count.into())));
        }
        let (answer, damaged) = steady(self, |left_out| self.figure(request, left_out))?;
        Ok(AggregateAnswer { damaged, ..answer })
    }

    /// The answer; `None` if a record behind it was erased meanwhile, or is damaged.
    fn figure(
        &self,
        request: &AggregateRequest,
        left_out: &mut LeftOut,
    ) -> Result<Option<AggregateAnswer>> {
        let sources = self.sources();
        let entry = sources.stream(&request.scope.stream)?;
        if request.is_plain_count() && request.scope.is_whole_stream() {
            return self.whole_count(entry.id).map(Some);
        }
        let open = self.index_with_columns(entry.id)?;
        let restriction = self.restriction(entry, &request.scope, &open.fields)?;
        let restriction = restriction.without(&left_out.rows);
        let view = open.view();
        let failed = super::engine::failed(self.path());
        let measure = Measure::new(&request.metric, entry)?;
        let mut groups = Groups::new(request.grouping.as_ref(), entry, &view.searcher, &measure)?;
        let mut matched = 0;
        for segment in view.segments() {
            let blocks = Blocks::new(&open, segment, &restriction).map_err(&failed)?;
            groups
                .add_segment(segment, |each| matched += blocks.for_each(each))
                .map_err(&failed)?;
            stop::check()?;
        }
        if matches!(measure, Measure::Distinct(_)) {
            let distinct = groups.distinct().map_err(&failed)?;
            stop::check()?;
            let value = Value::Integer(distinct.into());
            return Ok(Some(AggregateAnswer::number(matched, value)));
        }
        let indexed = IndexedRecords {
            store: self,
            entry,
            fields: &open.fields,
            restriction: &restriction,
            view: &view,
        };
        let mut valued = |total| value(&indexed, request, (&measure, total), left_out);
        let Some(grouping) = &request.grouping else {
            let only = groups.finish(&|_| {}).map_err(&failed)?.pop();
            let total = only.map_or(Total::Nothing, |group| group.total);
            let value = match request.metric {
                Metric::Count => Some(Value::Integer(matched.into())),
                _ => valued(total)?,
            };
            return Ok(value.map(|value| AggregateAnswer::number(matched, value)));
        };
        let top = Top::for_grouping(grouping);
        let counted = matched + groups.repeated();
        let mut groups = groups
            .finish(&|groups| top.prune(groups))
            .map_err(&failed)?;
        stop::check()?;
        top.cut(&mut groups);
        let groups = grouped(request, groups, &mut valued)?;
        Ok(groups.map(|groups| AggregateAnswer::grouped(matched, counted, groups)))
    }

    /// The catalog keeps this number.
    fn whole_count(&self, stream: i64) -> Result<AggregateAnswer> {
        let count = self.truth.live_in(stream)?;
        Ok(AggregateAnswer::number(count, Value::Integer(count.into())))
    }
}

/// The groups with their values; `None` if a record behind one was erased meanwhile, or is damaged.
fn grouped(
    request: &AggregateRequest,
    finished: Vec<FinishedGroup>,
    valued: &mut dyn FnMut(Total) -> Result<Option<Value>>,
) -> Result<Option<Vec<Group>>> {
    let plain = request.metric == Metric::Count;
    let mut groups = Vec::with_capacity(finished.len());
    for FinishedGroup { key, count, total } in finished {
        let value = if plain {
            None
        } else {
            let Some(value) = valued(total)? else {
                return Ok(None);
            };
            Some(value)
        };
        groups.push(Group { key, count, value });
    }
    Ok(Some(groups))
}

/// Turns a total into a value. The smallest and the largest are given as the record had them when it was indexed; `None`
/// where the record was erased since, or is damaged.
fn value(
    indexed: &IndexedRecords<'_>,
    request: &AggregateRequest,
    (measure, total): (&Measure, Total),
    left_out: &mut LeftOut,
) -> Result<Option<Value>> {
    let (Metric::Min(field) | Metric::Max(field)) = &request.metric else {
        return Ok(Some(total.into_number()));
    };
    let Total::At(best, address) = total else {
        return Ok(Some(Value::None));
    };
    let record = indexed.record(address, left_out, |_, body| {
        measure.has(best, |name| indexed.value(name, body))
    })?;
    let raw = record.and_then(|(_, body)| body.get(field.as_str()).map(str::to_owned));
    Ok(raw.map(Value::Json))
}

impl AggregateAnswer {
    /// Groups of records that were counted so often in all groups together.
    fn grouped(matched: u64, counted: u64, groups: Vec<Group>) -> Self {
        let shown: u64 = groups.iter().map(|group| group.count).sum();
        Self {
            groups,
            other_count: counted.saturating_sub(shown),
            ..Self::number(matched, Value::None)
        }
    }

    fn number(matched: u64, value: Value) -> Self {
        Self {
            matched,
            value,
            groups: Vec::new(),
            other_count: 0,
            damaged: Vec::new(),
        }
    }
}

/// Which groups are shown: the largest ones by value, the earliest ones by time. Records without a value come last
/// among equals.
struct Top {
    limit: usize,
    by_time: bool,
}

impl Top {
    fn for_grouping(grouping: &Grouping) -> Self {
        match grouping {
            Grouping::Values { limit, .. } => Self {
                limit: *limit,
                by_time: false,
            },
            Grouping::Time { limit, .. } => Self {
                limit: *limit,
                by_time: true,
            },
        }
    }

    /// Keeps memory bounded while millions of groups pass by.
    fn prune(&self, groups: &mut Vec<FinishedGroup>) {
        if groups.len() > self.limit.saturating_mul(8).saturating_add(4096) {
            self.cut(groups);
        }
    }

    fn cut(&self, groups: &mut Vec<FinishedGroup>) {
        groups.sort_by(|one, other| self.order(one, other));
        groups.truncate(self.limit);
    }

    fn order(&self, one: &FinishedGroup, other: &FinishedGroup) -> Ordering {
        let missing = |group: &FinishedGroup| matches!(group.key, GroupKey::Missing);
        let by_key = missing(one)
            .cmp(&missing(other))
            .then(one.key.partial_cmp(&other.key).unwrap_or(Ordering::Equal));
        if self.by_time {
            by_key
        } else {
            other.count.cmp(&one.count).then(by_key)
        }
    }
}
