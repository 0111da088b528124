//! Exports of a Slack workspace: `users.json`, lists of channels, and a folder per channel with a file per day. People and channels
//! come first, so that messages can name them.

use serde_json::{Value, json};

use super::json_members::{
    each_text, list, seconds_to_moment, some_list, some_text, text, unix_seconds,
};
use super::outline::{Outline, first_members};
use super::pieces::{Converter, Cut, Made, malformed, parse_json};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::input::Input;
use crate::readable_key::readable_key;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

pub(crate) const EXPORT: Known = Known {
    name: "slack",
    title: "a Slack export (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "Slack, as an owner of the workspace: Tools & settings > Workspace settings > Import/Export data > Export",
    contents: "messages with their threads, channels, people, canvases and lists; of these and of files the name, not the content",
    recognise,
    importer: |input, acceptor, companions| {
        let converter = Slack::new(&input, companions);
        Cut::Elements.importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "slack",
    name: "Slack",
    streams: &[
        Stream {
            name: "messages",
            label: "Messages",
            about: "Messages of all exported channels and conversations.",
            time: Some("sent_at"),
            fields: &[
                shape::text("id"),
                shape::text("channel_id").role("thread").grouped(),
                shape::text("channel").role("title").searched().grouped(),
                shape::text("author").role("author").searched().grouped(),
                shape::text("author_id").grouped(),
                shape::time("sent_at"),
                shape::time("edited_at"),
                shape::text("thread_id")
                    .grouped()
                    .about("The message that began the thread; of that one too."),
                shape::text("kind")
                    .grouped()
                    .about("message, or what Slack notes, such as channel_join."),
                shape::text("text").role("body").searched(),
                shape::texts("files").about("Names of files.").searched(),
                shape::texts("reactions"),
                shape::integer("reply_count"),
            ],
            children: &[("messages", "thread_id")],
        },
        Stream {
            name: "channels",
            label: "Channels",
            about: "Channels, and conversations of a few.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("name").role("title").searched(),
                shape::text("topic").searched(),
                shape::text("purpose").role("body").searched(),
                shape::time("created_at"),
                shape::boolean("is_archived").grouped(),
                shape::texts("members").about("Names of people.").searched(),
            ],
            children: &[("messages", "channel_id")],
        },
        Stream {
            name: "people",
            label: "People",
            about: "Members of the workspace, former ones and programs included.",
            time: None,
            fields: &[
                shape::text("id"),
                shape::text("name").role("title").searched(),
                shape::text("handle").searched(),
                shape::text("email").searched(),
                shape::text("title").searched(),
                shape::text("timezone").grouped(),
                shape::boolean("is_bot").grouped(),
                shape::boolean("is_deleted").grouped(),
            ],
            children: &[("messages", "author_id"), ("canvases", "author_id")],
        },
        Stream {
            name: "canvases",
            label: "Canvases and lists",
            about: "Canvases and lists of the workspace: what they are called and where they are. Slack hands out no more of them.",
            time: Some("created_at"),
            fields: &[
                shape::text("id"),
                shape::text("kind").grouped().about("canvas or list"),
                shape::text("title").role("title").searched(),
                shape::text("author").role("author").searched().grouped(),
                shape::text("author_id").grouped(),
                shape::time("created_at"),
                shape::time("updated_at"),
                shape::text("url").role("url"),
            ],
            children: &[],
        },
    ],
};

const LEFT: [&str; 5] = [
    "integration_logs.json",
    "canvas_in_the_conversation.json",
    "content_flags.json",
    "huddle_transcripts.json",
    "file_conversations.json",
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let mut outline = Outline::new(file.head);
    if !outline.enter(b'[').unwrap_or_default() {
        return Verdict::Unlike;
    }
    let mut members = Vec::new();
    if outline.enter(b'{').unwrap_or_default() {
        while let Ok(Some(name)) = outline.member() {
            members.push(name);
            if outline.skip().is_err() {
                break;
            }
        }
    }
    let has = |name: &str| members.iter().any(|one| one == name);
    let (has_user, has_time) = (has("user") || has("bot_id") || has("username"), has("ts"));
    match file.file_name() {
        _ if has("id") && has("team_id") && (has("profile") || has("real_name")) => {
            Verdict::Before(0)
        }
        "channels.json" | "groups.json" | "dms.json" | "mpims.json"
            if has("id") && has("created") =>
        {
            Verdict::Before(1)
        }
        _ if has("id") && has("created") && has("members") && is_direct(file.head) => {
            Verdict::Before(1)
        }
        name if has("id") && has("creator") && has("members") && !name.is_empty() => {
            Verdict::Before(1)
        }
        _ if has_time && has("type") && (has_user || has("text")) => Verdict::Takes,
        "canvases.json" | "lists.json" if has("id") && (has("title") || has("name")) => {
            Verdict::Takes
        }
        _ if has("id") && has("filetype") && has("url_private") => Verdict::Takes,
        name if LEFT.contains(&name) => {
            Verdict::Leaves("parts of a Slack export that hold no messages")
        }
        name if is_day(name) && has("text") => {
            Verdict::Misses("its messages have no 'ts' and 'type' as those of Slack do")
        }
        _ => Verdict::Unlike,
    }
}

