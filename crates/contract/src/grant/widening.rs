//! What an authority reads beside its grants, and what it does not read for now.

use std::collections::BTreeMap;

use super::{GrantedAuthority, GrantedRow};
use crate::id::{ConnectionId, ConnectorKey, FieldName, GrantId, StreamName};

impl GrantedRow {
    /// All records of a stream, with these fields.
    pub fn whole(
        grant_id: GrantId,
        connector: ConnectorKey,
        connection: ConnectionId,
        stream: StreamName,
        fields: Vec<FieldName>,
    ) -> Self {
        Self {
            grant_id,
            connector,
            connection,
            stream,
            fields,
            time_constraint: None,
            resources: None,
            only: Vec::new(),
            except: Vec::new(),
            redact: BTreeMap::new(),
        }
    }
}

impl GrantedAuthority {
    pub fn has_grant(&self, id: &GrantId) -> bool {
        self.rows.iter().any(|row| row.grant_id == *id)
    }

    /// Reads no longer under these grants.
    pub fn leave_out(&mut self, grants: &[GrantId]) {
        self.rows.retain(|row| !grants.contains(&row.grant_id));
    }

    /// Adds rows. Where a row of the same stream and connection is there already, it gets their fields and keeps its limits.
    pub fn widen(&mut self, rows: impl Iterator<Item = GrantedRow>) {
        for row in rows {
            let known = |one: &&mut GrantedRow| {
                one.connection == row.connection && one.stream == row.stream
            };
            match self.rows.iter_mut().find(known) {
                Some(known) => {
                    for field in row.fields {
                        known.redact.remove(&field);
                        if !known.fields.contains(&field) {
                            known.fields.push(field);
                        }
                    }
                }
                None => self.rows.push(row),
            }
        }
    }
}
