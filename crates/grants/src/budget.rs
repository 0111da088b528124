//! How much may be read under a grant in a day, and what happens when far more is read than ever before.
//!
//! A day is one of UTC. What was shown is counted before the answer leaves, from the disclosure log and what was added since, so a
//! restart forgets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use contract::id::GrantId;
use contract::seal;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::grants::Disclosure;
use store::registry::{Change, EntryKind};
use store::{Store, StoreError};

use crate::documents::{find, text};

const DAY: Duration = Duration::from_hours(24);
/// How many days before this one say what is usual.
const USUAL_DAYS: i64 = 14;
/// So many times the most of those days is unusual, if it is not little anyway.
const TIMES: u64 = 10;
const LITTLE: u64 = 500;
/// Entries of the log that are read at a time, and at most.
const PAGE: usize = 1_000;
const MOST_PAGES: usize = 50;

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What may be shown under a grant in a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Records, each time they are shown.
    pub records: Option<u64>,
    pub distinct_records: Option<u64>,
    /// Bytes of answers as JSON, and of files.
    pub bytes: Option<u64>,
    /// Whether the grant is paused when far more is read than on any of the last days.
    #[serde(default)]
    pub pauses_when_unusual: bool,
}

impl Budget {
    /// The limits in words.
    pub fn words(&self) -> Vec<String> {
        let limits = [
            (self.records, "records"),
            (self.distinct_records, "different records"),
            (self.bytes, "bytes"),
        ];
        let limits = limits.into_iter();
        let limits =
            limits.filter_map(|(most, what)| Some(format!("at most {} {what} a day", most?)));
        let pauses = "paused when far more is read than usual".to_owned();
        limits
            .chain(self.pauses_when_unusual.then_some(pauses))
            .collect()
    }
}

/// Nothing can be read under a grant until its owner has looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub since: Instant,
    pub reason: String,
}

