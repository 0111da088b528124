//! Conversations of Messenger and Instagram. What is said of one as a whole stands behind its messages, so a file is looked through once
//! before they are read, one by one.

use std::io::{self, BufRead, BufReader, Chain, Read, Seek as _};

use serde::Deserialize;
use serde_json::{Map, Value};
use tempfile::SpooledTempFile;

use super::Meta;
use super::texts::mended;
use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::Importer;
use crate::importers::json_members::{list, text};
use crate::importers::outline::Outline;
use crate::importers::pieces::{Converter, Cut, Made, malformed, parse_json};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{BROKEN_OFF, Rejection};

/// Up to this size a conversation is looked through in memory.
const HELD_BYTES: usize = 8 * 1024 * 1024;
/// What is said of a conversation is far shorter.
const MEMBER_BYTES: usize = 1024 * 1024;

/// A conversation, of which each message says where it belongs.
pub(super) struct Conversation {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) people: Vec<String>,
}

impl Conversation {
    /// Reads what stands beside the messages. `path` is of the file. Conversations that were encrypted on the way are a file each,
    /// and name their people as texts.
    fn read(value: &Value, path: &str) -> Self {
        let people = list(value, "participants").iter();
        let people = people.filter_map(|one| text(one, "name").or_else(|| one.as_str()));
        let people: Vec<String> = people.map(str::to_owned).collect();
        if let Some(thread) = text(value, "threadName") {
            let (name, number) = thread.rsplit_once('_').unwrap_or((thread, ""));
            let is_numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            return Self {
                id: thread.to_owned(),
                title: if is_numbered { name } else { thread }.to_owned(),
                people,
            };
        }
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        let thread = text(value, "thread_path").and_then(|path| path.rsplit('/').next());
        let title = text(value, "title").map(str::to_owned);
        Self {
            id: thread.unwrap_or(folder).to_owned(),
            title: title.unwrap_or_else(|| people.join(", ")),
            people,
        }
    }
}

/// When a message was sent.
#[derive(Deserialize)]
struct Sent {
    timestamp_ms: Option<i64>,
    timestamp: Option<i64>,
}

impl Sent {
    fn millis_of(message: &[u8]) -> Option<i64> {
        let sent: Self = serde_json::from_slice(message).ok()?;
        sent.timestamp_ms.or(sent.timestamp)
    }
}

/// What a look through a file tells.
#[derive(Default)]
struct Overview {
    /// What stands beside the messages.
    members: Map<String, Value>,
    /// The times of the first message and of the last.
    first: Option<i64>,
    last: Option<i64>,
}

impl Overview {
    /// Reads on until the end, or until nothing more can be read.
    fn read(&mut self, reader: impl BufRead) -> Result<(), InputError> {
        let mut outline = Outline::new(reader);
        if !outline.enter(b'{')? {
            return Ok(());
        }
        while let Some(name) = outline.member()? {
            match name.as_str() {
                "messages" if outline.enter(b'[')? => {
                    let mut is_first = true;
                    while outline.element()? {
                        let fits = outline.take(MAX_LINE_BYTES)?;
                        self.last = Sent::millis_of(outline.taken()).filter(|_| fits);
                        if std::mem::take(&mut is_first) {
                            self.first = self.last;
                        }
                    }
                }
                "participants" | "title" | "thread_path" | "threadName" => {
                    if outline.take(MEMBER_BYTES)?
                        && let Ok(value) = serde_json::from_slice(outline.taken())
                    {
                        self.members.insert(name, value);
                    }
                }
                _ => outline.skip()?,
            }
        }
        Ok(())
    }

    fn is_newest_first(&self) -> bool {
        self.first >= self.last || self.last.is_none()
    }
}

/// Gives what stopped the reading of a file, after all that was read of it.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Looks through a file, and gives it once more.
fn looked_through(
    mut reader: Box<dyn BufRead>,
) -> (Overview, BufReader<Chain<SpooledTempFile, Failed>>) {
    let mut held = SpooledTempFile::new(HELD_BYTES);
    let copied = io::copy(&mut reader, &mut held).and_then(|_| held.rewind());
    let mut overview = Overview::default();
    // What is wrong with the file is told when its messages are read.
    let _ = overview.read(BufReader::new(&mut held));
    let failed = copied.and_then(|()| held.rewind()).err();
    (overview, BufReader::new(held.chain(Failed(failed))))
}

pub(super) fn importer<'a>(
    reader: Box<dyn BufRead>,
    acceptor: &'a Acceptor<'a>,
    meta: Meta,
) -> Box<dyn Importer + 'a> {
    let (overview, again) = looked_through(reader);
    let messages = Messages {
        is_newest_first: overview.is_newest_first(),
        chat: Conversation::read(&mended(Value::Object(overview.members)), &meta.path),
        meta,
        moment: None,
        waiting: Vec::new(),
    };
    Cut::Members(&["messages"]).importer(Box::new(again), acceptor, messages)
}

/// The messages of a conversation.
struct Messages {
    meta: Meta,
    chat: Conversation,
    is_newest_first: bool,
    /// The messages of one moment. Equal keys are numbered as time goes on, which may be backwards in the file.
    moment: Option<i64>,
    waiting: Vec<Value>,
}

impl Messages {
    fn give(&mut self, made: &mut Made) {
        let mut messages = std::mem::take(&mut self.waiting);
        if self.is_newest_first {
            messages.reverse();
        }
        self.meta.seen.clear();
        for message in messages {
            let millis = self.moment.unwrap_or_default();
            self.meta.message(&message, millis, &self.chat, made);
        }
    }
}

impl Converter for Messages {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let Some(millis) = Sent::millis_of(piece) else {
            parse_json(piece)?;
            return Err(malformed("a message has no time in 'timestamp_ms'"));
        };
        if self.moment != Some(millis) {
            self.give(made);
            self.moment = Some(millis);
        }
        self.waiting.push(mended(parse_json(piece)?));
        Ok(())
    }

    fn finish(&mut self, made: &mut Made) {
        self.give(made);
    }

    fn broken_off(&self) -> Option<Rejection> {
        Some(malformed(BROKEN_OFF))
    }
}
