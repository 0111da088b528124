//! The owner's password, stored under Argon2id.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::registry::{Change, EntryKind};
use store::{Store, StoreError};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use super::session::all_ended;
use crate::documents::{find, put};
use crate::secret::{NoRandomness, random};

const KEY: &str = "owner";
const SHORTEST_CHARS: usize = 12;
const LONGEST_BYTES: usize = 1_024;
/// The second recommended choice of RFC 9106 scaled as OWASP does for servers.
const COST: Cost = Cost {
    memory_kib: 19 * 1_024,
    passes: 2,
    lanes: 1,
};

/// The parameters of Argon2id.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

#[derive(Debug, Error)]
pub enum PasswordError {
    /// Too short to resist guessing, or too long to be one.
    #[error("a password takes at least 12 characters and at most 1024 bytes; a few words do well")]
    Length,
    #[error("the password could not be processed; try again")]
    Function,
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PasswordEntry {
    algorithm: String,
    #[serde(flatten)]
    cost: Cost,
    salt: String,
    hash: String,
}

/// Sets or replaces the password. All sessions end.
pub fn set_password(store: &dyn Store, password: &str, now: Instant) -> Result<(), PasswordError> {
    if password.chars().count() < SHORTEST_CHARS || password.len() > LONGEST_BYTES {
        return Err(PasswordError::Length);
    }
    let salt: [u8; 16] = random()?;
    let hash = derive(password, &salt, COST).ok_or(PasswordError::Function)?;
    let entry = PasswordEntry {
        algorithm: "argon2id".to_owned(),
        cost: COST,
        salt: URL_SAFE_NO_PAD.encode(salt),
        hash: URL_SAFE_NO_PAD.encode(hash),
    };
    all_ended(store, put(EntryKind::Password, KEY, &entry), now)?;
    Ok(())
}

/// Removes the password; one-time codes remain. All sessions end.
pub fn remove_password(store: &dyn Store, now: Instant) -> Result<(), StoreError> {
    all_ended(store, Change::remove(EntryKind::Password, KEY), now)
}

pub fn has_password(store: &dyn Store, now: Instant) -> Result<bool, StoreError> {
    Ok(find::<PasswordEntry>(store, EntryKind::Password, KEY, now)?.is_some())
}

/// Whether this is the password. It takes as long when no password is set.
pub(super) fn verify(store: &dyn Store, password: &str, now: Instant) -> Result<bool, StoreError> {
    let entry =
        find::<PasswordEntry>(store, EntryKind::Password, KEY, now)?.map(|found| found.value);
    let known = entry.and_then(|entry| {
        let salt = URL_SAFE_NO_PAD.decode(&entry.salt).ok()?;
        let hash = URL_SAFE_NO_PAD.decode(&entry.hash).ok()?;
        Some((salt, hash, entry.cost))
    });
    let set = known.is_some();
    let (salt, hash, cost) = known.unwrap_or_else(|| (vec![0; 16], vec![0; 32], COST));
    if password.len() > LONGEST_BYTES {
        return Ok(false);
    }
    let equal =
        derive(password, &salt, cost).is_some_and(|found| found.ct_eq(hash.as_slice()).into());
    Ok(set && equal)
}

fn derive(password: &str, salt: &[u8], cost: Cost) -> Option<[u8; 32]> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).ok()?;
    let mut hash = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.as_bytes(), salt, &mut hash)
        .ok()?;
    Some(hash)
}
