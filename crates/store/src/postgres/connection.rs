//! A connection to the database, driven by the thread that waits for it.
//!
//! The thread that asks sends by itself, sleeps until the socket has something, and reads by itself. With a thread of its own for
//! that, every answer would have to wake one more.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Token};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

use super::address::Address;
use super::failure;
use super::waiting::Waiting;
use crate::{Result, StoreError};

/// How long it may take to reach a server and to be let in.
const OPEN_WITHIN: Duration = Duration::from_secs(4);

type Outcome<T> = std::result::Result<T, tokio_postgres::Error>;

pub(super) struct Connection {
    /// None while it is dropped.
    client: Option<Client>,
    wires: Wires,
}

/// What moves between the socket and the client.
struct Wires {
    /// None once the connection has ended.
    exchange: Option<Pin<Box<dyn Future<Output = Outcome<()>> + Send>>>,
    ready: mio::Poll,
    events: Events,
}

impl Connection {
    /// Connects to the first server of the address that takes it.
    pub(super) fn open(address: &Address, waiting: &Waiting) -> Result<Self> {
        let until = Instant::now() + OPEN_WITHIN;
        let mut failed = StoreError::Unavailable {
            place: address.place.clone(),
            detail: "its address leads nowhere".to_owned(),
        };
        for server in servers(&address.config) {
            let found = match server.sockets(waiting, until) {
                Ok(found) => found,
                Err(error) => {
                    failed = unreachable(address, &error);
                    continue;
                }
            };
            for socket in found {
                let opened = socket
                    .connect(&address.config)
                    .map_err(|error| unreachable(address, &error))
                    .and_then(|wire| Self::over(wire, &server.name, address, until));
                match opened {
                    Ok(connection) => return Ok(connection),
                    Err(error) => failed = error,
                }
            }
        }
        Err(failed)
    }

    fn over(wire: Wire, name: &str, address: &Address, until: Instant) -> Result<Self> {
        let lost = |error: io::Error| unreachable(address, &error);
        let mut wire = wire;
        let mut wires = Wires {
            exchange: None,
            ready: mio::Poll::new().map_err(lost)?,
            events: Events::with_capacity(4),
        };
        wire.register(wires.ready.registry()).map_err(lost)?;
        let late = || lost(io::ErrorKind::TimedOut.into());
        let mut tls = address.tls.clone();
        let tls = MakeTlsConnect::<Wire>::make_tls_connect(&mut tls, name);
        let tls = tls.map_err(|error| StoreError::DatabaseRefused {
            place: address.place.clone(),
            detail: failure::with_causes(&error),
        })?;
        let let_in = wires.wait(address.config.connect_raw(wire, tls), until);
        let (client, exchange) = let_in
            .ok_or_else(late)?
            .map_err(|error| failure::connecting(&address.place, &error))?;
        wires.exchange = Some(Box::pin(exchange));
        let mut connection = Self {
            client: Some(client),
            wires,
        };
        connection.refuse_other_kind(address, until)?;
        Ok(connection)
    }

