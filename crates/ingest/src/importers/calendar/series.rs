//! The recurring events of a file: they wait until their calendar ends, become records with their occurrences, and let go of
//! occurrences that no longer take place.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use contract::key::RecordKey;
use contract::time::Instant;
use jiff::Timestamp;
use serde_json::Value;

use super::records::{self, EventRecord};
use super::recurrence::{Horizon, Series, is_id_within};
use super::times::EventTime;
use super::{Calendar, shortened_uid};
use crate::accept::Acceptor;
use crate::importer::{ExistingRecords, Item, Stopped, is_older};
use crate::importers::content_lines::{Component, key_of};

/// Bytes of recurring events that wait at a time. Those beyond are imported without their occurrences.
const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;
/// Occurrences written out of one file.
const MAX_OCCURRENCES: usize = 100_000;

/// Recurring events on their way to records.
pub(super) struct SeriesStore {
    horizon: Horizon,
    held: VecDeque<Component>,
    held_bytes: usize,
    /// The changed occurrences of this calendar, by `UID`.
    changed: HashMap<String, Vec<EventTime>>,
    /// Keys of earlier imports that may be those of occurrences.
    existing: BTreeSet<String>,
    /// Keys of this import among these, and keys of its occurrences.
    current: HashSet<String>,
    /// The series whose occurrences in the horizon are all known, as the keys of occurrences begin.
    complete: BTreeSet<String>,
    /// Occurrences of earlier imports that no longer take place; found at the end.
    removals: Option<VecDeque<String>>,
    occurrences: usize,
    not_expanded: u64,
    unreadable: u64,
}

