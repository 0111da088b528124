//! How well questions are answered: a judged collection is imported as any other data and asked as a client asks, each
//! question in three wordings, beside the bare search engine in the same run.

mod collection;
mod import;
mod parts;
mod raw;
mod scan;
mod score;
mod wording;

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use contract::error::ReadError;
use contract::query::PageLimit;
use contract::reader::ReadContract as _;
use contract::search::{SearchHit, SearchMode, SearchQuery};
use contract::time::Clock;
use read::GrantReader;
use serde_json::{Value, json};
use store::search::Part;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use self::collection::{Collection, Gold};
use self::import::{Naming, SearchedText};
use self::raw::RawIndex;
use self::scan::Scan;
use self::score::{DEPTH, Scores};
use self::wording::{Frequencies, Wording};
use crate::BenchError;
use crate::measure::write_table;
use crate::surface::directory::{GrantedDirectory, load_life};

pub(crate) use self::collection::{Query, sample_questions};

/// What a run is asked to do.
#[derive(Clone)]
pub struct FindingOptions {
    /// The folder of the collection; without it, the questions about the sample life.
    pub collection: Option<PathBuf>,
    /// The folder of a sentence model, to search by meaning too.
    pub model: Option<PathBuf>,
    /// Whether the parts of finding are added one after another, to see what each brings.
    pub parts: bool,
    /// Where the time comes from: tokens live in it.
    pub clock: Arc<dyn Clock>,
    /// Report as JSON instead of a table.
    pub json: bool,
}

/// Imports a collection, asks its questions and writes how well they are answered.
pub fn run_finding(
    options: &FindingOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let collection = match &options.collection {
        Some(folder) => Collection::read(folder)?,
        None => Collection::sample_life()?,
    };
    progress("importing");
    let (ours, texts) = Imported::prepare(&collection, options, progress)?;
    let modes: &[SearchMode] = match &options.model {
        Some(_) => &SearchMode::ALL,
        None => &[SearchMode::Lexical],
    };
    let frequencies = Frequencies::count(texts.iter().map(|one| one.text.as_str()));
    let judged = collection.judged();
    if options.parts {
        let asked = parts::Judgements {
            judged: &judged,
            frequencies: &frequencies,
            by_meaning: options.model.is_some(),
        };
        return parts::report(&asked, ours, options.json, out, progress);
    }
    let mut report = Report {
        documents: texts.len(),
        questions: judged.len(),
        missing: missing(&judged, &texts),
        refused: 0,
        lines: Vec::new(),
        embedded: ours.embedded,
        scan: None,
    };
    let mut raw = RawIndex::build(texts)?;
    for wording in Wording::ALL {
        progress(wording.as_str());
        let mut line = Line::new(wording, modes);
        for (query, gold) in &judged {
            let question = frequencies.put(&query.text, wording);
            for (mode, scores) in &mut line.ours {
                let begin = Instant::now();
                let found = ours.search(&question, *mode);
                let time = begin.elapsed();
                report.refused += usize::from(found.is_err());
                scores.add(&found.unwrap_or_default(), gold, time);
            }
            let begin = Instant::now();
            let found = raw.search(&question, DEPTH)?;
            line.raw.add(&found, gold, begin.elapsed());
        }
        report.lines.push(line);
    }
    if options.model.is_some() {
        progress("comparing with a million vectors");
        report.scan = Some(scan::measure());
    }
    report.write(options.json, out)
}

/// How many judgements name a document that is not there.
fn missing(judged: &[(&Query, &Gold)], texts: &[SearchedText]) -> usize {
    let known: HashSet<&str> = texts.iter().map(|one| one.id.as_str()).collect();
    let named = judged.iter().flat_map(|(_, gold)| gold.keys());
    named.filter(|id| !known.contains(id.as_str())).count()
}

/// The collection in a data directory, with a reader over it as a client has one.
struct Imported {
    reader: GrantReader,
    granted: GrantedDirectory,
    naming: Naming,
    runtime: Runtime,
    /// How many records a second got their vectors, where there is a model.
    embedded: Option<f64>,
    /// Removed at the end.
    _folder: TempDir,
}

impl Imported {
    /// Also returns the texts as they are in the directory.
    fn prepare(
        collection: &Collection,
        options: &FindingOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Self, Vec<SearchedText>), BenchError> {
        let clock = &options.clock;
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        let naming = if let Some(documents) = &collection.documents {
            import::import(&data, documents, clock)?;
            Naming::Key
        } else {
            load_life(&data, clock)?;
            Naming::Whole
        };
        let texts = import::searched_texts(&data, naming, clock)?;
        let mut embedded = None;
        if let Some(model) = &options.model {
            progress("making vectors");
            embedded = Some(import::embed(&data, model, clock)?);
        }
        let granted = GrantedDirectory::granted(data.clone(), clock)?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let imported = Self {
            reader: granted.reader_over(&data)?,
            granted,
            naming,
            runtime: { runtime }.enable_all().build()?,
            embedded,
            _folder: folder,
        };
        Ok((imported, texts))
    }

