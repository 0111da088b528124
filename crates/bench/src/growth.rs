//! How searches grow with the records: the same questions in a corpus and in one of a twelfth of its size, in turns.

use std::io::Write;
use std::time::Duration;

use crate::folder::RunFolder;
use crate::measure::{Timed, compare};
use crate::ours::OurSide;
use crate::{
    BenchError, BenchOptions, Contender, Corpus, PROBES, Repetition, Report, Tail, TargetLine,
    phases,
};

/// The small corpus has this part of the records: 250,000 of three million.
const SMALL_PART: u64 = 12;
/// "Flat" leaves room for what else the machine does.
const FLAT: f64 = 1.5;

/// One question after another, for either side.
type Ask<'a> = &'a dyn Fn(&mut OurSide, usize) -> Result<u64, BenchError>;

/// Measures and writes the report. The corpora stay in the folder, where one is named.
pub fn run_growth(
    options: &BenchOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let folder = RunFolder::new(options.dir.as_deref())?;
    let small = BenchOptions {
        records: (options.records / SMALL_PART).max(1),
        ..options.clone()
    };
    let large = phases::write_served(options, &folder.path, progress)?;
    let beside = phases::write_served(&small, &folder.path.join("smaller"), progress)?;
    let mut growth = Growth {
        lines: Vec::new(),
        progress,
        large: OurSide::open(&large)?,
        small: OurSide::open(&beside)?,
    };
    growth.measure(&Corpus::new(small.seed, small.records))?;
    let report = Report {
        title: format!("{} records beside {}", options.records, small.records),
        records: options.records,
        seed: options.seed,
        columns: ["all", "a twelfth"],
        tail: Tail::P99,
        lines: growth.lines,
    };
    report.write(options.json, out)
}

struct Growth<'a> {
    lines: Vec<TargetLine>,
    progress: &'a mut dyn FnMut(&str),
    large: OurSide,
    small: OurSide,
}

impl Growth<'_> {
    fn measure(&mut self, corpus: &Corpus) -> Result<(), BenchError> {
        for (what, probe, is_flat) in [
            ("rare word", PROBES.rare, false),
            ("common word", PROBES.common, false),
            ("two words", PROBES.pair, true),
        ] {
            self.ask(what, 20, is_flat, &|side, _| side.search(probe, None))?;
        }
        for (what, begin, words, is_flat) in [
            ("question of two words", "", 2, true),
            (
                "question of eight words",
                "what did they say about",
                4,
                false,
            ),
        ] {
            let questions = corpus.questions(words);
            let questions: Vec<String> = (questions.iter())
                .map(|words| format!("{begin} {words}"))
                .collect();
            let question = |number: usize| {
                let question = questions.get(number % questions.len().max(1));
                question.map_or("", String::as_str)
            };
            let ask: Ask<'_> = &|side, number| side.find(question(number));
            let ask_conversations: Ask<'_> =
                &|side, number| side.find_in_conversations(question(number));
            // A word that nobody asked for since its segment was written is read once to know where it scores most.
            let first = format!("{what}, asked for the first time");
            self.ask(&first, 0, false, ask)?;
            self.ask(what, questions.len(), is_flat, ask)?;
            let lending = format!("{what}, in conversations");
            self.ask(&lending, questions.len(), false, ask_conversations)?;
        }
        Ok(())
    }

    /// Asks both in turns. Before the clock starts, so many questions are asked; without any, each is asked once.
    fn ask(
        &mut self,
        what: &str,
        warm_up: usize,
        is_flat: bool,
        ask: Ask<'_>,
    ) -> Result<(), BenchError> {
        let repetition = Repetition {
            warm_up,
            runs: if warm_up == 0 { 100 } else { 500 },
            time: Duration::from_secs(20),
            timed: Timed::Processor,
        };
        let (large, small) = (&mut self.large, &mut self.small);
        let (mut large_number, mut small_number) = (0, 0);
        let measured = compare(
            what,
            repetition,
            &mut || {
                large_number += 1;
                ask(large, large_number)
            },
            &mut || {
                small_number += 1;
                ask(small, small_number)
            },
        )?;
        // How many are found does not matter: a page is full or it is not.
        let line = measured.without_found();
        let most = FLAT * line.beside_value();
        (self.progress)(what);
        self.lines.push(if is_flat {
            line.at_most(&format!("{FLAT}×"), most)
        } else {
            line
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_in_both_corpora_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let options = BenchOptions {
            records: 2_400,
            dir: Some(folder.path().to_owned()),
            json: true,
            ..BenchOptions::default()
        };
        let mut report = Vec::new();
        run_growth(&options, &mut report, &mut |_| ()).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let lines = report["measurements"].as_array().unwrap();
        assert_eq!(lines.len(), 9);
        for line in lines {
            assert!(line["ratio"].as_f64().unwrap() > 0.0, "{line}");
        }
        assert_eq!(lines[2]["target"]["text"], "1.5×");
    }
}
