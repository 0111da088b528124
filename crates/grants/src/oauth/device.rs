//! The device flow (RFC 8628): a device polls while the owner types its code into a browser and decides as always.

use std::time::Duration;

use contract::id::ClientId;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::registry::{EntryKind, Expect};

use super::clients::{Client, GrantType};
use super::code::REMEMBERED;
use super::decision::DecisionError;
use super::error::OAuthError;
use super::parameters::Parameters;
use super::refresh::new_head;
use super::request::{GrantFlow, LIFE, PendingRequest};
use super::token_endpoint::{Minting, TokenResponse};
use super::{Issuer, later};
use crate::documents::{Found, find, key_of, put};
use crate::secret::{NoRandomness, Secret, random};

/// How many seconds a device waits between two polls.
pub const INTERVAL_SECONDS: u32 = 5;
/// How long a device code outlives the owner's time to decide, for an approval in the last second.
const GRACE: Duration = Duration::from_mins(5);
/// Letters that are not mistaken for others and spell no words.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LETTERS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceAuthorization {
    pub device_code: Secret,
    /// What its person types, as `ABCD-EFGH`.
    pub user_code: Secret,
    /// The address to type it at, without the code.
    pub verification_uri: String,
    /// The same address with the code.
    pub verification_uri_complete: Secret,
    pub expires_in: u64,
    /// How many seconds to wait between two polls.
    pub interval: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DeviceEntry {
    client_id: ClientId,
    request_id: String,
    expires_at: Instant,
    interval: u32,
    polled_at: Option<Instant>,
    /// The family of the tokens it became.
    redeemed: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct UserCodeEntry {
    request_id: String,
}

impl Issuer<'_> {
    /// Begins a device flow of a client that was looked up. `page` is the path where codes are typed.
    pub fn start_device(
        &self,
        client: &Client,
        parameters: &Parameters,
        page: &str,
    ) -> Result<DeviceAuthorization, OAuthError> {
        if parameters.required("client_id")? != client.client_id.as_str() {
            return Err(OAuthError::invalid_client(
                "this is not the client that was looked up",
            ));
        }
        if !client.may_use(GrantType::DeviceCode) {
            return Err(OAuthError::unauthorized_client(
                "this client did not register for urn:ietf:params:oauth:grant-type:device_code",
            ));
        }
        let (details, resource) = self.details_and_resource(parameters)?;
        let expires_at = later(self.now, LIFE);
        let request_id = self.stage(PendingRequest {
            client: client.clone(),
            details,
            resource,
            flow: GrantFlow::Device,
            expires_at,
        })?;
        let (device_code, user_code) = self.new_codes(client, request_id, expires_at)?;
        let verification_uri = format!("{}{page}", self.origin);
        let complete =
            super::uri::with_parameters(&verification_uri, &[("user_code", user_code.expose())]);
        Ok(DeviceAuthorization {
            device_code,
            user_code,
            verification_uri,
            verification_uri_complete: Secret::holding(complete),
            expires_in: LIFE.as_secs(),
            interval: INTERVAL_SECONDS,
        })
    }

    /// A device code and a user code that lead to a request.
    fn new_codes(
        &self,
        client: &Client,
        request_id: String,
        expires_at: Instant,
    ) -> Result<(Secret, Secret), OAuthError> {
        let device_code = Secret::random("pdpp_dc_")?;
        let user_code = new_user_code()?;
        let device = DeviceEntry {
            client_id: client.client_id.clone(),
            request_id: request_id.clone(),
            expires_at,
            interval: INTERVAL_SECONDS,
            polled_at: None,
            redeemed: None,
        };
        let typed = UserCodeEntry { request_id };
        let device_key = key_of(device_code.expose());
        let user_key = key_of(&normal(user_code.expose()));
        let changes = [
            put(EntryKind::DeviceCode, device_key, &device).until(later(expires_at, GRACE)),
            put(EntryKind::UserCode, user_key, &typed).until(expires_at),
        ]
        .map(|put| put.expecting(Expect::Absent));
        if !self.store.apply(&changes, self.now)? {
            return Err(OAuthError::server_error(
                "no user code could be made; try again",
            ));
        }
        Ok((device_code, user_code))
    }

    /// The request of a code that a person typed, in whatever case and with or without the dash.
    pub fn request_of_user_code(&self, typed: &str) -> Result<String, DecisionError> {
        let key = key_of(&normal(typed));
        let found = find::<UserCodeEntry>(self.store, EntryKind::UserCode, &key, self.now)?;
        let request_id = found.ok_or(DecisionError::Unknown)?.value.request_id;
        self.undecided(&request_id)?;
        Ok(request_id)
    }

    pub(super) fn poll_device(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<TokenResponse, OAuthError> {
        let key = key_of(parameters.required("device_code")?);
        let found = find::<DeviceEntry>(self.store, EntryKind::DeviceCode, &key, self.now)?
            .ok_or_else(refused)?;
        if let Some(family) = &found.value.redeemed {
            self.end_family(family)?;
            return Err(refused());
        }
        if found.value.client_id != client.client_id {
            return Err(refused());
        }
        let request = self.request_entry(&found.value.request_id)?;
        let request = request.ok_or_else(expired)?.value;
        match request.decision {
            None if found.value.expires_at <= self.now => Err(expired()),
            None => Err(self.pending_poll(found)?),
            Some(decision) => match decision.approved {
                None => Err(OAuthError::access_denied(
                    "the owner did not approve this request",
                )),
                Some(approval) => {
                    let audience = self.asked_audience(parameters, &request.asked.resource)?;
                    self.redeem_device(
                        found,
                        Minting {
                            client,
                            approval: &approval,
                            resource: &request.asked.resource,
                            audience,
                            head: new_head()?,
                            expect: Expect::Absent,
                            generation: 1,
                        },
                    )
                }
            },
        }
    }

    /// Notes the poll and answers that the device must wait; longer, if it polls too often.
    fn pending_poll(&self, found: Found<DeviceEntry>) -> Result<OAuthError, OAuthError> {
        let mut entry = found.value;
        let wait = Duration::from_secs(u64::from(entry.interval));
        let early = entry
            .polled_at
            .is_some_and(|last| later(last, wait) > self.now);
        if early {
            entry.interval = entry.interval.saturating_add(INTERVAL_SECONDS);
        }
        entry.polled_at = Some(self.now);
        let change = put(EntryKind::DeviceCode, &found.key, &entry)
            .until(found.expires_at)
            .expecting(Expect::Revision(found.revision));
        // Two polls at once: the other one is noted, and this one came too early.
        let noted = self.store.apply(&[change], self.now)?;
        Ok(if early || !noted {
            OAuthError::slow_down(format!(
                "wait {} seconds between two requests",
                entry.interval
            ))
        } else {
            OAuthError::authorization_pending("the owner has not decided yet")
        })
    }

    fn redeem_device(
        &self,
        found: Found<DeviceEntry>,
        minting: Minting<'_>,
    ) -> Result<TokenResponse, OAuthError> {
        let approval = minting.approval;
        self.check_standing(approval)?;
        let minted = self.mint(minting)?;
        let redeemed = DeviceEntry {
            redeemed: Some(minted.family.clone()),
            ..found.value
        };
        let once = put(EntryKind::DeviceCode, &found.key, &redeemed)
            .until(later(self.now, REMEMBERED))
            .expecting(Expect::Revision(found.revision));
        if self
            .store
            .apply(&minted.changes(approval, Some(once))?, self.now)?
        {
            return Ok(minted.response);
        }
        // It was redeemed at the same moment. Two holders of one code: the code has leaked.
        let kind = EntryKind::DeviceCode;
        let winner = find::<DeviceEntry>(self.store, kind, &found.key, self.now)?;
        if let Some(family) = winner.and_then(|winner| winner.value.redeemed) {
            self.end_family(&family)?;
        }
        Err(refused())
    }
}

/// Eight letters with a dash. Bytes that would make some letters likelier are thrown away.
fn new_user_code() -> Result<Secret, NoRandomness> {
    let fair = u8::MAX - u8::MAX % 20;
    let mut code = String::new();
    while code.len() <= LETTERS {
        for byte in random::<16>()?.into_iter().filter(|byte| *byte < fair) {
            let letter = ALPHABET
                .get(usize::from(byte % 20))
                .copied()
                .unwrap_or(b'B');
            if code.len() == LETTERS / 2 {
                code.push('-');
            }
            if code.len() <= LETTERS {
                code.push(char::from(letter));
            }
        }
    }
    Ok(Secret::holding(code))
}

/// What was typed, as it is stored: letters only, upper case.
fn normal(typed: &str) -> String {
    let letters = typed.chars().filter(char::is_ascii_alphanumeric);
    letters
        .map(|letter| letter.to_ascii_uppercase())
        .take(64)
        .collect()
}

fn refused() -> OAuthError {
    OAuthError::invalid_grant("the device code is unknown, used or not of this client; start again")
}

fn expired() -> OAuthError {
    OAuthError::expired_token("the owner did not decide in time; start again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_code_has_eight_letters_and_a_dash() {
        for _ in 0..200 {
            let code = new_user_code().unwrap();
            let (left, right) = code.expose().split_once('-').unwrap();
            assert_eq!((left.len(), right.len()), (4, 4));
            assert!(
                normal(code.expose())
                    .bytes()
                    .all(|letter| ALPHABET.contains(&letter))
            );
        }
        assert_eq!(normal(" bcdf gh-jk"), "BCDFGHJK");
    }
}
