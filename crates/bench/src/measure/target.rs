//! Figures held against others and against targets: what a surface costs beside what it stands on.

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

    fn ratio(&self) -> Option<f64> {
        let beside = self.beside.filter(|beside| beside.value > 0.0)?;
        Some(self.figure.value / beside.value)
    }

    fn cells(&self) -> [String; 6] {
        let nothing = || "–".to_owned();
        let show = |figure: &Figure| {
            let value = self.unit.show(figure.value);
            match figure.p99 {
                Some(p99) => format!("{value} (p99 {})", self.unit.show(p99)),
                None => value,
            }
        };
        let found = |figure: &Figure| figure.found;
        let mut what = self.what.clone();
        if self
            .beside
            .as_ref()
            .is_some_and(|beside| found(beside) != found(&self.figure))
        {
            what.push_str(" [found differently]");
        }
        let (target, met) = match &self.target {
            Some(Target { text, met: true }) => (text.clone(), "met".to_owned()),
            Some(Target { text, met: false }) => (text.clone(), "missed".to_owned()),
            None => (nothing(), nothing()),
        };
        [
            what,
            show(&self.figure),
            self.beside.as_ref().map_or_else(nothing, show),
            self.ratio()
                .map_or_else(nothing, |ratio| format!("{ratio:.2}")),
            target,
            met,
        ]
    }

    fn json(&self) -> Value {
        let target = self.target.as_ref();
        json!({
            "what": self.what,
            "unit": self.unit.name(),
            "figure": self.figure.json(),
            "beside": self.beside.map(|figure| figure.json()),
            "ratio": self.ratio(),
            "target": target.map(|target| json!({"text": target.text, "met": target.met})),
        })
    }
}

#[derive(Debug, Clone)]
pub struct TargetReport {
    /// What was measured, for people.
    pub title: String,
    pub records: u64,
    pub seed: u64,
    /// What the figures are and what they stand beside.
    pub columns: [&'static str; 2],
    pub lines: Vec<TargetLine>,
}

impl TargetReport {
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
        let heading = ["what", figure, beside, "ratio", "target", ""].map(str::to_owned);
        table::write(heading, self.lines.iter().map(TargetLine::cells), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> TargetReport {
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
        TargetReport {
            title: "3 records".to_owned(),
            records: 3,
            seed: 1,
            columns: ["over HTTP", "in process"],
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
}
