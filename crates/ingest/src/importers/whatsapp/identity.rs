//! Which chat an export is of. Its messages tell: a chat that is there already has them under the keys they get in it, so
//! neither the name of the file nor how far the export reaches back matters. Messages that the owner deleted count as well: a
//! deleted chat does not come back under another name.

use std::collections::HashSet;

use contract::key::RecordKey;
use serde::Deserialize;
use store::StoreError;
use store::records::StoredRecord;

use super::content::{self, Content, Kind};
use super::file_names::named_by_app;
use super::messages::Message;
use super::order::DateOrder;
use super::stamp::is_space_or_mark;
use super::{digits, hash, key};
use crate::importer::{ExistingRecords, Presence};
use crate::readable_key::{may_be_made, readable_key};

/// Messages that are looked for in each chat: so many of the beginning, and as many of what was read behind it.
const COMPARED: usize = 40;
/// Of these, a few are enough to see that it is another chat.
const GLANCED_AT: usize = 10;
/// So many messages one after the other tell a chat, if nearly all of them are there.
const RUN: usize = 8;
const NAMED_PEOPLE: usize = 4;

/// Numbers that are tried behind such a name, beside those of the chats there are.
const MOST_DELETED_NAMES: usize = 100;
/// What keys are made with where the name of the chat is not known any more.
const NAMELESS: &str = "";
/// How much of a time is its minute: `2023-12-31T21:15`.
const MINUTE_CHARS: usize = 16;

/// The name of a chat, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The app: another name is a reason to doubt that it is the same chat.
    App,
    /// Whoever named the file.
    Somebody,
    /// Nobody; it is called after the people in it, as other chats may be.
    Nobody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) name: String,
    /// What the keys of its messages are made with: its name, or nothing if a chat that was deleted had another.
    pub(super) keyed_by: String,
}

impl Identity {
    fn named(name: String) -> Self {
        Self {
            keyed_by: name.clone(),
            name,
        }
    }

    /// Whether nothing but deleted messages tells it.
    pub(super) fn is_nameless(&self) -> bool {
        self.keyed_by == NAMELESS
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Live,
    Deleted,
}

pub(super) struct Sample<'m> {
    messages: Vec<&'m Message>,
    order: DateOrder,
}

impl<'m> Sample<'m> {
    pub(super) fn new(ahead: impl Iterator<Item = &'m Message>, order: DateOrder) -> Self {
        let said = ahead.filter(|message| message.has_author(order));
        let mut messages: Vec<&Message> = said.collect();
        if let Some(rest) = messages.len().checked_sub(COMPARED) {
            let step = rest.div_ceil(COMPARED).max(1);
            let mut at = 0;
            messages.retain(|_| {
                at += 1;
                at <= COMPARED || (at - COMPARED).is_multiple_of(step)
            });
        }
        Self { messages, order }
    }

    /// The chat these messages are of: one that is there already or was deleted, else a new one.
    pub(super) fn chat(
        &self,
        own: &Name,
        existing: &dyn ExistingRecords,
    ) -> Result<Identity, StoreError> {
        let chats = existing.keys("chats")?;
        let names = self.candidates(own, &chats, existing)?;
        let mut deleted = None;
        for name in names {
            let doubtful = own.by == By::App && name != own.text;
            match self.likeness(&name, doubtful, existing)? {
                Some(Likeness::Live) => return Ok(Identity::named(name)),
                Some(Likeness::Deleted) => deleted = deleted.or(Some(name)),
                None => {}
            }
        }
        let nameless = self.likeness(NAMELESS, own.by == By::App, existing)?;
        if nameless == Some(Likeness::Live)
            && let Some(name) = self.chat_of_nameless(existing)?
        {
            return Ok(Identity {
                name,
                keyed_by: NAMELESS.to_owned(),
            });
        }
        if let Some(name) = deleted {
            return Ok(Identity::named(name));
        }
        let name = new_name(own, &chats, existing)?;
        Ok(match nameless {
            Some(_) => Identity {
                name,
                keyed_by: NAMELESS.to_owned(),
            },
            None => Identity::named(name),
        })
    }

    /// The names of chats it may be. The one that the export itself says comes first. A chat whose record was deleted is
    /// named by its messages.
    fn candidates(
        &self,
        own: &Name,
        chats: &[RecordKey],
        existing: &dyn ExistingRecords,
    ) -> Result<Vec<String>, StoreError> {
        let mut names = vec![own.text.clone()];
        let add = |name: String, names: &mut Vec<String>| {
            if !names.contains(&name) {
                names.push(name);
            }
        };
        for chat in chats {
            add(name_of(chat.as_str(), existing)?, &mut names);
        }
        for message in self.glanced() {
            for record in message.of_its_minute(self.order, existing)? {
                if let Some(told) = Told::read(&record.body) {
                    add(name_of(&told.chat, existing)?, &mut names);
                }
            }
        }
        Ok(names)
    }

