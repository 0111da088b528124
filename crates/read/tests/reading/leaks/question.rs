//! A random request, asked of a reader and answered as text: success or refusal, page by page, cursors blotted out.

use std::collections::BTreeMap;

use contract::aggregate::{AggregateQuery, Granularity, GroupBy, Grouping, Metric};
use contract::citation::VerifyQuery;
use contract::declaration::FilterOperator;
use contract::id::ViewId;
use contract::query::{
    ChangesSince, Count, ExpandRequest, Filter, ListOptions, Order, PageLimit, Projection, Reading,
    RecordQuery, RecordsQuery, Sort, StreamQuery, WindowQuery,
};
use contract::schema::{SchemaDetail, SchemaQuery};
use contract::search::{Matching, SearchMode, SearchOrder, SearchQuery, parse_period};
use contract::window::WindowSelector;
use serde_json::Value;
use testkit::Dice;

use super::scene::{CONNECTIONS, IDS, STREAMS, Scene, WORDS, fields_of};
use crate::fixture::{Answered, Reader, field, stream};

/// Bookmarks by stream and connection.
pub(crate) type Marks = BTreeMap<(&'static str, &'static str), String>;

#[derive(Debug)]
pub(crate) enum Question {
    Schema(SchemaQuery),
    Streams(Option<String>),
    Stream(StreamQuery),
    Records(RecordsQuery),
    /// Since the bookmark of a stream and connection.
    Since(&'static str, &'static str, RecordsQuery),
    Record(RecordQuery),
    Window(WindowQuery),
    Aggregate(AggregateQuery),
    Search(SearchQuery),
}

impl Question {
    pub(crate) fn random(dice: &mut Dice, scene: &Scene) -> Self {
        let name = stream(name(dice));
        let connection_id = connection(dice, scene);
        match dice.below(10) {
            0 => Self::Schema(SchemaQuery {
                detail: dice.pick(&[
                    SchemaDetail::Whole,
                    SchemaDetail::Compact,
                    SchemaDetail::FullStream,
                ]),
                stream: dice.once_in(2).then_some(name),
                connection_id,
                connector_id: None,
            }),
            1 => Self::Streams(connection_id),
            2 => Self::Stream(StreamQuery {
                stream: name,
                connection_id,
            }),
            3 | 4 => Self::Records(records(dice, name, connection_id)),
            5 => Self::Record(RecordQuery {
                record_id: dice.pick(&IDS).to_owned(),
                connection_id,
                projection: projection(dice, name.as_str()),
                expand: expand(dice),
                stream: name,
            }),
            6 => Self::Window(window(dice, name, connection_id)),
            7 => Self::Aggregate(aggregate(dice, name, connection_id)),
            _ => Self::Search(search(dice, name, connection_id)),
        }
    }

    /// Every granted feed, from the beginning and from its bookmark.
    pub(crate) fn feeds(scene: &Scene) -> Vec<Self> {
        let mut questions = Vec::new();
        for (name, granted) in &scene.granted {
            for connection in &granted.connections {
                let mut query = RecordsQuery::new(stream(name));
                query.connection_id = Some((*connection).to_owned());
                query.limit = PageLimit::new(2);
                query.reading = Reading::Changes(ChangesSince::Beginning);
                questions.push(Self::Records(query.clone()));
                questions.push(Self::Since(name, connection, query));
            }
        }
        questions
    }

    /// Whether the request itself holds the text; then an answer may repeat it.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        format!("{self:?}").contains(text)
    }

    pub(crate) fn answer(&self, reader: &Reader, marks: &Marks) -> String {
        match self {
            Self::Schema(query) => comparable(reader.schema(query.clone())),
            Self::Streams(connection) => comparable(reader.streams(connection.as_deref())),
            Self::Stream(query) => comparable(reader.metadata(query.clone())),
            Self::Records(query) => pages(reader, query.clone()),
            Self::Since(name, connection, query) => {
                let mut query = query.clone();
                let mark = marks[&(*name, *connection)].clone();
                query.reading = Reading::Changes(ChangesSince::Bookmark(mark));
                pages(reader, query)
            }
            Self::Record(query) => comparable(reader.record(query.clone())),
            Self::Window(query) => comparable(reader.window(query.clone())),
            Self::Aggregate(query) => comparable(reader.aggregate(query.clone())),
            Self::Search(query) => searched_pages(reader, query.clone()),
        }
    }
}

fn comparable(answer: Answered) -> String {
    match answer {
        Ok(mut answer) => {
            for token in ["next_cursor", "next_changes_since"] {
                if let Some(value) = answer.get_mut(token) {
                    *value = Value::from("a token");
                }
            }
            answer.to_string()
        }
        Err(error) => serde_json::to_string(&error).unwrap(),
    }
}

