//! Issuing: a selection, frozen against the catalog, becomes grants with one token, in one transaction.

mod preview;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::declaration::PROTOCOL_VERSION;
use contract::grant::{
    AccessMode, AgreedWords, Grant, GrantClient, GrantDocument, GrantError, GrantedAuthority,
    GrantedRow, GrantedStream, Redaction, RowRule, SourceDeclarationVersion, Subject,
    TimeConstraint,
};
use contract::id::{ClientId, ConnectionId, FieldName, GrantId, IdError, PackageId, StreamName};
use contract::time::{Clock, Instant};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::grants::{NewApproval, NewToken};
use store::{Store, StoreError};
use thiserror::Error;

pub use self::preview::{Preview, preview};
use crate::secret::{NoRandomness, Secret, random_id};
use crate::selection::{ChosenStream, Draft, Selection, SelectionError};
use crate::token::TokenKind;
use crate::words::Wording;

/// The one owner of a data directory, as grants name them.
const OWNER: &str = "owner_local";

const DAY: Duration = Duration::from_hours(24);
/// How long a grant for continuous reading lasts unless its owner says otherwise.
const CONTINUOUS: Duration = DAY.saturating_mul(90);
/// How long a grant for single use lasts unless its owner says otherwise.
pub(crate) const SINGLE_USE: Duration = DAY;
const OWNER_TOKEN_MAX: Duration = DAY.saturating_mul(366);

/// The client id of grants that have no client of their own.
const LOCAL: &str = "local";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient<'a> {
    /// A client, by its id or a name for people.
    Client(&'a str),
    /// No client: programs on the machine of the data.
    Local,
}

impl<'a> From<&'a str> for Recipient<'a> {
    fn from(client: &'a str) -> Self {
        Self::Client(client)
    }
}

/// What was issued. The token is in clear here and nowhere else.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Issued {
    pub access_token: Secret,
    pub token_kind: TokenKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_package_id: Option<PackageId>,
    /// When grant and token end, RFC 3339.
    pub expires_at: String,
    pub streams: Vec<IssuedStream>,
}

/// One stream of one connection, as far as it was granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssuedStream {
    pub connection_id: ConnectionId,
    pub stream: StreamName,
    pub fields: Vec<FieldName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_constraint: Option<TimeConstraint>,
    /// Only these records, by canonical key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// Only records that meet all of these.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<RowRule>>,
    /// No record that meets any of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except: Option<Vec<RowRule>>,
    /// The fields of which only a part is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redact: Option<BTreeMap<FieldName, Redaction>>,
    /// Why nothing of it can be read any more, although it is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

impl IssuedStream {
    fn new(stream: &GrantedStream, connection: &ConnectionId) -> Self {
        Self {
            connection_id: connection.clone(),
            stream: stream.name.clone(),
            fields: stream.fields.clone(),
            time_constraint: stream.time_constraint.clone(),
            resources: stream.resources.clone(),
            only: stream.only.clone(),
            except: stream.except.clone(),
            redact: stream.redact.clone(),
            closed: None,
        }
    }

    pub(crate) fn from_row(row: &GrantedRow) -> Self {
        let rules = |rules: &[RowRule]| (!rules.is_empty()).then(|| rules.to_vec());
        let keys = row.resources.as_ref();
        Self {
            connection_id: row.connection.clone(),
            stream: row.stream.clone(),
            fields: row.fields.clone(),
            time_constraint: row.time_constraint.clone(),
            resources: keys.map(|keys| keys.iter().cloned().collect()),
            only: rules(&row.only),
            except: rules(&row.except),
            redact: (!row.redact.is_empty()).then(|| row.redact.clone()),
            closed: None,
        }
    }

    /// Says so where the current declaration does not allow one of the rules any more.
    fn now(mut self, store: &dyn Store) -> Self {
        let connection = store.connection(&self.connection_id);
        let declaration = connection.and_then(|one| store.declaration(&one.connector));
        let granted = self.granted();
        let broken = declaration.as_ref().and_then(|declaration| {
            let declared = declaration.stream(self.stream.as_str())?;
            granted.broken_rule(declaration, declared)
        });
        self.closed = broken.map(|(rule, mistake)| {
            let (field, why) = (rule.field(), mistake.rule);
            format!("its rule on {field} does not fit the declaration any more: {why}")
        });
        self
    }

    /// The choice that would grant the same. A limit to single records cannot be chosen.
    pub fn chosen(&self) -> ChosenStream {
        let time = self.time_constraint.as_ref();
        let redact = self.redact.iter().flatten();
        ChosenStream {
            connection_id: self.connection_id.to_string(),
            stream: self.stream.to_string(),
            fields: Some(self.fields.iter().map(ToString::to_string).collect()),
            since: time.and_then(|time| time.since.clone()),
            until: time.and_then(|time| time.until.clone()),
            only: self.only.clone().unwrap_or_default(),
            except: self.except.clone().unwrap_or_default(),
            redact: redact
                .map(|(field, how)| (field.to_string(), how.to_string()))
                .collect(),
            ..ChosenStream::default()
        }
    }

