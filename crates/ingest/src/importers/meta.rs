//! Facebook and Instagram, whose archives are alike: JSON files by what they hold, and a folder per conversation. Texts are UTF-8 that was
//! taken for another encoding and written once more, which is undone here.

mod conversations;
mod lists;
mod recognising;
mod texts;

use std::collections::HashMap;
use std::io::BufRead as _;

use serde_json::Value;

use self::conversations::Conversation;
use self::lists::{Listed, MEMBERS, OF_PEOPLE, listed_in};
use self::recognising::{is_of_instagram, recognise};
pub(crate) use self::texts::mended_text;
use self::texts::{hashtags, last_part, mended, millis_to_moment};
use super::json_members::{list, members_of, seconds_to_moment, text, unix_seconds};
use super::pieces::{Converter, Cut, Made, malformed, parse_json};
use super::social::{self, Like, Message, Person, Post};
use crate::accept::Acceptor;
use crate::exports::{Claims, Companions, Declared, Known, Verdict};
use crate::importer::Importer;
use crate::input::Input;
use crate::readable_key::short_hash;
use crate::rejection::Rejection;
use crate::shape::Shape;

const FACEBOOK_SHAPE: Shape = social::shape("facebook", "Facebook");
const INSTAGRAM_SHAPE: Shape = social::shape("instagram", "Instagram");

pub(crate) const FACEBOOK: Known = Known {
    name: "facebook",
    title: "a Facebook archive (JSON)",
    declaration: Declared::Shape(FACEBOOK_SHAPE),
    origin: "Facebook: Settings > Your information > Download your information, as JSON",
    contents: "posts, comments, reactions, friends and Messenger's conversations; pictures are named, not kept",
    recognise: |file| {
        if is_of_instagram(file) {
            Verdict::Unlike
        } else {
            recognise(file)
        }
    },
    importer,
};

pub(crate) const INSTAGRAM: Known = Known {
    name: "instagram",
    title: "an Instagram archive (JSON)",
    declaration: Declared::Shape(INSTAGRAM_SHAPE),
    origin: "Instagram: Settings > Accounts Centre > Your information and permissions > Download your information, as JSON",
    contents: "posts, comments, likes, followers and conversations; pictures are named, not kept",
    recognise: |file| {
        if is_of_instagram(file) {
            recognise(file)
        } else {
            Verdict::Unlike
        }
    },
    importer,
};

fn importer<'a>(
    input: Input,
    acceptor: &'a Acceptor<'a>,
    companions: &'a Companions,
) -> Box<dyn Importer + 'a> {
    let converter = Meta {
        path: input.inside().to_owned(),
        seen: HashMap::new(),
        claims: companions.claims.clone(),
    };
    let mut reader = input.into_reader();
    // What cannot be read is told when it is read.
    let members = reader.fill_buf().map(members_of).unwrap_or_default();
    let mut members = members.iter();
    // Who is in a conversation may take more than what is looked at here.
    if members.any(|name| name == "participants" || name == "messages") {
        return conversations::importer(reader, acceptor, converter);
    }
    Cut::Members(&MEMBERS).importer(reader, acceptor, converter)
}

struct Meta {
    path: String,
    /// How often a key was given.
    seen: HashMap<String, u32>,
    /// Which people took which names.
    claims: Claims,
}

impl Meta {
    /// A key of what has no name: its time and a hash of what tells it, numbered where that is not enough.
    fn key(&mut self, time: &str, telling: &str) -> String {
        let key = format!("{time}-{}", short_hash(telling));
        let count = self.seen.entry(key.clone()).or_default();
        *count += 1;
        match count {
            1 => key,
            count => format!("{key}-{count}"),
        }
    }

