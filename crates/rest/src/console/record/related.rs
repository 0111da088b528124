//! What belongs to a record: its relations, the rest of its conversation, and its neighbours in the stream.

use contract::declaration::FilterOperator;
use contract::id::{FieldName, StreamName};
use contract::query::{Filter, ListOptions, Order, PageLimit, Reading, RecordsQuery, Sort};
use contract::reader::ReadContract as _;
use contract::record::{Expanded, Record};
use contract::wire::OrderedMap;

use super::Subject;
use crate::console::browse::stream_address;
use crate::console::format::label;
use crate::console::stream_shape::{StreamShape, title};
use crate::console::summary::Summary;
use crate::console::value;
use crate::console::viewer::Viewer;
use crate::problem::Problem;

/// Fields that say which conversation a record belongs to.
const CONVERSATION: [&str; 3] = ["thread_id", "conversation_id", "thread_ts"];
const CONVERSATION_RECORDS: u32 = 50;
/// How far neighbours are looked for among records of the same moment.
const NEAR: u32 = 10;

pub(super) struct Related {
    pub(super) name: String,
    pub(super) rows: Vec<RelatedRow>,
    pub(super) has_more: bool,
    /// The table of all of them; empty where that cannot be asked.
    pub(super) all: String,
}

pub(super) struct RelatedRow {
    pub(super) address: String,
    pub(super) summary: Summary,
    /// Whether it is the record of this page.
    pub(super) here: bool,
}

#[derive(Default)]
pub(super) struct Neighbours {
    pub(super) older: Option<RelatedRow>,
    pub(super) newer: Option<RelatedRow>,
}

pub(super) async fn rows(viewer: &Viewer, subject: &Subject) -> Result<Vec<Related>, Problem> {
    let mut related: Vec<Related> = conversation(viewer, subject).await.into_iter().collect();
    let expanded = subject.record.expanded.iter().flat_map(OrderedMap::iter);
    for (name, records) in expanded {
        let (records, has_more): (&[Record], bool) = match records {
            Expanded::Many(list) => (&list.data, list.has_more),
            Expanded::One(record) => (std::slice::from_ref(&**record), false),
            Expanded::None => continue,
        };
        let Some(first) = records.first() else {
            continue;
        };
        let Ok(stream) = StreamName::parse(&first.stream) else {
            continue;
        };
        let shape = StreamShape::read(viewer, &stream, subject.connection.as_str()).await?;
        let rows: Vec<RelatedRow> = records
            .iter()
            .map(|one| row(viewer, subject, &shape, one))
            .collect();
        let conversation = related.first();
        let is_told = |row: &RelatedRow| {
            let told = conversation.into_iter().flat_map(|one| &one.rows);
            told.into_iter().any(|one| one.address == row.address)
        };
        // Replies that stand in the conversation already are not listed again.
        if !rows.iter().all(is_told) {
            let relations = subject.shape.expand.iter();
            let mut relations = relations.filter(|one| one.name == name);
            let field = relations.find_map(|one| one.points_here.as_deref());
            let field = field.and_then(|field| shape.field(field));
            let all = field.filter(|field| field.exact).map(|field| {
                let key = (field.name.as_str(), subject.record.id.as_str());
                table_of(viewer, subject, &stream, key)
            });
            related.push(Related {
                name: label(&title(name)),
                rows,
                has_more,
                all: all.unwrap_or_default(),
            });
        }
    }
    Ok(related)
}

fn row(viewer: &Viewer, subject: &Subject, shape: &StreamShape, record: &Record) -> RelatedRow {
    let connection = subject.connection.as_str();
    RelatedRow {
        address: viewer.record(connection, &record.stream, &record.id),
        summary: Summary::new(shape, record),
        here: record.stream == subject.stream.as_str() && record.id == subject.record.id,
    }
}

