//! The search page: words over everything, narrowed by connection, stream and year, with a count for each.

mod facets;

use askama::Template;
use axum::http::StatusCode;
use contract::id::{FieldName, StreamName};
use contract::page::Page;
use contract::query::{Count, Filter, PageLimit};
use contract::reader::ReadContract as _;
use contract::search::{SearchHit, SearchOrder, SearchQuery};
use contract::time::{Instant, TimeRange};
use contract::words::WordsFound;

use self::facets::Facet;
use super::format::{format_number, label, one_line, readable};
use super::frame::{Frame, Section};
use super::html;
use super::moment::Moment;
use super::sources::Sources;
use super::stream_shape::StreamShape;
use super::viewer::Viewer;
use crate::params::{Params, invalid_param};
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

const HITS: u32 = 20;
const TITLE_CHARS: usize = 160;
/// Parameters that another search keeps.
const KEPT: [&str; 5] = ["connection", "stream", "year", "order", "as"];
const PASSAGE_CHARS: usize = 300;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    q: String,
    /// What narrows the search, to be kept by the form.
    kept: Vec<(String, String)>,
    asked: bool,
    /// The same words without what narrows the search.
    everywhere: String,
    total: String,
    remarks: Vec<Remark>,
    hits: Vec<HitRow>,
    orders: Vec<OrderLink>,
    facets: Vec<Facet>,
    next: String,
    first: String,
}

/// A sentence about the answer, and searches it speaks of.
struct Remark {
    text: String,
    searches: Vec<(String, String)>,
}

impl From<String> for Remark {
    fn from(text: String) -> Self {
        Self {
            text,
            searches: Vec::new(),
        }
    }
}

struct OrderLink {
    name: &'static str,
    address: String,
    here: bool,
}

struct HitRow {
    title: String,
    address: String,
    author: String,
    at: Option<Moment>,
    source: String,
    stream: String,
    colour: usize,
    excerpt: Vec<Piece>,
    /// Why it is here although no word of it was asked for.
    near: &'static str,
}

/// A part of an excerpt.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    text: String,
    marked: bool,
}

/// What the address asks for.
pub(super) struct Question {
    q: String,
    connection: Option<String>,
    stream: Option<StreamName>,
    year: Option<u16>,
    /// Values that fields of the stream must have.
    values: Vec<(FieldName, String)>,
    order: SearchOrder,
    cursor: Option<String>,
}

impl Question {
    fn from_params(params: &Params) -> Result<Self, Problem> {
        let stream = params.text("stream");
        let stream = stream.map(|name| crate::query_params::stream(name, true));
        Ok(Self {
            q: params.text("q").unwrap_or_default().to_owned(),
            connection: params.text("connection").map(str::to_owned),
            stream: stream.transpose()?,
            year: params.text("year").map(parse_year).transpose()?,
            values: values(params)?,
            order: match params.text("order") {
                Some(name) => SearchOrder::parse(name)?,
                None => SearchOrder::default(),
            },
            cursor: params.text("cursor").map(str::to_owned),
        })
    }

    /// The question for the reader.
    fn query(&self) -> Result<SearchQuery, Problem> {
        let mut query = self.narrowed(None)?;
        query.period = self.year.map(year).unwrap_or_default();
        query.order = self.order;
        query.count = Count::Exact;
        query.by_year = true;
        query.limit = PageLimit::new(HITS);
        query.cursor.clone_from(&self.cursor);
        Ok(query)
    }

    /// The words in what was chosen, but for the year, and the value of one field.
    fn narrowed(&self, but: Option<&FieldName>) -> Result<SearchQuery, Problem> {
        let mut query = SearchQuery::new(self.q.clone())?;
        query.connection_id.clone_from(&self.connection);
        query.streams = self.stream.iter().cloned().collect();
        let values = self.values.iter().filter(|(name, _)| Some(name) != but);
        let values = values.map(|(name, value)| Filter::exact(name.clone(), value.clone()));
        Ok(query.filtered(values.collect())?)
    }
}

