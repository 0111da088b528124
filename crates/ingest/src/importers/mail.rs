//! Mail: an mbox file with many messages, or a file that is one message, as it is, in a Maildir or as Apple Mail keeps it
//! ([`emlx`]).
//!
//! What is known of an mbox: a message begins with a `From ` line, and where a line of a message would look like one, it is
//! quoted with `>`. Everything else programs disagree about, so little is asked of such a line ([`mbox`]). Structure and
//! encodings of a message are taken apart with bounds on depth and number ([`mime`]), because anybody can send one.

mod date;
mod emlx;
mod mbox;
mod message;
mod mime;

use std::collections::VecDeque;
use std::io::BufRead;

use contract::id::BlobId;
use sha2::{Digest as _, Sha256};
use store::records::Change;

pub(super) use self::date::read as read_date;
use self::mbox::{FromLine, Messages, RawMessage};
use self::message::{Attachment, Message, is_header_line};
use crate::accept::Acceptor;
use crate::error::InputError;
use crate::exports::{Candidate, Claims, Companions, Declared, Known, Verdict};
use crate::importer::{File, Importer, Item};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode};

/// Headers of which a file that is one message has at least two.
const TELLING: [&str; 10] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "received",
    "return-path",
    "delivered-to",
    "mime-version",
    "content-type",
];

pub(crate) const EXPORT: Known = Known {
    name: "mail",
    title: "mail (mbox, eml, emlx or a Maildir)",
    declaration: Declared::Json {
        connector_key: "mailbox",
        text: include_str!("../../declarations/mailbox.json"),
    },
    origin: "Google Takeout (takeout.google.com): Mail. Thunderbird: the files without ending in the profile's Mail folders. Apple Mail: Mailbox > Export, or the folder ~/Library/Mail with its .emlx files. A Maildir: name the folder. Single messages: save as .eml",
    contents: "messages with their labels, and attachments",
    recognise: verdict,
    importer: |input, acceptor, companions| {
        let reader = emlx::MessageReader::new(input.into_reader());
        Box::new(MailImporter::new(reader, acceptor).among(companions))
    },
};

/// Files that the programs that keep a Maildir put beside its messages.
const OF_MAILDIR: [&str; 3] = ["maildirfolder", "maildirsize", "subscriptions"];

const DELETED_LEFT: &str = "messages that are marked as deleted";

fn verdict(file: &Candidate<'_>) -> Verdict {
    let name = file.file_name();
    let folder = file.path.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    if recognise(file.head, name) {
        return match folder {
            "tmp" => Verdict::Leaves("messages of a Maildir that were not delivered completely"),
            "cur" if is_trashed(name) => Verdict::Leaves(DELETED_LEFT),
            _ => Verdict::Takes,
        };
    }
    if let Some((_, message)) = emlx::split(file.head) {
        let is_mail = count_mail_headers(message) >= 2;
        let is_called = name.to_ascii_lowercase().ends_with(".emlx");
        return match (is_mail, is_called) {
            (true, _) if emlx::is_deleted(file.head) => Verdict::Leaves(DELETED_LEFT),
            (true, _) => Verdict::Takes,
            (false, true) => Verdict::Misses("no headers of a message follow its length"),
            (false, false) => Verdict::Unlike,
        };
    }
    let of_server = ["dovecot-", "dovecot.", "courierimap"];
    if OF_MAILDIR.contains(&name) || of_server.iter().any(|begins| name.starts_with(begins)) {
        return Verdict::Leaves("what programs note of a Maildir");
    }
    Verdict::Unlike
}

/// Whether the flags in the name of a message of a Maildir say that it was deleted. Where a colon cannot be part of a name,
/// another sign stands for it.
fn is_trashed(name: &str) -> bool {
    let flags = [":2,", ";2,", "!2,"]
        .iter()
        .find_map(|sign| Some(name.rsplit_once(sign)?.1));
    flags.is_some_and(|flags| flags.contains('T'))
}

