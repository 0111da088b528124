//! One stream as a reader may know it: its fields, what each accepts, and what the grant limits it to.

use std::collections::BTreeSet;

use contract::declaration::{Aggregations, FieldDeclaration, FilterOperator, Pointing};
use contract::id::{FieldName, GrantId};
use contract::key::RecordKey;
use contract::schema::{
    AggregationMetadata, Capability, ExpandCapability, FieldCapability, GrantedConnection,
    QueryMetadata, RelationshipMetadata, SearchMetadata, StreamMetadata, ViewMetadata,
};
use contract::wire::{ObjectTag, OrderedMap};
use serde_json::json;

use super::restrict;
use crate::ambiguity::label;
use crate::enforce::{Reach, Relation, Row};
use crate::failure::Result;

/// What two connections must have in common to share one entry.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Sameness {
    connector: String,
    stream: String,
    grant: Option<GrantId>,
    fields: Vec<String>,
    time: Option<String>,
    keys: Option<BTreeSet<RecordKey>>,
    relations: Vec<String>,
}

impl Sameness {
    pub(super) fn new(reach: Reach<'_>, row: &Row) -> Self {
        let relations = reach.relations(row).into_iter();
        Self {
            connector: row.connection().connector.to_string(),
            stream: row.stream().name.to_string(),
            grant: row.grant_id().cloned(),
            fields: row
                .fields()
                .map(|field| match row.redaction(field.name.as_str()) {
                    None => field.name.to_string(),
                    Some(redaction) => format!("{} {redaction}", field.name),
                })
                .collect(),
            time: time_constraint(row).map(|told| told.to_string()),
            keys: row.keys().cloned(),
            relations: relations.map(|relation| relation.expand.name).collect(),
        }
    }
}

/// A stream of these connections, which are alike.
pub(super) fn describe(reach: Reach<'_>, row: &Row, members: &[&Row]) -> Result<StreamMetadata> {
    let stream = row.stream();
    let relations = reach.relations(row);
    let aggregations = row.aggregations().unwrap_or_default();
    let semantic = if reach.has_model() {
        row.semantic_fields()
    } else {
        Vec::new()
    };
    let mut capabilities = OrderedMap::default();
    for field in row.fields() {
        let mut capability = capability(row, field, &aggregations)?;
        let is_semantic = semantic.contains(&field.name);
        capability.semantic_search = Some(Capability::new(is_semantic));
        capabilities.0.push((field.name.to_string(), capability));
    }
    let text = |name: &FieldName| name.to_string();
    let key = if row.sees_all(&stream.primary_key) {
        stream.primary_key.iter().map(text).collect()
    } else {
        Vec::new()
    };
    Ok(StreamMetadata {
        object: ObjectTag::STREAM_METADATA,
        name: stream.name.to_string(),
        description: stream.description.clone(),
        semantics: Some(stream.semantics),
        primary_key: Some(key),
        cursor_field: row.cursor_field().map(text),
        consent_time_field: row.consent_time_field().map(text),
        selection: Some(stream.selection),
        schema: Some(restrict::schema(row)?),
        query: Some(query(row, &relations, &semantic)),
        views: Some(views(row)),
        relationships: Some(relations.iter().map(relationship).collect()),
        field_capabilities: capabilities,
        expand_capabilities: Some(relations.iter().map(expand).collect()),
        freshness: None,
        instance_ids: (!row.is_owner()).then(|| {
            let members = members.iter();
            members
                .map(|member| member.connection().id.to_string())
                .collect()
        }),
        resources: row
            .keys()
            .map(|keys| keys.iter().map(ToString::to_string).collect()),
        time_constraint: time_constraint(row),
        granted_connections: Some(members.iter().map(|member| granted(member)).collect()),
        links: None,
        meta: None,
    })
}

fn granted(row: &Row) -> GrantedConnection {
    GrantedConnection {
        connection_id: row.connection().id.to_string(),
        display_name: label(row.connection()),
    }
}

fn time_constraint(row: &Row) -> Option<serde_json::Value> {
    let (field, constraint) = row.time_constraint()?;
    let mut told = serde_json::Map::new();
    let parts = [
        ("field", field.map(FieldName::as_str)),
        ("since", constraint.since.as_deref()),
        ("until", constraint.until.as_deref()),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            told.insert(name.to_owned(), value.into());
        }
    }
    Some(told.into())
}

fn views(row: &Row) -> Vec<ViewMetadata> {
    let views = row.views().map(|view| ViewMetadata {
        id: view.id.to_string(),
        label: Some(view.label.clone()),
        fields: view.fields.iter().map(ToString::to_string).collect(),
    });
    views.collect()
}