    /// A message, of which its conversation told when it was sent.
    fn message(&mut self, message: &Value, millis: i64, chat: &Conversation, made: &mut Made) {
        let author = text(message, "sender_name").or_else(|| text(message, "senderName"));
        let telling = format!("{}\n{}", chat.id, author.unwrap_or_default());
        let kinds = ["photos", "videos", "audio_files", "files", "gifs", "media"];
        let files = kinds.iter().flat_map(|kind| list(message, kind));
        let files = files.filter_map(|file| text(file, "uri").map(last_part));
        let share = message.get("share").unwrap_or(&Value::Null);
        let link = text(share, "link");
        let reactions = list(message, "reactions").iter();
        let reactions = reactions.filter_map(|one| text(one, "reaction"));
        let said = text(message, "content").or_else(|| text(message, "text"));
        // What was passed on has words of its own.
        let passed_on = text(share, "share_text").filter(|shared| Some(*shared) != said);
        let said: Vec<&str> = said.into_iter().chain(passed_on).collect();
        let one = Message {
            id: self.key(&millis.to_string(), &telling),
            conversation_id: chat.id.clone(),
            conversation: Some(chat.title.clone()),
            participants: chat.people.clone(),
            author: author.map(str::to_owned),
            sent_at: millis_to_moment(millis),
            text: Some(said.join("\n")),
            links: link.map(str::to_owned).into_iter().collect(),
            files: files.collect(),
            reactions: reactions.map(str::to_owned).collect(),
            ..Message::default()
        };
        made.add("messages", one.record());
    }

    /// An entry of Facebook: a reaction, or a post or a comment.
    fn entry(&mut self, value: &Value, kind: &'static str, made: &mut Made) {
        let data = list(value, "data").iter();
        let find = |name: &str| data.clone().find_map(|one| one.get(name));
        let seconds = value
            .get("timestamp")
            .map(ToString::to_string)
            .unwrap_or_default();
        let created_at = seconds_to_moment(&seconds);
        let title = text(value, "title").map(str::to_owned);
        if let Some(reaction) = find("reaction") {
            let like = Like {
                id: self.key(&seconds, title.as_deref().unwrap_or_default()),
                kind: text(reaction, "reaction")
                    .unwrap_or("like")
                    .to_ascii_lowercase(),
                title,
                created_at,
                ..Like::default()
            };
            return made.add("likes", like.record());
        }
        let attached = list(value, "attachments")
            .iter()
            .flat_map(|one| list(one, "data"));
        let media = attached
            .clone()
            .filter_map(|one| text(one.get("media")?, "uri"));
        let links = attached.filter_map(|one| text(one.get("external_context")?, "url"));
        let comment = find("comment");
        let said = match comment {
            Some(comment) => text(comment, "comment"),
            None => find("post").and_then(Value::as_str),
        };
        let telling = format!(
            "{}\n{}",
            title.as_deref().unwrap_or_default(),
            said.unwrap_or_default()
        );
        let post = Post {
            id: self.key(&seconds, &telling),
            kind: if comment.is_some() { "comment" } else { kind },
            title,
            text: Some(words_of(value, said)),
            author: comment
                .and_then(|comment| text(comment, "author"))
                .map(str::to_owned),
            community: comment
                .and_then(|comment| text(comment, "group"))
                .map(str::to_owned),
            created_at,
            links: links.map(str::to_owned).collect(),
            files: media.map(last_part).collect(),
            ..Post::default()
        };
        made.add("posts", post.record());
    }

    /// A post of Instagram: pictures, of which one or the post itself has words and a time.
    fn pictures(&mut self, value: &Value, kind: &'static str, made: &mut Made) {
        let media = match list(value, "media") {
            // A story is a picture by itself.
            [] => std::slice::from_ref(value),
            media => media,
        };
        let first = media.first().unwrap_or(&Value::Null);
        let mut said: Vec<&str> = text(value, "title").into_iter().collect();
        for words in media.iter().filter_map(|one| text(one, "title")) {
            if !said.contains(&words) {
                said.push(words);
            }
        }
        let said = said.join("\n");
        let at = value
            .get("creation_timestamp")
            .or_else(|| first.get("creation_timestamp"));
        let seconds = at.map(ToString::to_string).unwrap_or_default();
        let files = media
            .iter()
            .filter_map(|one| text(one, "uri").map(last_part));
        let files: Vec<String> = files.collect();
        let post = Post {
            id: self.key(&seconds, files.first().map_or("", String::as_str)),
            kind,
            tags: hashtags(&said),
            text: Some(said),
            created_at: seconds_to_moment(&seconds),
            files,
            ..Post::default()
        };
        made.add("posts", post.record());
    }

