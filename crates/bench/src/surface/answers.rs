//! What an answer costs: a simple scripted agent asks the questions of the sample life over the tools, and the bytes and tokens
//! that a host hands to its model are counted until the answer is visible.
//!
//! The agent searches with the question as it was asked; where nothing is found, once more with the two rarest of its words
//! that occur, which the answer names. Then it reads the best window of the best hit, and fetches that record. It follows
//! what stands in both channels, so one session serves all hosts.

mod profile;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use contract::time::Clock;
use serde_json::{Value, json};
use tiktoken_rs::{CoreBPE, o200k_base};

use self::profile::{HostProfile, Reply};
use super::directory::{GrantedDirectory, load_life};
use super::stdio::Session;
use crate::BenchError;
use crate::finding::{Query, sample_questions};
use crate::measure::write_table;

#[derive(Clone)]
pub struct AnswerOptions {
    pub program: PathBuf,
    /// Where the time comes from: tokens live in it.
    pub clock: Arc<dyn Clock>,
    pub json: bool,
}

/// Asks every question of the sample life and writes what the answers cost in each host.
pub fn run_answers(
    options: &AnswerOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let questions = sample_questions()?;
    let folder = tempfile::tempdir()?;
    progress("loading the sample life");
    let data = folder.path().join("life");
    load_life(&data, &options.clock)?;
    let directory = GrantedDirectory::granted(data, &options.clock)?;
    let tokens = o200k_base().map_err(|error| BenchError::Setup(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut results: Vec<ProfileResult> = HostProfile::ALL.map(ProfileResult::new).into();
    runtime.block_on(async {
        let folder = directory.folder.display().to_string();
        let args = ["mcp", "--grant", &directory.grant, "--data-dir", &folder];
        let args = args.map(str::to_owned);
        let mut session = Session::start(&options.program, &args).await?;
        for question in &questions {
            let replies = ask(&mut session, question).await?;
            for result in &mut results {
                result.count(question, &replies, &tokens);
            }
            let answered = results.iter().filter(|result| result.last).count();
            let all = results.len();
            progress(&format!("{answered} of {all} hosts: {}", question.text));
        }
        session.process.end().await
    })?;
    report(&results, questions.len(), options.json, out)
}

/// The calls of the agent, at most four.
async fn ask(session: &mut Session, question: &Query) -> Result<Vec<Reply>, BenchError> {
    let mut replies = vec![call(session, "search", &json!({"query": question.text})).await?];
    if let Some(words) = replies.last().and_then(rarest_words) {
        replies.push(call(session, "search", &json!({ "query": words })).await?);
    }
    let found = replies.last().map(|reply| reply.structured.clone());
    let best = |pointer: &str| found.as_ref()?.pointer(pointer).cloned();
    let id = best("/results/0/id");
    let window = best("/content_ladder/records/0/field_windows/0/read");
    if let Some(Value::Object(read)) = window
        && let (Some(Value::String(tool)), Some(args)) = (read.get("tool"), read.get("args"))
    {
        replies.push(call(session, tool, args).await?);
    }
    if let Some(id) = id {
        replies.push(call(session, "fetch", &json!({ "id": id })).await?);
    }
    Ok(replies)
}

/// Where a search found nothing, its answer says how often each word occurs: the two rarest of those that do.
fn rarest_words(reply: &Reply) -> Option<String> {
    let hits = reply.structured.pointer("/results")?.as_array()?;
    let terms = reply.structured.pointer("/data/meta/words/terms")?;
    let count = |term: &Value| term["count"].as_u64().unwrap_or(0);
    let mut terms: Vec<&Value> = terms
        .as_array()?
        .iter()
        .filter(|term| count(term) > 0)
        .collect();
    terms.sort_by_key(|term| count(term));
    let words = terms
        .iter()
        .filter_map(|term| term["term"].as_str())
        .take(2);
    let words = words.collect::<Vec<_>>().join(" ");
    (hits.is_empty() && !words.is_empty()).then_some(words)
}

async fn call(session: &mut Session, tool: &str, args: &Value) -> Result<Reply, BenchError> {
    let answer = session.call_any(tool, args).await?;
    Reply::parse(&answer)
}

struct ProfileResult {
    profile: HostProfile,
    /// Bytes and tokens of each question that was answered.
    bytes: Vec<usize>,
    tokens: Vec<usize>,
    results: usize,
    clipped: usize,
    /// Whether the last question was answered.
    last: bool,
}

impl ProfileResult {
    fn new(profile: HostProfile) -> Self {
        Self {
            profile,
            bytes: Vec::new(),
            tokens: Vec::new(),
            results: 0,
            clipped: 0,
            last: false,
        }
    }

    /// Shows the replies one by one until the answer is visible.
    fn count(&mut self, question: &Query, replies: &[Reply], tokenizer: &CoreBPE) {
        let count = |text: &str| tokenizer.encode_ordinary(text).len();
        let (mut bytes, mut tokens) = (0, 0);
        self.last = false;
        for reply in replies {
            let shown = self.profile.show(reply, count);
            self.results += 1;
            self.clipped += usize::from(shown.is_clipped);
            bytes += shown.text.len();
            tokens += count(&shown.text);
            if shown.holds(&question.metadata.answer) {
                self.bytes.push(bytes);
                self.tokens.push(tokens);
                self.last = true;
                return;
            }
        }
    }

    fn cells(&self, questions: usize) -> [String; 6] {
        let share =
            100.0 * super::float(self.clipped as u64) / super::float(self.results.max(1) as u64);
        [
            self.profile.as_str().to_owned(),
            format!("{} of {questions}", self.tokens.len()),
            percentile(&self.tokens, 50).to_string(),
            percentile(&self.tokens, 90).to_string(),
            percentile(&self.bytes, 50).to_string(),
            format!("{share:.1} %"),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "host": self.profile.as_str(),
            "answered": self.tokens.len(),
            "median_tokens": percentile(&self.tokens, 50),
            "p90_tokens": percentile(&self.tokens, 90),
            "median_bytes": percentile(&self.bytes, 50),
            "results": self.results,
            "clipped": self.clipped,
        })
    }
}

/// The value that so many percent do not exceed; 0 without any.
fn percentile(values: &[usize], percent: usize) -> usize {
    let mut values = values.to_vec();
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(rank).copied().unwrap_or(0)
}

fn report(
    results: &[ProfileResult],
    questions: usize,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    if json {
        let hosts: Vec<Value> = results.iter().map(ProfileResult::json).collect();
        let report = json!({"questions": questions, "hosts": hosts});
        return Ok(writeln!(out, "{report}")?);
    }
    let heading = [
        "host",
        "answered",
        "tokens, median",
        "tokens, p90",
        "bytes, median",
        "clipped",
    ];
    let lines = results.iter().map(|result| result.cells(questions));
    write_table(heading.map(str::to_owned), lines, out)
}
