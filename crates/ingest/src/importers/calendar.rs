//! Calendar files (`.ics`, RFC 5545): events and tasks. A recurring event is a record with its rule, which stands for its
//! first occurrence; the others within two years of the import are records of their own, and so are those that were
//! changed. Reminders and attached files are left out.

mod observances;
mod records;
mod recurrence;
mod series;
mod times;
mod windows;
mod zones;

use std::collections::VecDeque;
use std::io::BufRead;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::exports::{Declared, Known};
use crate::importer::{ExistingRecords, Importer, Item, Stopped};
use crate::importers::content_lines::{
    self, Component, Components, Escapes, Found, Layout, Property,
};
use crate::lines::MAX_LINE_BYTES;
use crate::readable_key::{is_readable, shortened};
use crate::rejection::{Rejection, RejectionCode, quoted};
use series::SeriesStore;
use store::records::Change;
use zones::Zones;

const LAYOUT: Layout = Layout {
    container: Some("VCALENDAR"),
    components: &["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE"],
    dropped: &["ATTACH"],
};

pub(crate) const EXPORT: Known = Known {
    name: "calendar",
    title: "calendars (ics)",
    declaration: Declared::Json {
        connector_key: "calendar-file",
        text: include_str!("../../declarations/calendar-file.json"),
    },
    origin: "Google Calendar: Settings > Import & export > Export. Apple Calendar: File > Export. Outlook: Save Calendar. Thunderbird: Export Calendar",
    contents: "events with their occurrences, and tasks",
    recognise: |file| recognise(file.head).into(),
    importer: |input, acceptor, _| Box::new(CalendarImporter::new(input.into_reader(), acceptor)),
};

/// Whether a file that begins like this holds a calendar.
pub(crate) fn recognise(head: &[u8]) -> bool {
    content_lines::begins_with(head, b"BEGIN:VCALENDAR")
}

/// So much of a `UID` that the time of an occurrence and a hash fit behind it.
const KEPT_UID: usize = 36;

/// A key that can stand in a handle. That of an occurrence still ends in its time, by which occurrences are known.
pub(crate) fn readable_key(key: &str) -> String {
    if is_readable(key) {
        return key.to_owned();
    }
    match key.rsplit_once('_') {
        Some((series, id)) if times::parse_time(id).is_some() => {
            format!("{}_{id}", shortened_uid(series))
        }
        _ => shortened_uid(key),
    }
}

fn shortened_uid(uid: &str) -> String {
    shortened(uid, KEPT_UID)
}

/// Reads calendars, one after the other if the file holds several.
pub struct CalendarImporter<'a, R> {
    components: Components<R>,
    acceptor: &'a Acceptor<'a>,
    calendar: Calendar,
    /// Recurring events wait until their calendar ends: only then is it known which occurrences were changed.
    series: SeriesStore,
    ready: VecDeque<Item>,
    /// How the file ended, once it has.
    end: Option<Result<(), InputError>>,
}

#[derive(Debug, Default)]
struct Calendar {
    name: Option<String>,
    zones: Zones,
}

impl<'a, R: BufRead> CalendarImporter<'a, R> {
    /// An importer of entries of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            components: Components::new(reader, &LAYOUT, limit),
            acceptor,
            calendar: Calendar::default(),
            series: SeriesStore::around(acceptor.now()),
            ready: VecDeque::new(),
            end: None,
        }
    }

    /// Turns a component into an item, unless it only describes others or waits for them.
    fn add(&mut self, component: Component) {
        let (line, bytes) = (component.line, component.bytes);
        let outcome = match component.name.as_str() {
            "VTIMEZONE" => return self.calendar.zones.describe(&component),
            name if name.starts_with("X-") => return,
            "VEVENT" if records::is_series(&component) && self.series.has_room(&component) => {
                return self.series.hold(component);
            }
            "VEVENT" => self.event(&component),
            "VTODO" => {
                let task = records::task(&component, &self.calendar);
                task.and_then(|task| self.acceptor.record("tasks", &task))
            }
            name => {
                let message = format!(
                    "{} is not imported; events (VEVENT) and tasks (VTODO) are",
                    quoted(name)
                );
                Err(Rejection::new(RejectionCode::UnsupportedItem, message))
            }
        };
        self.ready.push_back(Item::new(line, bytes, outcome));
    }

    fn event(&mut self, component: &Component) -> Result<Change, Rejection> {
        let event = records::event(component, &self.calendar)?;
        let change = self.acceptor.record("events", &event.record)?;
        self.series.note_event(component, &event, &change.key);
        Ok(change)
    }

    /// Makes items of the next recurring event that waits; false if none does.
    fn take_series(&mut self) -> bool {
        let Some(component) = self.series.next_held() else {
            return false;
        };
        let items = self.series.items(&component, &self.calendar, self.acceptor);
        self.ready.extend(items);
        true
    }
}

impl<R: BufRead> Importer for CalendarImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.end.is_some() {
                if self.take_series() {
                    continue;
                }
                let is_whole = matches!(self.end, Some(Ok(())));
                if is_whole && let Some(item) = self.series.next_removal(self.acceptor) {
                    return Ok(Some(item));
                }
                return self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| None);
            }
            match self.components.next() {
                Ok(Some(Found::Container)) => {
                    while self.take_series() {}
                    self.series.end_calendar();
                    self.calendar = Calendar::default();
                }
                Ok(Some(Found::Property { property, .. })) => self.calendar.note(&property),
                Ok(Some(Found::Component(component))) => self.add(component),
                Ok(Some(Found::Broken {
                    line,
                    bytes,
                    rejection,
                })) => self.ready.push_back(Item::new(line, bytes, Err(rejection))),
                Ok(None) => self.end = Some(Ok(())),
                // What is held goes first: it was read.
                Err(error) => self.end = Some(Err(error.into())),
            }
        }
    }

    fn compare(&mut self, existing: &dyn ExistingRecords) -> Result<(), Stopped> {
        self.series.compare(existing)
    }

    fn note(&self) -> Option<String> {
        self.series.note()
    }
}

impl Calendar {
    fn note(&mut self, property: &Property) {
        match property.name.as_str() {
            "X-WR-CALNAME" | "NAME" => self.name = Some(property.text(Escapes::All)),
            "X-WR-TIMEZONE" => self.zones.show_in(&property.value),
            _ => {}
        }
    }
}
