//! The owner's decision: exactly the frozen review is approved, once, in one transaction.

use std::time::Duration;

use contract::grant::{AccessMode, GrantClient};
use contract::id::{GrantId, PackageId};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::grants::NewApproval;
use store::registry::{Change, EntryKind, Expect, TokenFor};
use store::{Store, StoreError};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use super::clients::Client;
use super::code::CodeEntry;
use super::error::OAuthError;
use super::request::{GrantFlow, RequestEntry};
use super::review::Review;
use super::{Issuer, later};
use crate::documents::{Found, key_of, put};
use crate::issue::{IssueError, approval};
use crate::secret::{NoRandomness, Secret};
use crate::selection::SelectionError;
use crate::sign_in::Session;
use crate::token::{TokenError, authority_of};

/// How long a decided request is remembered at least, so that a waiting device learns of it.
const REMEMBERED: Duration = Duration::from_mins(5);
/// How often an approval is retried while concurrent approvals of the same client win.
const ATTEMPTS: usize = 16;

/// Who decides. A `Session` cannot be constructed; it comes from signing in.
#[derive(Debug, Clone, Copy)]
pub enum Decider<'a> {
    Session(&'a Session),
    Terminal,
}

impl Decider<'_> {
    fn name(self) -> String {
        match self {
            Decider::Session(session) => session.id().to_owned(),
            Decider::Terminal => "terminal".to_owned(),
        }
    }
}

/// What the decision means for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Send the browser there. The address may hold a code, so it is handled like a secret.
    Redirect(Secret),
    /// The device learns of it when it asks next.
    Device,
}

/// Why nothing was decided.
#[derive(Debug, Error)]
pub enum DecisionError {
    #[error("this request is not known or its time is over; start again from the application")]
    Unknown,
    /// Already decided.
    #[error("this request was already decided")]
    Decided,
    /// Not the review that was shown last.
    #[error("what is approved is not what was reviewed last; look at the review again")]
    Stale,
    /// The catalog changed since the review.
    #[error("the sources changed since the review; review it again")]
    CatalogChanged,
    /// The client is gone, or its redirect URI is no longer registered.
    #[error("the application changed since it asked; start again from the application")]
    ClientChanged,
    #[error("nothing is selected, and nothing grants nothing; select at least one stream")]
    NothingSelected,
    /// Training takes an explicit yes.
    #[error("the purpose is AI training, which takes the owner's explicit yes")]
    TrainingNotAffirmed,
    /// Training stands alone.
    #[error(
        "training is granted by itself; select the same fields and time for all connections, or only one"
    )]
    TrainingTogether,
    /// The selection is wider than the request.
    #[error("it was asked for once, so it cannot be granted for longer")]
    OnlyOnce,
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DecisionError {
    pub fn status(&self) -> u16 {
        match self {
            Self::Unknown => 404,
            Self::Decided | Self::Stale | Self::CatalogChanged | Self::ClientChanged => 409,
            Self::Randomness(_)
            | Self::Store(_)
            | Self::Issue(IssueError::Store(_) | IssueError::Randomness(_)) => 500,
            _ => 400,
        }
    }
}

/// What was decided, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Decision {
    pub(super) by: String,
    /// `None` for a denial.
    pub(super) approved: Option<Approval>,
}

/// The grant or package that tokens will stand for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Approval {
    pub(super) grant_id: Option<GrantId>,
    pub(super) package_id: Option<PackageId>,
    pub(super) single_use: bool,
    pub(super) ends: Instant,
}

impl Approval {
    fn new(approval: &NewApproval, review: &Review) -> Self {
        let grant = match (&approval.package, approval.grants.first()) {
            (None, Some(grant)) => Some(grant.id().clone()),
            _ => None,
        };
        let once = |draft: &crate::selection::Draft| draft.access_mode == AccessMode::SingleUse;
        Self {
            grant_id: grant,
            package_id: approval.package.clone(),
            single_use: review.grants.iter().any(once),
            ends: review.expires_at,
        }
    }

    pub(super) fn token_for(&self) -> Option<TokenFor<'_>> {
        match (&self.grant_id, &self.package_id) {
            (Some(grant), None) => Some(TokenFor::Grant(grant)),
            (None, Some(package)) => Some(TokenFor::Package(package)),
            _ => None,
        }
    }

    /// Whether the grant or package is still live.
    pub(super) fn check(&self, store: &dyn Store, now: Instant) -> Result<(), TokenError> {
        let id = match self.token_for().ok_or(TokenError::GrantInvalid)? {
            TokenFor::Grant(grant) => grant.as_str(),
            TokenFor::Package(package) => package.as_str(),
        };
        authority_of(store, id, now).map(drop)
    }
}

