//! The records a process works on, wherever they are: nothing that gets these knows whether they are in a data directory or in a
//! database.

use std::sync::Arc;

use contract::seal::SealingKey;
use contract::time::Clock;
use store::{EmbeddedStore, PostgresStore, Store, StoreError};

pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: SealingKey,
    pub(crate) clock: Arc<dyn Clock>,
}

impl TryFrom<EmbeddedStore> for Opened {
    type Error = StoreError;

    fn try_from(store: EmbeddedStore) -> Result<Self, StoreError> {
        Ok(Self {
            key: SealingKey::from_bytes(store.sealing_key()?),
            clock: store.clock(),
            store: Arc::new(store),
        })
    }
}

impl From<PostgresStore> for Opened {
    fn from(store: PostgresStore) -> Self {
        let key = SealingKey::from_bytes(store.sealing_key());
        let other = store.other_sealing_key().map(SealingKey::from_bytes);
        Self {
            key: match other {
                Some(other) => key.accepting(other),
                None => key,
            },
            clock: store.clock(),
            store: Arc::new(store),
        }
    }
}
