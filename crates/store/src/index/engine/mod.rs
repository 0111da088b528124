//! The derived search index: one document per live record, always able to catch up with the records by itself.
//!
//! The database is the truth. Each commit of the index carries a bookmark, the version of the last change it contains;
//! whatever is newer is replayed from the records. A folder that is missing, damaged, of another format or of another
//! store is thrown away and derived anew. Uncommitted work is simply lost in a crash and replayed.

mod failure;
mod open;
mod schema;
pub(crate) mod tokenizer;
mod verify;
mod view;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use contract::json::RecordBody;

pub(crate) use contract::id::hex;
pub(crate) use failure::failed;
pub(crate) use open::{OpenIndex, WINDOW, copy_format};
pub(crate) use schema::{
    Capacity, ColumnValue, EMITTED, Fields, Indexable, dictionary_form, integer_of, item_form,
    slot_name,
};
pub(crate) use view::{Segment, View};

use crate::index::sources::StreamEntry;
use crate::index::truth::Mark;
use crate::sqlite::directory::{create_private, write_durably};
use crate::{Result, StoreError};

/// How often, and after which pauses, it is checked whether readers are done: a search takes milliseconds.
const READERS_ASKED: u32 = 100;
const READERS_WAIT: Duration = Duration::from_millis(20);

/// The place of an index whose records are not those that it followed.
const REWRITTEN: &str = "index";
/// The file beside the folders that says which file was damaged.
const DAMAGE: &str = "damaged";

pub(crate) enum IndexChange<'a> {
    /// The record is new or replaced. `known` is false when the index cannot hold an earlier form of it.
    Put { record: Indexable<'a>, known: bool },
    /// The record is gone.
    Drop { row: u64 },
    /// A whole stream is gone.
    Erase { stream: u64 },
}

/// A change of a record that the index must follow, kept until its batch is acknowledged.
pub(crate) struct Staged {
    pub(crate) row: u64,
    pub(crate) entry: Arc<StreamEntry>,
    /// The new content, or `None` for a deletion.
    pub(crate) put: Option<NewContent>,
    /// Whether the record was there before.
    pub(crate) known: bool,
}

pub(crate) struct NewContent {
    pub(crate) body: RecordBody,
    pub(crate) emitted_at: String,
}

impl Staged {
    pub(crate) fn index_change(&self) -> IndexChange<'_> {
        let row = self.row;
        match &self.put {
            None => IndexChange::Drop { row },
            Some(NewContent { body, emitted_at }) => IndexChange::Put {
                record: Indexable {
                    row,
                    stream: self.entry.id.cast_unsigned(),
                    emitted_at,
                    layout: &self.entry.layout,
                    body,
                },
                known: self.known,
            },
        }
    }
}

/// Versions after one and up to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) after: u64,
    pub(crate) upto: u64,
}

