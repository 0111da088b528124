//! Calendar buckets in any time zone, computed by arithmetic instead of per-record calendar objects.
//!
//! Within a stretch of constant offset, local time is the instant plus the offset; a bucket is then a division. The
//! offsets of a zone change a few times a year at most, so a short table of stretches serves any number of records.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::search::Granularity;

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;
/// Some 270 years.
const MOST_DAYS: i64 = 100_000;
/// No offset exceeds this, so buckets of a range widened by it cover all local times in the range.
const WIDEST_OFFSET: i64 = 26 * 3600 * MICROS;

/// The buckets of a granularity and zone over a range of instants.
#[derive(Debug)]
pub(super) struct Buckets {
    granularity: Granularity,
    /// Starts of stretches and the offset from there on, both in microseconds; the first one starts at the minimum.
    stretches: Vec<(i64, i64)>,
    /// The smallest and the largest bucket that can occur.
    pub(super) range: (i64, i64),
    /// The first day of the range, and the bucket of each day from there on: the calendar is computed once per day, not
    /// once per record. Empty when the range is too long, or buckets are shorter than a day.
    days: (i64, Vec<i64>),
}

impl Buckets {
    /// Prepares buckets for instants between `first` and `last`.
    pub(super) fn new(granularity: Granularity, zone: &TimeZone, first: i64, last: i64) -> Self {
        let timestamp = |micros: i64| Timestamp::from_microsecond(micros).ok();
        let start = timestamp(first).unwrap_or(Timestamp::MIN);
        let offset = |at: Timestamp| i64::from(zone.to_offset(at).seconds()) * MICROS;
        let mut stretches = vec![(i64::MIN, offset(start))];
        for transition in zone.following(start) {
            let at = transition.timestamp().as_microsecond();
            if at > last {
                break;
            }
            stretches.push((at, i64::from(transition.offset().seconds()) * MICROS));
        }
        let first = first.saturating_sub(WIDEST_OFFSET);
        let last = last.saturating_add(WIDEST_OFFSET);
        Self {
            granularity,
            stretches,
            range: (bucket(granularity, first), bucket(granularity, last)),
            days: days(granularity, first.div_euclid(DAY), last.div_euclid(DAY)),
        }
    }

    pub(super) fn bucket_at(&self, instant: i64) -> i64 {
        let offset = match self.stretches.as_slice() {
            [(_, offset)] => *offset,
            stretches => {
                let after = stretches.partition_point(|(start, _)| *start <= instant);
                let within = stretches.get(after.saturating_sub(1));
                within.map_or(0, |(_, offset)| *offset)
            }
        };
        let local = instant.saturating_add(offset);
        let (first_day, buckets) = &self.days;
        let day = usize::try_from(local.div_euclid(DAY) - first_day).ok();
        match day.and_then(|day| buckets.get(day)) {
            Some(bucket) => *bucket,
            None => bucket(self.granularity, local),
        }
    }

    /// The bucket's start in local time, as it stands on the wire.
    pub(super) fn label(&self, bucket: i64) -> String {
        match self.granularity {
            Granularity::Minute => {
                let (day, minute) = (bucket.div_euclid(1440), bucket.rem_euclid(1440));
                format!("{}T{:02}:{:02}", date(day), minute / 60, minute % 60)
            }
            Granularity::Hour => {
                format!(
                    "{}T{:02}:00",
                    date(bucket.div_euclid(24)),
                    bucket.rem_euclid(24)
                )
            }
            Granularity::Day => date(bucket),
            // Day 0 was a Thursday; weeks start on Monday.
            Granularity::Week => date(bucket * 7 - 3),
            Granularity::Month => month(bucket),
            Granularity::Quarter => month(bucket * 3),
            Granularity::Year => month(bucket * 12),
        }
    }
}

/// The buckets of all days of a range, if that is worth keeping.
fn days(granularity: Granularity, first: i64, last: i64) -> (i64, Vec<i64>) {
    let shorter_than_a_day = matches!(granularity, Granularity::Minute | Granularity::Hour);
    if shorter_than_a_day || last.saturating_sub(first) > MOST_DAYS {
        return (first, Vec::new());
    }
    let buckets = (first..=last).map(|day| bucket(granularity, day.saturating_mul(DAY)));
    (first, buckets.collect())
}

