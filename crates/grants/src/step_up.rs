//! Asking for more than a grant gives, in the middle of a call, and what the owner allows.
//!
//! A refused call may leave an *ask*: what it named beyond its grant. The owner sees that difference alone
//! ([`difference`]) and allows it once, for ten minutes, or for as long as the grant lives. What is allowed is an *extension*
//! of the grant, kept beside it: the grant itself stays as it was approved. Asks are few, are not repeated, and can be
//! switched off.

mod difference;

use std::collections::BTreeMap;
use std::time::Duration;

use contract::grant::{GrantedAuthority, GrantedRow, Redaction};
use contract::id::{ClientId, ConnectorKey, FieldName, GrantId};
use contract::seal;
use contract::step_up::Beyond;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::registry::{Change, EntryKind, Expect};
use store::{Store, StoreError};

use self::difference::Base;
use crate::documents::{Found, all, find, put, text};
use crate::issue::{IssuedStream, after};
use crate::words::Wording;

/// How many different things one grant may ask for in a day.
pub const ASKS_PER_DAY: usize = 10;
const DAY: Duration = Duration::from_hours(24);
const TEN_MINUTES: Duration = Duration::from_mins(10);
/// How long one call of a tool may go on reading what was allowed once.
const ONE_CALL: Duration = Duration::from_mins(1);
/// Names that one ask may list.
const MAX_NAMES: usize = 64;

contract::names! {
    /// For how long the owner allows what was asked for.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Allowance {
        /// For the next call that needs it, within ten minutes; all that one call of a tool reads is one.
        Once = "once",
        TenMinutes = "ten_minutes",
        /// For as long as the grant lives.
        Lasting = "lasting",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    Open,
    Denied,
    Allowed,
}

/// What a client asked for beyond its grant. It is forgotten after a day, and until then not asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: String,
    pub grant_id: GrantId,
    pub client_id: ClientId,
    pub beyond: Beyond,
    pub asked_at: Instant,
    pub state: AskState,
}

/// A row that an extension adds, or adds fields to, with everything that limits it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedRow {
    pub connector: ConnectorKey,
    #[serde(flatten)]
    pub given: IssuedStream,
    /// How much of these fields the grant gives by itself; they are added whole.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub until_now: BTreeMap<FieldName, Redaction>,
}

impl ExtendedRow {
    /// Which records it is about, and which fields the grant gave a part of until now. Never empty.
    pub fn limits(&self, wording: &Wording) -> Vec<String> {
        let mut limits = wording.limits(&self.given.granted());
        if limits.is_empty() {
            limits.push("all records".to_owned());
        }
        let until_now = self.until_now.iter();
        limits.extend(until_now.map(|(field, part)| wording.now_whole(field, *part)));
        limits
    }

    /// All of it in one line.
    pub fn words(&self) -> String {
        let wording = Wording::whole(str::to_owned);
        let fields = self.given.fields.iter().map(FieldName::as_str);
        format!(
            "{} of {}: {}; {}",
            self.given.stream,
            self.given.connection_id,
            wording.names("field", fields),
            self.limits(&wording).join("; ")
        )
    }
}

/// What the owner allowed beside a grant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    pub grant_id: GrantId,
    pub beyond: Beyond,
    pub rows: Vec<ExtendedRow>,
    pub allowance: Allowance,
    pub allowed_at: Instant,
    /// `None` for as long as the grant lives.
    pub until: Option<Instant>,
    /// The call that what was allowed once is used by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
}

/// What allowing an ask would give, as things are now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub ask: Ask,
    /// Empty where nothing of that name exists.
    pub rows: Vec<ExtendedRow>,
    /// Whether the grant limits its own records: by rules, times, lists of records or parts of fields.
    pub has_limits: bool,
    /// Of all the above; what is allowed must be what was shown.
    pub digest: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("nothing is asked under this id, or it was decided already")]
    Unknown,
    #[error("there is nothing of that name to allow")]
    Nothing,
    #[error("what would be allowed has changed; look at it once more")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Result<T, E = StoreError> = std::result::Result<T, E>;

fn key(grant: &GrantId, beyond: &Beyond) -> String {
    format!("{grant}.{:016x}", seal::digest([text(beyond).as_str()]))
}

