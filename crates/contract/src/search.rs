//! Searching all streams at once: the question, the hits, and the evidence that a hit is one.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::error::ReadError;
use crate::id::StreamName;
use crate::query::{Count, Filter, PageLimit, refused};
use crate::segment;
use crate::time::{Instant, TimeRange};
use crate::wire::{ObjectTag, Other};

pub const MAX_EXCERPTS: usize = 5;

/// The excerpts of a hit when the request does not say.
pub const DEFAULT_EXCERPTS: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// The question; `"phrases"`, `+required`, `prefix*` and `-excluded` are understood.
    pub q: String,
    /// Whether any word may occur, or all must.
    pub matching: Matching,
    pub mode: SearchMode,
    /// Only in these streams; all when empty.
    pub streams: Vec<StreamName>,
    pub connection_id: Option<String>,
    /// Conditions that must all hold; they need exactly one stream.
    pub filters: Vec<Filter>,
    /// Only records of this time, by the time field of their stream; see [`parse_period`].
    pub period: TimeRange,
    pub limit: PageLimit,
    /// Where to go on; opaque.
    pub cursor: Option<String>,
    pub count: Count,
    /// Whether what is counted is counted by year too. Only this process can ask so.
    pub by_year: bool,
    pub order: SearchOrder,
    /// How many excerpts a hit has at most; see [`parse_excerpts`].
    pub excerpts: usize,
}

/// A number of excerpts as a request has it.
pub fn parse_excerpts(text: &str) -> Result<usize, ReadError> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=MAX_EXCERPTS).contains(number));
    number.ok_or_else(|| {
        let message = format!("excerpts must be a whole number from 1 to {MAX_EXCERPTS}");
        refused("excerpts", message)
    })
}

/// A period as a request has it: `since` belongs to it, `until` does not.
pub fn parse_period(since: Option<&str>, until: Option<&str>) -> Result<TimeRange, ReadError> {
    let moment = |param: &str, text: Option<&str>| {
        let moment = text
            .map(|text| Instant::parse(text).ok_or(text))
            .transpose();
        moment.map_err(|text| {
            let text = segment::quoted(text);
            let message =
                format!("{param} must be a date (2026-03-01) or an RFC 3339 date-time, not {text}");
            refused(param, message)
        })
    };
    let period = TimeRange {
        since: moment("since", since)?,
        until: moment("until", until)?,
    };
    match (period.since, period.until) {
        (Some(since), Some(until)) if until <= since => {
            Err(refused("until", "until must be later than since"))
        }
        _ => Ok(period),
    }
}

crate::names! {
    /// Which words of a question a hit has.
    #[derive(Default)]
    pub enum Matching {
        /// Any, in any form; those with more and rarer ones come first.
        #[default]
        Any = "any",
        /// Every one, as written.
        All = "all",
    }
}

impl Matching {
    pub fn parse(name: &str) -> Result<Matching, ReadError> {
        Self::named(name).ok_or_else(|| refused("match", "match must be any or all"))
    }
}

crate::names! {
    #[derive(Default)]
    pub enum SearchOrder {
        #[default]
        Relevance = "relevance",
        /// The latest by the record's own time; records without one come last.
        Newest = "newest",
        /// The earliest by the record's own time; records without one come last.
        Oldest = "oldest",
    }
}

impl SearchOrder {
    pub fn parse(name: &str) -> Result<SearchOrder, ReadError> {
        Self::named(name).ok_or_else(|| {
            let names = Self::NAMES.join(", ");
            refused("order", format!("order must be one of {names}"))
        })
    }
}

crate::names! {
    /// How to search. By meaning only where a server has a model.
    #[derive(Default)]
    pub enum SearchMode {
        #[default]
        Lexical = "lexical",
        Semantic = "semantic",
        Hybrid = "hybrid",
    }
}

impl SearchMode {
    pub fn route(self) -> &'static str {
        match self {
            SearchMode::Lexical => "/v1/search",
            SearchMode::Semantic => "/v1/search/semantic",
            SearchMode::Hybrid => "/v1/search/hybrid",
        }
    }
}

impl SearchQuery {
    /// A search for these words everywhere. White space alone is allowed and finds nothing.
    pub fn new(q: impl Into<String>) -> Result<SearchQuery, ReadError> {
        let q = q.into();
        if q.is_empty() {
            return Err(refused("q", "q is required"));
        }
        Ok(SearchQuery {
            q,
            matching: Matching::default(),
            mode: SearchMode::Lexical,
            streams: Vec::new(),
            connection_id: None,
            filters: Vec::new(),
            period: TimeRange::default(),
            limit: PageLimit::default(),
            cursor: None,
            count: Count::None,
            by_year: false,
            order: SearchOrder::default(),
            excerpts: DEFAULT_EXCERPTS,
        })
    }

    /// Adds conditions; call it after `streams` is set, of which there must be exactly one.
    pub fn filtered(mut self, filters: Vec<Filter>) -> Result<SearchQuery, ReadError> {
        if !filters.is_empty() && self.streams.len() != 1 {
            return Err(
                refused("streams", "filter needs exactly one stream in streams")
                    .with_hint("name the one stream to filter in streams"),
            );
        }
        self.filters = filters;
        Ok(self)
    }
}

