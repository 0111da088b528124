//! What has to be remembered between requests: for authorization clients, pending requests, codes, refresh tokens and
//! sessions; for the owner the reports of imports, the last backup and the last visit.
//!
//! All of it is entries of one shape: a kind, a key, a document that only the crate that wrote it parses, and an expiry. What
//! makes this a port of its own is [`Registry::apply`]: several changes, each with what it expects to find, happen together
//! or not at all. So a code is never redeemed twice and an approval is never half done, whatever runs concurrently.

use contract::id::{GrantId, PackageId};
use contract::time::Instant;

use crate::Result;
use crate::grants::{NewApproval, NewToken};

contract::names! {
    #[derive(Hash)]
    pub enum EntryKind {
        Client = "client",
        /// A request for a grant, from its arrival to its decision.
        Request = "request",
        Code = "code",
        DeviceCode = "device_code",
        /// What a person types for a device.
        UserCode = "user_code",
        /// A refresh token, the current one or one it superseded.
        Refresh = "refresh",
        /// A signed-in browser of the owner.
        Session = "session",
        /// A browser in which the owner has signed in before.
        Browser = "browser",
        /// A one-time way to sign in.
        SignIn = "sign_in",
        /// How the owner signs in: at most one entry.
        Password = "password",
        /// What an import did.
        Import = "import",
        /// The last backup: at most one entry.
        Backup = "backup",
        /// What the owner saw at the last visit: at most one entry.
        Visit = "visit",
        /// A selection that the owner keeps under a name.
        Template = "template",
        /// What a client asked for beyond its grant.
        Ask = "ask",
        /// What the owner allowed beside a grant.
        Extension = "extension",
        /// A grant whose client may not ask for more.
        AskingOff = "asking_off",
        /// How much may be read under a grant in a day.
        Budget = "budget",
        /// A grant under which nothing can be read until its owner has looked.
        Pause = "pause",
        /// How often somebody guessed wrong.
        WrongGuesses = "wrong_guesses",
        /// How much of a limit is used up.
        Limit = "limit",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// Its key. A secret is never a key; the hash of one may be.
    pub key: String,
    pub document: String,
    pub expires_at: Option<Instant>,
    /// Counts the changes of this entry; a later change may insist on it.
    pub revision: u64,
}

/// What a change expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing in particular.
    Anything,
    /// No live entry of this key.
    Absent,
    /// The entry as it was at this revision.
    Revision(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFor<'a> {
    Grant(&'a GrantId),
    Package(&'a PackageId),
}

#[derive(Debug, Clone)]
pub enum Change<'a> {
    Put {
        kind: EntryKind,
        key: String,
        document: String,
        expires_at: Option<Instant>,
        expect: Expect,
    },
    Remove {
        kind: EntryKind,
        key: String,
        /// What must be there before; `Absent` makes no sense here and never matches.
        expect: Expect,
    },
    Approve(&'a NewApproval),
    Issue {
        token: &'a NewToken,
        of: TokenFor<'a>,
    },
}

impl Change<'_> {
    /// An entry without an end, whatever is there.
    pub fn put(kind: EntryKind, key: impl Into<String>, document: impl Into<String>) -> Self {
        Change::Put {
            kind,
            key: key.into(),
            document: document.into(),
            expires_at: None,
            expect: Expect::Anything,
        }
    }

    pub fn remove(kind: EntryKind, key: impl Into<String>) -> Self {
        Change::Remove {
            kind,
            key: key.into(),
            expect: Expect::Anything,
        }
    }

    /// The same of an entry that ends.
    #[must_use]
    pub fn until(mut self, end: impl Into<Option<Instant>>) -> Self {
        if let Change::Put { expires_at, .. } = &mut self {
            *expires_at = end.into();
        }
        self
    }

    /// The entry it concerns.
    pub(crate) fn entry(&self) -> Option<(EntryKind, &str)> {
        match self {
            Change::Put { kind, key, .. } | Change::Remove { kind, key, .. } => Some((*kind, key)),
            Change::Approve(_) | Change::Issue { .. } => None,
        }
    }

    /// Whether it finds what it expects: its entry at this revision, or none.
    pub(crate) fn holds(&self, found: Option<u64>) -> bool {
        let (Change::Put { expect, .. } | Change::Remove { expect, .. }) = self else {
            return true;
        };
        match expect {
            Expect::Anything => true,
            Expect::Absent => found.is_none() && matches!(self, Change::Put { .. }),
            Expect::Revision(revision) => found == Some(*revision),
        }
    }

    #[must_use]
    pub fn expecting(mut self, expected: Expect) -> Self {
        if let Change::Put { expect, .. } | Change::Remove { expect, .. } = &mut self {
            *expect = expected;
        }
        self
    }
}

pub trait Registry {
    fn entry(&self, kind: EntryKind, key: &str, now: Instant) -> Result<Option<Entry>>;
    /// Live entries of a kind after a key, in the order of their keys.
    fn entries(
        &self,
        kind: EntryKind,
        after: Option<&str>,
        limit: usize,
        now: Instant,
    ) -> Result<Vec<Entry>>;
    /// Applies all changes in one durable transaction. `false`: an expectation was not met, and nothing happened. Expired
    /// entries are removed on the way.
    fn apply(&self, changes: &[Change<'_>], now: Instant) -> Result<bool>;
}
