//! What a source says about itself: its streams, their fields, and what may be asked of them.
//!
//! A declaration is a JSON file. [`Declaration::parse`] turns it into types once and reports every mistake in it at
//! once, each with the place inside the file and the rule. [`change`] decides what replacing one declaration by
//! another means for the data already stored.

pub mod change;
mod document;
mod field;
mod outline;
mod parse;
mod pattern;
mod query;
mod references;
mod relationships;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use change::{DeclarationChange, Removed, Retyped, plan_change};
pub use field::{FieldDeclaration, JsonType};
pub use references::Reading;
pub use validate::connector_key_of;

pub use crate::document::{Mistake as DeclarationError, Mistakes as DeclarationErrors};
use crate::id::{ConnectorKey, FieldName, StreamName, ViewId};
use crate::scalar::FieldKind;

/// The only value `protocol_version` may have.
pub const PROTOCOL_VERSION: &str = "0.1.0";

/// The relation limit used where `default_limit` is not stated.
pub const EXPAND_DEFAULT_LIMIT: u32 = 10;

/// The relation limit used where `max_limit` is not stated.
pub const EXPAND_MAX_LIMIT: u32 = 50;

/// One source declaration, whole and free of mistakes.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Who the source is, as grants name it.
    pub source: Source,
    /// The version its publisher gave this content; opaque.
    pub declaration_version: String,
    /// Who publishes the declaration; the source's own id when the file does not say.
    pub publisher_id: String,
    /// The name people see; the connector key when the file does not say.
    pub display_name: String,
    /// The streams, in the order of the file.
    pub streams: Vec<StreamDeclaration>,
    /// Named selections a consent page may offer.
    pub selection_presets: Vec<SelectionPreset>,
    /// Extension members by URI, raw JSON as written.
    pub extensions: BTreeMap<String, String>,
    connector_key: ConnectorKey,
    reading: Reading,
    text: String,
}

impl Declaration {
    /// The fields of a stream that hold keys of another, each with that stream, whichever of the two declares it.
    pub fn pointed_at_by(&self, stream: &StreamName) -> Vec<(FieldName, StreamName)> {
        let mut pointing: Vec<(FieldName, StreamName)> = Vec::new();
        for declared in &self.streams {
            for one in &declared.relationships {
                let (holder, target) = match one.pointing {
                    Pointing::There => (&declared.name, &one.stream),
                    Pointing::Here => (&one.stream, &declared.name),
                };
                let found = (one.foreign_key.clone(), target.clone());
                if holder == stream && !pointing.contains(&found) {
                    pointing.push(found);
                }
            }
        }
        pointing
    }

    /// Reads a declaration file. On failure the error lists every mistake found, not only the first.
    pub fn parse(text: &str) -> Result<Declaration, DeclarationErrors> {
        parse::parse(text, Reading::Following)
    }

    /// Reads a declaration that was registered when declarations were read in that way.
    pub fn parse_as(text: &str, reading: Reading) -> Result<Declaration, DeclarationErrors> {
        parse::parse(text, reading)
    }

    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// The short key of this connector: the last path segment of `source.id`.
    pub fn connector_key(&self) -> &ConnectorKey {
        &self.connector_key
    }

    /// The file exactly as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn stream(&self, name: &str) -> Option<&StreamDeclaration> {
        self.streams
            .iter()
            .find(|stream| stream.name.as_str() == name)
    }
}

crate::names! {
    /// Where records come from: a connector we run, or the provider itself.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SourceKind {
        /// Collected by a connector on the owner's behalf.
        Connector = "connector",
        /// Served by the provider that holds the data.
        ProviderNative = "provider_native",
    }
}

/// The identity of a source, as grants name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Provenance only; it changes no rule.
    pub kind: SourceKind,
    /// An absolute URI.
    pub id: String,
}

#[derive(Debug, Clone)]
pub struct StreamDeclaration {
    /// Unique within the declaration.
    pub name: StreamName,
    /// Whether records may change after they were first written.
    pub semantics: Semantics,
    pub description: Option<String>,
    /// A short name for people.
    pub label: Option<String>,
    /// The fields that identify a record, at least one.
    pub primary_key: Vec<FieldName>,
    /// The field that orders records, if any.
    pub cursor_field: Option<FieldName>,
    /// The field a grant's time constraint looks at, if any. A string, not necessarily with a date format.
    pub consent_time_field: Option<FieldName>,
    /// Whether a grant may narrow this stream to fields and to single records.
    pub selection: Selection,
    pub views: Vec<View>,
    /// How streams of the same source are related to this one.
    pub relationships: Vec<Relationship>,
    /// What may be asked beyond plain reading and exact filters.
    pub query: QueryCapabilities,
    /// The top-level fields, in the order of the file.
    pub fields: Vec<FieldDeclaration>,
    /// The JSON Schema exactly as written.
    pub schema: String,
}

/// Fields that name a conversation where no field has the role.
const THREADS: [&str; 6] = [
    "thread",
    "conversation_id",
    "chat_id",
    "channel_id",
    "chat",
    "thread_id",
];

/// Of some fields, the one that names the conversation a record belongs to: the one with the role `thread`, else one that is
/// usually named so.
pub fn thread_field<'f>(
    mut fields: impl Iterator<Item = &'f FieldDeclaration> + Clone,
) -> Option<&'f FieldDeclaration> {
    let all = fields.clone();
    let by_role = fields.find(|field| field.role.as_deref() == Some("thread"));
    by_role.or_else(|| {
        let mut names = THREADS.into_iter();
        names.find_map(|name| all.clone().find(|field| field.name.as_str() == name))
    })
}

