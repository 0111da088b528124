//! What was granted, what it has been used for, and the end of it.

use contract::grant::Grant;
use contract::id::{ClientId, GrantId, PackageId};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::grants::{
    LoggedDisclosure, Revocable, Revocation, RevocationReason, Revoked, StoredGrant, StoredPackage,
};
use store::{Store, StoreError};
use thiserror::Error;

use crate::budget::{self, Budget, Pause, Used};
use crate::issue::{IssuedStream, current_streams};
use crate::step_up::{self, Extension};
use crate::token::{TokenError, TokenKind, live_grant, tokens_ended};

/// Why a grant was revoked without the owner.
pub const TOKENS_ENDED: &str = "its tokens have ended, because the application ended them or one of its codes or tokens was used twice";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Live,
    /// Approved, and the application has not fetched its token yet.
    Waiting,
    /// Approved, but the application never fetched its token; nothing could be read with it.
    Lapsed,
    Expired,
    Revoked,
    /// The stored document is not valid.
    Invalid,
}

impl State {
    /// Whether anything can be read with it, now or once the application fetches its token.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Live | Self::Waiting)
    }
}

/// A grant or a package at a glance. Times are RFC 3339.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overview {
    pub id: String,
    pub token_kind: TokenKind,
    pub client_id: ClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Whether it has no client of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    pub state: State,
    pub issued_at: String,
    /// When it ends by itself; where its tokens ended before that and were not renewed, when they did.
    pub expires_at: Option<String>,
    /// The deadline for the application to fetch its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeem_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_reason: Option<RevocationReason>,
    /// When it last lost rows because a connection was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowed_at: Option<String>,
    /// When data last left under it.
    pub last_used_at: Option<String>,
    /// The grants of a package; for a grant, itself.
    pub grant_ids: Vec<GrantId>,
    /// What may be read; of an ended grant, what could be read last.
    pub streams: Vec<IssuedStream>,
    pub grants: Vec<Grant>,
}

/// A grant or package with everything known about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GrantDetails {
    #[serde(flatten)]
    pub overview: Overview,
    /// What the owner allowed beside it, and still holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Whether its client may ask for more.
    pub may_ask: bool,
    /// How much may be read in a day, and was today, of each grant that has a budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetState>,
    /// Why nothing can be read until the owner has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The last calls that disclosed something, newest first.
    pub disclosures: Vec<DisclosedCall>,
}

/// The budget of a grant, and what of it is used today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetState {
    pub grant_id: GrantId,
    pub budget: Budget,
    pub used: Used,
}

