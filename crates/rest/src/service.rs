//! What the surface stands on: the store, the key that seals cursors, the clock, the public address and the disclosure log.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use contract::error::{ErrorCode, ReadError};
use contract::seal::SealingKey;
use contract::time::{Clock, Instant};
use grants::DisclosureLog;
use grants::oauth::Issuer;
use grants::sign_in::{Console, Throttle};
use read::{Disclosure, Disclosures, ReaderSettings};
use store::Store;

use crate::auth::Caller;
use crate::console::Turns;
use crate::line::{Line, Place};
use crate::metrics::Metrics;
use crate::oauth::{Arrivals, ClientDocuments};
use crate::problem::Problem;
use crate::table::Verb;

/// Everything the routes need. Cheap to clone; clones share their figures.
#[derive(Clone)]
pub struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) disclosures: Arc<DisclosureLog>,
    pub(crate) reading: ReaderSettings,
    pub(crate) public_url: Arc<str>,
    /// Where the owner's pages are.
    pub(crate) console: Arc<Console>,
    /// Whether clients and browsers reach it at all.
    pub(crate) listening: bool,
    /// Whether the addresses of this machine's interfaces are its hosts.
    pub(crate) at_own_addresses: bool,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    /// Where reads and calls of tools wait for their turn.
    pub(crate) line: Line,
    /// What slows guessing at the sign-in page.
    pub(crate) throttle: Arc<Throttle>,
    /// Whose password is checked next.
    pub(crate) turns: Turns,
    /// What bounds how much strangers can make the server remember.
    pub(crate) arrivals: Arrivals,
    /// Who fetches client metadata documents, if anybody does.
    pub(crate) documents: Option<Arc<dyn ClientDocuments>>,
    /// Whose word on where a request came from is taken.
    pub(crate) proxies: Arc<[IpAddr]>,
}

/// How much one request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of an ingest request, as sent.
    pub ingest_bytes: u64,
    /// The most an ingest body may unfold to.
    pub unpacked_bytes: u64,
    /// The most lines of an ingest body; each may need a receipt.
    pub ingest_lines: u64,
    /// The largest blob.
    pub blob_bytes: u64,
    /// The largest declaration.
    pub declaration_bytes: u64,
    /// How long a read may take.
    pub read_time: Duration,
    /// How long a write may take.
    pub write_time: Duration,
    /// How long a body may pause.
    pub body_pause: Duration,
    /// How many tool calls a grant may make in a minute.
    pub calls_per_minute: u32,
}

const MIB: u64 = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            ingest_bytes: 50 * MIB,
            unpacked_bytes: 512 * MIB,
            ingest_lines: 500_000,
            blob_bytes: 1024 * MIB,
            declaration_bytes: 4 * MIB,
            read_time: Duration::from_secs(30),
            write_time: Duration::from_mins(10),
            body_pause: Duration::from_secs(30),
            calls_per_minute: 600,
        }
    }
}

impl Limits {
    /// How long an answer to a request may take.
    pub(crate) fn time_for(&self, verb: Verb) -> Duration {
        match verb {
            Verb::Get => self.read_time,
            Verb::Post | Verb::Delete => self.write_time,
        }
    }
}

impl Service {
    /// A service with the default limits. `public_url` is the address clients reach it at.
    pub fn new(
        store: Arc<dyn Store>,
        sealing_key: SealingKey,
        clock: Arc<dyn Clock>,
        public_url: &str,
        disclosures: Arc<DisclosureLog>,
    ) -> Self {
        let public_url = public_url.trim_end_matches('/');
        Self {
            store,
            reading: ReaderSettings {
                sealing_key,
                public_url: Some(public_url.to_owned()),
                clock,
                disclosures: Some(Arc::new(Noting(Arc::clone(&disclosures)))),
            },
            disclosures,
            public_url: public_url.into(),
            console: Arc::new(Console::of(public_url)),
            listening: true,
            at_own_addresses: false,
            limits: Limits::default(),
            metrics: Arc::default(),
            line: Line::default(),
            throttle: Arc::default(),
            turns: Turns::default(),
            arrivals: Arrivals::default(),
            documents: None,
            proxies: Arc::default(),
        }
    }

