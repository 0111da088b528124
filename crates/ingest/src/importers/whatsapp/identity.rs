//! Which chat an export is of. Its messages tell: a chat that is there already has them under the keys they get in it, so
//! neither the name of the file nor how far the export reaches back matters.

use std::collections::HashSet;

use contract::key::RecordKey;
use store::StoreError;

use super::content::{self, Kind};
use super::messages::Message;
use super::order::DateOrder;
use super::stamp::is_space_or_mark;
use super::{hash, key};
use crate::importer::ExistingRecords;

/// Messages that are looked for in each chat: so many of the beginning, and as many of what was read behind it.
const COMPARED: usize = 40;
/// Of these, a few are enough to see that it is another chat.
const GLANCED_AT: usize = 10;
/// So many messages one after the other tell a chat, if nearly all of them are there.
const RUN: usize = 8;
/// People who are named where a chat has no name.
const NAMED_PEOPLE: usize = 4;

/// Names of files that hold one chat, up to the name of the chat.
const FILE_NAMES: [&str; 14] = [
    "WhatsApp Chat with ",
    "WhatsApp Chat - ",
    "WhatsApp Chat mit ",
    "WhatsApp-Chat mit ",
    "Chat de WhatsApp con ",
    "Chat WhatsApp con ",
    "Chat di WhatsApp con ",
    "Discussion WhatsApp avec ",
    "Conversa do WhatsApp com ",
    "WhatsApp-chat met ",
    "WhatsApp Chat met ",
    "Czat WhatsApp z ",
    "Чат WhatsApp с ",
    "WhatsApp-chatt med ",
];

/// The name of a chat, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) by: By,
}

/// Who named a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The app: another name is a reason to doubt that it is the same chat.
    App,
    /// Whoever named the file.
    Somebody,
    /// Nobody; it is called after the people in it, as other chats may be.
    Nobody,
}

/// Messages of an export that can be looked for.
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

    /// The name of the chat that these messages belong to: an existing one, else a new one.
    pub(super) fn chat(
        &self,
        own: &Name,
        existing: &dyn ExistingRecords,
    ) -> Result<String, StoreError> {
        let mut chats = existing.keys("chats")?;
        // The one that the export itself names comes first.
        chats.sort_by_key(|chat| chat.as_str() != own.text);
        for chat in &chats {
            let name = chat.as_str();
            let doubtful = own.by == By::App && name != own.text;
            if self.is_of(name, doubtful, existing)? {
                return Ok(name.to_owned());
            }
        }
        let is_taken = |name: &str| chats.iter().any(|chat| chat.as_str() == name);
        if own.by != By::Nobody || !is_taken(&own.text) {
            return Ok(own.text.clone());
        }
        // The same people may have several chats.
        let numbered = |number: usize| format!("{} ({number})", own.text);
        let free = (2..=chats.len() + 2)
            .map(numbered)
            .find(|name| !is_taken(name));
        Ok(free.unwrap_or_else(|| own.text.clone()))
    }

    fn is_of(
        &self,
        chat: &str,
        doubtful: bool,
        existing: &dyn ExistingRecords,
    ) -> Result<bool, StoreError> {
        if self.messages.is_empty() {
            return Ok(false);
        }
        let there = |message: &&Message| match message.key_in(chat, self.order) {
            Some(key) => existing.holds("messages", &key),
            None => Ok(false),
        };
        let step = self.messages.len().div_ceil(GLANCED_AT).max(1);
        let glanced = self.messages.iter().step_by(step);
        let glanced: Vec<bool> = glanced.map(there).collect::<Result<_, StoreError>>()?;
        if !glanced.contains(&true) {
            return Ok(false);
        }
        let found: Vec<bool> = self.messages.iter().map(there).collect::<Result<_, _>>()?;
        let same = found.iter().filter(|there| **there).count();
        let run = RUN.min(found.len());
        let in_a_run = found
            .windows(run)
            .any(|run| 4 * run.iter().filter(|there| **there).count() >= 3 * run.len());
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
        Ok(in_a_run && same >= enough)
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

    /// The key it has in a chat, as the first of its kind.
    fn key_in(&self, chat: &str, order: DateOrder) -> Option<RecordKey> {
        let minute = self.stamp?.read_as(order).to_minute();
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
        None if file.starts_with("_chat") => (named_by_app(parts.next()?)?, By::App),
        None => (file, By::Somebody),
    };
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let text = name.trim_matches(is_space_or_mark).to_owned();
    (!text.is_empty()).then_some(Name { text, by })
}

/// What follows the app's words. A number that a browser put behind it, because the file was there already, is no part.
fn named_by_app(name: &str) -> Option<&str> {
    let mut known = FILE_NAMES.iter();
    known
        .find_map(|known| name.strip_prefix(known))
        .map(without_number)
}

/// Without ` (1)` or `(1)` at the end.
fn without_number(name: &str) -> &str {
    let cut = name
        .strip_suffix(')')
        .and_then(|open| open.rsplit_once('('))
        .filter(|(_, number)| {
            matches!(number.len(), 1 | 2) && number.bytes().all(|b| b.is_ascii_digit())
        });
    cut.map_or(name, |(before, _)| before.trim_end())
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