impl BudgetState {
    /// Whether a limit is reached.
    pub fn is_used_up(&self) -> bool {
        let limits = [
            (self.budget.records, self.used.records),
            (self.budget.distinct_records, self.used.distinct_records),
            (self.budget.bytes, self.used.bytes),
        ];
        let mut limits = limits.into_iter();
        limits.any(|(most, used)| most.is_some_and(|most| used >= most))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisclosedCall {
    pub sequence: u64,
    /// When, RFC 3339.
    pub at: String,
    pub grant_ids: Vec<GrantId>,
    pub client_id: ClientId,
    pub operation: String,
    pub records: Vec<String>,
    pub fields: Vec<String>,
}

/// An owner token, without its secret. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerTokenOverview {
    pub token_id: String,
    pub state: State,
    pub issued_at: String,
    pub expires_at: String,
    pub last_used_at: Option<String>,
}

/// No grant, package or token has the id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no grant, package or token has the id {0:?}; `pdpp grants` lists them")]
pub struct IdNotFound(pub String);

/// Why nothing can be shown.
#[derive(Debug, Error)]
pub enum ShowError {
    #[error(transparent)]
    Unknown(#[from] IdNotFound),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub type RevokeError = ShowError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokedKind {
    Grant,
    Package,
    Token,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoking {
    pub kind: RevokedKind,
    /// When it had been revoked before; `None` when this call revoked it.
    pub already_since: Option<String>,
}

/// Everything that was ever granted, newest first; the grants of a package stand in it.
pub fn list(store: &dyn Store, now: Instant) -> Result<Vec<Overview>, StoreError> {
    let mut all: Vec<(Instant, Overview)> = Vec::new();
    for grant in store.grants()? {
        if grant.package_id.is_none() {
            all.push((grant.issued_at, grant_overview(store, &grant, now)?));
        }
    }
    for package in store.packages()? {
        all.push((package.issued_at, package_overview(store, &package, now)?));
    }
    all.sort_by_key(|(issued_at, _)| std::cmp::Reverse(*issued_at));
    Ok(all.into_iter().map(|(_, overview)| overview).collect())
}

/// One grant or package, with its last calls, at most `calls` of them.
pub fn show(
    store: &dyn Store,
    id: &str,
    now: Instant,
    calls: usize,
) -> Result<GrantDetails, ShowError> {
    let overview = find(store, id, now)?;
    let mut disclosures: Vec<LoggedDisclosure> = Vec::new();
    for grant in &overview.grant_ids {
        disclosures.extend(store.disclosures(Some(grant), None, calls)?);
    }
    disclosures.sort_by_key(|entry| std::cmp::Reverse(entry.sequence));
    disclosures.dedup_by_key(|entry| entry.sequence);
    disclosures.truncate(calls);
    let mut extensions = Vec::new();
    let mut may_ask = true;
    let (mut budgets, mut paused) = (Vec::new(), None);
    for grant in &overview.grant_ids {
        extensions.extend(step_up::extensions(store, grant, now)?);
        may_ask &= step_up::may_ask(store, grant, now)?;
        if let Some(budget) = budget::budget(store, grant, now)? {
            budgets.push(BudgetState {
                grant_id: grant.clone(),
                budget,
                used: budget::used_today(store, grant, now)?,
            });
        }
        paused = paused.or(budget::paused(store, grant, now)?);
    }
    Ok(GrantDetails {
        overview,
        extensions,
        may_ask,
        budgets,
        paused,
        disclosures: disclosures.into_iter().map(DisclosedCall::from).collect(),
    })
}

pub fn owner_tokens(
    store: &dyn Store,
    now: Instant,
) -> Result<Vec<OwnerTokenOverview>, StoreError> {
    let overview = |token: store::grants::StoredToken| OwnerTokenOverview {
        state: match token.revoked_at {
            Some(_) => State::Revoked,
            None if token.expires_at <= now => State::Expired,
            None => State::Live,
        },
        token_id: token.id,
        issued_at: token.issued_at.to_rfc3339_millis(),
        expires_at: token.expires_at.to_rfc3339_millis(),
        last_used_at: token.last_used_at.map(Instant::to_rfc3339_millis),
    };
    Ok(store.owner_tokens()?.into_iter().map(overview).collect())
}

/// Ends a grant, a package or a token. It holds when this returns.
pub fn revoke(store: &dyn Store, id: &str, now: Instant) -> Result<Revoking, RevokeError> {
    let (grant, package) = (GrantId::parse(id).ok(), PackageId::parse(id).ok());
    let candidates = [
        grant
            .as_ref()
            .map(|id| (RevokedKind::Grant, Revocable::Grant(id))),
        package
            .as_ref()
            .map(|id| (RevokedKind::Package, Revocable::Package(id))),
        Some((RevokedKind::Token, Revocable::Token(id))),
    ];
    for (kind, what) in candidates.into_iter().flatten() {
        let already_since = match store.revoke(what, now)? {
            Revoked::Unknown => continue,
            Revoked::Now => None,
            Revoked::Already(at) => Some(at.to_rfc3339_millis()),
        };
        return Ok(Revoking {
            kind,
            already_since,
        });
    }
    Err(IdNotFound(id.to_owned()).into())
}

impl From<LoggedDisclosure> for DisclosedCall {
    fn from(entry: LoggedDisclosure) -> Self {
        let disclosure = entry.disclosure;
        DisclosedCall {
            sequence: entry.sequence,
            at: disclosure.at.to_rfc3339_millis(),
            grant_ids: disclosure.grant_ids,
            client_id: disclosure.client_id,
            operation: disclosure.operation,
            records: disclosure.records,
            fields: disclosure.fields,
        }
    }
}

fn find(store: &dyn Store, id: &str, now: Instant) -> Result<Overview, ShowError> {
    if let Ok(id) = GrantId::parse(id)
        && let Some(grant) = store.grant(&id)?
    {
        return Ok(grant_overview(store, &grant, now)?);
    }
    if let Ok(id) = PackageId::parse(id)
        && let Some(package) = store.package(&id)?
    {
        return Ok(package_overview(store, &package, now)?);
    }
    Err(IdNotFound(id.to_owned()).into())
}

fn document(stored: &StoredGrant) -> Option<Grant> {
    serde_json::from_str(&stored.document).ok()
}

fn state(stored: &StoredGrant, now: Instant) -> State {
    let came = stored.redeem_by.is_none();
    match live_grant(stored, now) {
        Ok(_) if came => State::Live,
        Ok(_) => State::Waiting,
        Err(TokenError::GrantExpired) if came => State::Expired,
        Err(TokenError::GrantExpired) => State::Lapsed,
        Err(TokenError::GrantRevoked) => State::Revoked,
        Err(_) => State::Invalid,
    }
}

fn grant_overview(
    store: &dyn Store,
    stored: &StoredGrant,
    now: Instant,
) -> Result<Overview, StoreError> {
    let grant = document(stored);
    let (state, expires_at) = match state(stored, now) {
        State::Live => match tokens_ended(store, stored, now)? {
            Some(end) => (State::Expired, Some(end)),
            None => (State::Live, stored.expires_at),
        },
        state => (state, stored.expires_at),
    };
    let name = grant.as_ref().and_then(|grant| {
        let display = grant.document().client.client_display.as_ref()?;
        Some(display.get("name")?.as_str()?.to_owned())
    });
    Ok(Overview {
        id: stored.id.to_string(),
        token_kind: TokenKind::Client,
        client_id: stored.client_id.clone(),
        client_name: name,
        local: grant.as_ref().is_some_and(is_local),
        state,
        issued_at: stored.issued_at.to_rfc3339_millis(),
        expires_at: expires_at.map(Instant::to_rfc3339_millis),
        redeem_by: stored.redeem_by.map(Instant::to_rfc3339_millis),
        revoked_at: ended(stored.revoked),
        revoked_reason: stored.revoked.map(|revoked| revoked.reason),
        narrowed_at: stored.narrowed_at.map(Instant::to_rfc3339_millis),
        last_used_at: stored.last_used_at.map(Instant::to_rfc3339_millis),
        grant_ids: vec![stored.id.clone()],
        streams: grant
            .as_ref()
            .map(|grant| current_streams(grant, store))
            .unwrap_or_default(),
        grants: grant.into_iter().collect(),
    })
}

/// A package is live while one of its grants is; otherwise its state is that of the grant that ended last.
fn package_overview(
    store: &dyn Store,
    stored: &StoredPackage,
    now: Instant,
) -> Result<Overview, StoreError> {
    let parts = stored.grants.iter();
    let parts: Vec<Overview> = parts
        .map(|grant| grant_overview(store, grant, now))
        .collect::<Result<_, _>>()?;
    let any = |state: State| parts.iter().any(|part| part.state == state);
    let state = match stored.revoked {
        Some(_) => State::Revoked,
        None => [
            State::Live,
            State::Waiting,
            State::Revoked,
            State::Lapsed,
            State::Expired,
        ]
        .into_iter()
        .find(|state| any(*state))
        .unwrap_or(State::Invalid),
    };
    let latest = |time: fn(&StoredGrant) -> Option<Instant>| {
        let times = stored.grants.iter().filter_map(time);
        times.max().map(Instant::to_rfc3339_millis)
    };
    // While one grant is live, only live ones can be read; once none is, all of them are shown as history.
    let readable = |part: &&Overview| !state.is_open() || part.state == state;
    Ok(Overview {
        id: stored.id.to_string(),
        token_kind: TokenKind::Package,
        client_id: stored.client_id.clone(),
        client_name: parts.iter().find_map(|part| part.client_name.clone()),
        local: parts.iter().all(|part| part.local),
        state,
        issued_at: stored.issued_at.to_rfc3339_millis(),
        // All have the same form, so that the latest is the largest.
        expires_at: parts
            .iter()
            .filter_map(|part| part.expires_at.clone())
            .max(),
        redeem_by: latest(|grant| grant.redeem_by),
        revoked_at: ended(stored.revoked),
        revoked_reason: stored.revoked.map(|revoked| revoked.reason),
        narrowed_at: latest(|grant| grant.narrowed_at),
        last_used_at: latest(|grant| grant.last_used_at),
        grant_ids: stored.grants.iter().map(|grant| grant.id.clone()).collect(),
        streams: parts
            .iter()
            .filter(readable)
            .flat_map(|part| part.streams.clone())
            .collect(),
        grants: parts.iter().flat_map(|part| part.grants.clone()).collect(),
    })
}

fn is_local(grant: &Grant) -> bool {
    grant.document().client.local
}

fn ended(revoked: Option<Revocation>) -> Option<String> {
    revoked.map(|revoked| revoked.at.to_rfc3339_millis())
}
