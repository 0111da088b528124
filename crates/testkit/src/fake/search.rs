//! Search: real occurrences with proven excerpts, or hits that a test hands in as they are.

use serde_json::{Map, Value, json};

use super::call::Call;
use super::cursor;
use super::filter::filters;
use super::projection::refuse_client_extras;
use super::reply::Failure;
use super::sources::{connection_json, unknown_connection};
use super::state::{Quirk, State};
use super::window::position;
use super::world::{Record, Source};

const DEFAULT_LIMIT: usize = 25;
const MAX_LIMIT: usize = 100;
/// Characters around the first match of an excerpt.
const CONTEXT: usize = 120;
const MAX_EXCERPTS: usize = 3;

pub(crate) fn answer(state: &State, call: &Call) -> Result<Value, Failure> {
    call.only(&[
        "q",
        "streams",
        "limit",
        "cursor",
        "connection_id",
        "filter[]",
        "count",
    ])?;
    refuse_client_extras(state, call)?;
    let q = call.once("q")?.filter(|q| !q.is_empty());
    let q = q.ok_or_else(|| Failure::invalid("q", "q is required"))?;
    let limit = call
        .number("limit", 1..=MAX_LIMIT)?
        .unwrap_or(DEFAULT_LIMIT);
    let from = match call.once("cursor")? {
        None => 0,
        Some(text) => {
            usize::try_from(cursor::read::<1>("scur", call, text)?[0]).unwrap_or(usize::MAX)
        }
    };
    let hits = match &state.search_hits {
        Some(hits) => given(state, call, hits)?,
        None => hits(state, call, q)?,
    };
    let limit = if state.is(Quirk::IgnoresLimit) {
        usize::MAX
    } else {
        limit
    };
    let until = from.saturating_add(limit).min(hits.len());
    let has_more = until < hits.len() || state.is(Quirk::ForcesHasMore);
    let next = has_more.then(|| cursor::mint("scur", call, &[until as u64]));
    let page = hits.get(from..until).unwrap_or_default();
    Ok(envelope(state, call, page, next, hits.len()))
}

/// The handed-in hits, of the asked connection and streams as far as they name one.
fn given(state: &State, call: &Call, hits: &[Value]) -> Result<Vec<Value>, Failure> {
    let connection = call.once("connection_id")?;
    let streams = call.values("streams");
    let is_asked = |hit: &&Value| {
        let of_connection = match (connection, hit["connection_id"].as_str()) {
            (Some(asked), Some(found)) => {
                asked == found || state.is(Quirk::IgnoresSearchConnection)
            }
            _ => true,
        };
        let stream = hit["stream"].as_str();
        of_connection
            && (streams.is_empty() || stream.is_none_or(|stream| streams.contains(&stream)))
    };
    Ok(hits.iter().filter(is_asked).cloned().collect())
}

fn hits(state: &State, call: &Call, q: &str) -> Result<Vec<Value>, Failure> {
    let sources = sources(state, call)?;
    if !call.bracketed("filter").is_empty() && call.values("streams").len() != 1 {
        return Err(Failure::invalid(
            "streams",
            "filter needs exactly one of streams",
        ));
    }
    let terms: Vec<&str> = q
        .split(|c: char| c.is_whitespace() || c == '"')
        .filter(|term| !term.is_empty())
        .collect();
    let mut hits = Vec::new();
    for source in sources {
        let filters = filters(call, source.stream)?;
        for record in source.records(&state.world) {
            if filters.iter().all(|filter| filter.keeps(record)) {
                hits.extend(hit(source, record, &terms));
            }
        }
    }
    Ok(hits)
}

