//! Generated mail: the messages of the corpus as mbox files in a zip, as Takeout has them, with files and without, and as the
//! lines of their records.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde::Deserialize;
use serde_json::json;

use super::create;
use crate::{BenchError, Corpus};

/// One message in so many has a file.
const WITH_FILE: u64 = 8;
/// So many different files come again and again, so that the data directory stays small beside the archive.
const FILES: u64 = 64;
const FILE_BYTES: usize = 144 * 1024;
/// The size of one mbox file in the archive.
const PART_BYTES: u64 = 1 << 30;
/// More messages than any archive has.
const MOST_MESSAGES: u64 = 100_000_000;

pub(super) struct Mailbox {
    corpus: Corpus,
    /// The files, in base64 with line ends.
    files: Vec<String>,
}

/// What an archive holds.
#[derive(Default)]
pub(super) struct MailboxSizes {
    pub(super) messages: u64,
    pub(super) attachments: u64,
    /// The mail, unpacked.
    pub(super) mail_bytes: u64,
    pub(super) archive_bytes: u64,
}

/// How much mail an archive gets.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// So many bytes, one message in eight with a file.
    WithFiles { bytes: u64 },
    /// So many messages of text.
    Text { messages: u64 },
}

impl Wanted {
    fn is_reached(self, made: &MailboxSizes) -> bool {
        match self {
            Self::WithFiles { bytes } => made.mail_bytes >= bytes,
            Self::Text { messages } => made.messages >= messages,
        }
    }
}

#[derive(Deserialize)]
struct Message {
    id: String,
    author: String,
    subject: String,
    body: String,
    sent_at: String,
    folder: String,
}

impl Mailbox {
    pub(super) fn new(seed: u64) -> Self {
        let files = (0..FILES).map(|number| file(seed.wrapping_add(number)));
        Self {
            corpus: Corpus::new(seed, MOST_MESSAGES),
            files: files.collect(),
        }
    }

    /// A mailbox of one message.
    pub(super) fn smallest() -> &'static str {
        "From - Mon Mar 04 10:11:12 2024\nMessage-ID: <first@example.org>\nSubject: First\n\nHello\n\n"
    }

    /// Writes so much mail into an archive.
    pub(super) fn write(&self, wanted: Wanted, archive: &Path) -> Result<MailboxSizes, BenchError> {
        let failed = |error: rawzip::Error| BenchError::Output(io::Error::other(error.to_string()));
        let mut made = MailboxSizes::default();
        let mut zip = ZipArchiveWriter::new(create(archive)?);
        let mut part = 0;
        while !wanted.is_reached(&made) {
            part += 1;
            let name = format!("Takeout/Mail/All mail-{part:03}.mbox");
            let file = zip
                .new_file(EntryPath::verbatim(name.into_bytes()))
                .compression_method(CompressionMethod::DEFLATE);
            let (mut entry, config) = file.start().map_err(failed)?;
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
            let end = made.mail_bytes.saturating_add(PART_BYTES);
            while made.mail_bytes < end && !wanted.is_reached(&made) {
                let message = self.message(made.messages)?;
                let file = match wanted {
                    Wanted::WithFiles { .. } => self.file_of(made.messages),
                    Wanted::Text { .. } => None,
                };
                let mail = as_mail(made.messages, &message, file);
                writer.write_all(mail.as_bytes())?;
                made.messages += 1;
                made.attachments += u64::from(file.is_some());
                made.mail_bytes += mail.len() as u64;
            }
            let (encoder, output) = writer.finish().map_err(failed)?;
            encoder.finish()?;
            entry.finish(output).map_err(failed)?;
        }
        zip.finish().map_err(failed)?.flush()?;
        made.archive_bytes = std::fs::metadata(archive)?.len();
        Ok(made)
    }

    /// Writes the records of the first messages as lines; returns how many bytes that are.
    pub(super) fn write_lines(&self, messages: u64, lines: &Path) -> Result<u64, BenchError> {
        let mut file = create(lines)?;
        let mut bytes = 0;
        for number in 0..messages {
            let line = self.message(number)?.as_line();
            file.write_all(line.as_bytes())?;
            bytes += line.len() as u64;
        }
        file.flush()?;
        Ok(bytes)
    }

    fn message(&self, number: u64) -> Result<Message, BenchError> {
        Ok(serde_json::from_str(&self.corpus.record(number).json)?)
    }

    fn file_of(&self, number: u64) -> Option<&str> {
        number.is_multiple_of(WITH_FILE).then(|| {
            let at = usize::try_from(number / WITH_FILE % FILES).unwrap_or(0);
            self.files.get(at).map_or("", String::as_str)
        })
    }
}

