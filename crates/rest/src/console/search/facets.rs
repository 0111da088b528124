//! What a search can be narrowed by: connections, streams and years, each with how many of the hits it has, and the values
//! that the declaration of a chosen stream groups by, each with how many a search there finds. All are counted over the
//! read contract.

use contract::aggregate::{AggregateQuery, GroupBy, Grouping, Metric};
use contract::id::StreamName;
use contract::page::{Meta, StreamCount};
use contract::query::{Count, Filter, PageLimit};
use contract::reader::ReadContract as _;
use contract::search::SearchQuery;
use read::GrantReader;
use tokio::task::JoinSet;

use super::Question;
use crate::console::address::Address;
use crate::console::format::{format_number, one_line};
use crate::console::sources::{Source, Sources};
use crate::console::stream_shape::{FieldShape, StreamShape};
use crate::console::viewer::Viewer;
use crate::problem::Problem;

/// The most choices of a facet that are counted.
const MAX_CHOICES: usize = 24;
/// How many fields of a stream narrow a search, and how many values of each.
const FIELDS: usize = 2;
const VALUES: u32 = 8;
const VALUE_CHARS: usize = 60;

pub(super) struct Facet {
    pub(super) name: String,
    pub(super) choices: Vec<Choice>,
    /// The search without it; empty where nothing is chosen.
    pub(super) clear: String,
}

pub(super) struct Choice {
    pub(super) name: String,
    pub(super) count: String,
    pub(super) address: String,
    pub(super) here: bool,
}

/// A choice, and the search that counts it.
struct Candidate {
    name: String,
    value: String,
    query: SearchQuery,
}

pub(super) async fn read(
    viewer: &Viewer,
    question: &Question,
    sources: &Sources,
    (shape, found): (Option<&StreamShape>, &Meta),
) -> Result<Vec<Facet>, Problem> {
    let mut facets = vec![
        connections(viewer, question, sources, &found.by_stream),
        streams(viewer, question, sources, &found.by_stream),
        years(viewer, question, &found.by_year).await?,
    ];
    let fields = shape.into_iter().flat_map(|shape| &shape.fields);
    let telling = fields.filter(|field| field.groups && field.exact && !field.is_time);
    let telling = telling.filter(|field| !field.name.as_str().ends_with("id"));
    for field in telling.take(FIELDS) {
        facets.push(values(viewer, question, field).await?);
    }
    facets.retain(|facet| !facet.choices.is_empty());
    Ok(facets)
}

/// The connections that have hits, the most first; those beside a chosen one without a figure.
fn connections(
    viewer: &Viewer,
    question: &Question,
    sources: &Sources,
    found: &[StreamCount],
) -> Facet {
    let here = question.connection.as_deref();
    let mut counted: Vec<(Option<u64>, Choice)> = Vec::new();
    for source in &sources.0 {
        let own = found
            .iter()
            .filter(|one| one.connection_id.as_str() == source.id);
        let count = own.map(|one| one.count).sum();
        let is_here = here == Some(source.id.as_str());
        let count = (here.is_none() || is_here).then_some(count);
        if count != Some(0) || is_here {
            let address = widened(viewer, "connection").set("connection", &source.id);
            counted.push((count, choice(source.name.clone(), count, &address, is_here)));
        }
    }
    Facet {
        name: "Connection".to_owned(),
        choices: most_first(counted),
        clear: clear(viewer, here, "connection"),
    }
}

/// The streams that have hits, the most first: of the chosen connection, or of all; those beside a chosen one without a
/// figure.
fn streams(
    viewer: &Viewer,
    question: &Question,
    sources: &Sources,
    found: &[StreamCount],
) -> Facet {
    let (connection, here) = (question.connection.as_deref(), question.stream.as_ref());
    let mut counted: Vec<(Option<u64>, Choice)> = Vec::new();
    let is_in = |source: &&Source| connection.is_none_or(|id| id == source.id);
    for source in sources.0.iter().filter(is_in) {
        for stream in &source.streams {
            let mut own = found
                .iter()
                .filter(|one| one.connection_id.as_str() == source.id && one.stream == stream.name);
            let is_here = here == Some(&stream.name) && connection.is_some();
            let count = own.next().map_or(0, |one| one.count);
            let count = (here.is_none() || is_here).then_some(count);
            if count == Some(0) && !is_here {
                continue;
            }
            let name = match connection {
                None => format!("{}, {}", source.name, stream.label),
                Some(_) => stream.label.clone(),
            };
            let address = widened(viewer, "stream").set("connection", &source.id);
            let address = address.set("stream", stream.name.as_str());
            counted.push((count, choice(name, count, &address, is_here)));
        }
    }
    Facet {
        name: "Stream".to_owned(),
        choices: most_first(counted),
        clear: clear(viewer, here.map(StreamName::as_str), "stream"),
    }
}

fn choice(name: String, count: Option<u64>, address: &Address, here: bool) -> Choice {
    Choice {
        name,
        count: count.map(format_number).unwrap_or_default(),
        address: address.to_string(),
        here,
    }
}

