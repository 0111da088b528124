//! How much a scope holds: its records counted, and when the latest of them was emitted.

use rusqlite::OptionalExtension;
use tantivy::DocAddress;

use super::EmbeddedStore;
use super::documents::Blocks;
use super::index::{EMITTED, View};
use crate::Result;
use crate::search::{Extent, Scope};

impl EmbeddedStore {
    pub(super) fn extent_of(&self, scope: &Scope) -> Result<Extent> {
        let sources = self.sources();
        let entry = sources.stream(&scope.stream)?;
        let open = self.index_with_columns(entry.id)?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let view = open.view();
        let failed = super::index::failed(self.path());
        let mut records = 0;
        let mut latest: Option<(i64, DocAddress)> = None;
        for segment in view.segments() {
            let column = segment.reader.fast_fields().i64(EMITTED).map_err(&failed)?;
            let blocks = Blocks::new(&open, segment, &restriction).map_err(&failed)?;
            let mut moments = Vec::new();
            records += blocks.for_each(&mut |documents| {
                documents.values(&column, &mut moments, |place, moment| {
                    if latest.is_none_or(|(known, _)| moment > known) {
                        latest = Some((
                            moment,
                            DocAddress::new(segment.ordinal, documents.at(place)),
                        ));
                    }
                });
            });
        }
        Ok(Extent {
            records,
            last_emitted_at: match latest {
                Some((_, address)) => self.emitted_at(&view, address)?,
                None => None,
            },
        })
    }

    /// As written, not as the column has it.
    fn emitted_at(&self, view: &View, address: DocAddress) -> Result<Option<String>> {
        let Some(row) = view.row_of(address) else {
            return Ok(None);
        };
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT emitted_at FROM records WHERE row_id = ?1 AND data IS NOT NULL",
                )?
                .query_row([row], |row| row.get(0))
                .optional()
        })
    }
}
