//! Exports of single `WhatsApp` chats: a text file with a line per message, and more lines where a message has some.
//!
//! A message has no id. Its key is made of the chat's name, the minute, and a hash of author and text; equal ones of the
//! same minute are counted. So an export that was made again later, with more messages, gives the same keys, whatever its
//! file is called: [`identity`] finds the chat that has them. Times are
//! the phone's, without offset. Messages of one minute get a millisecond more each, which keeps their order.

mod content;
mod file_names;
mod halves;
mod identity;
mod messages;
mod order;
mod stamp;

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use serde::Serialize;
use serde_with::skip_serializing_none;
use sha2::{Digest, Sha256};
use store::StoreError;

use super::participants::Participants;
use crate::accept::Acceptor;
use crate::error::InputError;
use crate::exports::{Declared, Known};
use crate::importer::{ExistingRecords, Importer, Item, Presence, Stopped};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode, quoted};
use content::{Content, Kind};
pub(crate) use identity::nameless_key;
use identity::{By, Name, Sample};
use messages::{Message, Messages};
use order::{DateOrder, Evidence};
use stamp::{Clock, LocalTime, Stamp, is_mark};

/// How far is read ahead to find a date that tells its order.
const AHEAD_BYTES: usize = 16 * 1024 * 1024;
/// How far to find messages of a chat that is there already: whichever is reached first.
const SAMPLED_BYTES: usize = 1024 * 1024;
const SAMPLED_MESSAGES: usize = 4_000;
/// Minutes whose messages are remembered, so that equal ones are counted also where a clock was put back.
const REMEMBERED_MINUTES: usize = 256;
/// Messages of one minute that are existing; real chats have fewer, so this only bounds the memory a made-up file can take.
const REMEMBERED_MESSAGES: usize = 10_000;

pub(crate) const EXPORT: Known = Known {
    name: "whatsapp",
    title: "a WhatsApp chat (txt)",
    declaration: Declared::Json {
        connector_key: "whatsapp",
        text: include_str!("../../declarations/whatsapp.json"),
    },
    origin: "WhatsApp on the phone: a chat > More > Export chat",
    contents: "messages and chats; media are named, not kept",
    recognise: |file| recognise(file.head, file.file_name()).into(),
    importer: |input, acceptor, _| {
        let path = input.path().to_owned();
        Box::new(WhatsappImporter::new(input.into_reader(), &path, acceptor))
    },
};

pub struct WhatsappImporter<'a, R> {
    messages: Messages<R>,
    acceptor: &'a Acceptor<'a>,
    /// The name of the chat, if the path tells it.
    named: Option<Name>,
    /// What was read ahead, and why not further.
    ahead: VecDeque<Message>,
    failed: Option<InputError>,
    chat: Option<Chat>,
    /// Whether the record of the chat was given.
    introduced: bool,
    /// What the file itself would call the chat, if it is there under another name.
    otherwise: Option<String>,
    counted: Counted,
    clock: Clock,
    participants: Participants,
}

/// What is known of the chat once its beginning was read.
struct Chat {
    name: String,
    keyed_by: String,
    order: DateOrder,
    /// Whether the order of dates is proven, not assumed.
    certain: bool,
}

