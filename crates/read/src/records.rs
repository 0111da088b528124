//! Records of a stream as they stand: conditions, order, pages, counts and the span of time they cover.

use contract::error::{ErrorCode, ReadError};
use contract::id::FieldName;
use contract::json;
use contract::page::{Page, ReportedCount, TimeSpan};
use contract::query::{Count, ListOptions, Reading, RecordsQuery};
use contract::record::Record;
use contract::time::Instant;
use contract::wire::Nullable;
use store::records::{ByteBudget, Direction, OrderBy, PagePosition, PageRequest, StoredRecord};
use store::search::{AggregateRequest, Metric, Value};

use crate::changes;
use crate::conditions::Conditions;
use crate::damaged::Damaged;
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::expand;
use crate::failure::Result;
use crate::measure::written_bytes;
use crate::project::{Shape, admitted};
use crate::reader::{Answer, Bound, Session};
use crate::route;
use crate::visible_history;

/// How many records are held against the limits of a grant one after another, before the index is asked which of them pass: where
/// most do, that is enough.
const TRIED: usize = 256;
/// At least so many are read at a time.
const LEAST: usize = 8;

/// What a list and a feed of changes have in common.
pub(crate) struct Plan<'q> {
    pub(crate) query: &'q RecordsQuery,
    pub(crate) row: Row,
    pub(crate) shape: Shape,
    pub(crate) conditions: Conditions,
}

pub(crate) fn records(session: &Session, query: &RecordsQuery) -> Answer<Page<Record>> {
    let row = session.row(&query.stream, query.connection_id.as_deref())?;
    let plan = Plan {
        query,
        shape: Shape::new(&row, &query.projection)?,
        conditions: Conditions::new(&row, &query.filters)?,
        row,
    };
    match &query.reading {
        Reading::Changes(since) => changes::start(session, &plan, since),
        Reading::List(options) => match changes::position_in(session, &plan, options)? {
            Some(position) => changes::go_on(session, &plan, position),
            None => list(session, &plan, options),
        },
    }
}

fn list(session: &Session, plan: &Plan<'_>, options: &ListOptions) -> Answer<Page<Record>> {
    let row = &plan.row;
    let order = PageOrder::from_options(row, options)?;
    let relations = expand::resolve(session.reach(), row, &options.expand)?;
    let bound = Bound::new(&plan.query.filters, order.fingerprint(row));
    let tokens = session.row_tokens(row, &bound);
    let after = match &options.cursor {
        Some(cursor) => Some(tokens.open_page(cursor)?),
        None => None,
    };
    let mut shown = Shown::for_row(row);
    shown.fields(plan.shape.names(row));
    let mut filling = Filling::new(session, plan);
    let mut last = None;
    let wanted = filling.limit.saturating_add(1);
    let stretch = Stretch {
        order,
        after,
        wanted,
    };
    select(session, plan, stretch, &mut |stored, body| {
        let Some(body) = body else {
            shown.damaged.note(row, &stored.key);
            return Ok(true);
        };
        if filling.is_full() {
            return Ok(false);
        }
        let emitted_at = visible_history::emitted_at(session, row, &stored);
        let emitted_at = shown.damaged.pass_over(emitted_at, (row, &stored.key))?;
        let Some(emitted_at) = emitted_at else {
            return Ok(true);
        };
        let mut beside = Shown::default();
        beside.record(row, &stored.key);
        let expanded = expand::beside(session, &relations, &stored.key, &body, &mut beside)?;
        let mut record = plan.shape.record(row, &stored.key, &emitted_at, body)?;
        record.expanded = expanded;
        let added = filling.add(record);
        if added {
            shown.add(beside);
            last = Some(stored.position);
        }
        Ok(added)
    })?;
    let mut page = page_of(plan, filling.data);
    if let (true, Some(last)) = (filling.has_more, last) {
        page = page.continued(tokens.page(&last, order.by == OrderBy::Cursor)?);
    }
    describe(session, plan, options, &mut page, &mut shown.damaged)?;
    shown.damaged.warn(&mut page);
    Ok((page, shown))
}

/// A page while it is being filled. It ends by the number of its records or by their bytes as shown: hidden fields have no
/// influence.
pub(crate) struct Filling {
    limit: usize,
    room: ByteBudget,
    pub(crate) data: Vec<Record>,
    /// Whether there was one more than the page holds.
    pub(crate) has_more: bool,
}

impl Filling {
    pub(crate) fn new(session: &Session, plan: &Plan<'_>) -> Self {
        Self {
            limit: usize::try_from(plan.query.limit.effective()).unwrap_or(usize::MAX),
            room: session.page_budget(),
            data: Vec::new(),
            has_more: false,
        }
    }

    /// Whether the page is full; to be asked when there is one more record.
    pub(crate) fn is_full(&mut self) -> bool {
        self.has_more = self.data.len() >= self.limit;
        self.has_more
    }

    /// Adds a record, unless the page is full.
    pub(crate) fn add(&mut self, record: Record) -> bool {
        let added = !self.is_full() && self.room.take(written_bytes(&record));
        self.has_more = !added;
        if added {
            self.data.push(record);
        }
        added
    }
}

/// A page of this plan's records, with a warning where its limit was lowered.
pub(crate) fn page_of(plan: &Plan<'_>, data: Vec<Record>) -> Page<Record> {
    let mut page = Page::new(data);
    page.url = Some(route::records(&plan.row.stream().name));
    page.meta_mut().roles = plan.row.roles();
    if let Some(warning) = plan.query.limit.warning("records") {
        page.meta_mut().warn(warning);
    }
    page
}

