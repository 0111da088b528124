//! Reading: every question asked of both sides in turns, in one process.

use std::cell::RefCell;
use std::path::Path;

use super::{Places, Written, float, same_words};
use crate::contender::RawContender;
use crate::measure::compare;
use crate::ours::OurSide;
use crate::{
    BenchError, BenchOptions, Contender, Corpus, Figure, PROBES, PageDepth, Question, RawReader,
    Repetition, TargetLine, Unit, Window, anonymous_memory, folder_size,
};

/// The lines of writing, and those of reading after them.
pub(crate) fn read(
    options: &BenchOptions,
    written: Written,
    folder: &Path,
    repetition: Repetition,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<TargetLine>, BenchError> {
    let places = Places::new(folder);
    let records = options.records;
    let mut bench = Bench {
        options,
        written,
        repetition,
        progress,
        ours: None,
        raw: None,
    };
    bench.sizes(&places)?;
    bench.opening(&places)?;
    bench.memory(&places, records)?;
    bench.ours = Some(OurSide::open(&places.ours())?.ready(records)?);
    let reader = RawReader::open(&places.raw(), &same_words())?;
    bench.raw = Some(RawContender::new(reader, records)?);
    bench.searches()?;
    bench.pages()?;
    bench.questions()?;
    Ok(bench.written.lines)
}

/// Both sides, and the lines as they are added.
struct Bench<'a> {
    options: &'a BenchOptions,
    written: Written,
    repetition: Repetition,
    progress: &'a mut dyn FnMut(&str),
    ours: Option<OurSide>,
    raw: Option<RawContender>,
}

/// One question, for either side.
type Ask<'a> = &'a dyn Fn(&mut dyn Contender) -> Result<u64, BenchError>;

