//! Exports of Telegram Desktop (`result.json`): one chat, or a whole account with its chats, the chats that were left,
//! and its contacts. These files grow large, so they are taken apart element by element; what is not one of these
//! three is passed over.

mod chat;
mod message;

use std::io::BufRead;

use contract::json::{JsonErrorCode, RecordBody};
use store::records::Change;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::exports::{Declared, Known, Verdict};
use crate::importer::{Importer, Item};
use crate::importers::outline::Outline;
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode};
use chat::{Chat, Contact};
use message::MessageRecord;

/// A name or an id of a chat is far shorter.
const CHAT_MEMBER_BYTES: usize = 64 * 1024;

pub(crate) const EXPORT: Known = Known {
    name: "telegram",
    title: "a Telegram export (result.json)",
    declaration: Declared::Json {
        connector_key: "telegram",
        text: include_str!("../../declarations/telegram.json"),
    },
    origin: "Telegram Desktop: Settings > Advanced > Export Telegram data, or a chat's menu > Export chat history; format: machine-readable JSON",
    contents: "messages, chats and contacts; files are named, not kept",
    recognise: |file| match recognise(file.head) {
        true => Verdict::Takes,
        false if is_page(file.head) => {
            Verdict::Leaves("pages of Telegram; export the chat as machine-readable JSON")
        }
        false => Verdict::Unlike,
    },
    importer: |input, acceptor, _| Box::new(TelegramImporter::new(input.into_reader(), acceptor)),
};

/// Reads chats, messages and contacts of a Telegram export.
pub struct TelegramImporter<'a, R> {
    outline: Outline<R>,
    acceptor: &'a Acceptor<'a>,
    limit: usize,
    begun: bool,
    /// Where in the document we are, outermost first.
    positions: Vec<ParsePosition>,
    /// The chat whose members are being read.
    chat: Chat,
    /// What ended the input, where the chat before it is yet to be given.
    failed: Option<InputError>,
}

/// Where in the document something stands.
#[derive(Clone, Copy)]
enum ParsePosition {
    /// The document: an account, or one chat.
    Document,
    Section(Listed),
    List(Listed),
    Chat,
    Messages,
}

#[derive(Clone, Copy)]
enum Listed {
    Chats,
    Contacts,
}