    /// Entries of Instagram that name a person or a page, with a time.
    fn named(&mut self, value: &Value, kind: &'static str, made: &mut Made) {
        let title = text(value, "title").map(str::to_owned);
        for one in list(value, "string_list_data") {
            let url = text(one, "href").map(str::to_owned);
            let at = unix_seconds(one, "timestamp");
            if !OF_PEOPLE.contains(&kind) {
                add_like(kind, (title.clone(), url, at), made);
                continue;
            }
            let name = text(one, "value").map(str::to_owned);
            let name = name.or_else(|| title.clone());
            let person = Person {
                id: name.clone().unwrap_or_default(),
                name,
                kind,
                since: at,
                url,
                ..Person::default()
            };
            made.add("people", person.record());
        }
        let labelled = value.get("string_map_data").and_then(Value::as_object);
        let labelled = labelled.into_iter().flatten();
        // The labels are in the language of the account; what stands behind them is in the same order everywhere.
        let timed = labelled
            .clone()
            .map(|(_, one)| one)
            .find(|one| unix_seconds(one, "timestamp").is_some());
        if kind == "saved" {
            let url = timed.and_then(|one| text(one, "href")).map(str::to_owned);
            let at = timed.and_then(|one| unix_seconds(one, "timestamp"));
            return add_like(kind, (title, url, at), made);
        }
        let mut said = labelled.filter_map(|(_, one)| text(one, "value"));
        if let Some(comment) = said.next() {
            let at = timed.and_then(|one| one.get("timestamp"));
            let seconds = at.map(ToString::to_string).unwrap_or_default();
            let post = Post {
                id: self.key(&seconds, comment),
                kind: "comment",
                title: said.next().map(|owner| format!("On a post of {owner}")),
                text: Some(comment.to_owned()),
                created_at: seconds_to_moment(&seconds),
                ..Post::default()
            };
            made.add("posts", post.record());
        }
    }

    fn element(&mut self, value: &Value, made: &mut Made) -> Result<(), Rejection> {
        let file_name = self.path.rsplit('/').next().unwrap_or_default();
        if value.get("string_list_data").is_some() {
            let kind = if file_name.starts_with("following") {
                "following"
            } else {
                "follower"
            };
            self.named(value, kind, made);
        } else if let Some(labelled) = value.get("string_map_data") {
            // Lists of other things have labels too, but no pictures; their names are English everywhere.
            let has_picture = value.get("media_list_data").is_some();
            if has_picture || labelled.get("Comment").is_some() || file_name.contains("comment") {
                self.named(value, "comment", made);
            }
        } else if value.get("label_values").is_some() {
            labelled_reaction(value, made);
        } else if value.get("media").is_some() {
            self.pictures(value, "post", made);
        } else if value.get("timestamp").is_some() {
            self.entry(value, "post", made);
        } else {
            return Err(malformed("it has no time, and nothing that is known"));
        }
        Ok(())
    }

    fn listed(&mut self, value: &Value, listed: Listed, made: &mut Made) {
        match listed {
            Listed::Entries => self.entry(value, "post", made),
            Listed::Comments => self.entry(value, "comment", made),
            Listed::Saved => self.saved(value, made),
            Listed::Named(kind) => self.named(value, kind, made),
            Listed::Pictures(kind) => self.pictures(value, kind, made),
            Listed::People(kind) => self.person(value, kind, made),
        }
    }