impl Bench<'_> {
    fn add(&mut self, line: TargetLine) {
        (self.progress)(&line.what);
        self.written.lines.push(line);
    }

    fn ask(&mut self, what: &str, ask: Ask<'_>) -> Result<(), BenchError> {
        let (Some(ours), Some(raw)) = (&mut self.ours, &mut self.raw) else {
            return Ok(());
        };
        let line = compare(what, self.repetition, &mut || ask(ours), &mut || ask(raw))?;
        self.add(line);
        Ok(())
    }

    /// Asks a hundred questions in turn. What is found is not compared: the raw engine returns whatever has one of the words,
    /// and we leave out what has too few.
    fn find(&mut self, what: &str, begin: &str, words: usize) -> Result<(), BenchError> {
        let questions = Corpus::new(self.options.seed, self.options.records).questions(words);
        let questions: Vec<String> = (questions.iter())
            .map(|words| format!("{begin} {words}"))
            .collect();
        let (Some(ours), Some(raw)) = (&mut self.ours, &mut self.raw) else {
            return Ok(());
        };
        let (mut for_ours, mut for_raw) = (questions.iter().cycle(), questions.iter().cycle());
        let line = compare(
            what,
            self.repetition,
            &mut || {
                for_ours
                    .next()
                    .map_or(Ok(0), |question| ours.find(question))
            },
            &mut || for_raw.next().map_or(Ok(0), |question| raw.find(question)),
        )?;
        self.add(line.without_found());
        Ok(())
    }

    /// How many times as long one question takes as another. Each side is asked both in turns, by itself: when the raw
    /// engine has walked the list of a common word, the processor's caches hold nothing else, and the side that is asked next
    /// pays for that.
    fn relate(&mut self, what: &str, ask: Ask<'_>, base: Ask<'_>) -> Result<(), BenchError> {
        let repetition = self.repetition;
        let times = |side: &mut dyn Contender| {
            let side = RefCell::new(side);
            let asked = &mut || ask(&mut **side.borrow_mut());
            let in_turns = compare(what, repetition, asked, &mut || {
                base(&mut **side.borrow_mut())
            })?;
            Ok::<_, BenchError>(Figure::once(in_turns.ratio().unwrap_or_default()))
        };
        let (Some(ours), Some(raw)) = (&mut self.ours, &mut self.raw) else {
            return Ok(());
        };
        let (ours, raw) = (times(ours)?, times(raw)?);
        self.add(TargetLine::new(what, Unit::Times, ours).beside(raw));
        Ok(())
    }

    fn sizes(&mut self, places: &Places) -> Result<(), BenchError> {
        let size = |folder: &Path| {
            let bytes = folder_size(folder)?;
            Ok::<_, BenchError>(Figure::once(float(bytes)))
        };
        let (ours, raw) = (places.ours(), places.raw());
        let ours_index = size(&ours.join(store::directory::INDEX))?;
        let raw_index = size(&raw.index())?;
        self.add(TargetLine::new("index size", Unit::Bytes, ours_index).beside(raw_index));
        let (ours, raw) = (size(&ours)?, size(raw.folder())?);
        self.add(TargetLine::new("records and index size", Unit::Bytes, ours).beside(raw));
        Ok(())
    }

    /// New handles until the first answer. The files may still be in the page cache of the system.
    fn opening(&mut self, places: &Places) -> Result<(), BenchError> {
        let repetition = Repetition {
            warm_up: 1,
            runs: self.repetition.runs.min(20),
            ..self.repetition
        };
        let (ours, raw, settings) = (places.ours(), places.raw(), same_words());
        let line = compare(
            "open and first search",
            repetition,
            &mut || OurSide::open(&ours)?.search(PROBES.rare, None),
            &mut || {
                let reader = RawReader::open(&raw, &settings)?;
                Ok(reader
                    .search(&PROBES.rare.into(), None, crate::contender::TOP)?
                    .len() as u64)
            },
        )?;
        self.add(line);
        Ok(())
    }

    /// The most anonymous memory that each side needs while it answers everything, alone.
    fn memory(&mut self, places: &Places, records: u64) -> Result<(), BenchError> {
        let ours = peak_memory(&mut OurSide::open(&places.ours())?.ready(records)?)?;
        let reader = RawReader::open(&places.raw(), &same_words())?;
        let raw = peak_memory(&mut RawContender::new(reader, records)?)?;
        let [ours, raw] = [ours, raw].map(|bytes| Figure::once(float(bytes)));
        let what = if self.written.wrote {
            "anonymous memory while reading, after ingest"
        } else {
            "anonymous memory while reading"
        };
        self.add(TargetLine::new(what, Unit::Bytes, ours).beside(raw));
        Ok(())
    }

    fn searches(&mut self) -> Result<(), BenchError> {
        let rare: Ask<'_> = &|side| side.search(PROBES.rare, None);
        let common: Ask<'_> = &|side| side.search(PROBES.common, None);
        self.ask("search, rare word", rare)?;
        self.ask("search, common word", common)?;
        self.relate("common word to rare word", common, rare)?;
        for (what, probe) in [
            ("search, two words", PROBES.pair),
            ("search, phrase", PROBES.phrase),
            ("search, prefix", PROBES.prefix),
        ] {
            self.ask(what, &|side| side.search(probe, None))?;
        }
        self.find("search, question of two words", "", 2)?;
        // As people ask: about half of the words hold the sentence together.
        self.find(
            "search, question of eight words",
            "what did they say about",
            4,
        )?;
        self.find("search, eight words that all count", "", 8)?;
        let window = Window::default();
        for (what, probe) in [
            ("filtered search, common word", PROBES.common),
            ("filtered search, two words", PROBES.pair),
        ] {
            self.ask(what, &|side| side.search(probe, Some(&window)))?;
        }
        Ok(())
    }

    fn pages(&mut self) -> Result<(), BenchError> {
        let first: Ask<'_> = &|side| side.page(PageDepth::First);
        let far: Ask<'_> = &|side| side.page(PageDepth::Far);
        self.ask("page 1 of records", first)?;
        self.ask("page 1,000 of records", far)?;
        self.relate("page 1,000 to page 1", far, first)?;
        self.ask("changes feed", &|side| side.changes())
    }

    fn questions(&mut self) -> Result<(), BenchError> {
        let window = Window::default();
        for (what, question) in QUESTIONS {
            self.ask(what, &|side| side.answer(question, &window))?;
        }
        Ok(())
    }
}

const QUESTIONS: [(&str, Question); 6] = [
    ("count, filtered", Question::CountFiltered),
    ("sum", Question::Sum),
    ("group by folder", Question::GroupByFolder),
    ("group by author", Question::GroupByAuthor),
    ("group by month", Question::Months),
    ("count of different authors", Question::DistinctAuthors),
];

/// Asks everything a few times and watches the memory after every answer.
fn peak_memory(side: &mut dyn Contender) -> Result<u64, BenchError> {
    let window = Window::default();
    let mut peak = 0;
    for _ in 0..3 {
        for probe in [
            PROBES.rare,
            PROBES.common,
            PROBES.pair,
            PROBES.phrase,
            PROBES.prefix,
        ] {
            side.search(probe, None)?;
            side.search(probe, Some(&window))?;
            peak = peak.max(anonymous_memory().unwrap_or_default());
        }
        side.page(PageDepth::First)?;
        side.page(PageDepth::Far)?;
        side.changes()?;
        for (_, question) in QUESTIONS {
            side.answer(question, &window)?;
            peak = peak.max(anonymous_memory().unwrap_or_default());
        }
    }
    Ok(peak)
}