    /// Refuses a server that only reads, or only one that writes, where the address asks for the other kind.
    fn refuse_other_kind(&mut self, address: &Address, until: Instant) -> Result<()> {
        let wanted = address.config.get_target_session_attrs();
        if wanted == TargetSessionAttrs::Any {
            return Ok(());
        }
        let place = address.place.clone();
        let told = self.wait(
            async |client| client.simple_query("SHOW transaction_read_only").await,
            until,
        );
        let told = told.ok_or_else(|| unreachable(address, &io::ErrorKind::TimedOut.into()))?;
        let told = told.map_err(|error| failure::connecting(&place, &error))?;
        let only_reads = told.iter().any(
            |message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("on")),
        );
        match wanted {
            TargetSessionAttrs::ReadWrite if only_reads => {
                Err(StoreError::DatabaseReadOnly { place })
            }
            TargetSessionAttrs::ReadOnly if !only_reads => Err(StoreError::Unavailable {
                place,
                detail: "the database is not read only".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Runs a statement to its end on this thread; `None` where that is not reached in time.
    pub(super) fn wait<T>(
        &mut self,
        statement: impl AsyncFnOnce(&Client) -> T,
        until: Instant,
    ) -> Option<T> {
        let client = self.client.as_ref()?;
        self.wires.wait(statement(client), until)
    }

    /// Whether it has ended, as far as the socket tells without waiting.
    pub(super) fn has_ended(&mut self) -> bool {
        self.wires.turn(&mut Context::from_waker(Waker::noop()));
        self.is_closed()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.wires.exchange.is_none()
    }
}

impl Drop for Connection {
    /// The server is told that nothing more comes.
    fn drop(&mut self) {
        drop(self.client.take());
        self.wires.turn(&mut Context::from_waker(Waker::noop()));
    }
}

impl Wires {
    fn turn(&mut self, context: &mut Context<'_>) {
        if let Some(exchange) = &mut self.exchange
            && exchange.as_mut().poll(context).is_ready()
        {
            self.exchange = None;
        }
    }

    fn wait<F: Future>(&mut self, future: F, until: Instant) -> Option<F::Output> {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            self.turn(&mut context);
            // Each wakes the other when it has something for it; the socket is waited for when neither has.
            if woken.0.swap(false, Ordering::AcqRel) {
                continue;
            }
            let left = until.checked_duration_since(Instant::now())?;
            match self.ready.poll(&mut self.events, Some(left)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return None,
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn unreachable(address: &Address, error: &io::Error) -> StoreError {
    StoreError::Unavailable {
        place: address.place.clone(),
        detail: format!("error connecting to server: {error}"),
    }
}

/// A server as the address names it.
struct Server {
    /// What its certificate must be for.
    name: String,
    host: Host,
    port: u16,
}

fn servers(config: &Config) -> Vec<Server> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let server = |at: usize| {
        let ports = config.get_ports();
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let address = addresses
            .get(at)
            .map(|address| Host::Tcp(address.to_string()));
        let host = address.or_else(|| hosts.get(at).cloned())?;
        let name = match hosts.get(at).unwrap_or(&host) {
            Host::Tcp(name) => name.clone(),
            Host::Unix(_) => String::new(),
        };
        Some(Server { name, host, port })
    };
    (0..hosts.len().max(addresses.len()))
        .filter_map(server)
        .collect()
}

impl Server {
    fn sockets(&self, waiting: &Waiting, until: Instant) -> io::Result<Vec<Socket>> {
        match &self.host {
            Host::Unix(folder) => Ok(vec![Socket::Unix(
                folder.join(format!(".s.PGSQL.{}", self.port)),
            )]),
            Host::Tcp(name) => {
                let left = until.saturating_duration_since(Instant::now());
                let found = async {
                    let looked_up = tokio::net::lookup_host((name.as_str(), self.port));
                    tokio::time::timeout(left, looked_up).await?
                };
                Ok(waiting.wait(found)?.map(Socket::Tcp).collect())
            }
        }
    }
}

enum Socket {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

impl Socket {
    fn connect(&self, config: &Config) -> io::Result<Wire> {
        match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Wire::Unix(mio::net::UnixStream::from_std(stream)))
            }
            Self::Tcp(address) => {
                let within = config.get_connect_timeout().copied().unwrap_or(OPEN_WITHIN);
                let stream = TcpStream::connect_timeout(address, within)?;
                stream.set_nodelay(true)?;
                let socket = SockRef::from(&stream);
                #[cfg(target_os = "linux")]
                socket.set_tcp_user_timeout(config.get_tcp_user_timeout().copied())?;
                if config.get_keepalives() {
                    let mut keeping = TcpKeepalive::new().with_time(config.get_keepalives_idle());
                    if let Some(interval) = config.get_keepalives_interval() {
                        keeping = keeping.with_interval(interval);
                    }
                    if let Some(retries) = config.get_keepalives_retries() {
                        keeping = keeping.with_retries(retries);
                    }
                    socket.set_tcp_keepalive(&keeping)?;
                }
                stream.set_nonblocking(true)?;
                Ok(Wire::Tcp(mio::net::TcpStream::from_std(stream)))
            }
        }
    }
}

/// A socket that never waits; [`Wires::wait`] does.
enum Wire {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Wire {
    fn register(&mut self, registry: &mio::Registry) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, Token(0), interest),
            Self::Unix(stream) => registry.register(stream, Token(0), interest),
        }
    }
}

/// Not ready yet where the socket has nothing or takes nothing; there is nobody to wake then.
fn now<T>(mut attempt: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            done => return Poll::Ready(done),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        let room = buffer.initialize_unfilled();
        let read = now(|| match wire {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        });
        read.map_ok(|bytes| buffer.advance(bytes))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        now(|| match wire {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let both = std::net::Shutdown::Write;
        Poll::Ready(match self.get_mut() {
            Self::Tcp(stream) => stream.shutdown(both),
            Self::Unix(stream) => stream.shutdown(both),
        })
    }
}
