//! What would be issued, looked at before it is.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::grant::{Authority, Grant, GrantedAuthority};
use contract::id::PackageId;
use contract::time::{Clock, Instant};
use sha2::{Digest as _, Sha256};
use store::Store;
use store::grants::NewApproval;

use super::{IssueError, Issued, Recipient, agreed, give, prepared};
use crate::secret::random_id;
use crate::selection::Selection;

/// What [`super::issue`] would give, without giving it.
#[derive(Debug)]
pub struct Preview {
    approval: NewApproval,
    /// What their token could read.
    pub authority: Authority,
    pub expires_at: Instant,
}

impl Preview {
    pub fn grants(&self) -> &[Grant] {
        &self.approval.grants
    }

    /// Names what would be given: to whom, in which words, and whether once.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.approval.client_id.as_str().as_bytes());
        for grant in self.grants() {
            hash.update(b"\n");
            hash.update(agreed(grant).digest.as_bytes());
        }
        URL_SAFE_NO_PAD.encode(hash.finalize())
    }

    /// Issues exactly this.
    pub fn issue(self, store: &dyn Store) -> Result<Issued, IssueError> {
        give(store, self.approval, self.expires_at)
    }
}

/// Looks at what the selection names, as it would be issued now.
pub fn preview<'a>(
    store: &dyn Store,
    selection: &Selection,
    client: impl Into<Recipient<'a>>,
    expires: Option<Instant>,
    clock: &dyn Clock,
) -> Result<Preview, IssueError> {
    let (approval, expires_at) = prepared(store, selection, client.into(), expires, clock.now())?;
    let authority = match (&approval.package, approval.grants.as_slice()) {
        (None, [grant]) => GrantedAuthority::from_grant(grant)?,
        (None, several) => {
            GrantedAuthority::from_package(PackageId::parse(random_id("gpkg_")?)?, several)?
        }
        (Some(package), several) => GrantedAuthority::from_package(package.clone(), several)?,
    };
    Ok(Preview {
        approval,
        authority: Authority::Granted(authority),
        expires_at,
    })
}