    /// The same, answered without some parts of finding.
    fn without(self, parts: &[Part]) -> Result<Self, BenchError> {
        // A directory is open once at a time.
        drop(self.reader);
        Ok(Self {
            reader: self.granted.reader_without(parts)?,
            ..self
        })
    }

    /// The ids of the hits of a search that says nothing but its words.
    fn search(&self, question: &str, mode: SearchMode) -> Result<Vec<String>, ReadError> {
        let mut query = SearchQuery::new(question)?;
        query.mode = mode;
        query.limit = PageLimit::new(u32::try_from(DEPTH).unwrap_or(u32::MAX));
        let answer = self.runtime.block_on(self.reader.search(query))?;
        Ok(answer.data.iter().map(|hit| self.id(hit)).collect())
    }

    fn id(&self, hit: &SearchHit) -> String {
        let [connection, stream, key] = [&hit.connection_id, &hit.stream, &hit.record_key]
            .map(|part| part.as_deref().unwrap_or_default());
        self.naming.id(connection, stream, key)
    }
}

/// One wording of all questions.
struct Line {
    wording: Wording,
    ours: Vec<(SearchMode, Scores)>,
    raw: Scores,
}

impl Line {
    fn new(wording: Wording, modes: &[SearchMode]) -> Self {
        let ours = modes.iter().map(|mode| (*mode, Scores::default()));
        Self {
            wording,
            ours: ours.collect(),
            raw: Scores::default(),
        }
    }

    fn rows(&self) -> Vec<[String; COLUMNS]> {
        let ours = self.ours.iter().map(|(mode, scores)| match mode {
            SearchMode::Lexical => ("pdpp".to_owned(), scores),
            mode => (format!("pdpp {}", mode.as_str()), scores),
        });
        let sides = ours.chain([("raw BM25".to_owned(), &self.raw)]);
        let row = |(side, scores): (String, &Scores)| {
            let mut cells = scores.cells().into_iter();
            let name = format!("{}, {side}", self.wording.as_str());
            std::array::from_fn(|column| match column {
                0 => name.clone(),
                _ => cells.next().unwrap_or_default(),
            })
        };
        sides.map(row).collect()
    }

    fn json(&self) -> Value {
        let mut line = json!({"wording": self.wording.as_str(), "raw": self.raw.json()});
        for (mode, scores) in &self.ours {
            let side = match mode {
                SearchMode::Lexical => "ours",
                mode => mode.as_str(),
            };
            line[side] = scores.json();
        }
        line
    }
}

/// The wording with its side, and the scores.
const COLUMNS: usize = 1 + Scores::HEADING.len();

/// The figures of a run.
struct Report {
    documents: usize,
    questions: usize,
    /// Judgements of documents that are not there: nobody can find them.
    missing: usize,
    /// Questions that were answered with an error, over all wordings; they count as empty.
    refused: usize,
    lines: Vec<Line>,
    embedded: Option<f64>,
    scan: Option<Scan>,
}

