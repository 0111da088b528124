//! Records as the index saw them.
//!
//! A figure is made from one state of the index, and the records behind it are read afterwards, when they may have
//! changed. So each is held against its scope once more, and where it does not fit any more, the earlier version that
//! the index saw is read instead. Nothing that was never in the scope can become part of a figure.

use std::collections::HashSet;

use contract::json::RecordBody;
use contract::key::RecordKey;
use tantivy::DocAddress;

use super::RecordIndex;
use super::engine::{ColumnValue, Fields, View, slot_name};
use super::parse_stored;
use super::restrict::Restriction;
use super::sources::StreamEntry;
use crate::records::StoredRecord;
use crate::{Result, StoreError};

/// How many earlier versions of a record are looked at; a state of the index is a moment old.
const VERSIONS: usize = 64;
/// How often a figure is made anew because a record behind it is gone with all its versions.
const ATTEMPTS: usize = 5;
/// How many damaged records are left out of a figure, one at each attempt.
const MOST_DAMAGED: usize = 64;

/// Records that a figure is made without, because they are not what was written.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) rows: HashSet<u64>,
    keys: Vec<RecordKey>,
}

pub(super) struct IndexedRecords<'a> {
    pub(super) store: &'a RecordIndex,
    pub(super) entry: &'a StreamEntry,
    pub(super) fields: &'a Fields,
    pub(super) restriction: &'a Restriction,
    pub(super) view: &'a View,
}

impl IndexedRecords<'_> {
    /// The record of a document as it was when the index saw it: within the scope, and with what `fits` asks of it. None
    /// where it was erased since, or is damaged: then it is left out of the next attempt.
    pub(super) fn record(
        &self,
        address: DocAddress,
        left_out: &mut LeftOut,
        fits: impl Fn(&StoredRecord, &RecordBody) -> bool,
    ) -> Result<Option<(StoredRecord, RecordBody)>> {
        let Some(row) = self.view.row_of(address) else {
            return Ok(None);
        };
        match self.version_of(row, fits) {
            Err(StoreError::RecordDamaged { .. }) if left_out.rows.len() < MOST_DAMAGED => {
                left_out.keys.extend(self.key_of(row)?);
                left_out.rows.insert(row);
                Ok(None)
            }
            found => found,
        }
    }

    /// The key of a row, unless it is erased meanwhile.
    fn key_of(&self, row: u64) -> Result<Option<RecordKey>> {
        let name = self.store.truth.names_of(&[row])?.pop().flatten();
        Ok(name.map(|(_, key)| RecordKey::from_ordering_form(&key)))
    }

    fn version_of(
        &self,
        row: u64,
        fits: impl Fn(&StoredRecord, &RecordBody) -> bool,
    ) -> Result<Option<(StoredRecord, RecordBody)>> {
        let truth = &self.store.truth;
        let current = truth.current(self.entry.id, row)?;
        if let Some(found) = self.admitted(row, current.into_iter(), &fits)? {
            return Ok(Some(found));
        }
        let earlier = truth.earlier(self.entry.id, row, VERSIONS)?;
        self.admitted(row, earlier.into_iter(), &fits)
    }

    /// The first of these forms of a record that lies in the scope and fits.
    fn admitted(
        &self,
        row: u64,
        mut forms: impl Iterator<Item = StoredRecord>,
        fits: impl Fn(&StoredRecord, &RecordBody) -> bool,
    ) -> Result<Option<(StoredRecord, RecordBody)>> {
        forms
            .find_map(|record| {
                let body = match parse_stored(record.body.clone(), self.store.path()) {
                    Ok(body) => body,
                    Err(error) => return Some(Err(error)),
                };
                let in_scope = self.restriction.admits(row, |name| self.value(name, &body));
                (in_scope && fits(&record, &body)).then_some(Ok((record, body)))
            })
            .transpose()
    }

    pub(super) fn value(&self, name: &str, body: &RecordBody) -> Option<ColumnValue> {
        value_of(self.entry, self.fields, name, body)
    }
}

pub(super) fn value_of(
    entry: &StreamEntry,
    fields: &Fields,
    name: &str,
    body: &RecordBody,
) -> Option<ColumnValue> {
    let mut slots = entry.layout.slots.iter();
    let slot = slots.find(|slot| slot_name(slot.kind, slot.number) == name)?;
    fields.column_value(slot, body)
}

/// Makes a figure until every record behind it could be read. Returns with it which records it was made without.
pub(super) fn steady<T>(
    store: &RecordIndex,
    figure: impl Fn(&mut LeftOut) -> Result<Option<T>>,
) -> Result<(T, Vec<RecordKey>)> {
    let (mut left_out, mut erased) = (LeftOut::default(), 0);
    let mut is_first = true;
    while erased < ATTEMPTS {
        let damaged = left_out.rows.len();
        let made = if is_first {
            figure(&mut left_out)?
        } else {
            // What was erased is newer than what the read was told.
            store.with_head(|| figure(&mut left_out))?
        };
        if let Some(made) = made {
            return Ok((made, left_out.keys));
        }
        is_first = false;
        if left_out.rows.len() == damaged {
            erased += 1;
        }
    }
    Err(StoreError::engine(
        store.path(),
        "records are erased faster than a figure over them can be made",
    ))
}
