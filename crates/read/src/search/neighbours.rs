//! What stands right before and after a hit in its conversation: the answer to a question often has none of its words.

use contract::handle::RecordHandle;
use contract::search::Neighbour;
use store::records::StoredRecord;

use super::{Hits, Searched};
use crate::citation::Citable;
use crate::disclosure::Shown;
use crate::evidence;
use crate::failure::Result;
use crate::measure::written_bytes;
use crate::project::admitted;
use crate::reader::Session;

impl Hits<'_> {
    /// Adds the neighbours of the first hit that the filled page still has room for: they never take the place of a hit. They are
    /// noted as shown, and are no hits.
    pub(super) fn add_neighbours(&mut self, session: &Session) -> Result<()> {
        let Some((searched, position)) = self.first else {
            return Ok(());
        };
        let scope = searched.scope();
        if scope.conversation.is_none() {
            return Ok(());
        }
        let records = session.store.neighbours(&scope, position.row)?;
        let mut neighbours = Vec::new();
        for (side, record) in ["before", "after"].into_iter().zip(records) {
            let Some(record) = record.filter(|record| !record.is_damaged) else {
                continue;
            };
            let (mut shown, key) = (Shown::default(), record.key.clone());
            let neighbour = neighbour(session, searched, side, record, &mut shown);
            let damaged = &mut self.shown.damaged;
            let neighbour = damaged.pass_over(neighbour, (&searched.row, &key))?;
            if let Some(neighbour) = neighbour.flatten()
                && self.room.take(written_bytes(&neighbour))
            {
                self.shown.add(shown);
                neighbours.push(neighbour);
            }
        }
        if let (Some(first), false) = (self.data.first_mut(), neighbours.is_empty()) {
            first.neighbours = Some(neighbours);
        }
        Ok(())
    }
}

/// A neighbour as it is shown, unless its record has left the row since the index was read.
fn neighbour(
    session: &Session,
    searched: &Searched,
    side: &str,
    record: StoredRecord,
    shown: &mut Shown,
) -> Result<Option<Neighbour>> {
    let (row, key) = (&searched.row, &record.key);
    let body = admitted(row, key, record.body)?;
    let Some(body) = body.filter(|body| searched.admits(body)) else {
        return Ok(None);
    };
    let (connection, stream) = (row.connection().id.as_str(), row.stream().name.as_str());
    let id = RecordHandle::new(Some(connection), stream, key.as_str());
    let passage = evidence::passage(row, &searched.fields, &body);
    let (Ok(id), Some(mut passage)) = (id, passage) else {
        return Ok(None);
    };
    Citable { session, row, key }.cite_passage(&body, &mut passage);
    let author = evidence::author(row, &body);
    shown.record(row, key);
    shown.fields([&passage.field_path]);
    shown.fields(author.as_ref().map(|(name, _)| name));
    Ok(Some(Neighbour {
        side: side.to_owned(),
        id: id.to_string(),
        author: author.map(|(_, text)| text),
        passage,
    }))
}
