//! The two phases of a run: writing the corpus batch by batch, and reading it in every way that is
//! measured. What writing measured is kept beside the data, so that a later run can only read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contender::RawContender;
use crate::{
    BenchError, BenchOptions, Contender, Corpus, CorpusRecord, Figure, Measurement, PROBES, Place,
    Question, RawPaths, RawPipeline, RawReader, RawSettings, Repetition, Report, Unit, Window,
    anonymous_memory, compare, cpu_time, folder_size,
};

const NOTES: &str = "bench.json";

/// What writing the corpus on one side cost.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// Until the last batch was durable and searchable.
    elapsed: Duration,
    /// Processor time for it, background merges included.
    cpu: Duration,
    /// Until background merges had ended, after that.
    settling: Duration,
    /// Bytes of the corpus.
    bytes: u64,
}

/// Writes the corpus, or takes the figures of an earlier run over the same folder.
pub(crate) fn write(
    options: &BenchOptions,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, BenchError> {
    std::fs::create_dir_all(folder).map_err(BenchError::file(folder))?;
    let raw = if let Some(written) = earlier(options, folder)? {
        written
    } else {
        let written = write_raw(options, &raw_paths(folder), progress)?;
        keep(options, folder, written)?;
        written
    };
    let rate = |written: Written| {
        Figure::once(per_second(options.records, written.elapsed.as_secs_f64()))
    };
    let seconds = |duration: Duration| Some(Figure::once(duration.as_secs_f64()));
    let measurements = vec![
        Measurement::new("durable ingest", Unit::RecordsPerSecond, None, Some(rate(raw))),
        Measurement::new("durable ingest, processor time", Unit::Seconds, None, seconds(raw.cpu)),
        Measurement::new("merges after ingest", Unit::Seconds, None, seconds(raw.settling)),
    ];
    Ok(Report {
        records: options.records,
        seed: options.seed,
        batch: options.batch,
        corpus_bytes: raw.bytes,
        measurements,
    })
}

fn write_raw(
    options: &BenchOptions,
    paths: &RawPaths,
    progress: &mut dyn FnMut(&str),
) -> Result<Written, BenchError> {
    let mut pipeline = RawPipeline::create(paths, &RawSettings::default())?;
    let mut written = write_batches(options, progress, &mut |batch| pipeline.ingest(batch))?;
    let begin = Instant::now();
    pipeline.settle()?;
    written.settling = begin.elapsed();
    Ok(written)
}

/// Feeds the corpus in batches; making the records is not timed.
fn write_batches(
    options: &BenchOptions,
    progress: &mut dyn FnMut(&str),
    ingest: &mut dyn FnMut(&[CorpusRecord]) -> Result<(), BenchError>,
) -> Result<Written, BenchError> {
    let corpus = Corpus::new(options.seed, options.records);
    let mut records = corpus.iter();
    let mut written = Written::default();
    let mut count = 0_u64;
    loop {
        let batch: Vec<CorpusRecord> = records.by_ref().take(options.batch.max(1)).collect();
        if batch.is_empty() {
            return Ok(written);
        }
        let (begin, cpu) = (Instant::now(), cpu_time());
        ingest(&batch)?;
        written.elapsed += begin.elapsed();
        written.cpu += cpu_time().saturating_sub(cpu);
        count += batch.len() as u64;
        let bytes = batch.iter().map(|record| record.json.len() as u64);
        written.bytes += bytes.sum::<u64>();
        progress(&format!("raw engines: {count} of {} records", options.records));
    }
}

/// Measures every kind of read and adds it to the report.
pub(crate) fn read(
    report: &mut Report,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let paths = raw_paths(folder);
    let settings = RawSettings::default();
    let records = report.records;
    let mut lines = Lines {
        report,
        progress,
        memory: 0,
    };
    let size = |path: &Path| Ok::<_, BenchError>(Some(Figure::once(float(folder_size(path)?))));
    lines.add(Measurement::new("index size", Unit::Bytes, None, size(&paths.index())?));
    lines.add(Measurement::new("records and index size", Unit::Bytes, None, size(paths.folder())?));
    lines.add(cold_open(&paths, &settings)?);
    let mut raw = RawContender::new(RawReader::open(&paths, &settings)?, records)?;
    search(&mut lines, &mut raw)?;
    pages(&mut lines, &mut raw)?;
    questions(&mut lines, &mut raw)?;
    let memory = Figure::once(float(lines.memory));
    lines.add(Measurement::new(
        "anonymous memory while reading",
        Unit::Bytes,
        None,
        Some(memory),
    ));
    Ok(())
}

/// The report as it grows.
struct Lines<'a> {
    report: &'a mut Report,
    progress: &'a mut dyn FnMut(&str),
    memory: u64,
}