/// Whether the first of a list is a conversation of two, whose id begins with a `D`.
fn is_direct(head: &[u8]) -> bool {
    let (_, id) = first_members(head, "id");
    let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    id.is_some_and(|id| id.starts_with('D') && id.bytes().all(is_part))
}

/// Whether a file is called after a day: `2024-01-15.json`.
fn is_day(name: &str) -> bool {
    let day = name.strip_suffix(".json").unwrap_or_default();
    day.parse::<jiff::civil::Date>().is_ok()
}

/// Slack itself, which no list of people has.
const SLACKBOT: &str = "USLACKBOT";
/// What stands for a text that is in blocks only.
const IN_BLOCKS: &str = "This content can't be displayed.";

struct Slack<'a> {
    /// The name of the folder that the file stands in.
    folder: String,
    /// What the file lists, as its name says, if it is no messages, channels or people.
    listed: Option<&'static str>,
    companions: &'a Companions,
}

impl<'a> Slack<'a> {
    fn new(input: &Input, companions: &'a Companions) -> Self {
        let mut parts = input.path().rsplit('/');
        let folder = parts.nth(1).unwrap_or_default().to_owned();
        let listed = match input.stem() {
            "canvases" => Some("canvas"),
            "lists" => Some("list"),
            _ => None,
        };
        Self {
            folder,
            listed,
            companions,
        }
    }

    fn name_of(&self, id: &str) -> String {
        self.companions.name(id).unwrap_or_else(|| id.to_owned())
    }

    fn person(&self, id: &str, value: &Value, made: &mut Made) {
        let profile = value.get("profile").unwrap_or(&Value::Null);
        let names = [
            text(profile, "display_name"),
            text(profile, "real_name"),
            text(value, "real_name"),
            text(value, "name"),
        ];
        let name = names.into_iter().flatten().next().unwrap_or(id);
        self.companions.learn(id, name);
        made.add(
            "people",
            json!({
                "id": readable_key(id),
                "name": name,
                "handle": text(value, "name"),
                "email": text(profile, "email"),
                "title": text(profile, "title"),
                "timezone": text(value, "tz"),
                "is_bot": value.get("is_bot").and_then(Value::as_bool),
                "is_deleted": value.get("deleted").and_then(Value::as_bool),
            }),
        );
    }

    /// A canvas, or a list.
    fn canvas(&self, id: &str, value: &Value, made: &mut Made) {
        let author_id = text(value, "user").or_else(|| text(value, "creator"));
        let kind = match text(value, "filetype") {
            Some("list") => "list",
            Some(_) => "canvas",
            None => self.listed.unwrap_or("canvas"),
        };
        made.add(
            "canvases",
            json!({
                "id": readable_key(id),
                "kind": kind,
                "title": text(value, "title").or_else(|| text(value, "name")),
                "author": author_id.map(|id| self.name_of(id)),
                "author_id": author_id.map(readable_key),
                "created_at": unix_seconds(value, "created"),
                "updated_at": unix_seconds(value, "updated"),
                "url": text(value, "permalink").or_else(|| text(value, "url_private")),
            }),
        );
    }

    fn channel(&self, id: &str, value: &Value, made: &mut Made) {
        let members = list(value, "members").iter().filter_map(Value::as_str);
        let members: Vec<String> = members.map(|id| self.name_of(id)).collect();
        // A conversation of two has no name, and its folder is called by its id.
        let name = text(value, "name").map_or_else(|| members.join(", "), str::to_owned);
        let folder = text(value, "name").unwrap_or(id);
        self.companions.learn(&format!("#{folder}"), id);
        self.companions.learn(id, &name);
        let said = |member: &str| value.get(member).and_then(|one| text(one, "value"));
        made.add(
            "channels",
            json!({
                "id": readable_key(id),
                "name": some_text(name),
                "topic": said("topic"),
                "purpose": said("purpose"),
                "created_at": unix_seconds(value, "created"),
                "is_archived": value.get("is_archived").and_then(Value::as_bool),
                "members": some_list(members),
            }),
        );
    }

