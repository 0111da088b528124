//! Nodes on a PostgreSQL beside the embedded store: the same corpus in both, the same questions in turns, and what only nodes
//! do. The database and all nodes share this machine, so the figures show what it costs, not how it scales.

mod load;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contract::time::Clock;
use store::{BlobPlace, PostgresOptions, PostgresStore, Search as _, Store};

use super::Lines;
use crate::folder::scratch_in;
use crate::measure::compare;
use crate::ours::{NOW, OurSide};
use crate::phases::float;
use crate::{
    BenchError, BenchOptions, Contender, Corpus, CorpusRecord, Figure, PROBES, PageDepth, Question,
    Repetition, TargetLine, Unit, Window, folder_size, phases,
};

/// Reads may take so many times as long as those of the embedded store, and the round trips they make.
const TIMES: f64 = 3.0;
/// The least part of the embedded store's records per second.
const INGEST: f64 = 0.8;
/// The most seconds in which a node starts, for a million records.
const START: f64 = 10.0;
/// How often a server looks for what other nodes wrote.
const POLL: Duration = Duration::from_millis(250);
/// How many writes are followed until the other node has them by itself.
const FOLLOWED: u64 = 60;

#[derive(Clone)]
pub struct NodesOptions {
    pub corpus: BenchOptions,
    /// The database, which should be empty.
    pub url: String,
    pub program: PathBuf,
    pub clock: Arc<dyn Clock>,
    /// How long many connections ask at once.
    pub load: Duration,
}

/// Measures and writes the report. Progress is reported in short lines.
pub fn run_nodes(
    options: &NodesOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let folder = scratch_in(options.corpus.dir.as_deref(), ".n")?;
    let mut lines = Lines {
        lines: Vec::new(),
        progress,
    };
    let bench = Bench {
        options,
        folder: folder.path(),
        owner: owner_of(folder.path()),
    };
    bench.measure(&mut lines)?;
    lines.report(&options.corpus, ["nodes", "embedded"], out)
}

/// Another one for every run, so that one database serves many.
fn owner_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{}.bench", name.trim_start_matches('.').to_lowercase())
}

struct Bench<'a> {
    options: &'a NodesOptions,
    folder: &'a Path,
    owner: String,
}

/// Both stores with the corpus in them.
struct Sides {
    embedded: OurSide,
    node: OurSide,
    store: Arc<PostgresStore>,
    /// What asking the database for nothing takes, in seconds.
    round_trip: f64,
}