fn pages(reader: &Reader, mut query: RecordsQuery) -> String {
    let mut pages = Vec::new();
    loop {
        let answer = reader.records(query.clone());
        let cursor = answer
            .as_ref()
            .ok()
            .and_then(|page| page["next_cursor"].as_str());
        let cursor = cursor.map(str::to_owned);
        pages.push(comparable(answer));
        let Some(cursor) = cursor else { break };
        let mut options = match query.reading {
            Reading::List(options) => options,
            Reading::Changes(_) => ListOptions::default(),
        };
        options.cursor = Some(cursor);
        query.reading = Reading::List(options);
    }
    pages.join("\n")
}

/// A search whose first page was read earlier.
#[derive(Debug)]
pub(crate) struct Begun(SearchQuery);

impl Begun {
    pub(crate) fn random(dice: &mut Dice, scene: &Scene) -> SearchQuery {
        let name = stream(name(dice));
        let connection_id = connection(dice, scene);
        let mut query = search(dice, name, connection_id);
        query.limit = PageLimit::new(u32::try_from(dice.below(3) + 1).unwrap());
        query
    }

    /// Reads the first page; nothing where there is no other.
    pub(crate) fn read(reader: &Reader, mut query: SearchQuery) -> Option<Self> {
        let page = reader.search(query.clone()).ok()?;
        query.cursor = Some(page["next_cursor"].as_str()?.to_owned());
        Some(Self(query))
    }

    pub(crate) fn go_on(&self, reader: &Reader) -> String {
        searched_pages(reader, self.0.clone())
    }
}

/// A text that was cited earlier.
#[derive(Debug)]
pub(crate) struct Cited {
    window: WindowQuery,
    citation: String,
}

impl Cited {
    pub(crate) fn window(dice: &mut Dice, scene: &Scene) -> WindowQuery {
        let name = stream(name(dice));
        let connection_id = connection(dice, scene);
        window(dice, name, connection_id)
    }

    /// Reads the text; nothing where there is none to cite.
    pub(crate) fn read(reader: &Reader, window: WindowQuery) -> Option<Self> {
        let shown = reader.window(window.clone()).ok()?;
        let citation = shown["cite"].as_str()?.to_owned();
        Some(Self { window, citation })
    }

    /// What has become of it, and what is said of it for every other record.
    pub(crate) fn verify(&self, reader: &Reader) -> String {
        let checks = IDS.iter().map(|id| {
            comparable(reader.verify(VerifyQuery {
                stream: self.window.stream.clone(),
                record_id: (*id).to_owned(),
                connection_id: self.window.connection_id.clone(),
                field: None,
                citation: self.citation.clone(),
            }))
        });
        checks.collect::<Vec<_>>().join("\n")
    }
}

// FI-10: hits, their order and their pages are compared byte by byte.
fn searched_pages(reader: &Reader, mut query: SearchQuery) -> String {
    let mut pages = Vec::new();
    loop {
        let answer = reader.search(query.clone());
        let page = answer.as_ref().ok();
        query.cursor = page.and_then(|page| Some(page["next_cursor"].as_str()?.to_owned()));
        pages.push(comparable(answer));
        if query.cursor.is_none() {
            return pages.join("\n");
        }
    }
}

fn name(dice: &mut Dice) -> &'static str {
    if dice.once_in(12) {
        "nowhere"
    } else {
        dice.pick(&STREAMS)
    }
}

fn connection(dice: &mut Dice, scene: &Scene) -> Option<String> {
    match dice.below(8) {
        0 => None,
        1 => Some("nowhere".to_owned()),
        2 => Some(dice.pick(&CONNECTIONS).to_owned()),
        _ => {
            let granted = &scene.granted[if scene.granted.len() > 1 && dice.once_in(2) {
                "parts"
            } else {
                "notes"
            }];
            Some(dice.pick(&granted.connections).to_owned())
        }
    }
}

fn any_field(dice: &mut Dice, stream: &str) -> &'static str {
    if dice.once_in(15) {
        "nowhere"
    } else {
        dice.pick(fields_of(stream))
    }
}

fn projection(dice: &mut Dice, stream: &str) -> Projection {
    match dice.below(6) {
        0 => Projection::Fields(vec![field(any_field(dice, stream))]),
        1 => Projection::View(ViewId::parse(dice.pick(&["texts", "nowhere"])).unwrap()),
        _ => Projection::All,
    }
}

fn expand(dice: &mut Dice) -> Vec<ExpandRequest> {
    let wanted = dice.once_in(3).then(|| ExpandRequest {
        name: dice.pick(&["pieces", "pieces", "nowhere"]).to_owned(),
        limit: dice.once_in(2).then_some(1),
    });
    wanted.into_iter().collect()
}

fn filters(dice: &mut Dice, stream: &str) -> Vec<Filter> {
    if !dice.once_in(3) {
        return Vec::new();
    }
    let name = any_field(dice, stream);
    let operand = match name {
        "dmoment" | "sent_at" => "2026-03-10T01:00:00+01:00",
        "eamount" => dice.pick(&["2", "3"]),
        "gflag" => "true",
        "pnote" => "n1",
        _ => dice.pick(&WORDS),
    };
    let operator = dice.pick(&[FilterOperator::Gte, FilterOperator::Lt, FilterOperator::Gt]);
    vec![if dice.once_in(2) {
        Filter::exact(field(name), operand)
    } else {
        Filter::range(field(name), vec![(operator, operand.to_owned())])
    }]
}

