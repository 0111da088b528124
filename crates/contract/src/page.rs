//! The envelope of every answer: one page of many, the links around it, and what to know about it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use crate::aggregate::Aggregation;
use crate::citation::CitationCheck;
use crate::id::{ConnectionId, StreamName};
use crate::record::{FieldWindow, Record};
use crate::schema::SchemaAnswer;
use crate::wire::{Nullable, ObjectTag};
use crate::words::WordsFound;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Page<T> {
    /// `list`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub url: Option<String>,
    /// Whether another page follows; see [`Page::has_more`].
    pub has_more: Option<bool>,
    /// Where the next page starts; see [`Page::next_cursor`].
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub next_cursor: Nullable<String>,
    /// The bookmark of a changes feed, worth keeping after its last page.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub next_changes_since: Nullable<String>,
    pub data: Vec<T>,
    pub links: Option<Links>,
    pub meta: Option<Meta>,
}

impl<T> Page<T> {
    /// A last page with these entries and nothing else to say.
    pub fn new(data: Vec<T>) -> Page<T> {
        Page {
            object: ObjectTag::LIST,
            url: None,
            has_more: Some(false),
            next_cursor: Nullable::Absent,
            next_changes_since: Nullable::Absent,
            data,
            links: None,
            meta: Some(Meta::default()),
        }
    }

    /// Says that another page follows, and where it starts.
    #[must_use]
    pub fn continued(mut self, cursor: impl Into<String>) -> Page<T> {
        self.has_more = Some(true);
        self.next_cursor = Nullable::Value(cursor.into());
        self
    }

    /// Whether another page follows.
    pub fn has_more(&self) -> bool {
        self.has_more.unwrap_or(false)
    }

    /// The cursor of the next page. A blank cursor counts as `None`.
    pub fn next_cursor(&self) -> Option<&str> {
        let cursor = self.next_cursor.as_option().map(String::as_str);
        cursor.filter(|text| !text.trim().is_empty())
    }

    /// The meta block, made if there is none yet.
    pub fn meta_mut(&mut self) -> &mut Meta {
        self.meta.get_or_insert_default()
    }
}

/// An answer that may come with something to know.
pub trait Warnings {
    /// Everything to know about the answer.
    fn warnings(&self) -> &[Warning];
}

macro_rules! warnings_of_meta {
    ($($answer:ty),*) => {$(
        impl Warnings for $answer {
            fn warnings(&self) -> &[Warning] {
                self.meta.as_ref().map_or(&[], Meta::warnings)
            }
        }
    )*};
}

warnings_of_meta!(Aggregation, CitationCheck, FieldWindow, Record);

impl<T> Warnings for Page<T> {
    fn warnings(&self) -> &[Warning] {
        self.meta.as_ref().map_or(&[], Meta::warnings)
    }
}

impl Warnings for SchemaAnswer {
    fn warnings(&self) -> &[Warning] {
        let meta = match self {
            SchemaAnswer::Full(schema) => &schema.meta,
            SchemaAnswer::Compact(schema) => &schema.meta,
        };
        meta.as_ref().map_or(&[], Meta::warnings)
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// The request target exactly as sent.
    #[serde(rename = "self")]
    pub this: Option<String>,
    /// The next page: null on the last one, absent where there are no pages.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub next: Nullable<String>,
    /// Where the owner looks at records, each below it at `/{connection_id}/{stream}/{record_key}`; only on pages that are
    /// counted in bytes, whose hits have no address of their own.
    pub records: Option<String>,
}

/// What to know about an answer. The default says: nothing was counted, nothing to warn of.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// How many there are in all, if asked. Search writes a bare number or null here.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub count: Nullable<ReportedCount>,
    /// How far a search's number can be trusted.
    pub count_accuracy: Option<String>,
    /// How a search's number is made up. Only this process sees it.
    #[serde(skip)]
    pub by_stream: Vec<StreamCount>,
    /// The same by the year of a hit's time, where that was asked; the oldest first.
    #[serde(skip)]
    pub by_year: Vec<(i16, u64)>,
    /// What a search looked at.
    pub recall: Option<Recall>,
    /// The time span of all matching records, if asked.
    pub window: Option<TimeSpan>,
    pub index_maintenance: Option<IndexMaintenance>,
    /// Why a search found nothing: its words one by one.
    pub words: Option<WordsFound>,
    /// Which of the records' fields say what a record is.
    pub roles: Option<FieldRoles>,
    /// Says that the page of a search ends here because what follows matches far less well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weaker_follow: bool,
    /// What to ask next where the answer is empty or not all there is.
    pub next: Option<String>,
    /// Success with something to know; see [`Meta::warnings`].
    pub warnings: Option<Vec<Warning>>,
}

