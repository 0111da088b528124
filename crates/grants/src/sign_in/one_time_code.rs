//! One-time sign-in codes: made at the terminal, good for one sign-in within a quarter of an hour.

use std::time::Duration;

use contract::time::Instant;
use serde_json::{Value, json};
use store::registry::{EntryKind, Expect};
use store::{Store, StoreError};

use super::SignInError;
use crate::documents::{find, key_of, put};
use crate::issue::after;
use crate::secret::Secret;

const LIFE: Duration = Duration::from_mins(15);

pub fn new_code(store: &dyn Store, now: Instant) -> Result<Secret, SignInError> {
    let code = Secret::random("pdpp_signin_")?;
    let made = json!({ "made_at": now });
    let change = put(EntryKind::SignIn, key_of(code.expose()), &made).until(after(now, LIFE));
    store.apply(&[change], now)?;
    Ok(code)
}

/// The entry of a valid code. It is found by the hash of 256 random bits, so the look-up reveals nothing about other codes.
pub(super) fn found(
    store: &dyn Store,
    code: &str,
    now: Instant,
) -> Result<Option<(String, Expect)>, StoreError> {
    let found = find::<Value>(store, EntryKind::SignIn, &key_of(code.trim()), now)?;
    Ok(found.map(|found| (found.key, Expect::Revision(found.revision))))
}