fn sources<'a>(state: &'a State, call: &Call) -> Result<Vec<Source<'a>>, Failure> {
    let all: Vec<Source<'_>> = state.world.sources().collect();
    let streams = call.values("streams");
    for name in &streams {
        if !all.iter().any(|source| source.stream.name == *name) {
            let message = format!("Stream '{name}' not in grant");
            return Err(Failure::new(403, "grant_stream_not_allowed", message));
        }
    }
    let connection = call.once("connection_id")?;
    if let Some(id) = connection
        && !all.iter().any(|source| source.connection.id == id)
    {
        return Err(unknown_connection());
    }
    let connection = connection.filter(|_| !state.is(Quirk::IgnoresSearchConnection));
    Ok(all
        .into_iter()
        .filter(|source| {
            let stream = source.stream.name.as_str();
            (streams.is_empty() || streams.contains(&stream))
                && connection.is_none_or(|id| id == source.connection.id)
        })
        .collect())
}

/// A hit, if every term occurs in some searched field.
fn hit(source: Source<'_>, record: &Record, terms: &[&str]) -> Option<Value> {
    let fields: Vec<(&str, Vec<char>)> = source
        .stream
        .fields
        .iter()
        .filter(|field| field.granted && field.lexical)
        .filter_map(|field| {
            let text = record.data.get(&field.name)?.as_str()?;
            Some((field.name.as_str(), text.chars().collect()))
        })
        .collect();
    let occurs = |term: &&str| {
        fields
            .iter()
            .any(|(_, chars)| position(chars, term, 0).is_some())
    };
    if terms.is_empty() || !terms.iter().all(occurs) {
        return None;
    }
    let excerpts: Vec<(&str, Excerpt)> = fields
        .iter()
        .filter_map(|(name, chars)| Some((*name, Excerpt::around(chars, terms)?)))
        .collect();
    let (first, shown) = excerpts.first()?;
    let route = route_of(record);
    let mut body = connection_json(&source);
    let members = [
        ("object", json!("search_result")),
        ("stream", json!(record.stream)),
        ("record_key", json!(record.key)),
        ("connector_id", json!(source.connector.key)),
        ("connector_key", json!(source.connector.key)),
        ("connector_instance_id", json!(record.connection_id)),
        ("record_url", json!(route)),
        ("emitted_at", json!(record.emitted_at)),
        (
            "matched_fields",
            json!(excerpts.iter().map(|(name, _)| name).collect::<Vec<_>>()),
        ),
        ("snippet", json!({"field": first, "text": shown.preview})),
    ];
    body.extend(members.map(|(name, value)| (name.to_owned(), value)));
    body.extend(titles(source, record));
    let descriptor = |(name, excerpt): &(&str, Excerpt)| excerpt.descriptor(record, name);
    let descriptors: Vec<Value> = excerpts.iter().take(MAX_EXCERPTS).map(descriptor).collect();
    body.insert("evidence_excerpts".to_owned(), json!(descriptors));
    Some(Value::Object(body))
}

/// The title and the time of a record, from fields that may be read.
fn titles(source: Source<'_>, record: &Record) -> Map<String, Value> {
    let mut titles = Map::new();
    let roles = [
        ("title", &["title", "subject", "name"][..]),
        ("authored_at", &["sent_at", "authored_at"][..]),
    ];
    for (member, names) in roles {
        let granted = names
            .iter()
            .filter(|name| source.stream.granted(name).is_some());
        let value = granted
            .filter_map(|name| record.data.get(*name)?.as_str())
            .find(|text| !text.is_empty());
        titles.extend(value.map(|value| (member.to_owned(), json!(value))));
    }
    titles
}

fn route_of(record: &Record) -> String {
    let encoded = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    format!(
        "/v1/streams/{}/records/{}",
        encoded(&record.stream),
        encoded(&record.key)
    )
}

/// A slice of a field around its first match.
#[derive(Debug)]
struct Excerpt {
    start: usize,
    end: usize,
    text: String,
    matches: Vec<(usize, usize)>,
    preview: String,
    truncated: bool,
}

