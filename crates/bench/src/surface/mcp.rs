//! `pdpp mcp` over the local data and over a server: how soon a host sees the tools, what that takes, and what a call
//! costs beyond the same read of a server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::directory::{GrantedDirectory, InProcess};
use super::process::Server;
use super::request::{BenchRequest, long_record};
use super::stdio::Session;
use super::worker::Worker;
use super::{Lines, Setup};
use crate::measure::compare;
use crate::{BenchError, Figure, PROBES, TargetLine, Unit};

const COLD_STARTS: usize = 20;
/// The promises: seconds to the list of tools, resident bytes then, and seconds of a call beyond the server's own.
const FIRST_ANSWER: f64 = 0.015;
const RESIDENT: f64 = 25e6;
const OVERHEAD: f64 = 0.000_5;

pub(super) fn measure(setup: &Setup<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let (local, directory) = (setup.copy("m")?, setup.copy("l")?);
    let program = &setup.options.program;
    let server = setup.runtime.block_on(Server::start(program, &directory))?;
    let cache = setup.scratch.path().join("c");
    keep_credential(&cache, &server, &directory)?;
    let ways = [
        (
            "local data",
            arguments(&[
                ("--grant", &local.grant),
                ("--data-dir", &shown(&local.folder)),
            ]),
        ),
        (
            "over a server",
            arguments(&[
                ("--provider-url", &format!("http://{}", server.address)),
                ("--cache-root", &shown(&cache)),
            ]),
        ),
    ];
    for (way, args) in &ways {
        cold_starts(setup, way, args, lines)?;
    }
    let [(local, over_local), (remote, over_server)] = &ways;
    let here = InProcess::over(&setup.copy("p")?)?;
    calls(setup, local, over_local, &Own::Here(&here), lines)?;
    let own = Own::Served(&server, &directory);
    calls(setup, remote, over_server, &own, lines)?;
    setup.runtime.block_on(server.process.end())
}

fn arguments(named: &[(&str, &str)]) -> Vec<String> {
    let pairs = named.iter().flat_map(|(name, value)| [*name, *value]);
    ["mcp"]
        .into_iter()
        .chain(pairs)
        .map(str::to_owned)
        .collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The credential as `pdpp connect` would have stored it.
fn keep_credential(
    root: &Path,
    server: &Server,
    directory: &GrantedDirectory,
) -> Result<(), BenchError> {
    let folder = root.join("clients");
    fs::create_dir_all(&folder).map_err(BenchError::file(&folder))?;
    let url = format!("http://{}", server.address);
    let name = server.address.to_string().replace(':', "_");
    let path: PathBuf = folder.join(format!("{name}.json"));
    let credential = json!({
        "provider_url": url,
        "authorization_server": url,
        "scope": "pdpp:read",
        "grant_id": directory.grant,
        "client": {"client_id": "bench"},
        "credential": {
            "access_token": directory.token.expose(),
            "token_type": "Bearer",
            "pdpp_token_kind": "client",
        },
    });
    fs::write(&path, serde_json::to_vec(&credential)?).map_err(BenchError::file(&path))?;
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&path, private).map_err(BenchError::file(&path))
}

/// Starts the program again and again, each time until its tools are known, and then asks for something.
fn cold_starts(
    setup: &Setup<'_>,
    way: &str,
    args: &[String],
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let program = &setup.options.program;
    let (mut times, mut firsts, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        setup.runtime.block_on(async {
            let begin = Instant::now();
            let mut session = Session::start(program, args).await?;
            times.push(begin.elapsed());
            memory.extend(session.process.memory("VmRSS:"));
            let begin = Instant::now();
            session.call("search", &search(PROBES.rare.words)).await?;
            firsts.push(begin.elapsed());
            session.process.end().await
        })?;
    }
    let start = format!("{way}: cold start to the list of tools");
    let start = TargetLine::new(&start, Unit::Seconds, Figure::from_times(times));
    lines.add(start.at_most("15 ms", FIRST_ANSWER));
    memory.sort_unstable();
    if let Some(median) = memory.get(memory.len() / 2) {
        let resident = Figure::once(super::float(*median));
        let resident = TargetLine::new(&format!("{way}: resident then"), Unit::Bytes, resident);
        lines.add(resident.at_most("25 MB", RESIDENT));
    }
    let first = format!("{way}: first search after the start");
    lines.add(TargetLine::new(
        &first,
        Unit::Seconds,
        Figure::from_times(firsts),
    ));
    Ok(())
}

fn search(words: &str) -> Value {
    json!({"query": words, "limit": crate::contender::TOP})
}

/// What a resource server itself takes, which no adapter can save.
enum Own<'a> {
    /// The grant looked up and the read in process, with its answer written as JSON.
    Here(&'a InProcess),
    /// The same over a connection of its own: an adapter has to make that way too.
    Served(&'a Server, &'a GrantedDirectory),
}

/// Calls of one process in turns with what the resource server itself takes for the same read.
fn calls(
    setup: &Setup<'_>,
    way: &str,
    args: &[String],
    own: &Own<'_>,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let corpus = setup.corpus();
    let runtime = &setup.runtime;
    let mut session = runtime.block_on(Session::start(&setup.options.program, args))?;
    let long = json!({"id": format!("messages:{}", long_record(&corpus))});
    for (what, tool, args, ask) in [
        (
            "search, rare word",
            "search",
            search(PROBES.rare.words),
            BenchRequest::search(PROBES.rare)?,
        ),
        (
            "search, common word",
            "search",
            search(PROBES.common.words),
            BenchRequest::search(PROBES.common)?,
        ),
        (
            "query_records, 25 records",
            "query_records",
            json!({"stream": "messages", "limit": 25}),
            BenchRequest::page()?,
        ),
        (
            "fetch, a long record",
            "fetch",
            long,
            BenchRequest::record(&corpus)?,
        ),
    ] {
        let mut worker = match own {
            Own::Here(_) => None,
            Own::Served(server, directory) => {
                Some(Worker::new(setup, server, directory, ask.clone())?)
            }
        };
        let mut own = || match (own, &mut worker) {
            (Own::Here(here), _) => {
                let reader = here.reader()?;
                runtime.block_on(ask.written_in_process(&reader)).map(|_| 1)
            }
            (_, Some(worker)) => worker.work(setup).map(|_| 1),
            (Own::Served(..), None) => Ok(0),
        };
        let what = format!("{way}: {what}");
        let measured = compare(
            &what,
            setup.repetition(),
            &mut || runtime.block_on(session.call(tool, &args)).map(|_| 1),
            &mut own,
        )?;
        let most = measured.beside_value() + OVERHEAD;
        lines.add(measured.at_most("+ 0.5 ms", most));
    }
    runtime.block_on(session.process.end())
}
