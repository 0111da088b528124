//! A message as a record.

use std::collections::HashSet;
use std::fmt::Write as _;

use contract::id::BlobId;
use contract::key::RecordKey;
use contract::time::Instant;
use mail_parser::{Address, DateTime, HeaderForm, HeaderName, HeaderValue, Received};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::date;
use super::mime::{self, File, Part};
use crate::rejection::{Rejection, RejectionCode};

/// Earlier there was no mail as we know it; such dates come of clocks that were not set.
const FIRST_DAY: &str = "1971";
/// A date of more words is none.
const MAX_DATE_WORDS: usize = 20;
/// Mozilla's mark of a message that was deleted and still stands in its file.
const EXPUNGED: u32 = 0x0008;

#[derive(Debug, Serialize, Hash)]
pub(super) struct Message {
    pub(super) id: String,
    thread_id: String,
    subject: Option<String>,
    from_name: Option<String>,
    from_address: Option<String>,
    to: Vec<String>,
    cc: Vec<String>,
    #[serde(flatten)]
    addresses: Addresses,
    sent_at: Option<String>,
    labels: Vec<String>,
    in_reply_to: Option<String>,
    references: Vec<String>,
    list_id: Option<String>,
    body: Option<String>,
    attachments: Vec<Enclosed>,
}

/// Bare addresses in small letters. They are no part of what makes an id.
#[derive(Debug, Default, Serialize, Hash)]
struct Addresses {
    #[serde(rename = "to_addresses", skip_serializing_if = "Vec::is_empty")]
    to: Vec<String>,
    #[serde(rename = "cc_addresses", skip_serializing_if = "Vec::is_empty")]
    cc: Vec<String>,
    /// Of all whom it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    participants: Vec<String>,
}

/// What a message says of something that came along.
#[derive(Debug, Serialize, Hash)]
struct Enclosed {
    name: Option<String>,
    media_type: String,
    size_bytes: u64,
}

/// The record of something that came along.
#[derive(Debug, Serialize)]
pub(super) struct Attachment<'m> {
    id: String,
    message_id: &'m str,
    name: Option<&'m str>,
    media_type: &'m str,
    size_bytes: u64,
    sent_at: Option<&'m str>,
    text: Option<String>,
    blob_ref: BlobRef<'m>,
}

#[derive(Debug, Serialize)]
struct BlobRef<'m> {
    blob_id: &'m str,
    mime_type: &'m str,
    size_bytes: u64,
}

impl Message {
    /// Reads a message. Nothing is made of what only looks like one: a message that was deleted, or a note of the program
    /// that keeps the mailbox to itself.
    pub(super) fn read<'m>(
        raw: &'m [u8],
        delivered_at: Option<&str>,
    ) -> Result<Option<(Self, Vec<File<'m>>)>, Rejection> {
        let part = Part::split(raw);
        let head = part.readable_head();
        let headers = mime::headers(&head)
            .map(Headers)
            .filter(Headers::are_of_mail);
        let headers = headers.ok_or_else(|| {
            malformed("it has none of the headers of a message, or over 1 MiB of them")
        })?;
        if headers.is_expunged() || headers.is_internal() {
            return Ok(None);
        }
        let content = mime::content(Some(&headers.0), part.body)
            .map_err(|_| malformed("it has more than 1,000 parts"))?;
        let id = headers.id(part.body);
        let references = headers.ids(HeaderName::References);
        let in_reply_to = headers.ids(HeaderName::InReplyTo).into_iter().next();
        let thread = headers.text("X-GM-THRID");
        let thread = thread.or_else(|| references.first().or(in_reply_to.as_ref()).cloned());
        let from = headers.addresses(HeaderName::From).next();
        let message = Self {
            thread_id: thread.unwrap_or_else(|| id.clone()),
            id,
            subject: headers.text(HeaderName::Subject),
            from_name: from.as_ref().and_then(|from| from.0.clone()),
            from_address: from.and_then(|from| from.1),
            to: headers.listed(HeaderName::To),
            cc: headers.listed(HeaderName::Cc),
            addresses: Addresses {
                to: headers.bare(&[HeaderName::To]),
                cc: headers.bare(&[HeaderName::Cc]),
                participants: headers.bare(&[
                    HeaderName::From,
                    HeaderName::To,
                    HeaderName::Cc,
                    HeaderName::Bcc,
                ]),
            },
            sent_at: headers.sent_at().or(delivered_at.map(str::to_owned)),
            labels: headers.labels(),
            in_reply_to,
            references,
            list_id: headers.list_id(),
            body: Some(content.text).filter(|text| !text.trim().is_empty()),
            attachments: content.files.iter().map(Enclosed::from_file).collect(),
        };
        Ok(Some((message, content.files)))
    }

    /// Gives it an id of its own, made of the one it has and what it says.
    pub(super) fn make_id_unique(&mut self) {
        // Earlier releases told none, and ids stay.
        let addresses = std::mem::take(&mut self.addresses);
        let said = serde_json::to_vec(self).unwrap_or_default();
        self.addresses = addresses;
        let mark: String = hex(&said).chars().take(16).collect();
        let id = format!("{}#{mark}", self.id);
        self.id = RecordKey::single(id.as_str()).map_or(mark, |_| id);
    }
}

