//! The compact schema: one short text per field. Connections stand on every stream, and on a connector those that most of
//! its streams have: clients that look at only one of the two are right either way.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_with::skip_serializing_none;

use super::{
    CompactSchema, ConnectorSchema, ExpandCapability, FieldCapability, GrantedConnection, Schema,
    SchemaDocument, StreamMetadata,
};
use crate::wire::{OrderedMap, Other};

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CompactStream {
    pub name: String,
    pub primary_key: Option<Vec<String>>,
    pub cursor_field: Option<String>,
    /// What each field accepts, as flags: see [`FieldCapability::flags`].
    #[serde(default)]
    pub field_capabilities: OrderedMap<String>,
    /// Which relationships a read may bring along.
    pub expand_capabilities: Option<Vec<ExpandCapability>>,
    pub granted_connections: Option<Vec<GrantedConnection>>,
    /// Members of another server.
    #[serde(flatten)]
    pub other: Other,
}

impl Schema {
    /// The same document in a few words.
    pub fn compact(&self) -> CompactSchema {
        let connectors: Vec<_> = self.connectors.iter().map(compact_connector).collect();
        let streams: usize = connectors
            .iter()
            .map(|connector| connector.streams.len())
            .sum();
        SchemaDocument {
            object: self.object.clone(),
            detail: Some("compact".to_owned()),
            bearer: self.bearer.clone(),
            connector_count: u64::try_from(connectors.len()).ok(),
            stream_count: u64::try_from(streams).ok(),
            connectors,
            links: self.links.clone(),
            meta: self.meta.clone(),
            search: self.search.clone(),
        }
    }
}

fn compact_connector(
    connector: &ConnectorSchema<StreamMetadata>,
) -> ConnectorSchema<CompactStream> {
    let shared = most_shared(&connector.streams);
    ConnectorSchema {
        object: connector.object.clone(),
        source: connector.source.clone(),
        connector_key: connector.connector_key.clone(),
        connector_id: connector.connector_id.clone(),
        stream_count: connector.stream_count,
        granted_connections: shared.map(<[GrantedConnection]>::to_vec),
        streams: connector
            .streams
            .iter()
            .map(StreamMetadata::compact)
            .collect(),
    }
}

/// The set of connections that most streams have, the first of them when several are equally frequent.
fn most_shared(streams: &[StreamMetadata]) -> Option<&[GrantedConnection]> {
    let sets: Vec<&[GrantedConnection]> = streams
        .iter()
        .filter_map(|stream| stream.granted_connections.as_deref())
        .filter(|set| !set.is_empty())
        .collect();
    let mut frequencies: BTreeMap<BTreeSet<&str>, usize> = BTreeMap::new();
    for set in &sets {
        *frequencies.entry(ids(set)).or_default() += 1;
    }
    let most = frequencies.values().max().copied()?;
    sets.into_iter()
        .find(|set| frequencies.get(&ids(set)) == Some(&most))
}

fn ids(connections: &[GrantedConnection]) -> BTreeSet<&str> {
    connections
        .iter()
        .map(|connection| connection.connection_id.as_str())
        .collect()
}

impl StreamMetadata {
    /// The same stream in a few words.
    pub fn compact(&self) -> CompactStream {
        let flags = |(name, field): (&str, &FieldCapability)| (name.to_owned(), field.flags());
        let expand = |relation: &ExpandCapability| ExpandCapability {
            child_parent_key_field: None,
            ..relation.clone()
        };
        CompactStream {
            name: self.name.clone(),
            primary_key: self.primary_key.clone(),
            cursor_field: self.cursor_field.clone(),
            field_capabilities: self.field_capabilities.iter().map(flags).collect(),
            expand_capabilities: self
                .expand_capabilities
                .as_ref()
                .map(|all| all.iter().map(expand).collect()),
            granted_connections: self.granted_connections.clone(),
            other: self.beside_fields(),
        }
    }

    /// What a read must know that no field tells: views by name, whether records may be counted, and what the grant
    /// leaves out. Not every server says so, which is why these are no members of their own.
    fn beside_fields(&self) -> Other {
        let views = self.views.as_ref().map(|views| {
            let ids = views.iter().map(|view| json!(view.id));
            ids.collect()
        });
        let query = self.query.as_ref().map(|query| {
            let aggregations = query.aggregations.as_ref();
            let counts = aggregations.and_then(|all| all.count).unwrap_or(false);
            json!({"aggregations": {"count": counts}})
        });
        let records = self.resources.as_ref().map(|records| json!(records.len()));
        let described = [
            ("views", views),
            ("query", query),
            ("time_constraint", self.time_constraint.clone()),
            ("resource_count", records),
        ];
        described
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_stand_on_every_stream_and_those_of_most_on_the_connector() {
        // TR-25
        let text = r#"{"object":"schema","connectors":[{"connector_key":"k","streams":[
            {"name":"a","granted_connections":[{"connection_id":"x"},{"connection_id":"y"}]},
            {"name":"b","granted_connections":[{"connection_id":"z"}]},
            {"name":"c","granted_connections":[{"connection_id":"y"},{"connection_id":"x"}]}]}]}"#;
        let compact = serde_json::from_str::<Schema>(text).unwrap().compact();
        let connector = &compact.connectors[0];
        assert_eq!(
            ids(connector.granted_connections.as_ref().unwrap()),
            BTreeSet::from(["x", "y"])
        );
        let told: Vec<usize> = connector
            .streams
            .iter()
            .map(|stream| stream.granted_connections.as_ref().unwrap().len())
            .collect();
        assert_eq!(told, [2, 1, 2]);
        assert_eq!(
            (compact.connector_count, compact.stream_count),
            (Some(1), Some(3))
        );
        assert_eq!(compact.detail.as_deref(), Some("compact"));
    }

    #[test]
    fn what_no_field_tells_is_told_beside_them() {
        // SC-10
        let text = r#"{"object":"schema","connectors":[{"connector_key":"k","streams":[
            {"name":"a","views":[{"id":"basic","label":"Basic","fields":["x"]}],"query":{"aggregations":{"count":true,"sum":["x"]}},
             "time_constraint":{"field":"at","since":"2026-01-01T00:00:00Z"},"resources":["r1","r2"]},
            {"name":"b","views":[],"query":{}},
            {"name":"c"}]}]}"#;
        let compact = serde_json::from_str::<Schema>(text).unwrap().compact();
        let described =
            |at: usize| serde_json::to_value(&compact.connectors[0].streams[at]).unwrap();
        let full = described(0);
        assert_eq!(full["views"], json!(["basic"]));
        assert_eq!(full["query"], json!({"aggregations": {"count": true}}));
        assert_eq!(full["time_constraint"]["since"], "2026-01-01T00:00:00Z");
        assert_eq!(full["resource_count"], 2);
        let nothing = described(1);
        assert_eq!(nothing["views"], json!([]));
        assert_eq!(nothing["query"], json!({"aggregations": {"count": false}}));
        assert!(nothing.get("time_constraint").is_none());
        let silent = described(2);
        assert!(silent.get("views").is_none() && silent.get("query").is_none());
    }
}