/// The conversation the record is part of, oldest first. Where it cannot be asked for, there is none to show.
async fn conversation(viewer: &Viewer, subject: &Subject) -> Option<Related> {
    let mut names = CONVERSATION.into_iter();
    let (field, value) =
        names.find_map(|name| Some((name, value::text(&subject.members, name)?)))?;
    let field = subject.shape.field(field).filter(|field| field.exact)?;
    let condition = (field.name.as_str(), value.as_str());
    let all = table_of(viewer, subject, &subject.stream, condition);
    let filter = Filter::exact(field.name.clone(), value);
    let order = subject.shape.cursor_field.as_deref();
    let page = listed(
        viewer,
        subject,
        vec![filter],
        (order, Order::Ascending),
        CONVERSATION_RECORDS,
    );
    let (records, has_more) = page.await.ok()?;
    // Alone it is no conversation.
    (records.len() > 1).then(|| Related {
        name: "The conversation".to_owned(),
        rows: records
            .iter()
            .map(|one| row(viewer, subject, &subject.shape, one))
            .collect(),
        has_more,
        all,
    })
}

/// The table of a stream with only the records that have a value.
fn table_of(
    viewer: &Viewer,
    subject: &Subject,
    stream: &StreamName,
    (field, value): (&str, &str),
) -> String {
    let table = stream_address(subject.connection.as_str(), stream.as_str());
    let table = table.with(format!("filter[{field}]"), value);
    viewer.seen(table).to_string()
}

/// The records before and after this one in the order of its stream.
pub(super) async fn neighbours(viewer: &Viewer, subject: &Subject) -> Result<Neighbours, Problem> {
    let shape = &subject.shape;
    let ordered = shape
        .cursor_field
        .as_deref()
        .and_then(|name| shape.field(name));
    let Some(field) = ordered.filter(|field| field.range) else {
        return Ok(Neighbours::default());
    };
    let raw = subject.members.get(field.name.as_str());
    let at = raw.map(|raw| {
        serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
    });
    let Some(at) = at.filter(|at| !at.is_empty() && at != "null") else {
        return Ok(Neighbours::default());
    };
    Ok(Neighbours {
        older: next(viewer, subject, (&field.name, &at), Order::Descending).await?,
        newer: next(viewer, subject, (&field.name, &at), Order::Ascending).await?,
    })
}

/// The record after this one in a direction. Several may have the same place in the order, so it is looked for there.
async fn next(
    viewer: &Viewer,
    subject: &Subject,
    (field, at): (&FieldName, &str),
    order: Order,
) -> Result<Option<RelatedRow>, Problem> {
    let bound = match order {
        Order::Ascending => FilterOperator::Gte,
        Order::Descending => FilterOperator::Lte,
    };
    let filter = Filter::range(field.clone(), vec![(bound, at.to_owned())]);
    let sort = (Some(field.as_str()), order);
    let (records, _) = listed(viewer, subject, vec![filter], sort, NEAR).await?;
    let own = records.iter().position(|one| one.id == subject.record.id);
    let after = own.and_then(|own| records.get(own + 1));
    Ok(after.map(|record| row(viewer, subject, &subject.shape, record)))
}

/// Records of the same stream.
async fn listed(
    viewer: &Viewer,
    subject: &Subject,
    filters: Vec<Filter>,
    (sort, order): (Option<&str>, Order),
    limit: u32,
) -> Result<(Vec<Record>, bool), Problem> {
    let mut query = RecordsQuery::new(subject.stream.clone());
    query.connection_id = Some(subject.connection.to_string());
    query.filters = filters;
    query.limit = PageLimit::new(limit);
    let sort = sort.and_then(|name| FieldName::parse(name).ok());
    query.reading = Reading::List(ListOptions {
        sort: sort.map(|field| Sort { field, order }),
        ..ListOptions::default()
    });
    let page = viewer.reader.records(query).await?;
    let has_more = page.has_more();
    Ok((page.data, has_more))
}
