//! Exports of `ChatGPT` (`conversations.json`): a tree of messages per conversation. The branch that the app shows is told apart
//! from those that were left by editing a question or asking again; both are kept.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

use super::json_members::{each_text, list, some_list, some_text, text, unix_seconds};
use super::outline::Outline;
use super::pieces::{Converter, Cut, Made, malformed, parse_json};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::{Rejection, quoted};
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "chatgpt",
    title: "a ChatGPT export (conversations.json)",
    declaration: Declared::Shape(SHAPE),
    origin: "ChatGPT: Settings > Data controls > Export data; the link to the archive comes by mail",
    contents: "conversations and messages of all branches; files are named, not kept",
    recognise,
    importer: |input, acceptor, _| Cut::Elements.importer(input.into_reader(), acceptor, Chats),
};

const SHAPE: Shape = Shape {
    key: "chatgpt",
    name: "ChatGPT",
    streams: &[
        Stream {
            name: "messages",
            label: "Messages",
            about: "What was asked and answered, in every branch of every conversation.",
            time: Some("sent_at"),
            fields: &[
                shape::text("id"),
                shape::text("conversation_id").role("thread").grouped(),
                shape::text("conversation")
                    .role("title")
                    .searched()
                    .grouped(),
                shape::text("author")
                    .role("author")
                    .searched()
                    .grouped()
                    .about("user, assistant, or the name of a tool."),
                shape::text("model").grouped(),
                shape::time("sent_at"),
                shape::integer("position")
                    .role("order")
                    .about("Its place in the conversation, from 1."),
                shape::boolean("is_shown")
                    .grouped()
                    .about("Whether it stands in the branch that the app shows."),
                shape::text("reply_to_id"),
                shape::text("kind")
                    .grouped()
                    .about("text, code, multimodal_text, thoughts and so on."),
                shape::text("text").role("body").searched(),
                shape::texts("attachments")
                    .about("Names of files and pictures.")
                    .searched(),
            ],
            children: &[],
        },
        Stream {
            name: "conversations",
            label: "Conversations",
            about: "Conversations by their titles.",
            time: Some("updated_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::time("created_at"),
                shape::time("updated_at"),
                shape::text("model").grouped(),
                shape::boolean("is_archived").grouped(),
                shape::integer("message_count").about("In the branch that the app shows."),
            ],
            children: &[("messages", "conversation_id")],
        },
    ],
};

const LEFT: [&str; 9] = [
    "conversation_asset_file_names.json",
    "export_manifest.json",
    "group_chats.json",
    "message_feedback.json",
    "model_comparisons.json",
    "shared_conversations.json",
    "shopping.json",
    "sora.json",
    "user_settings.json",
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let mut outline = Outline::new(file.head);
    if outline.enter(b'[').unwrap_or_default() && outline.enter(b'{').unwrap_or_default() {
        while let Ok(Some(name)) = outline.member() {
            if name == "mapping" {
                return matches!(outline.peek(), Ok(Some(b'{'))).into();
            }
            if outline.skip().is_err() {
                break;
            }
        }
    }
    let name = file.file_name();
    let is_user =
        name == "user.json" && String::from_utf8_lossy(file.head).contains("\"chatgpt_plus_user\"");
    // Other chats are saved as pages too.
    let is_page = name == "chat.html" && String::from_utf8_lossy(file.head).contains("ChatGPT");
    if is_page || is_user || LEFT.contains(&name) {
        return Verdict::Leaves("parts of a ChatGPT export that hold no messages of their own");
    }
    Verdict::Unlike
}

struct Chats;

