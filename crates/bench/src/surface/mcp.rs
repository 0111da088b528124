//! `pdpp mcp` over the local data and over a server: how soon a host sees the tools, what that takes, and what a call
//! costs beyond the same read of a server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::ask::{Ask, long_record};
use super::asker::Asker;
use super::place::{InProcess, Place};
use super::process::Server;
use super::stdio::Session;
use super::{Ground, Lines, figures};
use crate::measure::compare;
use crate::{BenchError, Figure, Held, PROBES, Unit};

const COLD_STARTS: usize = 20;
/// The promises: seconds to the list of tools, resident bytes then, and seconds of a call beyond the server's own.
const FIRST_ANSWER: f64 = 0.015;
const RESIDENT: f64 = 25e6;
const OVERHEAD: f64 = 0.000_5;

pub(super) fn measure(ground: &Ground<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let (local, place) = (ground.copy("m")?, ground.copy("l")?);
    let program = &ground.options.program;
    let server = ground.runtime.block_on(Server::start(program, &place))?;
    let cache = ground.scratch.path().join("c");
    keep_credential(&cache, &server, &place)?;
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
        cold_starts(ground, (way, args), lines)?;
    }
    let [(local, over_local), (remote, over_server)] = &ways;
    let here = InProcess::over(&ground.copy("p")?)?;
    calls(ground, (local, over_local), &Own::Here(&here), lines)?;
    let own = Own::Served(&server, &place);
    calls(ground, (remote, over_server), &own, lines)?;
    ground.runtime.block_on(server.process.end())
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
fn keep_credential(root: &Path, server: &Server, place: &Place) -> Result<(), BenchError> {
    let folder = root.join("clients");
    fs::create_dir_all(&folder).map_err(BenchError::file(&folder))?;
    let url = format!("http://{}", server.address);
    let name = server.address.to_string().replace(':', "_");
    let path: PathBuf = folder.join(format!("{name}.json"));
    let credential = json!({
        "provider_url": url,
        "authorization_server": url,
        "scope": "pdpp:read",
        "grant_id": place.grant,
        "client": {"client_id": "bench"},
        "credential": {
            "access_token": place.token.expose(),
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
    ground: &Ground<'_>,
    (way, args): (&str, &[String]),
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let program = &ground.options.program;
    let (mut times, mut firsts, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..COLD_STARTS {
        ground.runtime.block_on(async {
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
    let start = Held::new(&start, Unit::Seconds, Figure::of(times));
    lines.add(start.at_most("15 ms", FIRST_ANSWER));
    memory.sort_unstable();
    if let Some(median) = memory.get(memory.len() / 2) {
        let resident = Figure::once(super::float(*median));
        let resident = Held::new(&format!("{way}: resident then"), Unit::Bytes, resident);
        lines.add(resident.at_most("25 MB", RESIDENT));
    }
    let first = format!("{way}: first search after the start");
    lines.add(Held::new(&first, Unit::Seconds, Figure::of(firsts)));
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
    Served(&'a Server, &'a Place),
}

/// Calls of one process in turns with what the resource server itself takes for the same read.
fn calls(
    ground: &Ground<'_>,
    (way, args): (&str, &[String]),
    own: &Own<'_>,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let corpus = ground.corpus();
    let runtime = &ground.runtime;
    let mut session = runtime.block_on(Session::start(&ground.options.program, args))?;
    let long = json!({"id": format!("messages:{}", long_record(&corpus))});
    for (what, tool, args, ask) in [
        (
            "search, rare word",
            "search",
            search(PROBES.rare.words),
            Ask::search(PROBES.rare)?,
        ),
        (
            "search, common word",
            "search",
            search(PROBES.common.words),
            Ask::search(PROBES.common)?,
        ),
        (
            "query_records, 25 records",
            "query_records",
            json!({"stream": "messages", "limit": 25}),
            Ask::page()?,
        ),
        ("fetch, a long record", "fetch", long, Ask::record(&corpus)?),
    ] {
        let mut asker = match own {
            Own::Here(_) => None,
            Own::Served(server, place) => Some(Asker::new(ground, (server, place), ask.clone())?),
        };
        let mut own = || match (own, &mut asker) {
            (Own::Here(here), _) => {
                let reader = here.reader()?;
                runtime.block_on(ask.written_in_process(&reader)).map(|_| 1)
            }
            (_, Some(asker)) => asker.work(ground).map(|_| 1),
            (Own::Served(..), None) => Ok(0),
        };
        let what = format!("{way}: {what}");
        let measured = compare(
            &what,
            ground.repetition(),
            Some(&mut || runtime.block_on(session.call(tool, &args)).map(|_| 1)),
            &mut own,
        )?;
        let (call, own) = figures(&measured);
        let line = Held::new(&what, Unit::Seconds, call).beside(own);
        lines.add(line.at_most("+ 0.5 ms", own.value + OVERHEAD));
    }
    runtime.block_on(session.process.end())
}
