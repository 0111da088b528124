//! What a stream offers to whoever looks at it: its fields with their titles and roles, the field that says when, and what
//! may be asked. It is made of what the read contract says about the stream, so a grant sees no more of it than its
//! client.

use contract::id::{ConnectionId, FieldName, StreamName};
use contract::query::StreamQuery;
use contract::reader::ReadContract as _;
use contract::schema::{Capability, FieldCapability, StreamMetadata};
use read::GrantReader;
use serde::Deserialize;

use super::format::{label, visible};
use super::viewer::Viewer;
use crate::problem::Problem;
use crate::service::Service;

/// Fields that name a record where the declaration gives none that role.
const TITLES: [&str; 3] = ["title", "name", "subject"];

pub(super) struct StreamShape {
    /// The stream's name for people.
    pub(super) label: String,
    pub(super) about: String,
    pub(super) fields: Vec<FieldShape>,
    /// The declared time fields, in the order in which they are consulted.
    pub(super) declared_times: [Option<String>; 2],
    pub(super) cursor_field: Option<String>,
    /// The relationships a read may bring along.
    pub(super) expand: Vec<Relation>,
    pub(super) counts: bool,
}

/// A relationship that a read may bring along.
pub(super) struct Relation {
    pub(super) name: String,
    /// How many related records at most, where there may be several.
    pub(super) most: Option<u32>,
    /// The field of the related records that holds the key of this one, where they have it.
    pub(super) points_here: Option<String>,
}

/// The field that names the currency of a record's amounts.
pub(super) const CURRENCY: &str = "currency";
/// How the name of a field ends that holds hundredths.
const CENTS: &str = "_cents";

#[expect(
    clippy::struct_excessive_bools,
    reason = "what may be asked of a field, one by one"
)]
pub(super) struct FieldShape {
    pub(super) name: FieldName,
    pub(super) title: String,
    pub(super) about: String,
    pub(super) role: Option<String>,
    /// Whether it holds dates without a time of day.
    pub(super) is_date: bool,
    pub(super) is_time: bool,
    pub(super) is_number: bool,
    pub(super) exact: bool,
    pub(super) range: bool,
    pub(super) groups: bool,
    pub(super) groups_time: bool,
    pub(super) sums: bool,
}

/// What a field's JSON Schema says for people.
#[derive(Default, Deserialize)]
struct Described {
    title: Option<String>,
    description: Option<String>,
    format: Option<String>,
    #[serde(rename = "type")]
    types: Option<serde_json::Value>,
}

impl StreamShape {
    pub(super) async fn read(
        viewer: &Viewer,
        stream: &StreamName,
        connection: &str,
    ) -> Result<Self, Problem> {
        Self::of_reader(&viewer.reader, &viewer.service, stream, connection).await
    }

    pub(super) async fn of_reader(
        reader: &GrantReader,
        service: &Service,
        stream: &StreamName,
        connection: &str,
    ) -> Result<Self, Problem> {
        let query = StreamQuery {
            stream: stream.clone(),
            connection_id: Some(connection.to_owned()),
        };
        let metadata = reader.stream(query).await?;
        let store = &service.store;
        let found = ConnectionId::parse(connection).ok();
        let found = found.and_then(|id| store.connection(&id));
        let declaration = found.and_then(|found| store.declaration(&found.connector));
        let declared = declaration.as_deref();
        let declared = declared.and_then(|one| one.stream(stream.as_str()));
        let name = declared.and_then(|declared| declared.label.clone());
        Ok(Self::new(&metadata, name))
    }

