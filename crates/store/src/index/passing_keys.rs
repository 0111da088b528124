//! The keys of the records that pass a scope, for rules on the records that others point at.

use std::sync::Arc;

use contract::key::RecordKey;

use super::indexed_record::value_of;
use super::remembered::Remembered;
use super::sources::Sources;
use super::{RecordIndex, parse_stored};
use crate::records::{Direction, OrderBy, PageRequest};
use crate::search::Scope;
use crate::{Result, stop};

/// Records read at a time.
const CHUNK: usize = 1000;

/// Keys found since the last change, by the stream and rules of the scope as text. Every read under such a rule asks for them.
pub(super) type PassingKeys = Remembered<String, Arc<Vec<RecordKey>>>;

impl RecordIndex {
    /// The keys; found again if declarations changed meanwhile, since a field may have moved to another column.
    pub(super) fn keys_that_pass(&self, scope: &Scope) -> Result<Arc<Vec<RecordKey>>> {
        loop {
            let before = self.sources();
            let keys = self.find_keys(scope, &before);
            if Arc::ptr_eq(&before, &self.sources()) {
                return keys;
            }
            stop::check()?;
        }
    }

    fn find_keys(&self, scope: &Scope, sources: &Arc<Sources>) -> Result<Arc<Vec<RecordKey>>> {
        let head = self.head()?;
        let span = format!("{:?} {:?}", scope.stream, scope.rules);
        if let Some(known) = self.passing_keys.get(&head, sources, &span) {
            return Ok(known);
        }
        let entry = sources.stream(&scope.stream)?;
        let open = self.open_index()?;
        let restriction = self.restriction(entry, scope, &open.fields)?;
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let request = PageRequest {
                by: OrderBy::Key,
                direction: Direction::Ascending,
                after: after.take(),
                limit: CHUNK,
            };
            let page = self.select_page(scope, &request)?;
            after = page.records.last().map(|last| last.position.clone());
            for record in page.records.into_iter().filter(|one| !one.is_damaged) {
                // The index may lag behind a concurrent write by a moment.
                let body = parse_stored(record.body, self.path())?;
                let value = |name: &str| value_of(entry, &open.fields, name, &body);
                if restriction.admits(0, value) {
                    keys.push(record.key);
                }
            }
            stop::check()?;
            if page.is_last || after.is_none() {
                break;
            }
        }
        let keys = Arc::new(keys);
        // Should more have been written meanwhile, they are forgotten with the version they are kept under.
        let known = Arc::clone(&keys);
        self.passing_keys.keep(&head, sources, span, known);
        Ok(keys)
    }
}
