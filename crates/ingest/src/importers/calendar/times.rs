//! Times as calendars write them, and as records hold them.
//!
//! A day stays a day (`2026-03-01`). A moment is written with the offset its zone had then; some programs write all moments
//! in UTC and say in which zone the calendar is shown, then it is that zone. A time without a zone, or in one that nobody
//! knows, stays without an offset.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

use super::zones::{Zone, Zones};
use crate::importers::content_lines::Property;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeText {
    Day(Date),
    Local(DateTime),
    Utc(DateTime),
}

#[derive(Debug, Clone)]
pub(super) enum EventTime {
    Day(Date),
    /// A local time without a zone.
    Floating(DateTime),
    Moment(Timestamp, Zone),
}

/// Reads `20260301`, `20260301T100000` and `20260301T100000Z`, also with the separators of ISO 8601.
pub(super) fn parse_time(text: &str) -> Option<TimeText> {
    let text = text.trim();
    let plain = text.replace(['-', ':'], "");
    let (rest, is_utc) = match plain.strip_suffix(['Z', 'z']) {
        Some(rest) => (rest, true),
        None => (plain.as_str(), false),
    };
    let (day, time) = match rest.split_once(['T', 't']) {
        Some((day, time)) => (date(day)?, time),
        None if is_utc => return None,
        None => return date(rest).map(TimeText::Day),
    };
    let [hour, minute, second] = two_digit_numbers::<3>(time)?;
    // A leap second is the second before it.
    let time = Time::new(hour, minute, second.min(59), 0).ok()?;
    let local = day.to_datetime(time);
    Some(if is_utc {
        TimeText::Utc(local)
    } else {
        TimeText::Local(local)
    })
}

fn date(text: &str) -> Option<Date> {
    let [century, years, month, day] = two_digit_numbers::<4>(text)?;
    let year = i16::from(century) * 100 + i16::from(years);
    Date::new(year, month, day).ok()
}

/// Reads so many numbers of two digits each, and nothing else.
fn two_digit_numbers<const N: usize>(text: &str) -> Option<[i8; N]> {
    let is_number = text.len() == 2 * N && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut numbers = [0; N];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = text.get(2 * at..2 * at + 2)?.parse().ok()?;
    }
    is_number.then_some(numbers)
}

impl EventTime {
    /// Reads the value of a property, in the zone that it names.
    pub(super) fn read(property: &Property, zones: &Zones) -> Option<Self> {
        Self::read_text(&property.value, property, zones)
    }

    pub(super) fn read_text(text: &str, property: &Property, zones: &Zones) -> Option<Self> {
        Some(match parse_time(text)? {
            TimeText::Day(day) => Self::Day(day),
            TimeText::Utc(local) => {
                let moment = Offset::UTC.to_timestamp(local).ok()?;
                Self::Moment(moment, zones.for_utc_times())
            }
            TimeText::Local(local) => {
                let zone = property.parameter("TZID").and_then(|name| zones.zone(name));
                let moment = zone.and_then(|zone| Some((zone.moment(local)?, zone)));
                match moment {
                    Some((moment, zone)) => Self::Moment(moment, zone),
                    None => Self::Floating(local),
                }
            }
        })
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Day(day) => day.to_string(),
            Self::Floating(local) => local.to_string(),
            Self::Moment(moment, zone) => match zone {
                Zone::Known(zone) if *zone == TimeZone::UTC => moment.to_string(),
                zone => DateTimePrinter::new()
                    .timestamp_with_offset_to_string(moment, zone.offset(*moment)),
            },
        }
    }

    pub(super) fn is_day(&self) -> bool {
        matches!(self, Self::Day(_))
    }

    /// The time so much later: days by the calendar, hours by the clock. Nothing if it does not go forward.
    pub(super) fn after(&self, duration: &str) -> Option<Self> {
        let (days, time) = span(duration)?;
        if days.is_negative() || time.is_negative() {
            return None;
        }
        Some(match self {
            Self::Day(day) => Self::Day(day.checked_add(days).ok()?),
            Self::Floating(local) => {
                Self::Floating(local.checked_add(days).ok()?.checked_add(time).ok()?)
            }
            Self::Moment(moment, zone) => {
                let mut moment = *moment;
                if !days.is_zero() {
                    let local = zone.offset(moment).to_datetime(moment);
                    moment = zone.moment(local.checked_add(days).ok()?)?;
                }
                Self::Moment(moment.checked_add(time).ok()?, zone.clone())
            }
        })
    }
}

