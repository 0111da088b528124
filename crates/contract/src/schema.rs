//! The schema: what a caller may ask, as connectors, streams, fields and what each accepts.
//!
//! One document in two sizes. The full one carries JSON Schema and every flag; the compact one a short text
//! per field.

mod capability;
mod compact;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::declaration::{Cardinality, FilterOperator, Selection, Semantics};
use crate::error::ReadError;
use crate::id::StreamName;
use crate::page::{Links, Meta};
use crate::query::refused;
use crate::wire::{Nullable, ObjectTag, OrderedMap};

pub use capability::{Capability, ExpandCapability, FieldCapability};
pub use compact::CompactStream;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaQuery {
    pub detail: SchemaDetail,
    pub stream: Option<StreamName>,
    pub connection_id: Option<String>,
    /// Only this connector, by its key or the id of its source.
    pub connector_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaDetail {
    /// Everything, for all streams asked about.
    #[default]
    Whole,
    /// A short text per field.
    Compact,
    /// Everything about one stream of one source; ambiguity is an error.
    FullStream,
}

impl SchemaQuery {
    /// Reads the parameters: `view=compact` wins over `detail=full`, which needs a stream.
    pub fn parse(
        view: Option<&str>,
        detail: Option<&str>,
        stream: Option<StreamName>,
        connection_id: Option<String>,
    ) -> Result<SchemaQuery, ReadError> {
        let is_compact = view.is_some_and(|view| view.trim().eq_ignore_ascii_case("compact"));
        let detail = match detail {
            _ if is_compact => SchemaDetail::Compact,
            Some("full") if stream.is_none() => {
                let error = refused("detail", "detail=full needs a stream");
                return Err(error.with_hint("look at view=compact first, then name a stream"));
            }
            Some("full") => SchemaDetail::FullStream,
            Some("compact") => SchemaDetail::Compact,
            _ => SchemaDetail::Whole,
        };
        Ok(SchemaQuery {
            detail,
            stream,
            connection_id,
            connector_id: None,
        })
    }

    /// The same question about one connector.
    #[must_use]
    pub fn for_connector(mut self, connector_id: Option<String>) -> SchemaQuery {
        self.connector_id = connector_id;
        self
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SchemaAnswer {
    /// With JSON Schema and every flag.
    Full(Schema),
    /// With a short text per field.
    Compact(CompactSchema),
}

impl<'de> Deserialize<'de> for SchemaAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Peek {
            #[serde(default)]
            detail: Option<Value>,
        }
        // Read as text first: JSON Schema as written cannot be read from what an untagged enum buffers.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let read = serde_json::from_str::<Peek>(text).and_then(|peek| match peek.detail {
            Some(detail) if detail == "compact" => {
                serde_json::from_str(text).map(SchemaAnswer::Compact)
            }
            _ => serde_json::from_str(text).map(SchemaAnswer::Full),
        });
        read.map_err(serde::de::Error::custom)
    }
}

pub type Schema = SchemaDocument<StreamMetadata>;

pub type CompactSchema = SchemaDocument<CompactStream>;

