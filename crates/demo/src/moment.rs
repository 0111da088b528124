//! Time in the sample life: whole minutes between two fixed days, in UTC.

use contract::time::Instant;

use crate::dice::Dice;

/// Monday, 6 January 2025, in days since 1970: nothing happened before.
pub(crate) const FIRST_DAY: i64 = 20_094;
/// Wednesday, 28 October 2026: the last day anything was written on.
pub(crate) const LAST_DAY: i64 = 20_754;

const MINUTES_OF_DAY: i64 = 24 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

impl Moment {
    pub(crate) fn on(day: i64, hour: i64, minute: i64) -> Self {
        Self(day * MINUTES_OF_DAY + hour * 60 + minute)
    }

    /// Reads an RFC 3339 text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Instant::parse(text).map(|instant| Self(instant.0.div_euclid(60_000_000)))
    }

    /// A minute of some working day between seven and six.
    pub(crate) fn at_work(dice: &mut Dice) -> Self {
        loop {
            let day = dice.between(FIRST_DAY, LAST_DAY - 3);
            if weekday(day) < 5 {
                return Self::on(day, dice.between(6, 16), dice.between(0, 59));
            }
        }
    }

    /// A minute of any day, rather in the evening.
    pub(crate) fn at_home(dice: &mut Dice) -> Self {
        let day = dice.between(FIRST_DAY, LAST_DAY - 3);
        let hour = if dice.one_in(3) {
            dice.between(6, 11)
        } else {
            dice.between(16, 21)
        };
        Self::on(day, hour, dice.between(0, 59))
    }

    pub(crate) fn plus_minutes(self, minutes: i64) -> Self {
        Self(self.0 + minutes)
    }

    /// The same minute where people are up, else the next morning; on a weekend of working people, the next Monday.
    pub(crate) fn awake(self, working: bool) -> Self {
        let hour = self.0.rem_euclid(MINUTES_OF_DAY) / 60;
        let (first, last) = if working { (6, 17) } else { (6, 21) };
        let mut moment = self;
        if hour < first {
            moment = moment.plus_minutes((first - hour) * 60);
        } else if hour > last {
            moment = moment.plus_minutes((24 + first - hour) * 60);
        }
        while working && weekday(moment.day()) > 4 {
            moment = moment.plus_days(1);
        }
        moment
    }

    pub(crate) fn plus_days(self, days: i64) -> Self {
        Self(self.0 + days * MINUTES_OF_DAY)
    }

    pub(crate) fn day(self) -> i64 {
        self.0.div_euclid(MINUTES_OF_DAY)
    }

    /// Whether the sample life was still being written then.
    pub(crate) fn has_passed(self) -> bool {
        self.day() <= LAST_DAY
    }

    /// `2026-09-17T09:30:00Z`
    pub(crate) fn text(self) -> String {
        let text = Instant(self.0 * 60_000_000).to_rfc3339_millis();
        format!("{}Z", text.get(..19).unwrap_or_default())
    }

    /// `2026-09-17`
    pub(crate) fn date(self) -> String {
        let mut text = self.text();
        text.truncate(10);
        text
    }

    /// `17 Sep 2026, 09:30`, as mail programs introduce a quotation.
    pub(crate) fn spoken(self) -> String {
        let text = self.text();
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let month = part(5, 7).parse::<usize>().unwrap_or(1);
        let name = MONTHS.get(month.wrapping_sub(1)).unwrap_or(&"");
        let day = part(8, 10).trim_start_matches('0');
        format!("{day} {name} {}, {}", part(0, 4), part(11, 16))
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The day of the week, Monday 0.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_runs_from_a_monday_to_a_wednesday() {
        assert_eq!(Moment::on(FIRST_DAY, 0, 0).text(), "2025-01-06T00:00:00Z");
        assert_eq!(Moment::on(LAST_DAY, 9, 5).date(), "2026-10-28");
        assert_eq!((weekday(FIRST_DAY), weekday(LAST_DAY)), (0, 2));
    }

    #[test]
    fn a_moment_is_read_and_told_in_several_ways() {
        let moment = Moment::parse("2026-09-07T11:30:00+02:00").unwrap();
        assert_eq!(moment.text(), "2026-09-07T09:30:00Z");
        assert_eq!(moment.spoken(), "7 Sep 2026, 09:30");
        let late = Moment::parse("2026-09-04T23:10:00Z").unwrap();
        assert_eq!(late.awake(false).text(), "2026-09-05T06:10:00Z");
        assert_eq!(late.awake(true).text(), "2026-09-07T06:10:00Z");
        assert_eq!(moment.plus_days(1).plus_minutes(-1).day(), moment.day() + 1);
    }
}