    pub(crate) fn granted(&self) -> GrantedStream {
        GrantedStream {
            name: self.stream.clone(),
            instance_ids: vec![self.connection_id.clone()],
            fields: self.fields.clone(),
            time_constraint: self.time_constraint.clone(),
            resources: self.resources.clone(),
            only: self.only.clone(),
            except: self.except.clone(),
            redact: self.redact.clone(),
        }
    }
}

/// An owner token. It is in clear here and nowhere else.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnerToken {
    pub access_token: Secret,
    /// Its public name, for revoking it.
    pub token_id: String,
    /// When it ends, RFC 3339.
    pub expires_at: String,
}

#[derive(Debug, Error)]
pub enum IssueError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(
        "the client name {0:?} cannot be used: it takes 1 to 256 bytes with at least one letter or digit and no control characters"
    )]
    ClientName(String),
    #[error(
        "the client name \"{LOCAL}\" is what grants without a client are logged under; leave the client out for one of those, or name another"
    )]
    Reserved,
    /// The end lies in the past.
    #[error("the grant would end at {0}, which is past; name a later moment")]
    AlreadyOver(Instant),
    /// A lifetime of zero, or one that is too long.
    #[error("an owner token lives between one second and 366 days")]
    OwnerTokenLife,
    #[error(transparent)]
    Grant(#[from] GrantError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn prepared(
    store: &dyn Store,
    selection: &Selection,
    client: Recipient<'_>,
    expires: Option<Instant>,
    now: Instant,
) -> Result<(NewApproval, Instant), IssueError> {
    let drafts = selection.resolve(store)?;
    let expires_at = end(&drafts, expires, now)?;
    let client = match client {
        Recipient::Client(name) => named_client(name)?,
        Recipient::Local => local_client()?,
    };
    Ok((approval(drafts, &client, now, expires_at)?, expires_at))
}

/// Issues what the selection names to a client, until `expires` or for the default time.
pub fn issue<'a>(
    store: &dyn Store,
    selection: &Selection,
    client: impl Into<Recipient<'a>>,
    expires: Option<Instant>,
    clock: &dyn Clock,
) -> Result<Issued, IssueError> {
    let (approval, expires_at) = prepared(store, selection, client.into(), expires, clock.now())?;
    give(store, approval, expires_at)
}

/// Issues what was prepared, with a token.
fn give(
    store: &dyn Store,
    mut approval: NewApproval,
    expires_at: Instant,
) -> Result<Issued, IssueError> {
    let access_token = Secret::random("pdpp_at_")?;
    approval.token = Some(new_token(&access_token, approval.issued_at, expires_at)?);
    store.approve(&approval)?;
    let NewApproval {
        package, grants, ..
    } = approval;
    Ok(Issued {
        access_token,
        token_kind: match package {
            None => TokenKind::Client,
            Some(_) => TokenKind::Package,
        },
        grant_id: match (&package, grants.first()) {
            (None, Some(grant)) => Some(grant.id().clone()),
            _ => None,
        },
        grant_package_id: package,
        expires_at: expires_at.to_rfc3339_millis(),
        streams: grants.iter().flat_map(streams_of).collect(),
    })
}

/// The drafts as grants of a client, in a package if there are several, without a token yet.
pub(crate) fn approval(
    drafts: Vec<Draft>,
    client: &GrantClient,
    now: Instant,
    expires_at: Instant,
) -> Result<NewApproval, IssueError> {
    let mut grants = Vec::new();
    for draft in drafts {
        grants.push(frozen(draft, client.clone(), now, expires_at)?);
    }
    let package = match grants.as_slice() {
        [grant] => {
            GrantedAuthority::from_grant(grant)?;
            None
        }
        several => {
            let id = PackageId::parse(random_id("gpkg_")?)?;
            GrantedAuthority::from_package(id.clone(), several)?;
            Some(id)
        }
    };
    Ok(NewApproval {
        package,
        client_id: client.client_id.clone(),
        grants,
        issued_at: now,
        token: None,
        redeem_by: None,
    })
}

pub fn owner_token(
    store: &dyn Store,
    life: Duration,
    clock: &dyn Clock,
) -> Result<OwnerToken, IssueError> {
    if life < Duration::from_secs(1) || life > OWNER_TOKEN_MAX {
        return Err(IssueError::OwnerTokenLife);
    }
    let now = clock.now();
    let access_token = Secret::random("pdpp_owner_")?;
    let token = new_token(&access_token, now, after(now, life))?;
    store.add_owner_token(&token)?;
    Ok(OwnerToken {
        access_token,
        token_id: token.id,
        expires_at: token.expires_at.to_rfc3339_millis(),
    })
}

/// What a grant gives under the current declarations, one entry per connection and stream.
pub(crate) fn current_streams(grant: &Grant, store: &dyn Store) -> Vec<IssuedStream> {
    let streams = streams_of(grant).into_iter();
    streams.map(|stream| stream.now(store)).collect()
}

/// What a grant gives, one entry per connection and stream.
pub(crate) fn streams_of(grant: &Grant) -> Vec<IssuedStream> {
    let mut streams = Vec::new();
    for stream in grant.streams() {
        let connections = stream.instance_ids.iter();
        streams.extend(connections.map(|connection| IssuedStream::new(stream, connection)));
    }
    streams
}

