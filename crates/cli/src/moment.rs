//! Moments as people at this machine read them: their own time, with its offset, so that nothing is ambiguous.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::output::visible;

const EXACT: &str = "%Y-%m-%d %H:%M:%S%.f %:z";
const SECONDS: &str = "%Y-%m-%d %H:%M:%S %:z";

/// A date-time with an offset in the time of this machine. Nothing for any other text: a date is a date everywhere, and a
/// time without offset does not say when it is.
pub(crate) fn to_local(text: &str) -> Option<String> {
    in_zone(text, TimeZone::system(), EXACT)
}

/// When something happened or will, in the time of this machine. A second is exact enough for that.
pub(crate) fn to_local_seconds(text: &str) -> String {
    in_zone(text, TimeZone::system(), SECONDS).unwrap_or_else(|| visible(text))
}

fn in_zone(text: &str, zone: TimeZone, form: &str) -> Option<String> {
    // RFC 3339 only: other notations may be meant as text.
    let bytes = text.as_bytes();
    let has_form = (20..=40).contains(&bytes.len())
        && bytes[4] == b'-'
        && matches!(bytes[10], b'T' | b't')
        && !text.contains('[');
    let moment: Timestamp = has_form.then(|| text.parse().ok()).flatten()?;
    let zoned = moment.to_zoned(zone);
    Some(zoned.strftime(form).to_string())
}

/// A span of time as people write it: a number with s, m, h or d.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        in_zone(text, TimeZone::fixed(jiff::tz::offset(2)), EXACT)
    }

    #[test]
    fn when_something_happens_is_told_to_the_second() {
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        assert_eq!(
            in_zone("2026-03-05T23:30:00.999Z", zone, SECONDS).as_deref(),
            Some("2026-03-05 18:30:00 -05:00")
        );
    }

    #[test]
    fn a_moment_is_shown_in_the_time_of_the_machine_with_its_offset() {
        for (text, expected) in [
            ("2026-03-05T06:00:00Z", "2026-03-05 08:00:00 +02:00"),
            ("2026-03-05T23:30:00.125Z", "2026-03-06 01:30:00.125 +02:00"),
            ("2026-03-05T06:00:00-05:00", "2026-03-05 13:00:00 +02:00"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_no_moment_stays_as_it_is() {
        for text in [
            "2026-03-05",
            "2026-03-05T06:00:00",
            "2026-03-05 06:00:00Z is when",
            "2026-03-05T06:00:00Z[Europe/Oslo]",
            "no date, only 20 chars",
            "\u{20ac}\u{20ac}\u{20ac}\u{20ac}\u{20ac}\u{20ac}\u{20ac}\u{20ac}",
            "",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
