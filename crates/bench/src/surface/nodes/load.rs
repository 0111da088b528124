//! How much one, two and three nodes answer, as processes of their own, while many connections ask.

use std::path::Path;

use contract::id::hex;
use grants::{Flags, Secret, Selection};
use tokio::runtime::Runtime;

use super::super::client::{Client, Question};
use super::super::load::{CONNECTIONS, Load};
use super::super::process::{PATIENCE, Server, command};
use super::super::request::BenchRequest;
use super::{Bench, Lines, SECRET, Sides, port};
use crate::{BenchError, Figure, TargetLine, Unit};

const NODES: usize = 3;

pub(super) fn measure(
    bench: &Bench<'_>,
    sides: &Sides,
    lines: &mut Lines<'_>,
) -> Result<(), BenchError> {
    let token = granted(bench, sides)?;
    let secret = bench.folder.join("secret");
    std::fs::write(&secret, hex(SECRET)).map_err(BenchError::file(&secret))?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    let mut servers = Vec::new();
    for number in 1..=NODES {
        let name = format!("s{number}");
        let server = runtime.block_on(start(bench, &secret, &name))?;
        runtime.block_on(ready(&server, &token))?;
        servers.push(server);
        let result = load(bench, &token)?.run(
            &runtime,
            bench.options.load,
            &servers.iter().collect::<Vec<_>>(),
        );
        if result.errors > 0 {
            let refused = format!("{} questions under load were refused", result.errors);
            return Err(BenchError::Setup(refused));
        }
        let plural = if number == 1 { "" } else { "s" };
        let what = format!("answers of {number} node{plural}, {CONNECTIONS} connections");
        let rate = Figure::once(result.rate());
        lines.add(TargetLine::new(&what, Unit::RequestsPerSecond, rate));
    }
    end(&runtime, servers)
}

fn end(runtime: &Runtime, servers: Vec<Server>) -> Result<(), BenchError> {
    for server in servers {
        runtime.block_on(server.process.end())?;
    }
    Ok(())
}

fn granted(bench: &Bench<'_>, sides: &Sides) -> Result<Secret, BenchError> {
    let refused = |error: &dyn std::fmt::Display| BenchError::Grant(error.to_string());
    let store = port(&sides.store);
    let ids = store.connections().into_iter();
    let flags = Flags {
        connections: ids.map(|one| one.id.as_str().to_owned()).collect(),
        ..Flags::default()
    };
    let selection = Selection::from_flags(flags).map_err(|error| refused(&error))?;
    let issued = grants::issue(&*store, &selection, "bench", None, &*bench.options.clock);
    Ok(issued.map_err(|error| refused(&error))?.access_token)
}

async fn start(bench: &Bench<'_>, secret: &Path, name: &str) -> Result<Server, BenchError> {
    let mut serving = command(
        &bench.options.program,
        &["serve", "--listen", "127.0.0.1:0"],
    );
    serving.arg("--data-dir").arg(bench.folder.join(name));
    serving.arg("--blobs").arg(bench.folder.join("blobs"));
    serving.arg("--secret-file").arg(secret);
    serving.args(["--owner", &bench.owner, "--node"]);
    serving.arg(format!("{name}-{}", bench.owner));
    serving.env("PDPP_DATABASE", &bench.options.url);
    Server::from_command(serving).await
}

/// Waits until a node has its index.
async fn ready(server: &Server, token: &Secret) -> Result<(), BenchError> {
    let asked = std::time::Instant::now();
    let mut client = Client::connect(server.address, token).await?;
    let question = Question::Get("/readyz".to_owned());
    loop {
        let answer = client.ask(&question).await?;
        let Some(refusal) = question.refusal(&answer) else {
            return Ok(());
        };
        if asked.elapsed() > PATIENCE {
            return Err(server.process.failure(format!("is not ready: {refusal}")));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn load(bench: &Bench<'_>, token: &Secret) -> Result<Load, BenchError> {
    let asks = BenchRequest::all(&bench.corpus())?;
    let questions = asks.iter().map(|(_, ask)| Question::Get(ask.target()));
    Ok(Load {
        clients: vec![token.clone(); CONNECTIONS],
        questions: questions.collect(),
    })
}
