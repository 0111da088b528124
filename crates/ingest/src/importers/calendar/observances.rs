//! A zone as a file describes it (`VTIMEZONE`): what the offset became, and when, or by what rule each year.
//!
//! Only the rules that zones have are understood: each year, in one month, on a day of it or on a weekday counted from
//! either end. A description with any other rule is not used at all: a wrong offset is worse than none.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan as _};

use super::times::{self, TimeText};
use crate::importers::content_lines::Component;

/// More changes than any zone has ever had.
const MAX_CHANGES: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Observances(Vec<Observance>);

/// One kind of change, such as the beginning of summer time.
#[derive(Debug, PartialEq, Eq)]
struct Observance {
    before: Offset,
    after: Offset,
    /// The first time, by the clock that was about to change.
    first: DateTime,
    further: Vec<DateTime>,
    rule: Option<Rule>,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    month: i8,
    day: Day,
    until: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq)]
enum Day {
    OfMonth(i8),
    /// Counted from the beginning, or if negative from the end.
    Nth(i8, Weekday),
    /// The weekday among some days of the month.
    Among(Vec<i8>, Weekday),
}

impl Observances {
    /// Reads a description. Nothing if it says something we do not understand.
    pub(super) fn read(component: &Component) -> Option<Self> {
        let observances: Option<Vec<_>> = component.children.iter().map(Observance::read).collect();
        let observances = observances.filter(|all| !all.is_empty())?;
        let changes: usize = observances.iter().map(|one| 1 + one.further.len()).sum();
        (changes <= MAX_CHANGES).then_some(Self(observances))
    }

    /// The offset at a moment: what the last change before it made. Before all changes, what the first one ended.
    pub(super) fn offset(&self, at: Timestamp) -> Offset {
        let last = self
            .0
            .iter()
            .filter_map(|one| Some((one.last_before(at)?, one.after)))
            .max_by_key(|(moment, _)| *moment);
        let first = self.0.iter().min_by_key(|one| one.first);
        last.map(|(_, after)| after)
            .or_else(|| first.map(|one| one.before))
            .unwrap_or(Offset::UTC)
    }

    /// When the clock showed this; see [`super::zones::Zone::moment`].
    pub(super) fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let offsets = || self.0.iter().flat_map(|one| [one.before, one.after]);
        let shown = offsets()
            .filter_map(|offset| Some((offset, offset.to_timestamp(local).ok()?)))
            .filter(|(offset, moment)| self.offset(*moment) == *offset)
            .map(|(_, moment)| moment)
            .min();
        // A clock that is put forward leaves a gap. Read with the largest offset, the time lies before it.
        shown.or_else(|| {
            let before = offsets().max()?.to_timestamp(local).ok()?;
            self.offset(before).to_timestamp(local).ok()
        })
    }
}

impl Observance {
    fn read(component: &Component) -> Option<Self> {
        let offset = |name| offset(&component.property(name)?.value);
        let first = local(&component.property("DTSTART")?.value)?;
        let further = component
            .all("RDATE")
            .flat_map(|dates| dates.value.split(','))
            .map(local)
            .collect::<Option<Vec<_>>>()?;
        let rule = match component.property("RRULE") {
            Some(rule) => Some(Rule::read(&rule.value, first)?),
            None => None,
        };
        Some(Self {
            before: offset("TZOFFSETFROM")?,
            after: offset("TZOFFSETTO")?,
            first,
            further,
            rule,
        })
    }

    fn last_before(&self, at: Timestamp) -> Option<Timestamp> {
        let moment = |local: &DateTime| self.before.to_timestamp(*local).ok();
        let by_rule = self.rule.as_ref().into_iter().flat_map(|rule| {
            // The offset may carry a moment into the next year, and a rule has ended some time.
            let end = rule.until.map_or(at, |until| until.min(at));
            let year = Offset::UTC.to_datetime(end).year();
            let years = (-2..=1).filter_map(move |more| year.checked_add(more));
            years
                .filter_map(|year| rule.day(year))
                .map(|day| day.to_datetime(self.first.time()))
                .filter(|local| *local >= self.first)
                .filter_map(move |local| moment(&local))
                .filter(|moment| rule.until.is_none_or(|until| *moment <= until))
        });
        std::iter::once(&self.first)
            .chain(&self.further)
            .filter_map(moment)
            .chain(by_rule)
            .filter(|moment| *moment <= at)
            .max()
    }
}

