//! Contact files (`.vcf`) in the versions 2.1, 3.0 (RFC 2426) and 4.0 (RFC 6350): a record per contact. Pictures, sounds
//! and keys are left out.

mod card;

use std::io::BufRead;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::exports::{Declared, Known};
use crate::importer::{Importer, Item};
use crate::importers::content_lines::{self, Component, Components, Found, Layout};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, RejectionCode, quoted};
use store::records::Change;

const LAYOUT: Layout = Layout {
    container: None,
    components: &["VCARD"],
    dropped: &["PHOTO", "LOGO", "SOUND", "KEY"],
};

pub(crate) const EXPORT: Known = Known {
    name: "contacts",
    title: "contacts (vcf)",
    declaration: Declared::Json {
        connector_key: "contacts-file",
        text: include_str!("../../declarations/contacts-file.json"),
    },
    origin: "Google Contacts: Export > vCard. Apple Contacts: File > Export > Export vCard. Any phone: share or export contacts",
    contents: "contacts, without their pictures",
    recognise: |file| recognise(file.head).into(),
    importer: |input, acceptor, _| Box::new(ContactsImporter::new(input.into_reader(), acceptor)),
};

/// Whether a file that begins like this holds contacts.
pub(crate) fn recognise(head: &[u8]) -> bool {
    content_lines::begins_with(head, b"BEGIN:VCARD")
}

pub struct ContactsImporter<'a, R> {
    components: Components<R>,
    acceptor: &'a Acceptor<'a>,
}

impl<'a, R: BufRead> ContactsImporter<'a, R> {
    /// An importer of contacts of at most [`MAX_LINE_BYTES`].
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            components: Components::new(reader, &LAYOUT, limit),
            acceptor,
        }
    }

    fn change(&self, component: &Component) -> Result<Change, Rejection> {
        if component.name != "VCARD" {
            let message = format!("{} is no contact (VCARD)", quoted(&component.name));
            return Err(Rejection::new(RejectionCode::UnsupportedItem, message));
        }
        self.acceptor.record("contacts", &card::contact(component)?)
    }
}

impl<R: BufRead> Importer for ContactsImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        let Some(found) = self.components.next()? else {
            return Ok(None);
        };
        let (line, bytes, outcome) = match found {
            Found::Component(component) => {
                (component.line, component.bytes, self.change(&component))
            }
            Found::Broken {
                line,
                bytes,
                rejection,
            } => (line, bytes, Err(rejection)),
            Found::Property {
                line,
                bytes,
                property,
            } => (line, bytes, Err(stray(&property.name))),
            // The layout has none.
            Found::Container => (0, 0, Err(stray("BEGIN"))),
        };
        Ok(Some(Item::new(line, bytes, outcome)))
    }
}

fn stray(name: &str) -> Rejection {
    let message = format!("{name} stands outside of any contact");
    Rejection::new(RejectionCode::MalformedExport, message)
}