impl<'a, R: BufRead> WhatsappImporter<'a, R> {
    /// An importer of messages of at most [`MAX_LINE_BYTES`]. The path of the file may tell the name of the chat.
    pub fn new(reader: R, path: &str, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, path, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, path: &str, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            messages: Messages::new(reader, limit),
            acceptor,
            named: identity::named_by_path(path),
            ahead: VecDeque::new(),
            failed: None,
            chat: None,
            introduced: false,
            otherwise: None,
            counted: Counted::default(),
            clock: Clock::default(),
            participants: Participants::default(),
        }
    }

    /// The record of the chat, once all its messages were given.
    fn introduce(&mut self) -> Option<Item> {
        let chat = self.chat.as_ref().filter(|_| !self.introduced)?;
        self.introduced = true;
        let participants = self.participants.with_stored(self.acceptor, &chat.name);
        let outcome = self.acceptor.record("chats", &chat.record(participants));
        Some(Item::new(1, 0, outcome))
    }

    /// Reads until the order of dates is told and there are messages to compare, and says how the export itself calls its
    /// chat. Without a name, the messages of two chats would become one.
    fn begin(&mut self) -> Result<(Chat, Option<Name>), InputError> {
        let (mut evidence, mut bytes) = (Evidence::default(), 0);
        let few = |count: usize, bytes: usize| count < SAMPLED_MESSAGES && bytes < SAMPLED_BYTES;
        while few(self.ahead.len(), bytes) || (bytes < AHEAD_BYTES && !evidence.is_enough()) {
            let message = match self.messages.next() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            };
            bytes += message.size();
            if let Some(stamp) = message.stamp.filter(|_| !evidence.is_enough()) {
                evidence.add(stamp);
            }
            self.ahead.push_back(message);
        }
        let (order, certain) = evidence.order();
        let told = || self.ahead.front().and_then(Message::chat_name);
        let people = || Sample::new(self.ahead.iter(), order).people();
        let name = self.named.clone().or_else(told).or_else(people);
        if name.is_none() && !self.ahead.is_empty() {
            return Err(InputError::NamelessChat);
        }
        let text = name.as_ref().map(|name| name.text.clone());
        let text = text.unwrap_or_default();
        let chat = Chat {
            keyed_by: text.clone(),
            name: text,
            order,
            certain,
        };
        Ok((chat, name))
    }

    /// Whether there is a message that the owner did not delete in a chat without a name. Reads ahead to find one.
    fn has_new(&mut self, chat: &Chat, existing: &dyn ExistingRecords) -> Result<bool, StoreError> {
        let is_new = |message: &Message| -> Result<bool, StoreError> {
            let Some(key) = message.key_in("", chat.order) else {
                return Ok(false);
            };
            Ok(existing.presence("messages", &key)? != Presence::DeletedByOwner)
        };
        let mut bytes = 0;
        for message in &self.ahead {
            bytes += message.size();
            if is_new(message)? {
                return Ok(true);
            }
        }
        while self.failed.is_none() && bytes < AHEAD_BYTES {
            let message = match self.messages.next() {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.failed = Some(error);
                    return Ok(false);
                }
            };
            bytes += message.size();
            let new = is_new(&message)?;
            self.ahead.push_back(message);
            if new {
                return Ok(true);
            }
        }
        Ok(bytes >= AHEAD_BYTES)
    }

    /// The next message: first those that were read ahead, then what ended that.
    fn message(&mut self) -> Result<Option<Message>, InputError> {
        if let Some(message) = self.ahead.pop_front() {
            return Ok(Some(message));
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.messages.next(),
        }
    }
}

impl<R: BufRead> Importer for WhatsappImporter<'_, R> {
    fn compare(&mut self, existing: &dyn ExistingRecords) -> Result<(), Stopped> {
        let (mut chat, own) = self.begin()?;
        let Some(own) = own else {
            return Ok(());
        };
        let sample = Sample::new(self.ahead.iter(), chat.order);
        let identity = sample.chat(&own, existing)?;
        // A chat of which nothing is left needs no record either.
        let is_gone =
            identity.is_nameless() && !existing.revives() && !self.has_new(&chat, existing)?;
        self.introduced = is_gone;
        (chat.name, chat.keyed_by) = (identity.name, identity.keyed_by);
        self.otherwise = (own.by != By::Nobody && chat.name != own.text).then_some(own.text);
        self.introduced |= self.ahead.is_empty();
        self.chat = Some(chat);
        Ok(())
    }

    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if self.chat.is_none() {
            self.chat = Some(self.begin()?.0);
            self.introduced |= self.ahead.is_empty();
        }
        let read = self.message();
        let (Ok(Some(message)), Some(chat)) = (&read, &self.chat) else {
            // What was read before it failed has its chat too.
            let Some(introduction) = self.introduce() else {
                return read.map(|_| None);
            };
            self.failed = read.err();
            return Ok(Some(introduction));
        };
        if let Some(stamp) = message.stamp {
            self.clock.add(stamp);
        }
        let outcome = message.record(chat, &mut self.counted);
        if let Ok(MessageRecord {
            author: Some(author),
            kind: "message" | "media",
            ..
        }) = &outcome
        {
            self.participants.add(author);
        }
        Ok(Some(Item::new(
            message.line,
            message.rest.len(),
            outcome.and_then(|record| self.acceptor.record("messages", &record)),
        )))
    }

    fn note(&self) -> Option<String> {
        let chat = self.chat.as_ref()?;
        let known = self.otherwise.as_ref().map(|own| {
            let (own, name) = (quoted(own), quoted(&chat.name));
            format!("its messages are those of the chat {name}, and go there instead of into {own}")
        });
        let assumed = (!chat.certain).then(|| {
            let order = chat.order.as_str();
            format!("no date in it tells the day from the month; they are read as {order}")
        });
        let unsure = self.clock.is_unsure().then(|| {
            "the words before its times are not known here and none is behind noon, so they may be twelve hours early".to_owned()
        });
        let notes: Vec<String> = known.into_iter().chain(assumed).chain(unsure).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

impl Chat {
    fn record(&self, participants: Vec<String>) -> ChatRecord<'_> {
        ChatRecord {
            id: &self.name,
            name: &self.name,
            participants,
            date_order: self.order.as_str(),
            date_order_assumed: !self.certain,
        }
    }
}