    fn message(&self, value: &Value, made: &mut Made) -> Result<(), Rejection> {
        let time = text(value, "ts").and_then(|ts| Some((ts, seconds_to_moment(ts)?)));
        let Some((ts, sent_at)) = time else {
            return Err(malformed("the message has no time in 'ts'").in_field("ts"));
        };
        let known = self.companions.name(&format!("#{}", self.folder));
        let channel_id = known.unwrap_or_else(|| self.folder.clone());
        let channel = self.companions.name(&channel_id);
        let key = |ts: &str| readable_key(&format!("{channel_id}-{ts}"));
        let author_id = text(value, "user").or_else(|| text(value, "bot_id"));
        let profile = value.get("user_profile").unwrap_or(&Value::Null);
        let named = author_id.and_then(|id| self.companions.name(id));
        let named = named.or_else(|| {
            author_id
                .filter(|id| *id == SLACKBOT)
                .map(|_| "Slackbot".to_owned())
        });
        let author = named
            .or_else(|| text(value, "username").map(str::to_owned))
            .or_else(|| text(profile, "real_name").map(str::to_owned))
            .or_else(|| author_id.map(str::to_owned));
        let files = list(value, "files");
        let reactions = list(value, "reactions");
        let edited = value.get("edited").unwrap_or(&Value::Null);
        made.add(
            "messages",
            json!({
                "id": key(ts),
                "channel_id": readable_key(&channel_id),
                "channel": channel.or_else(|| some_text(self.folder.clone())),
                "author": author,
                "author_id": author_id.map(readable_key),
                "sent_at": sent_at,
                "edited_at": text(edited, "ts").and_then(seconds_to_moment),
                "thread_id": text(value, "thread_ts").map(key),
                "kind": text(value, "subtype").unwrap_or("message"),
                "text": said(value).map(|text| self.plain(&text)),
                "files": some_list(each_text(files, "name")),
                "reactions": some_list(each_text(reactions, "name")),
                "reply_count": value.get("reply_count").and_then(Value::as_u64),
            }),
        );
        Ok(())
    }

    /// Marks of people, channels and addresses become what the app shows for them.
    fn plain(&self, text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('<') {
            plain.push_str(before);
            let Some((mark, behind)) = after.split_once('>') else {
                rest = after;
                plain.push('<');
                continue;
            };
            rest = behind;
            let (target, label) = mark.split_once('|').unwrap_or((mark, ""));
            let shown = match (target.split_at_checked(1), label) {
                (Some((sign @ ("@" | "#"), id)), "") => format!("{sign}{}", self.name_of(id)),
                (Some((sign @ ("@" | "#"), _)), label) => format!("{sign}{label}"),
                (Some(("!", group)), "") => format!("@{group}"),
                (Some(("!", _)), label) => label.to_owned(),
                (_, "") => target.to_owned(),
                (_, label) if target.ends_with(label) => label.to_owned(),
                (_, label) => format!("{label} ({target})"),
            };
            plain.push_str(&shown);
        }
        plain.push_str(rest);
        let plain = plain.replace("&lt;", "<").replace("&gt;", ">");
        plain.replace("&amp;", "&")
    }
}

/// What a message says. Programs leave the text empty, and say it in what they attach or in blocks. A message that is
/// passed on is attached to what is said about it.
fn said(message: &Value) -> Option<String> {
    let own = text(message, "text").filter(|text| *text != IN_BLOCKS);
    let mut parts: Vec<String> = own.map(str::to_owned).into_iter().collect();
    for one in list(message, "attachments") {
        let is_passed_on = ["is_msg_unfurl", "is_share"]
            .iter()
            .any(|name| one.get(name) == Some(&Value::Bool(true)));
        if own.is_none() || is_passed_on {
            parts.extend(attached(one));
        }
    }
    if parts.is_empty() {
        each_block_text(message.get("blocks").unwrap_or(&Value::Null), &mut parts);
    }
    some_text(parts.join("\n"))
}

/// What an attachment says.
fn attached(one: &Value) -> Option<String> {
    let said = ["pretext", "title", "text"]
        .iter()
        .filter_map(|name| text(one, name));
    let mut said: Vec<String> = said.map(str::to_owned).collect();
    for field in list(one, "fields") {
        let parts = [text(field, "title"), text(field, "value")];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        said.extend(some_text(parts.join(": ")));
    }
    if said.is_empty() {
        return text(one, "fallback").map(str::to_owned);
    }
    Some(said.join("\n"))
}

/// The texts of blocks, however deep they stand.
fn each_block_text(block: &Value, parts: &mut Vec<String>) {
    match block {
        Value::Array(blocks) => {
            for one in blocks {
                each_block_text(one, parts);
            }
        }
        Value::Object(members) => match members.get("text") {
            Some(Value::String(text)) => parts.extend(some_text(text.clone())),
            _ if members.contains_key("user_id") => {
                let id = members.get("user_id").and_then(Value::as_str);
                parts.extend(id.map(|id| format!("<@{id}>")));
            }
            _ => {
                for one in members.values() {
                    each_block_text(one, parts);
                }
            }
        },
        _ => {}
    }
}

impl Converter for Slack<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let value = parse_json(piece)?;
        if value.get("ts").is_some() {
            return self.message(&value, made);
        }
        match text(&value, "id") {
            Some(id) if value.get("team_id").is_some() || value.get("profile").is_some() => {
                self.person(id, &value, made);
            }
            Some(id) if self.listed.is_some() || value.get("filetype").is_some() => {
                self.canvas(id, &value, made);
            }
            Some(id) => self.channel(id, &value, made),
            None => return Err(malformed("it is no message, no channel and no person")),
        }
        Ok(())
    }
}