impl<'a, R: BufRead> TelegramImporter<'a, R> {
    /// An importer of messages of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            outline: Outline::new(reader),
            acceptor,
            limit,
            begun: false,
            positions: Vec::new(),
            chat: Chat::default(),
            failed: None,
        }
    }

    /// Goes on from where it stands, until there is an item or the position is left.
    fn proceed(&mut self, position: ParsePosition) -> Result<Option<Item>, InputError> {
        match position {
            ParsePosition::Document | ParsePosition::Chat => self.chat_member(position),
            ParsePosition::Section(listed) => self.section_member(listed),
            ParsePosition::List(Listed::Chats) => self.listed_chat(),
            ParsePosition::List(Listed::Contacts) | ParsePosition::Messages => {
                self.element(position)
            }
        }
    }

    fn chat_member(&mut self, position: ParsePosition) -> Result<Option<Item>, InputError> {
        let Some(name) = self.outline.member()? else {
            self.positions.pop();
            let is_chat = matches!(position, ParsePosition::Chat) || self.chat.is_begun;
            return Ok(if is_chat { self.announce() } else { None });
        };
        let is_document = matches!(position, ParsePosition::Document);
        match name.as_str() {
            "name" | "type" | "id" => {
                if self.outline.take(CHAT_MEMBER_BYTES)? {
                    self.chat.learn(&name, self.outline.taken());
                }
            }
            "messages" if self.outline.enter(b'[')? => {
                self.positions.push(ParsePosition::Messages);
                self.chat.is_begun = true;
                // Of messages without a chat, the chat says so first.
                if self.chat.id().is_err() {
                    return Ok(self.announce());
                }
            }
            "chats" | "left_chats" if is_document && self.outline.enter(b'{')? => {
                self.positions.push(ParsePosition::Section(Listed::Chats));
            }
            "contacts" if is_document && self.outline.enter(b'{')? => {
                self.positions
                    .push(ParsePosition::Section(Listed::Contacts));
            }
            _ => self.outline.skip()?,
        }
        Ok(None)
    }

    fn section_member(&mut self, listed: Listed) -> Result<Option<Item>, InputError> {
        match self.outline.member()?.as_deref() {
            None => {
                self.positions.pop();
            }
            Some("list") if self.outline.enter(b'[')? => {
                self.positions.push(ParsePosition::List(listed));
            }
            Some(_) => self.outline.skip()?,
        }
        Ok(None)
    }

    fn listed_chat(&mut self) -> Result<Option<Item>, InputError> {
        if !self.outline.element()? {
            self.positions.pop();
            return Ok(None);
        }
        let line = self.outline.line();
        if self.outline.enter(b'{')? {
            self.chat = Chat::at(line);
            self.positions.push(ParsePosition::Chat);
            return Ok(None);
        }
        self.outline.skip()?;
        let message = "the chat is not a JSON object";
        let rejection = Rejection::new(RejectionCode::MalformedExport, message);
        Ok(Some(item(line, 0, Err(rejection))))
    }

    /// The record of the chat, the first time it is asked for.
    fn announce(&mut self) -> Option<Item> {
        if self.chat.announced {
            return None;
        }
        self.chat.announced = true;
        let outcome = self.chat.record(self.acceptor);
        let outcome = outcome.and_then(|chat| self.acceptor.record("chats", &chat));
        Some(item(self.chat.line, 0, outcome))
    }

    /// The next message or contact. Nothing at the end of the list, and for an element that says nothing.
    fn element(&mut self, position: ParsePosition) -> Result<Option<Item>, InputError> {
        if !self.outline.element()? {
            self.positions.pop();
            return Ok(None);
        }
        let line = self.outline.line();
        if !self.outline.take(self.limit)? {
            let message = format!("it is longer than {} MiB", self.limit >> 20);
            let rejection = Rejection::new(RejectionCode::LineTooLong, message);
            return Ok(Some(item(line, 0, Err(rejection))));
        }
        let taken = self.outline.taken();
        let read = parse(taken).and_then(|body| match position {
            ParsePosition::Messages => message(&mut self.chat, &body, self.acceptor).map(Some),
            _ => contact(&body, self.acceptor),
        });
        let outcome = read.transpose();
        Ok(outcome.map(|outcome| item(line, taken.len(), outcome)))
    }
}

fn message(
    chat: &mut Chat,
    body: &RecordBody,
    acceptor: &Acceptor<'_>,
) -> Result<Change, Rejection> {
    let message = MessageRecord::read(chat, body)?;
    let author = message.author().to_owned();
    let change = acceptor.record("messages", &message);
    chat.participants.add(&author);
    change
}

fn contact(body: &RecordBody, acceptor: &Acceptor<'_>) -> Result<Option<Change>, Rejection> {
    let contact = Contact::read(body)?;
    contact
        .map(|contact| acceptor.record("contacts", &contact))
        .transpose()
}

impl<R: BufRead> Importer for TelegramImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let read = self.read_item();
        if read.is_ok() || !self.chat.is_begun || self.chat.announced {
            return read;
        }
        // What was read before it failed has its chat too.
        self.failed = read.err();
        Ok(self.announce())
    }
}

impl<R: BufRead> TelegramImporter<'_, R> {
    fn read_item(&mut self) -> Result<Option<Item>, InputError> {
        if !self.begun {
            self.begun = true;
            self.chat = Chat::at(self.outline.line());
            if !self.outline.enter(b'{')? {
                return Err(self
                    .outline
                    .broken("the file does not begin with an object"));
            }
            self.positions.push(ParsePosition::Document);
        }
        while let Some(position) = self.positions.last().copied() {
            if let Some(item) = self.proceed(position)? {
                return Ok(Some(item));
            }
        }
        match self.outline.peek()? {
            Some(_) => Err(self
                .outline
                .broken("something follows the end of the export")),
            None => Ok(None),
        }
    }
}

