//! Holding files of the index against the checksums at their ends: each before it is read for the first time, and again
//! before a merge makes other files of it, so that damage is never merged away.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::directory::ManagedDirectory;
use tantivy::directory::error::OpenReadError;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};
use tantivy::{Index, SegmentMeta};

use crate::{Result, StoreError};

/// The verified files of an index.
#[derive(Debug)]
pub(super) struct Verifier {
    directory: ManagedDirectory,
    folder: PathBuf,
    /// Files that were found intact.
    whole: Mutex<HashSet<PathBuf>>,
    /// The first file that was not.
    damaged: Mutex<Option<PathBuf>>,
}

impl Verifier {
    pub(super) fn new(index: &Index, folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            directory: index.directory().clone(),
            folder: folder.to_owned(),
            whole: Mutex::default(),
            damaged: Mutex::default(),
        })
    }

    /// Refuses segments with a damaged file. Files that were found intact are not read again.
    pub(super) fn check_new(&self, segments: &[SegmentMeta]) -> Result<()> {
        self.refuse_damaged()?;
        let mut files = self.files(segments);
        files.retain(|file| !self.whole().contains(file));
        self.check(&files)?;
        self.whole().extend(files);
        Ok(())
    }

    /// Refuses segments with a file that was damaged since it was opened.
    pub(super) fn check_again(&self, segments: &[SegmentMeta]) -> Result<()> {
        self.refuse_damaged()?;
        self.check(&self.files(segments))
    }

    /// Refuses everything once damage was found, by whomever.
    pub(super) fn refuse_damaged(&self) -> Result<()> {
        match &*self.damaged() {
            None => Ok(()),
            Some(path) => Err(StoreError::IndexDamaged {
                path: path.clone(),
                detail: "its bytes are not those that were written".to_owned(),
            }),
        }
    }

    fn check(&self, files: &[PathBuf]) -> Result<()> {
        for file in files {
            match self.directory.validate_checksum(file) {
                // One that is gone belongs to a state that has passed; the engine misses one it needs.
                Ok(true) | Err(OpenReadError::FileDoesNotExist(_)) => {}
                Ok(false) | Err(_) => {
                    *self.damaged() = Some(self.folder.join(file));
                    return self.refuse_damaged();
                }
            }
        }
        Ok(())
    }

    pub(super) fn files(&self, segments: &[SegmentMeta]) -> Vec<PathBuf> {
        let known = self.directory.list_managed_files();
        let mut files: Vec<PathBuf> = known
            .into_iter()
            .filter(|file| {
                let name = file.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| segments.iter().any(|segment| is_of(name, segment)))
            })
            .collect();
        files.sort();
        files
    }

    fn whole(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn damaged(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file belongs to a segment. Of the files that say what was deleted only the last one counts.
fn is_of(name: &str, segment: &SegmentMeta) -> bool {
    let Some(rest) = name.strip_prefix(&segment.id().uuid_string()) else {
        return false;
    };
    let deleted = rest.strip_suffix(".del");
    deleted.is_none_or(|number| {
        let number = number
            .strip_prefix('.')
            .and_then(|number| number.parse().ok());
        number == segment.delete_opstamp()
    })
}

/// Chooses what is merged as the engine would, unless something of it is damaged: then nothing is merged any more.
#[derive(Debug)]
pub(super) struct MergeWhole {
    pub(super) policy: LogMergePolicy,
    pub(super) verifier: Arc<Verifier>,
}

impl MergePolicy for MergeWhole {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let candidates = self.policy.compute_merge_candidates(segments);
        let chosen: Vec<SegmentMeta> = segments
            .iter()
            .filter(|segment| {
                let id = segment.id();
                candidates
                    .iter()
                    .any(|MergeCandidate(ids)| ids.contains(&id))
            })
            .cloned()
            .collect();
        match self.verifier.check_again(&chosen) {
            Ok(()) => candidates,
            // The next read reports it.
            Err(_) => Vec::new(),
        }
    }
}
