//! Reading the catalog, and knowing when another node has changed it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use contract::declaration::Declaration;
use contract::id::{ConnectorKey, FieldName, StreamName};
use contract::time::Instant;

use super::pool::{Pool, Tx};
use super::random;
use crate::Result;
use crate::catalog::{Connection, StreamRef};
use crate::index::layout::{SlotKind, TakenSlots};
use crate::index::sources::{Sources, registered};

/// The catalog as this node read it last.
pub(crate) struct KnownSources {
    owner: i64,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// The number it had then; `None` before it is read.
    catalog: Option<u64>,
    sources: Arc<Sources>,
}

impl KnownSources {
    pub(super) fn of(owner: i64) -> Self {
        Self {
            owner,
            known: RwLock::default(),
        }
    }

    /// The catalog as it was read last; a stable view for one operation.
    pub(crate) fn last(&self) -> Arc<Sources> {
        Arc::clone(&self.known().sources)
    }

    /// The catalog as it is now.
    pub(crate) fn current(&self, pool: &Pool) -> Result<Arc<Sources>> {
        let sql = "SELECT catalog FROM owners WHERE id = $1";
        let catalog: i64 = pool.glance(|tx| tx.query_one(sql, &[&self.owner])?.get(0))?;
        self.renew(pool, catalog.cast_unsigned())
    }

    /// The catalog of this number or of what it has changed to since. A smaller number than is known belongs to a history that was
    /// rewritten, unless it was read earlier than what is known.
    pub(super) fn renew(&self, pool: &Pool, catalog: u64) -> Result<Arc<Sources>> {
        let before = self.known().catalog;
        if before == Some(catalog) {
            return Ok(self.last());
        }
        // It begins after `before` was read, so what it sees is no earlier.
        pool.snapshot(|tx| {
            let sql = "SELECT catalog FROM owners WHERE id = $1";
            let catalog: i64 = tx.query_one(sql, &[&self.owner])?.get(0)?;
            self.load(tx, pool.place(), catalog.cast_unsigned(), before)
        })
    }

    /// The catalog of this number, as a transaction sees it that has read the number.
    pub(crate) fn at(&self, tx: &Tx<'_>, place: &str, catalog: u64) -> Result<Arc<Sources>> {
        self.load(tx, place, catalog, None)
    }

    /// Keeps what is read where it is later than what is known, or where that is still what was known before.
    fn load(
        &self,
        tx: &Tx<'_>,
        place: &str,
        catalog: u64,
        before: Option<u64>,
    ) -> Result<Arc<Sources>> {
        if self.known().catalog == Some(catalog) {
            return Ok(self.last());
        }
        let sources = Arc::new(load(tx, self.owner, place)?);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.catalog == before || known.catalog.is_none_or(|known| known < catalog) {
            *known = Known {
                catalog: Some(catalog),
                sources: Arc::clone(&sources),
            };
        }
        Ok(sources)
    }

    fn known(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(tx: &Tx<'_>, owner: i64, place: &str) -> Result<Sources> {
    let mut declarations: BTreeMap<ConnectorKey, Arc<Declaration>> = BTreeMap::new();
    let sql = "SELECT declaration, reading FROM declarations WHERE owner_id = $1";
    for row in tx.query(sql, &[&owner])? {
        let declaration = registered(row.get(0)?, row.get(1)?, Path::new(place))?;
        declarations.insert(declaration.connector_key().clone(), Arc::new(declaration));
    }
    let connections = tx
        .query(
            "SELECT id, connector_key, display_name, created_at FROM connections WHERE owner_id = $1 ORDER BY ordinal",
            &[&owner],
        )?
        .iter()
        .map(|row| {
            Ok(Connection {
                id: row.parse(0)?,
                connector: row.parse(1)?,
                display_name: row.get(2)?,
                created_at: Instant(row.get(3)?),
            })
        })
        .collect::<Result<_>>()?;
    let streams = tx
        .query(
            "SELECT s.id, s.connection_id, s.name FROM streams s
             JOIN connections c ON c.owner_id = s.owner_id AND c.id = s.connection_id
             WHERE s.owner_id = $1 ORDER BY c.ordinal, s.id",
            &[&owner],
        )?
        .iter()
        .map(|row| {
            let stream = StreamRef {
                connection: row.parse(1)?,
                stream: row.parse(2)?,
            };
            Ok((row.get(0)?, stream))
        })
        .collect::<Result<_>>()?;
    let slots = taken_slots(tx, owner, None)?;
    Ok(Sources::new(declarations, connections, streams, slots))
}

/// The number of the catalog after another change. The step is random, so that a change which is made in place of one that was lost
/// with its server has another number, and every node reads the catalog again.
pub(super) fn next_number(catalog: u64) -> Result<u64> {
    let [a, b, c, d, ..] = random()?;
    Ok(catalog + 1 + u64::from(u32::from_le_bytes([a, b, c, d])))
}

/// The slots that fields were given already, of all connectors or of one.
pub(super) fn taken_slots(
    tx: &Tx<'_>,
    owner: i64,
    connector: Option<&str>,
) -> Result<HashMap<(ConnectorKey, StreamName), TakenSlots>> {
    let rows = tx.query(
        "SELECT connector_key, stream, field, kind, slot FROM slots
         WHERE owner_id = $1 AND ($2::text IS NULL OR connector_key = $2)",
        &[&owner, &connector],
    )?;
    let mut slots: HashMap<(ConnectorKey, StreamName), TakenSlots> = HashMap::new();
    for row in &rows {
        let field: FieldName = row.parse(2)?;
        let number = usize::try_from(row.get::<i64>(4)?).unwrap_or(usize::MAX);
        if let Some(kind) = SlotKind::named(row.get(3)?) {
            let taken = slots.entry((row.parse(0)?, row.parse(1)?)).or_default();
            taken.insert((field, kind), number);
        }
    }
    Ok(slots)
}
