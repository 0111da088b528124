//! `pdpp collect`: programs and folders that records come from again and again.

mod job;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

pub(crate) use self::job::Job;
use super::import::{self, tap};
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment;
use crate::output::visible;

/// How long a program may take.
const LONGEST_RUN: Duration = Duration::from_hours(6);
/// What it may print.
const MOST_BYTES: u64 = 20 << 30;
/// How often the server looks whether something is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Collect again and again: run Singer taps, watch folders
///
/// A tap is a program that reads a service and prints SCHEMA, RECORD and STATE messages; there are hundreds. It keeps its secrets in
/// its own config file. Each run goes on where the last one ended.
///
/// A running server runs them every so often, as --every says; otherwise `pdpp collect run` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp collect add github --every 6h -- tap-github --config github.json"
)]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Remember a program or a folder
    #[command(
        after_help = "Example: pdpp collect add inbox --folder ~/Downloads/exports --every 1h"
    )]
    Add {
        /// What to call it; a program's connection is called so too
        name: String,
        /// The folder to import, instead of a program
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        folder: Option<PathBuf>,
        /// How often a running server collects it: a number with s, m, h or d
        #[arg(long, value_name = "TIME", value_parser = every)]
        every: Option<Duration>,
        /// The program and its arguments
        #[arg(last = true, required_unless_present = "folder")]
        command: Vec<String>,
    },
    /// Run one, or all
    #[command(after_help = "Example: pdpp collect run github")]
    Run {
        /// Which one; all unless said
        name: Option<String>,
    },
    /// List what is remembered, when it ran last and when it runs next
    #[command(after_help = "Example: pdpp collect list")]
    List,
    /// Forget a program or a folder; what it brought stays
    #[command(after_help = "Example: pdpp collect remove github")]
    Remove {
        /// Which one
        name: String,
    },
}

fn every(text: &str) -> Result<Duration, String> {
    let span = moment::span(text).filter(|span| *span >= Duration::from_secs(1));
    span.ok_or_else(|| "it takes a number with s, m, h or d, for example 6h".to_owned())
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    match options.task {
        Task::Add {
            name,
            folder,
            every,
            command,
        } => {
            if let Some(missing) = folder.as_ref().filter(|folder| !folder.is_dir()) {
                return Err(Failure::new(format!(
                    "{}: there is no such folder",
                    missing.display()
                )));
            }
            let folder = folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
            // A data directory that is not there yet is made first: it must hold its records before anything else.
            drop(context.owner("pdpp collect")?);
            let job = Job::new(name, command, folder, every);
            job.keep(context)?;
            let run = context.command("collect run").argument(&job.name);
            context
                .output
                .report(&job, || format!("Remembered. Next: {run}"))
        }
        Task::Run { name } => run_jobs(name.as_deref(), context),
        Task::List => list(context),
        Task::Remove { name } => {
            Job::named(&name, context)?.forget(context)?;
            context
                .output
                .note(&format!("Forgot '{}'.", visible(&name)));
            Ok(())
        }
    }
}

fn run_jobs(name: Option<&str>, context: &Context) -> CommandResult {
    let jobs = if let Some(name) = name {
        vec![Job::named(name, context)?]
    } else {
        let mut jobs = Job::all(context);
        jobs.retain(|job| !job.is_restored);
        jobs
    };
    let mut failed = false;
    for mut job in jobs {
        let ran = collect(&job, context);
        job.note_run(ran.as_ref().err().map(ToString::to_string));
        job.keep(context)?;
        if let Err(failure) = ran {
            context.output.report_failure(&failure);
            failed = true;
        }
    }
    if failed {
        Err(Failure::REPORTED)
    } else {
        Ok(())
    }
}

fn collect(job: &Job, context: &Context) -> CommandResult {
    if let Some(folder) = &job.folder {
        let import = import::Options::unattended(folder.clone(), None);
        return import::run(&import, context);
    }
    let output = job.path("out", context)?;
    let printed = print_to(job, &output, context);
    let imported = printed.and_then(|()| {
        let import = import::Options::unattended(output.clone(), Some(job.name.clone()));
        match import::run(&import, context) {
            // Records that were refused stay refused; the next run need not bring them again.
            Ok(()) | Err(Failure::Reported(_)) => tap::keep_state(&output, &job.name, context),
            failed => failed,
        }
    });
    let _ = fs::remove_file(&output);
    imported
}

/// Runs a program to its end, with what it prints in a file and what it says in its log.
fn print_to(job: &Job, output: &PathBuf, context: &Context) -> CommandResult {
    let log = job.path("log", context)?;
    let create = |path: &PathBuf| File::create(path).map_err(Failure::file_error(path));
    let Some((program, arguments)) = job.command.split_first() else {
        return Err(Failure::new(format!("'{}' has no program", job.name)));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    if let Some(folder) = &job.runs_in {
        command.current_dir(folder);
    }
    let state = tap::state_path(&job.name, context)?;
    if state.exists() {
        command.arg("--state").arg(&state);
    }
    let child = command
        .stdout(create(output)?)
        .stderr(create(&log)?)
        .spawn();
    let mut child =
        child.map_err(|error| Failure::new(format!("{program} cannot be started: {error}")))?;
    let begun = Instant::now();
    loop {
        let ended = child
            .try_wait()
            .map_err(|error| Failure::new(error.to_string()))?;
        if let Some(status) = ended {
            if status.success() {
                return Ok(());
            }
            return Err(Failure::new(format!("{program} ended with {status}"))
                .hint(format!("what it said is in {}", log.display())));
        }
        let printed = fs::metadata(output).map_or(0, |metadata| metadata.len());
        if begun.elapsed() > LONGEST_RUN || printed > MOST_BYTES {
            // It may have ended by itself meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new(format!(
                "{program} was stopped: it took or printed too much"
            )));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn list(context: &Context) -> CommandResult {
    let jobs = Job::all(context);
    if context.output.is_json() {
        return context.output.json(&jobs);
    }
    for job in &jobs {
        context.output.data(&visible(&job.described()))?;
    }
    if jobs.is_empty() {
        let add = context.command("collect add").argument("NAME");
        context
            .output
            .note(&format!("Nothing is collected. Next: {add} -- COMMAND"));
    }
    Ok(())
}

/// Runs what is due while a server runs, each by a process of its own, which asks this server.
pub(crate) fn start_schedule(context: &Context) {
    let context = context.clone();
    thread::spawn(move || {
        loop {
            thread::sleep(LOOK_EVERY);
            for job in Job::all(&context) {
                if job.is_due() {
                    run_apart(&job, &context);
                }
            }
        }
    });
}

fn run_apart(job: &Job, context: &Context) {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(&context.settings.data_dir);
    command.args(["--quiet", "collect", "run", &job.name]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // What failed is told by the list.
    let _ = command.status();
}