    /// The same service where nobody listens: it tells no address, unless one was named for it.
    #[must_use]
    pub fn unheard(mut self, is_named: bool) -> Self {
        self.listening = false;
        self.reading.public_url = self.reading.public_url.filter(|_| is_named);
        self
    }

    /// The same service with the owner's pages there.
    #[must_use]
    pub fn with_console(mut self, console: Console) -> Self {
        self.console = Arc::new(console);
        self
    }

    /// The same service, which may be asked also by the addresses of this machine's interfaces.
    #[must_use]
    pub fn at_own_addresses(mut self, may_be: bool) -> Self {
        self.at_own_addresses = may_be;
        self
    }

    /// The same service with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same service for clients whose id is the address of a document, which `documents` fetches.
    #[must_use]
    pub fn with_documents(mut self, documents: Arc<dyn ClientDocuments>) -> Self {
        self.documents = Some(documents);
        self
    }

    /// The same service behind these proxies, whose `X-Forwarded-For` is believed.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: Vec<IpAddr>) -> Self {
        self.proxies = proxies.into();
        self
    }

    /// A place in line for a caller, for as long as an answer may take.
    pub(crate) async fn place(&self, caller: &Caller) -> Result<Place, Problem> {
        let place = self.line.place(caller.client(), self.limits.read_time);
        let place = place.await;
        place.ok_or_else(too_busy)
    }

    /// Refuses whoever is not the owner at this machine while the store is older than what was acknowledged: a grant that
    /// was revoked may stand again.
    pub(crate) fn refuse_rolled_back(&self) -> Result<(), Problem> {
        match self.store.rolled_back() {
            None => Ok(()),
            Some(_) => Err(Problem::from(rolled_back()).with_header(RETRY_AFTER, "60")),
        }
    }

    /// The authorization server, now.
    pub(crate) fn issuer(&self) -> Issuer<'_> {
        Issuer::new(&*self.store, &self.public_url, self.now()).with_console(&self.console)
    }

    /// Whether browsers reach the pages encrypted, so that cookies may insist on that.
    pub(crate) fn is_https(&self) -> bool {
        self.console.origin().starts_with("https://")
    }

    pub(crate) fn now(&self) -> Instant {
        self.reading.clock.now()
    }

    /// Where a client learns how to be authorised (RFC 9728).
    pub(crate) fn resource_metadata(&self) -> String {
        format!("{}{}", self.public_url, crate::discovery::METADATA_PATH)
    }
}

/// What clients are told; how far the store went back is for the owner.
pub(crate) fn rolled_back() -> ReadError {
    let message = "the server's data is older than what it had acknowledged, and its owner has not confirmed that yet";
    let hint = "the owner runs `pdpp doctor` on the machine of the server, which says what to do; ask again later";
    ReadError::new(ErrorCode::StoreRolledBack, message).with_hint(hint)
}

/// Nobody is kept waiting for longer than an answer may take.
fn too_busy() -> Problem {
    let message = "the server has too much to do to answer in time";
    Problem::from(
        ReadError::new(ErrorCode::InternalError, message).with_hint("ask again in a moment"),
    )
    .with_status(StatusCode::SERVICE_UNAVAILABLE)
    .with_header(RETRY_AFTER, "1")
}

/// Hands what readers note to the log.
struct Noting(Arc<DisclosureLog>);

impl Disclosures for Noting {
    fn note(&self, disclosure: Disclosure) {
        self.0.note(store::grants::Disclosure {
            at: disclosure.at,
            grant_ids: disclosure.grant_ids,
            client_id: disclosure.client_id,
            operation: disclosure.operation.to_owned(),
            records: disclosure.records,
            fields: disclosure.fields,
        });
    }
}
