//! `pdpp serve` over loopback: every question beside the same one in process, pages and schema beside those of a small
//! corpus, and many connections at once.

use super::directory::GrantedDirectory;
use super::load;
use super::process::Server;
use super::request::BenchRequest;
use super::worker::Worker;
use super::{Lines, Setup};
use crate::BenchError;
use crate::measure::compare;

/// The small corpus has this part of the records, but at least so many.
const SMALL_PART: u64 = 100;
const SMALL_LEAST: u64 = 1_000;
/// "Independent" leaves room for what else the machine does, and for deeper trees.
const INDEPENDENT: f64 = 1.5;

pub(super) fn measure(setup: &Setup<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let directory = setup.copy("l")?;
    let program = &setup.options.program;
    let server = setup.runtime.block_on(Server::start(program, &directory))?;
    in_process(setup, &server, &directory, lines)?;
    smaller(setup, &server, &directory, lines)?;
    load::measure(setup, &server, &directory, lines)?;
    setup.runtime.block_on(server.process.end())
}

/// Every question over the wire and in process.
fn in_process(
    setup: &Setup<'_>,
    server: &Server,
    directory: &GrantedDirectory,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let runtime = &setup.runtime;
    let reader = directory.reader_over(&setup.ours)?;
    for (what, ask) in BenchRequest::all(&setup.corpus())? {
        let mut worker = Worker::new(setup, server, directory, ask.clone())?;
        let mut here = || Ok(runtime.block_on(ask.in_process(&reader))?);
        let measured = compare(
            what,
            setup.repetition(),
            &mut || worker.work(setup),
            &mut here,
        )?;
        let most = 2.0 * measured.beside_value() + 0.001;
        lines.add(match ask {
            BenchRequest::Search(_) => measured.at_most("2× + 1 ms", most),
            _ => measured,
        });
    }
    Ok(())
}

/// The same schema and the same kind of page in a corpus of a hundredth of the size.
fn smaller(
    setup: &Setup<'_>,
    server: &Server,
    directory: &GrantedDirectory,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let records = setup.options.corpus.records;
    let small_records = (records / SMALL_PART).max(SMALL_LEAST).min(records);
    let small_directory = setup.smaller(small_records, "s")?;
    let started = Server::start(&setup.options.program, &small_directory);
    let small_server = setup.runtime.block_on(started)?;
    for (what, ask) in [
        ("schema", BenchRequest::schema()?),
        ("page of 25 records", BenchRequest::page()?),
    ] {
        let mut large = Worker::new(setup, server, directory, ask.clone())?;
        let mut small = Worker::new(setup, &small_server, &small_directory, ask)?;
        if what != "schema" {
            large.walk(setup)?;
            small.walk(setup)?;
        }
        let what = format!("{what}, beside {small_records} records");
        let measured = compare(
            &what,
            setup.repetition(),
            &mut || large.work(setup),
            &mut || small.work(setup),
        )?;
        let most = INDEPENDENT * measured.beside_value();
        lines.add(measured.at_most(&format!("{INDEPENDENT}×"), most));
    }
    setup.runtime.block_on(small_server.process.end())
}