impl Lines<'_> {
    fn add(&mut self, measurement: Measurement) {
        self.memory = self.memory.max(anonymous_memory().unwrap_or_default());
        (self.progress)(&measurement.what);
        self.report.measurements.push(measurement);
    }

    fn compare(
        &mut self,
        what: &str,
        raw: &mut dyn FnMut() -> Result<u64, BenchError>,
    ) -> Result<Measurement, BenchError> {
        let measurement = compare(what, Repetition::default(), None, raw)?;
        self.add(measurement.clone());
        Ok(measurement)
    }
}

/// New handles until the first answer. The files may still be in the page cache of the system.
fn cold_open(paths: &RawPaths, settings: &RawSettings) -> Result<Measurement, BenchError> {
    let repetition = Repetition {
        warm_up: 1,
        runs: 20,
        ..Repetition::default()
    };
    compare("open and first search", repetition, None, &mut || {
        let reader = RawReader::open(paths, settings)?;
        Ok(reader.search(&PROBES.rare.into(), None, 1)?.len() as u64)
    })
}

fn search(lines: &mut Lines<'_>, raw: &mut dyn Contender) -> Result<(), BenchError> {
    let rare = lines.compare("search, rare word", &mut || raw.search(PROBES.rare, None))?;
    let common = lines.compare("search, common word", &mut || raw.search(PROBES.common, None))?;
    lines.add(common.relative_to(&rare, "common word to rare word"));
    for (what, probe) in [
        ("search, two words", PROBES.pair),
        ("search, phrase", PROBES.phrase),
        ("search, prefix", PROBES.prefix),
    ] {
        lines.compare(what, &mut || raw.search(probe, None))?;
    }
    let window = Window::default();
    for (what, probe) in [
        ("filtered search, common word", PROBES.common),
        ("filtered search, two words", PROBES.pair),
    ] {
        lines.compare(what, &mut || raw.search(probe, Some(&window)))?;
    }
    Ok(())
}

fn pages(lines: &mut Lines<'_>, raw: &mut dyn Contender) -> Result<(), BenchError> {
    let first = lines.compare("page 1 of records", &mut || raw.page(Place::First))?;
    let far = lines.compare("page 1,000 of records", &mut || raw.page(Place::Far))?;
    lines.add(far.relative_to(&first, "page 1,000 to page 1"));
    lines.compare("changes feed", &mut || raw.changes())?;
    Ok(())
}

fn questions(lines: &mut Lines<'_>, raw: &mut dyn Contender) -> Result<(), BenchError> {
    let window = Window::default();
    for (what, question) in [
        ("count, filtered", Question::CountFiltered),
        ("sum", Question::Sum),
        ("group by folder", Question::GroupByFolder),
        ("group by author", Question::GroupByAuthor),
        ("group by month", Question::Months),
        ("count of different authors", Question::DistinctAuthors),
    ] {
        lines.compare(what, &mut || raw.answer(question, &window))?;
    }
    Ok(())
}

fn raw_paths(folder: &Path) -> RawPaths {
    RawPaths::new(folder.join("raw"))
}

fn notes(folder: &Path) -> PathBuf {
    folder.join(NOTES)
}

/// Notes what writing cost, last: a folder without notes was not written to the end.
fn keep(options: &BenchOptions, folder: &Path, raw: Written) -> Result<(), BenchError> {
    let text = json!({
        "records": options.records,
        "seed": options.seed,
        "batch": options.batch,
        "raw": {
            "elapsed": raw.elapsed.as_secs_f64(),
            "cpu": raw.cpu.as_secs_f64(),
            "settling": raw.settling.as_secs_f64(),
            "bytes": raw.bytes,
        },
    });
    let path = notes(folder);
    std::fs::write(&path, text.to_string()).map_err(BenchError::file(&path))
}

/// The figures of an earlier run with the same options; none for an empty folder.
fn earlier(options: &BenchOptions, folder: &Path) -> Result<Option<Written>, BenchError> {
    let path = notes(folder);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = std::fs::read_dir(folder).map_err(BenchError::file(folder))?;
            return match entries.next() {
                None => Ok(None),
                Some(_) => Err(BenchError::ForeignFolder(folder.to_owned())),
            };
        }
        Err(error) => return Err(BenchError::file(&path)(error)),
    };
    let notes: Value = serde_json::from_slice(&text)?;
    let asked = json!([options.records, options.seed, options.batch]);
    if json!([notes["records"], notes["seed"], notes["batch"]]) != asked {
        return Err(BenchError::ForeignFolder(folder.to_owned()));
    }
    let seconds = |name: &str| {
        let value = notes["raw"][name].as_f64().unwrap_or_default();
        Duration::try_from_secs_f64(value).unwrap_or_default()
    };
    Ok(Some(Written {
        elapsed: seconds("elapsed"),
        cpu: seconds("cpu"),
        settling: seconds("settling"),
        bytes: notes["raw"]["bytes"].as_u64().unwrap_or_default(),
    }))
}

fn per_second(records: u64, seconds: f64) -> f64 {
    float(records) / seconds.max(1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts stay far below 2^52")]
fn float(value: u64) -> f64 {
    value as f64
}