impl SeriesStore {
    pub(super) fn around(now: Instant) -> Self {
        let now = Timestamp::from_microsecond(now.0).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            horizon: Horizon::around(now),
            held: VecDeque::new(),
            held_bytes: 0,
            changed: HashMap::new(),
            existing: BTreeSet::new(),
            current: HashSet::new(),
            complete: BTreeSet::new(),
            removals: None,
            occurrences: 0,
            not_expanded: 0,
            unreadable: 0,
        }
    }

    /// Notes which occurrences there may be already.
    pub(super) fn compare(&mut self, existing: &dyn ExistingRecords) -> Result<(), Stopped> {
        let keys = existing.keys("events")?.into_iter();
        let keys = keys.filter(|key| self.split_occurrence(key.as_str()).is_some());
        self.existing = keys.map(|key| key.as_str().to_owned()).collect();
        Ok(())
    }

    /// The key of the series and the time of an occurrence within the horizon, if a key has that form.
    fn split_occurrence<'k>(&self, key: &'k str) -> Option<(&'k str, &'k str)> {
        let (series, id) = key.rsplit_once('_')?;
        is_id_within(id, &self.horizon).then_some((series, id))
    }

    /// Whether a recurring event can wait.
    pub(super) fn has_room(&mut self, component: &Component) -> bool {
        let has_room = self.held_bytes.saturating_add(component.bytes) <= MAX_HELD_BYTES;
        self.not_expanded += u64::from(!has_room);
        has_room
    }

    pub(super) fn hold(&mut self, component: Component) {
        self.held_bytes += component.bytes;
        self.held.push_back(component);
    }

    /// Notes an event that is no series: it may replace an occurrence.
    pub(super) fn note_event(
        &mut self,
        component: &Component,
        event: &EventRecord,
        key: &RecordKey,
    ) {
        if let Some(replaced) = &event.replaces {
            let changed = self.changed.entry(key_of(component, None)).or_default();
            changed.push(replaced.clone());
        }
        if self.split_occurrence(key.as_str()).is_some() {
            self.current.insert(key.as_str().to_owned());
        }
    }

    pub(super) fn next_held(&mut self) -> Option<Component> {
        let component = self.held.pop_front()?;
        self.held_bytes = self.held_bytes.saturating_sub(component.bytes);
        Some(component)
    }

    /// Forgets what belongs to one calendar of a file.
    pub(super) fn end_calendar(&mut self) {
        self.changed.clear();
    }

    /// The items of a recurring event: the event itself, and its occurrences in the horizon.
    pub(super) fn items(
        &mut self,
        component: &Component,
        calendar: &Calendar,
        acceptor: &Acceptor<'_>,
    ) -> Vec<Item> {
        let item = |outcome| Item::new(component.line, component.bytes, outcome);
        let mut event = match records::event(component, calendar) {
            Ok(event) => event,
            Err(rejection) => return vec![item(Err(rejection))],
        };
        let key = key_of(component, None);
        let Some(start) = &event.start else {
            return vec![item(acceptor.record("events", &event.record))];
        };
        let changed = self.changed.get(&key);
        let series = Series {
            component,
            start,
            end: event.end.as_ref(),
            zones: &calendar.zones,
            changed: changed.map_or(&[], Vec::as_slice),
        };
        let Some(expanded) = series.expand(&self.horizon) else {
            self.unreadable += 1;
            return vec![item(acceptor.record("events", &event.record))];
        };
        // An older export of the event tells nothing of when it takes place now.
        let stored = acceptor.stored("events", &key);
        if stored.is_some_and(|stored| is_older(&event.record, &stored)) {
            return vec![item(acceptor.record("events", &event.record))];
        }
        if let Some(first) = &expanded.first {
            records::begin_at(&mut event.record, first);
        }
        let mut items = vec![item(acceptor.record("events", &event.record))];
        let room = MAX_OCCURRENCES.saturating_sub(self.occurrences);
        let is_complete = expanded.is_complete && expanded.occurrences.len() <= room;
        for one in expanded.occurrences.iter().take(room) {
            let id = occurrence_key(component, &key, &one.id);
            let record = records::occurrence(&event.record, &id, one);
            items.push(self.occurrence(component, id, &record, acceptor));
        }
        if is_complete {
            self.complete.insert(shortened_uid(&key));
            self.complete.insert(key);
        } else {
            self.not_expanded += 1;
        }
        items
    }

    fn occurrence(
        &mut self,
        component: &Component,
        id: String,
        record: &Value,
        acceptor: &Acceptor<'_>,
    ) -> Item {
        self.occurrences += 1;
        let outcome = acceptor.record("events", record);
        let key = outcome
            .as_ref()
            .map(|change| change.key.as_str().to_owned());
        self.current.insert(key.unwrap_or(id));
        // Occurrences hold little of the series.
        let bytes = component.bytes.min(1_024);
        Item::new(component.line, bytes, outcome).derived()
    }

    /// The next occurrence of an earlier import that no longer takes place.
    pub(super) fn next_removal(&mut self, acceptor: &Acceptor<'_>) -> Option<Item> {
        if self.removals.is_none() {
            let existing = std::mem::take(&mut self.existing);
            let gone = existing.into_iter().filter(|key| {
                let series = self.split_occurrence(key).map(|(series, _)| series);
                series.is_some_and(|series| self.complete.contains(series))
                    && !self.current.contains(key)
            });
            self.removals = Some(gone.collect());
        }
        let key = self.removals.as_mut()?.pop_front()?;
        Some(Item::new(0, key.len(), acceptor.deletion("events", &key)).derived())
    }

    /// What could not be written out.
    pub(super) fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if self.unreadable > 0 {
            notes.push(format!(
                "recurring events whose rule cannot be read, imported as their first occurrence only: {}",
                self.unreadable
            ));
        }
        if self.not_expanded > 0 {
            notes.push(format!(
                "recurring events with more occurrences than are written out: {}",
                self.not_expanded
            ));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// The key of an occurrence: as that of a changed one. Without a `UID` the content of the series stands for it.
fn occurrence_key(component: &Component, series: &str, id: &str) -> String {
    let uid = component.property("UID").map(|uid| uid.value.trim());
    match uid {
        Some(uid) if !uid.is_empty() => key_of(component, Some(id)),
        _ => format!("{series}_{id}"),
    }
}
