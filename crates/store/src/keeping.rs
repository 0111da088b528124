//! What is kept although nobody asked for it, and for how long.

use contract::time::Instant;

use crate::Result;

/// The time, as it is counted and as the machine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTime {
    /// The time that everything goes by. It never goes back.
    pub counted: Instant,
    /// What the machine believes the time to be.
    pub machine: Instant,
}

impl CountedTime {
    /// How far the counted time is ahead, in microseconds.
    pub fn ahead(self) -> i64 {
        self.counted.0.saturating_sub(self.machine.0)
    }
}

/// The port for what is kept.
pub trait Keeping {
    /// What time it is, for grants and for the machine.
    fn time(&self) -> CountedTime;
    /// Counts from the machine's time again, and answers what was counted before. What had ended by that time may live again.
    fn reset_time(&self) -> Result<CountedTime>;
}
