//! Grants, the tokens that stand for them, and the log of what they disclosed.
//!
//! This port stores and finds; it decides nothing. The `grants` crate decides what a grant may say, whether it is live, and
//! which token matches.

use contract::grant::Grant;
use contract::id::{ClientId, ConnectionId, GrantId, PackageId};
use contract::time::Instant;
use serde::{Deserialize, Serialize};

use crate::Result;

/// How many leading bytes of a token's hash find its candidates. The rest is compared by the caller.
pub const SELECTOR_BYTES: usize = 8;

/// A token as it arrives: its secret exists here only as a hash.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub id: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    pub issued_at: Instant,
    pub expires_at: Instant,
    /// Its audience; `None` for everywhere.
    pub audience: Option<String>,
    /// The refresh family it belongs to and ends with.
    pub family: Option<String>,
}

#[derive(Debug, Clone)]
pub struct NewApproval {
    /// The package that holds the grants; without one there is exactly one grant.
    pub package: Option<PackageId>,
    pub client_id: ClientId,
    pub grants: Vec<Grant>,
    pub issued_at: Instant,
    /// A token for the package or the grant; without one, tokens follow when a code is redeemed.
    pub token: Option<NewToken>,
    /// Without a token: until when the first one must be issued.
    pub redeem_by: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGrant {
    pub id: GrantId,
    pub package_id: Option<PackageId>,
    pub client_id: ClientId,
    /// The grant as JSON. It may have lost rows since it was issued, never gained any.
    pub document: String,
    pub issued_at: Instant,
    pub expires_at: Option<Instant>,
    /// While no token was ever issued for it: until when one must be, or it has ended.
    pub redeem_by: Option<Instant>,
    /// When and why it was ended.
    pub revoked: Option<Revocation>,
    /// When it last lost rows because a connection was removed.
    pub narrowed_at: Option<Instant>,
    /// When data last left under it.
    pub last_used_at: Option<Instant>,
}

/// A package as stored, with its grants in the order they were issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPackage {
    pub id: PackageId,
    pub client_id: ClientId,
    pub issued_at: Instant,
    /// When and why it was ended as a whole.
    pub revoked: Option<Revocation>,
    /// Its grants, ended ones included.
    pub grants: Vec<StoredGrant>,
}

/// The end of a grant, a package or a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocation {
    pub at: Instant,
    pub reason: RevocationReason,
}

contract::names! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RevocationReason {
        Owner = "owner",
        ConnectionRemoved = "connection_removed",
        /// All its tokens were ended: by the application itself, or because a code or token of it was used twice.
        TokensEnded = "tokens_ended",
    }
}

impl Revocation {
    pub(crate) fn by_owner(at: Instant) -> Self {
        Self {
            at,
            reason: RevocationReason::Owner,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    pub id: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    pub issued_at: Instant,
    pub expires_at: Instant,
    pub revoked_at: Option<Instant>,
    pub last_used_at: Option<Instant>,
    /// Its audience; `None` for everywhere.
    pub audience: Option<String>,
    /// The refresh family it belongs to and ends with.
    pub family: Option<String>,
    pub subject: TokenSubject,
}

/// What a token stands for, as of the moment of the look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSubject {
    Owner,
    Grant(Box<StoredGrant>),
    Package(StoredPackage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocable<'a> {
    /// A grant, alone or in a package.
    Grant(&'a GrantId),
    Package(&'a PackageId),
    /// One token, by its public name.
    Token(&'a str),
    /// All tokens of a refresh family, and what they were for: nothing else can be used under it.
    Family(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Now,
    Already(Instant),
    Unknown,
}

/// What left under grants in one call. Names only: never text, never the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disclosure {
    pub at: Instant,
    pub grant_ids: Vec<GrantId>,
    pub client_id: ClientId,
    /// In answer to which call.
    pub operation: String,
    pub records: Vec<String>,
    pub fields: Vec<String>,
    /// The size of the answer, where a budget counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUse {
    pub token_id: String,
    pub at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDisclosure {
    /// Its number in the log; the first is 1.
    pub sequence: u64,
    pub disclosure: Disclosure,
}

/// The result of a check of the whole log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainCheck {
    /// Entries that are intact, counted from the first one present.
    pub entries: u64,
    /// Entries before it that were dropped by the owner's rule, as the log itself records.
    pub dropped: u64,
    /// Disclosures that are on disk and wait to be taken into the log.
    #[serde(default)]
    pub waiting: u64,
    /// Where the log stops being what was written.
    pub broken: Option<ChainBreak>,
}

/// The first entry of the log that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainBreak {
    pub sequence: u64,
    pub reason: String,
}

/// The port for grants, tokens and disclosures.
pub trait Grants {
    /// Stores an approval in one durable transaction. Refused when a connection it names is gone.
    fn approve(&self, approval: &NewApproval) -> Result<()>;
    /// Stores an owner token, and forgets owner tokens that expired before this one was issued.
    fn add_owner_token(&self, token: &NewToken) -> Result<()>;
    /// The tokens whose hash begins like this, with what they stand for. The caller compares the whole hash.
    fn token_candidates(&self, selector: [u8; SELECTOR_BYTES]) -> Result<Vec<StoredToken>>;
    fn owner_tokens(&self) -> Result<Vec<StoredToken>>;
    fn grant(&self, id: &GrantId) -> Result<Option<StoredGrant>>;
    fn grants(&self) -> Result<Vec<StoredGrant>>;
    /// When the last token of a grant ends or ended, alone or in its package, counting until when it can be renewed; `None` if
    /// it never had one.
    fn tokens_end(&self, id: &GrantId) -> Result<Option<Instant>>;
    fn package(&self, id: &PackageId) -> Result<Option<StoredPackage>>;
    fn packages(&self) -> Result<Vec<StoredPackage>>;
    /// Ends something. When this returns, no look-up finds it alive.
    fn revoke(&self, what: Revocable<'_>, at: Instant) -> Result<Revoked>;
    /// Appends to the disclosure log and notes when tokens were presented, in one durable transaction.
    fn log_disclosures(&self, disclosures: &[Disclosure], uses: &[TokenUse]) -> Result<()>;
    /// How many bytes of the log can be written in any case, whatever becomes of the disk.
    fn log_room(&self) -> u64;
    /// Whether an entry of so many bytes could be written now; asked after one could not be, while none waits.
    fn can_log(&self, bytes: u64) -> bool;
    /// Entries before a sequence number (or the newest), newest first; of one grant, or of all.
    fn disclosures(
        &self,
        grant: Option<&GrantId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<LoggedDisclosure>>;
    /// Recomputes the chain of the disclosure log from the first entry to the last.
    fn check_disclosures(&self) -> Result<ChainCheck>;
}

pub(crate) fn connections_of(grant: &Grant) -> impl Iterator<Item = &ConnectionId> {
    grant
        .streams()
        .iter()
        .flat_map(|stream| stream.instance_ids.iter())
}

impl RevocationReason {
    /// The reason that is stored under this name; the owner's where it is none of ours.
    pub(crate) fn stored(name: &str) -> Self {
        Self::named(name).unwrap_or(Self::Owner)
    }
}
