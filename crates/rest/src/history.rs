//! What the owner is told later: imports with their reports, and when the last backup was made.

use contract::id::ConnectionId;
use contract::time::Instant;
use ingest::ImportReport;
use serde::{Deserialize, Serialize};
use store::registry::{Change, Entry, EntryKind};
use store::{Result, Store};

use crate::owner::wire::{Imported, Refusal};

/// How many imports are kept, and how many refused lines of each.
const KEPT_IMPORTS: usize = 200;
const KEPT_LINES: usize = 20;
const NAMED_FILES: usize = 5;
const LAST: &str = "last";

/// An import that wrote something, or was stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImportRecord {
    pub(crate) at: Instant,
    /// The upload it came by; empty for one at the terminal.
    #[serde(default)]
    pub(crate) upload: String,
    pub(crate) connection: ConnectionId,
    /// What kind of source it was, in words.
    pub(crate) kind: String,
    /// The names of its first files.
    pub(crate) files: Vec<String>,
    pub(crate) more_files: usize,
    pub(crate) report: ImportReport,
    pub(crate) stopped: Option<Refusal>,
}

impl ImportRecord {
    /// An import as it ended. Of what it refused only the first lines are kept, and never what stood in them.
    pub(crate) fn new(
        at: Instant,
        connection: &ConnectionId,
        kind: &str,
        mut files: Vec<String>,
        imported: &Imported,
    ) -> Self {
        let mut report = imported.report.clone();
        report.rejections.truncate(KEPT_LINES);
        for line in &mut report.rejections {
            line.value = None;
        }
        report.broken.truncate(KEPT_LINES);
        report.notes.truncate(KEPT_LINES);
        let more_files = files.len().saturating_sub(NAMED_FILES);
        files.truncate(NAMED_FILES);
        Self {
            at,
            upload: String::new(),
            connection: connection.clone(),
            kind: kind.to_owned(),
            files,
            more_files,
            report,
            stopped: imported.stopped.clone(),
        }
    }

    pub(crate) fn of_upload(mut self, upload: &str) -> Self {
        upload.clone_into(&mut self.upload);
        self
    }

    fn is_worth_keeping(&self) -> bool {
        self.report.read > 0 || !self.report.broken.is_empty() || self.stopped.is_some()
    }

    /// Newest first in the order of keys.
    fn key(&self) -> String {
        format!("{:020}-{}", i64::MAX - self.at.0, self.connection)
    }
}

/// Keeps an import. The records are safe whatever happens here, so a failure is only logged.
pub(crate) fn keep_import(store: &dyn Store, record: &ImportRecord) {
    if !record.is_worth_keeping() {
        return;
    }
    let kept = serde_json::to_string(record).map_err(|error| error.to_string());
    let kept = kept.and_then(|document| {
        let put = put(
            EntryKind::Import,
            &record.key(),
            &document,
            store,
            record.at,
        );
        let kept = put.and_then(|()| drop_oldest(store, record.at));
        kept.map_err(|error| error.to_string())
    });
    if let Err(error) = kept {
        tracing::warn!(error, "the report of an import could not be kept");
    }
}

fn put(kind: EntryKind, key: &str, document: &str, store: &dyn Store, now: Instant) -> Result<()> {
    let change = Change::put(kind, key, document);
    store.apply(&[change], now).map(drop)
}

fn drop_oldest(store: &dyn Store, now: Instant) -> Result<()> {
    let entries = store.entries(EntryKind::Import, None, 2 * KEPT_IMPORTS, now)?;
    remove(store, entries.iter().skip(KEPT_IMPORTS), now)
}

fn remove<'a>(
    store: &dyn Store,
    entries: impl Iterator<Item = &'a Entry>,
    now: Instant,
) -> Result<()> {
    let remove = |entry: &'a Entry| Change::remove(entry.kind, &entry.key);
    let changes: Vec<Change<'_>> = entries.map(remove).collect();
    match changes.as_slice() {
        [] => Ok(()),
        changes => store.apply(changes, now).map(drop),
    }
}

/// The last imports, newest first.
pub(crate) fn imports(store: &dyn Store, now: Instant) -> Result<Vec<ImportRecord>> {
    let entries = store.entries(EntryKind::Import, None, KEPT_IMPORTS, now)?;
    let read = |entry: &Entry| serde_json::from_str(&entry.document).ok();
    Ok(entries.iter().filter_map(read).collect())
}

/// Forgets the imports into a connection that is removed: their reports name its files.
pub(crate) fn forget_imports(
    store: &dyn Store,
    connection: &ConnectionId,
    now: Instant,
) -> Result<()> {
    let entries = store.entries(EntryKind::Import, None, 2 * KEPT_IMPORTS, now)?;
    let of_it = |entry: &&Entry| {
        let read: Option<ImportRecord> = serde_json::from_str(&entry.document).ok();
        read.is_none_or(|record| record.connection == *connection)
    };
    remove(store, entries.iter().filter(of_it), now)
}

/// Notes that a backup was made.
pub(crate) fn keep_backup(store: &dyn Store, now: Instant) {
    let document = serde_json::json!({ "at": now }).to_string();
    if let Err(error) = put(EntryKind::Backup, LAST, &document, store, now) {
        tracing::warn!(%error, "it could not be noted that a backup was made");
    }
}

/// When the last backup was made.
pub(crate) fn last_backup(store: &dyn Store, now: Instant) -> Result<Option<Instant>> {
    #[derive(Deserialize)]
    struct BackupNote {
        at: Instant,
    }
    let entry = store.entry(EntryKind::Backup, LAST, now)?;
    let made = entry.and_then(|entry| serde_json::from_str::<BackupNote>(&entry.document).ok());
    Ok(made.map(|made| made.at))
}