#[derive(Serialize)]
struct ChatRecord<'c> {
    id: &'c str,
    name: &'c str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    participants: Vec<String>,
    date_order: &'static str,
    date_order_assumed: bool,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct MessageRecord<'m> {
    id: String,
    chat: &'m str,
    author: Option<&'m str>,
    sent_at: String,
    kind: &'static str,
    text: String,
    attachment: Option<&'m str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
}

impl Message {
    fn size(&self) -> usize {
        size_of::<Self>() + self.rest.len()
    }

    /// The chat's name, where the app speaks in its name, as iPhones have it in the first line.
    fn chat_name(&self) -> Option<Name> {
        let (author, said) = content::split_author(&self.rest);
        let author = author.filter(|_| said.starts_with('\u{200e}'))?;
        let speaks = content::read(&self.rest, Some(author)).kind == Kind::System;
        speaks.then(|| Name {
            text: author.to_owned(),
            by: By::App,
        })
    }

    fn record<'m>(
        &'m self,
        chat: &'m Chat,
        counted: &mut Counted,
    ) -> Result<MessageRecord<'m>, Rejection> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let Some(stamp) = self.stamp else {
            let message = format!("no message begins here: {}", quoted(&self.rest));
            return Err(Rejection::new(RejectionCode::MalformedExport, message));
        };
        let time = stamp.read_as(chat.order);
        let minute = time.to_minute();
        if !time.is_possible() {
            let message = format!(
                "{} is no time; dates are read as {}",
                time.with_place(0),
                chat.order.as_str()
            );
            return Err(Rejection::new(RejectionCode::MalformedExport, message));
        }
        let content = content::read(&self.rest, Some(&chat.name));
        let hash = hash(&chat.keyed_by, &minute, &content);
        let (place, among_equals) = counted.add(time, &hash);
        let (kind, edited) = content.shown(&self.rest);
        Ok(MessageRecord {
            id: key(&minute, &hash, among_equals),
            chat: &chat.name,
            author: content.author,
            sent_at: time.with_place(place),
            kind: kind.as_str(),
            text: content.text,
            attachment: content.attachment,
            edited,
        })
    }
}

/// What makes two messages of one minute the same: author and text, but neither marks nor the name of a file, which an
/// export without files does not have.
fn hash(chat: &str, minute: &str, content: &Content<'_>) -> String {
    let unmarked = |text: &str| text.replace(is_mark, "");
    let author = unmarked(content.author.unwrap_or_default());
    let media = content.kind == Kind::Media;
    let mut hasher = Sha256::new();
    for part in [chat, minute, &author, &unmarked(&content.text)] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.update([u8::from(media)]);
    let digest = hasher.finalize();
    let digest: Vec<String> = digest.iter().take(10).map(|b| format!("{b:02x}")).collect();
    digest.concat()
}

/// `202312312115-` and the hash, and a number from the second of equal ones on.
fn key(minute: &str, hash: &str, among_equals: u32) -> String {
    let digits = digits(minute);
    match among_equals {
        0 => format!("{digits}-{hash}"),
        number => format!("{digits}-{hash}-{}", number + 1),
    }
}

fn digits(minute: &str) -> String {
    minute.chars().filter(char::is_ascii_digit).collect()
}

/// Counts messages: all of one moment, and equal ones of one minute.
#[derive(Default)]
struct Counted {
    moment: Option<(LocalTime, u32)>,
    /// The minutes seen last, oldest first, and how often each hash occurred in them.
    minutes: VecDeque<(String, HashMap<String, u32>)>,
}

impl Counted {
    /// How many messages came before this one at its moment, and how many equal ones in its minute.
    fn add(&mut self, time: LocalTime, hash: &str) -> (u32, u32) {
        let place = match self.moment {
            Some((last, place)) if last == time => place + 1,
            _ => 0,
        };
        self.moment = Some((time, place));
        let minute = time.to_minute();
        let known = self.minutes.iter().rposition(|(seen, _)| *seen == minute);
        let index = known.unwrap_or_else(|| {
            if self.minutes.len() == REMEMBERED_MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back((minute, HashMap::new()));
            self.minutes.len() - 1
        });
        let Some((_, hashes)) = self.minutes.get_mut(index) else {
            return (place, 0);
        };
        if hashes.len() == REMEMBERED_MESSAGES {
            hashes.clear();
        }
        let count = hashes.entry(hash.to_owned()).or_default();
        *count += 1;
        (place, *count - 1)
    }
}