impl Excerpt {
    fn around(chars: &[char], terms: &[&str]) -> Option<Excerpt> {
        let mut matches = Vec::new();
        for term in terms {
            let length = term.chars().count();
            let mut from = 0;
            while let Some(at) = position(chars, term, from) {
                matches.push((at, at + length));
                from = at + length;
            }
        }
        matches.sort_unstable();
        let first = *matches.first()?;
        let start = first.0.saturating_sub(CONTEXT);
        let end = (first.1 + CONTEXT).min(chars.len());
        matches.retain(|(at, until)| *at >= start && *until <= end);
        let mut apart: Vec<(usize, usize)> = Vec::new();
        for (at, until) in matches {
            if apart.last().is_none_or(|last| last.1 <= at) {
                apart.push((at, until));
            }
        }
        let truncated = start > 0 || end < chars.len();
        Some(Excerpt {
            start,
            end,
            text: chars[start..end].iter().collect(),
            preview: preview(chars, (start, end), &apart),
            matches: apart,
            truncated,
        })
    }

    fn descriptor(&self, record: &Record, field: &str) -> Value {
        let read = json!({
            "object": "field_window_read",
            "method": "GET",
            "route": format!("{}/field-window", route_of(record)),
            "stream": record.stream,
            "record_id": record.key,
            "field": field,
            "connection_id": record.connection_id,
            "offset_chars": self.start,
            "limit_chars": self.end - self.start,
        });
        let matches = self.matches.iter();
        let matches: Vec<Value> = matches
            .map(|(start, end)| json!({"start_chars": start, "end_chars": end}))
            .collect();
        json!({
            "object": "evidence_excerpt",
            "field_path": field,
            "preview_text": self.preview,
            "truncated": self.truncated,
            "provenance": "lexical_match",
            "read": read,
            "text": self.text,
            "text_start_chars": self.start,
            "text_end_chars": self.end,
            "matches": matches,
        })
    }
}

/// The slice with its matches marked; a tag that the source itself holds is written as text.
fn preview(chars: &[char], (start, end): (usize, usize), matches: &[(usize, usize)]) -> String {
    let plain = |from: usize, until: usize| {
        let text: String = chars[from..until].iter().collect();
        text.replace("<mark", "&lt;mark")
            .replace("</mark", "&lt;/mark")
    };
    let mut preview = String::from(if start > 0 { "…" } else { "" });
    let mut at = start;
    for (from, until) in matches {
        preview.push_str(&plain(at, *from));
        preview.push_str("<mark>");
        preview.push_str(&plain(*from, *until));
        preview.push_str("</mark>");
        at = *until;
    }
    preview.push_str(&plain(at, end));
    if end < chars.len() {
        preview.push('…');
    }
    preview
}

fn envelope(
    state: &State,
    call: &Call,
    hits: &[Value],
    next: Option<String>,
    total: usize,
) -> Value {
    let counted = call.value("count") == Some("exact");
    let mut meta = Map::new();
    meta.insert("warnings".to_owned(), json!(state.warnings));
    meta.insert("count".to_owned(), json!(counted.then_some(total)));
    let accuracy = if counted { "exact" } else { "not_counted" };
    meta.insert("count_accuracy".to_owned(), json!(accuracy));
    let recall = state.recall.clone();
    let complete = || json!({"complete": true, "ranking_scope": "all_matches", "truncated": false});
    meta.insert("recall".to_owned(), recall.unwrap_or_else(complete));
    let mut handles = Map::new();
    handles.insert("has_more".to_owned(), json!(next.is_some()));
    if let Some(next) = next {
        handles.insert("next_cursor".to_owned(), json!(next));
    }
    let mut body = Map::new();
    body.insert("object".to_owned(), json!("list"));
    body.insert("url".to_owned(), json!(call.path));
    body.insert("data".to_owned(), json!(hits));
    body.append(&mut handles);
    body.insert("meta".to_owned(), Value::Object(meta));
    body.insert("links".to_owned(), json!({"self": call.raw_target}));
    Value::Object(body)
}