/// Whether it is a chat as a page, which Telegram writes unless it is asked for JSON.
fn is_page(head: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    has("<title>Exported Data</title>") && has("class=\"page_wrap")
}

/// Whether a file begins as an export of Telegram does: with what Telegram says about itself, or with the members of
/// one chat. `head` may be cut anywhere.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let mut outline = Outline::new(head);
    if !outline.enter(b'{').unwrap_or_default() {
        return false;
    }
    let (mut chat, mut introduced) = (Chat::default(), false);
    while let Ok(Some(name)) = outline.member() {
        match name.as_str() {
            "messages" => return chat.is_known() && matches!(outline.peek(), Ok(Some(b'['))),
            "chats" | "left_chats" => return lists_chats(&mut outline),
            // The introduction is translated, sometimes the name in it too.
            "personal_information" | "profile_pictures" | "frequent_contacts" if introduced => {
                return true;
            }
            _ => {}
        }
        match outline.take(CHAT_MEMBER_BYTES) {
            Ok(true) if name == "about" => {
                introduced = true;
                if String::from_utf8_lossy(outline.taken()).contains("Telegram") {
                    return true;
                }
            }
            Ok(true) => chat.learn(&name, outline.taken()),
            Ok(false) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Whether the value that comes next is a section with a list of chats.
fn lists_chats(outline: &mut Outline<&[u8]>) -> bool {
    if !outline.enter(b'{').unwrap_or_default() {
        return false;
    }
    while let Ok(Some(name)) = outline.member() {
        if name != "list" {
            if outline.skip().is_err() {
                return false;
            }
            continue;
        }
        let mut chat = Chat::default();
        if !outline.enter(b'[').unwrap_or_default() || !outline.enter(b'{').unwrap_or_default() {
            return false;
        }
        while let Ok(Some(name)) = outline.member() {
            if name == "messages" {
                return chat.is_known();
            }
            match outline.take(CHAT_MEMBER_BYTES) {
                Ok(true) => chat.learn(&name, outline.taken()),
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        return false;
    }
    false
}

fn item(line: u64, bytes: usize, outcome: Result<Change, Rejection>) -> Item {
    Item::new(line, bytes, outcome)
}

fn parse(taken: &[u8]) -> Result<RecordBody, Rejection> {
    let text = std::str::from_utf8(taken).map_err(|error| {
        let message = format!("it is not UTF-8 (at byte {})", error.valid_up_to());
        Rejection::new(RejectionCode::InvalidUtf8, message)
    })?;
    RecordBody::parse(text).map_err(|error| {
        let code = match error.code {
            JsonErrorCode::DuplicateMember => RejectionCode::DuplicateMember,
            _ => RejectionCode::MalformedExport,
        };
        Rejection::new(code, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_recognised_by_what_is_inside() {
        for (head, known) in [
            (r#"{"about":"Telegram is free","chats":"#, true),
            (
                r#"{"about":"در تلگرام","personal_information":{"user_id"#,
                true,
            ),
            (
                r#"{"chats":{"about":"","list":[{"name":"A","type":"personal_chat","id":1,"messages":["#,
                true,
            ),
            (
                "{\n \"name\": \"A\",\n \"type\": \"private_channel\",\n \"id\": 1,\n \"messages\": [\n",
                true,
            ),
            (r#"{"type":"saved_messages","id":1,"messages":[]}"#, true),
            (
                r#"{"name":"A","type":"mailing_list","id":1,"messages":[]}"#,
                false,
            ),
            (
                r#"{"name":"A","type":"personal_chat","messages":[]}"#,
                false,
            ),
            (r#"{"about":"Something else","chats":[]}"#, false),
            (r#"{"chats":{"list":[{"id":1,"messages":[]}]}}"#, false),
            (r#"{"id":"m1","messages":3}"#, false),
            ("[]", false),
            ("", false),
            ("Telegram", false),
        ] {
            assert_eq!(recognise(head.as_bytes()), known, "{head}");
        }
        let page = b"<html><title>Exported Data</title><body><div class=\"page_wrap\">";
        assert!(is_page(page) && !recognise(page) && !is_page(b"<title>Exported Data</title>"));
    }
}
