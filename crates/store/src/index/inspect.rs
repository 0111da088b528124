//! Whether the index is whole.

use super::RecordIndex;
use crate::inspection::{Damage, TOLD};
use crate::{Result, StoreError};

/// How often records and index are counted until nothing is written in between.
const COUNTED: u32 = 3;

impl RecordIndex {
    /// What is wrong with the index, or was when it was opened.
    pub(crate) fn inspect(&self, thorough: bool) -> Result<Vec<Damage>> {
        let open = match self.with_index(|| self.current_index()) {
            // Its progress is reported elsewhere; what is not indexed yet cannot be damaged.
            Err(StoreError::IndexBuilding { .. }) => return Ok(Vec::new()),
            open => open?,
        };
        let changed = if thorough {
            open.changed_files()
        } else {
            Ok(Vec::new())
        };
        let changed = match changed {
            Err(StoreError::IndexDamaged { path, detail }) => {
                return Ok(vec![Damage { path, detail }]);
            }
            changed => changed?.into_iter().map(|path| Damage {
                path,
                detail: "its bytes are not those that were written".to_owned(),
            }),
        };
        let earlier = self.index.noted_damage().map(|(at, path)| Damage {
            path,
            detail: format!(
                "its bytes were not those that were written, found {at}; the index was derived anew from the records, but the disk may be failing"
            ),
        });
        let mut found: Vec<Damage> = earlier.into_iter().chain(changed).take(TOLD).collect();
        found.extend(self.miscounted()?.map(|detail| Damage {
            path: self.index.root().to_owned(),
            detail,
        }));
        Ok(found)
    }

    /// Whether the index holds as many records as there are, if that can be counted while others write.
    fn miscounted(&self) -> Result<Option<String>> {
        for _ in 0..COUNTED {
            let before = self.newest()?;
            let indexed = match self.indexed_records() {
                Err(StoreError::IndexBuilding { .. }) => return Ok(None),
                indexed => indexed?,
            };
            let records = self.truth.live_records()?;
            if self.newest()? == before {
                let detail = || format!("it holds {indexed} records of {records}");
                return Ok((indexed != records).then(detail));
            }
        }
        Ok(None)
    }
}
