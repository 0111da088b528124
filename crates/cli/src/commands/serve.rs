//! `pdpp serve`: the API over TCP for clients with a token, and over a socket in the data directory for the owner.

mod documents;
mod files;
mod listen;
mod sample;
mod starting;

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use contract::time::{Clock, Instant};
use grants::sign_in::Console;
use grants::{DisclosureLog, Secret};
use rest::{Capacity, IndexUpdater, Limits, Listeners, Service};
use store::Store;
use store::directory::OWNER_SOCKET;
use store::keeping::KeepRules;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::commands::collect;
use crate::commands::setup::ServedSetup;
use crate::config::{DatabaseSettings, ServerSettings, owner_password};
use crate::context::Context;
use crate::database::{self, DatabaseOptions};
use crate::failure::{CommandResult, Failure};
use crate::keep;
use crate::log;
use crate::moment;
use crate::opened::Opened;
use crate::owner::{OwnerClient, OwnerSocket};
use crate::stop::Stop;

/// How often the clock is read while no request arrives.
const CLOCK_INTERVAL: Duration = Duration::from_mins(1);
/// How often the socket is tried again where there was no room for it.
const BETWEEN_BINDS: Duration = Duration::from_secs(5);
/// How long work that outlived its request may take to end.
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
    database: DatabaseOptions,
    #[arg(
        long,
        value_name = "TIME",
        value_parser = drain_time,
        help = "How long /readyz says no before a node that was told to end stops to take requests [env: PDPP_DRAIN] [default: 5s]"
    )]
    drain: Option<Duration>,
    #[command(flatten)]
    keep: keep::KeepOptions,
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    let settings =
        ServerSettings::resolve(options.listen, options.public_url, options.console_url)?
            .draining(options.drain);
    let rules = options.keep.rules(settings.keep);
    let address = listen::address(&settings.listen)?;
    let console = listen::chosen_console(&settings)?;
    let _log = or_cannot_start(log::start(settings.log))?;
    let capacity = Capacity::for_open_files(files::raise_limit()).behind(&settings.trusted_proxies);
    let database = DatabaseSettings::resolve(options.database)?;
    let is_node = database.is_some();
    // No proxy has another server for a data directory.
    let drain = settings.drain.filter(|_| is_node).unwrap_or_default();
    // Held to the end: the directory must be ours for as long as the socket in it is.
    let early = is_node.then(|| listen::bind(address)).transpose()?;
    let opened = || open(database, settings.public_url.as_deref(), context);
    let listening = early.as_ref().map(|(tcp, ..)| tcp);
    let Opened { store, key, clock } = starting::answering(listening, opened)?;
    if options.demo {
        sample::load(&*store, context)?;
    }
    let has_password = password_is_set(&*store, clock.now())?;
    let set_password = (!has_password).then(|| set_password(context, is_node));
    listen::check_exposure(address, set_password.as_deref())?;
    let (tcp, beside, address) = early.map_or_else(|| listen::bind(address), Ok)?;
    let socket = OwnerPlace::take(context)?;
    let own_url = format!("http://{}", listen::reachable(address));
    let public_url = settings.public_url.as_deref().unwrap_or(&own_url);
    let console = console.unwrap_or_else(|| Console::for_public_url(public_url));
    let log = Arc::new(or_cannot_start(DisclosureLog::start(Arc::clone(&store)))?);
    let updater = or_cannot_start(IndexUpdater::start(&store))?;
    let notify = settings.notify_command.map(rest::notify_by_command);
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
    .with_notify(or_cannot_start(notify.transpose())?)
    .with_uploads(&context.settings.data_dir.join("uploads"))
    .with_setup(Arc::new(ServedSetup::new(public_url, context)))
    .with_limits(limits(settings.calls_per_minute))
    .at_own_addresses(settings.public_url.is_none() && address.ip().is_unspecified());
    let sign_in = sign_in(context, &*store, clock.now(), has_password);

    let runtime = or_cannot_start(Runtime::new())?;
    let served = runtime.block_on(async {
        let stop = or_cannot_start(Stop::new())?;
        let tcp = or_cannot_start(tokio::net::TcpListener::from_std(tcp))?;
        let beside = beside.map(tokio::net::TcpListener::from_std).transpose();
        let tcp = Listeners::from(tcp).and(or_cannot_start(beside)?);
        announce(context, public_url, &own_url, &console, &sign_in);
        begin(context, &*store);
        let serving = serve(service, tcp, socket, capacity, Ending { stop, drain });
        tokio::select! { () = serving => {}, () = maintain(&*clock, rules, &store) => {} }
        Ok(())
    });
    runtime.shutdown_timeout(LAST_WORK);
    drop(updater);
    served.and(end_node(&*store, &log))
}