impl Rule {
    fn read(text: &str, first: DateTime) -> Option<Self> {
        let (mut month, mut weekday, mut days, mut until) = (first.month(), None, Vec::new(), None);
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            match name.trim().to_ascii_uppercase().as_str() {
                "FREQ" if value.eq_ignore_ascii_case("YEARLY") => {}
                "INTERVAL" if value == "1" => {}
                "WKST" => {}
                // Some say once more what the first time says.
                "BYHOUR" if value.parse() == Ok(first.hour()) => {}
                "BYMINUTE" if value.parse() == Ok(first.minute()) => {}
                "BYSECOND" if value.parse() == Ok(first.second()) => {}
                "BYMONTH" => month = value.parse().ok()?,
                "BYDAY" => weekday = Some(nth_weekday(value)?),
                "BYMONTHDAY" => {
                    let read: Result<Vec<i8>, _> = value.split(',').map(str::parse).collect();
                    days = read.ok().filter(|days| days.len() <= 31)?;
                }
                "UNTIL" => until = Some(end(value)?),
                _ => return None,
            }
        }
        let day = match (weekday, days.as_slice()) {
            (None, []) => Day::OfMonth(first.day()),
            (None, [day]) => Day::OfMonth(*day),
            (Some((Some(nth), weekday)), []) => Day::Nth(nth, weekday),
            (Some((None, weekday)), [_, ..]) => Day::Among(days, weekday),
            _ => return None,
        };
        Some(Self { month, day, until })
    }

    fn day(&self, year: i16) -> Option<Date> {
        let on = |day| Date::new(year, self.month, day).ok();
        match &self.day {
            Day::OfMonth(day) => on(*day),
            Day::Nth(nth, weekday) => on(1)?.nth_weekday_of_month(*nth, *weekday).ok(),
            Day::Among(days, weekday) => days
                .iter()
                .filter_map(|day| on(*day))
                .find(|date| date.weekday() == *weekday),
        }
    }
}

/// Reads `-1SU` or `SU`.
fn nth_weekday(text: &str) -> Option<(Option<i8>, Weekday)> {
    let (nth, day) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let weekday = match day.to_ascii_uppercase().as_str() {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    };
    if nth.is_empty() {
        return Some((None, weekday));
    }
    let nth: i8 = nth.parse().ok()?;
    (nth != 0 && nth.abs() <= 5).then_some((Some(nth), weekday))
}

/// Reads `+0100` or `-023456`.
fn offset(text: &str) -> Option<Offset> {
    let text = text.trim();
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let is_offset = matches!(digits.len(), 4 | 6) && digits.bytes().all(|b| b.is_ascii_digit());
    let number = |at: usize| {
        digits
            .get(at..at + 2)
            .map_or(Some(0), |two| two.parse().ok())
    };
    let seconds = number(0)? * 3600 + number(2)? * 60 + number(4)?;
    is_offset.then(|| Offset::from_seconds(sign * seconds).ok())?
}

fn local(text: &str) -> Option<DateTime> {
    match times::parse_time(text)? {
        TimeText::Local(local) => Some(local),
        TimeText::Day(_) | TimeText::Utc(_) => None,
    }
}

/// The last moment of a rule. A date means its whole day.
fn end(text: &str) -> Option<Timestamp> {
    match times::parse_time(text)? {
        TimeText::Utc(local) | TimeText::Local(local) => Offset::UTC.to_timestamp(local).ok(),
        TimeText::Day(day) => {
            let next = day.checked_add(1.day()).ok()?;
            Offset::UTC.to_timestamp(next.at(0, 0, 0, 0)).ok()
        }
    }
}
