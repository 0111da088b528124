//! An archive of generated mail, imported by the program as anybody would, beside the same messages as JSON lines: records a
//! second, bytes a second, and the most memory the process had.

mod mailbox;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::mailbox::{Made, Mailbox};
use crate::BenchError;
use crate::measure::memory;

/// How often the memory of the program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The most memory an import may take, and the least it may do beside JSON lines.
const MOST_MEMORY: u64 = 300 * 1024 * 1024;
const LEAST_RATIO: f64 = 0.5;

#[derive(Debug, Clone)]
pub struct MailImportOptions {
    pub program: PathBuf,
    /// The size of the mail in the archive, unpacked.
    pub megabytes: u64,
    pub seed: u64,
    /// Where the archive and the data directories are made; they are removed at the end. Without it, a temporary folder.
    pub dir: Option<PathBuf>,
    pub json: bool,
}

/// What one import did.
struct Measured {
    seconds: f64,
    records: u64,
    bytes: u64,
    peak: Option<u64>,
}

pub fn run_mail_import(
    options: &MailImportOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let folder = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    }?;
    let at = |name: &str| folder.path().join(name);
    let mailbox = Mailbox::new(options.seed);
    progress("writing the archive and the lines");
    let (archive, lines) = (at("takeout.zip"), at("messages.jsonl"));
    let made = mailbox.write(options.megabytes, &archive, &lines)?;
    progress("importing the archive");
    let data = at("mail");
    let mail = import(options, &data, &[path(&archive)], made.mail_bytes)?;
    progress("importing the lines");
    let data = at("lines");
    let first = at("first.mbox");
    std::fs::write(&first, Mailbox::smallest())?;
    // It adds the connection that the lines go into.
    import(options, &data, &[path(&first)], 0)?;
    let into = [path(&lines), "--as", "mailbox/messages"];
    let plain = import(options, &data, &into, made.line_bytes)?;
    write_report(options, &made, &mail, &plain, out)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// Runs `pdpp import` to its end.
fn import(
    options: &MailImportOptions,
    data: &Path,
    args: &[&str],
    bytes: u64,
) -> Result<Measured, BenchError> {
    let failed = |what: String| BenchError::Process {
        command: "pdpp import".to_owned(),
        what,
    };
    let begin = Instant::now();
    let mut child = Command::new(&options.program)
        .args(["import", "--json", "--data-dir"])
        .arg(data)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("did not start: {error}")))?;
    let process = child.id().to_string();
    let mut peak = None;
    while child.try_wait()?.is_none() {
        peak = memory(&process, "VmHWM:").or(peak);
        std::thread::sleep(LOOK_EVERY);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}", output.status)));
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Measured {
        seconds,
        records: report["records"]["messages"].as_u64().unwrap_or_default(),
        bytes,
        peak,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
fn write_report(
    options: &MailImportOptions,
    made: &Made,
    mail: &Measured,
    plain: &Measured,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    let rate = |one: &Measured| one.records as f64 / one.seconds;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let bytes_rate = |one: &Measured| megabytes(one.bytes) / one.seconds;
    let ratio = rate(mail) / rate(plain);
    let peak = mail.peak.unwrap_or_default();
    let is_met = ratio >= LEAST_RATIO && peak > 0 && peak <= MOST_MEMORY;
    if options.json {
        let figures = |one: &Measured| {
            json!({
                "messages": one.records, "seconds": one.seconds, "peak_bytes": one.peak,
                "messages_per_second": rate(one), "megabytes_per_second": bytes_rate(one),
            })
        };
        let report = json!({
            "archive_bytes": made.archive_bytes, "mail_bytes": made.mail_bytes,
            "attachments": made.attachments, "mail": figures(mail), "lines": figures(plain),
            "ratio": ratio, "is_met": is_met,
        });
        writeln!(out, "{report:#}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{:.0} MB of mail in an archive of {:.0} MB: {} messages, {} attachments",
        megabytes(made.mail_bytes),
        megabytes(made.archive_bytes),
        made.messages,
        made.attachments
    )?;
    for (name, one) in [("mail", mail), ("JSON lines", plain)] {
        writeln!(
            out,
            "{name:<10}  {:>8.1} s  {:>8.0} messages/s  {:>7.1} MB/s  peak {:>5.0} MB",
            one.seconds,
            rate(one),
            bytes_rate(one),
            megabytes(one.peak.unwrap_or_default())
        )?;
    }
    let met = if is_met { "met" } else { "not met" };
    writeln!(
        out,
        "mail beside lines, in messages: {ratio:.2}; goal (at least {LEAST_RATIO}, at most {:.0} MB of memory): {met}",
        megabytes(MOST_MEMORY)
    )?;
    Ok(())
}

fn create(path: &Path) -> Result<BufWriter<File>, BenchError> {
    let file = File::create(path).map_err(|source| BenchError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}