impl Enclosed {
    fn from_file(file: &File<'_>) -> Self {
        Self {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            size_bytes: file.bytes.len() as u64,
        }
    }
}

impl<'m> Attachment<'m> {
    /// The record of the file that is the `nth` of its message, from 1.
    pub(super) fn new(
        message: &'m Message,
        nth: usize,
        file: &'m File<'_>,
        blob: &'m BlobId,
    ) -> Self {
        // Not a slash, which no short id can carry.
        let id = format!("{}#{nth}", message.id);
        let size_bytes = file.bytes.len() as u64;
        Self {
            id: match RecordKey::single(id.as_str()) {
                Ok(_) => id,
                Err(_) => format!("sha256:{}", hex(id.as_bytes())),
            },
            message_id: &message.id,
            name: file.name.as_deref(),
            media_type: &file.media_type,
            size_bytes,
            sent_at: message.sent_at.as_deref(),
            text: file.text(),
            blob_ref: BlobRef {
                blob_id: blob.as_str(),
                mime_type: &file.media_type,
                size_bytes,
            },
        }
    }
}

struct Headers<'x>(mail_parser::Message<'x>);

impl<'x> Headers<'x> {
    fn are_of_mail(&self) -> bool {
        let names = [
            HeaderName::From,
            HeaderName::To,
            HeaderName::Subject,
            HeaderName::Date,
            HeaderName::MessageId,
            HeaderName::Received,
            HeaderName::MimeVersion,
            HeaderName::ContentType,
        ];
        names.into_iter().any(|name| self.0.header(name).is_some())
    }

    fn is_expunged(&self) -> bool {
        let status = self.text("X-Mozilla-Status");
        let status = status.and_then(|text| u32::from_str_radix(&text, 16).ok());
        status.is_some_and(|status| status & EXPUNGED != 0)
    }

    /// The note that IMAP servers keep as the first message of a file.
    fn is_internal(&self) -> bool {
        self.0.header("X-IMAP").is_some()
            && self
                .0
                .subject()
                .is_some_and(|subject| subject.contains("FOLDER INTERNAL DATA"))
    }

    /// The text of a header, decoded, on one line; nothing if there is none.
    fn text(&self, name: impl Into<HeaderName<'x>>) -> Option<String> {
        let values = self.0.header_as(name, HeaderForm::Text);
        let text = values.iter().find_map(|value| value.as_text())?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn ids(&self, name: HeaderName<'x>) -> Vec<String> {
        let values = self.0.header_as(name, HeaderForm::MessageIds);
        let lists = values.iter().filter_map(HeaderValue::as_text_list);
        lists
            .flatten()
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty())
            .collect()
    }

    /// The id it was given, else one made of what no copy changes.
    fn id(&self, body: &[u8]) -> String {
        let given = self.ids(HeaderName::MessageId).into_iter().next();
        if let Some(id) = given.filter(|id| RecordKey::single(id.as_str()).is_ok()) {
            return id;
        }
        let mut told = Vec::new();
        for name in [
            HeaderName::Date,
            HeaderName::From,
            HeaderName::To,
            HeaderName::Subject,
        ] {
            told.extend(self.0.header_raw(name).unwrap_or_default().trim().bytes());
            told.push(b'\n');
        }
        told.extend(body.trim_ascii().iter().filter(|byte| **byte != b'\r'));
        format!("sha256:{}", hex(&told))
    }