pub fn budget(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<Option<Budget>> {
    let found = find(store, EntryKind::Budget, grant.as_str(), now)?;
    Ok(found.map(|found| found.value))
}

/// Sets the budget of a grant; one without limits is none.
pub fn set_budget(store: &dyn Store, grant: &GrantId, budget: Budget, now: Instant) -> Result<()> {
    let document = (budget != Budget::default()).then(|| text(&budget));
    keep(store, EntryKind::Budget, grant, document.as_deref(), now)
}

pub fn paused(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<Option<Pause>> {
    let found = find(store, EntryKind::Pause, grant.as_str(), now)?;
    Ok(found.map(|found| found.value))
}

pub fn pause(store: &dyn Store, grant: &GrantId, reason: &str, now: Instant) -> Result<()> {
    let pause = Pause {
        since: now,
        reason: reason.to_owned(),
    };
    keep(store, EntryKind::Pause, grant, Some(&text(&pause)), now)
}

pub fn resume(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<()> {
    keep(store, EntryKind::Pause, grant, None, now)
}

fn keep(
    store: &dyn Store,
    kind: EntryKind,
    grant: &GrantId,
    document: Option<&str>,
    now: Instant,
) -> Result<()> {
    let change = match document {
        Some(document) => Change::put(kind, grant.as_str(), document),
        None => Change::remove(kind, grant.as_str()),
    };
    store.apply(&[change], now).map(|_| ())
}

/// What was shown under a grant in a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    pub records: u64,
    pub distinct_records: u64,
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct Day {
    number: i64,
    records: u64,
    /// Digests of the handles.
    distinct: BTreeSet<u64>,
    bytes: u64,
    /// The most records of a day before, if there was one.
    usual: Option<u64>,
}

fn day_of(at: Instant) -> i64 {
    let day = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
    at.0.div_euclid(day)
}

fn count(records: &[String]) -> u64 {
    u64::try_from(records.len()).unwrap_or(u64::MAX)
}

impl Day {
    /// Counts from the log what was shown today, and how much on the days before.
    fn read(store: &dyn Store, grant: &GrantId, number: i64) -> Result<Self> {
        let mut day = Self {
            number,
            ..Self::default()
        };
        let mut earlier: BTreeMap<i64, u64> = BTreeMap::new();
        let mut before = None;
        for _ in 0..MOST_PAGES {
            let page = store.disclosures(Some(grant), before, PAGE)?;
            before = page.last().map(|entry| entry.sequence);
            let is_last = page.len() < PAGE;
            for entry in page {
                match day_of(entry.disclosure.at) {
                    at if at == number => day.add(&entry.disclosure),
                    at if at < number && number - at <= USUAL_DAYS => {
                        *earlier.entry(at).or_default() += count(&entry.disclosure.records);
                    }
                    _ => {}
                }
            }
            if is_last {
                break;
            }
        }
        day.usual = earlier.into_values().max();
        Ok(day)
    }

    fn add(&mut self, disclosure: &Disclosure) {
        self.records += count(&disclosure.records);
        self.bytes += disclosure.bytes.unwrap_or(0);
        let handles = disclosure.records.iter();
        self.distinct
            .extend(handles.map(|handle| seal::digest([handle.as_str()])));
    }

    fn used(&self) -> Used {
        Used {
            records: self.records,
            distinct_records: u64::try_from(self.distinct.len()).unwrap_or(u64::MAX),
            bytes: self.bytes,
        }
    }

    /// What nothing is left of, so that no record can be shown.
    fn used_up(&self, budget: Budget) -> Option<&'static str> {
        let limits = [
            (budget.records, self.records, "records"),
            (budget.bytes, self.bytes, "bytes"),
        ];
        let mut limits = limits.into_iter();
        limits.find_map(|(most, used, what)| (used >= most?).then_some(what))
    }

    /// What this call would use too much of.
    fn exceeded(&self, budget: Budget, disclosure: &Disclosure) -> Option<&'static str> {
        let handles = disclosure.records.iter();
        let digests: BTreeSet<u64> = handles.map(|one| seal::digest([one.as_str()])).collect();
        let new = digests.difference(&self.distinct).count();
        let new = u64::try_from(new).unwrap_or(u64::MAX);
        let after = [
            (
                budget.records,
                self.records + count(&disclosure.records),
                "records",
            ),
            (
                budget.distinct_records,
                self.used().distinct_records + new,
                "different records",
            ),
            (
                budget.bytes,
                self.bytes + disclosure.bytes.unwrap_or(0),
                "bytes",
            ),
        ];
        let mut after = after.into_iter();
        after.find_map(|(most, after, what)| (after > most?).then_some(what))
    }

    fn is_unusual(&self) -> bool {
        let most = self
            .usual
            .map(|usual| usual.saturating_mul(TIMES).max(LITTLE));
        most.is_some_and(|most| self.records > most)
    }
}

/// Counts what is shown under grants that have a budget.
pub struct Meter {
    store: Arc<dyn Store>,
    days: Mutex<BTreeMap<GrantId, Day>>,
}

impl Meter {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            days: Mutex::default(),
        }
    }

    /// Whether the bytes of an answer under these grants have to be counted.
    pub fn counts_bytes<'g>(
        &self,
        grants: impl IntoIterator<Item = &'g GrantId>,
        now: Instant,
    ) -> bool {
        let mut grants = grants.into_iter();
        grants.any(|grant| {
            let budget = budget(&*self.store, grant, now).ok().flatten();
            budget.is_some_and(|budget| budget.bytes.is_some())
        })
    }

    /// Refuses a call that could show no record whatever it found, because the budget of every grant is used up: the refusal
    /// then says nothing about what there is.
    pub fn admit(&self, grants: &BTreeSet<GrantId>, now: Instant) -> Result<(), ReadError> {
        let failed = |error: StoreError| ReadError::internal().with_cause(error.to_string());
        let mut refusal = Ok(());
        for grant in grants {
            let Some(budget) = budget(&*self.store, grant, now).map_err(failed)? else {
                return Ok(());
            };
            let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
            let day = day_of_grant(&*self.store, &mut days, grant, now).map_err(failed)?;
            match day.used_up(budget) {
                Some(what) => refusal = Err(exhausted(what)),
                None => return Ok(()),
            }
        }
        refusal
    }

    /// Counts what a call shows, unless that is more than a budget allows. A grant under which far more is read than ever before is
    /// paused, if its owner wants that; these are given.
    pub fn take(&self, disclosure: &Disclosure) -> Result<Vec<GrantId>, ReadError> {
        let now = disclosure.at;
        let failed = |error: StoreError| ReadError::internal().with_cause(error.to_string());
        let mut budgets = Vec::new();
        for grant in &disclosure.grant_ids {
            let found = budget(&*self.store, grant, now).map_err(failed)?;
            budgets.extend(found.map(|budget| (grant, budget)));
        }
        let mut paused = Vec::new();
        if budgets.is_empty() {
            return Ok(paused);
        }
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        for (grant, budget) in &budgets {
            let day = day_of_grant(&*self.store, &mut days, grant, now).map_err(failed)?;
            if let Some(what) = day.exceeded(*budget, disclosure) {
                return Err(exhausted(what));
            }
        }
        for (grant, budget) in budgets {
            let Some(day) = days.get_mut(grant) else {
                continue;
            };
            day.add(disclosure);
            if budget.pauses_when_unusual && day.is_unusual() {
                let usual = day.usual.unwrap_or(0);
                let reason = format!(
                    "{} records were read on this day, and at most {usual} on any of the days before",
                    day.records
                );
                pause(&*self.store, grant, &reason, now).map_err(failed)?;
                paused.push(grant.clone());
            }
        }
        Ok(paused)
    }
}

/// What is counted of this day; the first time, from the log.
fn day_of_grant<'d>(
    store: &dyn Store,
    days: &'d mut BTreeMap<GrantId, Day>,
    grant: &GrantId,
    now: Instant,
) -> Result<&'d mut Day> {
    let number = day_of(now);
    let known = days.remove(grant).filter(|day| day.number == number);
    let day = match known {
        Some(day) => day,
        None => Day::read(store, grant, number)?,
    };
    Ok(days.entry(grant.clone()).or_insert(day))
}

/// What was shown under a grant today, as the log says.
pub fn used_today(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<Used> {
    Day::read(store, grant, day_of(now)).map(|day| day.used())
}

fn exhausted(what: &str) -> ReadError {
    let message = format!("the owner allows no more {what} under this grant today");
    ReadError::new(ErrorCode::BudgetExhausted, message)
        .with_hint("ask for less, or again after midnight UTC; the owner can allow more")
}