/// Conditions as `/v1` writes them: `filter[field]=value`.
fn values(params: &Params) -> Result<Vec<(FieldName, String)>, Problem> {
    let mut values = Vec::new();
    for entry in params.entries("filter") {
        let [name] = entry.path.as_slice() else {
            let error = invalid_param("filter", "a search is narrowed by whole values");
            let hint = "write filter[field]=value; the table of a stream takes ranges";
            return Err(error.with_hint(hint).into());
        };
        let name = FieldName::parse(name);
        let name = name.map_err(|error| invalid_param("filter", error.to_string()))?;
        values.push((name, entry.value.clone()));
    }
    Ok(values)
}

fn parse_year(text: &str) -> Result<u16, Problem> {
    let year = text.parse().ok().filter(|year| (1..=9999).contains(year));
    let wrong = || invalid_param("year", "this is no year").with_hint("write it as 2026");
    Ok(year.ok_or_else(wrong)?)
}

fn year(year: u16) -> TimeRange {
    let first_day = |year: u16| Instant::parse(&format!("{year:04}-01-01"));
    TimeRange {
        since: first_day(year),
        until: first_day(year.saturating_add(1)),
    }
}

/// `GET /search`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let viewer = Viewer::enter(&context, Section::Search).await?;
    let question = Question::from_params(&viewer.params)?;
    let kept = viewer.here.pairs().iter();
    let kept =
        kept.filter(|(name, _)| KEPT.contains(&name.as_str()) || name.starts_with("filter["));
    let mut page = SearchPage {
        q: question.q.clone(),
        kept: kept.cloned().collect(),
        asked: !question.q.trim().is_empty(),
        everywhere: viewer.address("/search").with("q", &question.q).to_string(),
        total: String::new(),
        remarks: Vec::new(),
        hits: Vec::new(),
        orders: Vec::new(),
        facets: Vec::new(),
        next: String::new(),
        first: String::new(),
        frame: Frame::signed_out(),
    };
    if page.asked {
        answer(&viewer, &question, &mut page).await?;
    }
    page.frame = viewer.frame;
    html(StatusCode::OK, &page)
}

async fn answer(
    viewer: &Viewer,
    question: &Question,
    page: &mut SearchPage,
) -> Result<(), Problem> {
    let sources = Sources::read(viewer).await?;
    let shape = match (&question.connection, &question.stream) {
        (Some(connection), Some(stream)) => {
            Some(StreamShape::read(viewer, stream, connection).await?)
        }
        _ => None,
    };
    let found = viewer.reader.search(question.query()?).await?;
    let meta = found.meta.as_ref();
    let count = meta.and_then(|meta| meta.count.as_option()?.value());
    page.total = count.map(format_number).unwrap_or_default();
    page.remarks = remarks(viewer, &question.q, &found);
    page.hits = found
        .data
        .iter()
        .map(|hit| row(viewer, &sources, hit))
        .collect();
    page.orders = orders(viewer, question.order);
    if let Some(meta) = meta {
        let narrowing = (shape.as_ref(), meta);
        page.facets = facets::read(viewer, question, &sources, narrowing).await?;
    }
    if let Some(cursor) = found.next_cursor() {
        page.next = viewer.here.clone().at(cursor).to_string();
    }
    if question.cursor.is_some() {
        page.first = viewer.here.clone().without(&[]).to_string();
    }
    Ok(())
}

fn orders(viewer: &Viewer, here: SearchOrder) -> Vec<OrderLink> {
    let link = |order: SearchOrder| OrderLink {
        name: match order {
            SearchOrder::Relevance => "Best first",
            SearchOrder::Newest => "Newest first",
            SearchOrder::Oldest => "Oldest first",
        },
        address: viewer.here.clone().set("order", order.as_str()).to_string(),
        here: order == here,
    };
    SearchOrder::ALL.map(link).into()
}

/// What to know about the answer, in sentences.
fn remarks(viewer: &Viewer, q: &str, found: &Page<SearchHit>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let Some(meta) = &found.meta else {
        return remarks;
    };
    if meta.index_maintenance.is_some() {
        let text = "Not every record can be found yet: the index is being built.".to_owned();
        remarks.push(text.into());
    }
    if let Some(words) = &meta.words {
        let address = |q: &str| viewer.here.clone().set("q", q).to_string();
        remarks.extend(word_remarks(words, q, address));
    }
    remarks.extend(
        meta.warnings()
            .iter()
            .map(|warning| label(&warning.message).into()),
    );
    remarks
}