/// Writes what was disclosed, and says that this node ends. Others find out by themselves where that cannot be said.
fn end_node(store: &dyn Store, log: &DisclosureLog) -> CommandResult {
    let flushed = flush(log);
    let _ = store.leave();
    flushed
}

/// The records: those of the database, or else those of the data directory.
fn open(
    database: Option<DatabaseSettings>,
    public_url: Option<&str>,
    context: &Context,
) -> CommandResult<Opened> {
    match database {
        Some(settings) => database::open(settings, public_url, context).map(Opened::from),
        None => Ok(OwnerClient::open_for_server(context, "pdpp serve")?.try_into()?),
    }
}

/// How a password is set before others may reach the pages. No command reaches a node that does not run yet.
fn set_password(context: &Context, is_node: bool) -> String {
    if is_node {
        return "PDPP_OWNER_PASSWORD in the environment of a node that starts".to_owned();
    }
    context.command("owner-password").to_string()
}

fn flush(log: &DisclosureLog) -> CommandResult {
    log.flush()
        .map_err(|error| Failure::new(error.to_string()).hint("see whether the disk is full"))
}

/// The usual limits, but for how often tools may be called where that was set.
fn limits(calls_per_minute: Option<u32>) -> Limits {
    let usual = Limits::default();
    Limits {
        calls_per_minute: calls_per_minute.unwrap_or(usual.calls_per_minute),
        ..usual
    }
}

fn or_cannot_start<T>(result: io::Result<T>) -> CommandResult<T> {
    result.map_err(|error| Failure::new(format!("the server cannot start: {error}")))
}

/// What a server does once it serves: it warns of what clients would be refused for, and collects what is due.
fn begin(context: &Context, store: &dyn Store) {
    collect::start_schedule(context);
    warn_of_rollback(context, store);
    warn_of_lost_time(context, store);
}

/// Clients that are refused cannot tell the owner why.
fn warn_of_rollback(context: &Context, store: &dyn Store) {
    if let Some(rollback) = store.rolled_back() {
        let accept = context.command("doctor").flag("accept-rollback");
        let looks = context.command("doctor");
        context.output.problem(&format!(
            "warning: {rollback}. No client is answered: `{looks}` says what to do, `{accept}` takes the data as it is"
        ));
    }
}

/// Without the latest time that was seen, a clock that was set back lets ended grants live again.
fn warn_of_lost_time(context: &Context, store: &dyn Store) {
    if store.time().was_lost {
        let doctor = context.command("doctor");
        context.output.problem(&format!(
            "warning: latest.time was missing, so a grant that ended lately may live again: `{doctor}` says what to do"
        ));
    }
}

