//! Records: lists with paging and bookmarks, and single records.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::cursor;
use super::filter::{filters, values};
use super::projection::Projection;
use super::reply::Failure;
use super::sources::{find, resolve};
use super::state::{Quirk, State};
use super::world::{Record, Stream};

const DEFAULT_LIMIT: usize = 25;
const MAX_LIMIT: usize = 100;

pub(crate) fn one(state: &State, call: &Call, stream: &str, key: &str) -> Result<Value, Failure> {
    call.only(&[
        "connection_id",
        "fields",
        "view",
        "expand",
        "expand_limit[]",
    ])?;
    let source = resolve(state, stream, call.once("connection_id")?)?;
    let shown = Projection::read(state, call, source.stream)?;
    let record = find(state, source, key)?;
    let mut body = shown.record(state, source, record);
    body.insert("links".to_owned(), json!({"self": call.raw_target}));
    body.insert(
        "meta".to_owned(),
        json!({"count": {"kind": "none"}, "warnings": state.warnings}),
    );
    Ok(Value::Object(body))
}

#[derive(Debug, Default)]
struct Page {
    rows: Vec<Value>,
    next_cursor: Option<String>,
    next_changes_since: Option<String>,
    count: Option<Value>,
}

pub(crate) fn list(state: &State, call: &Call, stream: &str) -> Result<Value, Failure> {
    call.only(&[
        "connection_id",
        "limit",
        "cursor",
        "order",
        "sort",
        "count",
        "filter[]",
        "fields",
        "view",
        "expand",
        "expand_limit[]",
        "changes_since",
    ])?;
    let source = resolve(state, stream, call.once("connection_id")?)?;
    let shown = Projection::read(state, call, source.stream)?;
    let filters = filters(call, source.stream)?;
    let limit = call.number("limit", 1..=MAX_LIMIT)?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let descending = descending(call, source.stream)?;
    let row = |record: &Record| Value::Object(shown.record(state, source, record));
    let keeps = |record: &&Record| filters.iter().all(|filter| filter.keeps(record));
    let page = if asks_changes(call)? {
        let history = source.history(&state.world).filter(keeps).collect();
        changes(state, call, limit, history, row)?
    } else {
        let mut records: Vec<&Record> = source.records(&state.world).filter(keeps).collect();
        let cursor_field = source.stream.cursor_field.as_deref();
        sort(&mut records, cursor_field, descending);
        current(state, call, limit, &records, row)?
    };
    Ok(envelope(state, call, page))
}

/// Whether this is about changes, and no parameter speaks against it.
fn asks_changes(call: &Call) -> Result<bool, Failure> {
    let continues = call
        .once("cursor")?
        .is_some_and(|cursor| cursor.starts_with("chp"));
    if !continues && call.once("changes_since")?.is_none() {
        return Ok(false);
    }
    for param in ["sort", "order", "count", "expand"] {
        if !call.values(param).is_empty() {
            let message = format!("{param} is not supported with changes_since");
            return Err(Failure::invalid(param, message));
        }
    }
    Ok(true)
}

fn current(
    state: &State,
    call: &Call,
    limit: usize,
    records: &[&Record],
    row: impl Fn(&Record) -> Value,
) -> Result<Page, Failure> {
    let from = match call.once("cursor")? {
        None => 0,
        Some(cursor) => {
            usize::try_from(cursor::read::<1>("cur", call, cursor)?[0]).unwrap_or(usize::MAX)
        }
    };
    let ignores_limit = state.is(Quirk::IgnoresLimit);
    let limit = if ignores_limit { usize::MAX } else { limit };
    let until = from.saturating_add(limit).min(records.len());
    let more = until < records.len() || state.is(Quirk::ForcesHasMore);
    let count = match call.once("count")? {
        None | Some("none") => None,
        Some("exact" | "estimated") => Some(json!({"kind": "exact", "value": records.len()})),
        Some(_) => {
            let message = "count must be none, estimated or exact";
            return Err(Failure::invalid("count", message));
        }
    };
    let shown = &records[from.min(until)..until];
    Ok(Page {
        rows: shown.iter().map(|record| row(record)).collect(),
        next_cursor: more.then(|| cursor::mint("cur", call, &[until as u64])),
        next_changes_since: None,
        count,
    })
}

