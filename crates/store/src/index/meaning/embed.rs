//! Making vectors of what has none yet, a few records at a time: each stream remembers up to which change it is done, so
//! that this goes on where it was left.

use std::cell::Cell;
use std::sync::Arc;

use contract::id::FieldName;
use meaning::{Embedder, Window};

use super::Opened;
use super::scan::Signing;
use super::vectors::{Changed, Embedded, MadeWindow, Progress, Vectors};
use crate::catalog::StreamRef;
use crate::index::sources::StreamEntry;
use crate::index::truth::ChangedRecord;
use crate::index::{RecordIndex, Sources, parse_stored};
use crate::meaning::ModelInfo;
use crate::{Result, stop};

/// How many records are read at a time.
const RECORDS: usize = 64;
/// How many windows are run at a time, unless one record alone has more: this bounds how long an erasure waits.
const WINDOWS: usize = 64;

/// A part of a record that gets a vector.
struct Cut {
    field: FieldName,
    signing: Signing,
    window: Window,
}

impl RecordIndex {
    pub(super) fn embed_chunk(&self) -> Result<bool> {
        if self.meaning.info().is_none() {
            return Ok(false);
        }
        lower_priority();
        let _erasing_waits = self.meaning.embedding();
        self.meaning.with_vectors(|opened| {
            let sources = self.sources();
            forget_changed_streams(&sources, &opened.vectors)?;
            for entry in sources.streams() {
                stop::check()?;
                if self.embed_stream(entry, opened)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Makes vectors of some records of a stream. Returns whether there was anything to do.
    fn embed_stream(&self, entry: &StreamEntry, opened: &Opened) -> Result<bool> {
        if entry.layout.semantic.is_empty() {
            return Ok(false);
        }
        let known = opened.vectors.state().progress.get(&entry.id).cloned();
        let after = known.map_or(0, |progress| progress.version);
        let (last_version, waiting) = self.truth.changed(entry.id, after, RECORDS)?;
        if last_version <= after {
            return Ok(false);
        }
        let mut progress = Progress {
            fields: fields_of(entry),
            version: last_version,
        };
        let (made, done) = self.make(entry, &*opened.model, &waiting)?;
        if let (true, Some(last)) = (!done || waiting.len() == RECORDS, made.last()) {
            progress.version = last.version;
        }
        opened.vectors.keep(entry.id, &progress, &made)?;
        Ok(true)
    }

    /// The vectors of as many of these records as are run at a time, and whether that is all of them.
    fn make(
        &self,
        entry: &StreamEntry,
        model: &dyn Embedder,
        waiting: &[ChangedRecord],
    ) -> Result<(Vec<Embedded>, bool)> {
        let mut cut: Vec<(&ChangedRecord, Vec<Cut>)> = Vec::new();
        let mut windows = 0;
        for record in waiting {
            if windows >= WINDOWS {
                break;
            }
            let here = self.windows_of(entry, model, record)?;
            windows += here.len();
            cut.push((record, here));
        }
        let done = cut.len() == waiting.len();
        let mut made = Vec::with_capacity(cut.len());
        for (record, windows) in cut {
            stop::check()?;
            let (kinds, windows): (Vec<_>, Vec<Window>) = windows
                .into_iter()
                .map(|cut| ((cut.field, cut.signing), cut.window))
                .unzip();
            let vectors = model.embed(&windows)?;
            let windows = kinds.into_iter().zip(windows).zip(vectors);
            made.push(Embedded {
                row: record.row,
                version: record.version,
                windows: windows
                    .map(|(((field, signing), window), vector)| MadeWindow {
                        field,
                        signing,
                        start_chars: window.start_chars,
                        end_chars: window.end_chars,
                        vector,
                    })
                    .collect(),
            });
        }
        Ok((made, done))
    }

    fn windows_of(
        &self,
        entry: &StreamEntry,
        model: &dyn Embedder,
        record: &ChangedRecord,
    ) -> Result<Vec<Cut>> {
        let Some(data) = &record.data else {
            return Ok(Vec::new());
        };
        let body = parse_stored(data.clone(), self.path())?;
        let speaker = entry.layout.speaker.as_ref().and_then(|field| {
            let name = body.text(field.as_str())?;
            (!name.trim().is_empty()).then_some((field, name))
        });
        let mut cut = Vec::new();
        for field in &entry.layout.semantic {
            let Some(text) = body.text(field.as_str()) else {
                continue;
            };
            let mut windows = model.windows(&text)?.into_iter();
            let mut add = |signing, window| {
                let field = field.clone();
                cut.push(Cut {
                    field,
                    signing,
                    window,
                });
            };
            if let (Some((speaker, name)), Some(first)) = (&speaker, windows.clone().next())
                && let Some(signed) = signed(model, name, &text, &first)?
            {
                windows.next();
                add(Signing::Unsigned((*speaker).clone()), first);
                add(Signing::Signed((*speaker).clone()), signed);
            }
            windows.for_each(|window| add(Signing::Plain, window));
        }
        Ok(cut)
    }

    /// Leaves out vectors of records that have changed since they were made. Returns the streams that have changes without
    /// vectors, each with the version up to which it has them.
    pub(super) fn refresh_vectors(
        &self,
        entries: &[&Arc<StreamEntry>],
        vectors: &Vectors,
    ) -> Result<Vec<(StreamRef, u64)>> {
        let mut behind = Vec::new();
        for entry in entries {
            if entry.layout.semantic.is_empty() {
                continue;
            }
            let (made, looked) = {
                let state = vectors.state();
                let made = state.progress.get(&entry.id);
                let made = made.filter(|progress| progress.fields == fields_of(entry));
                let made = made.map_or(0, |progress| progress.version);
                (made, state.looked.get(&entry.id).copied().unwrap_or(0))
            };
            let last = self.truth.last_version(entry.id)?;
            // Without any vector there is nothing to leave out.
            let changed = if last <= looked || made == 0 {
                Vec::new()
            } else {
                self.truth.changed_rows(entry.id, looked)?
            };
            if !changed.is_empty() {
                let changed = self.changed(entry, vectors, changed)?;
                vectors.leave_out(entry.id, last, &changed);
            }
            if last > made {
                behind.push((entry.stream.clone(), made));
            }
        }
        Ok(behind)
    }

    /// Which fields of changed records still say what their vectors were made of.
    fn changed(
        &self,
        entry: &StreamEntry,
        vectors: &Vectors,
        rows: Vec<(u64, u64)>,
    ) -> Result<Vec<Changed>> {
        let mut changed = Vec::new();
        for (row, version) in rows {
            stop::check()?;
            let Some(made) = vectors.state().table.version_of(row) else {
                continue;
            };
            let forms = self.truth.then_and_now(row, made);
            // What was erased or is damaged cannot be compared: its vectors are made anew.
            let mut same = match forms {
                Ok(Some((then, now))) => self.same_texts(entry, then, now),
                _ => Vec::new(),
            };
            let speaker = entry.layout.speaker.as_ref();
            let same_speaker = speaker.is_some_and(|speaker| same.contains(speaker));
            same.retain(|field| entry.layout.semantic.contains(field));
            changed.push(Changed {
                row,
                version,
                same,
                same_speaker,
            });
        }
        Ok(changed)
    }

    fn same_texts(&self, entry: &StreamEntry, then: String, now: String) -> Vec<FieldName> {
        let forms = (
            parse_stored(then, self.path()),
            parse_stored(now, self.path()),
        );
        let (Ok(then), Ok(now)) = forms else {
            return Vec::new();
        };
        let fields = entry.layout.semantic.iter().chain(&entry.layout.speaker);
        let is_same = |field: &&FieldName| then.text(field.as_str()) == now.text(field.as_str());
        fields.filter(is_same).cloned().collect()
    }

    /// How many records have no vectors yet, and how many vectors there are.
    pub(super) fn waiting_for_vectors(&self, model: &ModelInfo) -> Result<(u64, u64)> {
        let opened = self.meaning.opened().clone();
        let vectors = match opened {
            Some(opened) => opened.vectors,
            None => self.meaning.open_vectors(model)?,
        };
        let sources = self.sources();
        let (made, count) = {
            let state = vectors.state();
            (state.progress.clone(), state.table.len() as u64)
        };
        let mut waiting = 0;
        for entry in sources.streams() {
            if entry.layout.semantic.is_empty() {
                continue;
            }
            let progress = made.get(&entry.id);
            let progress = progress.filter(|progress| progress.fields == fields_of(entry));
            let after = progress.map_or(0, |progress| progress.version);
            waiting += self.truth.changed_live(entry.id, after)?;
        }
        Ok((waiting, count))
    }

    /// Throws all vectors away; they are made anew.
    pub(crate) fn forget_vectors(&self) -> Result<()> {
        let _no_vectors_meanwhile = self.meaning.embedding();
        self.meaning.drop_vectors()
    }

    /// Removes vectors of what was erased from the disk.
    pub(crate) fn rewrite_vectors(&self) -> Result<()> {
        if self.meaning.info().is_none() || self.meaning.bytes_on_disk() == 0 {
            return Ok(());
        }
        let _no_vectors_meanwhile = self.meaning.embedding();
        self.meaning.with_vectors(|opened| {
            let sources = self.sources();
            let streams = sources.streams().iter().map(|entry| entry.id).collect();
            let live = |made: &[(u64, u64)]| self.truth.live_versions(made);
            opened.vectors.rewrite(&streams, live)
        })
    }
}

/// Drops the vectors of streams that are gone, or whose fields are others now.
fn forget_changed_streams(sources: &Sources, vectors: &Vectors) -> Result<()> {
    let known: Vec<(i64, Progress)> = {
        let state = vectors.state();
        state
            .progress
            .iter()
            .map(|(stream, one)| (*stream, one.clone()))
            .collect()
    };
    for (stream, progress) in known {
        let entry = sources.by_id(stream);
        if entry.is_none_or(|entry| fields_of(entry) != progress.fields) {
            vectors.forget_stream(stream)?;
        }
    }
    Ok(())
}

/// The beginning of a text as a window of its own that says who speaks.
fn signed(
    model: &dyn Embedder,
    speaker: &str,
    text: &str,
    window: &Window,
) -> Result<Option<Window>> {
    let beginning: String = text.chars().take(window.end_chars).collect();
    let windows = model.windows(&format!("{speaker}: {beginning}"))?;
    Ok(windows.into_iter().next().map(|signed| Window {
        tokens: signed.tokens,
        ..window.clone()
    }))
}

/// The fields whose meaning counts, as one text; after an empty line, the one that names who speaks.
fn fields_of(entry: &StreamEntry) -> String {
    let fields = entry.layout.semantic.iter().map(FieldName::as_str);
    let mut names: Vec<&str> = fields.collect();
    if let Some(speaker) = &entry.layout.speaker {
        names.extend(["", speaker.as_str()]);
    }
    names.join("\n")
}

thread_local! {
    static IS_LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Lets everything else go first on this thread's processor, where the system knows priorities of threads.
fn lower_priority() {
    if IS_LOWERED.replace(true) {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // Where that is not allowed, it runs like any other thread.
        let _ = rustix::process::setpriority_process(None, 19);
    }
}