    /// A few messages, from beginning to end.
    fn glanced(&self) -> impl Iterator<Item = &'m Message> {
        let step = self.messages.len().div_ceil(GLANCED_AT).max(1);
        self.messages.iter().step_by(step).copied()
    }

    /// The chat of messages that have keys without its name.
    fn chat_of_nameless(
        &self,
        existing: &dyn ExistingRecords,
    ) -> Result<Option<String>, StoreError> {
        for message in &self.messages {
            let key = message.key_in(NAMELESS, self.order);
            let records = message.of_its_minute(self.order, existing)?;
            let own = records.iter().find(|one| Some(&one.key) == key.as_ref());
            if let Some(told) = own.and_then(|one| Told::read(&one.body)) {
                return name_of(&told.chat, existing).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether the messages are those of the chat with such keys, and if so, whether any of them is still there.
    fn likeness(
        &self,
        keyed_by: &str,
        doubtful: bool,
        existing: &dyn ExistingRecords,
    ) -> Result<Option<Likeness>, StoreError> {
        let presence = |message: &Message| match message.key_in(keyed_by, self.order) {
            Some(key) => existing.presence("messages", &key),
            None => Ok(Presence::Absent),
        };
        let is_there = |presence: &Presence| *presence != Presence::Absent;
        let glanced: Vec<Presence> = self.glanced().map(presence).collect::<Result<_, _>>()?;
        if !glanced.iter().any(is_there) {
            return Ok(None);
        }
        let all = self.messages.iter().map(|message| presence(message));
        let found: Vec<Presence> = all.collect::<Result<_, _>>()?;
        let count = |found: &[Presence]| found.iter().filter(|one| is_there(one)).count();
        let run = RUN.min(found.len());
        let in_a_run = found
            .windows(run)
            .any(|run| 4 * count(run) >= 3 * run.len());
        let authors: HashSet<&str> = self
            .messages
            .iter()
            .filter_map(|one| one.author())
            .collect();
        // What one person wrote to several chats in the same minutes is in all of them; an answer is not.
        let enough = match (doubtful, authors.len()) {
            (false, _) => 1,
            (true, 0 | 1) => RUN,
            (true, _) => 2,
        };
        if !in_a_run || count(&found) < enough {
            return Ok(None);
        }
        let any_live = found.contains(&Presence::Live);
        Ok(Some(if any_live {
            Likeness::Live
        } else {
            Likeness::Deleted
        }))
    }

    /// Who writes in the chat, as a name for it.
    pub(super) fn people(&self) -> Option<Name> {
        let mut people: Vec<String> = Vec::new();
        for author in self.messages.iter().filter_map(|one| one.author()) {
            let author: String = author.chars().filter(|c| !c.is_control()).collect();
            let author = author.trim_matches(is_space_or_mark).to_owned();
            if !author.is_empty() && !people.contains(&author) {
                people.push(author);
            }
        }
        let more = people.len() > NAMED_PEOPLE;
        people.truncate(NAMED_PEOPLE);
        let mut text = people.join(", ");
        if more {
            text.push_str(" and others");
        }
        (!text.is_empty()).then_some(Name {
            text,
            by: By::Nobody,
        })
    }
}

fn new_name(
    own: &Name,
    chats: &[RecordKey],
    existing: &dyn ExistingRecords,
) -> Result<String, StoreError> {
    // The same people may have several chats, also one that was deleted.
    let is_taken = |name: &str| -> Result<bool, StoreError> {
        for key in [name.to_owned(), readable_key(name)] {
            let key = RecordKey::single(key).ok();
            let presence = key
                .map(|key| existing.presence("chats", &key))
                .transpose()?;
            if presence.is_some_and(|presence| presence != Presence::Absent) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    if own.by != By::Nobody || !is_taken(&own.text)? {
        return Ok(own.text.clone());
    }
    for number in 2..=chats.len() + MOST_DELETED_NAMES {
        let name = format!("{} ({number})", own.text);
        if !is_taken(&name)? {
            return Ok(name);
        }
    }
    Ok(own.text.clone())
}

/// The name of a chat with such a key. A name that could be no key stands in the record of the chat.
fn name_of(chat: &str, existing: &dyn ExistingRecords) -> Result<String, StoreError> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let key = RecordKey::single(chat).ok();
    let Some(key) = key.filter(|_| may_be_made(chat)) else {
        return Ok(chat.to_owned());
    };
    let body = existing.body("chats", &key)?;
    let named = body.and_then(|body| serde_json::from_str::<Named>(&body).ok());
    Ok(named.map_or_else(|| chat.to_owned(), |named| named.name))
}

/// What a stored message tells of its chat and of itself.
#[derive(Deserialize)]
struct Told {
    chat: String,
    #[serde(default)]
    author: Option<String>,
    sent_at: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    attachment: Option<String>,
    text: String,
}

impl Told {
    fn read(body: &str) -> Option<Self> {
        serde_json::from_str(body).ok()
    }
}

/// The key that a stored message would have in a chat without a name. It is noted when the owner deletes the message, for
/// then the chat's name may go too, and with it the way to the message's own key.
pub(crate) fn nameless_key(key: &RecordKey, body: &str) -> Option<RecordKey> {
    let told = Told::read(body)?;
    let minute = told.sent_at.get(..MINUTE_CHARS)?;
    let is_media = told.kind == Kind::Media.as_str();
    let content = Content {
        // Words that stand instead of a file count as such where they do not stay in the text.
        kind: if is_media && (told.attachment.is_some() || !content::is_instead_of_file(&told.text))
        {
            Kind::Media
        } else {
            Kind::Message
        },
        author: told.author.as_deref(),
        text: told.text,
        attachment: None,
        edited: false,
    };
    let hash = hash(NAMELESS, minute, &content);
    // Equal messages of one minute are counted behind the hash.
    let mut parts = key.as_str().splitn(3, '-').skip(2);
    let number = parts.next().map(|number| format!("-{number}"));
    let key = self::key(minute, &hash, 0) + &number.unwrap_or_default();
    RecordKey::single(key).ok()
}

impl Message {
    fn author(&self) -> Option<&str> {
        content::split_author(&self.rest).0
    }

    /// Whether somebody said it at a time there is.
    fn has_author(&self, order: DateOrder) -> bool {
        let possible = |stamp: super::stamp::Stamp| stamp.read_as(order).is_possible();
        self.fault.is_none()
            && self.stamp.is_some_and(possible)
            && self.author().is_some()
            && content::read(&self.rest, None).kind != Kind::System
    }

    /// Stored messages of the same minute.
    fn of_its_minute(
        &self,
        order: DateOrder,
        existing: &dyn ExistingRecords,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        match self.minute(order) {
            Some(minute) => existing.begun_with("messages", &format!("{}-", digits(&minute))),
            None => Ok(Vec::new()),
        }
    }

    fn minute(&self, order: DateOrder) -> Option<String> {
        Some(self.stamp?.read_as(order).to_minute())
    }

    /// The key it has in a chat, as the first of its kind.
    pub(super) fn key_in(&self, chat: &str, order: DateOrder) -> Option<RecordKey> {
        let minute = self.minute(order)?;
        let content = content::read(&self.rest, Some(chat));
        let hash = hash(chat, &minute, &content);
        RecordKey::single(key(&minute, &hash, 0)).ok()
    }
}

/// The name of the chat, as the app puts it into the name of the file, or of the folder if the file is called `_chat`,
/// as every iPhone calls it. Any other name somebody chose for the file is the chat's name.
pub(super) fn named_by_path(path: &str) -> Option<Name> {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next().unwrap_or_default();
    let file = file.trim_end_matches(".gz").trim_end_matches(".txt");
    let (name, by) = match named_by_app(file) {
        Some(chat) => (chat, By::App),
        None if file.starts_with("_chat") => {
            let folder = parts.next()?;
            (
                named_by_app(folder.strip_suffix(".zip").unwrap_or(folder))?,
                By::App,
            )
        }
        None => (file, By::Somebody),
    };
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let text = name.trim_matches(is_space_or_mark).to_owned();
    (!text.is_empty()).then_some(Name { text, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_tells_the_chat() {
        for (file, chat) in [
            ("WhatsApp Chat with Anna.txt", Some("Anna")),
            ("WhatsApp Chat with Anna (1).txt", Some("Anna")),
            (
                "WhatsApp Chat with Class of (1998).txt.gz",
                Some("Class of (1998)"),
            ),
            ("WhatsApp Chat mit Anna & Ben.txt", Some("Anna & Ben")),
            ("김민수님과의 WhatsApp 대화 (2).txt", Some("김민수")),
            ("田中とのWhatsAppチャット.txt", Some("田中")),
            ("WhatsApp 与 李雷 的对话.txt", Some("李雷")),
            ("Anna.txt", Some("Anna")),
            ("exports/WhatsApp Chat - Anna/_chat.txt", Some("Anna")),
            ("WhatsApp Chat - Anna/Ben.txt", Some("Ben")),
            ("exports/_chat.txt", None),
            ("_chat.txt", None),
            ("_chat 2.txt", None),
            (".txt", None),
            ("", None),
        ] {
            assert_eq!(
                named_by_path(file).as_ref().map(|name| name.text.as_str()),
                chat,
                "{file}"
            );
        }
    }
}