/// Where changes are replayed from. All answers come from one snapshot of the records.
pub(crate) trait ChangeSource {
    fn newest(&self) -> Result<u64>;
    /// The mark of the transaction that a version is of.
    fn mark(&self, version: u64) -> Result<Mark>;
    /// Up to which version deletions may be missing.
    fn purged_to(&self) -> Result<u64>;
    /// Hands over the changes with these versions. `known` is false when the index started out empty.
    fn replay(
        &self,
        versions: Versions,
        known: bool,
        each: &mut dyn FnMut(IndexChange<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// What the index follows is not what it followed: a standby took over without the last changes, or an older state was
/// restored. Only an index that is derived anew is right.
pub(crate) fn rewritten() -> StoreError {
    StoreError::IndexDamaged {
        path: PathBuf::from(REWRITTEN),
        detail: "the history of the records was rewritten".to_owned(),
    }
}

pub(crate) fn is_rewritten(error: &StoreError) -> bool {
    matches!(error, StoreError::IndexDamaged { path, .. } if path == Path::new(REWRITTEN))
}

/// The index of a data directory; opened on first use.
///
/// Each rebuild gets a numbered folder of its own, so that readers and writers of the previous one cannot touch it.
pub(crate) struct SearchIndex {
    root: PathBuf,
    store_id: [u8; 16],
    /// The newest version when the directory was opened: an index on disk that claims more belongs to other records.
    newest: u64,
    opened: Mutex<Opened>,
    /// A file that was damaged when the index was opened, until it is taken.
    damaged: Mutex<Option<PathBuf>>,
}

/// Whether the index is open, and whether what is on disk may be opened.
#[derive(Default)]
struct Opened {
    open: Option<Arc<OpenIndex>>,
    discarded: bool,
    /// Folders of earlier processes are gone; those of this one go with their last user.
    swept: bool,
}

impl SearchIndex {
    pub(crate) fn new(root: PathBuf, store_id: [u8; 16], newest: u64) -> Self {
        Self {
            root,
            store_id,
            newest,
            opened: Mutex::default(),
            damaged: Mutex::default(),
        }
    }

    /// The open index with at least this capacity; opened or rebuilt if needed.
    pub(crate) fn open(&self, needed: Capacity) -> Result<Arc<OpenIndex>> {
        let mut opened = self.lock();
        if let Some(open) = &opened.open
            && open.capacity.covers(needed)
        {
            return Ok(Arc::clone(open));
        }
        let found = match opened.open.take() {
            None if !opened.discarded => self.on_disk(needed)?,
            None => None,
            Some(outgrown) => {
                outgrown.retire();
                None
            }
        };
        let open = match found {
            Some(open) => open,
            None => self.fresh(needed, opened.swept)?,
        };
        let open = Arc::new(open);
        *opened = Opened {
            open: Some(Arc::clone(&open)),
            discarded: false,
            swept: true,
        };
        Ok(open)
    }

    /// The version of the last change the index holds on disk.
    pub(crate) fn committed(&self, needed: Capacity) -> u64 {
        let opened = self.lock();
        match &opened.open {
            Some(open) => open.committed(),
            None => self
                .newest_folder()
                .and_then(|folder| OpenIndex::found(&folder, self.store_id, needed))
                .map_or(0, |(_, bookmark)| bookmark.version()),
        }
    }

    /// The open index, to compare with a later one.
    pub(crate) fn opened(&self) -> Option<Arc<OpenIndex>> {
        self.lock().open.clone()
    }

    /// Throws the index away, unless it is another one than the caller means. The next use rebuilds it.
    pub(crate) fn discard(&self, which: Option<&Arc<OpenIndex>>) {
        let mut opened = self.lock();
        let same = match (which, &opened.open) {
            (Some(which), Some(open)) => Arc::ptr_eq(which, open),
            (None, None) => true,
            _ => false,
        };
        if same {
            if let Some(open) = opened.open.take() {
                open.retire();
            }
            opened.discarded = true;
        }
    }

    /// Removes the folders of replaced indexes that a killed process left.
    pub(crate) fn sweep(&self) {
        let mut folders = self.folders().unwrap_or_default();
        folders.pop();
        for (_, folder) in folders {
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// Waits until the folders of replaced indexes are gone, for as long as a reader may reasonably hold one.
    pub(crate) fn await_retired(&self) -> Result<()> {
        for _ in 0..READERS_ASKED {
            if self.folders()?.len() <= 1 {
                return Ok(());
            }
            thread::sleep(READERS_WAIT);
        }
        Err(StoreError::engine(
            &self.root,
            "somebody still searches an index that was replaced",
        ))
    }

    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let Some(folder) = self.newest_folder() else {
            return 0;
        };
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let sizes = files.filter_map(|file| file.metadata().ok());
        sizes.map(|file| file.len()).sum()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Records which file was damaged, and when that was found: the index is rebuilt and answers as before, but the disk has
    /// changed something, which the owner must know. The first one stays.
    pub(crate) fn note_damage(&self, at: &str, file: &Path) -> Result<()> {
        let note = self.root.join(DAMAGE);
        if note.exists() {
            return Ok(());
        }
        create_private(&self.root)?;
        write_durably(&note, format!("{at} {}", file.display()).as_bytes())
    }

    pub(crate) fn noted_damage(&self) -> Option<(String, PathBuf)> {
        let text = fs::read_to_string(self.root.join(DAMAGE)).ok()?;
        let (at, file) = text.split_once(' ')?;
        Some((at.to_owned(), PathBuf::from(file)))
    }

    pub(crate) fn forget_damage(&self) -> Result<()> {
        let note = self.root.join(DAMAGE);
        match fs::remove_file(&note) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(&note, error)),
            _ => Ok(()),
        }
    }

    /// The file that was damaged when the index was opened; returned once.
    pub(crate) fn take_damaged(&self) -> Option<PathBuf> {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.take()
    }

    /// The index on disk, unless it belongs to another store, has another format or is damaged: then it is rebuilt.
    fn on_disk(&self, needed: Capacity) -> Result<Option<OpenIndex>> {
        let Some(folder) = self.newest_folder() else {
            return Ok(None);
        };
        match OpenIndex::existing(&folder, self.store_id, needed) {
            Err(StoreError::IndexDamaged { path, .. }) => {
                *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
                Ok(None)
            }
            found => Ok(found?.filter(|found| found.committed() <= self.newest)),
        }
    }

    fn newest_folder(&self) -> Option<PathBuf> {
        self.folders().ok()?.pop().map(|(_, folder)| folder)
    }

    /// An empty index in the next folder. Folders of earlier processes are removed first.
    fn fresh(&self, needed: Capacity, swept: bool) -> Result<OpenIndex> {
        let folders = self.folders()?;
        let number = folders.last().map_or(1, |(number, _)| number + 1);
        if !swept {
            for (_, folder) in folders {
                let _ = fs::remove_dir_all(&folder);
            }
        }
        OpenIndex::fresh(&self.root.join(number.to_string()), self.store_id, needed)
    }

    fn folders(&self) -> Result<Vec<(u64, PathBuf)>> {
        let mut folders = Vec::new();
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(folders),
            Err(error) => return Err(StoreError::io(&self.root, error)),
        };
        for entry in entries {
            let path = entry.map_err(StoreError::at(&self.root))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(number) = name.and_then(|name| name.parse().ok()) {
                folders.push((number, path));
            }
        }
        folders.sort_unstable();
        Ok(folders)
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
