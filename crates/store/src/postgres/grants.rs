//! Grants, packages and tokens as rows. Each change is one transaction: an approval or a revocation is never half done, and when
//! it returns, every node sees it.

mod log;
mod narrow;
mod revoking;

use contract::grant::Grant;
use contract::id::{GrantId, PackageId};
use contract::time::Instant;

use super::PostgresStore;
use super::pool::{Param, Row, Tx};
use crate::grants::{
    ChainCheck, Disclosure, Grants, LoggedDisclosure, NewApproval, NewToken, Revocable, Revocation,
    RevocationReason, Revoked, SELECTOR_BYTES, StoredGrant, StoredPackage, StoredToken,
    TokenSubject, TokenUse, connections_of,
};
use crate::registry::EntryKind;
use crate::{Result, StoreError};

const TOKEN_COLUMNS: &str = "t.id, t.hash, t.issued_at, t.expires_at, t.revoked_at, t.last_used_at, \
                             t.grant_id, t.package_id, t.audience, t.family";
/// Where the columns of a package begin in a row that begins with a token, and those of a grant after these.
const AFTER_TOKEN: usize = 10;
const PACKAGE_COLUMNS: &str = "p.id, p.client_id, p.issued_at, p.revoked_at, p.revoked_reason";
const AFTER_PACKAGE: usize = 5;
const GRANT_COLUMNS: &str = "g.id, g.package_id, g.client_id, g.document, g.issued_at, g.expires_at, g.revoked_at, \
                             g.revoked_reason, g.narrowed_at, g.last_used_at, g.redeem_by";

impl Grants for PostgresStore {
    fn approve(&self, approval: &NewApproval) -> Result<()> {
        self.pool.transact(|tx| self.insert_approval(tx, approval))
    }

    fn add_owner_token(&self, token: &NewToken) -> Result<()> {
        self.pool.transact(|tx| {
            tx.execute(
                "DELETE FROM tokens
                 WHERE owner_id = $1 AND grant_id IS NULL AND package_id IS NULL AND expires_at <= $2",
                &[&self.owner, &token.issued_at.0],
            )?;
            self.insert_token(tx, token, None, None)
        })
    }

    fn token_candidates(&self, selector: [u8; SELECTOR_BYTES]) -> Result<Vec<StoredToken>> {
        self.tokens(
            "t.owner_id = $1 AND t.selector = $2",
            &[&self.owner, &selector.as_slice()],
        )
    }

    fn owner_tokens(&self) -> Result<Vec<StoredToken>> {
        self.tokens(
            "t.owner_id = $1 AND t.grant_id IS NULL AND t.package_id IS NULL",
            &[&self.owner],
        )
    }

    fn grant(&self, id: &GrantId) -> Result<Option<StoredGrant>> {
        let sql = format!("SELECT {GRANT_COLUMNS} FROM grants g WHERE owner_id = $1 AND id = $2");
        let row = self.pool.query_opt(&sql, &[&self.owner, &id.as_str()])?;
        row.map(|row| read_grant(&row, 0)).transpose()
    }

    fn grants(&self) -> Result<Vec<StoredGrant>> {
        let sql = format!(
            "SELECT {GRANT_COLUMNS} FROM grants g WHERE owner_id = $1 ORDER BY ordinal DESC"
        );
        let rows = self.pool.query(&sql, &[&self.owner])?;
        rows.iter().map(|row| read_grant(row, 0)).collect()
    }

    fn tokens_end(&self, id: &GrantId) -> Result<Option<Instant>> {
        let row = self.pool.query_one(
            "SELECT max(greatest(
                 least(t.expires_at, coalesce(t.revoked_at, t.expires_at)),
                 coalesce(r.expires_at, 0)
             ))
             FROM tokens t LEFT JOIN registry r ON r.owner_id = t.owner_id AND r.kind = $3 AND r.key = t.family
             WHERE t.owner_id = $1 AND (
                 t.grant_id = $2
                 OR t.package_id = (SELECT package_id FROM grants WHERE owner_id = $1 AND id = $2)
             )",
            &[&self.owner, &id.as_str(), &EntryKind::Refresh.as_str()],
        )?;
        moment(&row, 0)
    }

    fn package(&self, id: &PackageId) -> Result<Option<StoredPackage>> {
        let found = self.stored_packages(
            "p.owner_id = $1 AND p.id = $2",
            &[&self.owner, &id.as_str()],
        )?;
        Ok(found.into_iter().next())
    }

    fn packages(&self) -> Result<Vec<StoredPackage>> {
        self.stored_packages("p.owner_id = $1", &[&self.owner])
    }

    fn revoke(&self, what: Revocable<'_>, at: Instant) -> Result<Revoked> {
        self.pool.transact(|tx| self.end(tx, what, at))
    }

    fn log_disclosures(&self, disclosures: &[Disclosure], uses: &[TokenUse]) -> Result<()> {
        self.append_disclosures(disclosures, uses)
    }

    /// None: what cannot be written to the database is not disclosed.
    fn log_room(&self) -> u64 {
        0
    }

    fn can_log(&self, _: u64) -> bool {
        self.pool.transact(|tx| self.lock_end(tx)).is_ok()
    }

    fn disclosures(
        &self,
        grant: Option<&GrantId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<LoggedDisclosure>> {
        self.logged(grant, before, limit)
    }

    fn check_disclosures(&self) -> Result<ChainCheck> {
        self.check_chain()
    }
}