impl Bench<'_> {
    fn node(&self, name: &str) -> Result<Arc<PostgresStore>, BenchError> {
        let store = PostgresStore::open(PostgresOptions {
            url: self.options.url.clone(),
            ca: None,
            owner: self.owner.clone(),
            add_owner: true,
            data_dir: self.folder.join(name),
            blobs: BlobPlace::Folder(self.folder.join("blobs")),
            node: format!("{name}-{}", self.owner),
            holder: "pdpp bench".to_owned(),
            clock: Arc::new(NOW),
            secret: SECRET,
            other_secret: None,
        })?;
        Ok(Arc::new(store))
    }

    fn measure(&self, lines: &mut Lines<'_>) -> Result<(), BenchError> {
        let mut sides = self.write(lines)?;
        sides.read(&self.corpus(), lines)?;
        let other = self.node("b")?;
        let mut after = AfterWrite::new(&self.corpus());
        after.found_at_once(&mut sides, &other, lines)?;
        after.lag(&sides, &other, lines)?;
        drop(other);
        self.cold_start(&mut sides, lines)?;
        load::measure(self, &sides, lines)
    }

    fn corpus(&self) -> Corpus {
        Corpus::new(self.options.corpus.seed, self.options.corpus.records)
    }

    /// Writes the corpus on both sides, one after the other.
    fn write(&self, lines: &mut Lines<'_>) -> Result<Sides, BenchError> {
        let corpus = &self.options.corpus;
        let (directory, node_folder) = (self.folder.join("embedded"), self.folder.join("a"));
        let embedded = OurSide::open(&directory)?;
        let beside = phases::ingest_rate(corpus, &embedded, &mut |count| {
            (lines.progress)(&format!("embedded: {count}"));
        })?;
        let store = self.node("a")?;
        let before = store.bytes_in_database()?;
        let node = OurSide::over(Arc::<PostgresStore>::clone(&store))?;
        let rate = phases::ingest_rate(corpus, &node, &mut |count| {
            (lines.progress)(&format!("node: {count}"));
        })?;
        let figure = Figure::once(rate);
        let line = TargetLine::new("durable ingest", Unit::RecordsPerSecond, figure);
        let line = line.beside(Figure::once(beside));
        lines.add(line.with_target(&format!("≥ {INGEST}×"), rate >= INGEST * beside));
        let bytes = store.bytes_in_database()?.saturating_sub(before);
        let per_record = |bytes: u64| Figure::once(float(bytes) / float(corpus.records.max(1)));
        let index = |folder: &Path| folder_size(&folder.join(store::directory::INDEX));
        let records_db = directory.join(store::directory::DATABASE);
        let kept = records_db
            .metadata()
            .map_err(BenchError::file(&records_db))?
            .len();
        for (what, figure, beside) in [
            ("bytes of a record in the database", bytes, kept),
            (
                "bytes of a record in the index",
                index(&node_folder)?,
                index(&directory)?,
            ),
        ] {
            let line = TargetLine::new(what, Unit::Number, per_record(figure));
            lines.add(line.beside(per_record(beside)));
        }
        let asked = Instant::now();
        for _ in 0..200 {
            store.ask_nothing()?;
        }
        let round_trip = asked.elapsed().as_secs_f64() / 200.0;
        let line = TargetLine::new("one round trip", Unit::Seconds, Figure::once(round_trip));
        lines.add(line);
        Ok(Sides {
            embedded: embedded.ready(corpus.records)?,
            node: node.ready(corpus.records)?,
            store,
            round_trip,
        })
    }

    /// A node that is new, until it answers a search: from the records, and from the index of another.
    fn cold_start(&self, sides: &mut Sides, lines: &mut Lines<'_>) -> Result<(), BenchError> {
        let most = START * float(self.options.corpus.records) / 1e6;
        let mut start = |name: &str| -> Result<f64, BenchError> {
            let begin = Instant::now();
            let store = self.node(name)?;
            store.settle_index()?;
            let found = OurSide::over(store)?.search(PROBES.rare, None)?;
            let took = begin.elapsed().as_secs_f64();
            let expected = sides.embedded.search(PROBES.rare, None)?;
            if found != expected {
                let wrong = format!("a new node finds {found} records, not {expected}");
                return Err(BenchError::Setup(wrong));
            }
            Ok(took)
        };
        let replayed = start("replayed")?;
        let what = "new node, index derived from the records";
        lines.add(TargetLine::new(what, Unit::Seconds, Figure::once(replayed)));
        let begin = Instant::now();
        sides.store.keep_snapshot()?;
        let kept = Figure::once(begin.elapsed().as_secs_f64());
        lines.add(TargetLine::new(
            "keeping a snapshot of the index",
            Unit::Seconds,
            kept,
        ));
        let copied = Figure::once(start("copied")?);
        let line = TargetLine::new("new node, index from a snapshot", Unit::Seconds, copied);
        let line = line.beside(Figure::once(replayed));
        lines.add(line.at_most("10 s a million", most));
        Ok(())
    }
}

/// Only this run knows it, and nothing that it seals outlives the run.
const SECRET: [u8; 32] = [7; 32];

type Ask<'a> = &'a dyn Fn(&mut OurSide) -> Result<u64, BenchError>;

impl Sides {
    fn read(&mut self, corpus: &Corpus, lines: &mut Lines<'_>) -> Result<(), BenchError> {
        let window = Window::default();
        let key = corpus.record(corpus.len() / 2).key;
        self.ask("get one record", &|side| side.get(&key), lines)?;
        self.ask(
            "page 1 of records",
            &|side| side.page(PageDepth::First),
            lines,
        )?;
        self.ask(
            "page 1,000 of records",
            &|side| side.page(PageDepth::Far),
            lines,
        )?;
        self.ask("changes feed", &|side| side.changes(), lines)?;
        for (what, probe) in [
            ("search, rare word", PROBES.rare),
            ("search, common word", PROBES.common),
            ("search, two words", PROBES.pair),
            ("search, phrase", PROBES.phrase),
        ] {
            self.ask(what, &|side| side.search(probe, None), lines)?;
        }
        let filtered: Ask<'_> = &|side| side.search(PROBES.common, Some(&window));
        self.ask("filtered search, common word", filtered, lines)?;
        for (what, question) in [
            ("count, filtered", Question::CountFiltered),
            ("sum", Question::Sum),
            ("group by author", Question::GroupByAuthor),
            ("group by month", Question::Months),
        ] {
            self.ask(what, &|side| side.answer(question, &window), lines)?;
        }
        Ok(())
    }

