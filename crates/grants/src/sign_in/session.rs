//! Sessions: the browsers in which the owner is signed in, each under a secret of which only the hash is stored.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::registry::{Change, EntryKind, Expect};
use store::{Store, StoreError};

use super::browser::{self, Remembered};
use super::{SignInError, Visitor, same};
use crate::documents::{Found, all, find, key_of, put};
use crate::issue::after;
use crate::secret::{Secret, random_id};

/// How long a session may be unused.
const IDLE: Duration = Duration::from_hours(24 * 7);
/// How often its last use is written; not at every request.
const NOTED: Duration = Duration::from_hours(1);
const MAX_BROWSER_CHARS: usize = 200;

/// A session that just began. Its secrets are in clear here and in the browser.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// What the browser sends from now on.
    pub secret: Secret,
    /// What the browser may be made to send besides, see [`require_second`].
    pub second: Secret,
    pub id: String,
    /// What the browser sends to be known again, also after this session.
    pub browser: Secret,
}

/// A verified session. It can only be obtained from [`session`].
#[derive(Clone)]
pub struct Session {
    id: String,
    secret: Secret,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What forms of this session carry, so that no other site can send them.
    ///
    /// The label comes first: the stored hash of the secret then tells nothing about it.
    pub fn csrf_token(&self) -> Secret {
        let hash = Sha256::new()
            .chain_update(b"pdpp csrf token v1\0")
            .chain_update(self.secret.expose().as_bytes())
            .finalize();
        Secret::holding(URL_SAFE_NO_PAD.encode(hash))
    }

    /// Whether a form carries the right token.
    pub fn checks_csrf(&self, presented: &str) -> bool {
        same(&self.csrf_token(), presented)
    }
}

/// A session in the owner's list. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionOverview {
    pub id: String,
    pub browser: String,
    pub started_at: String,
    /// When it was last used, to the hour.
    pub last_used_at: String,
}

/// What a browser presents: the session's secret, and the second half where it was given one.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    pub secret: &'a str,
    pub second: Option<&'a str>,
}

impl<'a> From<&'a str> for Presented<'a> {
    fn from(secret: &'a str) -> Self {
        Self {
            secret,
            second: None,
        }
    }
}

/// Under which name browsers send the second half, as a password of HTTP's basic authentication.
const SECOND_NAME: &str = "owner";

/// The address of the pages at which a browser learns the second half: it keeps the credentials before the `@` for this
/// origin, port included, and sends them nowhere else.
pub fn with_second(origin: &str, path: &str, second: &Secret) -> Secret {
    let (scheme, authority) = origin.split_once("://").unwrap_or(("http", origin));
    let second = second.expose();
    Secret::holding(format!(
        "{scheme}://{SECOND_NAME}:{second}@{authority}{path}"
    ))
}

/// The second half in an `Authorization` header.
pub fn second_in(authorization: &str) -> Option<Secret> {
    let (scheme, encoded) = authorization.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (name, second) = text.split_once(':')?;
    (name == SECOND_NAME).then(|| Secret::holding(second.to_owned()))
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SessionEntry {
    id: String,
    browser: String,
    started_at: Instant,
    last_used_at: Instant,
    second: String,
    /// Whether the secret counts only together with it.
    needs_second: bool,
}

/// Begins a session together with other changes. `None` if those were refused.
pub(super) fn start(
    store: &dyn Store,
    visitor: &Visitor,
    with: &[Change<'_>],
    now: Instant,
) -> Result<Option<NewSession>, SignInError> {
    let secret = Secret::random("pdpp_session_")?;
    let second = Secret::random("pdpp_second_")?;
    let id = random_id("ses_")?;
    let browser = visitor.browser.chars().filter(|c| !c.is_control());
    let entry = SessionEntry {
        id: id.clone(),
        browser: browser.take(MAX_BROWSER_CHARS).collect(),
        started_at: now,
        last_used_at: now,
        second: key_of(second.expose()),
        needs_second: false,
    };
    let key = key_of(secret.expose());
    let remembered = Remembered::new(visitor.known.as_ref(), now)?;
    let mut changes = with.to_vec();
    changes.push(remembered.change());
    changes.push(used(key, &entry, Expect::Absent, now));
    let begun = store.apply(&changes, now)?;
    let browser = remembered.secret;
    Ok(begun.then_some(NewSession {
        secret,
        second,
        id,
        browser,
    }))
}

pub fn session<'a>(
    store: &dyn Store,
    presented: impl Into<Presented<'a>>,
    now: Instant,
) -> Result<Option<Session>, StoreError> {
    let presented = presented.into();
    let key = key_of(presented.secret);
    let found = find::<SessionEntry>(store, EntryKind::Session, &key, now)?;
    let counts = |found: &Found<SessionEntry>| {
        !found.value.needs_second || found.value.is_second(presented.second)
    };
    let Some(found) = found.filter(counts) else {
        return Ok(None);
    };
    if after(found.value.last_used_at, NOTED) <= now {
        let entry = SessionEntry {
            last_used_at: now,
            ..found.value.clone()
        };
        let change = used(&key, &entry, Expect::Revision(found.revision), now);
        // A concurrent request noted the same use; a session that was ended meanwhile must not come back.
        if !store.apply(&[change], now)? && store.entry(EntryKind::Session, &key, now)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(Session {
        id: found.value.id,
        secret: Secret::holding(presented.secret.to_owned()),
    }))
}

/// From now on the secret of a session is valid only together with its second half, which this browser has shown to send.
/// `false`: not both were presented.
pub fn require_second(
    store: &dyn Store,
    presented: Presented<'_>,
    now: Instant,
) -> Result<bool, StoreError> {
    let key = key_of(presented.secret);
    let found = find::<SessionEntry>(store, EntryKind::Session, &key, now)?;
    let Some(found) = found.filter(|found| found.value.is_second(presented.second)) else {
        return Ok(false);
    };
    if found.value.needs_second {
        return Ok(true);
    }
    let entry = SessionEntry {
        needs_second: true,
        ..found.value
    };
    let change = used(key, &entry, Expect::Revision(found.revision), now);
    store.apply(&[change], now)
}

/// A session that ends when it is idle for as long.
fn used(
    key: impl Into<String>,
    entry: &SessionEntry,
    expect: Expect,
    now: Instant,
) -> Change<'static> {
    let change = put(EntryKind::Session, key, entry);
    change.until(after(now, IDLE)).expecting(expect)
}

