//! Occurrences of a recurring event: when it takes place within a horizon around the import.
//!
//! A rule counts in the local time of the event, so every time is brought to that clock first and back to a moment
//! afterwards: what is at nine stays at nine when the clocks change. Rules are expanded by the `rrule` crate, which is only
//! given UTC, and so knows nothing of zones that a file describes itself.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan as _};
use rrule::RRuleSet;

use super::times::{EventTime, TimeText, parse_time};
use super::zones::{Zone, Zones};
use crate::importers::content_lines::{Component, Property};

/// Occurrences of one series that are written out: four years of days.
const MAX_OCCURRENCES: usize = 1_500;
/// Steps of one rule, from its first occurrence on.
const MAX_STEPS: usize = 200_000;

/// The time around an import for which occurrences are written out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Horizon {
    from: DateTime,
    to: DateTime,
}

impl Horizon {
    /// Two years back and two years ahead.
    pub(super) fn around(now: Timestamp) -> Self {
        let now = Offset::UTC.to_datetime(now);
        Self {
            from: now.saturating_sub(2.years()),
            to: now.saturating_add(2.years()),
        }
    }

    pub(super) fn holds(&self, local: DateTime) -> bool {
        (self.from..=self.to).contains(&local)
    }
}

/// The clock in which a series counts.
enum LocalClock {
    Day,
    Floating,
    /// Written in UTC, shown in a zone.
    Utc(Zone),
    Zoned(Zone),
}

impl LocalClock {
    fn from_start(start: &EventTime, property: &Property) -> Self {
        match start {
            EventTime::Day(_) => Self::Day,
            EventTime::Floating(_) => Self::Floating,
            EventTime::Moment(_, zone) => match parse_time(&property.value) {
                Some(TimeText::Utc(_)) => Self::Utc(zone.clone()),
                _ => Self::Zoned(zone.clone()),
            },
        }
    }

    /// What this clock shows at a time. A day is its midnight.
    fn local(&self, time: &EventTime) -> DateTime {
        match (time, self) {
            (EventTime::Day(day), _) => day.to_datetime(Time::midnight()),
            (EventTime::Floating(local), _) => *local,
            (EventTime::Moment(moment, _), Self::Zoned(zone)) => {
                zone.offset(*moment).to_datetime(*moment)
            }
            (EventTime::Moment(moment, Zone::Known(_) | Zone::Described(..)), _) => {
                Offset::UTC.to_datetime(*moment)
            }
        }
    }

    fn time(&self, local: DateTime) -> Option<EventTime> {
        Some(match self {
            Self::Day => EventTime::Day(local.date()),
            Self::Floating => EventTime::Floating(local),
            Self::Utc(zone) => {
                EventTime::Moment(Offset::UTC.to_timestamp(local).ok()?, zone.clone())
            }
            Self::Zoned(zone) => EventTime::Moment(zone.moment(local)?, zone.clone()),
        })
    }

    /// As a `RECURRENCE-ID` of the series writes it.
    fn id(&self, local: DateTime) -> String {
        let form = match self {
            Self::Day => "%Y%m%d",
            Self::Floating | Self::Zoned(_) => "%Y%m%dT%H%M%S",
            Self::Utc(_) => "%Y%m%dT%H%M%SZ",
        };
        local.strftime(form).to_string()
    }
}

/// Whether the end of a key is a time as occurrences have it, and in the horizon.
pub(super) fn is_id_within(id: &str, horizon: &Horizon) -> bool {
    let local = match parse_time(id) {
        Some(TimeText::Day(day)) => day.to_datetime(Time::midnight()),
        Some(TimeText::Local(local) | TimeText::Utc(local)) => local,
        None => return false,
    };
    horizon.holds(local)
}

/// Times that are left out: single ones, or all of a day.
#[derive(Default)]
struct Excluded {
    times: HashSet<DateTime>,
    days: HashSet<Date>,
}

impl Excluded {
    fn add(&mut self, time: &EventTime, clock: &LocalClock) {
        match (time, clock) {
            (EventTime::Day(day), _) => drop(self.days.insert(*day)),
            (time, _) => drop(self.times.insert(clock.local(time))),
        }
    }

    fn holds(&self, local: DateTime) -> bool {
        self.times.contains(&local) || self.days.contains(&local.date())
    }
}

#[derive(Debug)]
pub(super) struct Occurrence {
    /// What tells it from others of the series, as a `RECURRENCE-ID` would.
    pub(super) id: String,
    pub(super) starts_at: EventTime,
    pub(super) ends_at: Option<EventTime>,
}

#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// The first occurrence that takes place as planned, where it is not the one of `DTSTART`: that one is excluded or was
    /// changed.
    pub(super) first: Option<Occurrence>,
    /// The occurrences after the first that lie in the horizon.
    pub(super) occurrences: Vec<Occurrence>,
    /// Whether these are all there are in the horizon.
    pub(super) is_complete: bool,
}

pub(super) struct Series<'a> {
    pub(super) component: &'a Component,
    pub(super) start: &'a EventTime,
    pub(super) end: Option<&'a EventTime>,
    pub(super) zones: &'a Zones,
    /// The occurrences that have records of their own, because they were changed.
    pub(super) changed: &'a [EventTime],
}