    /// Puts a question to both in turns, and counts the round trips that it makes.
    fn ask(&mut self, what: &str, ask: Ask<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
        let (node, embedded) = (&mut self.node, &mut self.embedded);
        let measured = compare(what, Repetition::default(), &mut || ask(node), &mut || {
            ask(embedded)
        })?;
        let before = self.store.round_trips();
        ask(&mut self.node)?;
        let trips = self.store.round_trips() - before;
        let most = TIMES * measured.beside_value() + float(trips) * self.round_trip;
        let plural = if trips == 1 { "" } else { "s" };
        lines.add(measured.at_most(&format!("{TIMES}× + {trips} round trip{plural}"), most));
        Ok(())
    }
}

/// Records with a word that no other record has.
struct AfterWrite {
    record: String,
    written: u64,
}

impl AfterWrite {
    fn new(corpus: &Corpus) -> Self {
        Self {
            record: corpus.record(0).json,
            written: 0,
        }
    }

    /// The next record, and the word that finds it.
    fn next(&mut self) -> (CorpusRecord, String) {
        self.written += 1;
        let word = format!("qx{}xq", self.written);
        let mut json: serde_json::Value = serde_json::from_str(&self.record).unwrap_or_default();
        json["id"] = word.clone().into();
        json["subject"] = word.clone().into();
        let record = CorpusRecord {
            key: word.clone(),
            json: json.to_string(),
        };
        (record, word)
    }

    /// One node writes a record, and the other searches for it.
    fn found_at_once(
        &mut self,
        sides: &mut Sides,
        other: &Arc<PostgresStore>,
        lines: &mut Lines<'_>,
    ) -> Result<(), BenchError> {
        let mut other = OurSide::over(Arc::<PostgresStore>::clone(other))?;
        let what = "one record written, then found on the other node";
        let repetition = Repetition {
            runs: 100,
            time: Duration::from_secs(20),
            ..Repetition::default()
        };
        let records = std::cell::RefCell::new(self);
        let next = || records.borrow_mut().next();
        let (node, embedded) = (&sides.node, &mut sides.embedded);
        let measured = compare(
            what,
            repetition,
            &mut || {
                let (record, word) = next();
                node.ingest(&[record])?;
                other.find(&word)
            },
            &mut || {
                let (record, word) = next();
                embedded.ingest(&[record])?;
                embedded.find(&word)
            },
        )?;
        lines.add(measured);
        Ok(())
    }

    /// How long after a write is acknowledged the other node has it by itself, without being asked.
    fn lag(
        &mut self,
        sides: &Sides,
        other: &Arc<PostgresStore>,
        lines: &mut Lines<'_>,
    ) -> Result<(), BenchError> {
        let done = AtomicBool::new(false);
        let mut times = Vec::new();
        std::thread::scope(|scope| {
            let tending = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    other.tend_index()?;
                    std::thread::sleep(POLL);
                }
                Ok::<_, BenchError>(())
            });
            let followed = (0..FOLLOWED).try_for_each(|number| {
                // At another moment between two looks each time.
                std::thread::sleep(POLL.mul_f64(float(number % 7) / 7.0));
                sides.node.ingest(&[self.next().0])?;
                let begin = Instant::now();
                while other.index_status()?.taken < sides.store.index_status()?.written {
                    std::thread::sleep(Duration::from_millis(1));
                }
                times.push(begin.elapsed());
                Ok::<_, BenchError>(())
            });
            done.store(true, Ordering::Release);
            followed?;
            tending
                .join()
                .map_err(|_| BenchError::Setup("a thread ended early".to_owned()))?
        })?;
        let what = "lag of the other node's index, polled each 250 ms";
        let figure = Figure::from_times(times);
        lines.add(TargetLine::new(what, Unit::Seconds, figure));
        Ok(())
    }
}

/// Both kinds of stores are one port.
fn port(store: &Arc<PostgresStore>) -> Arc<dyn Store> {
    Arc::<PostgresStore>::clone(store)
}
