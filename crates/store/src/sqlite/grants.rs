//! Grants, packages and tokens as rows. Each change is one transaction: an approval or a revocation is never half done.

mod disclosures;
mod ended;
mod narrow;
mod pending;
mod revoking;

use contract::grant::Grant;
use contract::id::{ClientId, GrantId, IdError, PackageId};
use contract::time::Instant;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::EmbeddedStore;
use crate::grants::{
    ChainCheck, Disclosure, Grants, LoggedDisclosure, NewApproval, NewToken, Revocable, Revocation,
    RevocationReason, Revoked, SELECTOR_BYTES, StoredGrant, StoredPackage, StoredToken,
    TokenSubject, TokenUse, connections_of,
};
use crate::registry::EntryKind;
use crate::sqlite::tx_error::TxResult;
use crate::{Result, StoreError};

pub(crate) use self::disclosures::{ends, note_ends};
pub(super) use self::ended::Endings;
pub(super) use self::narrow::forget_connection;
pub(super) use self::pending::Pending;
use self::revoking::{revoke_family, revoke_grant, revoke_package, revoke_token};

const GRANT_COLUMNS: &str = "id, package_id, client_id, document, issued_at, expires_at, revoked_at, \
                             revoked_reason, narrowed_at, last_used_at, redeem_by";
const PACKAGE_COLUMNS: &str = "id, client_id, issued_at, revoked_at, revoked_reason";
const TOKEN_COLUMNS: &str = "id, hash, issued_at, expires_at, revoked_at, last_used_at, grant_id, package_id, audience, family";

impl Grants for EmbeddedStore {
    fn approve(&self, approval: &NewApproval) -> Result<()> {
        self.database.transact(|transaction| {
            refuse_removed(transaction, &approval.grants)?;
            self.insert_approval(transaction, approval)
        })
    }

    fn add_owner_token(&self, token: &NewToken) -> Result<()> {
        self.database.transact(|transaction| {
                            transaction.execute(
                    "DELETE FROM tokens WHERE grant_id IS NULL AND package_id IS NULL AND expires_at <= ?1",
                    [token.issued_at.0],
                )?;
                Ok(insert_token(transaction, token, None, None)?)
        })
    }

    fn token_candidates(&self, selector: [u8; SELECTOR_BYTES]) -> Result<Vec<StoredToken>> {
        self.tokens(
            &format!("SELECT {TOKEN_COLUMNS} FROM tokens WHERE selector = ?1"),
            params![selector.as_slice()],
        )
    }

    fn owner_tokens(&self) -> Result<Vec<StoredToken>> {
        self.tokens(
            &format!(
                "SELECT {TOKEN_COLUMNS} FROM tokens WHERE grant_id IS NULL AND package_id IS NULL ORDER BY ordinal DESC"
            ),
            params![],
        )
    }

    fn grant(&self, id: &GrantId) -> Result<Option<StoredGrant>> {
        let mut found = self
            .database
            .read(|connection| find_grant(connection, id.as_str()))?;
        let endings = self.endings();
        if let Some(grant) = &mut found {
            endings.apply_to_grant(grant);
        }
        Ok(found)
    }

