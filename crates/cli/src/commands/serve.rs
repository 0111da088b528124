//! `pdpp serve`: the API over TCP for clients with a token, and over a socket in the data directory for the owner.

mod documents;
mod files;
mod listen;
mod sample;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use contract::seal::SealingKey;
use contract::time::{Clock, Instant};
use grants::sign_in::Console;
use grants::{DisclosureLog, Secret};
use rest::{Capacity, IndexUpdater, Limits, Listeners, Service};
use store::Store;
use store::directory::OWNER_SOCKET;
use store::keeping::KeepRules;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::config::{ServerSettings, owner_password};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::keep;
use crate::log;
use crate::owner::OwnerSocket;
use crate::stop::Stop;

/// How long work that outlived its request may take to end.
/// How often the clock is looked at where nobody asks.
const BETWEEN_LOOKS: Duration = Duration::from_mins(1);
const LAST_WORK: Duration = Duration::from_secs(5);

/// Serve console, API and agents on one port, until stopped
///
/// Prints a link to the console, the address for agents and the line that connects one. An agent asks in your browser, where
/// you choose what it may read; clients without one read with the token of `pdpp grant create`. While the server runs, every other command goes through it: grants, imports and
/// all else take effect at once.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp serve\nExample: pdpp serve --demo --data-dir sample")]
pub(crate) struct Options {
    /// Fill an empty data directory with a sample life first: a year and more of an invented person
    #[arg(long)]
    demo: bool,
    #[arg(
        long,
        value_name = "ADDR",
        help = "Where to listen; other than this machine needs a password; port 0 takes any free one [env: PDPP_LISTEN] [default: 127.0.0.1:7420]"
    )]
    listen: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        help = "The address clients reach this server at [env: PDPP_PUBLIC_URL] [default: where it listens]"
    )]
    public_url: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        help = "The address of your own pages, whose host no application shares [env: PDPP_CONSOLE_URL] [default: the public one; on this machine http://pdpp.localhost:PORT]"
    )]
    console_url: Option<String>,
    #[command(flatten)]
    keep: keep::KeepOptions,
}

pub(crate) fn run(options: Options, context: &Context) -> Outcome {
    let settings =
        ServerSettings::resolve(options.listen, options.public_url, options.console_url)?;
    let rules = options.keep.rules(settings.keep);
    let address = listen::address(&settings.listen)?;
    if let Some(url) = &settings.public_url {
        listen::check_public_url(url)?;
    }
    let chosen = settings.console_url.as_deref();
    let chosen = chosen.map(listen::console).transpose()?;
    log::start(settings.log);
    let capacity = Capacity::for_open_files(files::raise_limit()).behind(&settings.trusted_proxies);
    let store = context.open("pdpp serve")?;
    if options.demo {
        sample::fill(&store, context)?;
    }
    let key = SealingKey::from_bytes(store.sealing_key()?);
    let clock = store.clock();
    let has_password = password_is_set(&store, clock.now())?;
    let set = context.line("owner-password");
    let exposed = (!has_password).then_some(&set);
    listen::check_exposure(address, exposed)?;
    // Held to the end: the directory must be ours for as long as the socket in it is.
    let store: Arc<dyn Store> = Arc::new(store);
    let (tcp, beside, address) = listen::both(address)?;
    let (unix, _socket) = OwnerSocket::bind(&context.settings.data_dir.join(OWNER_SOCKET))?;
    let own_url = format!("http://{}", listen::reachable(address));
    let public_url = settings.public_url.as_deref().unwrap_or(&own_url);
    let console = chosen.unwrap_or_else(|| Console::for_public_url(public_url));
    let log = Arc::new(started(DisclosureLog::start(Arc::clone(&store)))?);
    let _updater = started(IndexUpdater::start(Arc::clone(&store)))?;
    let service = Service::new(
        Arc::clone(&store),
        key,
        Arc::clone(&clock),
        public_url,
        Arc::clone(&log),
    )
    .with_console(console.clone())
    .with_documents(Arc::new(documents::Guarded::default()))
    .with_trusted_proxies(settings.trusted_proxies)
    .with_limits(limits(settings.calls_per_minute))
    .at_own_addresses(settings.public_url.is_none() && address.ip().is_unspecified());
    let way_in = way_in(context, (&*store, clock.now()), has_password);

    let runtime = started(Runtime::new())?;
    let served = runtime.block_on(async {
        let mut stop = started(Stop::new())?;
        let tcp = started(tokio::net::TcpListener::from_std(tcp))?;
        let beside = beside.map(tokio::net::TcpListener::from_std).transpose();
        let tcp = Listeners::from(tcp).and(started(beside)?);
        let unix = started(tokio::net::UnixListener::from_std(unix))?;
        announce(context, (public_url, &own_url), &console, &way_in);
        warn_of_rollback(context, &*store);
        let serving = serve(service, (tcp, unix), capacity, &mut stop);
        tokio::select! { () = serving => {}, () = tend(&*clock, rules, &store) => {} }
        Ok(())
    });
    runtime.shutdown_timeout(LAST_WORK);
    let flushed = log
        .flush()
        .map_err(|error| Failure::new(error.to_string()).hint("see whether the disk is full"));
    served.and(flushed)
}

