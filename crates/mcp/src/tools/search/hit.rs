//! One hit of a search: who it is, and what the server proved about it.

use contract::handle::RecordHandle;
use serde_json::{Map, Value, json};

use crate::args::can_be_listed;
use crate::budget;
use crate::evidence::identity::{self, Identity, at, connection_of, connector_of, text};
use crate::evidence::{ladder, marks, plain};

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
/// The longest window that may be asked for.
const MAX_LIMIT: u64 = contract::window::MAX_LIMIT_CHARS as u64;
/// Shorter texts may be no more than the words that matched.
const BARE: usize = 48;
const FIELDS: [&str; 5] = [
    "/field_path",
    "/fieldPath",
    "/path",
    "/field/path",
    "/field",
];

pub(super) struct Hit<'a> {
    raw: &'a Value,
    pub(super) identity: Identity,
    pub(super) title: String,
    /// The best match in a few words, as the server chose them.
    pub(super) snippet: Option<String>,
    pub(super) excerpts: Vec<Excerpt>,
}

/// A proven match: a text, and the field it stands in.
pub(super) struct Excerpt {
    pub(super) field: String,
    /// As the server sent it, with marks.
    pub(super) text: String,
    /// The same within bounds.
    pub(super) preview: String,
    /// Whether the preview is all the field holds.
    pub(super) complete: bool,
    /// The call that reads on, where the record can be named.
    pub(super) read: Option<Value>,
}

impl<'a> Hit<'a> {
    pub(super) fn read(raw: &'a Value, place: usize, query: &str) -> Self {
        let identity = Identity::of_hit(raw, place);
        // Only matches are marked.
        let title = marks::unmarked(&identity::title(raw, &identity));
        let snippet = raw.get("snippet").and_then(snippet_text);
        let snippet = snippet.map(|text| marks::excerpt_for(text, query, budget::EXCERPT).0);
        Self {
            title: plain::cut(&title, budget::PREVIEW).into_owned(),
            snippet,
            excerpts: excerpts(raw, &identity, query),
            identity,
            raw,
        }
    }

    /// Whether `fetch` takes its id.
    pub(super) fn is_fetchable(&self) -> bool {
        self.identity.handle.is_some()
    }

    pub(super) fn connection(&self) -> Option<&str> {
        let handle = self.identity.handle.as_ref();
        handle
            .and_then(RecordHandle::connection)
            .or_else(|| connection_of(self.raw))
    }

    pub(super) fn stream(&self) -> Option<&str> {
        let handle = self.identity.handle.as_ref();
        handle
            .map(RecordHandle::stream)
            .or_else(|| text(self.raw, "stream"))
    }

    pub(super) fn connector(&self) -> Option<&str> {
        connector_of(self.raw)
    }

    pub(super) fn label(&self) -> Option<&str> {
        text(self.raw, "display_name")
    }

    /// When it was written, for a hit that has no title of its own.
    pub(super) fn untitled_time(&self) -> Option<&str> {
        let time = identity::time(self.raw)?;
        self.title.ends_with(time).then_some(time)
    }

    /// The call that gets the whole record.
    pub(super) fn fetch(&self) -> Option<Value> {
        self.is_fetchable()
            .then(|| ladder::call("fetch", self.identity.args()))
    }

    /// The entry of `results`.
    pub(super) fn result(&self, provider: Option<&str>) -> Value {
        let mut entry = Map::new();
        let handle = self.identity.handle.as_ref();
        let label = self.label();
        let known = [
            ("id", Some(self.identity.id.clone())),
            ("title", Some(self.title.clone())),
            ("url", Some(self.identity.url(self.raw, provider))),
            ("stream", self.stream().map(str::to_owned)),
            (
                "record_key",
                handle.map(|handle| handle.record().to_owned()),
            ),
            ("connection_id", self.connection().map(str::to_owned)),
            (
                "display_name",
                label.map(|label| plain::cut(label, budget::PREVIEW).into_owned()),
            ),
            ("connector_key", self.connector().map(str::to_owned)),
            ("snippet", self.snippet.clone()),
            ("evidence_preview", self.evidence_preview()),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                entry.insert(name.to_owned(), Value::String(value));
            }
        }
        if !self.is_fetchable() {
            entry.insert("fetchable".to_owned(), Value::Bool(false));
        }
        if !self.excerpts.is_empty() {
            let excerpts: Vec<Value> = self.excerpts.iter().map(Excerpt::described).collect();
            entry.insert("evidence_excerpts".to_owned(), Value::Array(excerpts));
        }
        Value::Object(entry)
    }

    /// The entry of the ladder: identity, and the fields the server proved.
    pub(super) fn into_rung(self) -> Option<Value> {
        let mut entry = ladder::head(&self.identity)?;
        if let Some(preview) = self.evidence_preview() {
            entry.insert("evidence_preview".to_owned(), Value::String(preview));
        }
        let windows = self.excerpts.into_iter().map(Excerpt::into_window);
        entry.insert("field_windows".to_owned(), windows.collect());
        Some(Value::Object(entry))
    }

    fn evidence_preview(&self) -> Option<String> {
        self.excerpts.first().map(|excerpt| excerpt.preview.clone())
    }
}

