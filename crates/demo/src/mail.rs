//! Two mailboxes: conversations become messages, threads and attachments.

mod home;
mod work;

use contract::id::BlobId;
use serde::Serialize;

use crate::dice::Dice;
use crate::error::DemoError;
use crate::files::{AttachedFile, picture};
use crate::grammar::Grammar;
use crate::life::Source;
use crate::lines::Lines;
use crate::moment::{LAST_DAY, Moment};
use crate::people::{COLLEAGUES, HOME, MARA, Person, address};
use crate::shop::Purchase;
use crate::story::{Story, StoryFile, StoryLetter, moment};

const DECLARATION: &str = include_str!("../declarations/mail.json");

/// How many days letters stay in the inbox, and how many they stay unread at most.
const INBOX_DAYS: i64 = 60;
const UNREAD_DAYS: i64 = 4;

/// Letters that answer each other, oldest first.
pub(crate) type Conversation = Vec<Letter>;

#[derive(Debug, Clone)]
pub(crate) struct Letter {
    /// Only where the story insists on one.
    pub(crate) id: Option<String>,
    /// Name and address.
    pub(crate) from: (String, String),
    pub(crate) to: Vec<String>,
    pub(crate) at: Moment,
    pub(crate) subject: Option<String>,
    pub(crate) body: Option<String>,
    /// Where it was put, if not where its kind goes.
    pub(crate) folder: Option<String>,
    pub(crate) files: Vec<File>,
}

/// A file on its way.
#[derive(Debug, Clone)]
pub(crate) struct File {
    name: String,
    mime: String,
    text: Option<String>,
    bytes: Vec<u8>,
}

impl File {
    pub(crate) fn text(name: impl Into<String>, mime: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            name: name.into(),
            mime: mime.to_owned(),
            bytes: text.clone().into_bytes(),
            text: Some(text),
        }
    }

    pub(crate) fn picture(name: impl Into<String>, dice: &mut Dice) -> Result<Self, DemoError> {
        let bytes = picture(dice)
            .map_err(|error| DemoError::Story(format!("a picture cannot be drawn: {error}")))?;
        Ok(Self {
            name: name.into(),
            mime: "image/png".to_owned(),
            text: None,
            bytes,
        })
    }
}

impl Letter {
    pub(crate) fn new(from: (&str, &str), to: &[&Person], at: Moment) -> Self {
        Self {
            id: None,
            from: (from.0.to_owned(), from.1.to_owned()),
            to: to.iter().map(|person| person.email.to_owned()).collect(),
            at,
            subject: None,
            body: None,
            folder: None,
            files: Vec::new(),
        }
    }

    pub(crate) fn saying(mut self, subject: impl Into<String>, body: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self.body = Some(body.into());
        self
    }

    fn quoted(&self) -> String {
        let body = self.body.as_deref().unwrap_or_default();
        let lines = body.lines().map(|line| match line {
            "" => "\n>".to_owned(),
            line if line.starts_with('>') => format!("\n>{line}"),
            line => format!("\n> {line}"),
        });
        let quoted: String = lines.collect();
        format!("On {}, {} wrote:{quoted}", self.at.spoken(), self.from.0)
    }
}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    thread_id: &'a str,
    in_reply_to: Option<&'a str>,
    subject: Option<&'a str>,
    from_name: &'a str,
    from_email: &'a str,
    to: &'a [String],
    received_at: &'a str,
    folder: &'a str,
    seen: bool,
    has_attachments: bool,
    size_bytes: usize,
    body: Option<&'a str>,
}

#[derive(Serialize)]
struct Thread<'a> {
    id: &'a str,
    subject: Option<&'a str>,
    participants: Vec<&'a str>,
    message_count: usize,
    started_at: String,
    last_message_at: String,
}

#[derive(Serialize)]
struct Attachment<'a> {
    id: &'a str,
    message_id: &'a str,
    name: &'a str,
    mime_type: &'a str,
    size_bytes: usize,
    received_at: &'a str,
    text: Option<&'a str>,
    blob_ref: BlobRef<'a>,
}

#[derive(Serialize)]
struct BlobRef<'a> {
    blob_id: BlobId,
    mime_type: &'a str,
    size_bytes: usize,
}

pub(crate) fn sources(
    grammar: &Grammar,
    story: &Story,
    purchases: &[Purchase],
) -> Result<[Source; 2], DemoError> {
    let mut at_work = story_conversations(story, "work", &COLLEAGUES)?;
    at_work.extend(work::conversations(grammar)?);
    let mut at_home = story_conversations(story, "private", &HOME)?;
    at_home.extend(home::conversations(grammar)?);
    at_home.extend(purchases.iter().map(Purchase::letters));
    Ok([
        mailbox("mail-work", "Mara's work mail", at_work)?,
        mailbox("mail-private", "Mara's private mail", at_home)?,
    ])
}

fn story_conversations(
    story: &Story,
    account: &str,
    known: &[Person],
) -> Result<Vec<Conversation>, DemoError> {
    let mut conversations: Vec<(&str, Conversation)> = Vec::new();
    for letter in story.letters.iter().filter(|one| one.account == account) {
        let made = write_letter(letter, known)?;
        let thread = letter.thread.as_str();
        match conversations.iter_mut().find(|(name, _)| *name == thread) {
            Some((_, conversation)) => conversation.push(made),
            None => conversations.push((thread, vec![made])),
        }
    }
    Ok(conversations
        .into_iter()
        .map(|(_, letters)| letters)
        .collect())
}

