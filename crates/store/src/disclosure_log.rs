//! The log of disclosures as every store keeps it: numbered entries, each hashed together with the one before, so that no entry
//! can be changed, taken out or put in without the chain showing it. Only its rows are the store's.

use std::collections::BTreeMap;

use contract::id::{GrantId, hex};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::grants::{ChainBreak, ChainCheck, Disclosure, TokenUse};
use crate::keeping::Retention;

/// Where the chain starts, and what keeps its hashes apart from any other use of the same bytes.
const DOMAIN: &[u8] = b"pdpp disclosure 1\0";

/// The number and the hash of an entry, which the next one continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) sequence: u64,
    pub(crate) hash: [u8; 32],
}

impl Head {
    pub(crate) const EMPTY: Head = Head {
        sequence: 0,
        hash: [0; 32],
    };

    pub(crate) fn extended(self, entry: &[u8]) -> Head {
        let sequence = self.sequence + 1;
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update(self.hash);
        hasher.update(sequence.to_be_bytes());
        hasher.update(entry);
        Head {
            sequence,
            hash: hasher.finalize().into(),
        }
    }
}

/// An entry as it is stored. Whatever cannot be read of a damaged one is `None` or empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged<'a> {
    pub(crate) sequence: i64,
    pub(crate) entry: &'a [u8],
    pub(crate) hash: Option<&'a [u8]>,
}

impl Logged<'_> {
    fn is(&self, head: Head) -> bool {
        u64::try_from(self.sequence) == Ok(head.sequence) && self.hash == Some(head.hash.as_slice())
    }
}

/// An entry that records that all entries up to one were dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cut {
    at: Instant,
    dropped_through: u64,
    /// Its hash, which the first remaining entry continues.
    hash: String,
}

impl Cut {
    pub(crate) fn after(last: Head, at: Instant) -> Self {
        Self {
            at,
            dropped_through: last.sequence,
            hash: hex(last.hash),
        }
    }

    fn is_after(&self, last: Head) -> bool {
        self.dropped_through == last.sequence && self.hash == hex(last.hash)
    }
}

pub(crate) enum Entry {
    Disclosure(Disclosure),
    Cut(Cut),
}

impl Entry {
    pub(crate) fn read(text: &[u8]) -> serde_json::Result<Self> {
        match serde_json::from_slice(text) {
            Ok(disclosure) => Ok(Self::Disclosure(disclosure)),
            Err(error) => serde_json::from_slice(text)
                .map(Self::Cut)
                .map_err(|_| error),
        }
    }

    fn at(&self) -> Instant {
        match self {
            Self::Disclosure(disclosure) => disclosure.at,
            Self::Cut(cut) => cut.at,
        }
    }

    /// The grants it must be listed under.
    fn grants(&self) -> Vec<&str> {
        let Self::Disclosure(disclosure) = self else {
            return Vec::new();
        };
        let mut grants: Vec<&str> = disclosure.grant_ids.iter().map(GrantId::as_str).collect();
        grants.sort_unstable();
        grants.dedup();
        grants
    }
}

/// Recomputes the chain from the first entry that is there to the last.
pub(crate) struct Checking {
    start: Head,
    head: Head,
    cut: Option<Cut>,
    /// How often grants are named.
    named: u64,
}

impl Checking {
    /// From the last entry that was dropped.
    pub(crate) fn from(start: Head) -> Self {
        Self {
            start,
            head: start,
            cut: None,
            named: 0,
        }
    }