impl PostgresStore {
    /// A selection is made before the transaction begins; a connection may have been removed in between, and none of them can be
    /// until the transaction has ended.
    fn refuse_removed(&self, tx: &Tx<'_>, grants: &[Grant]) -> Result<()> {
        let mut wanted: Vec<_> = grants.iter().flat_map(connections_of).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let ids: Vec<&str> = wanted.iter().map(|id| id.as_str()).collect();
        let there = tx.query(
            "SELECT id FROM connections WHERE owner_id = $1 AND id = ANY($2) ORDER BY id FOR SHARE",
            &[&self.owner, &ids],
        )?;
        for id in wanted {
            let mut found = false;
            for row in &there {
                found |= row.get::<&str>(0)? == id.as_str();
            }
            if !found {
                return Err(StoreError::UnknownConnection(id.clone()));
            }
        }
        Ok(())
    }

    /// Refused when a connection that it names is gone.
    pub(super) fn insert_approval(&self, tx: &Tx<'_>, approval: &NewApproval) -> Result<()> {
        self.refuse_removed(tx, &approval.grants)?;
        let package = approval.package.as_ref().map(PackageId::as_str);
        let issued_at = approval.issued_at.0;
        if let Some(id) = package {
            tx.execute(
                "INSERT INTO packages (owner_id, id, client_id, issued_at) VALUES ($1, $2, $3, $4)",
                &[&self.owner, &id, &approval.client_id.as_str(), &issued_at],
            )?;
        }
        for grant in &approval.grants {
            let document = serde_json::to_string(grant).map_err(|error| StoreError::Database {
                place: self.place().to_owned(),
                detail: format!("grant {} cannot be written: {error}", grant.id()),
            })?;
            tx.execute(
                "INSERT INTO grants (owner_id, id, package_id, client_id, document, issued_at, expires_at, redeem_by)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    &self.owner,
                    &grant.id().as_str(),
                    &package,
                    &grant.client_id().as_str(),
                    &document,
                    &issued_at,
                    &grant.expires_at().map(|at| at.0),
                    &approval.redeem_by.map(|at| at.0),
                ],
            )?;
        }
        let grant = match (package, approval.grants.first()) {
            (None, Some(grant)) => Some(grant.id().as_str()),
            _ => None,
        };
        match &approval.token {
            Some(token) => self.insert_token(tx, token, grant, package),
            None => Ok(()),
        }
    }

    pub(super) fn insert_token(
        &self,
        tx: &Tx<'_>,
        token: &NewToken,
        grant: Option<&str>,
        package: Option<&str>,
    ) -> Result<()> {
        let (selector, _) = token.hash.split_at(SELECTOR_BYTES);
        tx.execute(
            "UPDATE grants SET redeem_by = NULL
             WHERE owner_id = $1 AND redeem_by IS NOT NULL AND (id = $2 OR package_id = $3)",
            &[&self.owner, &grant, &package],
        )?;
        tx.execute(
            "INSERT INTO tokens (owner_id, id, selector, hash, grant_id, package_id, issued_at, expires_at, audience, family)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &[
                &self.owner,
                &token.id,
                &selector,
                &token.hash.as_slice(),
                &grant,
                &package,
                &token.issued_at.0,
                &token.expires_at.0,
                &token.audience,
                &token.family,
            ],
        )
        .map(drop)
    }

    /// Tokens, newest first, each with what it stands for: one statement, so all is seen at one moment.
    fn tokens(&self, which: &str, params: &[&dyn Param]) -> Result<Vec<StoredToken>> {
        let sql = format!(
            "SELECT {TOKEN_COLUMNS}, {PACKAGE_COLUMNS}, {GRANT_COLUMNS} FROM tokens t
             LEFT JOIN packages p ON p.owner_id = t.owner_id AND p.id = t.package_id
             LEFT JOIN grants g ON g.owner_id = t.owner_id AND (g.id = t.grant_id OR g.package_id = t.package_id)
             WHERE {which} ORDER BY t.ordinal DESC, g.ordinal"
        );
        let rows = self.pool.glance(|tx| tx.query(&sql, params))?;
        let mut tokens: Vec<StoredToken> = Vec::new();
        for row in &rows {
            let id: &str = row.get(0)?;
            match tokens.last_mut().filter(|token| token.id == id) {
                None => tokens.push(read_token(row)?),
                Some(token) => {
                    if let TokenSubject::Package(package) = &mut token.subject {
                        package
                            .grants
                            .extend(grant_of_package(row, AFTER_TOKEN + AFTER_PACKAGE)?);
                    }
                }
            }
        }
        Ok(tokens)
    }

    /// Packages, newest first, with their grants in the order they were issued.
    fn stored_packages(&self, which: &str, params: &[&dyn Param]) -> Result<Vec<StoredPackage>> {
        let sql = format!(
            "SELECT {PACKAGE_COLUMNS}, {GRANT_COLUMNS} FROM packages p
             LEFT JOIN grants g ON g.owner_id = p.owner_id AND g.package_id = p.id
             WHERE {which} ORDER BY p.ordinal DESC, g.ordinal"
        );
        let rows = self.pool.query(&sql, params)?;
        let mut packages: Vec<StoredPackage> = Vec::new();
        for row in &rows {
            let id: &str = row.get(0)?;
            match packages
                .last_mut()
                .filter(|package| package.id.as_str() == id)
            {
                None => packages.push(read_package(row, 0)?),
                Some(package) => package.grants.extend(grant_of_package(row, AFTER_PACKAGE)?),
            }
        }
        Ok(packages)
    }
}

