//! The dependencies of all routes: store, sealing key, clock, public URL, disclosure log, limits.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use contract::error::{ErrorCode, ReadError};
use contract::id::GrantId;
use contract::seal::SealingKey;
use contract::time::{Clock, Instant};
use grants::DisclosureLog;
use grants::budget::Meter;
use grants::oauth::Issuer;
use grants::sign_in::Console;
use read::{Disclosures, NotNoted, ReaderSettings};
use store::Store;
use store::grants::Disclosure;

use crate::admission::{Permit, Queue};
use crate::agent_setup::AgentSetup;
use crate::auth::Caller;
use crate::console::{ImportJobs, PasswordQueue, Readings};
use crate::metrics::Metrics;
use crate::notify::{Event, Notices, Notify};
use crate::oauth::{ClientDocuments, RegistrationLimit};
use crate::owner::maintenance::BackupOutcomes;
use crate::problem::Problem;
use crate::table::Verb;

/// Everything the routes need. Cheap to clone; clones share metrics and limits.
#[derive(Clone)]
pub struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) disclosures: Arc<DisclosureLog>,
    pub(crate) reader_settings: ReaderSettings,
    pub(crate) public_url: Arc<str>,
    pub(crate) console: Arc<Console>,
    /// Whether a server listens for clients and browsers.
    pub(crate) listening: bool,
    /// Whether addresses of this machine's interfaces are valid hosts.
    pub(crate) at_own_addresses: bool,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) admission: Queue,
    pub(crate) password_queue: PasswordQueue,
    /// Limits what strangers can store.
    pub(crate) registrations: RegistrationLimit,
    /// Fetches client metadata documents, if enabled.
    pub(crate) documents: Option<Arc<dyn ClientDocuments>>,
    pub(crate) proxies: Arc<[IpAddr]>,
    /// What the last backups found damaged.
    pub(crate) backups: Arc<BackupOutcomes>,
    /// Where files that were uploaded in the browser wait to be imported.
    pub(crate) uploads: Option<Arc<Path>>,
    /// Imports of uploads that run, or came to their end.
    pub(crate) imports: Arc<ImportJobs>,
    /// How agents are connected, if the program knows.
    pub(crate) setup: Option<Arc<dyn AgentSetup>>,
    /// What clients were shown lately.
    pub(crate) readings: Arc<Readings>,
    pub(crate) notices: Notices,
    draining: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of an ingest request, as sent.
    pub ingest_bytes: u64,
    /// The largest ingest body after decompression.
    pub unpacked_bytes: u64,
    /// The most lines of an ingest body; each may need a receipt.
    pub ingest_lines: u64,
    pub blob_bytes: u64,
    /// The largest upload of exports in the browser.
    pub upload_bytes: u64,
    /// The largest declaration.
    pub declaration_bytes: u64,
    pub read_time: Duration,
    pub write_time: Duration,
    pub body_pause: Duration,
    pub calls_per_minute: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit {
    pub(crate) bytes: u64,
    pub(crate) pause: Duration,
}

const MIB: u64 = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            ingest_bytes: 50 * MIB,
            unpacked_bytes: 512 * MIB,
            ingest_lines: 500_000,
            blob_bytes: 1024 * MIB,
            upload_bytes: 4096 * MIB,
            declaration_bytes: 4 * MIB,
            read_time: Duration::from_secs(30),
            write_time: Duration::from_mins(10),
            body_pause: Duration::from_secs(30),
            calls_per_minute: 600,
        }
    }
}

impl Limits {
    pub(crate) fn body(&self, bytes: u64) -> BodyLimit {
        BodyLimit {
            bytes,
            pause: self.body_pause,
        }
    }

    pub(crate) fn time_for(&self, verb: Verb) -> Duration {
        match verb {
            Verb::Get => self.read_time,
            Verb::Post | Verb::Delete => self.write_time,
        }
    }
}

impl Service {
    /// Whether records can be searched by meaning.
    pub(crate) fn has_model(&self) -> bool {
        self.store.model().is_some()
    }

    /// A service with the default limits. `public_url` is the address clients reach it at.
    pub fn new(
        store: Arc<dyn Store>,
        sealing_key: SealingKey,
        clock: Arc<dyn Clock>,
        public_url: &str,
        disclosures: Arc<DisclosureLog>,
    ) -> Self {
        let public_url = public_url.trim_end_matches('/');
        let notices = Notices::default();
        let registrations = RegistrationLimit::new(Arc::clone(&store));
        let sink = DisclosureSink {
            notices: notices.clone(),
            log: Arc::clone(&disclosures),
            meter: Meter::new(Arc::clone(&store)),
            clock: Arc::clone(&clock),
        };
        Self {
            store,
            reader_settings: ReaderSettings {
                sealing_key,
                public_url: public_url.to_owned(),
                clock,
                disclosures: Some(Arc::new(sink)),
                max_bytes: None,
            },
            disclosures,
            public_url: public_url.into(),
            console: Arc::new(Console::for_public_url(public_url)),
            listening: true,
            at_own_addresses: false,
            limits: Limits::default(),
            metrics: Arc::default(),
            admission: Queue::default(),
            password_queue: PasswordQueue::default(),
            registrations,
            documents: None,
            proxies: Arc::default(),
            backups: Arc::default(),
            uploads: None,
            imports: Arc::default(),
            readings: Arc::default(),
            setup: None,
            notices,
            draining: Arc::default(),
        }
    }

