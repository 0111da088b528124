//! One hit of a search: who it is, and what the server proved about it. Nothing is taken for evidence but a text with its
//! field, in a place where servers put evidence.

use contract::handle::RecordHandle;
use contract::search::{MatchedTerm, Neighbour};
use contract::upstream::path_of;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::naming::{self, at, connection_of, connector_of, text};
use crate::args::can_be_listed;
use crate::budget;
use crate::identity::{Addresses, Identity};
use crate::text::{marks, plain};
use crate::tool_call::ToolCall;

/// Where servers put evidence, the oldest places last.
const EVIDENCE: [&str; 7] = [
    "/evidence_excerpts",
    "/match_windows",
    "/field_windows",
    "/matches",
    "/data/evidence_excerpts",
    "/data/match_windows",
    "/data/field_windows",
];
/// Where an entry has its text, marked before unmarked.
const TEXTS: [&str; 5] = [
    "/preview_text",
    "/text",
    "/window/text",
    "/preview",
    "/snippet",
];
const FIELDS: [&str; 5] = [
    "/field_path",
    "/fieldPath",
    "/path",
    "/field/path",
    "/field",
];
const MAX_LIMIT: u64 = contract::window::MAX_LIMIT_CHARS as u64;
/// Shorter texts may be no more than the words that matched.
const BARE: usize = 48;

#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) identity: Identity,
    pub(crate) title: String,
    /// Whether the title is its own, and not made of source, stream and time.
    pub(crate) is_titled: bool,
    /// When it was written, or failing that, emitted.
    pub(crate) time: Option<String>,
    pub(crate) authored_at: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) stream: Option<String>,
    pub(crate) connection: Option<String>,
    pub(crate) connector: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) addresses: Addresses,
    /// The best match in a few words, as the server chose them.
    pub(crate) snippet: Option<String>,
    pub(crate) excerpts: Vec<Excerpt>,
    /// What was found by its meaning, which no word proves.
    pub(crate) meant: Option<Excerpt>,
    /// What was said right before and after it.
    pub(crate) neighbours: Vec<Neighbour>,
    /// The record it stands next to, where it has no word of the question itself.
    pub(crate) near: Option<String>,
    /// Words of the question that it has in another form, each with that form.
    pub(crate) forms: Vec<(String, String)>,
    /// Words of the question that it has not.
    pub(crate) missing: Vec<String>,
}

/// A proven match: a text, and the field it stands in.
#[derive(Debug)]
pub(crate) struct Excerpt {
    pub(crate) field: String,
    /// As the server sent it, with marks.
    pub(crate) text: String,
    /// The same without marks, within bounds.
    pub(crate) preview: String,
    /// Whether the text is all the field holds.
    pub(crate) complete: bool,
    /// The call that reads on, where the record can be named.
    pub(crate) read: Option<ToolCall>,
}

impl Hit {
    pub(super) fn read(raw: &Value, place: usize, query: &str) -> Self {
        let identity = naming::of_hit(raw, place);
        let owned = |text: Option<&str>| text.map(str::to_owned);
        // Only matches are marked.
        let title = marks::unmarked(&naming::title(raw, &identity));
        let meant = meant(raw, &identity, query);
        // A hit by its neighbour shows how it begins, without being a match; one by meaning has a line that says so.
        let passage = || {
            let passage = raw.get("passage").filter(|_| meant.is_none());
            passage.and_then(snippet_text)
        };
        let snippet = raw.get("snippet").and_then(snippet_text).or_else(passage);
        let handle = identity.handle.as_ref();
        let stream = handle
            .map(RecordHandle::stream)
            .or_else(|| text(raw, "stream"));
        let connection = identity.connection().or_else(|| connection_of(raw));
        Self {
            title: plain::cut(&title, budget::PREVIEW).into_owned(),
            is_titled: naming::own_title(raw).is_some(),
            time: owned(naming::time(raw)),
            authored_at: owned(naming::authored(raw)),
            author: owned(text(raw, "author")),
            stream: owned(stream),
            connection: owned(connection),
            connector: owned(connector_of(raw)),
            label: owned(text(raw, "display_name")),
            addresses: naming::addresses(raw),
            snippet: snippet.map(|text| marks::excerpt_for(text, query, budget::EXCERPT).0),
            excerpts: excerpts(raw, &identity, query),
            meant,
            neighbours: listed(raw, "neighbours"),
            near: owned(text(raw, "near")),
            forms: forms(raw),
            missing: listed(raw, "missing_terms"),
            identity,
        }
    }

    /// Makes the address that cites it from one that the page gives for all hits.
    pub(super) fn cite_below(&mut self, records: &str) {
        let handle = self.identity.handle.as_ref();
        let named = handle.and_then(|handle| Some((handle.connection()?, handle)));
        if let (None, Some((connection, handle))) = (&self.addresses.citation, named) {
            let path = path_of([connection, handle.stream(), handle.record()]);
            self.addresses.citation = Some(format!("{records}{path}"));
        }
    }

    pub(crate) fn evidence_preview(&self) -> Option<&str> {
        self.excerpts
            .first()
            .map(|excerpt| excerpt.preview.as_str())
    }
}

/// The passage of a hit that was found by meaning.
fn meant(raw: &Value, identity: &Identity, query: &str) -> Option<Excerpt> {
    let passage = raw.get("passage")?;
    let is_meant = text(passage, "provenance") == Some(contract::search::SEMANTIC_MATCH);
    is_meant
        .then(|| excerpt(passage, identity, query))
        .flatten()
}

fn forms(raw: &Value) -> Vec<(String, String)> {
    let terms = listed::<MatchedTerm>(raw, "matched_terms").into_iter();
    terms
        .filter_map(|one| Some((one.term, one.found?)))
        .collect()
}