impl Excerpt {
    fn status(&self) -> &'static str {
        if self.complete {
            "complete"
        } else {
            "truncated"
        }
    }

    fn described(&self) -> Value {
        let mut described = Map::with_capacity(4);
        described.insert("field_path".to_owned(), json!(self.field));
        described.insert("preview_text".to_owned(), json!(self.preview));
        described.insert("preview_status".to_owned(), json!(self.status()));
        if let Some(read) = &self.read {
            described.insert("read".to_owned(), read.clone());
        }
        Value::Object(described)
    }

    fn into_window(self) -> Value {
        let status = json!(self.status());
        let mut window = Map::with_capacity(3);
        window.insert("field_path".to_owned(), Value::String(self.field));
        window.insert("preview_status".to_owned(), status);
        window.insert("read".to_owned(), self.read.unwrap_or_default());
        Value::Object(window)
    }
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
    let (preview, was_cut) = marks::excerpt_for(text, query, budget::EXCERPT);
    let is_whole = entry.get("truncated") == Some(&Value::Bool(false))
        || entry.get("complete") == Some(&Value::Bool(true));
    Some(Excerpt {
        field: field.to_owned(),
        text: text.to_owned(),
        preview,
        complete: is_whole && !was_cut,
        read: read((entry, text), field, identity),
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
fn read((entry, text): (&Value, &str), field: &str, identity: &Identity) -> Option<Value> {
    let named;
    let identity = if identity.handle.is_some() {
        identity
    } else {
        named = named_by(entry)?;
        &named
    };
    if !ladder::is_readable(field) {
        // It may show the beginning only, but that is what can be had.
        return can_be_listed(field).then(|| ladder::projected_fetch(identity, field));
    }
    if let Some((offset, limit)) = window_of(entry) {
        return Some(ladder::window_read(identity, field, offset, limit));
    }
    if let Some(start) = start_of(entry) {
        let length = u64::try_from(marks::unmarked_chars(text)).unwrap_or(u64::MAX);
        let limit = budget::WINDOW_CHARS as u64;
        // The excerpt is already known; around its middle there is more to learn.
        let offset = start
            .saturating_add(length / 2)
            .saturating_sub(limit / 2)
            .min(start);
        return Some(ladder::window_read(identity, field, offset, limit));
    }
    let hinted = first_text(entry, &["/read/args/q", "/read/q"]).map(str::to_owned);
    let marked = || {
        TEXTS
            .iter()
            .find_map(|place| marks::first_marked(at(entry, place)?.as_str()?))
    };
    let words = hinted.or_else(marked);
    Some(match words.filter(|words| !words.trim().is_empty()) {
        Some(words) => {
            let mut args = identity.args();
            args.insert("field_path".to_owned(), json!(field));
            args.insert("q".to_owned(), json!(words));
            ladder::call("read_record_field", args)
        }
        None => ladder::window_read(identity, field, 0, budget::WINDOW_CHARS as u64),
    })
}

/// The window a server names itself, if it is one that can be asked for.
fn window_of(entry: &Value) -> Option<(u64, u64)> {
    let read = entry.get("read")?;
    let args = read.get("args").unwrap_or(read);
    let number = |name: &str| args.get(name)?.as_u64();
    let limit = number("limit_chars").filter(|limit| (1..=MAX_LIMIT).contains(limit))?;
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
        return Some(Identity::of(handle));
    }
    let (stream, record) = (text(args, "stream")?, text(args, "record_id")?);
    let handle = RecordHandle::new(connection_of(args), stream, record);
    handle.ok().map(Identity::of)
}
