//! Revoking while the database cannot be written: what is ended this way waits with the disclosures, and every look-up sees
//! it as ended meanwhile.

use contract::time::Instant;
use rusqlite::Transaction;

use super::EmbeddedStore;
use super::pending::{Ended, EndedKind};
use super::revoking::{
    Subject, known_end, revoke_grant, revoke_package, revoke_token, subjects_of,
};
use crate::grants::{
    Revocable, Revocation, RevocationReason, Revoked, StoredGrant, StoredPackage, StoredToken,
    TokenSubject,
};
use crate::{Result, StoreError};

/// What has ended although the database does not say so.
#[derive(Debug, Clone, Default)]
pub(in crate::sqlite) struct Endings(Vec<Ended>);

impl Endings {
    pub(in crate::sqlite) fn new(ended: impl Iterator<Item = Ended>) -> Self {
        Self(ended.collect())
    }

    fn find(&self, what: EndedKind, id: &str) -> Option<Revocation> {
        let found = self.0.iter().find(|ended| ended.is(what, id));
        found.map(Ended::revocation)
    }

    pub(super) fn apply_to_grant(&self, grant: &mut StoredGrant) {
        let package = grant.package_id.as_ref();
        let of_package = package.and_then(|id| self.find(EndedKind::Package, id.as_str()));
        let own = self.find(EndedKind::Grant, grant.id.as_str());
        grant.revoked = grant.revoked.or(own).or(of_package);
    }

    pub(super) fn apply_to_package(&self, package: &mut StoredPackage) {
        let own = self.find(EndedKind::Package, package.id.as_str());
        package.revoked = package.revoked.or(own);
        for grant in &mut package.grants {
            self.apply_to_grant(grant);
        }
    }

    pub(super) fn apply_to_token(&self, token: &mut StoredToken) {
        let own = self.find(EndedKind::Token, &token.id);
        token.revoked_at = token.revoked_at.or(own.map(|own| own.at));
        match &mut token.subject {
            TokenSubject::Owner => {}
            TokenSubject::Grant(grant) => self.apply_to_grant(grant),
            TokenSubject::Package(package) => self.apply_to_package(package),
        }
    }
}

impl EmbeddedStore {
    /// Ends something outside the database: at once for this process, and for good when it is in the file that waits.
    pub(super) fn revoke_outside(
        &self,
        what: Revocable<'_>,
        at: Instant,
        cause: StoreError,
    ) -> Result<Revoked> {
        let mut revoked = Revoked::Unknown;
        for ended in self.endings_by(what, at)? {
            revoked = self.look_up(&ended)?;
            if revoked == Revoked::Now {
                self.endings_mut().0.push(ended.clone());
                self.pending().end(ended);
            }
        }
        let mut pending = self.pending();
        let is_unknown = revoked == Revoked::Unknown;
        if is_unknown || pending.unwritten().is_empty() || pending.append(&[], &[]).is_ok() {
            return Ok(revoked);
        }
        Err(StoreError::EndedInMemory {
            cause: Box::new(cause),
        })
    }

    /// What ends with it. A family ends with what its tokens are for.
    fn endings_by(&self, what: Revocable<'_>, at: Instant) -> Result<Vec<Ended>> {
        let ended = |what: EndedKind, id: &str, reason| Ended {
            what,
            id: id.to_owned(),
            at,
            reason,
        };
        let owner = RevocationReason::Owner;
        Ok(match what {
            Revocable::Grant(id) => vec![ended(EndedKind::Grant, id.as_str(), owner)],
            Revocable::Package(id) => vec![ended(EndedKind::Package, id.as_str(), owner)],
            Revocable::Token(id) => vec![ended(EndedKind::Token, id, owner)],
            Revocable::Family(family) => {
                let subjects = self
                    .database
                    .read(|connection| subjects_of(connection, family, at))?;
                let reason = RevocationReason::TokensEnded;
                let subjects = subjects.iter().map(|subject| match subject {
                    Subject::Grant(id) => ended(EndedKind::Grant, id, reason),
                    Subject::Package(id) => ended(EndedKind::Package, id, reason),
                });
                subjects.collect()
            }
        })
    }

    fn look_up(&self, ended: &Ended) -> Result<Revoked> {
        let table = match ended.what {
            EndedKind::Grant => "grants",
            EndedKind::Package => "packages",
            EndedKind::Token => "tokens",
        };
        let known = self
            .database
            .read(|connection| known_end(connection, table, &ended.id))?;
        let outside = self.endings().find(ended.what, &ended.id);
        Ok(match (known, outside) {
            (Revoked::Now, Some(outside)) => Revoked::Already(outside.at),
            (known, _) => known,
        })
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
    for ended in ended {
        let Ended { what, id, at, .. } = ended;
        match what {
            EndedKind::Grant => revoke_grant(transaction, id, ended.revocation())?,
            EndedKind::Package => revoke_package(transaction, id, ended.revocation())?,
            EndedKind::Token => revoke_token(transaction, id, *at)?,
        };
    }
    Ok(())
}