fn relationship(relation: &Relation) -> RelationshipMetadata {
    let declared = &relation.relationship;
    RelationshipMetadata {
        name: declared.name.clone(),
        stream: declared.stream.to_string(),
        foreign_key: declared.foreign_key.to_string(),
        cardinality: declared.cardinality,
    }
}

/// How many related records a read may bring along, by default and at most. A has-one relation takes no limit.
fn limits(relation: &Relation) -> Option<(u32, u32)> {
    let declared = &relation.expand;
    relation
        .is_many()
        .then_some((declared.default_limit, declared.max_limit))
}

fn expand(relation: &Relation) -> ExpandCapability {
    let declared = &relation.relationship;
    let cardinality = if relation.is_many() {
        "has_many"
    } else {
        "has_one"
    };
    let limits = limits(relation);
    ExpandCapability {
        name: declared.name.clone(),
        stream: Some(declared.stream.to_string()),
        target_stream: Some(declared.stream.to_string()),
        cardinality: Some(cardinality.to_owned()),
        granted: Some(true),
        usable: Some(true),
        foreign_key: Some(declared.foreign_key.to_string()),
        child_parent_key_field: (declared.pointing == Pointing::Here)
            .then(|| declared.foreign_key.to_string()),
        default_limit: limits.map(|(default, _)| default),
        max_limit: limits.map(|(_, max)| max),
        reason: None,
    }
}

/// What may be asked beyond plain reading, by capability.
fn query(row: &Row, relations: &[Relation], semantic: &[FieldName]) -> QueryMetadata {
    let ranges: OrderedMap<Vec<FilterOperator>> = row
        .fields()
        .filter_map(|field| {
            let operators = row.range_operators(&field.name)?;
            Some((field.name.to_string(), operators.to_vec()))
        })
        .collect();
    let expand: Vec<serde_json::Value> = relations
        .iter()
        .map(|relation| {
            let name = &relation.expand.name;
            match limits(relation) {
                Some((default, max)) => {
                    json!({"name": name, "default_limit": default, "max_limit": max})
                }
                None => json!({"name": name}),
            }
        })
        .collect();
    QueryMetadata {
        range_filters: (!ranges.is_empty()).then_some(ranges),
        expand: (!expand.is_empty()).then_some(expand),
        search: search(row, semantic),
        aggregations: row.aggregations().map(|offered| AggregationMetadata {
            count: offered.count.then_some(true),
            sum: names(&offered.sum),
            min: names(&offered.min),
            max: names(&offered.max),
            group_by: names(&offered.group_by),
            group_by_time: names(&offered.group_by_time),
            count_distinct: names(&offered.count_distinct),
        }),
    }
}

fn search(row: &Row, semantic: &[FieldName]) -> Option<SearchMetadata> {
    let search = SearchMetadata {
        lexical_fields: names(&row.lexical_fields()),
        semantic_fields: names(semantic),
    };
    (search != SearchMetadata::default()).then_some(search)
}

fn names(fields: &[FieldName]) -> Option<Vec<String>> {
    let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then_some(names)
}

fn capability(
    row: &Row,
    field: &FieldDeclaration,
    offered: &Aggregations,
) -> Result<FieldCapability> {
    let name = &field.name;
    let operators = row.range_operators(name);
    let mut range_filter = Capability::new(operators.is_some());
    range_filter.operators = operators.map(|operators| {
        let operators = operators.iter();
        operators
            .map(|operator| operator.as_str().to_owned())
            .collect()
    });
    let aggregation = [
        ("count_distinct", &offered.count_distinct),
        ("group_by", &offered.group_by),
        ("group_by_time", &offered.group_by_time),
        ("max", &offered.max),
        ("min", &offered.min),
        ("sum", &offered.sum),
    ];
    let aggregation = aggregation
        .into_iter()
        .map(|(metric, fields)| (metric.to_owned(), Capability::new(fields.contains(name))));
    let is_whole = row.sees_whole(name.as_str());
    Ok(FieldCapability {
        schema: Some(restrict::property(row, field)?),
        presentation_type: field.presentation_type.clone().filter(|_| is_whole),
        role: field.role.clone(),
        granted: Some(true),
        exact_filter: Some(Capability::new(is_whole && field.kind.is_scalar())),
        range_filter: Some(range_filter),
        lexical_search: Some(Capability::new(row.lexical_fields().contains(name))),
        semantic_search: None,
        aggregation: Some(aggregation.collect()),
    })
}