fn records(
    dice: &mut Dice,
    stream: contract::StreamName,
    connection_id: Option<String>,
) -> RecordsQuery {
    let sort = dice.once_in(4).then(|| any_field(dice, stream.as_str()));
    RecordsQuery {
        connection_id,
        projection: projection(dice, stream.as_str()),
        filters: filters(dice, stream.as_str()),
        limit: PageLimit::new(u32::try_from(dice.below(4)).unwrap()),
        reading: Reading::List(ListOptions {
            cursor: None,
            order: dice.once_in(3).then_some(Order::Ascending),
            sort: sort.map(|name| Sort::parse(name).unwrap()),
            count: dice.pick(&[Count::None, Count::Exact]),
            time_span: dice.once_in(2),
            expand: expand(dice),
        }),
        stream,
    }
}

fn window(
    dice: &mut Dice,
    stream: contract::StreamName,
    connection_id: Option<String>,
) -> WindowQuery {
    WindowQuery {
        record_id: dice.pick(&IDS).to_owned(),
        field: field(any_field(dice, stream.as_str())),
        connection_id,
        selector: WindowSelector {
            limit_chars: dice.once_in(2).then_some(4),
            q: dice.once_in(3).then(|| dice.pick(&WORDS).to_owned()),
            ..WindowSelector::default()
        },
        stream,
    }
}

fn aggregate(
    dice: &mut Dice,
    stream: contract::StreamName,
    connection_id: Option<String>,
) -> AggregateQuery {
    let name = |dice: &mut Dice| {
        field(dice.pick(&["eamount", "eamount", "dmoment", "ftag", "cbody", "nowhere"]))
    };
    let metric = match dice.below(5) {
        0 => Metric::Count,
        1 => Metric::Sum(name(dice)),
        2 => Metric::Min(name(dice)),
        3 => Metric::Max(name(dice)),
        _ => Metric::CountDistinct(name(dice)),
    };
    let by = match dice.below(4) {
        0 => Some(GroupBy::Field(field(
            dice.pick(&["ftag", "gflag", "btitle"]),
        ))),
        1 => Some(GroupBy::Time {
            field: field("dmoment"),
            granularity: Granularity::Month,
            time_zone: None,
        }),
        _ => None,
    };
    let limit = dice.once_in(2).then_some(2);
    let grouping = by.map(|by| Grouping::new(by, limit).unwrap());
    let grouping = grouping.filter(|_| !matches!(metric, Metric::CountDistinct(_)));
    let filters = filters(dice, stream.as_str());
    let mut query = AggregateQuery::new(stream, metric, grouping).unwrap();
    query.connection_id = connection_id;
    query.filters = filters;
    query
}

fn search(
    dice: &mut Dice,
    stream: contract::StreamName,
    connection_id: Option<String>,
) -> SearchQuery {
    let word = dice.pick(&WORDS);
    let q = match dice.below(11) {
        // In other forms, nearly so spelled, as a question.
        7 => format!("{word}ing"),
        8 => format!("{}x", word.get(..word.len() - 1).unwrap_or(word)),
        9 => format!(
            "where is {word} and {} mk{}xcbody",
            dice.pick(&WORDS),
            dice.below(44)
        ),
        10 => format!("+{word} {} {}", dice.pick(&WORDS), dice.pick(&WORDS)),
        0 => format!("{word} -{}", dice.pick(&WORDS)),
        1 => format!("{word} {}", dice.pick(&WORDS)),
        2 => "te*".to_owned(),
        3 => "mk*".to_owned(),
        4 => format!("\"{word} mk{}xcbody\"", dice.below(44)),
        _ => word.to_owned(),
    };
    let mut query = SearchQuery::new(q).unwrap();
    query.limit = PageLimit::new(dice.pick(&[2, 5, 100]));
    query.matching = dice.pick(&[Matching::Any, Matching::Any, Matching::All]);
    query.connection_id = connection_id;
    query.count = dice.pick(&[Count::None, Count::Exact]);
    // AN-03
    query.order = dice.pick(&SearchOrder::ALL);
    // FI-32
    query.mode = dice.pick(&[
        SearchMode::Lexical,
        SearchMode::Lexical,
        SearchMode::Semantic,
        SearchMode::Hybrid,
    ]);
    if query.mode != SearchMode::Lexical {
        query.matching = Matching::Any;
        query.count = Count::None;
        query.order = SearchOrder::Relevance;
    }
    if dice.once_in(2) {
        query.filters = filters(dice, stream.as_str());
        query.streams = vec![stream];
    }
    if dice.once_in(4) {
        let end = |dice: &mut Dice| dice.pick(&[None, Some("2026-02-01"), Some("2026-04-01")]);
        let (since, until) = (end(dice), end(dice));
        query.period = parse_period(since, until).unwrap_or_default();
    }
    query
}