/// How many records of one stream a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamCount {
    pub connection_id: ConnectionId,
    pub stream: StreamName,
    pub count: u64,
}

/// The fields that name a record, who wrote it and when, by the stream's declaration and as far as they may be seen.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldRoles {
    pub title: Option<String>,
    pub author: Option<String>,
    pub time: Option<String>,
}

impl Default for Meta {
    fn default() -> Self {
        Meta {
            count: Nullable::Value(ReportedCount::none()),
            count_accuracy: None,
            by_stream: Vec::new(),
            by_year: Vec::new(),
            recall: None,
            window: None,
            index_maintenance: None,
            words: None,
            roles: None,
            weaker_follow: false,
            next: None,
            warnings: Some(Vec::new()),
        }
    }
}

impl Meta {
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.as_deref().unwrap_or_default()
    }

    /// Adds a warning, unless it is there already.
    pub fn warn(&mut self, warning: Warning) {
        let warnings = self.warnings.get_or_insert_default();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// How many there are in all, in the form the endpoint uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReportedCount {
    /// `{kind, value}`
    Kind(KindCount),
    /// A bare number, as search writes it.
    Number(u64),
    /// Some other form of another server.
    Other(Value),
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindCount {
    /// `none`, `estimated` or `exact`.
    pub kind: String,
    /// The number, unless the kind is `none`.
    pub value: Option<u64>,
}

impl ReportedCount {
    pub fn none() -> ReportedCount {
        ReportedCount::Kind(KindCount {
            kind: "none".to_owned(),
            value: None,
        })
    }

    pub fn exact(value: u64) -> ReportedCount {
        ReportedCount::Kind(KindCount {
            kind: "exact".to_owned(),
            value: Some(value),
        })
    }

    /// The number, however it was written.
    pub fn value(&self) -> Option<u64> {
        match self {
            ReportedCount::Kind(count) => count.value,
            ReportedCount::Number(value) => Some(*value),
            ReportedCount::Other(_) => None,
        }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recall {
    /// Whether every match could be found.
    pub complete: bool,
    /// `all_matches`, `candidate_window` or `unknown`.
    pub ranking_scope: String,
    /// Whether matches were left out of the ranking.
    pub truncated: bool,
    pub ranked_candidate_count: Option<u64>,
    pub candidate_window_limit: Option<u64>,
    pub sources_searched_count: Option<u64>,
    pub truncated_source_count: Option<u64>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSpan {
    pub total: u64,
    /// The earliest, RFC 3339 in UTC. Both bounds are absent where no record has a time.
    pub earliest_at: Option<String>,
    pub latest_at: Option<String>,
}

/// Said while an index is behind the records.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexMaintenance {
    pub note: Option<String>,
    pub pending_scopes: Option<u64>,
    /// How much of an index that is being built is done.
    pub percent: Option<u64>,
}

/// Success with something to know.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    pub code: WarningCode,
    #[serde(default)]
    pub message: String,
    pub param: Option<String>,
    pub detail: Option<Value>,
    pub connection_id: Option<String>,
    pub field: Option<String>,
}

impl Warning {
    pub fn new(code: WarningCode, message: impl Into<String>) -> Warning {
        Warning {
            code,
            message: message.into(),
            param: None,
            detail: None,
            connection_id: None,
            field: None,
        }
    }

    #[must_use]
    pub fn about(mut self, param: impl Into<String>) -> Warning {
        self.param = Some(param.into());
        self
    }

    /// More entries were asked for than a page may hold; `entries` is what they are called.
    pub fn limit_clamped(requested: u32, max: u32, entries: &str) -> Warning {
        let message = format!(
            "Requested limit={requested} exceeds the maximum page size of {max}; returned at most {max} {entries} \
             per page. Page forward with the returned cursor."
        );
        let mut warning = Warning::new(WarningCode::LimitClamped, message).about("limit");
        warning.detail = Some(json!({"max_limit": max, "requested_limit": requested}));
        warning
    }

    /// The old name of `connection_id` was used.
    pub fn deprecated_alias() -> Warning {
        let message = "`connector_instance_id` is deprecated; send `connection_id` instead.";
        Warning::new(WarningCode::DeprecatedAliasUsed, message).about("connector_instance_id")
    }
}

/// Which warning. Ours are closed; those of another server pass through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningCode {
    CountDowngraded,
    /// A source cannot answer this search and was left out.
    SourceSkippedNotApplicable,
    DeprecatedAliasUsed,
    /// A limit was larger than allowed and was cut.
    LimitClamped,
    /// The answer does not hold everything and has no cursor.
    PartialResults,
    /// A prefix stood for more words than are looked for.
    PrefixTruncated,
    /// An older form of the answer was used.
    CompatibilityFallback,
    /// The index moved on between two pages of a search: entries may repeat or be missed.
    RankingChanged,
    /// A record was damaged on the server's disk and left out.
    RecordDamaged,
    /// A code of another server.
    Other(String),
}

impl WarningCode {
    const NAMES: [(&'static str, WarningCode); 9] = [
        ("count_downgraded", WarningCode::CountDowngraded),
        (
            "source_skipped_not_applicable",
            WarningCode::SourceSkippedNotApplicable,
        ),
        ("deprecated_alias_used", WarningCode::DeprecatedAliasUsed),
        ("limit_clamped", WarningCode::LimitClamped),
        ("partial_results", WarningCode::PartialResults),
        ("prefix_truncated", WarningCode::PrefixTruncated),
        ("compatibility_fallback", WarningCode::CompatibilityFallback),
        ("ranking_changed", WarningCode::RankingChanged),
        ("record_damaged", WarningCode::RecordDamaged),
    ];

    pub fn as_str(&self) -> &str {
        let known = WarningCode::NAMES.iter().find(|(_, code)| code == self);
        match (known, self) {
            (Some((name, _)), _) => name,
            (None, WarningCode::Other(name)) => name,
            (None, _) => "unknown",
        }
    }

    pub fn parse(name: &str) -> WarningCode {
        let known = WarningCode::NAMES
            .into_iter()
            .find(|(known, _)| *known == name);
        known.map_or_else(|| WarningCode::Other(name.to_owned()), |(_, code)| code)
    }
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for WarningCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for WarningCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| WarningCode::parse(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_code_has_its_own_name_and_others_pass_through() {
        for (name, code) in WarningCode::NAMES {
            assert_eq!(code.as_str(), name);
            assert_eq!(WarningCode::parse(name), code);
        }
        assert_eq!(WarningCode::parse("brand_new").as_str(), "brand_new");
    }

    #[test]
    fn our_own_meta_always_states_count_and_warnings() {
        let written = serde_json::to_value(Meta::default()).unwrap();
        assert_eq!(written, json!({"count": {"kind": "none"}, "warnings": []}));
    }

    #[test]
    fn the_same_warning_is_said_once() {
        let mut meta = Meta::default();
        meta.warn(Warning::deprecated_alias());
        meta.warn(Warning::deprecated_alias());
        meta.warn(Warning::limit_clamped(500, 100, "records"));
        assert_eq!(meta.warnings().len(), 2);
        assert_eq!(
            meta.warnings()[1].detail,
            Some(json!({"max_limit": 100, "requested_limit": 500}))
        );
    }

    #[test]
    fn counts_are_read_in_every_form_and_written_back() {
        for text in [
            r#"{"count":{"kind":"exact","value":3}}"#,
            r#"{"count":7}"#,
            r#"{"count":null}"#,
            r#"{"count":"many"}"#,
            "{}",
        ] {
            let meta: Meta = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&meta).unwrap(), text);
        }
    }

    #[test]
    fn a_blank_cursor_is_none() {
        let page: Page<Value> =
            serde_json::from_str(r#"{"data":[],"has_more":true,"next_cursor":" "}"#).unwrap();
        assert!(page.has_more());
        assert_eq!(page.next_cursor(), None);
        assert_eq!(
            Page::<Value>::new(vec![]).continued("c").next_cursor(),
            Some("c")
        );
    }
}
