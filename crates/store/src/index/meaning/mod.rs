//! Vectors of what records say: made by the owner's model in the background, kept beside the index, derived like it.
//!
//! Each window of each field has a vector of its own, so that a search looks only at fields it may see. One bit per
//! dimension is held in memory and compared with a question in one pass; the best are compared again with eight bits per
//! dimension, which stay on disk. A pass over a million takes milliseconds, so there is no graph to keep.

mod embed;
mod find;
mod quantize;
mod scan;
mod vectors;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meaning::{Embedder, Model, ModelError};

pub(super) use self::find::Meant;
pub use self::scan::VectorScan;
use self::vectors::{Origin, Vectors};
use super::RecordIndex;
use crate::disk_space;
use crate::meaning::{Meaning, MeaningQuestion, MeaningStatus, ModelInfo};
use crate::search::{SearchAnswer, SearchRequest};
use crate::sqlite::directory::{MODEL_PREPARED, create_private, write_durably};
use crate::{Result, StoreError};

/// Says which model lies in its folder.
const INFO: &str = "pdpp-model.json";

/// The model and its vectors, opened on first use.
pub(super) struct MeaningState {
    model_folder: PathBuf,
    vectors_folder: PathBuf,
    store_id: [u8; 16],
    info: Mutex<Option<ModelInfo>>,
    opened: Mutex<Option<Opened>>,
    /// Held while vectors are made, so that what is erased meanwhile does not come back.
    embedding: Mutex<()>,
}

#[derive(Clone)]
struct Opened {
    model: Arc<dyn Embedder>,
    vectors: Arc<Vectors>,
}

impl MeaningState {
    pub(super) fn new(model_folder: PathBuf, vectors_folder: PathBuf, store_id: [u8; 16]) -> Self {
        let info = fs::read(model_folder.join(INFO)).ok();
        let info = info.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            model_folder,
            vectors_folder,
            store_id,
            info: Mutex::new(info),
            opened: Mutex::default(),
            embedding: Mutex::default(),
        }
    }

    fn info(&self) -> MutexGuard<'_, Option<ModelInfo>> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn embedding(&self) -> MutexGuard<'_, ()> {
        self.embedding
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The model and its vectors, read from disk the first time.
    fn open(&self) -> Result<Opened> {
        let mut opened = self.opened();
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let info = self.info().clone().ok_or(StoreError::NoModel)?;
        let model = Model::open(&self.model_folder)?;
        if model.fingerprint() != info.fingerprint {
            return Err(StoreError::Model(ModelError::Malformed {
                path: self.model_folder.clone(),
                detail: "its files are not those that were added".to_owned(),
            }));
        }
        let vectors = self.open_vectors(&info)?;
        let model: Arc<dyn Embedder> = Arc::new(model);
        let open = Opened { model, vectors };
        *opened = Some(open.clone());
        Ok(open)
    }

    fn open_vectors(&self, info: &ModelInfo) -> Result<Arc<Vectors>> {
        let origin = Origin {
            store_id: self.store_id,
            fingerprint: &info.fingerprint,
            dimensions: info.dimensions,
        };
        Vectors::open(&self.vectors_folder, &origin).map(Arc::new)
    }

    /// Runs something over the vectors. If their file turns out to be damaged it is dropped, and they are made anew.
    fn with_vectors<T>(&self, run: impl Fn(&Opened) -> Result<T>) -> Result<T> {
        let opened = self.open()?;
        match run(&opened) {
            Err(StoreError::Corrupt { path, .. }) if path.starts_with(&self.vectors_folder) => {
                self.discard(&opened)?;
                run(&self.open()?)
            }
            outcome => outcome,
        }
    }

    /// Drops the file, whatever it holds.
    fn drop_vectors(&self) -> Result<()> {
        let mut opened = self.opened();
        *opened = None;
        remove_folder(&self.vectors_folder)
    }

    /// Drops a damaged file, unless somebody did already.
    fn discard(&self, damaged: &Opened) -> Result<()> {
        let mut opened = self.opened();
        if let Some(open) = &*opened
            && Arc::ptr_eq(&open.vectors, &damaged.vectors)
        {
            *opened = None;
            remove_folder(&self.vectors_folder)?;
        }
        Ok(())
    }

    pub(super) fn bytes_on_disk(&self) -> u64 {
        vectors::bytes_on_disk(&self.vectors_folder)
    }
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io(folder, error))
        }
        _ => Ok(()),
    }
}