impl StreamDeclaration {
    /// The fields whose meaning is compared: those it says, else those that are searched by words, except names of authors
    /// and lists of words, which mean nothing.
    pub fn semantic_fields(&self) -> Vec<FieldName> {
        if !self.query.semantic_fields.is_empty() {
            return self.query.semantic_fields.clone();
        }
        let means_nothing = |name: &FieldName| {
            let field = self.field(name.as_str());
            field.is_some_and(|field| {
                field.role.as_deref() == Some("author") || field.items.is_some()
            })
        };
        let fields = self.query.lexical_fields.iter();
        fields
            .filter(|name| !means_nothing(name))
            .cloned()
            .collect()
    }

    /// The field that names who speaks, where the records are parts of conversations.
    pub fn speaker(&self) -> Option<&FieldName> {
        thread_field(self.fields.iter())?;
        let mut fields = self.fields.iter();
        let author = fields.find(|field| field.role.as_deref() == Some("author"))?;
        (author.kind == FieldKind::Text).then_some(&author.name)
    }

    pub fn field(&self, name: &str) -> Option<&FieldDeclaration> {
        self.fields.iter().find(|field| field.name.as_str() == name)
    }

    /// Whether records are grouped by the values of a field, or its values counted.
    pub fn counts_values_of(&self, field: &FieldName) -> bool {
        self.query.aggregations.as_ref().is_some_and(|declared| {
            declared.group_by.contains(field) || declared.count_distinct.contains(field)
        })
    }

    pub fn view(&self, id: &str) -> Option<&View> {
        self.views.iter().find(|view| view.id.as_str() == id)
    }

    pub fn relationship(&self, name: &str) -> Option<&Relationship> {
        self.relationships
            .iter()
            .find(|relationship| relationship.name == name)
    }
}

/// Whether a record may change once written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// A record never changes.
    AppendOnly,
    /// A record is the latest state of something.
    MutableState,
}

/// How far a grant may narrow a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// A grant may name single fields.
    pub fields: bool,
    /// A grant may name single records.
    pub resources: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            fields: true,
            resources: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Unique within the stream.
    pub id: ViewId,
    /// The name people see; the id when the file does not say.
    pub label: String,
    /// The fields it shows, at least one.
    pub fields: Vec<FieldName>,
}

/// A stream whose records belong to records of this one, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relationship {
    /// Unique within the stream.
    pub name: String,
    /// The related stream, in the same source.
    pub stream: StreamName,
    /// The field that holds a record key of the other stream.
    pub foreign_key: FieldName,
    /// Which of the two streams has that field.
    pub pointing: Pointing,
    /// How many related records a record may have.
    pub cardinality: Cardinality,
}

/// Which side of a relationship has the foreign key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointing {
    /// Related records hold the key of the record they belong to.
    Here,
    /// The record itself holds the key of the one it is related to.
    There,
}

crate::names! {
    /// How many related records a record may have.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Cardinality {
        HasMany = "has_many",
        HasOne = "has_one",
    }
}

/// What may be asked of a stream beyond plain reading and exact filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryCapabilities {
    /// The operators that `filter[field][operator]` takes: bounds of fields that have an order, `contains` of arrays.
    pub range_filters: BTreeMap<FieldName, Vec<FilterOperator>>,
    /// The relationships a read may bring along.
    pub expand: Vec<Expand>,
    pub lexical_fields: Vec<FieldName>,
    /// The fields a search by meaning would look at.
    pub semantic_fields: Vec<FieldName>,
    /// The aggregates that may be computed; none at all when absent.
    pub aggregations: Option<Aggregations>,
}

/// A relationship that a read may bring along, with its limits filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expand {
    /// The name of a relationship of the same stream.
    pub name: String,
    /// Children returned when the request names no limit.
    pub default_limit: u32,
    /// The largest limit a request may name.
    pub max_limit: u32,
}

/// The aggregates a stream allows, by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aggregations {
    pub count: bool,
    pub sum: Vec<FieldName>,
    pub min: Vec<FieldName>,
    pub max: Vec<FieldName>,
    pub group_by: Vec<FieldName>,
    pub group_by_time: Vec<FieldName>,
    pub count_distinct: Vec<FieldName>,
}

crate::names! {
    /// What a filter asks of a value besides equality.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum FilterOperator {
        Gte = "gte",
        Gt = "gt",
        Lte = "lte",
        Lt = "lt",
        /// An array has an item that equals the operand.
        Contains = "contains",
    }
}

impl FilterOperator {
    /// The bounds of a range, in the order they are advertised.
    pub const BOUNDS: [FilterOperator; 4] = [
        FilterOperator::Gte,
        FilterOperator::Gt,
        FilterOperator::Lte,
        FilterOperator::Lt,
    ];
}

/// A named selection a consent page may offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionPreset {
    /// Unique within the declaration.
    pub id: String,
    /// The name people see; the id when the file does not say.
    pub label: String,
    /// What it selects, at least one stream.
    pub streams: Vec<PresetStream>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetStream {
    pub name: StreamName,
    pub part: PresetPart,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresetPart {
    /// Every declared field.
    Whole,
    Fields(Vec<FieldName>),
    View(ViewId),
}
