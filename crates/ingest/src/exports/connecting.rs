//! The connection that an export goes into: its connector is declared, and a connection added where there is none.

use contract::declaration::{Declaration, DeclarationErrors};
use contract::id::ConnectionId;
use store::catalog::{Connection, Declared, NewConnection};
use store::{Result, Store, StoreError};

use super::Export;

impl Export {
    /// The declaration of its connector that comes with the program.
    pub fn bundled(self) -> Result<Declaration, DeclarationErrors> {
        Declaration::parse(&self.declaration())
    }

    /// Registers its connector, or brings up to date what an earlier release registered. What the owner, or a later release, has
    /// registered with all that is needed stays.
    pub fn declare(self, store: &dyn Store) -> Result<Declaration> {
        let bundled = self.bundled().map_err(StoreError::Declaration)?;
        let known = store.declaration(bundled.connector_key());
        if known.is_some_and(|known| has_all(&known, &bundled)) {
            return Ok(bundled);
        }
        match store.declare(&bundled) {
            Ok(Declared::Updated { reindexed: 1.., .. }) => store.settle_index()?,
            // One that is refused is older than what the owner, or a later release, has registered.
            Ok(_) | Err(StoreError::Declaration(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(bundled)
    }

    /// Adds a connection for it, named so, or as its connector.
    pub fn add_connection(self, store: &dyn Store, name: Option<String>) -> Result<Connection> {
        let bundled = self.declare(store)?;
        let key = bundled.connector_key();
        // Shorter than what would be made of connector and name.
        let id = ConnectionId::parse(key.as_str()).ok();
        store.add_connection(NewConnection {
            connector: key.clone(),
            name: name.unwrap_or_else(|| bundled.display_name.clone()),
            id: id.filter(|id| store.connection(id).is_none()),
        })
    }
}

/// Whether a declaration has every stream and field of another, and is no earlier version of it. Versions of bundled declarations
/// are numbers.
fn has_all(known: &Declaration, needed: &Declaration) -> bool {
    let version = |one: &Declaration| one.declaration_version.parse::<u64>();
    let is_earlier =
        matches!((version(known), version(needed)), (Ok(known), Ok(needed)) if known < needed);
    !is_earlier
        && needed.streams.iter().all(|stream| {
            let known = known.stream(stream.name.as_str());
            known.is_some_and(|known| {
                let mut fields = stream.fields.iter();
                fields.all(|field| known.field(field.name.as_str()).is_some())
            })
        })
}