impl Issuer<'_> {
    /// Approves exactly the review with that digest. The grants and the code or device entry that leads to them are created
    /// in one transaction.
    pub fn approve(
        &self,
        request_id: &str,
        digest: &str,
        decider: Decider<'_>,
    ) -> Result<Answer, DecisionError> {
        // A concurrent approval of the same client does not invalidate this one.
        for _ in 0..ATTEMPTS {
            if let Some(answer) = self.try_approve(request_id, digest, decider)? {
                return Ok(answer);
            }
        }
        Err(DecisionError::Stale)
    }

    /// `None` if something it relied on changed meanwhile.
    fn try_approve(
        &self,
        request_id: &str,
        digest: &str,
        decider: Decider<'_>,
    ) -> Result<Option<Answer>, DecisionError> {
        let found = self.undecided(request_id)?;
        let Some((review, choice)) = found.value.review.clone() else {
            return Err(DecisionError::Stale);
        };
        if !bool::from(review.digest.as_bytes().ct_eq(digest.as_bytes())) {
            return Err(DecisionError::Stale);
        }
        match self.drafts(&found.value.asked, &choice) {
            Ok(again) if again == review.grants => {}
            Err(DecisionError::Store(error)) => return Err(error.into()),
            _ => return Err(DecisionError::CatalogChanged),
        }
        if review.expires_at <= self.now {
            return Err(IssueError::AlreadyOver(review.expires_at).into());
        }
        self.carry_out(&found, &review, decider)
    }

    fn carry_out(
        &self,
        found: &Found<RequestEntry>,
        review: &Review,
        decider: Decider<'_>,
    ) -> Result<Option<Answer>, DecisionError> {
        let asked = &found.value.asked;
        let client = self.client_entry(asked.client.client_id.as_str())?;
        let client = client.ok_or(DecisionError::ClientChanged)?;
        let shown = as_granted(&asked.client);
        let mut new = approval(review.grants.clone(), &shown, self.now, review.expires_at)?;
        // After this moment the token can no longer be fetched, and the approval is listed as never used.
        new.redeem_by = match &asked.flow {
            GrantFlow::Code { .. } => Some(later(self.now, super::code::LIFE)),
            GrantFlow::Device => self.remembered(found),
        };
        let approved = Approval::new(&new, review);
        let (mut code, mut answer) = (None, Answer::Device);
        if let GrantFlow::Code {
            back,
            code_challenge,
        } = &asked.flow
        {
            if !client.value.client.may_redirect_to(&back.redirect_uri) {
                return Err(DecisionError::ClientChanged);
            }
            let secret = Secret::random("pdpp_code_")?;
            let document = CodeEntry {
                client_id: shown.client_id.clone(),
                redirect_uri: back.redirect_uri.clone(),
                code_challenge: code_challenge.clone(),
                resource: asked.resource.clone(),
                approval: approved.clone(),
                redeemed: None,
            };
            let address = back.with(&[("code", secret.expose())], self.origin);
            answer = Answer::Redirect(Secret::holding(address));
            let put = put(EntryKind::Code, key_of(secret.expose()), &document);
            code = Some(put.until(later(self.now, super::code::LIFE)));
        }
        // A client that was approved is remembered for good.
        let mut changes = vec![
            self.decided(found, decider, Some(approved)),
            Change::Approve(&new),
            put(EntryKind::Client, &client.key, &client.value)
                .expecting(Expect::Revision(client.revision)),
        ];
        changes.extend(code.map(|put| put.expecting(Expect::Absent)));
        match self.store.apply(&changes, self.now) {
            Ok(applied) => Ok(applied.then_some(answer)),
            Err(StoreError::UnknownConnection(_)) => Err(DecisionError::CatalogChanged),
            Err(error) => Err(error.into()),
        }
    }

    pub fn deny(&self, request_id: &str, decider: Decider<'_>) -> Result<Answer, DecisionError> {
        let found = self.undecided(request_id)?;
        let change = self.decided(&found, decider, None);
        if !self.store.apply(&[change], self.now)? {
            return Err(self.lost(request_id));
        }
        Ok(match &found.value.asked.flow {
            GrantFlow::Device => Answer::Device,
            GrantFlow::Code { back, .. } => {
                let denied = OAuthError::access_denied("the owner did not approve this request");
                Answer::Redirect(Secret::holding(back.with_error(&denied, self.origin)))
            }
        })
    }

    fn decided(
        &self,
        found: &Found<RequestEntry>,
        decider: Decider<'_>,
        approved: Option<Approval>,
    ) -> Change<'static> {
        let entry = RequestEntry {
            decision: Some(Decision {
                by: decider.name(),
                approved,
            }),
            ..found.value.clone()
        };
        put(EntryKind::Request, &found.key, &entry)
            .until(self.remembered(found))
            .expecting(Expect::Revision(found.revision))
    }

    /// Until when a request that is decided now is remembered.
    fn remembered(&self, found: &Found<RequestEntry>) -> Option<Instant> {
        found.expires_at.max(Some(later(self.now, REMEMBERED)))
    }

    /// Why a decision came too late: it was decided, or reviewed anew.
    fn lost(&self, request_id: &str) -> DecisionError {
        match self.undecided(request_id) {
            Ok(_) => DecisionError::Stale,
            Err(error) => error,
        }
    }
}

pub(super) fn as_granted(client: &Client) -> GrantClient {
    let display = |name: &String| serde_json::json!({ "name": name });
    GrantClient {
        client_id: client.client_id.clone(),
        client_display: client.client_name.as_ref().map(display),
        local: false,
    }
}
