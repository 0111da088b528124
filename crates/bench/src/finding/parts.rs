//! What each part of finding brings: they are added one after another, and all questions are asked each time.

use std::io::Write;
use std::time::Instant;

use contract::search::SearchMode;
use serde_json::{Value, json};
use store::search::Part;

use super::Imported;
use super::collection::{Gold, Query};
use super::score::Scores;
use super::wording::{Frequencies, Wording};
use crate::BenchError;
use crate::measure::write_table;

/// The parts in the order in which they are added, as the documents name them.
const STEPS: [(&str, Part); 5] = [
    ("A, and how much of the question is covered", Part::Coverage),
    ("B, other forms", Part::Forms),
    ("C, near spellings", Part::Spellings),
    ("D, conversations lend", Part::Lending),
    ("authors count double", Part::Authors),
];

/// What is asked at each step.
pub(super) struct Judgements<'a> {
    pub(super) judged: &'a [(&'a Query, &'a Gold)],
    pub(super) frequencies: &'a Frequencies,
    /// Whether words and meaning together are the last step.
    pub(super) by_meaning: bool,
}

/// One step with its scores, by wording.
struct Step {
    name: &'static str,
    scores: Vec<(Wording, Scores)>,
}

/// Asks everything at each step, and writes how well it is answered.
pub(super) fn report(
    asked: &Judgements<'_>,
    mut ours: Imported,
    json: bool,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let mut left_out: Vec<Part> = STEPS.iter().map(|(_, part)| *part).collect();
    let mut steps = Vec::new();
    let names = ["any word"].into_iter();
    for name in names.chain(STEPS.iter().map(|(name, _)| *name)) {
        progress(name);
        if !steps.is_empty() {
            left_out.remove(0);
        }
        ours = ours.without(&left_out)?;
        steps.push(asked.score(&ours, name, SearchMode::Lexical));
    }
    if asked.by_meaning {
        let name = "E, words and meaning";
        progress(name);
        steps.push(asked.score(&ours, name, SearchMode::Hybrid));
    }
    if json {
        let steps: Vec<Value> = steps.iter().map(Step::json).collect();
        return Ok(writeln!(out, "{}", json!({"parts": steps}))?);
    }
    let wordings = Wording::NAMES;
    writeln!(out, "success@10 in percent, with the parts up to each line")?;
    let heading = ["with", wordings[0], wordings[1], wordings[2]].map(str::to_owned);
    write_table(heading, steps.iter().map(Step::cells), out)
}

impl Judgements<'_> {
    fn score(&self, ours: &Imported, name: &'static str, mode: SearchMode) -> Step {
        let scored = |wording: Wording| {
            let mut scores = Scores::default();
            for (query, gold) in self.judged {
                let question = self.frequencies.put(&query.text, wording);
                let begin = Instant::now();
                let found = ours.search(&question, mode).unwrap_or_default();
                scores.add(&found, gold, begin.elapsed());
            }
            (wording, scores)
        };
        Step {
            name,
            scores: Wording::ALL.map(scored).into(),
        }
    }
}

impl Step {
    fn cells(&self) -> [String; 4] {
        let mut cells = self.scores.iter().map(|(_, scores)| scores.at_ten());
        std::array::from_fn(|column| match column {
            0 => self.name.to_owned(),
            _ => cells.next().unwrap_or_default(),
        })
    }

    fn json(&self) -> Value {
        let mut step = json!({"with": self.name});
        for (wording, scores) in &self.scores {
            step[wording.as_str()] = scores.json();
        }
        step
    }
}
