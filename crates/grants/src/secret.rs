//! Secrets and ids: made from the system's randomness, and for secrets never shown by accident.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// A bearer token in clear. Printing it takes [`Secret::expose`]; `Debug` shows nothing of it.
///
/// It serialises as its text, because it exists to be handed to the owner once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A new secret of 256 random bits after a readable prefix.
    pub(crate) fn random(prefix: &str) -> Result<Self, NoRandomness> {
        Ok(Self(format!(
            "{prefix}{}",
            URL_SAFE_NO_PAD.encode(random::<32>()?)
        )))
    }

    /// A text that holds a secret, so that it is handled like one.
    pub(crate) fn holding(text: String) -> Self {
        Self(text)
    }

    /// The text to send as a bearer.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The SHA-256 of a bearer text.
pub(crate) struct TokenHash(pub(crate) [u8; 32]);

impl TokenHash {
    pub(crate) fn new(bearer: &str) -> Self {
        Self(Sha256::digest(bearer.as_bytes()).into())
    }

    /// The part that finds candidates.
    pub(crate) fn selector(&self) -> [u8; store::grants::SELECTOR_BYTES] {
        let mut selector = [0; store::grants::SELECTOR_BYTES];
        let bytes = selector.iter_mut().zip(self.0);
        bytes.for_each(|(to, from)| *to = from);
        selector
    }

    /// Whether the hashes are equal, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, stored: &[u8; 32]) -> bool {
        self.0.ct_eq(stored).into()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no randomness ({0}), so no token can be made; try again")]
pub struct NoRandomness(String);

/// A public id: a prefix and 64 random bits as hex digits.
pub(crate) fn random_id(prefix: &str) -> Result<String, NoRandomness> {
    Ok(format!("{prefix}{:016x}", u64::from_be_bytes(random()?)))
}

/// A public id that nobody can guess: a prefix and 128 random bits as hex digits.
pub(crate) fn random_words(prefix: &str) -> Result<String, NoRandomness> {
    Ok(format!("{prefix}{:032x}", u128::from_be_bytes(random()?)))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_and_never_shows_in_debug() {
        let secret = Secret::random("pdpp_at_").unwrap();
        let random = secret.expose().strip_prefix("pdpp_at_").unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(random).unwrap().len(), 32);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(secret, Secret::random("pdpp_at_").unwrap());
    }

    #[test]
    fn a_hash_equals_only_the_whole_hash() {
        let hash = TokenHash::new("a");
        assert!(hash.is(&hash.0));
        for bit in 0..256 {
            let mut other = hash.0;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!hash.is(&other), "bit {bit}");
        }
    }
}
