//! What the owner is told of at once: a new client, an approval, a paused grant.

mod command;

use std::sync::{Arc, OnceLock};

use contract::id::{ClientId, GrantId};
use serde::Serialize;

pub use command::notify_by_command;

/// Something that happened. It names no record and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// An application registered; it can read nothing yet.
    NewClient {
        client_id: ClientId,
        client_name: Option<String>,
    },
    /// The owner, or somebody who is signed in as the owner, allowed something.
    Approved,
    /// Nothing can be read under a grant until the owner has looked.
    Paused { grant_id: GrantId },
}

/// Tells the owner. It must not block.
pub type Notify = Arc<dyn Fn(&Event) + Send + Sync>;

/// Where events go, once it is known.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<OnceLock<Notify>>);

impl Notices {
    pub(crate) fn send_to(&self, notify: Notify) {
        // A second one is not set: there is one owner.
        let _ = self.0.set(notify);
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(notify) = self.0.get() {
            notify(event);
        }
    }
}
