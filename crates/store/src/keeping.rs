//! Retention: the log and old versions, and how long they are kept.

use contract::time::Instant;
use serde::{Deserialize, Serialize};

use crate::Result;

/// How much is kept of data that grows without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    #[default]
    All,
    /// The newest, so many: of the log, or of each record.
    Newest(u64),
    /// What is not older than this, in microseconds.
    For(i64),
}

/// The retention of the disclosure log and of replaced versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KeepRules {
    pub log: Keep,
    /// Versions of a record that were replaced. Those that dates depend on stay.
    pub versions: Keep,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    pub(crate) keep: Keep,
    pub(crate) now: Instant,
}

impl Retention {
    /// Whether an entry stays that is this many from the newest, which is 1, and was written or replaced then.
    pub(crate) fn keeps(self, from_newest: u64, at: Option<Instant>) -> bool {
        match self.keep {
            Keep::All => true,
            Keep::Newest(number) => from_newest <= number,
            Keep::For(micros) => at.is_none_or(|at| at.0 >= self.now.0.saturating_sub(micros)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dropped {
    pub log_entries: u64,
    pub versions: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grown {
    pub log_entries: u64,
    pub log_bytes: u64,
    pub versions: u64,
    pub version_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedTime {
    /// The time that everything goes by. It never goes back.
    pub counted: Instant,
    pub machine: Instant,
    /// Whether the latest time that was seen got lost. Then time was counted on from the last transaction.
    #[serde(default)]
    pub was_lost: bool,
}

impl CountedTime {
    /// How far the counted time is ahead, in microseconds.
    pub fn ahead(self) -> i64 {
        self.counted.0.saturating_sub(self.machine.0)
    }
}

pub trait Keeping {
    /// What time it is, for grants and for the machine.
    fn time(&self) -> CountedTime;
    /// Counts from the machine's time again, and answers what was counted before. What had ended by that time may live again.
    fn reset_time(&self) -> Result<CountedTime>;
    fn grown(&self) -> Result<Grown>;
    /// Drops what the rules do not keep. The log says what was dropped from it, and nothing is dropped from one that is broken.
    fn drop_old(&self, rules: KeepRules) -> Result<Dropped>;
}
