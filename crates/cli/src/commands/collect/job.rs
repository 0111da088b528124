//! One program or folder that is collected: what is remembered of it, in a file of the data directory.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use contract::time::{Clock as _, Instant};
use serde::{Deserialize, Serialize};

use super::tap;
use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment::to_local_seconds;

/// The ending of the files that jobs are kept in.
const ENDING: &str = ".job.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<PathBuf>,
    /// Where a program runs: where it was added, so that names of files in its arguments mean the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) runs_in: Option<PathBuf>,
    /// How often it runs while a server does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
    /// Failures since it last went well; each makes it wait longer.
    #[serde(default)]
    failures: u32,
    /// It came with a backup, which may come from anywhere, so it runs only when the owner runs it by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_restored: bool,
}

impl Job {
    pub(super) fn new(
        name: String,
        command: Vec<String>,
        folder: Option<PathBuf>,
        every: Option<Duration>,
    ) -> Self {
        Self {
            name,
            runs_in: std::env::current_dir().ok().filter(|_| !command.is_empty()),
            command,
            folder,
            every_seconds: every.map(|every| every.as_secs()),
            last_run: None,
            last_failure: None,
            failures: 0,
            is_restored: false,
        }
    }

    /// Keeps everything that came with a backup from running by itself. Says how many there are.
    pub(crate) fn hold_restored(context: &Context) -> CommandResult<u64> {
        let mut held = 0;
        for mut job in Self::all(context) {
            job.is_restored = true;
            job.keep(context)?;
            held += 1;
        }
        Ok(held)
    }

    pub(super) fn path(&self, ending: &str, context: &Context) -> CommandResult<PathBuf> {
        let name = ingest::table::slug(&self.name);
        Ok(tap::folder(context)?.join(format!("{name}.{ending}")))
    }

    pub(super) fn keep(&self, context: &Context) -> CommandResult {
        let path = self.path("job.json", context)?;
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        fs::write(&path, text).map_err(Failure::file_error(&path))
    }

    pub(super) fn forget(&self, context: &Context) -> CommandResult {
        let path = self.path("job.json", context)?;
        fs::remove_file(&path).map_err(Failure::file_error(&path))?;
        for ending in ["log", "out", "state.json"] {
            // They are there only if it ran.
            let _ = fs::remove_file(self.path(ending, context)?);
        }
        Ok(())
    }

    pub(super) fn all(context: &Context) -> Vec<Self> {
        // Where nothing was ever collected, there is no folder, and none is made.
        let Ok(entries) = fs::read_dir(tap::folder_path(context)) else {
            return Vec::new();
        };
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let jobs = paths.filter(|path| path.to_string_lossy().ends_with(ENDING));
        let read = jobs.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok());
        let mut jobs: Vec<Self> = read.collect();
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        jobs
    }

    pub(super) fn named(name: &str, context: &Context) -> CommandResult<Self> {
        let jobs = Self::all(context);
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        let mut jobs = jobs.into_iter();
        jobs.find(|job| job.name == name).ok_or_else(|| {
            let failure = Failure::new(format!("nothing is collected as '{name}'"));
            match names.as_slice() {
                [] => failure.hint("nothing is collected yet"),
                names => failure.hint(format!("collected: {}", names.join(", "))),
            }
        })
    }

    pub(super) fn note_run(&mut self, failure: Option<String>) {
        self.last_run = Some(SystemClock.now().to_rfc3339_millis());
        self.failures = if failure.is_some() {
            self.failures.saturating_add(1)
        } else {
            0
        };
        self.last_failure = failure;
        self.is_restored = false;
    }

    /// When it runs next, if a server is to run it. After failures it waits up to 32 times as long.
    fn next_run(&self) -> Option<Instant> {
        if self.is_restored {
            return None;
        }
        let every = self
            .every_seconds?
            .saturating_mul(1 << self.failures.min(5));
        let every = i64::try_from(every.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let last = self.last_run.as_deref().and_then(Instant::parse);
        Some(last.map_or(Instant(0), |last| Instant(last.0.saturating_add(every))))
    }

    pub(super) fn is_due(&self) -> bool {
        self.next_run()
            .is_some_and(|next| next <= SystemClock.now())
    }

    pub(super) fn described(&self) -> String {
        let what = match &self.folder {
            Some(folder) => folder.display().to_string(),
            None => self.command.join(" "),
        };
        let last = match (&self.last_run, &self.last_failure) {
            (None, _) => "never ran".to_owned(),
            (Some(last), None) => format!("ran {}", to_local_seconds(last)),
            (Some(last), Some(failure)) => {
                format!("failed {}: {failure}", to_local_seconds(last))
            }
        };
        let next = match self.next_run() {
            Some(next) if self.last_run.is_some() => {
                format!("; next {}", to_local_seconds(&next.to_rfc3339_millis()))
            }
            Some(_) => "; next as soon as a server runs".to_owned(),
            None if self.is_restored => "; restored, waits until it is run by name".to_owned(),
            None => String::new(),
        };
        format!("{}: {what}; {last}{next}", self.name)
    }
}
