//! The review: what exactly would be granted, frozen under a digest that the owner then approves or not.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::grant::{AccessMode, Authority, GrantedAuthority};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::registry::{EntryKind, Expect};

use super::Issuer;
use super::clients::Client;
use super::decision::{DecisionError, as_granted};
use super::request::{PendingRequest, RequestEntry};
use crate::documents::{Found, put, text};
use crate::issue::{IssueError, SINGLE_USE, after, approval, end};
use crate::selection::{AI_TRAINING, ChosenStream, Draft, Offer, Selection, narrow};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Exactly these streams. `None` means everything in the details; a request without details needs a choice.
    #[serde(default)]
    pub streams: Option<Vec<ChosenStream>>,
    /// Single use or continuous; by default as requested, else continuous. A request for single use cannot be widened.
    #[serde(default)]
    pub access_mode: Option<AccessMode>,
    /// When the grant ends; by default after 90 days, and for single use after a day at most.
    #[serde(default)]
    pub expires_at: Option<Instant>,
    /// The owner's explicit consent to training, where that is the purpose.
    #[serde(default)]
    pub ai_training_affirmed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub request_id: String,
    pub client: Client,
    /// For which address of this server.
    pub resource: String,
    pub grants: Vec<Draft>,
    pub expires_at: Instant,
    pub ai_training_affirmed: bool,
    /// The digest of everything above; approving names it.
    pub digest: String,
}

impl Review {
    /// What a token would read if this were approved at `now`, to show the owner exactly that.
    pub fn authority(&self, now: Instant) -> Result<Authority, DecisionError> {
        let client = as_granted(&self.client);
        let new = approval(self.grants.clone(), &client, now, self.expires_at)?;
        let granted = match (&new.package, new.grants.as_slice()) {
            (None, [grant]) => GrantedAuthority::from_grant(grant),
            (Some(package), grants) => GrantedAuthority::from_package(package.clone(), grants),
            _ => return Err(DecisionError::NothingSelected),
        };
        Ok(Authority::Granted(granted.map_err(IssueError::from)?))
    }

    fn sealed(mut self) -> Self {
        self.digest = String::new();
        let hash = Sha256::digest(text(&self).as_bytes());
        self.digest = format!("sha256:{}", URL_SAFE_NO_PAD.encode(hash));
        self
    }
}

impl Issuer<'_> {
    pub fn pending(&self, request_id: &str) -> Result<PendingRequest, DecisionError> {
        Ok(self.undecided(request_id)?.value.asked)
    }

    /// What a pending request asks for, as far as the catalog has it; `None` where the owner picks.
    pub fn asked(&self, request_id: &str) -> Result<Option<Offer>, DecisionError> {
        let asked = self.undecided(request_id)?.value.asked;
        let Some(details) = &asked.details else {
            return Ok(None);
        };
        Ok(Some(Selection::from_details(details)?.offer(self.store)))
    }

    /// Resolves a choice against the catalog and freezes it. A new review replaces the one before.
    pub fn review(&self, request_id: &str, choice: Choice) -> Result<Review, DecisionError> {
        let found = self.undecided(request_id)?;
        let review = self.reviewed(request_id, &found.value.asked, &choice)?;
        let reviewed = RequestEntry {
            review: Some((review.clone(), choice)),
            ..found.value
        };
        let change = put(EntryKind::Request, request_id, &reviewed)
            .until(found.expires_at)
            .expecting(Expect::Revision(found.revision));
        if self.store.apply(&[change], self.now)? {
            Ok(review)
        } else {
            Err(DecisionError::Stale)
        }
    }

    pub(super) fn undecided(&self, id: &str) -> Result<Found<RequestEntry>, DecisionError> {
        let found = self.request_entry(id)?.ok_or(DecisionError::Unknown)?;
        if found.value.decision.is_some() {
            return Err(DecisionError::Decided);
        }
        if found.value.asked.expires_at <= self.now {
            return Err(DecisionError::Unknown);
        }
        Ok(found)
    }

    fn reviewed(
        &self,
        request_id: &str,
        asked: &PendingRequest,
        choice: &Choice,
    ) -> Result<Review, DecisionError> {
        let grants = self.drafts(asked, choice)?;
        let training = grants.iter().any(|draft| draft.purpose_code == AI_TRAINING);
        if training && !choice.ai_training_affirmed {
            return Err(DecisionError::TrainingNotAffirmed);
        }
        if training && grants.len() > 1 {
            return Err(DecisionError::TrainingTogether);
        }
        let once = grants
            .iter()
            .any(|draft| draft.access_mode == AccessMode::SingleUse);
        let mut expires_at = end(&grants, choice.expires_at, self.now)?;
        if once {
            expires_at = expires_at.min(end(&grants, Some(after(self.now, SINGLE_USE)), self.now)?);
        }
        // A selection that could not be issued cannot be reviewed.
        approval(
            grants.clone(),
            &as_granted(&asked.client),
            self.now,
            expires_at,
        )?;
        Ok(Review {
            request_id: request_id.to_owned(),
            client: asked.client.clone(),
            resource: asked.resource.clone(),
            grants,
            expires_at,
            ai_training_affirmed: training,
            digest: String::new(),
        }
        .sealed())
    }

    /// What a choice means against the catalog as it is now.
    pub(super) fn drafts(
        &self,
        asked: &PendingRequest,
        choice: &Choice,
    ) -> Result<Vec<Draft>, DecisionError> {
        let chosen = choice.streams.as_deref();
        if chosen.is_some_and(<[ChosenStream]>::is_empty) {
            return Err(DecisionError::NothingSelected);
        }
        let mut drafts = match (&asked.details, chosen) {
            (None, None) => return Err(DecisionError::NothingSelected),
            (None, Some(chosen)) => {
                let mode = choice.access_mode.unwrap_or(AccessMode::Continuous);
                Selection::from_choice(chosen.to_vec(), mode).resolve(self.store)?
            }
            (Some(details), None) => Selection::from_details(details)?.resolve(self.store)?,
            (Some(details), Some(chosen)) => {
                // Streams that do not exist cannot be chosen, and do not keep the owner from granting the rest.
                let offer = Selection::from_details(details)?.offer(self.store);
                narrow(offer.drafts, chosen, self.store)?
            }
        };
        if drafts.is_empty() {
            return Err(DecisionError::NothingSelected);
        }
        for draft in &mut drafts {
            match choice.access_mode {
                Some(AccessMode::Continuous) if draft.access_mode == AccessMode::SingleUse => {
                    return Err(DecisionError::OnlyOnce);
                }
                Some(mode) => draft.access_mode = mode,
                None => {}
            }
        }
        Ok(drafts)
    }
}