impl SessionEntry {
    /// Whether this is the second half. Hashes are compared, so the time it takes reveals nothing.
    fn is_second(&self, presented: Option<&str>) -> bool {
        presented.is_some_and(|second| key_of(second) == self.second)
    }
}

/// The owner's sessions, the last used first.
pub fn sessions(store: &dyn Store, now: Instant) -> Result<Vec<SessionOverview>, StoreError> {
    let mut found = all::<SessionEntry>(store, EntryKind::Session, now)?;
    found.sort_by_key(|entry| std::cmp::Reverse(entry.value.last_used_at));
    let overview = |entry: Found<SessionEntry>| SessionOverview {
        id: entry.value.id,
        browser: entry.value.browser,
        started_at: entry.value.started_at.to_rfc3339_millis(),
        last_used_at: entry.value.last_used_at.to_rfc3339_millis(),
    };
    Ok(found.into_iter().map(overview).collect())
}

/// Ends one session by its public name. `false` if there is no such session.
pub fn end_session(store: &dyn Store, id: &str, now: Instant) -> Result<bool, StoreError> {
    let found = all::<SessionEntry>(store, EntryKind::Session, now)?;
    let Some(entry) = found.into_iter().find(|entry| entry.value.id == id) else {
        return Ok(false);
    };
    store.apply(&[ended(&entry.key)], now)
}

pub fn end_all_sessions(store: &dyn Store, now: Instant) -> Result<(), StoreError> {
    let found = all::<SessionEntry>(store, EntryKind::Session, now)?;
    let changes: Vec<Change<'_>> = found.iter().map(|entry| ended(&entry.key)).collect();
    store.apply(&changes, now).map(drop)
}

/// Ends every session but one, by the public name of the one that stays.
pub fn end_other_sessions(store: &dyn Store, kept: &str, now: Instant) -> Result<(), StoreError> {
    let mut found = all::<SessionEntry>(store, EntryKind::Session, now)?;
    found.retain(|entry| entry.value.id != kept);
    let changes: Vec<Change<'_>> = found.iter().map(|entry| ended(&entry.key)).collect();
    store.apply(&changes, now).map(drop)
}

/// Ends every session and forgets every browser together with another change.
pub(super) fn all_ended(
    store: &dyn Store,
    with: Change<'_>,
    now: Instant,
) -> Result<(), StoreError> {
    let found = all::<SessionEntry>(store, EntryKind::Session, now)?;
    let mut changes: Vec<Change<'_>> = found.iter().map(|entry| ended(&entry.key)).collect();
    let known = browser::known(store, now)?;
    let forgotten = known
        .iter()
        .map(|key| Change::remove(EntryKind::Browser, key));
    changes.extend(forgotten);
    changes.push(with);
    store.apply(&changes, now).map(drop)
}

fn ended(key: &str) -> Change<'_> {
    Change::remove(EntryKind::Session, key)
}
