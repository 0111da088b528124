//! Related records beside a record: those of the same connection that point at it, or the one it points at, each seen
//! through its own row.

use contract::declaration::Pointing;
use contract::error::{ErrorCode, ReadError};
use contract::json::{self, JsonKind, RecordBody};
use contract::key::RecordKey;
use contract::query::{ExpandRequest, Filter, Projection, RecordsQuery};
use contract::record::{Expanded, ExpandedList, Record};
use contract::wire::{ObjectTag, OrderedMap};

use crate::conditions::Conditions;
use crate::disclosure::Shown;
use crate::enforce::{Reach, Relation, Row};
use crate::failure::{Failure, Result};
use crate::measure::{page_budget, written_bytes};
use crate::project::{Shape, admitted};
use crate::reader::Session;
use crate::records::{PageOrder, Plan, Stretch, select};
use crate::visible_history;

/// A relationship to bring along, and how many of it.
pub(crate) struct Wanted {
    relation: Relation,
    limit: usize,
}

/// Checks what was asked against what may be followed.
pub(crate) fn resolve(
    reach: Reach<'_>,
    row: &Row,
    requests: &[ExpandRequest],
) -> Result<Vec<Wanted>, ReadError> {
    let mut relations = if requests.is_empty() {
        Vec::new()
    } else {
        reach.relations(row)
    };
    let mut wanted: Vec<Wanted> = Vec::new();
    for request in requests {
        if wanted
            .iter()
            .any(|known| known.relation.expand.name == request.name)
        {
            continue;
        }
        let found = relations
            .iter()
            .position(|relation| relation.expand.name == request.name);
        let Some(at) = found else {
            return Err(not_followed(row, &request.name));
        };
        let relation = relations.swap_remove(at);
        let limit = limit_of(&relation, request.limit)?;
        wanted.push(Wanted { relation, limit });
    }
    Ok(wanted)
}

/// For a client it makes no difference whether the relation exists.
fn not_followed(row: &Row, name: &str) -> ReadError {
    let stream = &row.stream().name;
    let (code, message) = if row.is_owner() {
        (
            ErrorCode::InvalidExpand,
            format!("the stream '{stream}' declares no relation '{name}' to expand"),
        )
    } else {
        (
            ErrorCode::InsufficientScope,
            format!("the relation '{name}' of stream '{stream}' is not granted"),
        )
    };
    let error = ReadError::new(code, message)
        .with_param("expand")
        .with_hint(format!(
            "schema with stream={stream} lists what can be expanded"
        ));
    row.beyond(error, |beyond| beyond.relation = Some(name.to_owned()))
}

fn limit_of(relation: &Relation, requested: Option<u32>) -> Result<usize, ReadError> {
    let (name, max) = (&relation.expand.name, relation.expand.max_limit);
    let refuse = |message: String| {
        ReadError::new(ErrorCode::InvalidExpand, message)
            .with_param(format!("expand_limit[{name}]"))
    };
    let limit = match requested {
        Some(_) if !relation.is_many() => {
            return Err(refuse(format!(
                "expand_limit is not supported for '{name}', which has one record at most"
            )));
        }
        Some(limit) if limit == 0 || limit > max => {
            return Err(refuse(format!(
                "expand_limit for '{name}' must be between 1 and {max}"
            )));
        }
        Some(limit) => limit,
        None if relation.is_many() => relation.expand.default_limit,
        None => 1,
    };
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The related records of a record, where a relation was asked for.
pub(crate) fn beside(
    session: &Session,
    wanted: &[Wanted],
    key: &RecordKey,
    body: &RecordBody,
    shown: &mut Shown,
) -> Result<Option<OrderedMap<Expanded>>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut expanded = OrderedMap::default();
    for one in wanted {
        let relation = &one.relation;
        let related = match relation.relationship.pointing {
            Pointing::Here => related(session, one, key, shown)?,
            Pointing::There => pointed_at(session, relation, body, shown)?,
        };
        expanded.0.push((one.relation.expand.name.clone(), related));
    }
    Ok(Some(expanded))
}

