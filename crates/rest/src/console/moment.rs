//! Times as people read them: in the time zone of the machine, with the zone to look up, and exact for programs.

use std::fmt;

use askama::filters::HtmlSafe;
use contract::time::Instant;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned, civil};

pub(super) struct Moment {
    /// For the `datetime` of the element.
    exact: String,
    pub(super) shown: String,
    /// With the zone.
    full: String,
}

/// As the element that a page shows. Every part was written by us, so none needs to be escaped.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exact, shown, full } = self;
        write!(
            f,
            "<time datetime=\"{exact}\" title=\"{full}\">{shown}</time>"
        )
    }
}

impl HtmlSafe for Moment {}

impl Moment {
    /// A time as a record or the log writes it. A date has no zone and stays the date it is.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(date) = text.parse::<civil::Date>()
            && text.len() <= 10
        {
            return Some(Self {
                exact: date.to_string(),
                shown: date.strftime("%-d %b %Y").to_string(),
                full: date.strftime("%A, %-d %B %Y").to_string(),
            });
        }
        Instant::parse(text).and_then(Self::new)
    }

    pub(super) fn new(instant: Instant) -> Option<Self> {
        let local = local(instant)?;
        Some(Self {
            exact: instant.to_rfc3339_millis(),
            shown: local.strftime("%-d %b %Y, %H:%M").to_string(),
            full: local.strftime("%A, %-d %B %Y, %H:%M:%S %:z").to_string(),
        })
    }
}

/// The day in the time zone of this machine.
pub(super) fn today(now: Instant) -> civil::Date {
    local(now).map_or(civil::Date::constant(1970, 1, 1), |now| now.date())
}

/// The moment in the time zone of this machine.
pub(super) fn local(instant: Instant) -> Option<Zoned> {
    let timestamp = Timestamp::from_microsecond(instant.0).ok()?;
    Some(timestamp.to_zoned(TimeZone::system()))
}

/// What this machine's time zone is called, else how far it is from UTC now.
pub(super) fn zone_name() -> String {
    match zone().as_deref() {
        Some("Etc/UTC") => "UTC".to_owned(),
        Some(name) => name.to_owned(),
        None => Zoned::now().strftime("UTC%:z").to_string(),
    }
}

/// The name of this machine's time zone, where it has one that others know.
pub(super) fn zone() -> Option<String> {
    TimeZone::system().iana_name().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_not_moved_into_a_zone() {
        let date = Moment::parse("2026-03-01").unwrap();
        assert_eq!(
            (date.exact.as_str(), date.shown.as_str()),
            ("2026-03-01", "1 Mar 2026")
        );
        let moment = Moment::parse("2026-03-01T10:00:00+02:00").unwrap();
        assert_eq!(moment.exact, "2026-03-01T08:00:00.000Z");
        assert!(Moment::parse("yesterday").is_none());
    }
}
