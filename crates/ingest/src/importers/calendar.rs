//! Calendar files (`.ics`, RFC 5545): events and tasks. What repeats is one record with its rule as text; occurrences that
//! were changed are records of their own. Reminders and attached files are left out.

mod observances;
mod records;
mod times;
mod windows;
mod zones;

use std::io::BufRead;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::importers::content_lines::{
    self, Component, Components, Escapes, Found, Layout, Property,
};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode, quoted};
use store::records::Change;
use zones::Zones;

const LAYOUT: Layout = Layout {
    container: Some("VCALENDAR"),
    components: &["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VTIMEZONE"],
    dropped: &["ATTACH"],
};

/// Whether a file that begins like this holds a calendar.
pub(crate) fn recognise(head: &[u8]) -> bool {
    content_lines::begins_with(head, b"BEGIN:VCALENDAR")
}

/// Reads calendars, one after the other if the file holds several.
pub struct CalendarImporter<'a, R> {
    components: Components<R>,
    acceptor: &'a Acceptor<'a>,
    calendar: Calendar,
}

/// What a calendar says about all that is in it.
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

    /// An importer of entries of at most so many bytes.
    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            components: Components::new(reader, &LAYOUT, limit),
            acceptor,
            calendar: Calendar::default(),
        }
    }

    /// What becomes of a component. Nothing for what only helps to understand others.
    fn change(&mut self, component: &Component) -> Option<Result<Change, Rejection>> {
        let (stream, record) = match component.name.as_str() {
            "VTIMEZONE" => {
                self.calendar.zones.describe(component);
                return None;
            }
            "VEVENT" => ("events", records::event(component, &self.calendar)),
            "VTODO" => ("tasks", records::task(component, &self.calendar)),
            name if name.starts_with("X-") => return None,
            name => {
                let message = format!(
                    "{} is not imported; events (VEVENT) and tasks (VTODO) are",
                    quoted(name)
                );
                let rejection = Rejection::new(RejectionCode::UnsupportedItem, message);
                return Some(Err(rejection));
            }
        };
        Some(record.and_then(|record| self.acceptor.record(stream, &record)))
    }
}

impl<R: BufRead> Importer for CalendarImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        while let Some(found) = self.components.next()? {
            match found {
                Found::Container => self.calendar = Calendar::default(),
                Found::Property { property, .. } => self.calendar.note(&property),
                Found::Component(component) => {
                    if let Some(outcome) = self.change(&component) {
                        return Ok(Some(Item {
                            line: component.line,
                            bytes: component.bytes,
                            outcome,
                        }));
                    }
                }
                Found::Broken {
                    line,
                    bytes,
                    rejection,
                } => {
                    return Ok(Some(Item {
                        line,
                        bytes,
                        outcome: Err(rejection),
                    }));
                }
            }
        }
        Ok(None)
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
