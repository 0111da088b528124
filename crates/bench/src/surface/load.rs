//! Many connections at once for a while: how much is answered, how fast, with how many errors, and whether the server's
//! memory stays what it was.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use tokio::task::LocalSet;

use super::ask::Ask;
use super::client::Client;
use super::place::Place;
use super::process::Server;
use super::{Ground, Lines, float};
use crate::{BenchError, Figure, Held, Unit};

/// Connections that ask at once, each its next question as soon as the last is answered.
const CONNECTIONS: usize = 64;
/// The memory is looked at so often, or more often in a short run.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 30;
/// Flat leaves room for what an allocator keeps.
const FLAT: f64 = 1.1;

/// What was seen.
#[derive(Default)]
struct Seen {
    times: Vec<Duration>,
    errors: u64,
    first_error: Option<String>,
    memory: Vec<u64>,
}

pub(super) fn measure(
    ground: &Ground<'_>,
    (server, place): (&Server, &Place),
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let targets: Vec<String> = Ask::all(&ground.corpus())?
        .iter()
        .map(|(_, ask)| ask.target())
        .collect();
    let seen = Rc::new(RefCell::new(Seen::default()));
    let begin = Instant::now();
    let until = begin + ground.options.load;
    let tasks = LocalSet::new();
    for number in 0..CONNECTIONS {
        let (address, token) = (server.address, place.token.clone());
        let (targets, seen) = (targets.clone(), Rc::clone(&seen));
        tasks.spawn_local(async move {
            let mut turn = number;
            while Instant::now() < until {
                let client = Client::connect(address, &token).await;
                if let Err(error) = keep_asking(client, &targets, &mut turn, until, &seen).await {
                    note_error(&seen, error.to_string());
                    // A server that is gone is not asked as fast as the machine can.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        });
    }
    let pause = LOOK.min(ground.options.load / LOOKS);
    ground.runtime.block_on(tasks.run_until(async {
        while Instant::now() < until {
            let memory = server.process.memory("RssAnon:");
            seen.borrow_mut().memory.extend(memory);
            tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
        }
    }));
    // Every connection ends with the answer it waits for.
    ground.runtime.block_on(tasks);
    let seconds = begin.elapsed().as_secs_f64();
    let seen = std::mem::take(&mut *seen.borrow_mut());
    if let Some(error) = &seen.first_error {
        (lines.progress)(&format!("the first error: {error}"));
    }
    tell(seen, seconds, lines);
    Ok(())
}

async fn keep_asking(
    client: Result<Client, BenchError>,
    targets: &[String],
    turn: &mut usize,
    until: Instant,
    seen: &RefCell<Seen>,
) -> Result<(), BenchError> {
    let mut client = client?;
    while Instant::now() < until {
        let target = &targets[*turn % targets.len()];
        *turn += 1;
        let begin = Instant::now();
        let (status, _) = client.ask(target).await?;
        let time = begin.elapsed();
        if status == StatusCode::OK {
            seen.borrow_mut().times.push(time);
        } else {
            note_error(seen, format!("{target}: {status}"));
        }
    }
    Ok(())
}

fn note_error(seen: &RefCell<Seen>, error: String) {
    let mut seen = seen.borrow_mut();
    seen.errors += 1;
    seen.first_error.get_or_insert(error);
}

fn tell(seen: Seen, seconds: f64, lines: &mut Lines<'_>) {
    let during = format!("{CONNECTIONS} connections for {seconds:.0} s");
    let answered = float(seen.times.len() as u64);
    let rate = Figure::once(answered / seconds);
    lines.add(Held::new(
        &format!("{during}: answers"),
        Unit::RequestsPerSecond,
        rate,
    ));
    let errors = Figure::once(float(seen.errors));
    let errors = Held::new(&format!("{during}: errors"), Unit::Number, errors);
    lines.add(errors.at_most("0", 0.0));
    let times = Figure::of(seen.times);
    lines.add(Held::new(
        &format!("{during}: one answer"),
        Unit::Seconds,
        times,
    ));
    let third = seen.memory.len() / 3;
    if let (Some(first), Some(last)) = (
        mean(&seen.memory[..third]),
        mean(&seen.memory[seen.memory.len() - third..]),
    ) {
        let what = "anonymous memory, last third beside first";
        let line = Held::new(what, Unit::Bytes, Figure::once(last)).beside(Figure::once(first));
        lines.add(line.at_most(&format!("{FLAT}×"), FLAT * first));
    }
}

fn mean(values: &[u64]) -> Option<f64> {
    let sum = float(values.iter().sum());
    (!values.is_empty()).then(|| sum / float(values.len() as u64))
}
