//! `pdpp serve` over loopback: every question beside the same one in process, pages and schema beside those of a small
//! corpus, and many connections at once.

use super::ask::Ask;
use super::asker::Asker;
use super::load;
use super::place::Place;
use super::process::Server;
use super::{Ground, Lines, figures};
use crate::measure::compare;
use crate::{BenchError, Held, Unit};

/// The small corpus has this part of the records, but at least so many.
const SMALL_PART: u64 = 100;
const SMALL_LEAST: u64 = 1_000;
/// "Independent" leaves room for what else the machine does, and for deeper trees.
const INDEPENDENT: f64 = 1.5;

pub(super) fn measure(ground: &Ground<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let place = ground.copy("l")?;
    let program = &ground.options.program;
    let server = ground.runtime.block_on(Server::start(program, &place))?;
    in_process(ground, (&server, &place), lines)?;
    smaller(ground, (&server, &place), lines)?;
    load::measure(ground, (&server, &place), lines)?;
    ground.runtime.block_on(server.process.end())
}

/// Every question over the wire and in process.
fn in_process(
    ground: &Ground<'_>,
    (server, place): (&Server, &Place),
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let runtime = &ground.runtime;
    let reader = place.reader_over(&ground.ours)?;
    for (what, ask) in Ask::all(&ground.corpus())? {
        let mut asker = Asker::new(ground, (server, place), ask.clone())?;
        let mut here = || Ok(runtime.block_on(ask.in_process(&reader))?);
        let measured = compare(
            what,
            ground.repetition(),
            Some(&mut || asker.work(ground)),
            &mut here,
        )?;
        let (http, here) = figures(&measured);
        let line = Held::new(what, Unit::Seconds, http).beside(here);
        lines.add(match ask {
            Ask::Search(_) => line.at_most("2× + 1 ms", 2.0 * here.value + 0.001),
            _ => line,
        });
    }
    Ok(())
}

/// The same schema and the same kind of page in a corpus of a hundredth of the size.
fn smaller(
    ground: &Ground<'_>,
    (server, place): (&Server, &Place),
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let records = ground.options.corpus.records;
    let small_records = (records / SMALL_PART).max(SMALL_LEAST).min(records);
    let small_place = ground.smaller(small_records, "s")?;
    let started = Server::start(&ground.options.program, &small_place);
    let small_server = ground.runtime.block_on(started)?;
    for (what, ask) in [
        ("schema", Ask::schema()?),
        ("page of 25 records", Ask::page()?),
    ] {
        let mut large = Asker::new(ground, (server, place), ask.clone())?;
        let mut small = Asker::new(ground, (&small_server, &small_place), ask)?;
        if what != "schema" {
            large.walk(ground)?;
            small.walk(ground)?;
        }
        let what = format!("{what}, beside {small_records} records");
        let measured = compare(
            &what,
            ground.repetition(),
            Some(&mut || large.work(ground)),
            &mut || small.work(ground),
        )?;
        let (large, small) = figures(&measured);
        let line = Held::new(&what, Unit::Seconds, large).beside(small);
        lines.add(line.at_most(&format!("{INDEPENDENT}×"), INDEPENDENT * small.value));
    }
    ground.runtime.block_on(small_server.process.end())
}