    fn new(metadata: &StreamMetadata, name: Option<String>) -> Self {
        let fields = metadata.field_capabilities.iter();
        let fields = fields.filter_map(|(name, capability)| FieldShape::new(name, capability));
        let expand = metadata.expand_capabilities.iter().flatten();
        let aggregations = metadata
            .query
            .as_ref()
            .and_then(|query| query.aggregations.as_ref());
        Self {
            label: label(&name.unwrap_or_else(|| title(&metadata.name))),
            about: label(metadata.description.as_deref().unwrap_or_default()),
            fields: fields.collect(),
            declared_times: [
                metadata.consent_time_field.clone(),
                metadata.cursor_field.clone(),
            ],
            cursor_field: metadata.cursor_field.clone(),
            expand: expand
                .filter(|one| one.usable == Some(true))
                .map(|one| Relation {
                    name: one.name.clone(),
                    most: one.max_limit,
                    points_here: one.child_parent_key_field.clone(),
                })
                .collect(),
            counts: aggregations.is_some_and(|offered| offered.count == Some(true)),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&FieldShape> {
        self.fields.iter().find(|field| field.name.as_str() == name)
    }

    /// The field that names a record, by its role, else by its own name.
    pub(super) fn title(&self) -> Option<&FieldShape> {
        let is_title = |role: &str| role == "title" || role.ends_with("-title");
        let mut fields = self.fields.iter();
        let by_role = fields.find(|field| field.role.as_deref().is_some_and(is_title));
        by_role.or_else(|| TITLES.iter().find_map(|name| self.field(name)))
    }

    pub(super) fn with_role(&self, role: &str) -> Option<&FieldShape> {
        let role = Some(role);
        self.fields
            .iter()
            .find(|field| field.role.as_deref() == role)
    }

    /// The field that says when, if records can be narrowed and counted by it.
    pub(super) fn time(&self) -> Option<&FieldShape> {
        if !self.counts {
            return None;
        }
        let declared = self.declared_times.iter().flatten();
        let mut declared = declared.filter_map(|name| self.field(name));
        declared.find(|field| field.range && field.groups_time)
    }

    pub(super) fn time_names(&self) -> [Option<&str>; 2] {
        self.declared_times.each_ref().map(Option::as_deref)
    }
}

impl FieldShape {
    fn new(name: &str, capability: &FieldCapability) -> Option<Self> {
        if capability.granted == Some(false) {
            return None;
        }
        let schema = capability.schema.as_ref();
        let schema = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
        let described: Described = schema.unwrap_or_default();
        let usable = |one: Option<&Capability>| one.is_some_and(|one| one.usable);
        let aggregation = |kind: &str| {
            let all = capability.aggregation.as_ref();
            usable(all.and_then(|all| all.get(kind)))
        };
        let has_type = |wanted: &str| match &described.types {
            Some(serde_json::Value::String(one)) => one == wanted,
            Some(serde_json::Value::Array(several)) => several.iter().any(|one| one == wanted),
            _ => false,
        };
        Some(Self {
            name: FieldName::parse(name).ok()?,
            title: label(
                &described
                    .title
                    .unwrap_or_else(|| title(name.strip_suffix(CENTS).unwrap_or(name))),
            ),
            about: visible(&described.description.unwrap_or_default()),
            role: capability.role.clone(),
            is_date: described.format.as_deref() == Some("date"),
            is_time: matches!(described.format.as_deref(), Some("date" | "date-time")),
            is_number: has_type("integer") || has_type("number"),
            exact: usable(capability.exact_filter.as_ref()),
            range: capability.range_filter.as_ref().is_some_and(|range| {
                let operators = range.operators.as_deref().unwrap_or_default();
                range.usable && !operators.iter().any(|one| one == "contains")
            }),
            groups: aggregation("group_by"),
            groups_time: aggregation("group_by_time"),
            sums: aggregation("sum"),
        })
    }

    /// Whether its numbers are hundredths, of a currency.
    pub(super) fn is_in_cents(&self) -> bool {
        self.is_number && self.name.as_str().ends_with(CENTS)
    }

    /// Whether its numbers are amounts of the currency that the record names beside it.
    pub(super) fn is_money(&self) -> bool {
        let words = ["amount", "price", "total", "balance", "cost", "fee"];
        self.is_number && words.iter().any(|word| self.name.as_str().contains(word))
    }

    /// Its title where its values stand as they are written.
    pub(super) fn title_as_written(&self) -> String {
        if self.is_in_cents() {
            format!("{} (in cents)", self.title)
        } else {
            self.title.clone()
        }
    }
}

#[cfg(test)]
impl FieldShape {
    /// A field of which nothing but its name is known.
    pub(super) fn named(name: &str) -> Self {
        Self::new(name, &FieldCapability::default()).unwrap()
    }
}

/// A name of the declaration as a title: `from_email` is "From email".
pub(super) fn title(name: &str) -> String {
    let spaced = name.replace(['_', '-'], " ");
    let mut letters = spaced.trim().chars();
    match letters.next() {
        None => name.to_owned(),
        Some(first) => first.to_uppercase().chain(letters).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_as_a_title() {
        assert_eq!(title("from_email"), "From email");
        assert_eq!(title("übersicht"), "Übersicht");
        assert_eq!(title("_"), "_");
    }
}
