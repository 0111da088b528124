//! Choosing records by their values: the most common values of the ticked streams with how many records have each, and how
//! many records the chosen rules leave. Without scripts a button sends the form and gets it back with the figures of now.

use std::sync::Arc;

use contract::aggregate::{AggregateQuery, GroupBy, Grouping, Metric};
use contract::grant::{AccessMode, Authority};
use contract::id::{FieldName, StreamName};
use contract::query::{Count, Filter, ListOptions, PageLimit, Projection, Reading, RecordsQuery};
use contract::reader::ReadContract as _;
use grants::{ChosenStream, Selection, preview};
use read::GrantReader;

use super::choice::{self, SourceRow};
use super::format::{format_count, format_number, label, one_line};
use super::stream_shape::{StreamShape, title};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;

/// For how many ticked streams values are shown, for how many fields of each, and how many of a field.
const STREAMS: usize = 12;
const FIELDS: usize = 6;
const VALUES: u32 = 12;
const VALUE_CHARS: usize = 60;

/// A field, of the stream or of the records it points at, and its most common values.
pub(super) struct FieldValues {
    pub(super) title: String,
    pub(super) values: Vec<ValueRow>,
}

impl FieldValues {
    pub(super) fn is_chosen(&self) -> bool {
        self.values.iter().any(|value| value.only || value.never)
    }
}

pub(super) struct ValueRow {
    /// The condition that a record has the value.
    pub(super) condition: String,
    pub(super) shown: String,
    pub(super) count: String,
    pub(super) only: bool,
    pub(super) never: bool,
}

/// A value before it is a row of the form.
struct Value {
    condition: String,
    text: String,
    count: u64,
}

/// What is shown of a ticked stream.
pub(super) struct Figures {
    /// The stream, as the form names it.
    value: String,
    values: Vec<FieldValues>,
    inside: String,
}

/// The streams that are ticked, as the form names them.
pub(super) fn ticked(sources: &[SourceRow]) -> Vec<String> {
    let mut ticked = Vec::new();
    for source in sources {
        let streams = source.streams.iter();
        let streams = streams.filter(|row| source.whole || row.is_ticked());
        ticked.extend(streams.map(|row| row.value.clone()));
    }
    ticked.truncate(STREAMS);
    ticked
}

/// Reads the values and figures of ticked streams.
pub(super) async fn figures(
    service: Arc<Service>,
    ticked: Vec<String>,
    form: Form,
) -> Result<Vec<Figures>, Problem> {
    let mut settings = service.reader_settings.clone();
    settings.disclosures = None;
    let reader = GrantReader::new(service.store.clone(), Authority::Owner, settings);
    let mut all = Vec::new();
    for value in ticked {
        let Some((connection, name)) = value.split_once('/') else {
            continue;
        };
        let Ok(stream) = StreamName::parse(name) else {
            continue;
        };
        let stream = OwnStream {
            service: Arc::clone(&service),
            reader: reader.clone(),
            connection: connection.to_owned(),
            stream,
        };
        let values = stream.values(&form).await?;
        let inside = stream.inside(&form, &value).await?;
        all.push(Figures {
            value,
            values,
            inside,
        });
    }
    Ok(all)
}

/// Puts figures into the form.
pub(super) fn show(figures: Vec<Figures>, sources: &mut [SourceRow]) {
    for one in figures {
        let mut rows = sources.iter_mut().flat_map(|source| &mut source.streams);
        if let Some(row) = rows.find(|row| row.value == one.value) {
            row.values = one.values;
            row.inside = one.inside;
        }
    }
}

/// A stream of a connection, read as the owner.
struct OwnStream {
    service: Arc<Service>,
    reader: GrantReader,
    connection: String,
    stream: StreamName,
}

impl OwnStream {
    async fn values(&self, form: &Form) -> Result<Vec<FieldValues>, Problem> {
        let shape =
            StreamShape::of_reader(&self.reader, &self.service, &self.stream, &self.connection);
        let shape = shape.await?;
        let mut all = Vec::new();
        for (key, related) in self.related() {
            let values = self.related_values(&key, &related).await?;
            let title = format!("{} of {key}", title(related.as_str()));
            all.push(self.row(&title, values, form));
        }
        let fields = shape.fields.iter();
        let fields = fields.filter(|field| field.groups && field.exact && !field.is_time);
        for field in fields.take(FIELDS) {
            let values = self.own_values(&field.name).await?;
            all.push(self.row(&field.title, values, form));
        }
        all.retain(|field| !field.values.is_empty());
        Ok(all)
    }

    fn row(&self, title: &str, values: Vec<Value>, form: &Form) -> FieldValues {
        let name = format!("{}/{}", self.connection, self.stream);
        let (only, never) = (format!("only:{name}"), format!("except:{name}"));
        let chosen = |name: &str, condition: &str| form.values(name).any(|one| one == condition);
        let row = |value: Value| ValueRow {
            shown: one_line(&value.text, VALUE_CHARS),
            count: format_number(value.count),
            only: chosen(&only, &value.condition),
            never: chosen(&never, &value.condition),
            condition: value.condition,
        };
        FieldValues {
            title: label(title),
            values: values.into_iter().map(row).collect(),
        }
    }

