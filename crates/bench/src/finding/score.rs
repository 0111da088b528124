//! How good answers are: the usual measures of retrieval, over many questions.

use std::time::Duration;

use serde_json::{Value, json};

use super::collection::Gold;
use crate::measure::Figure;

/// How many hits are looked at.
pub(super) const DEPTH: usize = 25;
/// Where success is measured.
const CUTS: [usize; 4] = [1, 5, 10, DEPTH];
/// Where gain is measured.
const GAIN_DEPTH: usize = 10;

/// Sums over questions.
#[derive(Debug, Default)]
pub(super) struct Scores {
    questions: usize,
    /// Questions with an answer among the first so many hits.
    found: [usize; CUTS.len()],
    /// The share of all answers that was found.
    recall: f64,
    /// One divided by the rank of the first answer.
    reciprocal: f64,
    /// The gain of the first ten, divided by the most there could be.
    gain: f64,
    /// Questions without any hit.
    empty: usize,
    times: Vec<Duration>,
}

impl Scores {
    pub(super) const HEADING: [&'static str; 10] = [
        "success@1",
        "@5",
        "@10",
        "@25",
        "recall@25",
        "MRR",
        "nDCG@10",
        "empty",
        "p50",
        "p95",
    ];

    /// Adds an answer: ids, the best first.
    pub(super) fn add(&mut self, ranked: &[String], gold: &Gold, time: Duration) {
        self.questions += 1;
        self.times.push(time);
        self.empty += usize::from(ranked.is_empty());
        let ranked: Vec<u32> = ranked
            .iter()
            .take(DEPTH)
            .map(|id| gold.get(id).copied().unwrap_or(0))
            .collect();
        let first = ranked.iter().position(|score| *score > 0);
        if let Some(first) = first {
            for (found, cut) in self.found.iter_mut().zip(CUTS) {
                *found += usize::from(first < cut);
            }
            self.reciprocal += 1.0 / float(first + 1);
        }
        let answers = ranked.iter().filter(|score| **score > 0).count();
        self.recall += float(answers) / float(gold.len().max(1));
        let mut ideal: Vec<u32> = gold.values().copied().collect();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        self.gain += gain(&ranked) / gain(&ideal).max(f64::MIN_POSITIVE);
    }

    fn share(&self, sum: f64) -> f64 {
        sum / float(self.questions.max(1))
    }

    fn times(&self) -> Figure {
        Figure::from_times(self.times.clone())
    }

    /// Success among the first ten, in percent.
    pub(super) fn at_ten(&self) -> String {
        self.cells()[2].clone()
    }

    /// A line of the table; shares in percent.
    pub(super) fn cells(&self) -> [String; 10] {
        let percent = |sum: f64| format!("{:.1}", 100.0 * self.share(sum));
        let fraction = |sum: f64| format!("{:.3}", self.share(sum));
        let millis = |seconds: f64| format!("{:.2} ms", 1e3 * seconds);
        let [one, five, ten, all] = self.found.map(|found| percent(float(found)));
        let times = self.times();
        [
            one,
            five,
            ten,
            all,
            percent(self.recall),
            fraction(self.reciprocal),
            fraction(self.gain),
            percent(float(self.empty)),
            millis(times.value),
            millis(times.p95.unwrap_or_default()),
        ]
    }

    pub(super) fn json(&self) -> Value {
        let [one, five, ten, all] = self.found.map(|found| self.share(float(found)));
        let times = self.times();
        json!({
            "success": {"1": one, "5": five, "10": ten, "25": all},
            "recall@25": self.share(self.recall),
            "mrr": self.share(self.reciprocal),
            "ndcg@10": self.share(self.gain),
            "empty": self.share(float(self.empty)),
            "p50_seconds": times.value,
            "p95_seconds": times.p95,
        })
    }
}

/// The discounted gain of the first ten.
fn gain(scores: &[u32]) -> f64 {
    let scores = scores.iter().take(GAIN_DEPTH).zip(2_u32..);
    scores
        .map(|(score, place)| f64::from(*score) / f64::from(place).log2())
        .sum()
}

fn float(number: usize) -> f64 {
    crate::phases::float(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn measures_are_means_over_all_questions() {
        let gold = Gold::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let mut scores = Scores::default();
        let time = Duration::from_millis(2);
        scores.add(&ids("x a y"), &gold, time);
        scores.add(&ids("b a"), &gold, time);
        scores.add(&ids("x y z u v w a"), &gold, time);
        scores.add(&[], &gold, time);
        let json = scores.json();
        assert_eq!(
            json["success"],
            json!({"1": 0.25, "5": 0.5, "10": 0.75, "25": 0.75})
        );
        assert_eq!(json["recall@25"], (0.5 + 1.0 + 0.5 + 0.0) / 4.0);
        assert_eq!(json["empty"], 0.25);
        let near = |name: &str, expected: f64| {
            let value = json[name].as_f64().unwrap();
            assert!((value - expected).abs() < 1e-9, "{name}: {value}");
        };
        near("mrr", (0.5 + 1.0 + 1.0 / 7.0) / 4.0);
        let ideal = 2.0 + 1.0 / 3_f64.log2();
        let gains = 1.0 / 3_f64.log2() + ideal + 1.0 / 8_f64.log2();
        near("ndcg@10", gains / ideal / 4.0);
        assert_eq!(scores.cells()[0], "25.0");
        assert_eq!(scores.cells()[8], "2.00 ms");
    }
}
