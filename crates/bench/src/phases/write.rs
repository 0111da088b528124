//! Writing: the same batches through our ingest and through the raw engines, which run three times:
//! with our words and an index commit for every batch, with as few index commits as ours, and with
//! the engine's plain words. One after the other, so that background merges are paid for by the side
//! that caused them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::notes::{Notes, ServedNotes, WriteFigures};
use super::{Places, float, same_words, seldom_committed};
use crate::ours::OurSide;
use crate::{
    BenchError, BenchOptions, Corpus, CorpusRecord, Figure, RawPaths, RawPipeline, RawSettings,
    TargetLine, Unit, cpu_time,
};

/// What writing measured.
pub(crate) struct Written {
    pub(crate) corpus_bytes: u64,
    /// Whether the process that reads also wrote the corpus: its allocator keeps what that needed.
    pub(super) wrote: bool,
    pub(super) lines: Vec<TargetLine>,
}

/// Writes the corpus, or takes the figures of an earlier run over the same folder.
pub(crate) fn write(
    options: &BenchOptions,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Written, BenchError> {
    std::fs::create_dir_all(folder).map_err(BenchError::file(folder))?;
    let earlier = Notes::earlier(options, folder)?;
    let wrote = earlier.is_none();
    let notes = if let Some(notes) = earlier {
        notes
    } else {
        let notes = write_all(options, &Places::new(folder), progress)?;
        notes.keep(folder)?;
        notes
    };
    let rate = |written: WriteFigures| {
        let seconds = written.elapsed.as_secs_f64().max(1e-9);
        Figure::once(float(options.records) / seconds)
    };
    let seconds = |duration: Duration| Figure::once(duration.as_secs_f64());
    let ours = notes.ours;
    let mut lines = Vec::new();
    for (raw, variant) in [
        (notes.raw, ""),
        (notes.seldom, ", raw index committed as seldom"),
        (notes.plain, ", raw engine with plain words"),
    ] {
        let what = format!("durable ingest{variant}");
        lines.push(TargetLine::new(&what, Unit::RecordsPerSecond, rate(ours)).beside(rate(raw)));
        let what = format!("processor time of ingest{variant}");
        let line = TargetLine::new(&what, Unit::Seconds, seconds(ours.cpu));
        lines.push(line.beside(seconds(raw.cpu)));
    }
    for (what, took) in [
        ("digests of all records once", digests(options)),
        (
            "checksums of the whole index once",
            checksums(&Places::new(folder).ours())?,
        ),
    ] {
        let what = format!("{what}, beside the processor time of our ingest");
        let line = TargetLine::new(&what, Unit::Seconds, seconds(took));
        lines.push(line.beside(seconds(ours.cpu)));
    }
    Ok(Written {
        corpus_bytes: ours.bytes,
        wrote,
        lines,
    })
}

/// What it costs to make, or to check, the digest that every record carries. Making the records is not timed.
fn digests(options: &BenchOptions) -> Duration {
    let corpus = Corpus::new(options.seed, options.records);
    let mut records = corpus.iter();
    let mut took = Duration::ZERO;
    loop {
        let batch: Vec<CorpusRecord> = records.by_ref().take(options.batch.max(1)).collect();
        if batch.is_empty() {
            return took;
        }
        let begin = Instant::now();
        for record in &batch {
            std::hint::black_box(store::record_digest(&record.json));
        }
        took += begin.elapsed();
    }
}

/// What it costs to hold every file of our index against its checksum, as is done when it is opened.
fn checksums(ours: &Path) -> Result<Duration, BenchError> {
    let root = ours.join("index");
    let folders = std::fs::read_dir(&root).map_err(BenchError::file(&root))?;
    let newest = folders
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok())
        .max();
    let Some(newest) = newest else {
        return Ok(Duration::ZERO);
    };
    let index = tantivy::Index::open_in_dir(root.join(newest.to_string()))?;
    let begin = Instant::now();
    index.validate_checksum()?;
    Ok(begin.elapsed())
}

