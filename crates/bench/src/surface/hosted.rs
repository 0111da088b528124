//! `/mcp` of `pdpp serve`: the tools beside the same search over `/v1`, by one client and by many at once, and the memory
//! of the server meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Question};
use super::directory::GrantedDirectory;
use super::load::{Load, LoadResult};
use super::process::Server;
use super::request::{BenchRequest, long_record};
use super::{Lines, Setup, float};
use crate::contender::TOP;
use crate::measure::compare;
use crate::{BenchError, Figure, PROBES, TargetLine, Unit};

/// Clients that ask at once, each with a grant of its own.
const CLIENTS: usize = 256;
/// The promise: seconds of a search beyond the same over `/v1`.
const OVERHEAD: f64 = 0.001_5;
/// How often the memory is reported.
const STEP: Duration = Duration::from_secs(10);
const WINDOW: u64 = 1_000;

pub(super) fn measure(setup: &Setup<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let directory = setup.copy("l")?;
    let clients = directory.more_tokens(CLIENTS)?;
    let started = Server::start(&setup.options.program, &directory);
    let server = setup.runtime.block_on(started)?;
    alone(setup, &server, &directory, lines)?;
    let result = Load {
        clients,
        questions: questions(setup)?,
    };
    let result = result.run(&setup.runtime, setup.options.load, &[&server]);
    report(&result, lines);
    setup.runtime.block_on(server.process.end())
}

/// The searches of one client, in turns over both paths of one connection each.
fn alone(
    setup: &Setup<'_>,
    server: &Server,
    directory: &GrantedDirectory,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let runtime = &setup.runtime;
    for (what, probe) in [
        ("search, rare word", PROBES.rare),
        ("search, common word", PROBES.common),
    ] {
        let connect = || runtime.block_on(Client::connect(server.address, &directory.token));
        let (mut tools, mut rest) = (connect()?, connect()?);
        let call = Question::call("search", &search(probe.words));
        let read = Question::Get(BenchRequest::search(probe)?.target());
        let measured = compare(
            &format!("1 client: {what}"),
            setup.repetition(),
            &mut || runtime.block_on(tools.must(&call)).map(|_| 1),
            &mut || runtime.block_on(rest.must(&read)).map(|_| 1),
        )?;
        let most = measured.beside_value() + OVERHEAD;
        lines.add(measured.at_most("+ 1.5 ms", most));
    }
    Ok(())
}

fn search(words: &str) -> Value {
    json!({"query": words, "limit": TOP})
}

/// The first two are the same search over both paths: every client asks both, so both meet the same load.
fn questions(setup: &Setup<'_>) -> Result<Vec<Question>, BenchError> {
    let id = format!("messages:{}", long_record(&setup.corpus()));
    let window = json!({"id": id, "field_path": "body", "limit_chars": WINDOW});
    Ok(vec![
        Question::call("search", &search(PROBES.rare.words)),
        Question::Get(BenchRequest::search(PROBES.rare)?.target()),
        Question::call("query_records", &json!({"stream": "messages"})),
        Question::call("fetch", &json!({"id": id})),
        Question::call("read_record_field", &window),
        Question::call("schema", &json!({"stream": "messages"})),
    ])
}

fn report(result: &LoadResult, lines: &mut Lines<'_>) {
    result.report(lines);
    let (call, read) = (result.figure(0), result.figure(1));
    let line = result
        .line("search, rare word", Unit::Seconds, call)
        .beside(read);
    lines.add(line.at_most("+ 1.5 ms", read.value + OVERHEAD));
    let mut next = Duration::ZERO;
    let last = result.memory.last();
    for (at, bytes) in &result.memory {
        if *at >= next || Some(&(*at, *bytes)) == last {
            let what = format!("anonymous memory after {:.0} s", at.as_secs_f64());
            let bytes = Figure::once(float(*bytes));
            lines.add(TargetLine::new(&what, Unit::Bytes, bytes));
            next += STEP;
        }
    }
    result.report_memory(lines);
}
