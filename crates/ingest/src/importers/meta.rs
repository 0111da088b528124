//! Facebook and Instagram, whose archives are alike: JSON files by what they hold, and a folder per conversation. Texts are UTF-8 that was
//! taken for another encoding and written once more, which is undone here.

use serde_json::Value;
use std::collections::HashMap;

use super::json_members::{list, seconds_to_moment, text, unix_seconds};
use super::outline::first_members;
use super::pieces::{Converter, Cut, Made, malformed, parse_json};
use super::social::{self, Like, Message, Person, Post};
use crate::accept::Acceptor;
use crate::exports::{Candidate, Declared, Known, Verdict};
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
        if is_of_instagram(file.path) {
            Verdict::Unlike
        } else {
            recognise(file)
        }
    },
    importer: |input, acceptor, _| importer(input, acceptor),
};

pub(crate) const INSTAGRAM: Known = Known {
    name: "instagram",
    title: "an Instagram archive (JSON)",
    declaration: Declared::Shape(INSTAGRAM_SHAPE),
    origin: "Instagram: Settings > Accounts Centre > Your information and permissions > Download your information, as JSON",
    contents: "posts, comments, likes, followers and conversations; pictures are named, not kept",
    recognise: |file| {
        if is_of_instagram(file.path) || is_only_of_instagram(file) {
            recognise(file)
        } else {
            Verdict::Unlike
        }
    },
    importer: |input, acceptor, _| importer(input, acceptor),
};

fn importer<'a>(input: Input, acceptor: &'a Acceptor<'a>) -> Box<dyn Importer + 'a> {
    let converter = Meta {
        path: input.inside().to_owned(),
        seen: HashMap::new(),
    };
    Cut::Whole.importer(input.into_reader(), acceptor, converter)
}

/// Whether the path is one of Instagram's archive: conversations look the same in both.
fn is_of_instagram(path: &str) -> bool {
    path.to_ascii_lowercase().contains("instagram")
}

/// Lists that only Instagram writes, by members that are nowhere else.
fn is_only_of_instagram(file: &Candidate<'_>) -> bool {
    let (members, _) = first_members(file.head, "");
    members.iter().any(|name| {
        [
            "string_list_data",
            "string_map_data",
            "likes_media_likes",
            "relationships_following",
        ]
        .contains(&name.as_str())
    })
}

fn recognise(file: &Candidate<'_>) -> Verdict {
    let (members, _) = first_members(file.head, "");
    let has = |name: &str| members.iter().any(|member| member == name);
    // Of such lists there are many elsewhere.
    let is_of_archive = ["facebook", "instagram", "your_posts", "likes_and_reactions"]
        .iter()
        .any(|name| file.path.to_ascii_lowercase().contains(name));
    let is_list = file.head.trim_ascii_start().starts_with(b"[");
    let is_known = (has("participants") && has("messages"))
        || has("comments_v2")
        || has("friends_v2")
        || has("likes_media_likes")
        || has("relationships_following")
        || has("string_list_data")
        || has("string_map_data")
        || (is_list && has("timestamp") && is_of_archive && (has("data") || has("attachments")))
        || (is_list && has("media") && is_of_archive);
    if is_known {
        return Verdict::Takes;
    }
    let path = file.path.to_ascii_lowercase();
    let is_called = |ending: &str| path.ends_with(ending);
    let is_archive = ["your_facebook_activity", "your_instagram_activity"];
    if is_archive.iter().any(|folder| path.contains(folder)) && is_called(".json") {
        return Verdict::Leaves("parts of an archive of Meta that hold no posts or messages");
    }
    if is_called(".html") && (path.contains("message_") || path.contains("your_posts")) {
        return Verdict::Misses("it is a page; ask for the archive as JSON");
    }
    Verdict::Unlike
}

struct Meta {
    path: String,
    /// How often a key was given.
    seen: HashMap<String, u32>,
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

    fn conversation(&mut self, value: &Value, made: &mut Made) {
        let folder = self.path.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let thread = text(value, "thread_path").and_then(|path| path.rsplit('/').next());
        let thread = thread.map_or(folder, str::to_owned);
        let participants = list(value, "participants").iter();
        let names: Vec<&str> = participants.filter_map(|one| text(one, "name")).collect();
        let title = text(value, "title").map_or_else(|| names.join(", "), str::to_owned);
        // The newest comes first, and equal keys are numbered as time goes on.
        for message in list(value, "messages").iter().rev() {
            let millis = message.get("timestamp_ms").and_then(Value::as_i64);
            let Some(millis) = millis else {
                made.reject("a message has no time in 'timestamp_ms'");
                continue;
            };
            let author = text(message, "sender_name").map(str::to_owned);
            let telling = format!("{thread}\n{}", author.as_deref().unwrap_or_default());
            let kinds = ["photos", "videos", "audio_files", "files", "gifs"];
            let files = kinds.iter().flat_map(|kind| list(message, kind));
            let files = files.filter_map(|file| text(file, "uri").map(last_part));
            let link = message.get("share").and_then(|share| text(share, "link"));
            let reactions = list(message, "reactions").iter();
            let reactions = reactions.filter_map(|one| text(one, "reaction"));
            let one = Message {
                id: self.key(&millis.to_string(), &telling),
                conversation_id: thread.clone(),
                conversation: Some(title.clone()),
                author,
                sent_at: millis_to_moment(millis),
                text: text(message, "content").map(str::to_owned),
                links: link.map(str::to_owned).into_iter().collect(),
                files: files.collect(),
                reactions: reactions.map(str::to_owned).collect(),
                ..Message::default()
            };
            made.add("messages", one.record());
        }
    }