fn as_mail(number: u64, message: &Message, file: Option<&str>) -> String {
    let date = message.date();
    let subject = STANDARD.encode(message.subject.as_bytes());
    let mut mail = format!(
        "From {}@xxx Mon Mar 04 10:11:12 +0000 2024\nX-Gmail-Labels: {}\nMessage-ID: <{}@example.org>\nDate: {date}\n\
             From: {} <{}@example.org>\nTo: Ida <ida@example.org>\nDelivered-To: ida@example.org\nSubject: =?UTF-8?B?{subject}?=\n\
             MIME-Version: 1.0\n",
        message.id,
        message.folder,
        message.id,
        message.author,
        message.author.replace(' ', ".").to_lowercase(),
    );
    let text = message.body.replace("\nFrom ", "\n>From ");
    // Writing to a String cannot fail.
    let _ = match file {
        None => write!(
            mail,
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{text}\n\n"
        ),
        Some(file) => write!(
            mail,
            "Content-Type: multipart/mixed; boundary=parts\n\n--parts\nContent-Type: text/plain; charset=utf-8\n\
                 Content-Transfer-Encoding: 8bit\n\n{text}\n--parts\nContent-Type: application/octet-stream\n\
                 Content-Disposition: attachment; filename=\"scan-{number}.bin\"\nContent-Transfer-Encoding: base64\n\n{file}\n--parts--\n\n"
        ),
    };
    mail
}

impl Message {
    fn date(&self) -> String {
        let moment: jiff::Timestamp = self.sent_at.parse().unwrap_or_default();
        moment.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
    }

    /// The record that an import of the message makes, as a line.
    fn as_line(&self) -> String {
        let line = json!({
            "id": format!("{}@example.org", self.id), "thread_id": format!("{}@example.org", self.id),
            "subject": self.subject, "from_name": self.author,
            "from_address": format!("{}@example.org", self.author.replace(' ', ".").to_lowercase()),
            "to": ["Ida <ida@example.org>"], "cc": [], "sent_at": self.sent_at, "labels": [self.folder],
            "references": [], "body": self.body, "attachments": [],
        });
        format!("{line}\n")
    }
}

/// Bytes that cannot be compressed, in base64.
fn file(seed: u64) -> String {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    while bytes.len() < FILE_BYTES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ (state >> 29)).to_be_bytes());
    }
    let text = STANDARD.encode(&bytes);
    let lines = text.as_bytes().chunks(76);
    let lines: Vec<&str> = lines
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_the_mail_that_was_asked_for_and_the_lines_its_messages() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, lines) = (folder.path().join("a.zip"), folder.path().join("l.jsonl"));
        let mailbox = Mailbox::new(1);
        let wanted = Wanted::WithFiles { bytes: 2_000_000 };
        let made = mailbox.write(wanted, &archive).unwrap();
        mailbox.write_lines(made.messages, &lines).unwrap();
        assert!((2_000_000..2_400_000).contains(&made.mail_bytes));
        assert!(made.attachments > 5 && made.messages > made.attachments);
        let contents = ingest::container::walk(&archive, ingest::container::Limits::default());
        let contents = contents.unwrap().unwrap();
        let [member] = contents.members.as_slice() else {
            panic!("{} members", contents.members.len());
        };
        assert_eq!(member.size(), made.mail_bytes);
        let text = std::fs::read_to_string(&lines).unwrap();
        assert_eq!(text.lines().count() as u64, made.messages);
        let wanted = Wanted::Text {
            messages: made.messages,
        };
        let text = mailbox.write(wanted, &archive).unwrap();
        assert_eq!((text.messages, text.attachments), (made.messages, 0));
    }
}