    /// Names and addresses, with the groups taken apart.
    fn addresses(
        &self,
        name: HeaderName<'x>,
    ) -> impl Iterator<Item = (Option<String>, Option<String>)> {
        let headers = self.0.header_values(name);
        let all: Vec<_> = headers
            .filter_map(HeaderValue::as_address)
            .flat_map(Address::iter)
            .map(|one| (filled(one.name()), filled(one.address())))
            .filter(|(name, address)| name.is_some() || address.is_some())
            .collect();
        all.into_iter()
    }

    /// Addresses as people write them.
    fn listed(&self, name: HeaderName<'x>) -> Vec<String> {
        self.addresses(name)
            .filter_map(|pair| match pair {
                (Some(name), Some(address)) if name != address => {
                    Some(format!("{name} <{address}>"))
                }
                (name, address) => address.or(name),
            })
            .collect()
    }

    /// The addresses of all whom these headers name, each once.
    fn bare(&self, named: &[HeaderName<'x>]) -> Vec<String> {
        let people = named.iter().flat_map(|name| self.addresses(name.clone()));
        let mut all: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for address in people.filter_map(|(_, address)| address) {
            let address = address.trim().to_lowercase();
            if seen.insert(address.clone()) {
                all.push(address);
            }
        }
        all
    }

    /// When it was sent, else when the last server on its way had it.
    fn sent_at(&self) -> Option<String> {
        let raw = self.0.header_raw(HeaderName::Date);
        let date = self.0.date().copied();
        let date = date.filter(|date| raw.is_some_and(|raw| names_year(raw, date.year)));
        let date = date.and_then(possible).or_else(|| {
            let raw = raw?;
            let words: Vec<&str> = raw.split_ascii_whitespace().take(MAX_DATE_WORDS).collect();
            date::read(&words).filter(|date| date.as_str() >= FIRST_DAY)
        });
        let mut received = self.0.received_all().filter_map(Received::date);
        date.or_else(|| received.find_map(possible))
    }

    fn labels(&self) -> Vec<String> {
        let mut labels = Vec::new();
        if let Some(text) = self.text("X-Gmail-Labels") {
            labels.extend(comma_separated(&text));
        }
        if let Some(text) = self.text("X-Mozilla-Keys") {
            labels.extend(text.split_ascii_whitespace().map(str::to_owned));
        }
        if let Some(text) = self.text(HeaderName::Keywords) {
            labels.extend(comma_separated(&text));
        }
        let mut seen = HashSet::new();
        labels.retain(|label| seen.insert(label.clone()));
        labels
    }

    /// The id of its list, without the words about it.
    fn list_id(&self) -> Option<String> {
        let text = self.text(HeaderName::ListId)?;
        let id = text.rsplit_once('<').map_or(text.as_str(), |(_, id)| id);
        filled(Some(id.trim_end_matches('>').trim()))
    }
}

fn filled(text: Option<&str>) -> Option<String> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// Whether a date has that year, written in full or shortened as RFC 5322 has it. A number that is too large for a year is
/// none, though it can be cut down to one.
fn names_year(raw: &str, year: u16) -> bool {
    let numbers = raw.split(|c: char| !c.is_ascii_digit());
    numbers
        .filter(|number| matches!(number.len(), 2..=4))
        .filter_map(|number| number.parse::<u16>().ok())
        .any(|number| {
            [0, 1900, 2000]
                .iter()
                .any(|century| number + century == year)
        })
}

/// The date as RFC 3339, if there can be such a one.
fn possible(date: DateTime) -> Option<String> {
    let text = date.to_rfc3339();
    let is_possible = text.as_str() >= FIRST_DAY && Instant::parse(&text).is_some();
    is_possible.then_some(text)
}

/// Splits at commas outside of quotes.
fn comma_separated(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut in_quotes = false;
    for character in text.chars() {
        match character {
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => parts.push(String::new()),
            other => parts
                .last_mut()
                .into_iter()
                .for_each(|part| part.push(other)),
        }
    }
    parts.iter().filter_map(|part| filled(Some(part))).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn malformed(why: &str) -> Rejection {
    let message = format!("the message cannot be read: {why}");
    Rejection::new(RejectionCode::MalformedMail, message)
}

/// Whether the line begins like a header: a name without white space, and a colon.
pub(super) fn is_header_line(line: &[u8]) -> bool {
    let name = line
        .iter()
        .position(|byte| *byte == b':')
        .and_then(|colon| line.get(..colon));
    name.is_some_and(|name| !name.is_empty() && name.iter().all(u8::is_ascii_graphic))
}