    fn grants(&self) -> Result<Vec<StoredGrant>> {
        let mut grants: Vec<StoredGrant> = self.database.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {GRANT_COLUMNS} FROM grants ORDER BY ordinal DESC"
                ))?
                .query_map([], read_grant)?
                .collect()
        })?;
        let endings = self.endings();
        for grant in &mut grants {
            endings.apply_to_grant(grant);
        }
        Ok(grants)
    }

    fn tokens_end(&self, id: &GrantId) -> Result<Option<Instant>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT max(max(
                         min(tokens.expires_at, ifnull(tokens.revoked_at, tokens.expires_at)),
                         ifnull(registry.expires_at, 0)
                     ))
                     FROM tokens LEFT JOIN registry ON kind = ?2 AND key = family
                     WHERE grant_id = ?1 OR package_id = (SELECT package_id FROM grants WHERE id = ?1)",
                )?
                .query_row([id.as_str(), EntryKind::Refresh.as_str()], |row| moment(row, 0))
        })
    }

    fn package(&self, id: &PackageId) -> Result<Option<StoredPackage>> {
        let mut found = self
            .database
            .snapshot(|connection| Ok(find_package(connection, id.as_str())?))?;
        let endings = self.endings();
        if let Some(package) = &mut found {
            endings.apply_to_package(package);
        }
        Ok(found)
    }

    fn packages(&self) -> Result<Vec<StoredPackage>> {
        let mut packages = self.database.snapshot(|connection| {
            let mut packages: Vec<StoredPackage> = connection
                .prepare_cached(&format!(
                    "SELECT {PACKAGE_COLUMNS} FROM packages ORDER BY ordinal DESC"
                ))?
                .query_map([], read_package)?
                .collect::<rusqlite::Result<_>>()?;
            for package in &mut packages {
                package.grants = grants_of(connection, package.id.as_str())?;
            }
            Ok(packages)
        })?;
        let endings = self.endings();
        for package in &mut packages {
            endings.apply_to_package(package);
        }
        Ok(packages)
    }

    fn revoke(&self, what: Revocable<'_>, at: Instant) -> Result<Revoked> {
        let revoked = self.database.transact(|transaction| {
            Ok(match what {
                Revocable::Grant(id) => {
                    revoke_grant(transaction, id.as_str(), Revocation::by_owner(at))
                }
                Revocable::Package(id) => {
                    revoke_package(transaction, id.as_str(), Revocation::by_owner(at))
                }
                Revocable::Token(id) => revoke_token(transaction, id, at),
                Revocable::Family(id) => revoke_family(transaction, id, at),
            }?)
        });
        match revoked {
            // Ending something twice is harmless, so whatever a failed disk has kept of the change does not matter.
            Err(error @ StoreError::DiskFailed { .. }) => self.revoke_outside(what, at, error),
            Err(error) if self.database.cannot_grow(&error) => self.revoke_outside(what, at, error),
            revoked => revoked,
        }
    }

    fn log_disclosures(&self, disclosures: &[Disclosure], uses: &[TokenUse]) -> Result<()> {
        self.append_disclosures(disclosures, uses)
    }

    fn log_room(&self) -> u64 {
        let mut pending = self.pending();
        pending.allocate();
        pending.room()
    }

    fn can_log(&self, bytes: u64) -> bool {
        self.log_room() >= bytes
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

impl EmbeddedStore {
    pub(super) fn insert_approval(
        &self,
        transaction: &Transaction<'_>,
        approval: &NewApproval,
    ) -> TxResult<()> {
        let package = approval.package.as_ref().map(PackageId::as_str);
        let issued_at = approval.issued_at.0;
        if let Some(id) = package {
            transaction.execute(
                "INSERT INTO packages (id, client_id, issued_at) VALUES (?1, ?2, ?3)",
                params![id, approval.client_id.as_str(), issued_at],
            )?;
        }
        for grant in &approval.grants {
            let document = serde_json::to_string(grant).map_err(|error| {
                StoreError::engine(
                    self.path(),
                    format!("grant {} cannot be written: {error}", grant.id()),
                )
            })?;
            transaction.execute(
                    "INSERT INTO grants (id, package_id, client_id, document, issued_at, expires_at, redeem_by)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![
                        grant.id().as_str(),
                        package,
                        grant.client_id().as_str(),
                        document,
                        issued_at,
                        grant.expires_at().map(|at| at.0),
                        approval.redeem_by.map(|at| at.0)
                    ],
                )?;
        }
        let grant = match (package, approval.grants.first()) {
            (None, Some(grant)) => Some(grant.id().as_str()),
            _ => None,
        };
        match &approval.token {
            Some(token) => Ok(insert_token(transaction, token, grant, package)?),
            None => Ok(()),
        }
    }

    /// The tokens of a query, each with what it stands for, all seen at one moment.
    fn tokens(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<StoredToken>> {
        let mut tokens = self.database.snapshot(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(values)?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                tokens.extend(read_token(connection, row)?);
            }
            Ok(tokens)
        })?;
        let endings = self.endings();
        for token in &mut tokens {
            endings.apply_to_token(token);
        }
        Ok(tokens)
    }
}

/// A selection is made before the transaction begins; a connection may have been removed in between.
pub(super) fn refuse_removed(transaction: &Transaction<'_>, grants: &[Grant]) -> TxResult<()> {
    for id in grants.iter().flat_map(connections_of) {
        let there: bool = transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM connections WHERE id = ?1)")
            .and_then(|mut statement| statement.query_row([id.as_str()], |row| row.get(0)))?;
        if !there {
            return Err(StoreError::UnknownConnection(id.clone()).into());
        }
    }
    Ok(())
}