/// One record that matches. Everything is optional, for another server may say less.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchHit {
    /// `search_result`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub stream: Option<String>,
    /// The record key in canonical form.
    pub record_key: Option<String>,
    /// The connector, under its older name.
    pub connector_id: Option<String>,
    pub connector_key: Option<String>,
    pub connection_id: Option<String>,
    /// The deprecated twin of `connection_id`; not sent by us.
    pub connector_instance_id: Option<String>,
    pub display_name: Option<String>,
    /// The path of the record; not sent by us, because it repeats stream, key and connection.
    pub record_url: Option<String>,
    /// Where people can look at it.
    pub citation_url: Option<String>,
    pub emitted_at: Option<String>,
    /// When its author wrote it, from a granted field.
    pub authored_at: Option<String>,
    /// Who wrote it, from a granted field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What to call it, from a granted field.
    pub title: Option<String>,
    pub matched_fields: Option<Vec<String>>,
    /// The words of the question that it has, with the form found; left out where it has all of them as they were asked for.
    pub matched_terms: Option<Vec<MatchedTerm>>,
    pub missing_terms: Option<Vec<String>>,
    /// The record of the same conversation next to which it stands, where it has no word of the question itself.
    pub near: Option<String>,
    /// The part of a hit without a word of the question that comes nearest to it, or the beginning of one that only stands next
    /// to a match.
    pub passage: Option<Passage>,
    /// How it was found, where that is not by words: `semantic` or `hybrid`.
    pub retrieval_mode: Option<String>,
    /// What was said right before and after it in the same conversation, where the page has room.
    pub neighbours: Option<Vec<Neighbour>>,
    /// The best match in a few words; not sent by us, because the first excerpt says it.
    pub snippet: Option<Snippet>,
    /// Proven matches in context, the best first; as many as the request asked for, one unless it did.
    pub evidence_excerpts: Option<Vec<EvidenceExcerpt>>,
    /// How well it matches; never sent to clients.
    pub score: Option<Score>,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

/// A word of the question, as a hit has it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MatchedTerm {
    pub term: String,
    /// The word that was found, where it is another one.
    pub found: Option<String>,
    /// `exact`, `form` or `spelling`.
    pub kind: String,
}

/// A record next to a hit in its conversation. It is no hit itself.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// `before` or `after`.
    pub side: String,
    /// The record's handle.
    pub id: String,
    /// Who wrote it, from a granted field.
    pub author: Option<String>,
    /// How it begins.
    #[serde(flatten)]
    pub passage: Passage,
}

/// Says that a passage was found by what it means, and no word of it by another.
pub const SEMANTIC_MATCH: &str = "semantic_match";

/// Characters of a field that are shown without being a match of words.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// The field, literally.
    pub field_path: String,
    pub text: String,
    #[serde(default)]
    pub truncated: bool,
    /// Where the text begins in the field, of a passage found by meaning.
    pub text_start_chars: Option<u64>,
    /// Where it ends.
    pub text_end_chars: Option<u64>,
    /// The [`Citation`](crate::citation::Citation) of the text.
    pub cite: Option<String>,
    /// Why it is shown: [`SEMANTIC_MATCH`], or the record stands next to one that matches.
    pub provenance: Option<String>,
    /// How to read on.
    pub read: Option<FieldWindowRead>,
}

impl Passage {
    /// Whether it was found by what it means.
    pub fn is_meant(&self) -> bool {
        self.provenance.as_deref() == Some(SEMANTIC_MATCH)
    }
}

/// The best match in a few words, with `<mark>` tags.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snippet {
    pub field: Option<String>,
    pub text: String,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

/// How well a hit matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The measure, such as `bm25`.
    pub kind: String,
    /// The figure; it means nothing outside this answer.
    pub value: f64,
    /// Which way is better.
    pub order: String,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

/// A proven match in context. Offsets count Unicode scalar values of the whole field.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EvidenceExcerpt {
    /// `evidence_excerpt`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    /// The field, literally.
    #[serde(default)]
    pub field_path: String,
    /// The exact, unmarked text; not sent by us, because `preview_text` without its marks is the same.
    pub text: Option<String>,
    pub text_start_chars: Option<u64>,
    pub text_end_chars: Option<u64>,
    pub matches: Option<Vec<MatchSpan>>,
    /// The text with `<mark>` tags; a `<mark` of the source is written `&lt;mark`.
    pub preview_text: Option<String>,
    /// Whether the field holds more than the text.
    pub truncated: Option<bool>,
    /// What proves the match, such as `lexical_match`.
    pub provenance: Option<String>,
    /// The [`Citation`](crate::citation::Citation) of the text.
    pub cite: Option<String>,
    pub read: Option<FieldWindowRead>,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchSpan {
    pub start_chars: u64,
    /// The first character after it.
    pub end_chars: u64,
}

/// The call that reads the field around an excerpt. Ours has only what the window route needs besides the identity of the
/// hit and the field of the excerpt; another server may repeat those.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldWindowRead {
    /// `field_window_read`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    /// `GET`.
    pub method: Option<String>,
    pub route: Option<String>,
    pub connection_id: Option<String>,
    pub stream: Option<String>,
    pub record_id: Option<String>,
    /// The field, literally.
    pub field: Option<String>,
    pub offset_chars: Option<u64>,
    pub limit_chars: Option<u64>,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FieldName;

    #[test]
    fn filters_need_exactly_one_stream() {
        let filter = || vec![Filter::exact(FieldName::parse("a").unwrap(), "1")];
        let mut query = SearchQuery::new("x").unwrap();
        assert_eq!(
            query
                .clone()
                .filtered(filter())
                .unwrap_err()
                .param
                .as_deref(),
            Some("streams")
        );
        query.streams = vec![StreamName::parse("notes").unwrap()];
        assert!(query.filtered(filter()).is_ok());
        assert_eq!(
            SearchQuery::new("").unwrap_err().param.as_deref(),
            Some("q")
        );
    }

    #[test]
    fn modes_have_names_and_routes() {
        for mode in SearchMode::ALL {
            assert_eq!(SearchMode::named(mode.as_str()), Some(mode));
            assert!(mode.route().starts_with("/v1/search"));
        }
        assert_eq!(SearchMode::named("magic"), None);
    }
}