fn related(
    session: &Session,
    wanted: &Wanted,
    key: &RecordKey,
    shown: &mut Shown,
) -> Result<Expanded> {
    let child = &wanted.relation.child;
    let query = RecordsQuery::new(child.stream().name.clone());
    let Some(conditions) = pointing_at(&wanted.relation, key) else {
        return Ok(expanded(&wanted.relation, Vec::new(), false));
    };
    let plan = Plan {
        query: &query,
        shape: Shape::new(child, &Projection::All)?,
        conditions,
        row: child.clone(),
    };
    let order = PageOrder::ascending(child);
    let (mut data, mut room, mut has_more) = (Vec::new(), page_budget(None), false);
    let most = wanted.limit.saturating_add(1);
    let first = Stretch {
        order,
        after: None,
        wanted: most,
    };
    select(session, &plan, first, &mut |stored, body| {
        let Some(body) = body else {
            shown.damaged.note(child, &stored.key);
            return Ok(true);
        };
        has_more = data.len() == wanted.limit;
        if has_more {
            return Ok(false);
        }
        let emitted_at = visible_history::emitted_at(session, child, &stored);
        let emitted_at = shown.damaged.pass_over(emitted_at, (child, &stored.key))?;
        let Some(emitted_at) = emitted_at else {
            return Ok(true);
        };
        let record = plan.shape.record(child, &stored.key, &emitted_at, body)?;
        has_more = !room.take(written_bytes(&record));
        if !has_more {
            shown.record(child, &stored.key);
            data.push(record);
        }
        Ok(!has_more)
    })?;
    shown.row(child);
    shown.fields(plan.shape.names(child));
    Ok(expanded(&wanted.relation, data, has_more))
}

/// The record whose key stands in the foreign key of this one.
fn pointed_at(
    session: &Session,
    relation: &Relation,
    body: &RecordBody,
    shown: &mut Shown,
) -> Result<Expanded> {
    let child = &relation.child;
    shown.row(child);
    let Some(key) = key_in(relation, body) else {
        return Ok(Expanded::None);
    };
    let found = session.store.get(&child.stream_ref(), &key);
    let found = found.map_err(Failure::from);
    let found = shown.damaged.pass_over(found, (child, &key))?;
    let Some(mut stored) = found.flatten() else {
        return Ok(Expanded::None);
    };
    let body = std::mem::take(&mut stored.body);
    let Some(body) = admitted(child, &key, body)? else {
        return Ok(Expanded::None);
    };
    let shape = Shape::new(child, &Projection::All)?;
    let emitted_at = visible_history::emitted_at(session, child, &stored)?;
    shown.fields(shape.names(child));
    shown.record(child, &key);
    let record = shape.record(child, &key, &emitted_at, body)?;
    Ok(Expanded::One(Box::new(record)))
}

/// The key in the foreign key of a record, if its value can be a key.
fn key_in(relation: &Relation, body: &RecordBody) -> Option<RecordKey> {
    let raw = body.get(relation.relationship.foreign_key.as_str())?;
    let text = match json::kind_of(raw) {
        JsonKind::String => json::decode_string(raw)?.into_owned(),
        JsonKind::Number => json::canonical_number(raw),
        _ => return None,
    };
    let parts = relation.child.stream().primary_key.len();
    RecordKey::from_wire(&text, parts).ok()
}

/// The condition that a child points at this record; `None` where its foreign key cannot hold such a key.
fn pointing_at(relation: &Relation, key: &RecordKey) -> Option<Conditions> {
    let foreign_key = &relation.relationship.foreign_key;
    let filter = Filter::exact(foreign_key.clone(), key.as_str());
    Conditions::new(&relation.child, std::slice::from_ref(&filter)).ok()
}

fn expanded(relation: &Relation, mut data: Vec<Record>, has_more: bool) -> Expanded {
    if relation.is_many() {
        return Expanded::Many(ExpandedList {
            object: ObjectTag::LIST,
            data,
            has_more,
        });
    }
    match data.pop() {
        Some(only) => Expanded::One(Box::new(only)),
        None => Expanded::None,
    }
}
