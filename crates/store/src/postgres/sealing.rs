//! The key that seals cursors and signs receipts: derived from the secret that all nodes share, or that of the data directory which
//! moved here, so that what clients hold stays good. The latter is kept in the database, hidden by the secret: whoever reads
//! the database alone does not learn it.

use sha2::{Digest, Sha256};

use super::PostgresOptions;
use super::pool::Pool;
use crate::{Result, StoreError};

/// Keeps uses of the secret apart.
const SEALING: &[u8] = b"pdpp sealing key 1\0";
const HIDING: &[u8] = b"pdpp kept sealing key 1\0";
/// Keeps what tells the right secret from a wrong one apart from any other use of the key.
const CHECK: &[u8] = b"pdpp kept sealing key check 1\0";
const CHECK_BYTES: usize = 8;

pub(super) struct SealingKeys {
    pub(super) key: [u8; 32],
    /// The key whose seals are good too, while the secret is replaced on one node after the other.
    pub(super) other: Option<[u8; 32]>,
}

/// The keys of an owner. `kept` is what the database has of the key of a directory that moved here.
pub(super) fn sealing_keys(
    pool: &Pool,
    (owner, store_id, kept): (i64, [u8; 16], Option<&[u8]>),
    options: &PostgresOptions,
) -> Result<SealingKeys> {
    let (secret, other) = (&options.secret, options.other_secret.as_ref());
    let Some(kept) = kept else {
        return Ok(SealingKeys {
            key: derived(SEALING, secret, store_id),
            other: other.map(|other| derived(SEALING, other, store_id)),
        });
    };
    if let Some(key) = shown(kept, secret, store_id) {
        return Ok(SealingKeys { key, other: None });
    }
    let Some(key) = other.and_then(|other| shown(kept, other, store_id)) else {
        return Err(StoreError::DatabaseRefused {
            place: pool.place().to_owned(),
            detail: "the secret is not the one that this owner's other nodes have, or had before; name theirs with --secret-file".to_owned(),
        });
    };
    // The secret is being replaced: the one that is used now must do by itself afterwards.
    let hidden = hidden(key, secret, store_id);
    pool.transact(|tx| {
        let sql = "UPDATE owners SET sealing_key = $2 WHERE id = $1";
        tx.execute(sql, &[&owner, &hidden])
    })?;
    Ok(SealingKeys { key, other: None })
}

/// A key as it is kept in the database.
pub(super) fn hidden(key: [u8; 32], secret: &[u8; 32], store_id: [u8; 16]) -> Vec<u8> {
    let mut bytes = exclusive_or(key, derived(HIDING, secret, store_id)).to_vec();
    bytes.extend(check(key));
    bytes
}

/// The key, if it was hidden by this secret.
fn shown(kept: &[u8], secret: &[u8; 32], store_id: [u8; 16]) -> Option<[u8; 32]> {
    let (hidden, checked) = kept.split_first_chunk::<32>()?;
    let key = exclusive_or(*hidden, derived(HIDING, secret, store_id));
    (check(key) == checked).then_some(key)
}

fn check(key: [u8; 32]) -> Vec<u8> {
    let digest = Sha256::new()
        .chain_update(CHECK)
        .chain_update(key)
        .finalize();
    digest.into_iter().take(CHECK_BYTES).collect()
}

/// Bytes that only those know who have the secret, others for every use and owner.
fn derived(label: &[u8], secret: &[u8; 32], store_id: [u8; 16]) -> [u8; 32] {
    let hasher = Sha256::new().chain_update(label);
    hasher
        .chain_update(secret)
        .chain_update(store_id)
        .finalize()
        .into()
}

fn exclusive_or(one: [u8; 32], other: [u8; 32]) -> [u8; 32] {
    let mut bytes = one;
    for (byte, with) in bytes.iter_mut().zip(other) {
        *byte ^= with;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_that_hid_a_key_shows_it() {
        let kept = hidden([3; 32], &[7; 32], [1; 16]);
        assert_eq!(shown(&kept, &[7; 32], [1; 16]), Some([3; 32]));
        assert_eq!(shown(&kept, &[8; 32], [1; 16]), None);
        assert_eq!(shown(&kept, &[7; 32], [2; 16]), None);
        assert_eq!(shown(&kept[..39], &[7; 32], [1; 16]), None);
        assert!(!kept.windows(4).any(|bytes| bytes == [3; 4]));
    }
}
