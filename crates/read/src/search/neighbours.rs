//! What stands right before and after a hit in its conversation: the answer to a question often has none of its words.

use std::collections::HashMap;

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
    /// Adds the neighbours of hits, the best first, that the filled page still has room for: they never take the place of a hit. They
    /// are noted as shown, and are no hits. A page that is counted in bytes has room for those of the best hit of all.
    pub(super) fn add_neighbours(&mut self, session: &Session, is_first_page: bool) -> Result<()> {
        let most = match session.settings.max_bytes {
            None => usize::MAX,
            Some(_) => usize::from(is_first_page),
        };
        let mut beside = HashMap::new();
        for (stream, searched) in &self.by_stream {
            let scope = searched.scope();
            let here = self.places.iter().take(most);
            let here = here.filter(|(of, _)| of == stream && scope.conversation.is_some());
            let rows: Vec<u64> = here.map(|(_, row)| *row).collect();
            if !rows.is_empty() {
                let records = session.store.neighbours(&scope, &rows)?;
                let records = records.into_iter().map(|records| (*searched, records));
                beside.extend(rows.into_iter().zip(records));
            }
        }
        for at in 0..self.data.len().min(most) {
            let row = self.places.get(at).map(|(_, row)| *row);
            let Some((searched, records)) = row.and_then(|row| beside.remove(&row)) else {
                continue;
            };
            let neighbours = self.fitting(session, searched, records)?;
            if let (Some(hit), false) = (self.data.get_mut(at), neighbours.is_empty()) {
                hit.neighbours = Some(neighbours);
            }
        }
        Ok(())
    }

    /// Those of the records on both sides of a hit that may be shown and fit.
    fn fitting(
        &mut self,
        session: &Session,
        searched: &Searched,
        records: [Option<StoredRecord>; 2],
    ) -> Result<Vec<Neighbour>> {
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
        Ok(neighbours)
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
