//! What an authority reads beside its grants, and what it does not read for now.

use super::{GrantedAuthority, GrantedRow};
use crate::id::GrantId;

impl GrantedAuthority {
    pub fn has_grant(&self, id: &GrantId) -> bool {
        self.rows.iter().any(|row| row.grant_id == *id)
    }

    /// Reads no longer under these grants.
    pub fn leave_out(&mut self, grants: &[GrantId]) {
        self.rows.retain(|row| !grants.contains(&row.grant_id));
    }

    /// Adds rows. Where a row of the same stream and connection is there already, it gets their fields and keeps its limits.
    pub fn widen(&mut self, rows: Vec<GrantedRow>) {
        for row in rows {
            let known = |one: &&mut GrantedRow| {
                one.connection == row.connection && one.stream == row.stream
            };
            match self.rows.iter_mut().find(known) {
                Some(known) => known.add_fields(row),
                None => self.rows.push(row),
            }
        }
    }
}

impl GrantedRow {
    /// Adds the fields of another row. A field that either gives whole is whole.
    fn add_fields(&mut self, other: GrantedRow) {
        for field in other.fields {
            let is_known = self.fields.contains(&field);
            match other.redact.get(&field) {
                None => {
                    self.redact.remove(&field);
                }
                Some(part) if !is_known => {
                    self.redact.insert(field.clone(), *part);
                }
                Some(_) => {}
            }
            if !is_known {
                self.fields.push(field);
            }
        }
    }
}