/// Leaves an ask, and gives its id; `None` where the client may not ask, has asked too often, or was told no.
pub fn ask(
    store: &dyn Store,
    grant: &GrantId,
    client: &ClientId,
    beyond: &Beyond,
    now: Instant,
) -> Result<Option<String>> {
    let names = beyond.fields.as_ref().map_or(0, Vec::len);
    if names > MAX_NAMES || !may_ask(store, grant, now)? {
        return Ok(None);
    }
    let id = key(grant, beyond);
    let asked = all::<Ask>(store, EntryKind::Ask, now)?;
    let mut own = asked.iter().filter(|ask| ask.value.grant_id == *grant);
    match own.clone().find(|ask| ask.key == id) {
        Some(known) if known.value.state == AskState::Open => return Ok(Some(id)),
        Some(known) if known.value.state == AskState::Denied => return Ok(None),
        None if own.by_ref().count() >= ASKS_PER_DAY => return Ok(None),
        // What was allowed is over, so it is asked for anew.
        Some(_) | None => {}
    }
    let ask = Ask {
        id: id.clone(),
        grant_id: grant.clone(),
        client_id: client.clone(),
        beyond: beyond.clone(),
        asked_at: now,
        state: AskState::Open,
    };
    let change = put(EntryKind::Ask, &id, &ask).until(after(now, DAY));
    store.apply(&[change], now)?;
    Ok(Some(id))
}

/// What is asked for and not decided yet, the latest first.
pub fn open_asks(store: &dyn Store, now: Instant) -> Result<Vec<Ask>> {
    let asks = all::<Ask>(store, EntryKind::Ask, now)?.into_iter();
    let asks = asks.map(|found| found.value);
    let mut asks: Vec<Ask> = asks.filter(|ask| ask.state == AskState::Open).collect();
    asks.sort_by_key(|ask| std::cmp::Reverse(ask.asked_at));
    Ok(asks)
}

/// What allowing an ask would give.
pub fn proposal(store: &dyn Store, id: &str, now: Instant) -> Result<Proposal, AskError> {
    let found = open_ask(store, id, now)?;
    Ok(propose(store, found.value, now)?)
}

fn open_ask(store: &dyn Store, id: &str, now: Instant) -> Result<Found<Ask>, AskError> {
    let found = find::<Ask>(store, EntryKind::Ask, id, now)?;
    let open = found.filter(|found| found.value.state == AskState::Open);
    open.ok_or(AskError::Unknown)
}

fn propose(store: &dyn Store, ask: Ask, now: Instant) -> Result<Proposal> {
    let base = Base::new(store, &ask.grant_id, now)?;
    let rows = base.rows(store, &ask.beyond);
    let shown = text(&json!([ask, rows]));
    Ok(Proposal {
        digest: format!("{:016x}", seal::digest([shown.as_str()])),
        has_limits: base.has_limits(),
        ask,
        rows,
    })
}

/// Allows what was shown, and nothing else.
pub fn allow(
    store: &dyn Store,
    id: &str,
    digest: &str,
    allowance: Allowance,
    now: Instant,
) -> Result<Extension, AskError> {
    let found = open_ask(store, id, now)?;
    let (key, revision, ends) = (found.key, found.revision, found.expires_at);
    let mut proposal = propose(store, found.value, now)?;
    if proposal.digest != digest {
        return Err(AskError::Changed);
    }
    if proposal.rows.is_empty() {
        return Err(AskError::Nothing);
    }
    proposal.ask.state = AskState::Allowed;
    let until = match allowance {
        Allowance::Once | Allowance::TenMinutes => Some(after(now, TEN_MINUTES)),
        Allowance::Lasting => None,
    };
    let extension = Extension {
        grant_id: proposal.ask.grant_id.clone(),
        beyond: proposal.ask.beyond.clone(),
        rows: proposal.rows,
        allowance,
        allowed_at: now,
        until,
        used_by: None,
    };
    // What was allowed for a time may be asked for again when that is over.
    let decided = put(EntryKind::Ask, &key, &proposal.ask)
        .until(until.or(ends))
        .expecting(Expect::Revision(revision));
    let extended = put(EntryKind::Extension, &key, &extension).until(until);
    if store.apply(&[decided, extended], now)? {
        Ok(extension)
    } else {
        Err(AskError::Unknown)
    }
}

/// Says no. The same is not asked for again for a day.
pub fn deny(store: &dyn Store, id: &str, now: Instant) -> Result<(), AskError> {
    let mut found = open_ask(store, id, now)?;
    found.value.state = AskState::Denied;
    let change = put(EntryKind::Ask, &found.key, &found.value)
        .until(after(now, DAY))
        .expecting(Expect::Revision(found.revision));
    store.apply(&[change], now)?;
    Ok(())
}

