//! The archive of X, once Twitter: each file is a script that sets one list, `window.YTD.tweets.part0 = [ … ]`.

use serde_json::Value;
use std::io::BufRead as _;

use super::json_members::{each_text, list, moment, text};
use super::mail::read_date;
use super::markup::decoded;
use super::pieces::{Converter, Cut, Made, malformed, names_only, parse_json};
use super::social::{self, Like, Message, Person, Post};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::rejection::Rejection;
use crate::shape::Shape;

const SHAPE: Shape = social::shape("x", "X");

pub(crate) const EXPORT: Known = Known {
    name: "x",
    title: "an archive of X (Twitter)",
    declaration: Declared::Shape(SHAPE),
    origin: "X: Settings > Your account > Download an archive of your data",
    contents: "posts, direct messages, likes, followers and who is followed; pictures are named, not kept",
    recognise,
    importer: |input, acceptor, companions| {
        let mut reader = input.into_reader();
        // What cannot be read is told when the list is.
        let _ = reader.skip_until(b'=');
        Cut::Elements.importer(reader, acceptor, X { companions })
    },
};

/// The name under which the archive keeps the owner's.
const OWNER: &str = "owner";

/// The name of the list that a file sets.
fn list_name(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head.get(..head.len().min(200))?);
    let (begin, _) = head.split_once('=')?;
    let name = begin.trim().strip_prefix("window.YTD.")?;
    Some(name.split('.').next()?.to_owned())
}

fn recognise(file: &Candidate<'_>) -> Verdict {
    let Some(name) = list_name(file.head) else {
        let begins = b"window.__THAR_CONFIG";
        let is_page = file.file_name() == "Your archive.html";
        if is_page || (file.file_name() == "manifest.js" && file.head.starts_with(begins)) {
            return Verdict::Leaves("parts of an archive of X that hold no posts or messages");
        }
        return Verdict::Unlike;
    };
    match name.as_str() {
        "account" => Verdict::Before(0),
        "tweets"
        | "tweet"
        | "community_tweet"
        | "twitter_circle_tweet"
        | "note_tweet"
        | "direct_messages"
        | "direct_messages_group"
        | "direct_message"
        | "direct_message_group"
        | "like"
        | "follower"
        | "following" => Verdict::Takes,
        _ => Verdict::Leaves("parts of an archive of X that hold no posts or messages"),
    }
}

struct X<'a> {
    companions: &'a Companions,
}

/// A number that is written as a text.
fn count(value: &Value, name: &str) -> Option<u64> {
    text(value, name)?.parse().ok()
}

impl X<'_> {
    fn name_of(&self, id: &str) -> String {
        self.companions.name(id).unwrap_or_else(|| id.to_owned())
    }

    fn post(&self, tweet: &Value, made: &mut Made) -> Result<(), Rejection> {
        let id = text(tweet, "id_str").or_else(|| text(tweet, "id"));
        let id = id.ok_or_else(|| malformed("the post has no id"))?;
        let entities = tweet.get("entities").unwrap_or(&Value::Null);
        let said = text(tweet, "full_text").or_else(|| text(tweet, "text"));
        let mut said = decoded(said.unwrap_or_default());
        let mut links = Vec::new();
        // Links are shortened in the text, and told in full beside it.
        for url in list(entities, "urls") {
            if let (Some(short), Some(long)) = (text(url, "url"), text(url, "expanded_url")) {
                said = said.replace(short, long);
                links.push(long.to_owned());
            }
        }
        let answered = text(tweet, "in_reply_to_status_id_str");
        let media = tweet.get("extended_entities").unwrap_or(entities);
        let files = list(media, "media")
            .iter()
            .filter_map(|one| text(one, "media_url_https"));
        let owner = self.companions.name(OWNER);
        let url = owner
            .as_ref()
            .map(|owner| format!("https://x.com/{owner}/status/{id}"));
        let post = Post {
            id: id.to_owned(),
            kind: match answered {
                _ if said.starts_with("RT @") => "repost",
                Some(_) => "reply",
                None => "post",
            },
            text: Some(said),
            tags: each_text(list(entities, "hashtags"), "text"),
            author: owner,
            created_at: text(tweet, "created_at").and_then(day_and_time),
            in_reply_to: answered.map(str::to_owned),
            url,
            links,
            files: files.map(str::to_owned).collect(),
            likes: count(tweet, "favorite_count"),
            reposts: count(tweet, "retweet_count"),
            ..Post::default()
        };
        made.add("posts", post.record());
        Ok(())
    }

    fn conversation(&self, conversation: &Value, made: &mut Made) {
        let id = text(conversation, "conversationId").unwrap_or_default();
        let people = self.participants(conversation, id);
        // The newest comes first, and so does the name that a group has now.
        let events = list(conversation, "messages").iter();
        let mut named =
            events.filter_map(|event| text(event.get("conversationNameUpdate")?, "name"));
        let name = text(conversation, "name").or_else(|| named.next());
        for event in list(conversation, "messages") {
            // Others tell who joined, left or reacted.
            let Some(message) = event.get("messageCreate") else {
                continue;
            };
            let Some(message_id) = text(message, "id") else {
                made.reject("a message has no id");
                continue;
            };
            let mut said = text(message, "text").map(decoded);
            let mut links = Vec::new();
            for url in list(message, "urls") {
                let Some(long) = text(url, "expanded") else {
                    continue;
                };
                if let (Some(said), Some(short)) = (&mut said, text(url, "url")) {
                    *said = said.replace(short, long);
                }
                links.push(long.to_owned());
            }
            let files = list(message, "mediaUrls").iter().filter_map(Value::as_str);
            let reactions = list(message, "reactions").iter();
            let reactions = reactions.filter_map(|one| text(one, "reactionKey"));
            let one = Message {
                id: message_id.to_owned(),
                conversation_id: id.to_owned(),
                conversation: name.map(str::to_owned),
                participants: people.clone(),
                author: text(message, "senderId").map(|id| self.name_of(id)),
                sent_at: moment(message, "createdAt"),
                text: said,
                links,
                files: files.map(str::to_owned).collect(),
                reactions: reactions.map(str::to_owned).collect(),
                ..Message::default()
            };
            made.add("messages", one.record());
        }
    }
}

