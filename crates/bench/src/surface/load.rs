//! Many connections at once for a while: how much is answered, how fast, with how many errors, and whether the server's
//! memory stays what it was.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use grants::Secret;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::client::{Client, Question};
use super::directory::GrantedDirectory;
use super::process::Server;
use super::request::BenchRequest;
use super::{Lines, Setup, float};
use crate::{BenchError, Figure, TargetLine, Unit};

/// Connections that ask at once, each its next question as soon as the last is answered.
pub(super) const CONNECTIONS: usize = 64;
/// The memory is looked at so often, or more often in a short run.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 30;
/// Flat leaves room for what an allocator keeps.
const FLAT: f64 = 1.1;

/// What is asked: by each of these clients on a connection of its own, everything in turn, each beginning elsewhere.
pub(super) struct Load {
    pub(super) clients: Vec<Secret>,
    pub(super) questions: Vec<Question>,
}

#[derive(Default)]
pub(super) struct LoadResult {
    /// The times of answers, by question.
    pub(super) times: Vec<Vec<Duration>>,
    pub(super) errors: u64,
    first_error: Option<String>,
    /// Anonymous memory of the server, and when.
    pub(super) memory: Vec<(Duration, u64)>,
    pub(super) took: Duration,
    during: String,
}

pub(super) fn measure(
    setup: &Setup<'_>,
    server: &Server,
    directory: &GrantedDirectory,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let asks = BenchRequest::all(&setup.corpus())?;
    let questions = asks.iter().map(|(_, ask)| Question::Get(ask.target()));
    let load = Load {
        clients: vec![directory.token.clone(); CONNECTIONS],
        questions: questions.collect(),
    };
    let result = load.run(&setup.runtime, setup.options.load, &[server]);
    result.report(lines);
    result.report_memory(lines);
    Ok(())
}

impl Load {
    /// Asks so long, each client one of the servers, and records the memory of the first meanwhile.
    pub(super) fn run(self, runtime: &Runtime, load: Duration, servers: &[&Server]) -> LoadResult {
        let begin = Instant::now();
        let until = begin + load;
        let during = format!("{} connections", self.clients.len());
        let result = Rc::new(RefCell::new(LoadResult {
            times: vec![Vec::new(); self.questions.len()],
            during,
            ..LoadResult::default()
        }));
        let questions: Rc<[Question]> = self.questions.into();
        let tasks = LocalSet::new();
        let servers_in_turn = servers.iter().cycle();
        for ((number, token), server) in self.clients.into_iter().enumerate().zip(servers_in_turn) {
            let (questions, result) = (Rc::clone(&questions), Rc::clone(&result));
            let address = server.address;
            tasks.spawn_local(async move {
                let mut turn = number;
                while Instant::now() < until {
                    let client = Client::connect(address, &token).await;
                    let asked = keep_asking(client, &questions, &mut turn, until, &result).await;
                    if let Err(error) = asked {
                        result.borrow_mut().note_error(error.to_string());
                        // A server that is gone is not asked as fast as the machine can.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            });
        }
        let pause = LOOK.min(load / LOOKS);
        runtime.block_on(tasks.run_until(async {
            while Instant::now() < until {
                let first = servers
                    .first()
                    .and_then(|server| server.process.memory("RssAnon:"));
                if let Some(bytes) = first {
                    result.borrow_mut().memory.push((begin.elapsed(), bytes));
                }
                tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
            }
        }));
        // Every connection ends with the answer it waits for.
        runtime.block_on(tasks);
        let mut result = result.replace(LoadResult::default());
        result.took = begin.elapsed();
        result.during = format!("{} for {:.0} s", result.during, result.took.as_secs_f64());
        result
    }
}

async fn keep_asking(
    client: Result<Client, BenchError>,
    questions: &[Question],
    turn: &mut usize,
    until: Instant,
    result: &RefCell<LoadResult>,
) -> Result<(), BenchError> {
    let mut client = client?;
    while Instant::now() < until {
        let number = *turn % questions.len();
        let question = &questions[number];
        *turn += 1;
        let begin = Instant::now();
        let answer = client.ask(question).await?;
        let time = begin.elapsed();
        match question.refusal(&answer) {
            None => result.borrow_mut().times[number].push(time),
            Some(error) => result.borrow_mut().note_error(error),
        }
    }
    Ok(())
}

impl LoadResult {
    fn note_error(&mut self, error: String) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    pub(super) fn figure(&self, question: usize) -> Figure {
        Figure::from_times(self.times.get(question).cloned().unwrap_or_default())
    }

    pub(super) fn line(&self, what: &str, unit: Unit, figure: Figure) -> TargetLine {
        TargetLine::new(&format!("{}: {what}", self.during), unit, figure)
    }

    /// Answers each second.
    pub(super) fn rate(&self) -> f64 {
        let answers: usize = self.times.iter().map(Vec::len).sum();
        float(answers as u64) / self.took.as_secs_f64()
    }

    /// How much was answered, with how many errors, and how fast.
    pub(super) fn report(&self, lines: &mut Lines<'_>) {
        if let Some(error) = &self.first_error {
            (lines.progress)(&format!("the first error: {error}"));
        }
        let all: Vec<Duration> = self.times.iter().flatten().copied().collect();
        let rate = Figure::once(self.rate());
        lines.add(self.line("answers", Unit::RequestsPerSecond, rate));
        let errors = Figure::once(float(self.errors));
        let errors = self.line("errors", Unit::Number, errors);
        lines.add(errors.at_most("0", 0.0));
        lines.add(self.line("one answer", Unit::Seconds, Figure::from_times(all)));
    }

    /// Whether the memory stayed what it was. The first sixth is left out: caches fill, and the server was idle before.
    pub(super) fn report_memory(&self, lines: &mut Lines<'_>) {
        let sixth = self.memory.len() / 6;
        let (early, late) = (
            mean(&self.memory[sixth..2 * sixth]),
            mean(&self.memory[self.memory.len() - 2 * sixth..]),
        );
        if let (Some(early), Some(late)) = (early, late) {
            let what = "anonymous memory, last third beside second sixth";
            let line =
                TargetLine::new(what, Unit::Bytes, Figure::once(late)).beside(Figure::once(early));
            lines.add(line.at_most(&format!("{FLAT}×"), FLAT * early));
        }
    }
}

fn mean(values: &[(Duration, u64)]) -> Option<f64> {
    let sum = float(values.iter().map(|(_, bytes)| bytes).sum());
    (!values.is_empty()).then(|| sum / float(values.len() as u64))
}
