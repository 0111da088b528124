//! Exports of Claude (`conversations.json`, `projects.json`, `users.json`): conversations with their messages, and the documents of
//! projects. `users.json` tells what the owner is called.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

use super::json_members::{each_text, first_words, list, moment, some_list, some_text, text};
use super::outline::Outline;
use super::pieces::{Converter, Cut, Made, malformed, names_only, parse_json};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "claude",
    title: "a Claude export (conversations.json)",
    declaration: Declared::Shape(SHAPE),
    origin: "Claude: Settings > Privacy > Export data; the link to the archive comes by mail",
    contents: "conversations, messages of all branches, and documents of projects; files are named, not kept",
    recognise,
    importer: |input, acceptor, companions| {
        let reader = input.into_reader();
        let converter = Conversations {
            names: false,
            companions,
        };
        Cut::Elements.importer(reader, acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "claude",
    name: "Claude",
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
                shape::text("author").role("author").searched().grouped(),
                shape::time("sent_at"),
                shape::integer("position")
                    .role("order")
                    .about("Its place in the conversation, from 1."),
                shape::boolean("is_shown")
                    .grouped()
                    .about("False in a branch that was left by editing or asking again."),
                shape::text("reply_to_id"),
                shape::text("text").role("body").searched(),
                shape::text("attached_text")
                    .searched()
                    .about("What was extracted from attached files."),
                shape::texts("attachments")
                    .about("Names of files.")
                    .searched(),
                shape::texts("tools").about("Tools that were used in it."),
            ],
            children: &[],
        },
        Stream {
            name: "conversations",
            label: "Conversations",
            about: "Conversations by their names.",
            time: Some("updated_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("summary").role("body").searched(),
                shape::time("created_at"),
                shape::time("updated_at"),
                shape::integer("message_count"),
            ],
            children: &[("messages", "conversation_id")],
        },
        Stream {
            name: "documents",
            label: "Documents of projects",
            about: "What projects know: their instructions and documents.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("project").searched().grouped(),
                shape::text("title").role("title").searched(),
                shape::time("created_at"),
                shape::text("text").role("body").searched(),
            ],
            children: &[],
        },
    ],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let mut outline = Outline::new(file.head);
    // Projects are files of their own in newer exports.
    let is_list = outline.enter(b'[').unwrap_or_default();
    let mut seen = Vec::new();
    if outline.enter(b'{').unwrap_or_default() {
        while let Ok(Some(name)) = outline.member() {
            seen.push(name);
            if outline.skip().is_err() {
                break;
            }
        }
    }
    let has = |name: &str| seen.iter().any(|one| one == name);
    match file.file_name() {
        _ if !is_list => (has("uuid") && has("docs") && has("prompt_template")).into(),
        _ if has("uuid") && has("chat_messages") => Verdict::Takes,
        _ if has("uuid") && has("full_name") && has("email_address") => Verdict::Before(0),
        _ if has("uuid") && (has("docs") || has("prompt_template")) => Verdict::Takes,
        "memories.json" if has("account_uuid") => {
            Verdict::Leaves("what Claude remembers of you, which changes by itself")
        }
        _ if has("uuid") && has("account") => {
            Verdict::Misses("its conversations have no chat_messages where those of an export do")
        }
        _ => Verdict::Unlike,
    }
}

struct Conversations<'a> {
    /// Whether the file names people.
    names: bool,
    companions: &'a Companions,
}

impl Converter for Conversations<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        let Some(id) = text(&value, "uuid") else {
            return Err(malformed("it has no uuid"));
        };
        if let Some(name) = text(&value, "full_name") {
            self.companions.learn(id, name);
            self.names = true;
            return Ok(());
        }
        if value.get("chat_messages").is_some() {
            self.conversation(id, &value, made);
        } else {
            project(id, &value, made);
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.names.then(names_only)
    }
}

