//! What the exports of social networks have in common: posts, messages, people, and what was liked or saved. One shape for all of them, so
//! that a question asked of one can be asked of every other.

use serde_json::{Value, json};

use super::json_members::{some_list, some_text};
use crate::readable_key::readable_key;
use crate::shape::{self, Shape, Stream};

pub(crate) const fn shape(key: &'static str, name: &'static str) -> Shape {
    Shape {
        key,
        name,
        streams: STREAMS,
    }
}

const STREAMS: &[Stream] = &[
    Stream {
        name: "posts",
        label: "Posts",
        about: "What the owner wrote in public or to their followers: posts, answers and comments.",
        time: Some("created_at"),
        fields: &[
            shape::text("id"),
            shape::text("kind")
                .grouped()
                .about("post, comment, reply or repost"),
            shape::text("title").role("title").searched(),
            shape::text("text").role("body").searched(),
            shape::text("author").role("author").searched().grouped(),
            shape::text("community")
                .searched()
                .grouped()
                .about("The group or forum."),
            shape::time("created_at"),
            shape::text("in_reply_to").about("The post it answers, or its address."),
            shape::text("url").role("url"),
            shape::texts("tags").searched(),
            shape::texts("links"),
            shape::texts("files").about("Names of pictures and films."),
            shape::integer("likes"),
            shape::integer("reposts"),
            shape::text("visibility").grouped(),
        ],
        children: &[],
    },
    Stream {
        name: "messages",
        label: "Messages",
        about: "Messages of conversations.",
        time: Some("sent_at"),
        fields: &[
            shape::text("id"),
            shape::text("conversation_id").role("thread").grouped(),
            shape::text("conversation")
                .role("title")
                .searched()
                .grouped(),
            shape::texts("participants")
                .about("The people of the conversation, as far as they are told.")
                .searched(),
            shape::text("author").role("author").searched().grouped(),
            shape::time("sent_at"),
            shape::text("subject").searched(),
            shape::text("text").role("body").searched(),
            shape::texts("links"),
            shape::texts("files").about("Names of pictures and films."),
            shape::texts("reactions"),
        ],
        children: &[],
    },
    Stream {
        name: "people",
        label: "People",
        about: "People that the owner follows, is followed by or is connected with.",
        time: Some("since"),
        fields: &[
            shape::text("id"),
            shape::text("name").role("title").searched(),
            shape::text("kind")
                .grouped()
                .about("follower, following, friend or contact"),
            shape::text("email").searched(),
            shape::text("company").searched().grouped(),
            shape::text("position").searched(),
            shape::time("since"),
            shape::text("url").role("url"),
        ],
        children: &[],
    },
    Stream {
        name: "likes",
        label: "Likes",
        about: "What the owner liked, saved or voted for.",
        time: Some("created_at"),
        fields: &[
            shape::text("id"),
            shape::text("kind").grouped(),
            shape::text("title").role("title").searched(),
            shape::text("text").role("body").searched(),
            shape::text("author").role("author").searched().grouped(),
            shape::time("created_at"),
            shape::text("url").role("url"),
        ],
        children: &[],
    },
];

#[derive(Default)]
pub(crate) struct Post {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) title: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) community: Option<String>,
    pub(crate) created_at: Option<String>,
    pub(crate) in_reply_to: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) links: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) likes: Option<u64>,
    pub(crate) reposts: Option<u64>,
    pub(crate) visibility: Option<String>,
}

impl Post {
    pub(crate) fn record(self) -> Value {
        json!({
            "id": readable_key(&self.id),
            "kind": self.kind,
            "title": self.title.and_then(some_text),
            "text": self.text.and_then(some_text),
            "author": self.author,
            "community": self.community,
            "created_at": self.created_at,
            "in_reply_to": self.in_reply_to,
            "url": self.url,
            "tags": some_list(self.tags),
            "links": some_list(self.links),
            "files": some_list(self.files),
            "likes": self.likes,
            "reposts": self.reposts,
            "visibility": self.visibility,
        })
    }
}

#[derive(Default)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) conversation_id: String,
    pub(crate) conversation: Option<String>,
    pub(crate) participants: Vec<String>,
    pub(crate) author: Option<String>,
    pub(crate) sent_at: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) links: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) reactions: Vec<String>,
}

impl Message {
    pub(crate) fn record(self) -> Value {
        json!({
            "id": readable_key(&self.id),
            "conversation_id": some_text(self.conversation_id).map(|id| readable_key(&id)),
            "conversation": self.conversation.and_then(some_text),
            "participants": some_list(self.participants),
            "author": self.author,
            "sent_at": self.sent_at,
            "subject": self.subject.and_then(some_text),
            "text": self.text.and_then(some_text),
            "links": some_list(self.links),
            "files": some_list(self.files),
            "reactions": some_list(self.reactions),
        })
    }
}

#[derive(Default)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) email: Option<String>,
    pub(crate) company: Option<String>,
    pub(crate) position: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) url: Option<String>,
}

impl Person {
    pub(crate) fn record(self) -> Value {
        json!({
            "id": readable_key(&format!("{}-{}", self.kind, self.id)),
            "name": self.name,
            "kind": self.kind,
            "email": self.email,
            "company": self.company,
            "position": self.position,
            "since": self.since,
            "url": self.url,
        })
    }
}

#[derive(Default)]
pub(crate) struct Like {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) title: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) created_at: Option<String>,
    pub(crate) url: Option<String>,
}

impl Like {
    pub(crate) fn record(self) -> Value {
        json!({
            "id": readable_key(&self.id),
            "kind": self.kind,
            "title": self.title.and_then(some_text),
            "text": self.text.and_then(some_text),
            "author": self.author,
            "created_at": self.created_at,
            "url": self.url,
        })
    }
}
