//! The figures of a run, as a table for people and as JSON for machines.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::table;
use crate::BenchError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time for one call; less is better.
    Seconds,
    /// Records each second; more is better.
    RecordsPerSecond,
    /// Requests each second; more is better.
    RequestsPerSecond,
    Number,
    /// Storage or memory; less is better.
    Bytes,
    /// One figure of the same side divided by another.
    Times,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::RecordsPerSecond => "records_per_second",
            Self::RequestsPerSecond => "requests_per_second",
            Self::Number => "number",
            Self::Bytes => "bytes",
            Self::Times => "times",
        }
    }

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

#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    pub what: String,
    pub unit: Unit,
    pub ours: Option<Figure>,
    /// The figure of the raw engines in the same run.
    pub raw: Option<Figure>,
}

impl Measurement {
    pub fn new(what: &str, unit: Unit, ours: Option<Figure>, raw: Option<Figure>) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            ours,
            raw,
        }
    }

    /// Ours divided by raw, where both are known.
    pub fn ratio(&self) -> Option<f64> {
        let raw = self.raw.filter(|raw| raw.value > 0.0)?;
        Some(self.ours?.value / raw.value)
    }

    /// Both sides found something, and not the same number of things.
    pub fn found_differently(&self) -> bool {
        let found = |figure: Option<Figure>| figure.and_then(|figure| figure.found);
        matches!((found(self.ours), found(self.raw)), (Some(ours), Some(raw)) if ours != raw)
    }

    fn cells(&self) -> [String; 4] {
        let show = |figure: Option<Figure>| {
            figure.map_or("–".to_owned(), |figure| {
                let value = self.unit.show(figure.value);
                match figure.p95 {
                    Some(p95) => format!("{value} (p95 {})", self.unit.show(p95)),
                    None => value,
                }
            })
        };
        let ratio = match self.unit {
            Unit::Times => None,
            _ => self.ratio(),
        };
        let mut what = self.what.clone();
        if self.found_differently() {
            what.push_str(" [found differently]");
        }
        let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        [what, show(self.ours), show(self.raw), ratio]
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "unit": self.unit.name(),
            "ours": self.ours.map(|figure| figure.json()),
            "raw": self.raw.map(|figure| figure.json()),
            "ratio": self.ratio(),
        })
    }
}

#[derive(Debug, Clone)]
pub struct Report {
    pub records: u64,
    pub seed: u64,
    pub batch: usize,
    pub corpus_bytes: u64,
    /// Whether the process that reads also wrote the corpus: its allocator keeps what that needed.
    pub wrote: bool,
    pub measurements: Vec<Measurement>,
}

impl Report {
    /// Writes the table `what | ours | raw engine | ratio`.
    pub fn write_table(&self, out: &mut dyn Write) -> Result<(), BenchError> {
        writeln!(
            out,
            "{} records, {:.1} MB of JSON, seed {}, batches of {}; times are medians",
            self.records,
            Unit::megabytes(self.corpus_bytes),
            self.seed,
            self.batch
        )?;
        let heading = ["what", "ours", "raw engine", "ratio"].map(str::to_owned);
        let lines = self.measurements.iter().map(Measurement::cells);
        table::write(heading, lines, out)
    }

    pub fn write_json(&self, out: &mut dyn Write) -> Result<(), BenchError> {
        let measurements: Vec<Value> = self.measurements.iter().map(Measurement::json).collect();
        let report = json!({
            "records": self.records,
            "seed": self.seed,
            "batch": self.batch,
            "corpus_bytes": self.corpus_bytes,
            "wrote": self.wrote,
            "measurements": measurements,
        });
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        Ok(())
    }
}

impl Unit {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    fn megabytes(bytes: u64) -> f64 {
        bytes as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let ours = Figure {
            value: 0.002,
            p95: Some(0.003),
            p99: Some(0.004),
            runs: 9,
            found: Some(10),
        };
        let raw = Figure {
            value: 0.001,
            found: Some(9),
            ..ours
        };
        let search = Measurement::new("search", Unit::Seconds, Some(ours), Some(raw));
        let size = Measurement::new("size", Unit::Bytes, None, Some(Figure::once(2e6)));
        Report {
            records: 3,
            seed: 1,
            batch: 2,
            corpus_bytes: 1_500_000,
            wrote: true,
            measurements: vec![search, size],
        }
    }

    #[test]
    fn the_table_is_aligned_and_tells_unequal_work() {
        let mut out = Vec::new();
        report().write_table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "\
3 records, 1.5 MB of JSON, seed 1, batches of 2; times are medians
what                       |                  ours |            raw engine | ratio
---------------------------|-----------------------|-----------------------|------
search [found differently] | 2.00 ms (p95 3.00 ms) | 1.00 ms (p95 3.00 ms) |  2.00
size                       |                     – |                2.0 MB |     –
";
        assert_eq!(text, expected);
    }
}