impl Conversations<'_> {
    fn conversation(&self, id: &str, value: &Value, made: &mut Made) {
        let messages = list(value, "chat_messages");
        let account = value
            .get("account")
            .and_then(|account| text(account, "uuid"));
        let owner = account.and_then(|account| self.companions.name(account));
        let shown = shown_branch(messages);
        let first = messages.iter().find_map(|message| some_text(said(message)));
        let untitled = || first.as_deref().map(first_words);
        let title = text(value, "name").map(str::to_owned).or_else(untitled);
        for (index, message) in messages.iter().enumerate() {
            let Some(message_id) = text(message, "uuid") else {
                made.reject(format!(
                    "message {} of the conversation has no uuid",
                    index + 1
                ));
                continue;
            };
            let attachments = [list(message, "attachments"), list(message, "files")].concat();
            let extracted = each_text(&attachments, "extracted_content");
            let extracted = [extracted, written(message)].concat().join("\n\n");
            let words = some_text(said(message));
            let names = each_text(&attachments, "file_name");
            let tools = tools(message);
            if words.is_none() && names.is_empty() && tools.is_empty() && extracted.is_empty() {
                continue;
            }
            let author = match text(message, "sender") {
                Some("human") => owner.clone().or_else(|| Some("human".to_owned())),
                sender => sender.map(str::to_owned),
            };
            let parent = text(message, "parent_message_uuid").filter(|parent| !is_root(parent));
            made.add(
                "messages",
                json!({
                    "id": readable_key(message_id),
                    "conversation_id": readable_key(id),
                    "conversation": title,
                    "author": author,
                    "sent_at": moment(message, "created_at"),
                    "position": index + 1,
                    "is_shown": shown.as_ref().is_none_or(|shown| shown.contains(message_id)),
                    "reply_to_id": parent.map(readable_key),
                    "text": words,
                    "attached_text": some_text(extracted),
                    "attachments": some_list(names),
                    "tools": some_list(tools),
                }),
            );
        }
        made.add(
            "conversations",
            json!({
                "id": readable_key(id),
                "title": title,
                "summary": text(value, "summary"),
                "created_at": moment(value, "created_at"),
                "updated_at": moment(value, "updated_at").or_else(|| moment(value, "created_at")),
                "message_count": messages.len(),
            }),
        );
    }
}

/// The message before the first has this id.
fn is_root(id: &str) -> bool {
    id.starts_with("00000000-")
}

/// The messages from the last one up. Exports without parents have no branches; a message without one follows that before it.
fn shown_branch(messages: &[Value]) -> Option<HashSet<&str>> {
    let parent = |message| text(message, "parent_message_uuid");
    messages.iter().find_map(parent)?;
    let mut before = None;
    let mut parents: HashMap<&str, Option<&str>> = HashMap::new();
    for message in messages {
        let Some(id) = text(message, "uuid") else {
            continue;
        };
        parents.insert(id, parent(message).or(before));
        before = Some(id);
    }
    let mut shown = HashSet::new();
    let mut at = before;
    while let Some(id) = at {
        // A branch that leads into itself would never end.
        if !shown.insert(id) {
            break;
        }
        at = parents.get(id).copied().flatten();
    }
    Some(shown)
}

/// The words of a message. Newer exports have blocks, older ones a text.
fn said(message: &Value) -> String {
    let blocks = list(message, "content").iter();
    let blocks = blocks.filter(|block| matches!(text(block, "type"), Some("text" | "voice_note")));
    let words: Vec<&str> = blocks.filter_map(|block| text(block, "text")).collect();
    if words.is_empty() {
        return text(message, "text").unwrap_or_default().to_owned();
    }
    words.join("\n")
}

/// The documents that Claude wrote beside a message.
fn written(message: &Value) -> Vec<String> {
    let used = list(message, "content")
        .iter()
        .filter_map(|block| block.get("input"));
    let written = used.filter_map(|input| {
        let content = text(input, "content").or_else(|| text(input, "file_text"))?;
        let title = text(input, "title").or_else(|| text(input, "path"));
        Some(title.map_or_else(|| content.to_owned(), |title| format!("{title}\n{content}")))
    });
    written.collect()
}

fn tools(message: &Value) -> Vec<String> {
    let used = list(message, "content").iter();
    let used = used.filter(|block| text(block, "type") == Some("tool_use"));
    let mut tools: Vec<String> = used
        .filter_map(|block| text(block, "name"))
        .map(str::to_owned)
        .collect();
    tools.sort();
    tools.dedup();
    tools
}

fn project(id: &str, value: &Value, made: &mut Made) {
    let name = text(value, "name");
    let created_at = moment(value, "created_at");
    let instructions = [text(value, "description"), text(value, "prompt_template")];
    let instructions: Vec<&str> = instructions.into_iter().flatten().collect();
    if !instructions.is_empty() {
        made.add(
            "documents",
            json!({
                "id": readable_key(id),
                "project": name,
                "title": name,
                "created_at": created_at,
                "text": instructions.join("\n\n"),
            }),
        );
    }
    for document in list(value, "docs") {
        let Some(document_id) = text(document, "uuid") else {
            made.reject("a document of the project has no uuid");
            continue;
        };
        made.add(
            "documents",
            json!({
                "id": readable_key(document_id),
                "project": name,
                "title": text(document, "filename"),
                "created_at": moment(document, "created_at").or_else(|| created_at.clone()),
                "text": text(document, "content"),
            }),
        );
    }
}