    /// Takes the next entry. Returns what is wrong, if anything is: then the check has ended. `is_listed` says whether the entry
    /// is listed under all of these grants.
    pub(crate) fn take<E>(
        &mut self,
        found: Logged<'_>,
        is_listed: impl FnOnce(&[&str]) -> Result<bool, E>,
    ) -> Result<Option<ChainCheck>, E> {
        let next = self.head.extended(found.entry);
        if u64::try_from(found.sequence) != Ok(next.sequence) {
            let reason = format!("the entry is missing; the next is {}", found.sequence);
            return Ok(Some(self.broken(reason)));
        }
        if !found.is(next) {
            let reason = "the entry, or one before it, is not what was written";
            return Ok(Some(self.broken(reason.to_owned())));
        }
        let entry = Entry::read(found.entry).ok();
        let is_listed = match &entry {
            None => false,
            Some(entry) => {
                let grants = entry.grants();
                self.named += grants.len() as u64;
                grants.is_empty() || is_listed(&grants)?
            }
        };
        if !is_listed {
            let reason = "the entry is not listed under its grants";
            return Ok(Some(self.broken(reason.to_owned())));
        }
        if let Some(Entry::Cut(cut)) = entry {
            self.cut = Some(cut);
        }
        self.head = next;
        Ok(None)
    }

    /// After the last entry: whether it is the one written last, and the lists by grant have no entry that is not in the log.
    pub(crate) fn finish(self, written: Option<Head>, listed: u64) -> ChainCheck {
        let Self { start, head, .. } = self;
        if start != Head::EMPTY && !self.cut.as_ref().is_some_and(|cut| cut.is_after(start)) {
            let last = start.sequence;
            let reason = format!(
                "the entries up to {last} are missing, and the log does not say that they were dropped"
            );
            return Self::from(start).broken(reason);
        }
        if written.unwrap_or(Head::EMPTY) != head {
            let last = written.map_or(0, |written| written.sequence);
            return self.broken(format!(
                "the log ends here, but the last entry written has number {last}"
            ));
        }
        if listed != self.named {
            let reason = "grants are listed with entries that do not name them";
            return self.broken(reason.to_owned());
        }
        ChainCheck {
            entries: head.sequence.saturating_sub(start.sequence),
            dropped: start.sequence,
            waiting: 0,
            broken: None,
        }
    }

    fn broken(&self, reason: String) -> ChainCheck {
        ChainCheck {
            entries: self.head.sequence.saturating_sub(self.start.sequence),
            dropped: self.start.sequence,
            waiting: 0,
            broken: Some(ChainBreak {
                sequence: self.head.sequence + 1,
                reason,
            }),
        }
    }
}

/// Finds the beginning of the log that a rule does not keep.
pub(crate) struct Dropping {
    retention: Retention,
    end: u64,
    /// The last entry that is not kept.
    pub(crate) last: Head,
    /// How many disclosures there are up to it.
    pub(crate) dropped: u64,
}

impl Dropping {
    pub(crate) fn from(start: Head, end: Head, retention: Retention) -> Self {
        Self {
            retention,
            end: end.sequence,
            last: start,
            dropped: 0,
        }
    }

    /// Takes the next entry. Returns whether it is dropped: the first one that is not ends the search. An entry that is not
    /// intact is an error with its number.
    pub(crate) fn take(&mut self, found: Logged<'_>) -> Result<bool, u64> {
        let next = self.last.extended(found.entry);
        let entry = Entry::read(found.entry).map_err(|_| next.sequence)?;
        let from_newest = self.end.saturating_sub(self.last.sequence);
        if self.retention.keeps(from_newest, Some(entry.at())) {
            return Ok(false);
        }
        if !found.is(next) {
            return Err(next.sequence);
        }
        self.dropped += u64::from(matches!(entry, Entry::Disclosure(_)));
        self.last = next;
        Ok(true)
    }
}

/// When tokens and grants were last used, by their ids.
#[derive(Debug, Default)]
pub(crate) struct LastUses<'a> {
    pub(crate) tokens: BTreeMap<&'a str, i64>,
    pub(crate) grants: BTreeMap<&'a str, i64>,
}

impl<'a> LastUses<'a> {
    pub(crate) fn of(disclosures: &'a [Disclosure], uses: &'a [TokenUse]) -> Self {
        let mut latest = Self::default();
        for used in uses {
            let at = latest.tokens.entry(&used.token_id).or_insert(used.at.0);
            *at = used.at.0.max(*at);
        }
        for disclosure in disclosures {
            for grant in &disclosure.grant_ids {
                let at = latest.grants.entry(grant.as_str());
                let at = at.or_insert(disclosure.at.0);
                *at = disclosure.at.0.max(*at);
            }
        }
        latest
    }
}