fn most_first(mut counted: Vec<(Option<u64>, Choice)>) -> Vec<Choice> {
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let counted = counted.into_iter().take(MAX_CHOICES);
    counted.map(|(_, choice)| choice).collect()
}

/// The years that have hits, the last ones first.
async fn years(
    viewer: &Viewer,
    question: &Question,
    found: &[(i16, u64)],
) -> Result<Facet, Problem> {
    // Hits of one year do not tell of the others.
    let in_all_years = if question.year.is_some() {
        let mut query = question.narrowed(None)?;
        query.count = Count::Exact;
        query.by_year = true;
        query.limit = PageLimit::new(1);
        viewer.reader.search(query).await?.meta
    } else {
        None
    };
    let found = in_all_years.as_ref().map_or(found, |meta| &meta.by_year);
    let here = question.year.map(|year| year.to_string());
    let last = found.iter().rev().take(MAX_CHOICES);
    let mut choices: Vec<Choice> = last
        .map(|(year, count)| {
            let year = year.to_string();
            let address = viewer.here.clone().set("year", &year);
            let is_here = here.as_ref() == Some(&year);
            choice(year, Some(*count), &address, is_here)
        })
        .collect();
    if let Some(year) = &here
        && !choices.iter().any(|choice| choice.here)
    {
        choices.push(choice(year.clone(), Some(0), &viewer.here, true));
    }
    Ok(Facet {
        name: "Year".to_owned(),
        choices,
        clear: clear(viewer, here.as_deref(), "year"),
    })
}

/// The most common values of a field, as far as its declaration groups by it.
async fn values(
    viewer: &Viewer,
    question: &Question,
    field: &FieldShape,
) -> Result<Facet, Problem> {
    let mut candidates = Vec::new();
    if let Some(stream) = &question.stream {
        let grouping = Some(Grouping::new(
            GroupBy::Field(field.name.clone()),
            Some(VALUES),
        )?);
        let mut most = AggregateQuery::new(stream.clone(), Metric::Count, grouping)?;
        most.connection_id.clone_from(&question.connection);
        let most = viewer.reader.aggregate(most).await?;
        for group in most.groups.iter().flatten() {
            let raw = group.key.get();
            if raw == "null" {
                continue;
            }
            let value = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
            let mut query = question.narrowed(Some(&field.name))?;
            query.period = question.year.map(super::year).unwrap_or_default();
            let filter = Filter::exact(field.name.clone(), value.clone());
            query.filters.push(filter);
            candidates.push(Candidate {
                name: one_line(&value, VALUE_CHARS),
                value,
                query,
            });
        }
    }
    let chosen = question.values.iter().find(|(name, _)| *name == field.name);
    let here = chosen.map(|(_, value)| value.as_str());
    let param = format!("filter[{}]", field.name);
    Ok(Facet {
        name: field.title.clone(),
        choices: counted(viewer, &param, here, candidates).await,
        clear: clear(viewer, here, &param),
    })
}

/// The search without a choice, and without what narrows it further.
fn clear(viewer: &Viewer, here: Option<&str>, param: &str) -> String {
    match here {
        None => String::new(),
        Some(_) => widened(viewer, param).without(&[param]).to_string(),
    }
}

/// This search without what has a meaning only under the choice that a parameter makes.
fn widened(viewer: &Viewer, param: &str) -> Address {
    let address = viewer.here.clone();
    match param {
        "connection" => address.without(&["stream"]).without_filters(),
        "stream" => address.without_filters(),
        _ => address,
    }
}

/// The choices that have hits, or are chosen. What narrows a choice further is dropped with another choice.
async fn counted(
    viewer: &Viewer,
    param: &str,
    here: Option<&str>,
    candidates: Vec<Candidate>,
) -> Vec<Choice> {
    let mut running = JoinSet::new();
    for (at, candidate) in candidates.into_iter().take(MAX_CHOICES).enumerate() {
        let reader = viewer.reader.clone();
        running.spawn(async move { (at, count(reader, &candidate).await, candidate) });
    }
    let mut counted: Vec<(usize, Option<u64>, Candidate)> = Vec::new();
    while let Some(one) = running.join_next().await {
        counted.extend(one.ok());
    }
    counted.sort_by_key(|(at, ..)| *at);
    let choice = |(_, count, candidate): (usize, Option<u64>, Candidate)| {
        let is_here = here == Some(candidate.value.as_str());
        let is_shown = is_here || count != Some(0);
        is_shown.then(|| Choice {
            address: widened(viewer, param)
                .set(param, &candidate.value)
                .to_string(),
            name: candidate.name,
            count: count.map(format_number).unwrap_or_default(),
            here: is_here,
        })
    };
    counted.into_iter().filter_map(choice).collect()
}

/// How many records a search finds; nothing where that cannot be said now.
async fn count(reader: GrantReader, candidate: &Candidate) -> Option<u64> {
    let mut query = candidate.query.clone();
    query.count = Count::Exact;
    query.limit = PageLimit::new(1);
    let page = reader.search(query).await.ok()?;
    page.meta?.count.as_option()?.value()
}