impl X<'_> {
    /// The people of a conversation: the id of one between two is made of theirs, others tell who joins, writes and reads.
    fn participants(&self, conversation: &Value, id: &str) -> Vec<String> {
        let is_number = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let mut ids: Vec<&str> = match id.split_once('-') {
            Some((one, other)) => vec![one, other],
            None => Vec::new(),
        };
        ids.retain(is_number);
        for event in list(conversation, "messages") {
            let events = event.as_object().into_iter().flatten();
            for (_, told) in events {
                ids.extend(
                    ["senderId", "recipientId"]
                        .iter()
                        .filter_map(|name| text(told, name)),
                );
                for name in ["participantsSnapshot", "userIds"] {
                    ids.extend(list(told, name).iter().filter_map(Value::as_str));
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| self.name_of(id)).collect()
    }
}

/// `Tue Mar 05 10:00:00 +0000 2024`.
fn day_and_time(date: &str) -> Option<String> {
    let words: Vec<&str> = date.split_ascii_whitespace().collect();
    read_date(words.get(1..)?)
}

impl Converter for X<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        // Archives of before 2020 have posts as they are.
        if value.get("id_str").is_some() && value.get("full_text").is_some() {
            return self.post(&value, made);
        }
        let members = value.as_object().and_then(|members| members.iter().next());
        let Some((kind, inner)) = members else {
            return Err(malformed("it is no part of an archive of X"));
        };
        let person = |kind: &'static str| {
            let id = text(inner, "accountId").unwrap_or_default();
            Person {
                id: id.to_owned(),
                name: Some(self.name_of(id)),
                kind,
                url: text(inner, "userLink").map(str::to_owned),
                ..Person::default()
            }
        };
        match kind.as_str() {
            "account" => {
                let name = text(inner, "username").unwrap_or_default();
                self.companions.learn(OWNER, name);
                self.companions
                    .learn(text(inner, "accountId").unwrap_or_default(), name);
            }
            "tweet" => return self.post(inner, made),
            "noteTweet" => {
                let core = inner.get("core").unwrap_or(&Value::Null);
                let note = Post {
                    id: text(inner, "noteTweetId").unwrap_or_default().to_owned(),
                    kind: "post",
                    text: text(core, "text").map(decoded),
                    author: self.companions.name(OWNER),
                    created_at: moment(inner, "createdAt"),
                    ..Post::default()
                };
                made.add("posts", note.record());
            }
            "dmConversation" => self.conversation(inner, made),
            "like" => {
                let id = text(inner, "tweetId").unwrap_or_default();
                let like = Like {
                    id: id.to_owned(),
                    kind: "like".to_owned(),
                    text: text(inner, "fullText").map(decoded),
                    url: text(inner, "expandedUrl").map(str::to_owned),
                    ..Like::default()
                };
                made.add("likes", like.record());
            }
            "follower" => made.add("people", person("follower").record()),
            "following" => made.add("people", person("following").record()),
            _ => return Err(malformed("it is no part of an archive of X that is known")),
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        // Lists are empty in many archives.
        Some(names_only())
    }
}