impl Report {
    fn write(&self, json: bool, out: &mut dyn Write) -> Result<(), BenchError> {
        if json {
            let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
            let report = json!({
                "documents": self.documents,
                "questions": self.questions,
                "judgements_of_missing_documents": self.missing,
                "refused": self.refused,
                "wordings": lines,
                "embedded_per_second": self.embedded,
                "scan": self.scan.as_ref().map(Scan::json),
            });
            return Ok(writeln!(out, "{report}")?);
        }
        writeln!(
            out,
            "{} documents, {} questions; success, recall and empty answers in percent",
            self.documents, self.questions
        )?;
        for (number, what) in [
            (self.missing, "judgements name documents that are not there"),
            (self.refused, "questions were answered with an error"),
        ] {
            if number > 0 {
                writeln!(out, "{number} {what}")?;
            }
        }
        let mut headings = ["question"].into_iter().chain(Scores::HEADING);
        let heading = std::array::from_fn(|_| headings.next().unwrap_or_default().to_owned());
        write_table(heading, self.lines.iter().flat_map(Line::rows), out)?;
        if let Some(embedded) = self.embedded {
            writeln!(
                out,
                "{embedded:.0} records a second got their vectors, on one thread"
            )?;
        }
        if let Some(scan) = &self.scan {
            writeln!(out, "{scan}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use contract::time::Instant;

    use super::*;

    const CORPUS: &str = r#"{"_id":"a","title":"Bridges","text":"Ironleaf builds the footbridge","author":"Mara"}
{"_id":"b","title":"","text":"The ferry departs at noon","thread":"t","order":0,"author":"Tom"}
{"_id":"c","title":"","text":"Hazelnuts are forbidden","thread":"t","order":1}
"#;
    const QUERIES: &str = r#"{"_id":"1","text":"footbridge"}
{"_id":"2","text":"When does the ferry leave?"}
{"_id":"3","text":"nobody judged this"}
"#;
    const JUDGEMENTS: &str = "query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n2\tgone\t1\n";

    fn run(collection: Option<PathBuf>, model: Option<PathBuf>, json: bool) -> String {
        let options = FindingOptions {
            collection,
            model,
            parts: false,
            clock: Arc::new(Instant(1_767_225_600_000_000)),
            json,
        };
        asked(&options)
    }

    fn asked(options: &FindingOptions) -> String {
        let mut out = Vec::new();
        run_finding(options, &mut out, &mut |_| ()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_small_collection_is_imported_and_asked() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("corpus.jsonl", CORPUS),
            ("queries.jsonl", QUERIES),
            ("qrels.tsv", JUDGEMENTS),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let report = run(Some(folder.path().to_owned()), None, true);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(
            (&report["documents"], &report["questions"]),
            (&json!(3), &json!(2))
        );
        assert_eq!(report["judgements_of_missing_documents"], 1);
        assert_eq!(report["refused"], 0);
        let wordings = report["wordings"].as_array().unwrap();
        assert_eq!(wordings.len(), 3);
        assert_eq!(wordings[0]["raw"]["success"]["1"], 1.0);
        assert_eq!(wordings[0]["raw"]["recall@25"], 0.75);
        for side in ["ours", "raw"] {
            assert_eq!(wordings[1][side]["success"]["1"], 1.0, "{side}");
        }
        assert_eq!(wordings[2]["raw"]["empty"], 1.0);

        let table = run(Some(folder.path().to_owned()), None, false);
        assert!(table.contains("1 judgements name documents"), "{table}");
        assert_eq!(table.lines().count(), 2 + 2 + 6, "{table}");
    }

    #[test]
    fn parts_are_added_one_after_another() {
        let options = FindingOptions {
            collection: None,
            model: None,
            parts: true,
            clock: Arc::new(Instant(1_767_225_600_000_000)),
            json: true,
        };
        let report: Value = serde_json::from_str(&asked(&options)).unwrap();
        let at_ten = |step: usize, wording: &str| {
            let success = &report["parts"][step][wording]["success"]["10"];
            success.as_f64().unwrap()
        };
        let last = report["parts"].as_array().unwrap().len() - 1;
        assert_eq!(last, 5);
        assert!(at_ten(last, "as asked") > at_ten(0, "as asked"));
        let misspelt = [2, 3].map(|step| at_ten(step, "one letter wrong"));
        assert!(misspelt[1] > misspelt[0], "{misspelt:?}");
    }

    #[test]
    fn a_model_is_measured_beside_words() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("corpus.jsonl", CORPUS),
            ("queries.jsonl", r#"{"_id":"1","text":"viaduct"}"#),
            ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\t1\n"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let model = tempfile::tempdir().unwrap();
        let groups: &[&[&str]] = &[&["viaduct", "footbridge"]];
        testkit::tiny_model::write_with(model.path(), groups).unwrap();
        let report = run(
            Some(folder.path().to_owned()),
            Some(model.path().to_owned()),
            true,
        );
        let report: Value = serde_json::from_str(&report).unwrap();
        let asked = &report["wordings"][0];
        assert_eq!(asked["ours"]["success"]["1"], 0.0);
        for mode in ["semantic", "hybrid"] {
            assert_eq!(asked[mode]["success"]["1"], 1.0, "{mode}");
        }
        assert!(
            report["embedded_per_second"]
                .as_f64()
                .is_some_and(|rate| rate > 0.0)
        );
        assert!(
            report["scan"]["ratio"]
                .as_f64()
                .is_some_and(|ratio| ratio > 0.0)
        );
    }

    #[test]
    fn the_questions_about_the_sample_life_find_their_records() {
        let report: Value = serde_json::from_str(&run(None, None, true)).unwrap();
        assert_eq!(report["questions"], 60);
        assert_eq!(report["judgements_of_missing_documents"], 0);
        for side in ["ours", "raw"] {
            let found = report["wordings"][1][side]["success"]["25"].as_f64();
            assert!(found.is_some_and(|found| found > 0.0), "{side}");
        }
    }
}