    async fn own_values(&self, field: &FieldName) -> Result<Vec<Value>, Problem> {
        let grouping = Grouping::new(GroupBy::Field(field.clone()), Some(VALUES))?;
        let query = AggregateQuery::new(self.stream.clone(), Metric::Count, Some(grouping));
        let mut query = query?;
        query.connection_id = Some(self.connection.clone());
        let groups = self.reader.aggregate(query).await?.groups;
        let values = groups.into_iter().flatten().filter_map(|group| {
            let raw = group.key.get();
            if raw == "null" {
                return None;
            }
            let text: String = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
            Some(Value {
                condition: format!("{field}={text}"),
                count: group.count,
                text,
            })
        });
        Ok(values.filter(|value| is_condition(value, field)).collect())
    }

    /// The foreign keys of the stream, each with the stream it points at.
    fn related(&self) -> Vec<(FieldName, StreamName)> {
        let store = &self.service.store;
        let connection = contract::id::ConnectionId::parse(self.connection.as_str()).ok();
        let connection = connection.and_then(|id| store.connection(&id));
        let declaration = connection.and_then(|one| store.declaration(&one.connector));
        declaration.map_or_else(Vec::new, |one| one.pointed_at_by(&self.stream))
    }

    /// The names of the records that a foreign key points at, with how many records point at each.
    async fn related_values(
        &self,
        key: &FieldName,
        related: &StreamName,
    ) -> Result<Vec<Value>, Problem> {
        let shape = StreamShape::of_reader(&self.reader, &self.service, related, &self.connection);
        let shape = shape.await?;
        let Some(name) = shape.title().filter(|name| name.exact) else {
            return Ok(Vec::new());
        };
        let mut query = RecordsQuery::new(related.clone());
        query.connection_id = Some(self.connection.clone());
        query.limit = PageLimit::new(VALUES);
        query.projection = Projection::Fields(vec![name.name.clone()]);
        let page = self.reader.records(query).await?;
        let mut values: Vec<Value> = Vec::new();
        for record in page.data {
            let data = record.data.as_ref().map(|data| data.get());
            let data: Option<serde_json::Value> =
                data.and_then(|raw| serde_json::from_str(raw).ok());
            let text = data
                .as_ref()
                .and_then(|data| data.get(name.name.as_str())?.as_str());
            let Some(text) = text else { continue };
            let condition = format!("{key}.{}={text}", name.name);
            if values.iter().any(|known| known.condition == condition) {
                continue;
            }
            let mut query = RecordsQuery::new(self.stream.clone());
            query.connection_id = Some(self.connection.clone());
            query.filters = vec![Filter::exact(key.clone(), record.id)];
            values.push(Value {
                condition,
                text: text.to_owned(),
                count: count(&self.reader, query).await?,
            });
        }
        values.retain(|value| is_condition(value, key));
        values.sort_by_key(|value| std::cmp::Reverse(value.count));
        Ok(values)
    }

    /// How many records the chosen rules leave, in words; empty without rules, or while they are wrong.
    async fn inside(&self, form: &Form, value: &str) -> Result<String, Problem> {
        let chosen = choice::chosen_stream(form, value);
        let Some(chosen) = chosen.filter(ChosenStream::has_rules) else {
            return Ok(String::new());
        };
        let looked = blocking(Arc::clone(&self.service), move |service| {
            let selection = Selection::from_choice(vec![chosen], AccessMode::Continuous);
            let clock = &*service.reader_settings.clock;
            Ok(preview(&*service.store, &selection, "preview", None, clock).ok())
        });
        let Some(looked) = looked.await? else {
            return Ok(String::new());
        };
        let mut settings = self.service.reader_settings.clone();
        settings.disclosures = None;
        let store = self.service.store.clone();
        let reader = GrantReader::new(store, looked.authority, settings);
        let query = |stream: &StreamName| {
            let mut query = RecordsQuery::new(stream.clone());
            query.connection_id = Some(self.connection.clone());
            query
        };
        let inside = count(&reader, query(&self.stream)).await?;
        let all = count(&self.reader, query(&self.stream)).await?;
        Ok(format!(
            "{} of {}",
            format_number(inside),
            format_count(all, "record")
        ))
    }
}

/// Whether the condition is read as it is meant: a field may have a sign in its name.
fn is_condition(value: &Value, field: &FieldName) -> bool {
    let read = contract::query::split_condition(&value.condition);
    let is_sign = |name: &str| name.ends_with(['^', '~']);
    read.is_some_and(|(name, operator, text)| {
        operator.is_none() && text == value.text && !is_sign(name) && !field.as_str().contains('.')
    })
}

async fn count(reader: &GrantReader, mut query: RecordsQuery) -> Result<u64, Problem> {
    query.limit = PageLimit::new(1);
    query.reading = Reading::List(ListOptions {
        count: Count::Exact,
        ..ListOptions::default()
    });
    let page = reader.records(query).await?;
    let count = page.meta.and_then(|meta| meta.count.as_option()?.value());
    Ok(count.unwrap_or_default())
}