pub(super) fn insert_token(
    transaction: &Transaction<'_>,
    token: &NewToken,
    grant: Option<&str>,
    package: Option<&str>,
) -> rusqlite::Result<()> {
    let (selector, _) = token.hash.split_at(SELECTOR_BYTES);
    transaction.execute(
        "UPDATE grants SET redeem_by = NULL
         WHERE redeem_by IS NOT NULL AND (id = ?1 OR package_id = ?2)",
        params![grant, package],
    )?;
    transaction
        .execute(
            "INSERT INTO tokens (id, selector, hash, grant_id, package_id, issued_at, expires_at, audience, family)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                token.id,
                selector,
                token.hash.as_slice(),
                grant,
                package,
                token.issued_at.0,
                token.expires_at.0,
                token.audience,
                token.family
            ],
        )
        .map(drop)
}

fn find_grant(connection: &Connection, id: &str) -> rusqlite::Result<Option<StoredGrant>> {
    connection
        .prepare_cached(&format!("SELECT {GRANT_COLUMNS} FROM grants WHERE id = ?1"))?
        .query_row([id], read_grant)
        .optional()
}

fn find_package(connection: &Connection, id: &str) -> rusqlite::Result<Option<StoredPackage>> {
    let package = connection
        .prepare_cached(&format!(
            "SELECT {PACKAGE_COLUMNS} FROM packages WHERE id = ?1"
        ))?
        .query_row([id], read_package)
        .optional()?;
    let Some(mut package) = package else {
        return Ok(None);
    };
    package.grants = grants_of(connection, id)?;
    Ok(Some(package))
}

fn grants_of(connection: &Connection, package: &str) -> rusqlite::Result<Vec<StoredGrant>> {
    connection
        .prepare_cached(&format!(
            "SELECT {GRANT_COLUMNS} FROM grants WHERE package_id = ?1 ORDER BY ordinal"
        ))?
        .query_map([package], read_grant)?
        .collect()
}

fn read_grant(row: &Row<'_>) -> rusqlite::Result<StoredGrant> {
    let package: Option<String> = row.get(1)?;
    Ok(StoredGrant {
        id: id(row, 0, GrantId::parse)?,
        package_id: package
            .map(PackageId::parse)
            .transpose()
            .map_err(unreadable(1))?,
        client_id: id(row, 2, ClientId::parse)?,
        document: row.get(3)?,
        issued_at: Instant(row.get(4)?),
        expires_at: moment(row, 5)?,
        redeem_by: moment(row, 10)?,
        revoked: revocation(row, 6)?,
        narrowed_at: moment(row, 8)?,
        last_used_at: moment(row, 9)?,
    })
}

/// Leaves the grants to be filled in.
fn read_package(row: &Row<'_>) -> rusqlite::Result<StoredPackage> {
    Ok(StoredPackage {
        id: id(row, 0, PackageId::parse)?,
        client_id: id(row, 1, ClientId::parse)?,
        issued_at: Instant(row.get(2)?),
        revoked: revocation(row, 3)?,
        grants: Vec::new(),
    })
}

/// A token with its subject; `None` when the subject is gone, which makes the token worthless.
fn read_token(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Option<StoredToken>> {
    let grant: Option<String> = row.get(6)?;
    let package: Option<String> = row.get(7)?;
    let subject = match (grant, package) {
        (None, None) => Some(TokenSubject::Owner),
        (Some(id), None) => {
            find_grant(connection, &id)?.map(|grant| TokenSubject::Grant(Box::new(grant)))
        }
        (None, Some(id)) => find_package(connection, &id)?.map(TokenSubject::Package),
        (Some(_), Some(_)) => None,
    };
    let Some(subject) = subject else {
        return Ok(None);
    };
    Ok(Some(StoredToken {
        id: row.get(0)?,
        hash: row.get(1)?,
        issued_at: Instant(row.get(2)?),
        expires_at: Instant(row.get(3)?),
        revoked_at: moment(row, 4)?,
        last_used_at: moment(row, 5)?,
        audience: row.get(8)?,
        family: row.get(9)?,
        subject,
    }))
}

fn id<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(String) -> std::result::Result<T, IdError>,
) -> rusqlite::Result<T> {
    parse(row.get(column)?).map_err(unreadable(column))
}

fn unreadable(column: usize) -> impl FnOnce(IdError) -> rusqlite::Error {
    move |error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    }
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Instant>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Instant))
}

/// Reads the two columns that say when and why something ended.
fn revocation(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Revocation>> {
    let Some(at) = moment(row, column)? else {
        return Ok(None);
    };
    let reason: String = row.get(column + 1)?;
    Ok(Some(Revocation {
        at,
        reason: RevocationReason::stored(&reason),
    }))
}