/// A list of a hit; nothing where it is another thing.
fn listed<T: DeserializeOwned>(raw: &Value, name: &str) -> Vec<T> {
    let entries = raw.get(name);
    let entries = entries.and_then(|entries| Vec::deserialize(entries).ok());
    entries.unwrap_or_default()
}

fn snippet_text(snippet: &Value) -> Option<&str> {
    snippet
        .as_str()
        .or_else(|| snippet.get("text")?.as_str())
        .filter(|text| !text.trim().is_empty())
}

/// The entries of the first place that has any with both a text and a field.
fn excerpts(raw: &Value, identity: &Identity, query: &str) -> Vec<Excerpt> {
    for place in EVIDENCE {
        let entries = at(raw, place).and_then(Value::as_array);
        let found: Vec<Excerpt> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| excerpt(entry, identity, query))
            .take(contract::search::MAX_EXCERPTS)
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn excerpt(entry: &Value, identity: &Identity, query: &str) -> Option<Excerpt> {
    let field = first_text(entry, &FIELDS)?;
    let text = best_text(entry)?;
    let centre = marks::first_marked(text);
    let centre = centre.as_deref().unwrap_or(query);
    let (preview, _) = marks::excerpt_for(&marks::unmarked(text), centre, budget::HIT_PREVIEW);
    let is_whole = entry.get("truncated") == Some(&Value::Bool(false))
        || entry.get("complete") == Some(&Value::Bool(true));
    Some(Excerpt {
        field: field.to_owned(),
        text: text.to_owned(),
        preview,
        complete: is_whole,
        read: read(entry, text, field, identity),
    })
}

/// The marked text, unless it is hardly more than the mark and another has context.
fn best_text(entry: &Value) -> Option<&str> {
    let first = first_text(entry, &TEXTS)?;
    if first.len() >= BARE {
        return Some(first);
    }
    let texts = TEXTS.iter().filter_map(|place| at(entry, place)?.as_str());
    texts
        .filter(|text| text.len() > BARE)
        .max_by_key(|text| text.len())
        .or(Some(first))
}

fn first_text<'a>(entry: &'a Value, places: &[&str]) -> Option<&'a str> {
    places
        .iter()
        .filter_map(|place| at(entry, place)?.as_str())
        .find(|text| !text.trim().is_empty())
}

/// The call that reads the field around an excerpt: by offset where the server told one, else by the marked words.
fn read(entry: &Value, text: &str, field: &str, identity: &Identity) -> Option<ToolCall> {
    let named;
    let identity = if identity.is_fetchable() {
        identity
    } else {
        named = named_by(entry)?;
        &named
    };
    if contract::segment::guard(field).is_err() {
        // It may show the beginning only, but that is what can be had.
        return can_be_listed(field).then(|| ToolCall::fetch_field(identity, field));
    }
    if let Some((offset, limit)) = window_of(entry) {
        return Some(window(identity, field, offset, limit));
    }
    if let Some(start) = start_of(entry) {
        let length = u64::try_from(marks::unmarked_chars(text)).unwrap_or(u64::MAX);
        let limit = budget::WINDOW_CHARS as u64;
        // The excerpt is already known; around its middle there is more to learn.
        let offset = start
            .saturating_add(length / 2)
            .saturating_sub(limit / 2)
            .min(start);
        return Some(window(identity, field, offset, limit));
    }
    let hinted = first_text(entry, &["/read/args/q", "/read/q"]).map(str::to_owned);
    let marked = || {
        TEXTS
            .iter()
            .find_map(|place| marks::first_marked(at(entry, place)?.as_str()?))
    };
    let words = hinted.or_else(marked);
    Some(match words.filter(|words| !words.trim().is_empty()) {
        Some(words) => ToolCall::read_field(identity, field).with("q", words),
        None => ToolCall::read_from_start(identity, field),
    })
}

/// The call that reads a window; the one that is read where none is named needs no naming.
fn window(identity: &Identity, field: &str, offset: u64, limit: u64) -> ToolCall {
    if (offset, limit) == (0, budget::WINDOW_CHARS as u64) {
        return ToolCall::read_field(identity, field);
    }
    ToolCall::read_window(identity, field, offset, limit)
}

/// The window a server names itself, if it is one that can be asked for.
fn window_of(entry: &Value) -> Option<(u64, u64)> {
    let read = entry.get("read")?;
    let args = read.get("args").unwrap_or(read);
    let number = |name: &str| args.get(name)?.as_u64();
    let limit = number("limit_chars").unwrap_or(budget::WINDOW_CHARS as u64);
    let limit = Some(limit).filter(|limit| (1..=MAX_LIMIT).contains(limit))?;
    Some((number("offset_chars")?, limit))
}

fn start_of(entry: &Value) -> Option<u64> {
    let places = [
        "/read/offset_chars",
        "/read/args/offset_chars",
        "/text_start_chars",
        "/window/start_chars",
        "/offset_chars",
    ];
    places.iter().find_map(|place| at(entry, place)?.as_u64())
}

/// The record as the evidence names it, for a hit that does not name itself.
fn named_by(entry: &Value) -> Option<Identity> {
    let read = entry.get("read")?;
    let args = read.get("args").unwrap_or(read);
    if let Some(Ok(handle)) = text(args, "id").map(RecordHandle::parse) {
        return Some(Identity::new(handle));
    }
    let (stream, record) = (text(args, "stream")?, text(args, "record_id")?);
    let handle = RecordHandle::new(connection_of(args), stream, record);
    handle.ok().map(Identity::new)
}
