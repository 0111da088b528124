//! Sealed cursors and bookmarks: where a reader stands, in a text that only we can write and read.
//! A token carries its own position, so the server remembers nothing between calls. It is bound to what it continues:
//! opened with any other key, kind, stream, connection, filter, order or grant, it does not open at all.
//!
//! The cipher is XChaCha20-Poly1305 and the nonce is synthetic: a keyed hash of binding and payload. So sealing needs no
//! source of randomness, two different messages never share a nonce, and equal positions have equal cursors. The last
//! is all that a reader can learn from a token without the key, and it tells them nothing they did not just ask.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::error::{ErrorCode, ReadError};

const NONCE_BYTES: usize = 24;
/// Longer texts are refused unread; ours stay far below, whatever key they hold.
const MAX_TOKEN_CHARS: usize = 16 * 1024;

/// The key that seals and opens. It never leaves the process; printing it shows nothing.
#[derive(Clone)]
pub struct SealingKey {
    cipher: XChaCha20Poly1305,
    nonce_key: [u8; 32],
    digest_key: [u8; 32],
    /// What was sealed with this one opens too: while a key is replaced, two are in use.
    also: Option<Box<SealingKey>>,
}

/// What a token is for. A token of one kind never opens as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// The next page of a list of records.
    Page,
    /// A bookmark: `next_changes_since`, from which later changes are read.
    Changes,
    /// The next page within one reading of changes.
    ChangesPage,
    Search,
    /// The next page of groups of an aggregate.
    Groups,
}

/// What a token continues. It is not inside the token: the same request must come again for the token to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Binding<'a> {
    /// The stream, or nothing where the read goes over several.
    pub stream: Option<&'a str>,
    /// The connection, or nothing where the read goes over several.
    pub connection: Option<&'a str>,
    /// Everything that selects: filters, query text, streams, time; any text that is equal when the selection is.
    pub filter: &'a str,
    pub order: &'a str,
    /// The grant or package on whose behalf it is read; nothing for the owner.
    pub grant: Option<&'a str>,
}

/// Why a token was not sealed or did not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CursorError {
    /// The text was never one of our tokens, or is cut.
    #[error(
        "the cursor is malformed; pass one exactly as it was returned, or leave it out to start again"
    )]
    Malformed,
    /// The token was sealed for something else, changed, or comes from another server.
    #[error(
        "the cursor does not belong to this request; repeat the request that returned it, or leave it out to start again"
    )]
    Foreign,
    /// The position cannot be written; only a mistake in this program leads here.
    #[error("the position cannot be written as a cursor")]
    Payload,
}

impl From<CursorError> for ReadError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::Payload => Self::internal(),
            other => Self::new(ErrorCode::InvalidCursor, other.to_string()).with_param("cursor"),
        }
    }
}

impl SealingKey {
    /// The key made of these 32 secret random bytes.
    pub fn from_bytes(secret: [u8; 32]) -> Self {
        // Several keys from one secret: what makes the nonces says nothing about what encrypts.
        Self {
            cipher: XChaCha20Poly1305::new(&derived(b"pdpp cursor cipher", &secret).into()),
            nonce_key: derived(b"pdpp cursor nonce", &secret),
            digest_key: derived(b"pdpp keyed digest", &secret),
            also: None,
        }
    }

    /// The same key, which also opens what another has sealed.
    #[must_use]
    pub fn accepting(mut self, other: Self) -> Self {
        self.also = Some(Box::new(other));
        self
    }

    /// The key itself, and the other one whose seals are good.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.also.as_deref())
    }

    /// The seed of the key that signs receipts.
    pub fn receipt_seed(&self) -> [u8; 32] {
        self.digest("receipt signing key", [])
    }

    /// A digest that only the holder of the key can compute. Callers cut it, which takes away what makes a plain hash of
    /// key and message extensible.
    pub(crate) fn digest<'a>(
        &self,
        purpose: &'a str,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.digest_key);
        for part in [purpose.as_bytes()].into_iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// Makes hashes that stand for values within one grant. Without the key nobody can try out values.
#[derive(Clone)]
pub struct HashKey([u8; 32]);

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

impl SealingKey {
    /// The key for the hashes of one grant.
    pub fn hash_key(&self, grant: &str) -> HashKey {
        let key = derived(b"pdpp grant hash", &self.nonce_key);
        let hash = Sha256::new().chain_update(key).chain_update(grant);
        HashKey(hash.finalize().into())
    }
}