/// Writes only our side of the corpus, or finds it from an earlier run of any kind over the same folder.
pub(crate) fn write_served(
    options: &BenchOptions,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BenchError> {
    std::fs::create_dir_all(folder).map_err(BenchError::file(folder))?;
    let ours = Places::new(folder).ours();
    let written =
        ServedNotes::has_earlier(options, folder)? || Notes::earlier(options, folder)?.is_some();
    if !written {
        write_ours(options, &ours, &mut |count| {
            progress(&format!("ours: {count}"));
        })?;
        ServedNotes::keep(options, folder)?;
    }
    Ok(ours)
}

fn write_all(
    options: &BenchOptions,
    places: &Places,
    progress: &mut dyn FnMut(&str),
) -> Result<Notes, BenchError> {
    let mut passing = |name: &str, settings: &RawSettings| {
        let paths = places.passing();
        let written = write_raw(options, &paths, settings, &mut |count| {
            progress(&format!("raw engines, {name}: {count}"));
        })?;
        let folder = paths.folder();
        std::fs::remove_dir_all(folder).map_err(BenchError::file(folder))?;
        Ok::<_, BenchError>(written)
    };
    let plain = passing("plain words", &RawSettings::default())?;
    let seldom = passing("few commits", &seldom_committed())?;
    let raw = write_raw(options, &places.raw(), &same_words(), &mut |count| {
        progress(&format!("raw engines, our words: {count}"));
    })?;
    let ours = write_ours(options, &places.ours(), &mut |count| {
        progress(&format!("ours: {count}"));
    })?;
    Ok(Notes::new(options, [ours, raw, seldom, plain]))
}

fn write_raw(
    options: &BenchOptions,
    paths: &RawPaths,
    settings: &RawSettings,
    progress: &mut dyn FnMut(u64),
) -> Result<WriteFigures, BenchError> {
    let mut pipeline = RawPipeline::create(paths, settings)?;
    let mut written = WriteFigures::default();
    written.feed(options, progress, &mut |batch| pipeline.ingest(batch))?;
    written.time(|| pipeline.settle())?;
    Ok(written)
}

/// Our store acknowledges a batch before its index is committed and catches up when asked; that
/// belongs to the ingest, as waiting for merges does on both sides.
fn write_ours(
    options: &BenchOptions,
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<WriteFigures, BenchError> {
    feed(options, &OurSide::open(folder)?, progress)
}

fn feed(
    options: &BenchOptions,
    ours: &OurSide,
    progress: &mut dyn FnMut(u64),
) -> Result<WriteFigures, BenchError> {
    let mut written = WriteFigures::default();
    written.feed(options, progress, &mut |batch| ours.ingest(batch))?;
    written.time(|| ours.settle())?;
    Ok(written)
}

/// Writes the corpus into a store; returns the records per second until everything was durable and searchable.
pub(crate) fn ingest_rate(
    options: &BenchOptions,
    ours: &OurSide,
    progress: &mut dyn FnMut(u64),
) -> Result<f64, BenchError> {
    let written = feed(options, ours, progress)?;
    Ok(float(options.records) / written.elapsed.as_secs_f64().max(1e-9))
}

impl WriteFigures {
    /// Feeds the corpus in batches; making the records is not timed.
    fn feed(
        &mut self,
        options: &BenchOptions,
        progress: &mut dyn FnMut(u64),
        ingest: &mut dyn FnMut(&[CorpusRecord]) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let corpus = Corpus::new(options.seed, options.records);
        let mut records = corpus.iter();
        let mut count = 0_u64;
        loop {
            let batch: Vec<CorpusRecord> = records.by_ref().take(options.batch.max(1)).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.time(|| ingest(&batch))?;
            count += batch.len() as u64;
            let bytes = batch.iter().map(|record| record.json.len() as u64);
            self.bytes += bytes.sum::<u64>();
            progress(count);
        }
    }

    fn time(&mut self, work: impl FnOnce() -> Result<(), BenchError>) -> Result<(), BenchError> {
        let (begin, cpu) = (Instant::now(), cpu_time());
        work()?;
        self.elapsed += begin.elapsed();
        self.cpu += cpu_time().saturating_sub(cpu);
        Ok(())
    }
}