impl Series<'_> {
    /// The occurrences within a horizon. None if the rule cannot be read.
    pub(super) fn expand(&self, horizon: &Horizon) -> Option<Expanded> {
        let clock = LocalClock::from_start(self.start, self.component.property("DTSTART")?);
        let begin = clock.local(self.start);
        let mut excluded = Excluded::default();
        for time in self.times("EXDATE") {
            excluded.add(&time, &clock);
        }
        for time in self.changed {
            excluded.add(time, &clock);
        }
        let further = self.further_times(&clock);
        let mut expanded = Expanded {
            is_complete: true,
            ..Expanded::default()
        };
        if begin > horizon.to && !excluded.holds(begin) {
            return Some(expanded);
        }
        let mut times = self.rule_times(&clock, begin, horizon, &mut expanded.is_complete)?;
        times.extend(further.keys().copied().filter(|local| *local > begin));
        let mut planned = times.into_iter().filter(|local| !excluded.holds(*local));
        let occurrence = |local: DateTime| {
            let own_end = further.get(&local).cloned().flatten();
            self.occurrence(&clock, local, own_end)
        };
        if excluded.holds(begin) {
            expanded.first = planned.next().and_then(occurrence);
        }
        let mut within = planned.filter(|local| horizon.holds(*local));
        let first_ones = within.by_ref().take(MAX_OCCURRENCES);
        expanded.occurrences = first_ones.filter_map(occurrence).collect();
        expanded.is_complete &= within.next().is_none();
        Some(expanded)
    }

    fn occurrence(
        &self,
        clock: &LocalClock,
        local: DateTime,
        own_end: Option<EventTime>,
    ) -> Option<Occurrence> {
        let starts_at = clock.time(local)?;
        let ends_at = own_end.or_else(|| {
            if let Some(duration) = self.component.property("DURATION") {
                return starts_at.after(&duration.value);
            }
            // As long as the first one by its own clock.
            let length = clock
                .local(self.start)
                .duration_until(clock.local(self.end?));
            clock.time(local.checked_add(length).ok()?)
        });
        Some(Occurrence {
            id: clock.id(local),
            starts_at,
            ends_at,
        })
    }

    /// The times of the rules after the first one, up to the end of the horizon.
    fn rule_times(
        &self,
        clock: &LocalClock,
        begin: DateTime,
        horizon: &Horizon,
        is_complete: &mut bool,
    ) -> Option<BTreeSet<DateTime>> {
        let mut times = BTreeSet::new();
        let rules = self.component.all("RRULE");
        let rules: Vec<String> = rules
            .filter(|rule| !rule.value.trim().is_empty())
            .map(|rule| rule_in_local_time(&rule.value, clock))
            .collect::<Option<_>>()?;
        if rules.is_empty() {
            return Some(times);
        }
        let text = format!(
            "DTSTART:{}\nRRULE:{}",
            begin.strftime("%Y%m%dT%H%M%SZ"),
            rules.join("\nRRULE:")
        );
        let set: RRuleSet = text.parse().ok()?;
        let set = set.limit();
        let mut steps = 0;
        for moment in &set {
            steps += 1;
            let moment = Timestamp::from_second(moment.timestamp()).ok()?;
            let local = Offset::UTC.to_datetime(moment);
            if local > horizon.to && (!times.is_empty() || steps > 1) {
                // One beyond may be the first that takes place as planned.
                times.insert(local);
                break;
            }
            if local > begin {
                times.insert(local);
            }
            if steps == MAX_STEPS {
                *is_complete = false;
                break;
            }
        }
        Some(times)
    }

    /// The values of a property, as far as they are times.
    fn times(&self, name: &str) -> Vec<EventTime> {
        let mut times = Vec::new();
        for property in self.component.all(name) {
            let texts = property.value.split(',');
            times.extend(texts.filter_map(|text| EventTime::read_text(text, property, self.zones)));
        }
        times
    }

    /// Additional times, each with its own end where it is written as a period.
    fn further_times(&self, clock: &LocalClock) -> BTreeMap<DateTime, Option<EventTime>> {
        let mut further = BTreeMap::new();
        for property in self.component.all("RDATE") {
            for text in property.value.split(',') {
                let (start, end) = match text.split_once('/') {
                    Some((start, end)) => (start, Some(end)),
                    None => (text, None),
                };
                let Some(start) = EventTime::read_text(start, property, self.zones) else {
                    continue;
                };
                let end = end.and_then(|end| {
                    EventTime::read_text(end, property, self.zones).or_else(|| start.after(end))
                });
                further.insert(clock.local(&start), end);
            }
        }
        further
    }
}

/// The rule with its `UNTIL` as the clock of the series shows it, and without what only other programs understand.
fn rule_in_local_time(rule: &str, clock: &LocalClock) -> Option<String> {
    let mut parts = Vec::new();
    for part in rule.trim().to_ascii_uppercase().split(';') {
        let part = part.trim();
        if part.is_empty() || part.starts_with("X-") {
            continue;
        }
        let Some(until) = part.strip_prefix("UNTIL=") else {
            parts.push(part.to_owned());
            continue;
        };
        let until = match (parse_time(until)?, clock) {
            (TimeText::Day(day), LocalClock::Day) => day.to_datetime(Time::midnight()),
            // The last day counts, whatever the time of the event.
            (TimeText::Day(day), _) => day.to_datetime(Time::constant(23, 59, 59, 0)),
            (TimeText::Local(local), _) => local,
            (TimeText::Utc(utc), LocalClock::Zoned(zone)) => {
                let moment = Offset::UTC.to_timestamp(utc).ok()?;
                zone.offset(moment).to_datetime(moment)
            }
            (TimeText::Utc(utc), _) => utc,
        };
        parts.push(format!("UNTIL={}", until.strftime("%Y%m%dT%H%M%SZ")));
    }
    Some(parts.join(";"))
}
