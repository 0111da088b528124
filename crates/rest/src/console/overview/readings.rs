//! How much each client was shown and when, counted from the log as it grows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::time::Instant;
use store::Store;
use store::grants::LoggedDisclosure;

const DAY: i64 = 24 * 60 * 60 * 1_000_000;
/// How far back a client's habits are looked at.
const HISTORY_DAYS: i64 = 30;
/// The most calls that are counted, and how many are read at once: few first, for most of the time little is new.
const MOST_CALLS: usize = 20_000;
const FIRST_CALLS: usize = 50;
const CALLS: usize = 1_000;
/// A client that has read on so many days has habits.
const DAYS_OF_HABIT: usize = 3;
/// Reading so many times as much as on its other days is unusual, if it is at least so many records.
const FACTOR: u64 = 5;
const LEAST_RECORDS: u64 = 200;
/// So many records within a day are unusually many for a client without habits.
const MANY_RECORDS: u64 = 2_000;

/// The last calls, newest first.
#[derive(Default)]
pub(crate) struct Readings(Mutex<VecDeque<Call>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    sequence: u64,
    pub(super) at: Instant,
    pub(super) client: String,
    pub(super) grant: String,
    pub(super) records: u64,
}

/// A client that was shown unusually much within a day.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusual {
    pub(super) client: String,
    pub(super) grant: String,
    pub(super) records: u64,
    /// What it was shown on its other days, on average; nothing where it has no habits yet.
    pub(super) usual: Option<u64>,
}

impl Readings {
    fn calls(&self) -> MutexGuard<'_, VecDeque<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the log has got since the last time.
    pub(super) fn catch_up(&self, store: &dyn Store, now: Instant) -> store::Result<()> {
        let mut calls = self.calls();
        let known = calls.front().map_or(0, |call| call.sequence);
        let mut fresh: Vec<Call> = Vec::new();
        let (mut before, mut most) = (None, FIRST_CALLS);
        while fresh.len() < MOST_CALLS {
            let page = store.disclosures(None, before, most)?;
            let is_last = page.len() < most;
            before = page.last().map(|call| call.sequence);
            let read = page.into_iter().map(Call::from);
            let is_new = |call: &Call| call.sequence > known && is_recent(call, now);
            let (new, old): (Vec<Call>, Vec<Call>) = read.partition(is_new);
            fresh.extend(new);
            if is_last || !old.is_empty() {
                break;
            }
            most = CALLS;
        }
        for call in fresh.into_iter().rev() {
            calls.push_front(call);
        }
        calls.truncate(MOST_CALLS);
        while calls.back().is_some_and(|call| !is_recent(call, now)) {
            calls.pop_back();
        }
        Ok(())
    }

    pub(super) fn unusual(&self, now: Instant) -> Vec<Unusual> {
        unusual(self.calls().iter(), now)
    }

    /// Calls and records of each client since a moment, with the grant it used last.
    pub(super) fn since(&self, since: Instant) -> Vec<(Call, u64)> {
        let mut clients: BTreeMap<String, (Call, u64)> = BTreeMap::new();
        let calls = self.calls();
        for call in calls.iter().take_while(|call| call.at > since) {
            let known = clients.entry(call.client.clone());
            let (sum, count) = known.or_insert_with(|| {
                let records = 0;
                (
                    Call {
                        records,
                        ..call.clone()
                    },
                    0,
                )
            });
            sum.records += call.records;
            *count += 1;
        }
        clients.into_values().collect()
    }
}

fn is_recent(call: &Call, now: Instant) -> bool {
    now.0.saturating_sub(call.at.0) < (HISTORY_DAYS + 1) * DAY
}

impl From<LoggedDisclosure> for Call {
    fn from(logged: LoggedDisclosure) -> Self {
        let call = logged.disclosure;
        Self {
            sequence: logged.sequence,
            at: call.at,
            client: call.client_id.to_string(),
            grant: call
                .grant_ids
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
            records: u64::try_from(call.records.len()).unwrap_or(u64::MAX),
        }
    }
}

fn unusual<'a>(calls: impl Iterator<Item = &'a Call>, now: Instant) -> Vec<Unusual> {
    #[derive(Default)]
    struct Habit {
        grant: String,
        today: u64,
        before: u64,
        days: BTreeSet<i64>,
    }
    let mut clients: BTreeMap<&str, Habit> = BTreeMap::new();
    for call in calls {
        let habit = clients.entry(&call.client).or_default();
        if habit.grant.is_empty() {
            habit.grant.clone_from(&call.grant);
        }
        match now.0.saturating_sub(call.at.0).div_euclid(DAY) {
            ..=0 => habit.today += call.records,
            day => {
                habit.before += call.records;
                habit.days.insert(day);
            }
        }
    }
    let told = clients.into_iter().filter_map(|(client, habit)| {
        let days = u64::try_from(habit.days.len()).unwrap_or(u64::MAX);
        let usual = (habit.days.len() >= DAYS_OF_HABIT).then(|| habit.before / days);
        let is_unusual = match usual {
            Some(usual) => habit.today >= LEAST_RECORDS && habit.today >= FACTOR * usual,
            None => habit.today >= MANY_RECORDS,
        };
        is_unusual.then(|| Unusual {
            client: client.to_owned(),
            grant: habit.grant,
            records: habit.today,
            usual,
        })
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(days_ago: i64, client: &str, records: u64) -> Call {
        Call {
            sequence: 1,
            at: Instant((100 - days_ago) * DAY),
            client: client.to_owned(),
            grant: "grt_1".to_owned(),
            records,
        }
    }

    fn found(calls: &[Call]) -> Vec<String> {
        let found = unusual(calls.iter(), Instant(100 * DAY));
        found.into_iter().map(|one| one.client).collect()
    }

    #[test]
    fn a_client_is_compared_with_its_own_days() {
        let mut calls = vec![
            call(0, "keen", 600),
            call(0, "busy", 600),
            call(0, "small", 199),
        ];
        for day in [2, 5, 9] {
            calls.push(call(day, "keen", 100));
            calls.push(call(day, "busy", 500));
            calls.push(call(day, "small", 1));
        }
        assert_eq!(found(&calls), ["keen"]);
    }

    #[test]
    fn without_habits_only_very_much_is_unusual() {
        let calls = [
            call(0, "first", MANY_RECORDS),
            call(0, "calm", MANY_RECORDS - 1),
            call(3, "early", MANY_RECORDS),
        ];
        assert_eq!(found(&calls), ["first"]);
    }

    #[test]
    fn what_a_client_was_shown_since_a_moment_is_summed() {
        let readings = Readings::default();
        readings
            .calls()
            .extend([call(0, "a", 3), call(1, "a", 4), call(2, "b", 5)]);
        let since = readings.since(Instant(98 * DAY));
        assert_eq!(since.len(), 1);
        assert_eq!((since[0].0.records, since[0].1), (7, 2));
    }
}
