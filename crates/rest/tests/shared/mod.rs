//! A store in which mail is declared, and the service over it.

use std::sync::Arc;
use std::time::Duration;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey};
use contract::seal::SealingKey;
use contract::time::Clock;
use grants::DisclosureLog;
use rest::Service;
use store::catalog::NewConnection;
use store::{EmbeddedStore, OpenOptions, Store};

pub(crate) const MAIL: &str = include_str!("../http/mail.json");

pub(crate) struct Served {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) service: Service,
    pub(crate) log: Arc<DisclosureLog>,
    pub(crate) owner: String,
    pub(crate) folder: tempfile::TempDir,
}

/// A service at this address, and an owner's token that lives so long.
pub(crate) fn served(clock: &Arc<dyn Clock>, url: &str, life: Duration) -> Served {
    crate::listening::listen();
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions::new("a test of the surface", Arc::clone(clock));
    let store = EmbeddedStore::open(&folder.path().join("data"), options).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    store.declare(&Declaration::parse(MAIL).unwrap()).unwrap();
    let log = Arc::new(DisclosureLog::start(Arc::clone(&store)).unwrap());
    let key = SealingKey::from_bytes([7; 32]);
    let (own, kept) = (Arc::clone(&store), Arc::clone(&log));
    let owner = grants::owner_token(&*store, life, &**clock).unwrap();
    Served {
        service: Service::new(own, key, Arc::clone(clock), url, kept),
        store,
        log,
        owner: owner.access_token.expose().to_owned(),
        folder,
    }
}

pub(crate) fn connect(store: &dyn Store, connector: &str, id: &str, name: &str) {
    let new = NewConnection {
        connector: ConnectorKey::parse(connector).unwrap(),
        name: name.to_owned(),
        id: Some(ConnectionId::parse(id).unwrap()),
    };
    store.add_connection(new).unwrap();
}