/// Whether the client of a grant may ask for more.
pub fn may_ask(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<bool> {
    let off = find::<Value>(store, EntryKind::AskingOff, grant.as_str(), now)?;
    Ok(off.is_none())
}

/// Lets the client of a grant ask for more, or not any more.
pub fn set_asking(store: &dyn Store, grant: &GrantId, may_ask: bool, now: Instant) -> Result<()> {
    let (kind, key) = (EntryKind::AskingOff, grant.as_str());
    let change = if may_ask {
        Change::remove(kind, key)
    } else {
        put(kind, key, &json!({ "since": now }))
    };
    store.apply(&[change], now)?;
    Ok(())
}

/// What was allowed beside a grant and still holds.
pub fn extensions(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<Vec<Extension>> {
    let all = all::<Extension>(store, EntryKind::Extension, now)?.into_iter();
    let all = all.map(|found| found.value);
    let holds = |one: &Extension| one.grant_id == *grant && one.used_by.is_none();
    Ok(all.filter(holds).collect())
}

/// Takes back everything that was allowed beside a grant.
pub fn end_extensions(store: &dyn Store, grant: &GrantId, now: Instant) -> Result<()> {
    let all = all::<Extension>(store, EntryKind::Extension, now)?;
    let own = all.iter().filter(|one| one.value.grant_id == *grant);
    let changes = own.map(|one| Change::remove(EntryKind::Extension, &one.key));
    let changes: Vec<Change<'_>> = changes.collect();
    store.apply(&changes, now).map(|_| ())
}

impl Extension {
    /// What it adds, and for how long.
    pub fn words(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(ExtendedRow::words).collect();
        let time = match (self.allowance, self.until) {
            (Allowance::Once, Some(until)) => format!("once, until {until}"),
            (_, Some(until)) => format!("until {until}"),
            (_, None) => "as long as the grant lives".to_owned(),
        };
        format!("{} ({time})", rows.join(" | "))
    }

    /// What it adds of what is there. A connection that came after it was allowed is another, also where it has the name of
    /// one that was removed.
    fn granted_rows(&self, store: &dyn Store) -> Vec<GrantedRow> {
        let is_there = |row: &&ExtendedRow| {
            let connection = store.connection(&row.given.connection_id);
            connection.is_some_and(|one| one.created_at <= self.allowed_at)
        };
        let rows = self.rows.iter().filter(is_there);
        rows.map(|row| {
            let given = row.given.granted();
            let connection = &row.given.connection_id;
            GrantedRow::new(&self.grant_id, &row.connector, connection, &given)
        })
        .collect()
    }
}

/// Adds to an authority what was allowed beside its grants, but for what is allowed once.
pub(crate) fn widen(
    store: &dyn Store,
    authority: &mut GrantedAuthority,
    now: Instant,
) -> Result<()> {
    let all = all::<Extension>(store, EntryKind::Extension, now)?.into_iter();
    let lasting = all
        .map(|found| found.value)
        .filter(|one| one.allowance != Allowance::Once && authority.has_grant(&one.grant_id));
    let mut lasting: Vec<Extension> = lasting.collect();
    // A later one may add fields to a row that an earlier one brought.
    lasting.sort_by_key(|one| one.allowed_at);
    for extension in lasting {
        authority.widen(extension.granted_rows(store));
    }
    Ok(())
}

/// What is allowed once, for a call that was refused for it.
#[derive(Debug)]
pub struct OnceAllowed {
    key: String,
    revision: u64,
    rows: Vec<GrantedRow>,
    extension: Extension,
    /// The call of a tool that needs it, which may read several times.
    call: Option<String>,
}

/// Looks for what is allowed once and would let a refused call through.
pub fn allowed_once(
    store: &dyn Store,
    authority: &GrantedAuthority,
    beyond: &Beyond,
    call: Option<String>,
    now: Instant,
) -> Result<Option<OnceAllowed>> {
    let all = all::<Extension>(store, EntryKind::Extension, now)?.into_iter();
    let mut fitting = all.filter(|found| {
        found.value.allowance == Allowance::Once
            && found.value.beyond == *beyond
            && authority.has_grant(&found.value.grant_id)
            && (found.value.used_by.is_none() || found.value.used_by == call)
    });
    Ok(fitting.next().map(|found| OnceAllowed {
        key: found.key,
        revision: found.revision,
        rows: found.value.granted_rows(store),
        extension: found.value,
        call,
    }))
}

impl OnceAllowed {
    pub fn widen(&self, authority: &mut GrantedAuthority) {
        authority.widen(self.rows.clone());
    }

    /// Uses it up; `false` where another call has done so.
    pub fn consume(&self, store: &dyn Store, now: Instant) -> Result<bool> {
        if self.extension.used_by.is_some() {
            return Ok(true);
        }
        let (kind, key) = (EntryKind::Extension, self.key.as_str());
        let expect = Expect::Revision(self.revision);
        if self.call.is_none() {
            return store.apply(&[Change::remove(kind, key).expecting(expect)], now);
        }
        let used = Extension {
            used_by: self.call.clone(),
            ..self.extension.clone()
        };
        let change = put(kind, key, &used).until(after(now, ONE_CALL));
        store.apply(&[change.expecting(expect)], now)
    }
}