/// The bucket of a local time in microseconds since the epoch.
fn bucket(granularity: Granularity, local: i64) -> i64 {
    let day = local.div_euclid(DAY);
    match granularity {
        Granularity::Minute => local.div_euclid(60 * MICROS),
        Granularity::Hour => local.div_euclid(3600 * MICROS),
        Granularity::Day => day,
        Granularity::Week => (day + 3).div_euclid(7),
        Granularity::Month => months(day),
        Granularity::Quarter => months(day).div_euclid(3),
        Granularity::Year => months(day).div_euclid(12),
    }
}

/// Year and month of a day since the epoch, as months since year 0. Counts from 1 March so that leap days come last.
fn months(day: i64) -> i64 {
    let (year, month, _) = civil(day);
    year * 12 + month - 1
}

/// Year, month and day of a day since the epoch, in the proleptic Gregorian calendar.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn date(day: i64) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

fn month(months: i64) -> String {
    format!(
        "{:04}-{:02}-01",
        months.div_euclid(12),
        months.rem_euclid(12) + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;
    use jiff::civil::Weekday;

    /// What a calendar library says, slowly.
    fn slow_label(granularity: Granularity, zone: &TimeZone, instant: i64) -> String {
        let local = Timestamp::from_microsecond(instant)
            .unwrap()
            .to_zoned(zone.clone())
            .datetime();
        let date = local.date();
        match granularity {
            Granularity::Minute => format!("{date}T{:02}:{:02}", local.hour(), local.minute()),
            Granularity::Hour => format!("{date}T{:02}:00", local.hour()),
            Granularity::Day => date.to_string(),
            Granularity::Week => {
                let back = i64::from(date.weekday().since(Weekday::Monday));
                (date - back.days()).to_string()
            }
            Granularity::Month => format!("{:04}-{:02}-01", date.year(), date.month()),
            Granularity::Quarter => format!(
                "{:04}-{:02}-01",
                date.year(),
                (date.month() - 1) / 3 * 3 + 1
            ),
            Granularity::Year => format!("{:04}-01-01", date.year()),
        }
    }

    #[test]
    fn buckets_agree_with_the_calendar_in_every_zone_and_granularity() {
        let first = "1890-01-01T00:00:00Z"
            .parse::<Timestamp>()
            .unwrap()
            .as_microsecond();
        let last = "2090-01-01T00:00:00Z"
            .parse::<Timestamp>()
            .unwrap()
            .as_microsecond();
        for name in [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "Asia/Kathmandu",
            "Australia/Lord_Howe",
            "Pacific/Apia",
        ] {
            let zone = TimeZone::get(name).unwrap();
            for granularity in Granularity::ALL {
                let buckets = Buckets::new(granularity, &zone, first, last);
                let mut instant = first;
                // An odd step visits all times of day, and both sides of many transitions.
                while instant < last {
                    let bucket = buckets.bucket_at(instant);
                    assert_eq!(
                        buckets.label(bucket),
                        slow_label(granularity, &zone, instant),
                        "{name} {instant}"
                    );
                    assert!(buckets.range.0 <= bucket && bucket <= buckets.range.1);
                    instant += 3_593_000_017_777;
                }
            }
        }
    }

    #[test]
    fn the_hour_before_and_after_a_clock_change_fall_where_clocks_show() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_microsecond();
        let (first, last) = (at("2026-01-01T00:00:00Z"), at("2026-12-31T00:00:00Z"));
        let buckets = Buckets::new(Granularity::Hour, &zone, first, last);
        let label = |text: &str| buckets.label(buckets.bucket_at(at(text)));
        assert_eq!(label("2026-03-29T00:59:59.999999Z"), "2026-03-29T01:00");
        assert_eq!(label("2026-03-29T01:00:00Z"), "2026-03-29T03:00");
        assert_eq!(label("2026-10-25T00:30:00Z"), "2026-10-25T02:00");
        assert_eq!(label("2026-10-25T01:30:00Z"), "2026-10-25T02:00");
    }
}
