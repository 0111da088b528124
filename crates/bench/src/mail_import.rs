//! An archive of generated mail, imported by the program as anybody would, beside the same messages as JSON lines: records a
//! second, bytes a second, and the most memory the process had.

mod mailbox;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::mailbox::{Mailbox, MailboxSizes, Wanted};
use crate::BenchError;
use crate::folder::scratch_in;
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
    let folder = scratch_in(options.dir.as_deref(), ".tmp")?;
    let at = |name: &str| folder.path().join(name);
    let mailbox = Mailbox::new(options.seed);
    progress("writing the archive and the lines");
    let (archive, text, lines) = (at("takeout.zip"), at("text.zip"), at("messages.jsonl"));
    let bytes = options.megabytes.saturating_mul(1_000_000);
    let made = mailbox.write(Wanted::WithFiles { bytes }, &archive)?;
    let messages = made.messages;
    let without_files = mailbox.write(Wanted::Text { messages }, &text)?;
    let line_bytes = mailbox.write_lines(messages, &lines)?;
    progress("importing the archive");
    let mail = import(options, &at("mail"), &[path(&archive)], made.mail_bytes)?;
    progress("importing the archive without files");
    let bytes = without_files.mail_bytes;
    let text = import(options, &at("text"), &[path(&text)], bytes)?;
    progress("importing the lines");
    let data = at("lines");
    let first = at("first.mbox");
    std::fs::write(&first, Mailbox::smallest())?;
    // It adds the connection that the lines go into.
    import(options, &data, &[path(&first)], 0)?;
    let into = [path(&lines), "--as", "mailbox/messages"];
    let plain = import(options, &data, &into, line_bytes)?;
    let report = Report {
        made,
        mail,
        text,
        plain,
    };
    report.write(options.json, out)
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

struct Report {
    made: MailboxSizes,
    mail: Measured,
    /// The same messages without files.
    text: Measured,
    plain: Measured,
}

impl Report {
    /// Lines have no files, so that messages are compared with messages without any, and mail with files by its bytes.
    fn ratios(&self) -> [f64; 2] {
        [
            self.text.messages_per_second() / self.plain.messages_per_second(),
            self.mail.megabytes_per_second() / self.plain.megabytes_per_second(),
        ]
    }

    fn write(&self, json: bool, out: &mut dyn Write) -> Result<(), BenchError> {
        let made = &self.made;
        let ratios @ [messages, bytes] = self.ratios();
        let peak = self.mail.peak.unwrap_or_default();
        let is_fast = ratios.iter().all(|ratio| *ratio >= LEAST_RATIO);
        let is_met = is_fast && peak > 0 && peak <= MOST_MEMORY;
        if json {
            let report = json!({
                "archive_bytes": made.archive_bytes, "mail_bytes": made.mail_bytes,
                "attachments": made.attachments, "mail": self.mail.json(),
                "without_files": self.text.json(), "lines": self.plain.json(),
                "ratio_in_messages_without_files": messages, "ratio_in_bytes": bytes, "is_met": is_met,
            });
            return Ok(writeln!(out, "{report:#}")?);
        }
        writeln!(
            out,
            "{:.0} MB of mail in an archive of {:.0} MB: {} messages, {} attachments",
            megabytes(made.mail_bytes),
            megabytes(made.archive_bytes),
            made.messages,
            made.attachments
        )?;
        let rows = [
            ("mail", &self.mail),
            ("mail without files", &self.text),
            ("JSON lines", &self.plain),
        ];
        for (name, one) in rows {
            writeln!(
                out,
                "{name:<18}  {:>8.1} s  {:>8.0} messages/s  {:>7.1} MB/s  peak {:>5.0} MB",
                one.seconds,
                one.messages_per_second(),
                one.megabytes_per_second(),
                megabytes(one.peak.unwrap_or_default())
            )?;
        }
        let met = if is_met { "met" } else { "not met" };
        writeln!(
            out,
            "beside lines: {messages:.2} in messages without files, {bytes:.2} in bytes with files; goal (at least {LEAST_RATIO}, at most {:.0} MB of memory): {met}",
            megabytes(MOST_MEMORY)
        )?;
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
impl Measured {
    fn messages_per_second(&self) -> f64 {
        self.records as f64 / self.seconds
    }

    fn megabytes_per_second(&self) -> f64 {
        megabytes(self.bytes) / self.seconds
    }

    fn json(&self) -> Value {
        json!({
            "messages": self.records, "seconds": self.seconds, "peak_bytes": self.peak,
            "messages_per_second": self.messages_per_second(),
            "megabytes_per_second": self.megabytes_per_second(),
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes are shown with three digits"
)]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn create(path: &Path) -> Result<BufWriter<File>, BenchError> {
    let file = File::create(path).map_err(|source| BenchError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}
