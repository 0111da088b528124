//! `/mcp` of `pdpp serve`: the tools beside the same search over `/v1`, by one client and by many at once, and the memory
//! of the server meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use super::ask::{Ask, long_record};
use super::client::{Client, Question};
use super::load::{Load, Seen};
use super::place::Place;
use super::process::Server;
use super::{Ground, Lines, figures, float};
use crate::contender::TOP;
use crate::measure::compare;
use crate::{BenchError, Figure, Held, PROBES, Unit};

/// Clients that ask at once, each with a grant of its own.
const CLIENTS: usize = 256;
/// The promise: seconds of a search beyond the same over `/v1`.
const OVERHEAD: f64 = 0.001_5;
/// The memory is told so often.
const STEP: Duration = Duration::from_secs(10);
/// Characters of a window.
const WINDOW: u64 = 1_000;

pub(super) fn measure(ground: &Ground<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let place = ground.copy("l")?;
    let clients = place.more_tokens(CLIENTS)?;
    let started = Server::start(&ground.options.program, &place);
    let server = ground.runtime.block_on(started)?;
    alone(ground, (&server, &place), lines)?;
    let seen = Load {
        clients,
        questions: questions(ground)?,
    };
    let seen = seen.run(ground, &server);
    tell(&seen, lines);
    ground.runtime.block_on(server.process.end())
}

/// The searches of one client, in turns over both paths of one connection each.
fn alone(
    ground: &Ground<'_>,
    (server, place): (&Server, &Place),
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let runtime = &ground.runtime;
    for (what, probe) in [
        ("search, rare word", PROBES.rare),
        ("search, common word", PROBES.common),
    ] {
        let connect = || runtime.block_on(Client::connect(server.address, &place.token));
        let (mut tools, mut rest) = (connect()?, connect()?);
        let call = Question::call("search", &search(probe.words));
        let read = Question::Get(Ask::search(probe)?.target());
        let measured = compare(
            what,
            ground.repetition(),
            Some(&mut || runtime.block_on(tools.must(&call)).map(|_| 1)),
            &mut || runtime.block_on(rest.must(&read)).map(|_| 1),
        )?;
        let (call, read) = figures(&measured);
        let line = Held::new(&format!("1 client: {what}"), Unit::Seconds, call).beside(read);
        lines.add(line.at_most("+ 1.5 ms", read.value + OVERHEAD));
    }
    Ok(())
}

fn search(words: &str) -> Value {
    json!({"query": words, "limit": TOP})
}

/// The first two are the same search over both paths: every client asks both, so both meet the same load.
fn questions(ground: &Ground<'_>) -> Result<Vec<Question>, BenchError> {
    let id = format!("messages:{}", long_record(&ground.corpus()));
    let window = json!({"id": id, "field_path": "body", "limit_chars": WINDOW});
    Ok(vec![
        Question::call("search", &search(PROBES.rare.words)),
        Question::Get(Ask::search(PROBES.rare)?.target()),
        Question::call("query_records", &json!({"stream": "messages"})),
        Question::call("fetch", &json!({"id": id})),
        Question::call("read_record_field", &window),
        Question::call("schema", &json!({"stream": "messages"})),
    ])
}

fn tell(seen: &Seen, lines: &mut Lines<'_>) {
    seen.tell(lines);
    let (call, read) = (seen.figure(0), seen.figure(1));
    let line = seen
        .line("search, rare word", Unit::Seconds, call)
        .beside(read);
    lines.add(line.at_most("+ 1.5 ms", read.value + OVERHEAD));
    let mut next = Duration::ZERO;
    let last = seen.memory.last();
    for (at, bytes) in &seen.memory {
        if *at >= next || Some(&(*at, *bytes)) == last {
            let what = format!("anonymous memory after {:.0} s", at.as_secs_f64());
            let bytes = Figure::once(float(*bytes));
            lines.add(Held::new(&what, Unit::Bytes, bytes));
            next += STEP;
        }
    }
    seen.tell_memory(lines);
}