impl Converter for Chats {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let chat = parse_json(piece)?;
        let id = text(&chat, "conversation_id").or_else(|| text(&chat, "id"));
        let nodes = chat.get("mapping").and_then(Value::as_object);
        let (Some(id), Some(nodes)) = (id, nodes) else {
            return Err(malformed("the conversation has no id, or no messages"));
        };
        let shown = shown_branch(&chat);
        let order = order_of(nodes);
        let chat = Chat {
            id,
            title: text(&chat, "title"),
            value: &chat,
        };
        let mut model = text(chat.value, "default_model_slug").map(str::to_owned);
        let mut count = 0;
        let mut times = Times::default();
        for (position, node_id) in order.iter().enumerate() {
            let Some(node) = nodes.get(*node_id) else {
                continue;
            };
            let sent_at = times.of(node_id, node, chat.value);
            let message = match Message::read(node_id, node) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(rejection) => {
                    made.refuse(rejection);
                    continue;
                }
            };
            let is_on_branch = shown.as_ref().is_none_or(|shown| shown.contains(node_id));
            let is_shown = is_on_branch && !message.is_hidden();
            count += u64::from(is_shown);
            model = model.or_else(|| message.model().map(str::to_owned));
            let position = position + 1;
            made.add(
                "messages",
                message.record(&chat, sent_at.as_deref(), position, is_shown),
            );
        }
        made.add("conversations", chat.record(model.as_deref(), count));
        Ok(())
    }
}

/// When messages were sent. One without a time has that of what it answers, the first that of its conversation.
#[derive(Default)]
struct Times<'n>(HashMap<&'n str, String>);

impl<'n> Times<'n> {
    fn of(&mut self, id: &'n str, node: &Value, chat: &Value) -> Option<String> {
        let own = node
            .get("message")
            .and_then(|message| unix_seconds(message, "create_time"));
        let answered = || text(node, "parent").and_then(|parent| self.0.get(parent).cloned());
        let time = own
            .or_else(answered)
            .or_else(|| unix_seconds(chat, "create_time"))?;
        self.0.insert(id, time.clone());
        Some(time)
    }
}

struct Chat<'c> {
    id: &'c str,
    title: Option<&'c str>,
    value: &'c Value,
}

impl Chat<'_> {
    fn record(&self, model: Option<&str>, count: u64) -> Value {
        let value = self.value;
        let created_at = unix_seconds(value, "create_time");
        json!({
            "id": readable_key(self.id),
            "title": self.title,
            "updated_at": unix_seconds(value, "update_time").or(created_at.clone()),
            "created_at": created_at,
            "model": model,
            "is_archived": value.get("is_archived").and_then(Value::as_bool),
            "message_count": count,
        })
    }

    /// The key of a message: its own id, which another conversation may have copied.
    fn message_key(&self, id: &str) -> String {
        let short: String = self.id.chars().take(8).collect();
        readable_key(&format!("{short}-{id}"))
    }
}

struct Message<'n> {
    id: &'n str,
    node: &'n Value,
    value: &'n Value,
    content: &'n Value,
    text: Option<String>,
    attachments: Vec<String>,
}

impl<'n> Message<'n> {
    /// A node of the tree that says something. The app also keeps nodes without a message, and instructions nobody wrote.
    fn read(id: &'n str, node: &'n Value) -> Result<Option<Self>, Rejection> {
        let message = node.get("message").unwrap_or(&Value::Null);
        if message.is_null() {
            return Ok(None);
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        if !message.is_object() || !(content.is_object() || content.is_null()) {
            let why = format!("the message {} has no content that can be read", quoted(id));
            return Err(malformed(why).in_field("content"));
        }
        let metadata = message.get("metadata").unwrap_or(&Value::Null);
        let named = list(metadata, "attachments");
        let mut pictures = Vec::new();
        let said = said(content, &mut pictures);
        // A picture that the user sent is named among the attachments too.
        let ids: Vec<String> = named
            .iter()
            .filter(|one| text(one, "name").is_some())
            .filter_map(|one| text(one, "id"))
            .map(str::to_owned)
            .collect();
        pictures.retain(|pointer| !ids.iter().any(|id| pointer.ends_with(id.as_str())));
        let mut attachments = each_text(named, "name");
        attachments.extend(pictures);
        let text = some_text(without_marks(said, metadata));
        if text.is_none() && attachments.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            id,
            node,
            value: message,
            content,
            text,
            attachments,
        }))
    }

    /// Whether the app keeps it from view, such as what it knows of its user.
    fn is_hidden(&self) -> bool {
        let metadata = self.value.get("metadata");
        let hidden = metadata.and_then(|told| told.get("is_visually_hidden_from_conversation"));
        hidden.and_then(Value::as_bool) == Some(true)
    }

    fn model(&self) -> Option<&str> {
        text(self.value.get("metadata")?, "model_slug")
    }

    fn record(
        self,
        chat: &Chat<'_>,
        sent_at: Option<&str>,
        position: usize,
        is_shown: bool,
    ) -> Value {
        let author = self.value.get("author").unwrap_or(&Value::Null);
        let tool = text(author, "name").filter(|_| text(author, "role") == Some("tool"));
        json!({
            "id": chat.message_key(self.id),
            "conversation_id": readable_key(chat.id),
            "conversation": chat.title,
            "author": tool.or_else(|| text(author, "role")),
            "model": self.model(),
            "sent_at": sent_at,
            "position": position,
            "is_shown": is_shown,
            "reply_to_id": text(self.node, "parent").map(|parent| chat.message_key(parent)),
            "kind": text(self.content, "content_type"),
            "text": self.text,
            "attachments": some_list(self.attachments),
        })
    }
}

