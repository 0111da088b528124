//! Figures held against others and against targets, as a table for people and as JSON for machines.

use std::io::Write;

use serde_json::{Value, json};

use super::{Figure, Unit, table};
use crate::BenchError;

/// What a figure should be, and whether it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub text: String,
    pub met: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TargetLine {
    pub what: String,
    pub unit: Unit,
    pub figure: Figure,
    /// The one measured in turns with it.
    pub beside: Option<Figure>,
    /// What the figure should be, where something was promised.
    pub target: Option<Target>,
}

impl TargetLine {
    pub fn new(what: &str, unit: Unit, figure: Figure) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            figure,
            beside: None,
            target: None,
        }
    }

    #[must_use]
    pub fn beside(mut self, beside: Figure) -> Self {
        self.beside = Some(beside);
        self
    }

    /// With the target that the figure is at most `most`.
    #[must_use]
    pub fn at_most(self, text: &str, most: f64) -> Self {
        let met = self.figure.value <= most;
        self.with_target(text, met)
    }

    #[must_use]
    pub fn with_target(mut self, text: &str, met: bool) -> Self {
        self.target = Some(Target {
            text: text.to_owned(),
            met,
        });
        self
    }

    /// The same without how many things were found, where it does not matter or cannot be alike.
    #[must_use]
    pub(crate) fn without_found(mut self) -> Self {
        self.figure.found = None;
        self.beside = self.beside.map(|beside| Figure {
            found: None,
            ..beside
        });
        self
    }

    /// The figure that it was measured beside.
    pub(crate) fn beside_value(&self) -> f64 {
        self.beside.map_or(0.0, |beside| beside.value)
    }

    /// Both sides found something, and not the same number of things.
    pub(crate) fn found_differently(&self) -> bool {
        let beside = self.beside.and_then(|beside| beside.found);
        matches!((self.figure.found, beside), (Some(found), Some(other)) if found != other)
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        let beside = self.beside.filter(|beside| beside.value > 0.0)?;
        Some(self.figure.value / beside.value)
    }

    fn cells(&self, tail: Tail) -> [String; 4] {
        let nothing = || "–".to_owned();
        let show = |figure: &Figure| {
            let value = self.unit.show(figure.value);
            let (name, below) = match tail {
                Tail::P95 => ("p95", figure.p95),
                Tail::P99 => ("p99", figure.p99),
            };
            below.map_or(value.clone(), |below| {
                format!("{value} ({name} {})", self.unit.show(below))
            })
        };
        let mut what = self.what.clone();
        if self.found_differently() {
            what.push_str(" [found differently]");
        }
        let ratio = self.ratio().filter(|_| self.unit != Unit::Times);
        [
            what,
            show(&self.figure),
            self.beside.as_ref().map_or_else(nothing, show),
            ratio.map_or_else(nothing, |ratio| format!("{ratio:.2}")),
        ]
    }

    /// The target, and whether it is met.
    fn target_cells(&self) -> [String; 2] {
        match &self.target {
            Some(Target { text, met: true }) => [text.clone(), "met".to_owned()],
            Some(Target { text, met: false }) => [text.clone(), "missed".to_owned()],
            None => ["–".to_owned(), "–".to_owned()],
        }
    }

    fn json(&self) -> Value {
        let target = self.target.as_ref();
        json!({
            "what": self.what,
            "unit": self.unit.as_str(),
            "figure": self.figure.json(),
            "beside": self.beside.map(|figure| figure.json()),
            "ratio": self.ratio(),
            "target": target.map(|target| json!({"text": target.text, "met": target.met})),
        })
    }
}

/// What is told of the slowest calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    P95,
    P99,
}

#[derive(Debug, Clone)]
pub struct Report {
    /// What was measured, for people.
    pub title: String,
    pub records: u64,
    pub seed: u64,
    /// What the figures are and what they stand beside.
    pub columns: [&'static str; 2],
    pub tail: Tail,
    pub lines: Vec<TargetLine>,
}

impl Report {
    /// Writes the table for people, or one JSON object.
    pub fn write(&self, as_json: bool, out: &mut dyn Write) -> Result<(), BenchError> {
        if as_json {
            let lines: Vec<Value> = self.lines.iter().map(TargetLine::json).collect();
            let report = json!({
                "title": self.title,
                "records": self.records,
                "seed": self.seed,
                "columns": self.columns,
                "measurements": lines,
            });
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)?;
            return Ok(());
        }
        writeln!(out, "{}; times are medians", self.title)?;
        let [figure, beside] = self.columns;
        let heading = ["what", figure, beside, "ratio"].map(str::to_owned);
        let lines = self.lines.iter();
        if lines.clone().all(|line| line.target.is_none()) {
            return table::write(heading, lines.map(|line| line.cells(self.tail)), out);
        }
        let heading = with_target(heading, ["target".to_owned(), String::new()]);
        let cells = lines.map(|line| with_target(line.cells(self.tail), line.target_cells()));
        table::write(heading, cells, out)
    }
}

fn with_target(
    [what, figure, beside, ratio]: [String; 4],
    [target, met]: [String; 2],
) -> [String; 6] {
    [what, figure, beside, ratio, target, met]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let figure = Figure {
            value: 0.003,
            p95: None,
            p99: Some(0.004),
            runs: 5,
            found: Some(10),
        };
        let beside = Figure {
            value: 0.001,
            ..figure
        };
        let search = TargetLine::new("search", Unit::Seconds, figure).beside(beside);
        let errors = TargetLine::new("errors", Unit::Number, Figure::once(2.0));
        Report {
            title: "3 records".to_owned(),
            records: 3,
            seed: 1,
            columns: ["over HTTP", "in process"],
            tail: Tail::P99,
            lines: vec![search.at_most("≤ 2×+1 ms", 0.003), errors.at_most("0", 0.0)],
        }
    }

    #[test]
    fn the_table_says_which_targets_are_met_and_which_are_missed() {
        let mut out = Vec::new();
        report().write(false, &mut out).unwrap();
        let expected = "\
3 records; times are medians
what   |             over HTTP |            in process | ratio |    target |       
-------|-----------------------|-----------------------|-------|-----------|-------
search | 3.00 ms (p99 4.00 ms) | 1.00 ms (p99 4.00 ms) |  3.00 | ≤ 2×+1 ms |    met
errors |                     2 |                     – |     – |         0 | missed
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    #[test]
    fn a_table_without_targets_has_no_place_for_them_and_tells_unequal_work() {
        let mut report = report();
        report.tail = Tail::P95;
        for line in &mut report.lines {
            line.target = None;
        }
        report.lines[0].figure.p95 = Some(0.0035);
        report.lines[0].figure.found = Some(9);
        let mut out = Vec::new();
        report.write(false, &mut out).unwrap();
        let expected = "\
3 records; times are medians
what                       |             over HTTP | in process | ratio
---------------------------|-----------------------|------------|------
search [found differently] | 3.00 ms (p95 3.50 ms) |    1.00 ms |  3.00
errors                     |                     2 |          – |     –
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