/// The order of a list: the cursor field where it may be seen, else the key.
#[derive(Clone, Copy)]
pub(crate) struct PageOrder {
    pub(crate) by: OrderBy,
    pub(crate) direction: Direction,
}

impl PageOrder {
    fn from_options(row: &Row, options: &ListOptions) -> Result<Self, ReadError> {
        let direction = options.direction()?;
        if let Some(sort) = &options.sort {
            // A client only learns that it may not see the field, not that it orders the stream.
            if !row.is_owner() {
                row.field(sort.field.as_str(), "sort")?;
            }
            if row.cursor_field() != Some(&sort.field) {
                return Err(invalid_sort(row, &sort.field));
            }
        }
        Ok(Self {
            direction,
            ..Self::ascending(row)
        })
    }

    /// The natural order, smallest first.
    pub(crate) fn ascending(row: &Row) -> Self {
        Self {
            by: match row.cursor_field() {
                Some(_) => OrderBy::Cursor,
                None => OrderBy::Key,
            },
            direction: Direction::Ascending,
        }
    }

    fn fingerprint(self, row: &Row) -> String {
        let direction = self.direction.as_str();
        match row.cursor_field() {
            Some(field) => format!("{direction} {field}"),
            None => direction.to_owned(),
        }
    }
}

fn invalid_sort(row: &Row, field: &FieldName) -> ReadError {
    let message = match row.cursor_field() {
        Some(cursor) => format!("sort accepts only '{cursor}', not '{field}'"),
        None => format!("the stream '{}' cannot be sorted", row.stream().name),
    };
    ReadError::new(ErrorCode::InvalidSort, message).with_param("sort")
}

/// Which records of a list are wanted.
pub(crate) struct Stretch {
    pub(crate) order: PageOrder,
    /// Where the previous page ended.
    pub(crate) after: Option<PagePosition>,
    pub(crate) wanted: usize,
}

/// Takes a record and its parsed body, which is absent where the record is damaged; returns whether to go on.
pub(crate) type Each<'e> =
    &'e mut dyn FnMut(StoredRecord, Option<json::RecordBody>) -> Result<bool>;

/// Hands over the next records that pass, up to a number. The index may lag behind a concurrent write by a moment, so each
/// record is checked once more, and one that no longer passes is replaced by the next.
pub(crate) fn select(
    session: &Session,
    plan: &Plan<'_>,
    stretch: Stretch,
    each: Each<'_>,
) -> Result<()> {
    let Stretch {
        order,
        mut after,
        mut wanted,
    } = stretch;
    let row = &plan.row;
    let restricted = !(row.admits_everything() && plan.conditions.is_empty());
    let scope = row.scope(Vec::new(), plan.conditions.filters());
    let listed = !plan.conditions.is_empty() || scope.keys.is_some();
    let mut looked = 0;
    while wanted > 0 {
        let indexed = restricted && (listed || looked >= TRIED);
        let request = PageRequest {
            by: order.by,
            direction: order.direction,
            after: after.take(),
            limit: if restricted && !indexed {
                wanted.max(LEAST)
            } else {
                wanted
            },
        };
        let stored = if indexed {
            session.store.select(&scope, &request)?
        } else {
            session.store.page(&scope.stream, &request)?
        };
        looked += stored.records.len();
        after = stored.records.last().map(|last| last.position.clone());
        for mut record in stored.records {
            if record.is_damaged {
                if !each(record, None)? {
                    return Ok(());
                }
                continue;
            }
            let body = std::mem::take(&mut record.body);
            let body = admitted(row, &record.key, body)?;
            if let Some(body) = body.filter(|body| plan.conditions.pass(body)) {
                wanted -= 1;
                if !each(record, Some(body))? || wanted == 0 {
                    return Ok(());
                }
            }
        }
        // Without a position to continue from, this page is the last one, whatever `has_more` says.
        if stored.is_last || after.is_none() {
            break;
        }
    }
    Ok(())
}

/// Counts and time span, where asked.
fn describe(
    session: &Session,
    plan: &Plan<'_>,
    options: &ListOptions,
    page: &mut Page<Record>,
    damaged: &mut Damaged,
) -> Result<()> {
    if options.count == Count::None && !options.time_span {
        return Ok(());
    }
    let mut aggregate = |metric| aggregate(session, plan, metric, damaged);
    let total = aggregate(Metric::Count)?.0;
    if options.count != Count::None {
        page.meta_mut().count = Nullable::Value(ReportedCount::exact(total));
    }
    if options.time_span {
        let mut span = TimeSpan {
            total,
            ..TimeSpan::default()
        };
        if let Some(field) = plan.row.consent_time_field() {
            let earliest = aggregate(Metric::Min(field.clone()))?.1;
            let latest = aggregate(Metric::Max(field.clone()))?.1;
            if let (Some(earliest), Some(latest)) = (moment(&earliest), moment(&latest)) {
                span.earliest_at = Some(earliest);
                span.latest_at = Some(latest);
            }
        }
        page.meta_mut().window = Some(span);
    }
    Ok(())
}

fn aggregate(
    session: &Session,
    plan: &Plan<'_>,
    metric: Metric,
    damaged: &mut Damaged,
) -> Result<(u64, Value)> {
    let answer = session.store.aggregate(&AggregateRequest {
        scope: plan.row.scope(Vec::new(), plan.conditions.filters()),
        metric,
        grouping: None,
    })?;
    for key in &answer.damaged {
        damaged.note(&plan.row, key);
    }
    Ok((answer.matched, answer.value))
}

fn moment(value: &Value) -> Option<String> {
    let Value::Json(raw) = value else {
        return None;
    };
    let text = json::decode_string(raw)?;
    Instant::parse(&text).map(Instant::to_rfc3339_millis)
}