    /// An entry of Facebook: a post, a comment or a reaction.
    fn entry(&mut self, value: &Value, made: &mut Made) {
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
            kind: if comment.is_some() { "comment" } else { "post" },
            title,
            text: said.map(str::to_owned),
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
    fn pictures(&mut self, value: &Value, made: &mut Made) {
        let media = list(value, "media");
        let first = media.first().unwrap_or(&Value::Null);
        let said = text(value, "title").or_else(|| text(first, "title"));
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
            kind: "post",
            text: said.map(str::to_owned),
            created_at: seconds_to_moment(&seconds),
            files,
            ..Post::default()
        };
        made.add("posts", post.record());
    }

    /// Entries of Instagram that name a person or a page, with a time.
    fn named(&mut self, value: &Value, kind: &'static str, made: &mut Made) {
        for one in list(value, "string_list_data") {
            let title = text(value, "title").map(str::to_owned);
            let url = text(one, "href").map(str::to_owned);
            let at = unix_seconds(one, "timestamp");
            let name = text(one, "value")
                .map(str::to_owned)
                .or_else(|| title.clone());
            if kind == "like" {
                let like = Like {
                    id: short_hash(url.as_deref().unwrap_or_default()),
                    kind: kind.to_owned(),
                    author: title,
                    created_at: at,
                    url,
                    ..Like::default()
                };
                made.add("likes", like.record());
            } else {
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
        }
        let told = value.get("string_map_data").unwrap_or(&Value::Null);
        let said = |name: &str| told.get(name).and_then(|one| text(one, "value"));
        if let Some(comment) = said("Comment") {
            let at = told.get("Time").and_then(|time| time.get("timestamp"));
            let seconds = at.map(ToString::to_string).unwrap_or_default();
            let post = Post {
                id: self.key(&seconds, comment),
                kind: "comment",
                title: said("Media Owner").map(|owner| format!("On a post of {owner}")),
                text: Some(comment.to_owned()),
                created_at: seconds_to_moment(&seconds),
                ..Post::default()
            };
            made.add("posts", post.record());
        }
    }

    fn element(&mut self, value: &Value, made: &mut Made) -> Result<(), Rejection> {
        let is_named =
            value.get("string_list_data").is_some() || value.get("string_map_data").is_some();
        if is_named {
            let kind = if self.path.contains("following") {
                "following"
            } else {
                "follower"
            };
            self.named(value, kind, made);
        } else if value.get("media").is_some() {
            self.pictures(value, made);
        } else if value.get("timestamp").is_some() {
            self.entry(value, made);
        } else {
            return Err(malformed("it has no time, and nothing that is known"));
        }
        Ok(())
    }
}

fn last_part(uri: &str) -> String {
    uri.rsplit('/').next().unwrap_or(uri).to_owned()
}

fn millis_to_moment(millis: i64) -> Option<String> {
    seconds_to_moment(&format!(
        "{}.{:03}",
        millis.div_euclid(1_000),
        millis.rem_euclid(1_000)
    ))
}

/// Undoes what was done to the texts: every byte of UTF-8 was written as a character of its own.
fn mended(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let bytes: Option<Vec<u8>> = text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).ok())
                .collect();
            let mended = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            Value::String(mended.unwrap_or(text))
        }
        Value::Array(items) => items.into_iter().map(mended).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(name, value)| (name, mended(value))).collect())
        }
        other => other,
    }
}

impl Converter for Meta {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = mended(parse_json(piece)?);
        if value.get("messages").is_some() {
            self.conversation(&value, made);
            return Ok(());
        }
        for entry in list(&value, "comments_v2") {
            self.entry(entry, made);
        }
        for friend in list(&value, "friends_v2") {
            let name = text(friend, "name").unwrap_or_default();
            let person = Person {
                id: name.to_owned(),
                name: Some(name.to_owned()),
                kind: "friend",
                since: unix_seconds(friend, "timestamp"),
                ..Person::default()
            };
            made.add("people", person.record());
        }
        for (member, kind) in [
            ("likes_media_likes", "like"),
            ("relationships_following", "following"),
        ] {
            for one in list(&value, member) {
                self.named(one, kind, made);
            }
        }
        for one in value.as_array().map_or(&[][..], Vec::as_slice) {
            if let Err(rejection) = self.element(one, made) {
                made.reject(rejection.message);
            }
        }
        Ok(())
    }
}
