//! Revoking while the database cannot be written: what is ended this way waits with the disclosures, and every look-up sees
//! it as ended meanwhile.

use contract::time::Instant;
use rusqlite::{OptionalExtension, Transaction};

use super::pending::{Ended, EndedKind};
use super::{EmbeddedStore, revoke_grant, revoke_package, revoke_token};
use crate::grants::{
    Revocable, Revocation, RevocationReason, Revoked, StoredGrant, StoredPackage, StoredToken,
    TokenSubject,
};
use crate::{Result, StoreError};

/// What has ended although the database does not say so.
#[derive(Debug, Clone, Default)]
pub(in crate::embedded) struct Endings(Vec<Ended>);

impl Endings {
    pub(in crate::embedded) fn of(ended: impl Iterator<Item = Ended>) -> Self {
        Self(ended.collect())
    }

    fn find(&self, what: EndedKind, id: &str) -> Option<Instant> {
        let found = self.0.iter().find(|ended| ended.is(what, id));
        found.map(|ended| ended.at)
    }

    pub(super) fn apply_to_grant(&self, grant: &mut StoredGrant) {
        let package = grant.package_id.as_ref();
        let of_package = package.and_then(|id| self.find(EndedKind::Package, id.as_str()));
        let at = self.find(EndedKind::Grant, grant.id.as_str());
        end(&mut grant.revoked, at.or(of_package));
    }

    pub(super) fn apply_to_package(&self, package: &mut StoredPackage) {
        end(
            &mut package.revoked,
            self.find(EndedKind::Package, package.id.as_str()),
        );
        for grant in &mut package.grants {
            self.apply_to_grant(grant);
        }
    }

    pub(super) fn apply_to_token(&self, token: &mut StoredToken) {
        let at = self.find(EndedKind::Token, &token.id);
        token.revoked_at = token.revoked_at.or(at);
        match &mut token.subject {
            TokenSubject::Owner => {}
            TokenSubject::Grant(grant) => self.apply_to_grant(grant),
            TokenSubject::Package(package) => self.apply_to_package(package),
        }
    }
}

fn end(revoked: &mut Option<Revocation>, at: Option<Instant>) {
    let by_owner = |at| Revocation {
        at,
        reason: RevocationReason::Owner,
    };
    *revoked = revoked.or(at.map(by_owner));
}

impl EmbeddedStore {
    /// Ends something outside the database: at once for this process, and for good when it is in the file that waits.
    pub(super) fn revoke_outside(
        &self,
        what: Revocable<'_>,
        at: Instant,
        cause: StoreError,
    ) -> Result<Revoked> {
        let revoked = self.look_up(what)?;
        let ended = Ended::new(what, at);
        if revoked == Revoked::Now {
            self.endings_mut().0.push(ended.clone());
        }
        let mut pending = self.pending();
        if revoked == Revoked::Now {
            pending.end(ended);
        }
        let is_unknown = revoked == Revoked::Unknown;
        if is_unknown || pending.unwritten().is_empty() || pending.append(&[], &[]).is_ok() {
            return Ok(revoked);
        }
        Err(StoreError::EndedInMemory {
            cause: Box::new(cause),
        })
    }

    /// What revoking would do.
    fn look_up(&self, what: Revocable<'_>) -> Result<Revoked> {
        use crate::Grants as _;
        let known = |ended: Option<Instant>| ended.map_or(Revoked::Now, Revoked::Already);
        let at = |revoked: Option<Revocation>| known(revoked.map(|revoked| revoked.at));
        let found = match what {
            Revocable::Grant(id) => self.grant(id)?.map(|grant| at(grant.revoked)),
            Revocable::Package(id) => self.package(id)?.map(|package| at(package.revoked)),
            Revocable::Token(id) => {
                let outside = self.endings().find(EndedKind::Token, id);
                self.database.read(|connection| {
                    connection
                        .prepare_cached("SELECT revoked_at FROM tokens WHERE id = ?1")?
                        .query_row([id], |row| {
                            let at: Option<i64> = row.get(0)?;
                            Ok(known(at.map(Instant).or(outside)))
                        })
                        .optional()
                })?
            }
        };
        Ok(found.unwrap_or(Revoked::Unknown))
    }

    /// The database says now what had ended outside it.
    pub(super) fn forget_endings(&self, written: &[Ended]) {
        if !written.is_empty() {
            self.endings_mut()
                .0
                .retain(|ended| !written.contains(ended));
        }
    }
}

/// Ends in the database what had ended outside it.
pub(super) fn revoke_all<'a>(
    transaction: &Transaction<'_>,
    ended: impl Iterator<Item = &'a Ended>,
) -> rusqlite::Result<()> {
    for Ended { what, id, at } in ended {
        match what {
            EndedKind::Grant => revoke_grant(transaction, id, *at)?,
            EndedKind::Package => revoke_package(transaction, id, *at)?,
            EndedKind::Token => revoke_token(transaction, id, *at)?,
        };
    }
    Ok(())
}
