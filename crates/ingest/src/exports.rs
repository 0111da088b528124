//! Known exports: files that programs and services hand out, recognised by looking inside and imported with nothing
//! declared before, because the declaration of their connector comes along.
//!
//! A new one is a file in `importers/`, a declaration, and a line in each match here.

use contract::key::RecordKey;

use crate::accept::Acceptor;
use crate::importer::Importer;
use crate::importers::calendar::{self, CalendarImporter};
use crate::importers::contacts::{self, ContactsImporter};
use crate::importers::mail::{self, MailImporter};
use crate::importers::telegram::{self, TelegramImporter};
use crate::importers::whatsapp::{self, WhatsappImporter};
use crate::input::Input;
use crate::lines::BYTE_ORDER_MARK;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Export {
    /// Mail: an mbox file, or a single message.
    Mail,
    /// Telegram: one chat or a whole account, as Telegram Desktop exports it.
    Telegram,
    /// `WhatsApp`: one chat, as a phone exports it.
    Whatsapp,
    /// Events and tasks of a calendar: `.ics`.
    Calendar,
    /// Contacts: `.vcf`.
    Contacts,
}

impl Export {
    /// All of them, in the order in which they are asked whether a file is theirs.
    pub const ALL: &[Self] = &[
        Self::Mail,
        Self::Telegram,
        Self::Whatsapp,
        Self::Calendar,
        Self::Contacts,
    ];

    /// Tells from the beginning of a file which export it is. The content decides; the name, without `.gz` and empty for
    /// a pipe, at most helps.
    pub fn recognise(head: &[u8], file_name: &str) -> Option<Self> {
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let mut all = Self::ALL.iter().copied();
        all.find(|export| export.is_begun_by(head, file_name))
    }

    fn is_begun_by(self, head: &[u8], file_name: &str) -> bool {
        match self {
            Self::Mail => mail::recognise(head, file_name),
            Self::Telegram => telegram::recognise(head),
            Self::Whatsapp => whatsapp::recognise(head, file_name),
            Self::Calendar => calendar::recognise(head),
            Self::Contacts => contacts::recognise(head),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|export| export.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Telegram => "telegram",
            Self::Whatsapp => "whatsapp",
            Self::Calendar => "calendar",
            Self::Contacts => "contacts",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Mail => "mail (mbox or eml)",
            Self::Telegram => "a Telegram export (result.json)",
            Self::Whatsapp => "a WhatsApp chat (txt)",
            Self::Calendar => "calendars (ics)",
            Self::Contacts => "contacts (vcf)",
        }
    }

    pub fn connector_key(self) -> &'static str {
        match self {
            Self::Mail => "mailbox",
            Self::Telegram => "telegram",
            Self::Whatsapp => "whatsapp",
            Self::Calendar => "calendar-file",
            Self::Contacts => "contacts-file",
        }
    }

    /// The declaration of its connector, JSON.
    pub fn declaration(self) -> &'static str {
        match self {
            Self::Mail => include_str!("../declarations/mailbox.json"),
            Self::Telegram => include_str!("../declarations/telegram.json"),
            Self::Whatsapp => include_str!("../declarations/whatsapp.json"),
            Self::Calendar => include_str!("../declarations/calendar-file.json"),
            Self::Contacts => include_str!("../declarations/contacts-file.json"),
        }
    }

    pub fn importer<'a>(self, input: Input, acceptor: &'a Acceptor<'a>) -> Box<dyn Importer + 'a> {
        let path = input.path().to_owned();
        let reader = input.into_reader();
        match self {
            Self::Mail => Box::new(MailImporter::new(reader, acceptor)),
            Self::Telegram => Box::new(TelegramImporter::new(reader, acceptor)),
            Self::Whatsapp => Box::new(WhatsappImporter::new(reader, &path, acceptor)),
            Self::Calendar => Box::new(CalendarImporter::new(reader, acceptor)),
            Self::Contacts => Box::new(ContactsImporter::new(reader, acceptor)),
        }
    }

    /// Another key under which a later export may bring the same record, though the owner deleted it and everything beside
    /// it that tells its own key.
    pub fn other_key(
        connector: &str,
        stream: &str,
        key: &RecordKey,
        body: &str,
    ) -> Option<RecordKey> {
        let is_whatsapp = connector == Self::Whatsapp.connector_key();
        let other =
            whatsapp::nameless_key(key, body).filter(|_| is_whatsapp && stream == "messages");
        other.filter(|other| other != key)
    }

    pub(crate) fn all_titles() -> String {
        let titles: Vec<&str> = Self::ALL.iter().map(|export| export.title()).collect();
        titles.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use contract::declaration::Declaration;

    use super::*;

    #[test]
    fn every_export_brings_a_declaration_of_its_connector() {
        for export in Export::ALL {
            let declaration = Declaration::parse(export.declaration()).unwrap();
            assert_eq!(
                declaration.connector_key().as_str(),
                export.connector_key(),
                "{export:?}"
            );
            assert_eq!(Export::parse(export.as_str()), Some(*export));
        }
    }

    #[test]
    fn exports_are_told_by_their_content() {
        for (head, file_name, expected) in [
            (
                "From - Mon Mar 04 10:11:12 2024\nSubject: x\n",
                "Inbox",
                Some(Export::Mail),
            ),
            (
                "\u{feff}From 17@xxx Mon Mar 04 10:11:12 +0000 2024\r\nX-GM-THRID: 17\r\n",
                "x.txt",
                Some(Export::Mail),
            ),
            (
                "Return-Path: <a@b>\nReceived: from c\n\tby d\nSubject: x\n\nHello",
                "x",
                Some(Export::Mail),
            ),
            ("Subject: only one\n\nHello", "x.eml", Some(Export::Mail)),
            ("", "Trash.mbox", Some(Export::Mail)),
            (
                "{\n \"name\": \"A\",\n \"type\": \"bot_chat\",\n \"id\": 1,\n \"messages\": [",
                "x.json",
                Some(Export::Telegram),
            ),
            (
                "\u{feff}[31.12.23, 21:15:07] A: \u{200e}Messages",
                "x",
                Some(Export::Whatsapp),
            ),
            (
                "\u{feff}\r\nBegin:vCalendar\r\n",
                "x.txt",
                Some(Export::Calendar),
            ),
            ("BEGIN:VCALENDAR", "", Some(Export::Calendar)),
            ("BEGIN:VCARD\nVERSION:2.1\n", "x", Some(Export::Contacts)),
            ("BEGIN:VCARDS\n", "x.vcf", None),
            ("BEGIN:VEVENT\n", "x.ics", None),
            ("Subject: only one\n\nHello", "notes.txt", None),
            (
                "From here on it is a story.\nOnce: upon\n",
                "story.txt",
                None,
            ),
            ("Dear diary,\nFrom: nobody\nTo: nobody\n", "diary.txt", None),
            ("{\"subject\":\"x\"}\n", "x.eml", None),
            ("id,subject\n1,x\n", "x", None),
            ("", "x", None),
            ("", "", None),
        ] {
            assert_eq!(
                Export::recognise(head.as_bytes(), file_name),
                expected,
                "{file_name}: {head}"
            );
        }
    }
}