/// The token of a row that has its package and a grant after it.
fn read_token(row: &Row) -> Result<StoredToken> {
    let package: Option<&str> = row.get(AFTER_TOKEN)?;
    let grant: Option<&str> = row.get(AFTER_TOKEN + AFTER_PACKAGE)?;
    let subject = match (package, grant) {
        (Some(_), _) => TokenSubject::Package(read_package(row, AFTER_TOKEN)?),
        (None, Some(_)) => {
            let grant = read_grant(row, AFTER_TOKEN + AFTER_PACKAGE)?;
            TokenSubject::Grant(Box::new(grant))
        }
        (None, None) => TokenSubject::Owner,
    };
    let hash: &[u8] = row.get(1)?;
    Ok(StoredToken {
        id: row.get(0)?,
        // One of another length matches no token.
        hash: hash.try_into().unwrap_or([0; 32]),
        issued_at: Instant(row.get(2)?),
        expires_at: Instant(row.get(3)?),
        revoked_at: moment(row, 4)?,
        last_used_at: moment(row, 5)?,
        audience: row.get(8)?,
        family: row.get(9)?,
        subject,
    })
}

/// The package of a row, with the grant that follows it there, if any.
fn read_package(row: &Row, first: usize) -> Result<StoredPackage> {
    Ok(StoredPackage {
        id: row.parse(first)?,
        client_id: row.parse(first + 1)?,
        issued_at: Instant(row.get(first + 2)?),
        revoked: revocation(row, first + 3)?,
        grants: grant_of_package(row, first + AFTER_PACKAGE)?
            .into_iter()
            .collect(),
    })
}

fn grant_of_package(row: &Row, first: usize) -> Result<Option<StoredGrant>> {
    let id: Option<&str> = row.get(first)?;
    id.map(|_| read_grant(row, first)).transpose()
}

fn read_grant(row: &Row, first: usize) -> Result<StoredGrant> {
    let package: Option<&str> = row.get(first + 1)?;
    Ok(StoredGrant {
        id: row.parse(first)?,
        package_id: package.map(|_| row.parse(first + 1)).transpose()?,
        client_id: row.parse(first + 2)?,
        document: row.get(first + 3)?,
        issued_at: Instant(row.get(first + 4)?),
        expires_at: moment(row, first + 5)?,
        redeem_by: moment(row, first + 10)?,
        revoked: revocation(row, first + 6)?,
        narrowed_at: moment(row, first + 8)?,
        last_used_at: moment(row, first + 9)?,
    })
}

fn moment(row: &Row, column: usize) -> Result<Option<Instant>> {
    Ok(row.get::<Option<i64>>(column)?.map(Instant))
}

/// Reads the two columns that say when and why something ended.
fn revocation(row: &Row, column: usize) -> Result<Option<Revocation>> {
    let Some(at) = moment(row, column)? else {
        return Ok(None);
    };
    let reason = RevocationReason::stored(row.get(column + 1)?);
    Ok(Some(Revocation { at, reason }))
}