/// Reads a duration such as `P1W` or `P1DT2H30M`, as days and as time.
fn span(text: &str) -> Option<(Span, SignedDuration)> {
    let text = text.trim().to_ascii_uppercase();
    // `Span` would also read durations in words, which no calendar has.
    if !text.trim_start_matches(['+', '-']).starts_with('P') {
        return None;
    }
    let span: Span = text.parse().ok()?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return None;
    }
    let days = Span::new()
        .try_weeks(span.get_weeks())
        .and_then(|days| days.try_days(span.get_days()))
        .ok()?;
    let hours = i64::from(span.get_hours()).checked_mul(3600)?;
    let minutes = span.get_minutes().checked_mul(60)?;
    let seconds = hours
        .checked_add(minutes)?
        .checked_add(span.get_seconds())?;
    Some((days, SignedDuration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<String> {
        let property = Property::parse(line.as_bytes()).unwrap();
        EventTime::read(&property, &Zones::default()).map(|when| when.text())
    }

    #[test]
    fn times_are_held_with_the_offset_of_their_zone() {
        for (line, held) in [
            ("DTSTART;VALUE=DATE:20260301", "2026-03-01"),
            ("DTSTART:20260301T100000Z", "2026-03-01T10:00:00Z"),
            ("DTSTART:20260301T100060Z", "2026-03-01T10:00:59Z"),
            ("DTSTART:20260301T100000", "2026-03-01T10:00:00"),
            ("DTSTART:2026-03-01T10:00:00", "2026-03-01T10:00:00"),
            (
                "DTSTART;TZID=Europe/Berlin:20260701T100000",
                "2026-07-01T10:00:00+02:00",
            ),
            (
                "DTSTART;TZID=\"W. Europe Standard Time\":20260301T100000",
                "2026-03-01T10:00:00+01:00",
            ),
            (
                "DTSTART;TZID=Nowhere:20260301T100000",
                "2026-03-01T10:00:00",
            ),
            ("DTSTART;TZID=Europe/Berlin:20260301", "2026-03-01"),
            ("DTSTART;TZID=UTC:20260301T100000", "2026-03-01T10:00:00Z"),
        ] {
            assert_eq!(read(line).as_deref(), Some(held), "{line}");
        }
        for line in [
            "DTSTART:",
            "DTSTART:tomorrow",
            "DTSTART:20260230",
            "DTSTART:20260301T",
            "DTSTART:20260301Z",
            "DTSTART:20260301T1000",
            "DTSTART:2026030éT100000",
            "DTSTART:20260301T250000",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn durations_count_days_by_the_calendar_and_hours_by_the_clock() {
        let property = |line: &str| Property::parse(line.as_bytes()).unwrap();
        let zones = Zones::default();
        for (start, duration, end) in [
            ("X:20260301", "P1W", Some("2026-03-08")),
            ("X:20260301T100000", "PT1H30M", Some("2026-03-01T11:30:00")),
            (
                "X:20260301T100000Z",
                "P1DT15M",
                Some("2026-03-02T10:15:00Z"),
            ),
            (
                "X;TZID=Europe/Berlin:20260328T100000",
                "P1D",
                Some("2026-03-29T10:00:00+02:00"),
            ),
            (
                "X;TZID=Europe/Berlin:20260328T100000",
                "PT24H",
                Some("2026-03-29T11:00:00+02:00"),
            ),
            ("X:20260301T100000Z", "-PT15M", None),
            ("X:20260301T100000Z", "15 minutes", None),
            ("X:20260301T100000Z", "P1Y", None),
            ("X:20260301T100000Z", "PT99999999999999999999H", None),
        ] {
            let start = EventTime::read(&property(start), &zones).unwrap();
            let found = start.after(duration).map(|when| when.text());
            assert_eq!(found.as_deref(), end, "{duration}");
        }
    }
}
