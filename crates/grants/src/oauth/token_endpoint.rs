//! The token endpoint: the grant type of a request, and the tokens it gets.

use std::time::Duration;

use contract::grant::{Grant, GrantedStream};
use contract::id::{GrantId, PackageId};
use contract::time::Instant;
use serde::Serialize;
use serde_json::{Value, json};
use store::StoreError;
use store::grants::NewToken;
use store::registry::{Change, EntryKind, Expect};

use super::clients::{Client, GrantType};
use super::decision::Approval;
use super::error::OAuthError;
use super::parameters::Parameters;
use super::refresh::{self, RefreshEntry};
use super::{Issuer, later};
use crate::documents::text;
use crate::issue::new_token;
use crate::secret::Secret;
use crate::token::{TokenError, live_grant};

/// How long an access token lives beside a refresh token.
const ACCESS: Duration = Duration::from_hours(1);

/// What the token endpoint answers. Both tokens are in clear here and nowhere else.
#[derive(Debug, Clone, Serialize)]
pub struct TokenResponse {
    pub access_token: Secret,
    /// `Bearer`.
    pub token_type: &'static str,
    pub expires_in: i64,
    /// The token that renews it, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_package_id: Option<PackageId>,
    /// What was granted, for a single grant (RFC 9396).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_details: Option<Vec<Value>>,
}

pub(super) struct Minting<'a> {
    pub(super) client: &'a Client,
    pub(super) approval: &'a Approval,
    pub(super) resource: &'a str,
    /// What this access token is for.
    pub(super) audience: String,
    /// The part that all refresh tokens of the family begin with.
    pub(super) head: Secret,
    /// What must be stored of the family for the change to happen.
    pub(super) expect: Expect,
    pub(super) generation: u64,
}

/// New tokens that are not stored yet.
pub(super) struct Minted {
    pub(super) response: TokenResponse,
    pub(super) family: String,
    token: NewToken,
    refresh: Option<(String, Instant, Expect)>,
}

impl Minted {
    /// The changes that store them, together with `first`, which ensures that it happens once.
    pub(super) fn changes<'b>(
        &'b self,
        approval: &'b Approval,
        first: Option<Change<'b>>,
    ) -> Result<Vec<Change<'b>>, OAuthError> {
        let of = approval.token_for().ok_or_else(ended)?;
        let mut changes: Vec<Change<'b>> = first.into_iter().collect();
        changes.push(Change::Issue {
            token: &self.token,
            of,
        });
        if let Some((document, expires_at, expect)) = &self.refresh {
            let put = Change::put(EntryKind::Refresh, &self.family, document);
            changes.push(put.until(*expires_at).expecting(*expect));
        }
        Ok(changes)
    }
}

impl Issuer<'_> {
    pub fn token(&self, parameters: &Parameters) -> Result<TokenResponse, OAuthError> {
        let name = parameters.required("grant_type")?;
        let grant_type = GrantType::named(name).ok_or_else(|| {
            OAuthError::unsupported_grant_type(
                "grant_type must be authorization_code, refresh_token or urn:ietf:params:oauth:grant-type:device_code",
            )
        })?;
        let client = self.known_client(parameters.required("client_id")?)?;
        if !client.may_use(grant_type) {
            return Err(OAuthError::unauthorized_client(
                "this client did not register for this grant_type",
            ));
        }
        match grant_type {
            GrantType::AuthorizationCode => self.redeem_code(&client, parameters),
            GrantType::RefreshToken => self.refresh(&client, parameters),
            GrantType::DeviceCode => self.poll_device(&client, parameters),
        }
    }

    /// The audience that this request asks for: what was approved, or a part of it.
    pub(super) fn asked_audience(
        &self,
        parameters: &Parameters,
        approved: &str,
    ) -> Result<String, OAuthError> {
        let Some(asked) = parameters.optional("resource")? else {
            return Ok(approved.to_owned());
        };
        let asked = self.audience(Some(asked))?;
        if asked == approved || approved == self.origin {
            Ok(asked)
        } else {
            Err(OAuthError::invalid_target(format!(
                "only {approved} was approved"
            )))
        }
    }

    /// Refuses a grant or package that has ended.
    pub(super) fn check_standing(&self, approval: &Approval) -> Result<(), OAuthError> {
        match approval.check(self.store, self.now) {
            Ok(()) => Ok(()),
            Err(TokenError::Store(error)) => Err(error.into()),
            Err(_) => Err(ended()),
        }
    }

    /// Makes tokens for a live grant or package. They are valid once their changes are applied.
    pub(super) fn mint(&self, minting: Minting<'_>) -> Result<Minted, OAuthError> {
        let approval = minting.approval;
        let renewable = !approval.single_use && minting.client.may_use(GrantType::RefreshToken);
        let expires_at = if renewable {
            later(self.now, ACCESS).min(approval.ends)
        } else {
            approval.ends
        };
        let access_token = Secret::random("pdpp_at_")?;
        let family = refresh::family_of(&minting.head);
        let mut token = new_token(&access_token, self.now, expires_at)?;
        token.audience = Some(minting.audience);
        token.family = Some(family.clone());
        let mut refresh_token = None;
        let mut stored = None;
        if renewable {
            let secret = refresh::next_token(&minting.head)?;
            let document = text(&RefreshEntry {
                client_id: minting.client.client_id.clone(),
                approval: approval.clone(),
                resource: minting.resource.to_owned(),
                generation: minting.generation,
                current: refresh::fingerprint(secret.expose()),
            });
            let idle = later(self.now, refresh::IDLE).min(approval.ends);
            stored = Some((document, idle, minting.expect));
            refresh_token = Some(secret);
        }
        let details = match &approval.grant_id {
            Some(id) => self.details_of(id)?,
            None => None,
        };
        Ok(Minted {
            response: TokenResponse {
                access_token,
                token_type: "Bearer",
                expires_in: expires_at
                    .0
                    .saturating_sub(self.now.0)
                    .div_euclid(1_000_000),
                refresh_token,
                grant_id: approval.grant_id.clone(),
                grant_package_id: approval.package_id.clone(),
                authorization_details: details.map(|detail| vec![detail]),
            },
            family,
            token,
            refresh: stored,
        })
    }

    fn details_of(&self, id: &GrantId) -> Result<Option<Value>, StoreError> {
        let stored = self.store.grant(id)?;
        Ok(stored
            .and_then(|stored| live_grant(&stored, self.now).ok())
            .map(|grant| granted_detail(&grant, without_rules)))
    }
}

pub(super) fn granted_detail(
    grant: &Grant,
    told: impl Fn(&GrantedStream) -> GrantedStream,
) -> Value {
    let grant = grant.document();
    let mut detail = json!({
        "type": "https://pdpp.dev/data-access",
        "source": grant.source,
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode,
        "streams": grant.streams.iter().map(told).collect::<Vec<_>>(),
    });
    if let Some(members) = detail.as_object_mut() {
        let optional = [
            ("purpose_description", json!(grant.purpose_description)),
            ("selection_preset", json!(grant.selection_preset)),
            ("retention", json!(grant.retention)),
        ];
        for (name, value) in optional {
            if !value.is_null() {
                members.insert(name.to_owned(), value);
            }
        }
    }
    detail
}

/// A stream as its client may know it: rules name values and fields that are hidden from it.
fn without_rules(stream: &GrantedStream) -> GrantedStream {
    GrantedStream {
        only: None,
        except: None,
        ..stream.clone()
    }
}

fn ended() -> OAuthError {
    OAuthError::invalid_grant("what was granted has ended; authorise again")
}