/// The usual limits, but for how often tools may be called where that was set.
fn limits(calls_per_minute: Option<u32>) -> Limits {
    let usual = Limits::default();
    Limits {
        calls_per_minute: calls_per_minute.unwrap_or(usual.calls_per_minute),
        ..usual
    }
}

fn started<T>(result: io::Result<T>) -> Outcome<T> {
    result.map_err(|error| Failure::new(format!("the server cannot start: {error}")))
}

/// Clients that are refused cannot tell the owner why.
fn warn_of_rollback(context: &Context, store: &dyn Store) {
    if let Some(rollback) = store.rolled_back() {
        let accept = context.line("doctor").flag("accept-rollback");
        let looks = context.line("doctor");
        context.output.problem(&format!(
            "warning: {rollback}. No client is answered: `{looks}` says what to do, `{accept}` takes the data as it is"
        ));
    }
}

/// Whether the owner has a password; the one of the environment is set where there is none.
fn password_is_set(store: &dyn Store, now: Instant) -> Outcome<bool> {
    if grants::sign_in::has_password(store, now)? {
        return Ok(true);
    }
    let Some(password) = owner_password()? else {
        return Ok(false);
    };
    grants::sign_in::set_password(store, &password, now)
        .map_err(|error| Failure::new(format!("PDPP_OWNER_PASSWORD: {error}")))?;
    Ok(true)
}

/// A new code to sign in with. On a full disk there is none, and all else is served.
fn sign_in_code(context: &Context, store: &dyn Store, now: Instant) -> Option<Secret> {
    match grants::sign_in::new_code(store, now) {
        Ok(code) => Some(code),
        Err(error) => {
            let message = format!("warning: no sign-in code can be made: {error}");
            context.output.problem(&message);
            None
        }
    }
}

/// How the owner comes in, as far as the start tells it.
enum WayIn {
    Password,
    /// A link with a code, which is for the person at the terminal alone.
    Link(Secret),
    /// The link is made when it is asked for: nobody is at a terminal, and what is printed is kept as a log is.
    Later,
}

fn way_in(context: &Context, (store, now): (&dyn Store, Instant), has_password: bool) -> WayIn {
    if has_password {
        return WayIn::Password;
    }
    let watched = context.output.is_watched();
    let code = watched.then(|| sign_in_code(context, store, now)).flatten();
    code.map_or(WayIn::Later, WayIn::Link)
}

fn announce(
    context: &Context,
    (public_url, own_url): (&str, &str),
    console: &Console,
    way_in: &WayIn,
) {
    let public_url = public_url.trim_end_matches('/');
    let output = context.output;
    output.note(&format!("API: {public_url}/v1"));
    if public_url != own_url {
        output.note(&format!("Listening: {own_url}"));
    }
    let pages = console.origin();
    match way_in {
        // Shown once, good for a quarter of an hour.
        WayIn::Link(code) => {
            output.for_people(&format!("Console: {pages}/sign-in?code={}", code.expose()));
        }
        WayIn::Password => output.note(&format!("Console: {pages}/")),
        WayIn::Later => {
            output.note(&format!("Console: {pages}/"));
            output.note(&format!("Sign in: {}", context.line("sign-in")));
        }
    }
    output.note(&format!("MCP: {public_url}/mcp"));
    output.note(&format!(
        "Connect: claude mcp add --transport http pdpp {public_url}/mcp"
    ));
    output.note(&format!("Tokens: {}", context.granting("NAME")));
}

/// Does beside serving what is to be done from time to time. It never ends.
async fn tend(clock: &dyn Clock, rules: KeepRules, store: &Arc<dyn Store>) {
    tokio::join!(look_at(clock), rest::enforce_retention(rules, store));
}

/// Looks at the clock from time to time, so that the time of a server that nobody asks is known to have passed.
async fn look_at(clock: &dyn Clock) {
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        clock.now();
    }
}

/// Serves both listeners until the first signal and until what is under way has ended, or a second signal comes.
async fn serve(
    service: Service,
    (tcp, unix): (Listeners, tokio::net::UnixListener),
    capacity: Capacity,
    stop: &mut Stop,
) {
    let (stopping, stopped) = watch::channel(false);
    let told = |mut stopped: watch::Receiver<bool>| async move {
        // A sender that is gone will not let anybody serve on either.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let router = rest::router(service.clone());
    let clients = rest::serve_within(capacity, tcp, router, told(stopped.clone()));
    let owner = rest::serve_on(unix, rest::owner_router(service), told(stopped));
    let signals = async {
        stop.signalled().await;
        stopping.send_replace(true);
        stop.signalled().await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(clients, owner) } => {}
        () = signals => {}
    }
}