/// Whether a file that begins like this holds mail.
pub(crate) fn recognise(head: &[u8], file_name: &str) -> bool {
    let lower = file_name.to_ascii_lowercase();
    let is_called = |ending: &str| lower.ends_with(ending);
    let text = head.trim_ascii_start();
    if text.is_empty() {
        return is_called(".mbox") || is_called(".eml");
    }
    let mut lines = text.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if FromLine::parse(first, true).is_some() {
        // What follows may be further down than anybody looked.
        return lines
            .next()
            .is_none_or(|line| line.starts_with(b">From ") || is_header_line(line));
    }
    let wanted = if is_called(".eml") { 1 } else { 2 };
    count_mail_headers(text) >= wanted
}

/// How many different headers of mail stand at the beginning; none if something else stands among them.
fn count_mail_headers(text: &[u8]) -> usize {
    let mut seen = [false; TELLING.len()];
    let mut lines = text.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim_ascii().is_empty() {
            break;
        }
        let is_continued = line.starts_with(b" ") || line.starts_with(b"\t");
        // The last line may be cut.
        if !is_continued && !is_header_line(line) && lines.peek().is_some() {
            return 0;
        }
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        for (seen, telling) in seen.iter_mut().zip(TELLING) {
            *seen |= name.trim_ascii().eq_ignore_ascii_case(telling.as_bytes());
        }
    }
    seen.iter().filter(|seen| **seen).count()
}

pub struct MailImporter<'a, R> {
    messages: Messages<R>,
    acceptor: &'a Acceptor<'a>,
    /// Ids of messages. See [`MailImporter::record`].
    claims: Claims,
    /// What came with the message that was given last.
    waiting: VecDeque<Item>,
    files: Vec<File>,
}

impl<'a, R: BufRead> MailImporter<'a, R> {
    /// An importer of messages of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            messages: Messages::new(reader, limit),
            acceptor,
            claims: Claims::default(),
            waiting: VecDeque::new(),
            files: Vec::new(),
        }
    }

    /// The same as one of several files.
    fn among(mut self, companions: &Companions) -> Self {
        self.claims = companions.claims.clone();
        self
    }

    /// The record of a message. A mailbox, or several of one import may hold several messages under one id that are not the same: what went to a
    /// list, and what came back from it. The first has the id to itself; of the others each has one that is as stable.
    fn record(&mut self, mut message: Message) -> Message {
        if !self.claims.take(&message.id, &message) {
            message.make_id_unique();
        }
        message
    }

    /// The items of a message: itself, and what came with it.
    fn take(&mut self, raw: &RawMessage) -> Result<Option<Change>, Rejection> {
        let content = raw.content.as_deref().ok_or_else(too_long)?;
        let read = Message::read(content, raw.delivered_at.as_deref())?;
        let Some((message, enclosed)) = read else {
            return Ok(None);
        };
        let message = self.record(message);
        for (index, file) in enclosed.into_iter().enumerate() {
            let blob = BlobId::from_sha256(Sha256::digest(&file.bytes).into());
            let attachment = Attachment::new(&message, index + 1, &file, &blob);
            let outcome = self.acceptor.record("attachments", &attachment);
            if let Ok(change) = &outcome {
                self.files.push(File {
                    stream: change.stream.clone(),
                    key: change.key.clone(),
                    blob,
                    media_type: file.media_type,
                    bytes: file.bytes.into_owned(),
                });
            }
            self.waiting.push_back(Item::new(raw.line, 0, outcome));
        }
        self.acceptor.record("messages", &message).map(Some)
    }
}

impl<R: BufRead> Importer for MailImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if let Some(item) = self.waiting.pop_front() {
            return Ok(Some(item));
        }
        while let Some(raw) = self.messages.read()? {
            if let Some(outcome) = self.take(&raw).transpose() {
                return Ok(Some(Item::new(raw.line, raw.bytes, outcome)));
            }
        }
        Ok(None)
    }

    fn take_files(&mut self) -> Vec<File> {
        std::mem::take(&mut self.files)
    }
}

fn too_long() -> Rejection {
    let message = format!("the message is longer than {} MiB", MAX_LINE_BYTES >> 20);
    Rejection::new(RejectionCode::LineTooLong, message)
}