/// Whether the owner has a password; the one of the environment is set where there is none.
fn password_is_set(store: &dyn Store, now: Instant) -> CommandResult<bool> {
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

/// How the owner signs in, as announced at the start.
enum SignIn {
    Password,
    /// A link with a code, which is for the person at the terminal alone.
    Link(Secret),
    /// By a link made on request: the output is not a terminal and may be kept as a log.
    OnRequest,
}

fn sign_in(context: &Context, store: &dyn Store, now: Instant, has_password: bool) -> SignIn {
    if has_password {
        return SignIn::Password;
    }
    let watched = context.output.is_interactive();
    let code = watched.then(|| sign_in_code(context, store, now)).flatten();
    code.map_or(SignIn::OnRequest, SignIn::Link)
}

fn announce(
    context: &Context,
    public_url: &str,
    own_url: &str,
    console: &Console,
    sign_in: &SignIn,
) {
    let public_url = public_url.trim_end_matches('/');
    let output = context.output;
    output.note(&format!("API: {public_url}/v1"));
    if public_url != own_url {
        output.note(&format!("Listening: {own_url}"));
    }
    let pages = console.origin();
    match sign_in {
        // Shown once, good for a quarter of an hour.
        SignIn::Link(code) => {
            output.terminal_only(&format!("Console: {pages}/sign-in?code={}", code.expose()));
        }
        SignIn::Password => output.note(&format!("Console: {pages}/")),
        SignIn::OnRequest => {
            output.note(&format!("Console: {pages}/"));
            output.note(&format!("Sign in: {}", context.command("sign-in")));
        }
    }
    output.note(&format!("MCP: {public_url}/mcp"));
    output.note(&format!(
        "Connect: claude mcp add --transport http pdpp {public_url}/mcp"
    ));
    output.note(&format!("Tokens: {}", context.granting("NAME")));
}

/// Periodic maintenance while serving. It never ends.
async fn maintain(clock: &dyn Clock, rules: KeepRules, store: &Arc<dyn Store>) {
    tokio::join!(keep_time(clock), rest::enforce_retention(rules, store));
}

/// Reads the clock periodically, so that an idle server also notes that time has passed.
async fn keep_time(clock: &dyn Clock) {
    loop {
        tokio::time::sleep(CLOCK_INTERVAL).await;
        clock.now();
    }
}

/// The owner's socket, or where it will be once there is room for it: clients are served meanwhile.
struct OwnerPlace {
    path: PathBuf,
    bound: Option<(UnixListener, OwnerSocket)>,
}

impl OwnerPlace {
    fn take(context: &Context) -> CommandResult<Self> {
        let path = context.settings.data_dir.join(OWNER_SOCKET);
        let bound = match OwnerSocket::bind_if_room(&path)? {
            Ok(bound) => Some(bound),
            Err(error) => {
                context.output.problem(&format!(
                    "warning: {}: {error}. Clients are served, but other commands cannot reach this server until there is room: make some, a few KiB are enough",
                    path.display()
                ));
                None
            }
        };
        Ok(Self { path, bound })
    }

    /// The listener, as soon as it can be had; none where it never can.
    async fn bound(self) -> Option<(tokio::net::UnixListener, OwnerSocket)> {
        let mut bound = self.bound;
        loop {
            if let Some((unix, socket)) = bound {
                return Some((tokio::net::UnixListener::from_std(unix).ok()?, socket));
            }
            tokio::time::sleep(BETWEEN_BINDS).await;
            bound = OwnerSocket::bind_if_room(&self.path).ok()?.ok();
        }
    }
}

/// How serving ends: at a signal, after the time in which proxies are told to send requests elsewhere.
struct Ending {
    stop: Stop,
    drain: Duration,
}

/// How long to drain, as people write it.
pub(crate) fn drain_time(text: &str) -> Result<Duration, String> {
    moment::span(text).ok_or_else(|| "write a time such as 5s or 1m".to_owned())
}

/// Serves both listeners until the first signal and until what is under way has ended, or a second signal comes.
async fn serve(
    service: Service,
    tcp: Listeners,
    socket: OwnerPlace,
    capacity: Capacity,
    ending: Ending,
) {
    let (stopping, stopped) = watch::channel(false);
    let until_stopped = |mut stopped: watch::Receiver<bool>| async move {
        // A dropped sender also means stop.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let router = rest::router(service.clone());
    let drained = service.clone();
    let clients = rest::serve_within(capacity, tcp, router, until_stopped(stopped.clone()));
    let owner = async {
        let bound = tokio::select! {
            bound = socket.bound() => bound,
            () = until_stopped(stopped.clone()) => None,
        };
        if let Some((unix, _kept)) = bound {
            rest::serve_on(
                unix,
                rest::owner_router(service),
                until_stopped(stopped.clone()),
            )
            .await;
        }
    };
    let signals = async {
        let Ending { mut stop, drain } = ending;
        stop.signalled().await;
        drained.drain();
        let second = tokio::time::timeout(drain, stop.signalled()).await;
        stopping.send_replace(true);
        if second.is_err() {
            stop.signalled().await;
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(clients, owner) } => {}
        () = signals => {}
    }
}
