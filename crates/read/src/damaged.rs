//! Records that were damaged on the disk and are left out of an answer that has others: they are told, by name where the
//! name is no secret.

use contract::key::RecordKey;
use contract::page::{Meta, Page, Warning, WarningCode};
use store::StoreError;

use crate::enforce::Row;
use crate::failure::{Failure, Result};

/// As many are named; the others are counted.
const NAMED: usize = 10;

/// What was left out of one answer.
#[derive(Debug, Default)]
pub(crate) struct Damaged {
    named: Vec<String>,
    others: usize,
}

impl Damaged {
    /// A record that the answer would have. Where only some records of the stream may be seen, nobody can tell any more
    /// whether this is one of them, so only the owner learns which it is.
    pub(crate) fn note(&mut self, row: &Row, key: &RecordKey) {
        if !row.admits_key(key) {
            return;
        }
        let (connection, stream) = (&row.connection().id, &row.stream().name);
        tracing::error!(%connection, %stream, %key, "a record was damaged on the disk, and left out");
        let may_be_named = row.is_owner() || row.admits_everything();
        if may_be_named && self.named.len() < NAMED {
            self.named.push(format!("'{key}' of {connection}/{stream}"));
        } else {
            self.others += 1;
        }
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

    /// What else was left out.
    pub(crate) fn add(&mut self, other: Self) {
        self.named.extend(other.named);
        self.others += other.others;
    }

    /// Tells it with a page.
    pub(crate) fn warn<T>(&self, page: &mut Page<T>) {
        if !self.is_empty() {
            self.warn_in(page.meta_mut());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.others == 0
    }

    pub(crate) fn warn_in(&self, meta: &mut Meta) {
        let step = "the owner of the server mends it by importing it again, or from a backup; `pdpp doctor --thorough` lists all damage";
        for record in &self.named {
            let message =
                format!("record {record} was damaged on the server's disk and is left out; {step}");
            meta.warn(Warning::new(WarningCode::RecordDamaged, message));
        }
        if self.others > 0 {
            let message = format!(
                "records left out because they were damaged on the server's disk: {}; {step}",
                self.others
            );
            meta.warn(Warning::new(WarningCode::RecordDamaged, message));
        }
    }
}