    /// Somebody of whom only a name is told. Several people may have one; those behind the first are told apart by when they came.
    fn person(&self, value: &Value, kind: &'static str, made: &mut Made) {
        let name = text(value, "name").unwrap_or_default();
        let since = unix_seconds(value, "timestamp");
        let id = if self.claims.take(&format!("{kind}-{name}"), &since) {
            name.to_owned()
        } else {
            format!(
                "{name}#{}",
                short_hash(since.as_deref().unwrap_or_default())
            )
        };
        let person = Person {
            id,
            name: Some(name.to_owned()),
            kind,
            since,
            ..Person::default()
        };
        made.add("people", person.record());
    }

    /// What the owner of an account of Facebook saved.
    fn saved(&mut self, value: &Value, made: &mut Made) {
        let seconds = value
            .get("timestamp")
            .map(ToString::to_string)
            .unwrap_or_default();
        let title = text(value, "title");
        let attached = list(value, "attachments").iter();
        let mut attached = attached.flat_map(|one| list(one, "data"));
        let page = attached.find_map(|one| one.get("external_context"));
        let page = page.unwrap_or(&Value::Null);
        let like = Like {
            id: self.key(&seconds, &format!("saved\n{}", title.unwrap_or_default())),
            kind: "saved".to_owned(),
            title: text(page, "name").or(title).map(str::to_owned),
            text: text(page, "name").and(title).map(str::to_owned),
            created_at: seconds_to_moment(&seconds),
            url: text(page, "url").map(str::to_owned),
            ..Like::default()
        };
        made.add("likes", like.record());
    }
}

/// Adds what was liked or saved: whose it is, where it stands and when.
fn add_like(
    kind: &str,
    (author, url, created_at): (Option<String>, Option<String>, Option<String>),
    made: &mut Made,
) {
    let address = url.as_deref().unwrap_or_default();
    let telling = match kind {
        "like" => address.to_owned(),
        // Several comments of a post have its address.
        kind => format!("{kind}\n{address}\n{created_at:?}"),
    };
    let like = Like {
        id: short_hash(&telling),
        kind: kind.to_owned(),
        author,
        created_at,
        url,
        ..Like::default()
    };
    made.add("likes", like.record());
}

/// What a post says, and below it what is said of its pictures.
fn words_of(value: &Value, said: Option<&str>) -> String {
    let mut words: Vec<&str> = said.into_iter().collect();
    let attached = list(value, "attachments").iter();
    for one in attached.flat_map(|one| list(one, "data")) {
        let media = one.get("media").unwrap_or(&Value::Null);
        // Words that stand with a picture are often those of the post.
        if let Some(description) = text(media, "description").filter(|said| !words.contains(said)) {
            words.push(description);
        }
    }
    words.join("\n")
}

/// A reaction of Facebook as it has them since 2024: labels in the language of the account, of which one leads to what was liked.
fn labelled_reaction(value: &Value, made: &mut Made) {
    let labelled = list(value, "label_values").iter();
    let url = labelled.clone().find_map(|one| text(one, "href"));
    let mut said = labelled.filter(|one| one.get("href").is_none());
    let mut said = || said.find_map(|one| text(one, "value")).map(str::to_owned);
    let (kind, author) = (said(), said());
    let at = unix_seconds(value, "timestamp");
    let kind = kind.unwrap_or_else(|| "like".to_owned()).to_lowercase();
    let id = text(value, "fbid").map(|id| format!("reaction-{id}"));
    let like = Like {
        id: id.unwrap_or_else(|| short_hash(&format!("{kind}\n{url:?}\n{at:?}"))),
        kind,
        author,
        created_at: at,
        url: url.map(str::to_owned),
        ..Like::default()
    };
    made.add("likes", like.record());
}

impl Converter for Meta {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        self.element(&mended(parse_json(piece)?), made)
    }

    fn convert_in(&mut self, member: &str, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = mended(parse_json(piece)?);
        if let Some(listed) = listed_in(member) {
            self.listed(&value, listed, made);
        }
        Ok(())
    }
}