    /// The service without a listener. Citations lead to the address that a server with the same settings has.
    #[must_use]
    pub fn not_listening(mut self) -> Self {
        self.listening = false;
        self
    }

    #[must_use]
    pub fn with_console(mut self, console: Console) -> Self {
        self.console = Arc::new(console);
        self
    }

    /// Accepts the addresses of this machine's interfaces as hosts.
    #[must_use]
    pub fn at_own_addresses(mut self, may_be: bool) -> Self {
        self.at_own_addresses = may_be;
        self
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn with_documents(mut self, documents: Arc<dyn ClientDocuments>) -> Self {
        self.documents = Some(documents);
        self
    }

    /// Takes files in the browser, and keeps them in this folder until they are imported.
    #[must_use]
    pub fn with_uploads(mut self, folder: &Path) -> Self {
        self.uploads = Some(folder.into());
        self
    }

    /// Says how agents are connected.
    #[must_use]
    pub fn with_setup(mut self, setup: Arc<dyn AgentSetup>) -> Self {
        self.setup = Some(setup);
        self
    }

    /// Tells the owner of a new client, an approval and a pause.
    #[must_use]
    pub fn with_notify(self, notify: Option<Notify>) -> Self {
        if let Some(notify) = notify {
            self.notices.send_to(notify);
        }
        self
    }

    /// Trusts the `X-Forwarded-For` of these proxies.
    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: Vec<IpAddr>) -> Self {
        self.proxies = proxies.into();
        self
    }

    /// From now on `/readyz` says that requests had better go elsewhere. Those that come are answered as before.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Waits for a slot, at most for the time limit of a read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<Permit, Problem> {
        let permit = self
            .admission
            .acquire(caller.client(), self.limits.read_time);
        permit.await.ok_or_else(too_busy)
    }

    /// Refuses everybody but the owner at this machine while the store is older than what was acknowledged: a revoked
    /// grant may be active again.
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

    /// Whether the pages use HTTPS, so that cookies may be `Secure`.
    pub(crate) fn is_https(&self) -> bool {
        self.console.origin().starts_with("https://")
    }

    pub(crate) fn now(&self) -> Instant {
        self.reader_settings.clock.now()
    }

    /// The URL of the protected resource metadata (RFC 9728).
    pub(crate) fn resource_metadata(&self) -> String {
        format!("{}{}", self.public_url, crate::discovery::METADATA_PATH)
    }
}

/// The error for clients; details of the rollback are for the owner.
pub(crate) fn rolled_back() -> ReadError {
    let message =
        "the data is older than what was acknowledged, and its owner has not confirmed that yet";
    let hint =
        "the owner runs `pdpp doctor` where the data is, which says what to do; ask again later";
    ReadError::new(ErrorCode::StoreRolledBack, message).with_hint(hint)
}

/// The error when no slot was free in time.
fn too_busy() -> Problem {
    let message = "the server has too much to do to answer in time";
    Problem::from(
        ReadError::new(ErrorCode::InternalError, message).with_hint("ask again in a moment"),
    )
    .with_status(StatusCode::SERVICE_UNAVAILABLE)
    .with_header(RETRY_AFTER, "1")
}

/// Forwards disclosures of readers to the log, as far as budgets allow them.
struct DisclosureSink {
    log: Arc<DisclosureLog>,
    meter: Meter,
    notices: Notices,
    clock: Arc<dyn Clock>,
}

impl Disclosures for DisclosureSink {
    fn note(&self, disclosure: Disclosure) -> Result<(), NotNoted> {
        let taken = self.meter.take(&disclosure);
        let paused = taken.map_err(|refusal| NotNoted::Refused(Box::new(refusal)))?;
        for grant_id in paused {
            self.notices.tell(&Event::Paused { grant_id });
        }
        let noted = self.log.note(disclosure);
        noted.map_err(|error| NotNoted::Unlogged(error.in_public))
    }

    fn admit(&self, grants: &BTreeSet<GrantId>) -> Result<(), ReadError> {
        self.meter.admit(grants, self.clock.now())
    }

    fn counts_bytes(&self, grants: &BTreeSet<GrantId>) -> bool {
        self.meter.counts_bytes(grants, self.clock.now())
    }
}