/// All that may be read, by connector.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SchemaDocument<S> {
    /// `schema`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    /// `compact` on a compact document.
    pub detail: Option<String>,
    pub bearer: Option<Bearer>,
    /// How many connectors, when the question was narrowed.
    pub connector_count: Option<u64>,
    /// How many streams, when the question was narrowed.
    pub stream_count: Option<u64>,
    #[serde(default = "Vec::new")]
    pub connectors: Vec<ConnectorSchema<S>>,
    pub links: Option<Links>,
    pub meta: Option<Meta>,
    pub search: Option<Value>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bearer {
    /// `owner` or `client`, or a kind of another server.
    pub token_kind: Option<String>,
    /// `owner` or `grant`.
    pub scope: Option<String>,
    pub grant_id: Option<String>,
    pub client_id: Option<String>,
    /// The package, for a token that stands for several grants.
    pub grant_package_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectorSchema<S> {
    /// `connector`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    /// The source; for owners the id may be the short key.
    pub source: Option<SourceRef>,
    pub connector_key: Option<String>,
    /// The older name of the connector key.
    pub connector_id: Option<String>,
    pub stream_count: Option<u64>,
    /// The connections most of its streams share; compact documents only.
    pub granted_connections: Option<Vec<GrantedConnection>>,
    #[serde(default = "Vec::new")]
    pub streams: Vec<S>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceRef {
    /// `connector` or `provider_native`.
    pub kind: Option<String>,
    /// A URI, or the short key.
    pub id: Option<String>,
    /// What people call it; not sent by us.
    pub display_name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantedConnection {
    /// What to pass as `connection_id`.
    pub connection_id: String,
    pub display_name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StreamMetadata {
    /// `stream_metadata`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub name: String,
    pub description: Option<String>,
    /// Whether records may change.
    pub semantics: Option<Semantics>,
    /// The fields that identify a record; empty unless all are granted.
    pub primary_key: Option<Vec<String>>,
    /// The field that orders records, and the only one `sort` accepts.
    pub cursor_field: Option<String>,
    /// The field a time constraint looks at.
    pub consent_time_field: Option<String>,
    /// How far a grant may narrow the stream.
    pub selection: Option<Selection>,
    /// The JSON Schema, restricted to what may be seen, as written.
    pub schema: Option<Box<RawValue>>,
    /// The declared query capabilities, restricted likewise.
    pub query: Option<QueryMetadata>,
    pub views: Option<Vec<ViewMetadata>>,
    pub relationships: Option<Vec<RelationshipMetadata>>,
    /// What each field accepts, in declared order.
    #[serde(default)]
    pub field_capabilities: OrderedMap<FieldCapability>,
    /// Which relationships a read may bring along.
    pub expand_capabilities: Option<Vec<ExpandCapability>>,
    /// How recent the records are.
    pub freshness: Option<Freshness>,
    /// The connections it may be read from, as the grant lists them.
    pub instance_ids: Option<Vec<String>>,
    pub resources: Option<Vec<String>>,
    pub time_constraint: Option<Value>,
    /// The connections it may be read from, with labels.
    pub granted_connections: Option<Vec<GrantedConnection>>,
    /// The request, when the stream is the whole answer.
    pub links: Option<Links>,
    /// What to know, when the stream is the whole answer.
    pub meta: Option<Meta>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct QueryMetadata {
    pub range_filters: Option<OrderedMap<Vec<FilterOperator>>>,
    pub expand: Option<Vec<Value>>,
    /// Searched fields.
    pub search: Option<SearchMetadata>,
    pub aggregations: Option<AggregationMetadata>,
}

/// Searched fields.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchMetadata {
    pub lexical_fields: Option<Vec<String>>,
    pub semantic_fields: Option<Vec<String>>,
}

/// Allowed aggregates, as lists of fields.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AggregationMetadata {
    pub count: Option<bool>,
    pub sum: Option<Vec<String>>,
    pub min: Option<Vec<String>>,
    pub max: Option<Vec<String>>,
    pub group_by: Option<Vec<String>>,
    pub group_by_time: Option<Vec<String>>,
    pub count_distinct: Option<Vec<String>>,
}

/// A named set of fields as served.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewMetadata {
    /// What to pass as `view`.
    pub id: String,
    pub label: Option<String>,
    #[serde(default)]
    pub fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationshipMetadata {
    pub name: String,
    pub stream: String,
    /// The field that holds a record key of the other stream: the child's, or for `has_one` possibly this stream's.
    pub foreign_key: String,
    pub cardinality: Cardinality,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Freshness {
    /// `current`, `stale` or `unknown`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub captured_at: Nullable<String>,
    /// When that was last tried.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub last_attempted_at: Nullable<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamSummary {
    /// `stream`.
    #[serde(default, skip_serializing_if = "ObjectTag::is_absent")]
    pub object: ObjectTag,
    pub name: String,
    pub record_count: Option<u64>,
    /// The newest `emitted_at` that may be seen.
    #[serde(default, skip_serializing_if = "Nullable::is_absent")]
    pub last_updated: Nullable<String>,
    pub connection_id: Option<String>,
    /// The deprecated twin of `connection_id`.
    pub connector_instance_id: Option<String>,
    pub connector_key: Option<String>,
    /// The older name of the connector key.
    pub connector_id: Option<String>,
    pub source: Option<SourceRef>,
    pub display_name: Option<String>,
    pub freshness: Option<Freshness>,
}
