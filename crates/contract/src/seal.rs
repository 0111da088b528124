//! Sealed cursors and bookmarks: where a reader stands, in a text that only we can write and read.
//! A token carries its own position, so the server remembers nothing between calls. It is bound to what it continues:
//! opened with any other key, kind, stream, connection, filter, order or grant, it does not open at all.
//!
//! The cipher is AES-SIV (RFC 5297), which needs no nonce and adds sixteen bytes. Sealing needs no source of randomness, and
//! equal positions have equal cursors. That is all that a reader can learn from a token without the key, and it tells them
//! nothing they did not just ask.

use aes_siv::siv::Aes256Siv;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::error::{ErrorCode, ReadError};

/// The nonce before what releases up to 0.1 sealed.
const NONCE_BYTES: usize = 24;
/// No token is shorter.
const SIV_BYTES: usize = 16;
/// Longer texts are refused unread; ours stay far below, whatever key they hold.
const MAX_TOKEN_CHARS: usize = 16 * 1024;

/// The key that seals and opens. It never leaves the process; printing it shows nothing.
#[derive(Clone)]
pub struct SealingKey {
    siv_key: [u8; 64],
    /// Opens the bookmarks that earlier releases sealed: clients keep them for long.
    earlier: XChaCha20Poly1305,
    hash_key: [u8; 32],
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
        // Several keys from one secret: what one of them makes says nothing about another.
        let halves =
            [b"pdpp cursor siv 1", b"pdpp cursor siv 2"].map(|name| derived(name, &secret));
        let mut siv_key = [0; 64];
        siv_key.copy_from_slice(halves.as_flattened());
        Self {
            siv_key,
            earlier: XChaCha20Poly1305::new(&derived(b"pdpp cursor cipher", &secret).into()),
            hash_key: derived(b"pdpp cursor nonce", &secret),
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

    fn open_earlier(&self, bound: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload {
            msg: sealed,
            aad: bound,
        };
        self.earlier.decrypt(&XNonce::from(*nonce), payload).ok()
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
        let key = derived(b"pdpp grant hash", &self.hash_key);
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
    let sealed = Aes256Siv::new(&key.siv_key.into()).encrypt([binding.bytes(kind)], message);
    Ok(URL_SAFE_NO_PAD.encode(sealed.map_err(|_| CursorError::Payload)?))
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
    if bytes.len() < SIV_BYTES {
        return Err(CursorError::Malformed);
    }
    let bound = binding.bytes(kind);
    let open = |key: &SealingKey| {
        let message = Aes256Siv::new(&key.siv_key.into()).decrypt([&bound], &bytes);
        message.ok().or_else(|| key.open_earlier(&bound, &bytes))
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