pub(crate) fn new_token(
    secret: &Secret,
    now: Instant,
    expires_at: Instant,
) -> Result<NewToken, NoRandomness> {
    Ok(NewToken {
        id: random_id("tok_")?,
        hash: secret.hash().0,
        issued_at: now,
        expires_at,
        audience: None,
        family: None,
    })
}

pub(crate) fn after(now: Instant, life: Duration) -> Instant {
    let micros = i64::try_from(life.as_micros()).unwrap_or(i64::MAX);
    Instant(now.0.saturating_add(micros))
}

/// The end of the grants, to the millisecond: a token must not outlive the moment its grant states.
pub(crate) fn end(
    drafts: &[Draft],
    asked: Option<Instant>,
    now: Instant,
) -> Result<Instant, IssueError> {
    let single_use = |draft: &Draft| draft.access_mode == AccessMode::SingleUse;
    let end = match asked {
        Some(end) => end,
        None if drafts.iter().any(single_use) => after(now, SINGLE_USE),
        None => after(now, CONTINUOUS),
    };
    let end = Instant(end.0.div_euclid(1_000).saturating_mul(1_000));
    if end <= now {
        return Err(IssueError::AlreadyOver(end));
    }
    Ok(end)
}

fn frozen(
    draft: Draft,
    client: GrantClient,
    issued_at: Instant,
    expires_at: Instant,
) -> Result<Grant, IssueError> {
    let unsaid = Grant::try_from(GrantDocument {
        version: PROTOCOL_VERSION.to_owned(),
        grant_id: GrantId::parse(random_id("grt_")?)?,
        issued_at: issued_at.to_rfc3339_millis(),
        subject: Subject {
            id: OWNER.to_owned(),
        },
        client,
        source: draft.source,
        source_declaration: SourceDeclarationVersion {
            version: draft.declaration_version,
        },
        purpose_code: draft.purpose_code,
        purpose_description: draft.purpose_description,
        access_mode: draft.access_mode,
        streams: draft.streams,
        selection_preset: draft.selection_preset,
        retention: draft.retention,
        expires_at: Some(expires_at.to_rfc3339_millis()),
        agreed: None,
    })?;
    let agreed = agreed(&unsaid);
    Ok(Grant::try_from(GrantDocument {
        agreed: Some(agreed),
        ..unsaid.into()
    })?)
}

/// The sentence of a grant and its digest.
pub(crate) fn agreed(grant: &Grant) -> AgreedWords {
    let lines = Wording::whole(str::to_owned).grant(grant, &[]);
    let mut hash = Sha256::new();
    for line in &lines {
        hash.update(line.as_bytes());
        hash.update(b"\n");
    }
    let digest = format!("sha256:{}", URL_SAFE_NO_PAD.encode(hash.finalize()));
    AgreedWords { lines, digest }
}

fn local_client() -> Result<GrantClient, IssueError> {
    Ok(GrantClient {
        client_id: ClientId::parse(LOCAL)?,
        client_display: Some(serde_json::json!({ "name": "programs on this machine" })),
        local: true,
    })
}

/// A name that is an id is the client's id; any other name is shown, and the id is made from it.
fn named_client(name: &str) -> Result<GrantClient, IssueError> {
    let refused = || IssueError::ClientName(name.to_owned());
    let name = name.trim();
    if name.len() > 256 || name.chars().any(char::is_control) {
        return Err(refused());
    }
    if let Ok(client_id) = ClientId::parse(name) {
        return not_reserved(GrantClient {
            client_id,
            client_display: None,
            local: false,
        });
    }
    let words: Vec<String> = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    not_reserved(GrantClient {
        client_id: ClientId::parse(words.join("-")).map_err(|_| refused())?,
        client_display: Some(serde_json::json!({ "name": name })),
        local: false,
    })
}

fn not_reserved(client: GrantClient) -> Result<GrantClient, IssueError> {
    if client.client_id.as_str().eq_ignore_ascii_case(LOCAL) {
        return Err(IssueError::Reserved);
    }
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_its_id_or_by_the_words_of_its_name() {
        let id = |name: &str| named_client(name).map(|client| client.client_id.to_string());
        assert_eq!(id("claude-code").unwrap(), "claude-code");
        assert_eq!(
            id("https://app.example/client").unwrap(),
            "https://app.example/client"
        );
        assert_eq!(
            id(" Claude  Desktop (work) ").unwrap(),
            "claude-desktop-work"
        );
        assert_eq!(
            named_client("Claude Desktop")
                .unwrap()
                .client_display
                .unwrap()["name"],
            "Claude Desktop"
        );
        for name in ["local", "Local"] {
            assert!(matches!(id(name), Err(IssueError::Reserved)), "{name:?}");
        }
        for name in ["", "  ", "- -", "a\nb", &"x".repeat(300)] {
            assert!(
                matches!(id(name), Err(IssueError::ClientName(_))),
                "{name:?}"
            );
        }
    }
}
