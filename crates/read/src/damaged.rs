//! Records that were damaged on the disk and are left out of an answer that has others: they are told, by name where the
//! name is no secret.

use std::collections::BTreeMap;

use contract::key::RecordKey;
use contract::page::{Meta, Page, Warning, WarningCode};
use store::StoreError;

use crate::enforce::Row;
use crate::failure::{Failure, Result};

/// As many are named; the others are counted.
const NAMED: usize = 10;

#[derive(Debug, Default)]
pub(crate) struct Damaged {
    /// The records, each once however often the answer would have had it, and whether it may be named.
    records: BTreeMap<String, bool>,
}

impl Damaged {
    /// A record that the answer would have. Where only some records of the stream may be seen, nobody can tell any more
    /// whether this is one of them, so only the owner learns which it is.
    pub(crate) fn note(&mut self, row: &Row, key: &RecordKey) {
        if !row.admits_key(key) {
            return;
        }
        let (connection, stream) = (&row.connection().id, &row.stream().name);
        let record = format!("'{key}' of {connection}/{stream}");
        if self.records.contains_key(&record) {
            return;
        }
        tracing::error!(%connection, %stream, %key, "a record was damaged on the disk, and left out");
        let may_be_named = row.is_owner() || row.admits_everything();
        self.records.insert(record, may_be_named);
    }

    /// What a step found, unless a record of it was damaged: then that is noted.
    pub(crate) fn pass_over<T>(
        &mut self,
        found: Result<T>,
        (row, key): (&Row, &RecordKey),
    ) -> Result<Option<T>> {
        match found {
            Err(Failure::Store(StoreError::RecordDamaged { .. })) => {
                self.note(row, key);
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.records.extend(other.records);
    }

    pub(crate) fn warn<T>(&self, page: &mut Page<T>) {
        if !self.is_empty() {
            self.warn_in(page.meta_mut());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn warn_in(&self, meta: &mut Meta) {
        let step = "the owner of the server mends it by importing it again, or from a backup; `pdpp doctor --thorough` lists all damage";
        let may_be_named = self
            .records
            .iter()
            .filter(|(_, may_be_named)| **may_be_named);
        let named: Vec<&String> = may_be_named.map(|(record, _)| record).take(NAMED).collect();
        for record in &named {
            let message =
                format!("record {record} was damaged on the server's disk and is left out; {step}");
            meta.warn(Warning::new(WarningCode::RecordDamaged, message));
        }
        let others = self.records.len() - named.len();
        if others > 0 {
            let message = format!(
                "records left out because they were damaged on the server's disk: {others}; {step}"
            );
            meta.warn(Warning::new(WarningCode::RecordDamaged, message));
        }
    }
}