/// Whether a file begins as an export of `WhatsApp` does. Logs begin with a time in brackets too, so that alone is not
/// enough: the name must say so, or the mark that iPhones put before the app's own words.
pub(crate) fn recognise(head: &[u8], file_name: &str) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut lines = head
        .lines()
        .filter(|line| !line.trim_matches(is_mark).is_empty());
    let Some((stamp, _)) = lines.next().and_then(stamp::read) else {
        return false;
    };
    let named = file_name.starts_with("_chat") || file_name.to_lowercase().contains("whatsapp");
    let said = head
        .lines()
        .filter_map(stamp::read)
        .any(|(_, rest)| content::split_author(rest).0.is_some());
    let from_android = !stamp.is_bracketed() && !stamp.has_seconds() && said;
    let from_iphone = stamp.is_bracketed() && said && head.contains("\u{200e}");
    named || from_android || from_iphone || (stamp.is_bracketed() && is_talk(&head))
}

/// Whether people speak in lines that begin with a time in brackets. Programs that log write the year first, with dashes, as some
/// phones do; but not that different people take turns, and nobody else says anything.
fn is_talk(head: &str) -> bool {
    let said = head.lines().filter_map(stamp::read);
    let said = said.filter_map(|(stamp, rest)| Some((stamp, content::split_author(rest).0?)));
    let said: Vec<(Stamp, &str)> = said.collect();
    let is_like_a_log = |stamp: &Stamp| stamp.is_dashed() && stamp.is_year_first();
    if !said.iter().all(|(stamp, _)| is_like_a_log(stamp)) {
        let named = said.iter().filter(|(_, author)| is_name(author));
        return named.take(2).count() == 2;
    }
    let first = said.first().map(|(_, author)| *author);
    let has_others = said.iter().any(|(_, author)| Some(*author) != first);
    has_others && said.iter().all(|(_, author)| is_person(author))
}

/// Words by which programs begin what they log.
const LEVELS: [&str; 8] = [
    "error", "warn", "warning", "info", "debug", "trace", "notice", "fatal",
];

fn is_name(author: &str) -> bool {
    author.chars().count() <= 40
        && author.chars().any(char::is_alphabetic)
        && !LEVELS.contains(&author.to_lowercase().as_str())
}

/// Whether it is written as the names of people are, or as the number of a telephone.
fn is_person(author: &str) -> bool {
    let author = author.replace(is_mark, "");
    let is_number = author.starts_with('+');
    let is_part = |c: char| !c.is_ascii_punctuation() || " -'+().&".contains(c);
    let begins_small = author.starts_with(|c: char| c.is_ascii_lowercase());
    is_number || (is_name(&author) && !begins_small && author.chars().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_recognised_by_how_messages_begin() {
        for (head, file, known) in [
            ("12/31/23, 9:15 PM - Anna: x\n", "notes", true),
            (
                "31.12.23, 21:15 - Hinweis\n31.12.23, 21:15 - A: x",
                "",
                true,
            ),
            ("[31.12.23, 21:15:07] Anna: \u{200e}Messages", "", true),
            ("\u{200e}[31.12.23, 21:15:07] Anna: x", "", true),
            ("[31.12.23, 21:15:07] Anna: x", "_chat.txt", true),
            (
                "31.12.23, 21:15 - Hinweis",
                "WhatsApp Chat mit Anna.txt",
                true,
            ),
            ("[2023-12-31 21:15:07] error: x", "app.log", false),
            (
                "[31.12.23, 21:15:07] Anna: x\n[31.12.23, 21:15:09] Ben: y\n",
                "notes.txt",
                true,
            ),
            (
                "[31-12-2023 21:15:07] Anna: x\n[31-12-2023 21:15:09] Ben: y\n",
                "notes.txt",
                true,
            ),
            (
                "[2023-12-31 21:15:07] Anna: x\n[2023-12-31, 9:15:09 PM] Ben O'Neill: y\n",
                "notes.txt",
                true,
            ),
            (
                "[2023-12-31 21:15:07] Anna: x\n[2023-12-31 21:15:09] WARN: y\n",
                "app.log",
                false,
            ),
            (
                "[2023-12-31 21:15:07] main: x\n[2023-12-31 21:15:09] main: y\n",
                "app.log",
                false,
            ),
            (
                "[31/12/2023 21:15:07] ERROR: x\n[31/12/2023 21:15:09] Info: y\n",
                "app.log",
                false,
            ),
            ("2023-12-31 21:15:07 - error: x", "app.log", false),
            ("31.12.23, 21:15 - Hinweis", "notes.txt", false),
            ("date,author,text", "whatsapp.csv", false),
            ("", "_chat.txt", false),
        ] {
            assert_eq!(recognise(head.as_bytes(), file), known, "{head} {file}");
        }
    }
}