impl Meaning for RecordIndex {
    fn model(&self) -> Option<ModelInfo> {
        self.meaning.info().clone()
    }

    fn add_model(&self, folder: &Path) -> Result<ModelInfo> {
        let model = Model::open(folder)?;
        let name = folder.canonicalize().ok();
        let name = name.as_deref().and_then(Path::file_name);
        let info = ModelInfo {
            name: name.map_or_else(
                || "model".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            dimensions: model.dimensions(),
            fingerprint: model.fingerprint().to_owned(),
        };
        let _no_vectors_meanwhile = self.meaning.embedding();
        let mut opened = self.meaning.opened();
        let target = &self.meaning.model_folder;
        let is_same = self
            .model()
            .is_some_and(|known| known.fingerprint == info.fingerprint);
        if !is_same || folder.canonicalize().ok() != target.canonicalize().ok() {
            copy_model(folder, target, model.files())?;
        }
        let text = serde_json::to_vec(&info)
            .map_err(|error| StoreError::engine(target.join(INFO), error))?;
        write_durably(&target.join(INFO), &text)?;
        if !is_same {
            remove_folder(&self.meaning.vectors_folder)?;
        }
        *opened = None;
        *self.meaning.info() = Some(info.clone());
        Ok(info)
    }

    fn remove_model(&self) -> Result<Option<ModelInfo>> {
        let _no_vectors_meanwhile = self.meaning.embedding();
        let mut opened = self.meaning.opened();
        *opened = None;
        let removed = self.meaning.info().take();
        remove_folder(&self.meaning.vectors_folder)?;
        remove_folder(&self.meaning.model_folder)?;
        Ok(removed)
    }

    fn meaning_status(&self) -> Result<Option<MeaningStatus>> {
        let Some(model) = self.model() else {
            return Ok(None);
        };
        let records = self.truth.live_records()?;
        let (waiting, vectors) = self.waiting_for_vectors(&model)?;
        Ok(Some(MeaningStatus {
            model,
            embedded: records.saturating_sub(waiting),
            records,
            vectors,
        }))
    }

    fn embed_some(&self) -> Result<bool> {
        self.embed_chunk()
    }

    fn search_by_meaning(
        &self,
        request: &SearchRequest,
        question: &MeaningQuestion,
    ) -> Result<SearchAnswer> {
        self.with_index(|| {
            self.with_one_layout(&request.scopes, || self.find_by_meaning(request, question))
        })
    }
}

/// Copies the files of a model into an empty folder.
fn copy_model(from: &Path, to: &Path, files: &[String]) -> Result<()> {
    let sizes = files
        .iter()
        .filter_map(|name| fs::metadata(from.join(name)).ok());
    let bytes: u64 = sizes.map(|file| file.len()).sum();
    let parent = to.parent().unwrap_or(Path::new("."));
    disk_space::require(parent, bytes)?;
    let prepared = tempfile::Builder::new()
        .prefix(MODEL_PREPARED)
        .tempdir_in(parent)
        .map_err(StoreError::at(parent))?;
    for name in files {
        let target = prepared.path().join(name);
        create_private(target.parent().unwrap_or(Path::new(".")))?;
        fs::copy(from.join(name), &target).map_err(StoreError::at(&target))?;
    }
    remove_folder(to)?;
    fs::rename(prepared.keep(), to).map_err(StoreError::at(to))
}