impl HashKey {
    /// A hash of some texts. It is cut, which also takes away what makes a plain hash of key and message extensible.
    pub fn hash<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> [u8; 16] {
        let mut hash = Sha256::new().chain_update(self.0);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let whole: [u8; 32] = hash.finalize().into();
        let mut cut = [0; 16];
        cut.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        cut
    }
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(secret)")
    }
}

impl TokenKind {
    /// Part of what a token is bound to, so these values never change their meaning.
    fn tag(self) -> u8 {
        match self {
            Self::Page => 1,
            Self::Changes => 2,
            Self::ChangesPage => 3,
            Self::Search => 4,
            Self::Groups => 5,
        }
    }
}

impl Binding<'_> {
    /// One text per binding: every part has its length before it, so no two bindings run together.
    fn bytes(&self, kind: TokenKind) -> Vec<u8> {
        const FORMAT: u8 = 1;
        let mut bytes = vec![FORMAT, kind.tag()];
        for part in [
            self.stream,
            self.connection,
            Some(self.filter),
            Some(self.order),
            self.grant,
        ] {
            match part {
                None => bytes.push(0),
                Some(text) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
        }
        bytes
    }
}

/// Seals a position into an opaque text for URLs and prose.
///
/// The payload is written as JSON, where a float may lose its last bit: carry floats as their bits, as
/// [`Scalar`](crate::Scalar) does.
pub fn seal<T: Serialize>(
    key: &SealingKey,
    kind: TokenKind,
    binding: &Binding<'_>,
    payload: &T,
) -> Result<String, CursorError> {
    let message = serde_json::to_vec(payload).map_err(|_| CursorError::Payload)?;
    seal_bytes(key, kind, binding, &message)
}

/// Seals a position that is written as bytes, for tokens that must be short.
pub fn seal_bytes(
    key: &SealingKey,
    kind: TokenKind,
    binding: &Binding<'_>,
    message: &[u8],
) -> Result<String, CursorError> {
    let bound = binding.bytes(kind);
    let nonce = synthetic_nonce(&key.nonce_key, &bound, message);
    let sealed = key
        .cipher
        .encrypt(
            &XNonce::from(nonce),
            Payload {
                msg: message,
                aad: &bound,
            },
        )
        .map_err(|_| CursorError::Payload)?;
    let mut token = nonce.to_vec();
    token.extend_from_slice(&sealed);
    Ok(URL_SAFE_NO_PAD.encode(token))
}

pub fn open<T: DeserializeOwned>(
    key: &SealingKey,
    kind: TokenKind,
    binding: &Binding<'_>,
    token: &str,
) -> Result<T, CursorError> {
    let message = open_bytes(key, kind, binding, token)?;
    // Sealed by us but not readable: the token is from a version with another payload.
    serde_json::from_slice(&message).map_err(|_| CursorError::Foreign)
}

/// Opens what [`seal_bytes`] sealed.
pub fn open_bytes(
    key: &SealingKey,
    kind: TokenKind,
    binding: &Binding<'_>,
    token: &str,
) -> Result<Vec<u8>, CursorError> {
    if token.len() > MAX_TOKEN_CHARS {
        return Err(CursorError::Malformed);
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|_| CursorError::Malformed)?;
    let (nonce, sealed) = bytes
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or(CursorError::Malformed)?;
    let bound = binding.bytes(kind);
    let open = |key: &SealingKey| {
        let payload = Payload {
            msg: sealed,
            aad: &bound,
        };
        key.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    };
    key.accepted().find_map(open).ok_or(CursorError::Foreign)
}

/// A short digest of some texts, the same in every version of this program: for what a token remembers inside.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize().into_iter().take(8);
    bytes.fold(0, |number, byte| number << 8 | u64::from(byte))
}

fn derived(purpose: &[u8], secret: &[u8; 32]) -> [u8; 32] {
    Sha256::new()
        .chain_update(purpose)
        .chain_update(secret)
        .finalize()
        .into()
}

/// A hash that only the holder of the key can compute, cut to the size of a nonce. Cutting it also takes away what
/// makes a plain hash of key and message extensible.
fn synthetic_nonce(key: &[u8; 32], bound: &[u8], message: &[u8]) -> [u8; NONCE_BYTES] {
    let hash: [u8; 32] = Sha256::new()
        .chain_update(key)
        .chain_update((bound.len() as u64).to_le_bytes())
        .chain_update(bound)
        .chain_update(message)
        .finalize()
        .into();
    let mut nonce = [0; NONCE_BYTES];
    nonce.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    nonce
}
