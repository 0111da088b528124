//! Moments and spans of time, as records and grants mean them.
//! Stored texts are kept as written elsewhere; here they become instants, so that two spellings of one moment are one.

use std::fmt;

use jiff::{Timestamp, civil::Time, fmt::temporal::Pieces, tz::Offset};
use serde::{Deserialize, Serialize};

/// A moment: microseconds since 1970-01-01T00:00:00Z.
///
/// It serialises as that integer, for cursors and storage; what people see is [`Instant::to_rfc3339_millis`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Instant(pub i64);

impl Instant {
    /// Reads an RFC 3339 date-time or a date. A date is its midnight in UTC, a time without offset is UTC, a leap
    /// second is the second before it, and digits below the microsecond are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let pieces = Pieces::parse(text).ok()?;
        // A zone name in brackets would need a zone database to mean the same everywhere.
        if pieces.time_zone_annotation().is_some() {
            return None;
        }
        let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
        let civil = pieces
            .date()
            .to_datetime(pieces.time().unwrap_or_else(Time::midnight));
        offset
            .to_timestamp(civil)
            .ok()
            .map(|moment| Self(moment.as_microsecond()))
    }

    /// The moment in UTC with three fraction digits, e.g. `2026-03-01T10:00:00.000Z`.
    ///
    /// What lies outside the years -9999 to 9999 is shown as the nearest moment inside them.
    pub fn to_rfc3339_millis(self) -> String {
        let nearest = if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        let moment = Timestamp::from_microsecond(self.0).unwrap_or(nearest);
        format!("{moment:.3}")
    }

    /// The year in UTC; none outside the years -9999 to 9999.
    pub fn year(self) -> Option<i16> {
        let moment = Timestamp::from_microsecond(self.0).ok()?;
        Some(Offset::UTC.to_datetime(moment).year())
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_rfc3339_millis())
    }
}

/// A span of time: `since` belongs to it, `until` does not. A missing end is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TimeRange {
    /// The first moment inside.
    pub since: Option<Instant>,
    /// The first moment after.
    pub until: Option<Instant>,
}

impl TimeRange {
    /// Whether the moment lies inside.
    pub fn contains(&self, moment: Instant) -> bool {
        self.since.is_none_or(|since| since <= moment)
            && self.until.is_none_or(|until| moment < until)
    }

    /// Whether no end is set, so that everything lies inside.
    pub fn is_open(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }
}

/// Where the time comes from. Nothing but an implementation of this asks the system, so tests own the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Instant;
}

/// A clock that stands still.
impl Clock for Instant {
    fn now(&self) -> Instant {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_moment_are_one_instant() {
        let moment = Instant::parse("2026-03-01T10:00:00Z").unwrap();
        for spelling in [
            "2026-03-01T10:00:00.000Z",
            "2026-03-01T12:00:00+02:00",
            "2026-03-01t10:00:00z",
            "2026-03-01 10:00:00",
            "2026-03-01T10:00:00",
            "2026-03-01T10:00",
            "2026-03-01T09:00:00.0000009-01:00",
        ] {
            assert_eq!(Instant::parse(spelling), Some(moment), "{spelling}");
        }
        assert_eq!(moment.to_rfc3339_millis(), "2026-03-01T10:00:00.000Z");
    }

    #[test]
    fn a_date_is_its_midnight_in_utc() {
        assert_eq!(
            Instant::parse("2026-03-01"),
            Instant::parse("2026-03-01T00:00:00Z")
        );
        assert_eq!(Instant::parse("1970-01-01"), Some(Instant(0)));
    }

    #[test]
    fn a_leap_second_is_clamped() {
        let leap = Instant::parse("2016-12-31T23:59:60Z").unwrap();
        assert!(leap >= Instant::parse("2016-12-31T23:59:59Z").unwrap());
        assert!(leap < Instant::parse("2017-01-01").unwrap());
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-03-01T25:00:00Z",
            "2026-03-01T10:00:00Z trailing",
            "2026-03-01T10:00:00+02:00[Europe/Berlin]",
            "1772359200",
            " 2026-03-01",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_holds_its_start_and_not_its_end() {
        let range = TimeRange {
            since: Some(Instant(10)),
            until: Some(Instant(20)),
        };
        assert!(range.contains(Instant(10)) && range.contains(Instant(19)));
        assert!(!range.contains(Instant(9)) && !range.contains(Instant(20)));
        assert!(TimeRange::default().contains(Instant(i64::MIN)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_instant_prints_and_any_text_parses_without_panic(micros: i64, text in "\\PC{0,40}") {
            let _ = Instant(micros).to_rfc3339_millis();
            let _ = Instant::parse(&text);
        }

        #[test]
        fn printing_and_parsing_meet_at_the_millisecond(millis in -60_000_000_000_000_i64..250_000_000_000_000) {
            let moment = Instant(millis * 1000);
            prop_assert_eq!(Instant::parse(&moment.to_rfc3339_millis()), Some(moment));
        }
    }
}
