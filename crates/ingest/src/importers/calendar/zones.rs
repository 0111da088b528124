//! Which offset a clock on the wall had. A zone is known by its name, or it is described in the file itself.
//!
//! The name comes first, as the database of zones knows all that ever changed, while files describe what held when they
//! were written. Programs put their own prefix before a name, or take the name that Windows has for it. Where neither
//! name nor description helps, nothing is guessed.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::observances::Observances;
use super::windows;
use crate::importers::content_lines::Component;

/// So much of a file may describe zones; what comes after goes unheard.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(super) enum Zone {
    Known(TimeZone),
    /// One that the file describes, and its name there.
    Described(Arc<str>, Arc<Observances>),
}

impl Zone {
    /// The name: of the database, or of the file.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Known(zone) => zone.iana_name().unwrap_or("UTC"),
            Self::Described(name, _) => name,
        }
    }

    /// When the clock showed this. If it did so twice, the first time; if never, as if it had not been changed yet.
    pub(super) fn moment(&self, local: DateTime) -> Option<Timestamp> {
        match self {
            Self::Known(zone) => zone.to_ambiguous_timestamp(local).compatible().ok(),
            Self::Described(_, observances) => observances.moment(local),
        }
    }

    pub(super) fn offset(&self, at: Timestamp) -> Offset {
        match self {
            Self::Known(zone) => zone.to_offset(at),
            Self::Described(_, observances) => observances.offset(at),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Zones {
    shown_in: Option<Zone>,
    described: HashMap<String, Zone>,
    bytes: usize,
}

impl Zones {
    pub(super) fn describe(&mut self, component: &Component) {
        self.bytes = self.bytes.saturating_add(component.bytes);
        let name = component.property("TZID").map(|name| name.value.trim());
        let Some(name) = name.filter(|_| self.bytes <= MAX_BYTES) else {
            return;
        };
        let location = component.property("X-LIC-LOCATION");
        let zone = location
            .and_then(|location| named(location.value.trim()))
            .or_else(|| {
                let observances = Observances::read(component)?;
                Some(Zone::Described(name.into(), Arc::new(observances)))
            });
        if let Some(zone) = zone {
            self.described.insert(name.to_owned(), zone);
        }
    }

    /// Takes up the name of the zone in which the calendar is shown.
    pub(super) fn show_in(&mut self, name: &str) {
        self.shown_in = self.zone(name);
    }

    /// The zone in which moments are shown that were written without one.
    pub(super) fn for_utc_times(&self) -> Zone {
        let shown_in = self.shown_in.clone();
        shown_in.unwrap_or(Zone::Known(TimeZone::UTC))
    }

    pub(super) fn zone(&self, name: &str) -> Option<Zone> {
        let name = name.trim();
        named(name)
            .or_else(|| prefixed(name))
            .or_else(|| windows::name_of(name).and_then(named))
            .or_else(|| self.described.get(name).cloned())
    }
}

fn named(name: &str) -> Option<Zone> {
    let zone = TimeZone::get(name).ok()?;
    (!zone.is_unknown()).then_some(Zone::Known(zone))
}

/// Names such as `/mozilla.org/20070129_1/Europe/Berlin` end in one of the database, of two parts or three.
fn prefixed(name: &str) -> Option<Zone> {
    let mut ends: Vec<usize> = name.rmatch_indices('/').map(|(at, _)| at).take(3).collect();
    ends.reverse();
    ends.iter()
        .filter_map(|at| name.get(at + 1..))
        .filter(|end| end.contains('/'))
        .find_map(named)
}

#[cfg(test)]
mod tests {
    use jiff::civil::datetime;

    use super::*;

    #[test]
    fn names_are_known_with_prefix_and_in_the_words_of_windows() {
        let zones = Zones::default();
        for (given, known) in [
            ("Europe/Berlin", Some("Europe/Berlin")),
            ("europe/berlin", Some("Europe/Berlin")),
            ("UTC", Some("UTC")),
            (
                "/freeassociation.sourceforge.net/Tzfile/America/Argentina/Buenos_Aires",
                Some("America/Argentina/Buenos_Aires"),
            ),
            (
                "/mozilla.org/20070129_1/Europe/Berlin",
                Some("Europe/Berlin"),
            ),
            ("W. Europe Standard Time", Some("Europe/Berlin")),
            ("Pacific Standard Time", Some("America/Los_Angeles")),
            ("Etc/Unknown", None),
            ("Customized Time Zone", None),
            ("../../etc/passwd", None),
            ("", None),
        ] {
            let zone = zones.zone(given);
            assert_eq!(zone.as_ref().map(Zone::name), known, "{given}");
        }
    }

    #[test]
    fn every_name_of_windows_is_in_the_database() {
        for (windows, known) in windows::NAMES {
            assert!(named(known).is_some(), "{windows}: {known}");
        }
        assert!(windows::NAMES.is_sorted());
    }

    #[test]
    fn a_time_that_came_twice_is_the_first_and_one_that_never_came_keeps_the_offset_before() {
        let berlin = Zones::default().zone("Europe/Berlin").unwrap();
        let twice = berlin.moment(datetime(2026, 10, 25, 2, 30, 0, 0)).unwrap();
        assert_eq!(twice.to_string(), "2026-10-25T00:30:00Z");
        let never = berlin.moment(datetime(2026, 3, 29, 2, 30, 0, 0)).unwrap();
        assert_eq!(never.to_string(), "2026-03-29T01:30:00Z");
    }
}
