//! A figure, and the unit it is shown in.

use std::time::Duration;

use serde_json::{Value, json};

contract::names! {
    pub enum Unit {
        /// Time for one call; less is better.
        Seconds = "seconds",
        /// Records each second; more is better.
        RecordsPerSecond = "records_per_second",
        /// Requests each second; more is better.
        RequestsPerSecond = "requests_per_second",
        Number = "number",
        /// Storage or memory; less is better.
        Bytes = "bytes",
        /// One figure of the same side divided by another.
        Times = "times",
    }
}

impl Unit {
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 0.001 => format!("{:.0} µs", value * 1e6),
            Self::Seconds if value < 1.0 => format!("{:.2} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
            Self::RecordsPerSecond | Self::RequestsPerSecond => format!("{value:.0} /s"),
            Self::Number => format!("{value:.0}"),
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Times => format!("{value:.2}×"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The figure; the median for repeated calls.
    pub value: f64,
    /// What 95 % of the calls stay below.
    pub p95: Option<f64>,
    /// What 99 % of the calls stay below.
    pub p99: Option<f64>,
    pub runs: usize,
    pub found: Option<u64>,
}

impl Figure {
    pub fn once(value: f64) -> Self {
        Self {
            value,
            p95: None,
            p99: None,
            runs: 1,
            found: None,
        }
    }

    /// The median of timed calls, and what nearly all stay below.
    pub(crate) fn from_times(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(index).map_or(0.0, Duration::as_secs_f64)
        };
        Self {
            value: at(50),
            p95: Some(at(95)),
            p99: Some(at(99)),
            runs: times.len(),
            found: None,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({"value": self.value, "p95": self.p95, "p99": self.p99, "runs": self.runs, "found": self.found})
    }
}