/// What is to be read in a message, and the names of what is to be seen in it.
fn said(content: &Value, attachments: &mut Vec<String>) -> String {
    let mut said: Vec<String> = Vec::new();
    for part in list(content, "parts") {
        match part {
            Value::String(words) => said.push(words.clone()),
            part => {
                said.extend(text(part, "text").map(str::to_owned));
                attachments.extend(text(part, "asset_pointer").map(str::to_owned));
            }
        }
    }
    for thought in list(content, "thoughts") {
        said.extend(text(thought, "content").map(str::to_owned));
    }
    for name in ["text", "result", "content"] {
        said.extend(text(content, name).map(str::to_owned));
    }
    said.retain(|words| !words.trim().is_empty());
    said.join("\n")
}

/// A text without the marks, of characters that mean nothing elsewhere, in whose place the app shows where it has something from.
fn without_marks(mut said: String, metadata: &Value) -> String {
    const MARKS: std::ops::RangeInclusive<char> = '\u{e200}'..='\u{e206}';
    if !said.contains(|c| MARKS.contains(&c)) {
        return said;
    }
    for reference in list(metadata, "content_references") {
        let mark = text(reference, "matched_text").filter(|mark| mark.starts_with('\u{e200}'));
        if let Some(mark) = mark {
            said = said.replace(mark, text(reference, "alt").unwrap_or_default());
        }
    }
    let mut plain = String::with_capacity(said.len());
    let mut rest = said.as_str();
    while let Some((before, mark)) = rest.split_once('\u{e200}') {
        plain.push_str(before);
        // One that is not closed is a single character.
        rest = mark
            .split_once('\u{e201}')
            .map_or(mark, |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain.retain(|c| !MARKS.contains(&c));
    plain
}

/// The nodes from the last one that the app shows up to the root; nothing if that is not told.
fn shown_branch(chat: &Value) -> Option<HashSet<&str>> {
    let nodes = chat.get("mapping")?;
    let mut shown = HashSet::new();
    let mut at = text(chat, "current_node").filter(|node| nodes.get(node).is_some());
    at?;
    while let Some(node) = at {
        // A tree that leads into itself would never end.
        if !shown.insert(node) {
            break;
        }
        at = nodes.get(node).and_then(|node| text(node, "parent"));
    }
    Some(shown)
}

/// The nodes in the order of the conversation: from each root down, one branch after the other.
fn order_of(nodes: &serde_json::Map<String, Value>) -> Vec<&str> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut order = Vec::new();
    let is_root =
        |node: &Value| text(node, "parent").is_none_or(|parent| !nodes.contains_key(parent));
    let roots = nodes.iter().filter(|(_, node)| is_root(node));
    let mut ahead: Vec<&str> = roots.map(|(id, _)| id.as_str()).collect();
    ahead.reverse();
    while let Some(id) = ahead.pop() {
        if !seen.insert(id) {
            continue;
        }
        order.push(id);
        let children = nodes.get(id).map_or(&[][..], |node| list(node, "children"));
        let children = children.iter().rev().filter_map(Value::as_str);
        ahead.extend(
            children.filter_map(|child| nodes.get_key_value(child).map(|(id, _)| id.as_str())),
        );
    }
    // What no root leads to comes last.
    order.extend(
        nodes
            .keys()
            .map(String::as_str)
            .filter(|id| !seen.contains(id)),
    );
    order
}