fn word_remarks(words: &WordsFound, q: &str, address: impl Fn(&str) -> String) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if !words.missing.is_empty() {
        let missing = label(&words.missing.join(", "));
        remarks.push(format!("Found nowhere: {missing}.").into());
    }
    for one in &words.respelled {
        let meant = one.found.iter().map(|word| {
            let q = with_word(q, &one.term, word);
            (label(word), address(&q))
        });
        remarks.push(Remark {
            text: format!(
                "{} occurs nowhere, so near spellings were looked for. Did you mean",
                label(&one.term)
            ),
            searches: meant.collect(),
        });
    }
    remarks
}

/// The question with another word in the place of one of its words.
fn with_word(q: &str, term: &str, word: &str) -> String {
    // What stands around the word is part of the question: a sign, quotation marks, a star.
    let replaced = |one: &str| {
        let core = one.trim_matches(|c: char| !c.is_alphanumeric());
        if core.is_empty() || core.to_lowercase() != term.to_lowercase() {
            return one.to_owned();
        }
        one.replacen(core, word, 1)
    };
    let words: Vec<String> = q.split_whitespace().map(replaced).collect();
    words.join(" ")
}

fn row(viewer: &Viewer, sources: &Sources, hit: &SearchHit) -> HitRow {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (connection, stream) = (text(&hit.connection_id), text(&hit.stream));
    let key = text(&hit.record_key);
    let excerpt = hit.evidence_excerpts.iter().flatten().next();
    let excerpt = excerpt.and_then(|excerpt| excerpt.preview_text.as_deref());
    let passage = hit.passage.as_ref().map(|passage| Piece {
        text: one_line(&passage.text, PASSAGE_CHARS),
        marked: false,
    });
    HitRow {
        title: match (&hit.title, &hit.author) {
            (Some(title), _) => one_line(title, TITLE_CHARS),
            // A message of a chat has no title, and its key tells a person nothing.
            (None, Some(author)) => {
                let stream = sources.label(&connection, &stream);
                format!("{}, {stream}", one_line(author, TITLE_CHARS))
            }
            (None, None) => one_line(&key, TITLE_CHARS),
        },
        address: viewer.record(&connection, &stream, &key),
        author: one_line(&text(&hit.author), TITLE_CHARS),
        at: hit.authored_at.as_deref().and_then(Moment::parse),
        source: sources
            .get(&connection)
            .map_or_else(|| label(&connection), |source| source.name.clone()),
        stream: sources.label(&connection, &stream),
        colour: sources.get(&connection).map_or(0, |source| source.colour),
        excerpt: match excerpt {
            Some(text) => pieces(text),
            None => passage.into_iter().collect(),
        },
        near: match &hit.near {
            Some(_) => "next to a match in the same conversation",
            None => "",
        },
    }
}

/// Cuts an excerpt at its marks. A `<mark` of the record itself was escaped, and is written as it was.
fn pieces(preview: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |text: &str, marked: bool| {
        let text = readable(text)
            .replace("&lt;mark", "<mark")
            .replace("&lt;/mark", "</mark");
        if !text.is_empty() {
            pieces.push(Piece { text, marked });
        }
    };
    for (at, part) in preview.split("<mark>").enumerate() {
        match part.split_once("</mark>") {
            Some((marked, rest)) if at > 0 => {
                push(marked, true);
                push(rest, false);
            }
            _ => push(part, false),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_was_meant_takes_the_place_of_the_one_that_was_typed() {
        assert_eq!(
            with_word("the Brigde, now", "brigde", "bridge"),
            "the bridge, now"
        );
        assert_eq!(
            with_word("+Brigde \"old brigde\" -x", "brigde", "bridge"),
            "+bridge \"old bridge\" -x"
        );
        assert_eq!(with_word("quay", "brigde", "bridge"), "quay");
    }

    #[test]
    fn an_excerpt_is_cut_at_its_marks() {
        let piece = |text: &str, marked| Piece {
            text: text.to_owned(),
            marked,
        };
        assert_eq!(
            pieces("a <mark>b</mark> &lt;mark>c&lt;/mark> <mark>d</mark>"),
            [
                piece("a ", false),
                piece("b", true),
                piece(" <mark>c</mark> ", false),
                piece("d", true)
            ]
        );
        assert_eq!(pieces("</mark>"), [piece("</mark>", false)]);
    }
}