/// Newest first, unless asked otherwise; `sort` takes the cursor field only.
fn descending(call: &Call, stream: &Stream) -> Result<bool, Failure> {
    let order = match call.once("order")? {
        None => None,
        Some("asc") => Some(false),
        Some("desc") => Some(true),
        Some(_) => return Err(Failure::invalid("order", "order must be asc or desc")),
    };
    let Some(sort) = call.once("sort")? else {
        return Ok(order.unwrap_or(true));
    };
    let invalid =
        |message: String| Failure::new(400, "invalid_sort", message).with("param", "sort");
    let (name, descends) = match sort.strip_prefix('-') {
        Some(name) => (name, true),
        None => (sort, false),
    };
    if stream.cursor_field.as_deref() != Some(name) {
        return Err(invalid(format!(
            "Stream '{}' cannot be sorted by '{name}'",
            stream.name
        )));
    }
    if order.is_some_and(|order| order != descends) {
        return Err(invalid("sort and order disagree".to_owned()));
    }
    Ok(descends)
}

/// By the cursor field and then the key; records without a value come last either way.
fn sort(records: &mut [&Record], cursor_field: Option<&str>, descending: bool) {
    let value = |record: &Record| {
        let value = cursor_field.and_then(|field| record.data.get(field).cloned());
        value.filter(|value| !value.is_null())
    };
    records.sort_by(|one, other| {
        let order = match (value(one), value(other)) {
            (Some(_), None) => return std::cmp::Ordering::Less,
            (None, Some(_)) => return std::cmp::Ordering::Greater,
            (Some(one), Some(other)) => values(&one, &other),
            (None, None) => std::cmp::Ordering::Equal,
        };
        let order = order.then_with(|| one.key.cmp(&other.key));
        if descending { order.reverse() } else { order }
    });
}

/// A page of what changed: from a bookmark, or further on from a page.
fn changes(
    state: &State,
    call: &Call,
    limit: usize,
    mut records: Vec<&Record>,
    row: impl Fn(&Record) -> Value,
) -> Result<Page, Failure> {
    let [since, until, after] = match (call.once("changes_since")?, call.once("cursor")?) {
        (Some(_), Some(_)) => {
            return Err(Failure::invalid(
                "cursor",
                "cursor and changes_since exclude one another",
            ));
        }
        (_, Some(cursor)) => cursor::read::<3>("chp", call, cursor)?,
        (Some("beginning"), None) => [0, state.world.version(), 0],
        (bookmark, None) => {
            let [since] = cursor::read::<1>("chg", call, bookmark.unwrap_or_default())?;
            [since, state.world.version(), since]
        }
    };
    records.sort_by_key(|record| record.version);
    records.retain(|record| {
        (after + 1..=until).contains(&record.version) && (since > 0 || !record.deleted)
    });
    let shown = &records[..records.len().min(limit)];
    let last = shown.last().map_or(after, |record| record.version);
    let page_end = [since, until, last];
    Ok(Page {
        rows: shown
            .iter()
            .map(|record| {
                if record.deleted {
                    tombstone(record)
                } else {
                    row(record)
                }
            })
            .collect(),
        next_cursor: (shown.len() < records.len()).then(|| cursor::mint("chp", call, &page_end)),
        next_changes_since: Some(cursor::mint("chg", call, &[until])),
        count: None,
    })
}

fn tombstone(record: &Record) -> Value {
    json!({
        "object": "record",
        "id": record.key,
        "stream": record.stream,
        "connection_id": record.connection_id,
        "deleted": true,
        "deleted_at": record.emitted_at,
        "emitted_at": record.emitted_at,
    })
}

fn envelope(state: &State, call: &Call, page: Page) -> Value {
    let has_more = page.next_cursor.is_some();
    let mut handles = Map::new();
    handles.insert("has_more".to_owned(), json!(has_more));
    if let Some(cursor) = page.next_cursor {
        handles.insert("next_cursor".to_owned(), json!(cursor));
    }
    if let Some(bookmark) = page.next_changes_since {
        handles.insert("next_changes_since".to_owned(), json!(bookmark));
    }
    let count = page.count.unwrap_or_else(|| json!({"kind": "none"}));
    let mut meta = Map::new();
    meta.insert("count".to_owned(), count);
    meta.insert("warnings".to_owned(), json!(state.warnings));
    let mut body = Map::new();
    body.insert("object".to_owned(), json!("list"));
    body.insert("data".to_owned(), Value::Array(page.rows));
    body.insert("url".to_owned(), json!(call.path));
    body.insert("links".to_owned(), json!({"self": call.raw_target}));
    body.append(&mut handles);
    body.insert("meta".to_owned(), Value::Object(meta));
    Value::Object(body)
}
