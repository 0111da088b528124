//! A copy of an index, for others to start from.

use std::fs;
use std::path::{Path, PathBuf};

use super::{FORMAT, OpenIndex, failed};
use crate::index::truth::Mark;
use crate::{Result, StoreError};

/// What the engine reads first, and which files it may remove one day.
const META: &str = "meta.json";
const MANAGED: &str = ".managed.json";

/// How an index is made, as one number: others can use a copy only if they make theirs alike.
pub(crate) fn copy_format() -> i64 {
    i64::from(FORMAT) * 1_000 + i64::from(text::ANALYZER_VERSION)
}

impl OpenIndex {
    /// Puts what is committed into a folder of the same disk, and answers up to which version that is. Files of the index
    /// never change, so links to them are enough.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(u64, Mark)> {
        let _pass = self.pass();
        let mut writing = self.writing();
        if writing.uncommitted > 0 {
            self.commit(&mut writing)?;
        }
        self.finish_merges(&mut writing)?;
        let segments = self.index.searchable_segment_metas();
        let segments = segments.map_err(failed(&self.folder))?;
        // Damage must not be spread.
        self.verifier.check_again(&segments)?;
        let mut files = self.verifier.files(&segments);
        for file in &files {
            let (from, to) = (self.folder.join(file), folder.join(file));
            fs::hard_link(&from, &to)
                .or_else(|_| fs::copy(&from, &to).map(drop))
                .map_err(StoreError::at(&from))?;
        }
        fs::copy(self.folder.join(META), folder.join(META)).map_err(StoreError::at(folder))?;
        files.push(PathBuf::from(META));
        let managed =
            serde_json::to_vec(&files).map_err(|error| StoreError::engine(folder, error))?;
        fs::write(folder.join(MANAGED), managed).map_err(StoreError::at(folder))?;
        Ok(self.bookmark())
    }
}