fn write_letter(letter: &StoryLetter, known: &[Person]) -> Result<Letter, DemoError> {
    let find = |given: &String| {
        address(given, known).ok_or_else(|| DemoError::Story(format!("nobody is called {given}")))
    };
    let to = letter.to.iter().map(|given| Ok(find(given)?.1));
    let body = letter.body.as_ref().map(|lines| lines.join("\n"));
    Ok(Letter {
        id: letter.id.clone(),
        from: find(&letter.from)?,
        to: to.collect::<Result<_, DemoError>>()?,
        at: moment(&letter.at)?,
        subject: letter.subject.clone(),
        body,
        folder: letter.folder.clone(),
        files: letter
            .files
            .iter()
            .map(write_file)
            .collect::<Result<_, _>>()?,
    })
}

fn write_file(file: &StoryFile) -> Result<File, DemoError> {
    if file.mime.starts_with("image/") {
        return File::picture(&file.name, &mut Dice::new(&file.name));
    }
    Ok(File::text(&file.name, &file.mime, file.text.join("\n")))
}

/// Gives ids in the order of time and writes the records of one mailbox.
fn mailbox(
    connection: &'static str,
    name: &'static str,
    mut conversations: Vec<Conversation>,
) -> Result<Source, DemoError> {
    let began = |letters: &Conversation| letters.first().map(|letter| letter.at);
    conversations.sort_by_key(began);
    let mut order: Vec<(Moment, usize, usize)> = Vec::new();
    for (thread, letters) in conversations.iter().enumerate() {
        let places = letters.iter().enumerate();
        order.extend(places.map(|(place, letter)| (letter.at, thread, place)));
    }
    order.sort_unstable();
    let mut ids: Vec<Vec<String>> = conversations
        .iter()
        .map(|letters| vec![String::new(); letters.len()])
        .collect();
    for (number, (_, thread, place)) in order.iter().enumerate() {
        let own = conversations[*thread][*place].id.clone();
        ids[*thread][*place] = own.unwrap_or_else(|| format!("m-{:05}", number + 1));
    }
    let mut box_ = Mailbox::default();
    for (_, thread, place) in order {
        box_.message(&conversations[thread], &ids[thread], (thread, place))?;
    }
    for (thread, letters) in conversations.iter().enumerate() {
        box_.thread(letters, thread)?;
    }
    Ok(Source {
        declaration: DECLARATION,
        connection,
        name,
        lines: box_.lines.text,
        records: box_.lines.count,
        files: box_.files,
    })
}

#[derive(Default)]
struct Mailbox {
    lines: Lines,
    files: Vec<AttachedFile>,
}

fn thread_id(thread: usize) -> String {
    format!("t-{:04}", thread + 1)
}

impl Mailbox {
    fn message(
        &mut self,
        letters: &Conversation,
        ids: &[String],
        (thread, place): (usize, usize),
    ) -> Result<(), DemoError> {
        let (letter, id) = (&letters[place], ids[place].as_str());
        let received_at = letter.at.text();
        let age = LAST_DAY - letter.at.day();
        let folder = match letter.folder.as_deref() {
            Some(folder) => folder,
            None if letter.from.0 == MARA => "sent",
            None if age > INBOX_DAYS => "archive",
            None => "inbox",
        };
        let body = letter.body.as_deref();
        let files: usize = letter.files.iter().map(|file| file.bytes.len()).sum();
        let message = Message {
            id,
            thread_id: &thread_id(thread),
            in_reply_to: place.checked_sub(1).map(|before| ids[before].as_str()),
            subject: letter.subject.as_deref(),
            from_name: &letter.from.0,
            from_email: &letter.from.1,
            to: &letter.to,
            received_at: &received_at,
            folder,
            seen: folder != "inbox" || age > UNREAD_DAYS || place + 1 < letters.len(),
            has_attachments: !letter.files.is_empty(),
            size_bytes: body.map_or(0, str::len) + files + 412,
            body,
        };
        self.lines.add("messages", id, &received_at, &message)?;
        for (number, file) in letter.files.iter().enumerate() {
            self.attachment(file, id, &received_at, number)?;
        }
        Ok(())
    }

    fn attachment(
        &mut self,
        file: &File,
        message_id: &str,
        received_at: &str,
        number: usize,
    ) -> Result<(), DemoError> {
        let attached = AttachedFile {
            stream: "attachments",
            key: format!("{message_id}/{} {}", number + 1, file.name),
            mime_type: file.mime.clone(),
            bytes: file.bytes.clone(),
        };
        let record = Attachment {
            id: &attached.key,
            message_id,
            name: &file.name,
            mime_type: &file.mime,
            size_bytes: file.bytes.len(),
            received_at,
            text: file.text.as_deref(),
            blob_ref: BlobRef {
                blob_id: attached.blob_id(),
                mime_type: &file.mime,
                size_bytes: file.bytes.len(),
            },
        };
        self.lines
            .add("attachments", &attached.key, received_at, &record)?;
        self.files.push(attached);
        Ok(())
    }

    fn thread(&mut self, letters: &Conversation, number: usize) -> Result<(), DemoError> {
        let (Some(first), Some(last)) = (letters.first(), letters.last()) else {
            return Ok(());
        };
        let id = thread_id(number);
        let mut participants: Vec<&str> = Vec::new();
        for letter in letters {
            let email = letter.from.1.as_str();
            if !participants.contains(&email) {
                participants.push(email);
            }
        }
        let thread = Thread {
            id: &id,
            subject: first.subject.as_deref(),
            participants,
            message_count: letters.len(),
            started_at: first.at.text(),
            last_message_at: last.at.text(),
        };
        self.lines.add("threads", &id, &last.at.text(), &thread)
    }
}
