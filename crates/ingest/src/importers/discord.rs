//! What Discord hands out: a folder for each channel with the owner's messages in it, and lists that name the channels and the owner.

use serde_json::Value;

use super::json_members::{list, text};
use super::named_rows::{each_row, has_columns};
use super::outline::first_members;
use super::pieces::{Converter, Cut, Made, begins_with, malformed, names_only, parse_json};
use super::social::{self, Message, Person};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::input::Input;
use crate::rejection::Rejection;
use crate::shape::Shape;
use crate::table;

const SHAPE: Shape = social::shape("discord", "Discord");

pub(crate) const EXPORT: Known = Known {
    name: "discord",
    title: "a Discord data package (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "Discord: User settings > Data & privacy > Request all of my data, with Messages ticked",
    contents: "messages of the owner with their channels, and friends; messages of others are not in it",
    recognise,
    importer: |input, acceptor, companions| {
        let converter = Discord::new(&input, companions);
        let mut reader = input.into_reader();
        let is_table = begins_with(&mut reader, TABLE);
        let cut = if is_table { Cut::Whole } else { Cut::Elements };
        cut.importer(reader, acceptor, converter)
    },
};

const OWNER: &str = "owner";
/// What the table of messages begins with.
const TABLE: &[u8] = b"ID,Timestamp,";
const COLUMNS: [&str; 4] = ["ID", "Timestamp", "Contents", "Attachments"];

fn recognise(file: &Candidate<'_>) -> Verdict {
    if file.head.starts_with(TABLE) {
        return has_columns(file.head, &COLUMNS).into();
    }
    let (members, _) = first_members(file.head, "");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_list = file.head.trim_ascii_start().starts_with(b"[");
    let folder = file.path.rsplit('/').nth(1).unwrap_or_default();
    match file.file_name() {
        _ if is_list && COLUMNS.iter().all(|name| has(name)) => Verdict::Takes,
        "user.json" if has("id") && has("username") && has("relationships") => Verdict::Before(0),
        "channel.json" if has("id") && has("type") => Verdict::Before(1),
        "index.json" if folder.eq_ignore_ascii_case("messages") && is_index(&members) => {
            Verdict::Before(1)
        }
        "messages.json" if is_list && has("ID") => Verdict::Misses(
            "its messages have no 'Timestamp' and 'Contents' as those of Discord do",
        ),
        _ => Verdict::Unlike,
    }
}

/// Whether all names are numbers, as those of channels are.
fn is_index(members: &[String]) -> bool {
    let is_number =
        |name: &String| name.len() > 10 && name.bytes().all(|byte| byte.is_ascii_digit());
    !members.is_empty() && members.iter().all(is_number)
}

struct Discord<'a> {
    /// The channel that the folder of the file is of.
    channel: String,
    /// Whether the file names channels.
    names: bool,
    companions: &'a Companions,
}

impl<'a> Discord<'a> {
    fn new(input: &Input, companions: &'a Companions) -> Self {
        let folder = input.path().rsplit('/').nth(1).unwrap_or_default();
        let channel = folder.strip_prefix('c').unwrap_or(folder).to_owned();
        Self {
            channel,
            names: false,
            companions,
        }
    }

    fn message(
        &self,
        id: String,
        time: &str,
        contents: Option<String>,
        files: Option<&str>,
    ) -> Result<Value, Rejection> {
        let time = time
            .split('+')
            .next()
            .unwrap_or_default()
            .trim_end_matches('Z');
        let moment = table::iso(time).filter(|moment| moment.has_time);
        let moment =
            moment.ok_or_else(|| malformed("the message has no time").in_field("Timestamp"))?;
        let message = Message {
            id,
            conversation_id: self.channel.clone(),
            conversation: self.companions.name(&self.channel),
            author: self.companions.name(OWNER),
            sent_at: Some(format!("{}Z", moment.text)),
            text: contents,
            files: files
                .unwrap_or_default()
                .split_whitespace()
                .map(last_part)
                .collect(),
            ..Message::default()
        };
        Ok(message.record())
    }

    fn owner(&self, value: &Value, made: &mut Made) {
        let name = text(value, "global_name").or_else(|| text(value, "username"));
        self.companions.learn(OWNER, name.unwrap_or_default());
        for one in list(value, "relationships") {
            let user = one.get("user").unwrap_or(&Value::Null);
            let Some(id) = text(one, "id") else {
                continue;
            };
            // Others are blocked, or were asked.
            let is_friend = one
                .get("type")
                .is_some_and(|kind| *kind == 1 || *kind == "FRIEND");
            if is_friend {
                let name = text(user, "global_name").or_else(|| text(user, "username"));
                let person = Person {
                    id: id.to_owned(),
                    name: name.map(str::to_owned),
                    kind: "friend",
                    ..Person::default()
                };
                made.add("people", person.record());
            }
        }
    }
}

fn last_part(url: &str) -> String {
    let path = url.split('?').next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// A text, or a number that stands for one.
fn id_of(value: &Value) -> Option<String> {
    match value.get("ID")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

impl Converter for Discord<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        if piece.starts_with(TABLE) {
            return each_row(piece, &COLUMNS, made, |row, made| {
                let (id, time) = (
                    row.get("ID").unwrap_or_default(),
                    row.get("Timestamp").unwrap_or_default(),
                );
                match self.message(
                    id,
                    &time,
                    row.get("Contents"),
                    row.get("Attachments").as_deref(),
                ) {
                    Ok(message) => made.add("messages", message),
                    Err(rejection) => made.reject(rejection.message),
                }
            });
        }
        let value = parse_json(piece)?;
        if value.get("relationships").is_some() {
            self.owner(&value, made);
        } else if value.get("Timestamp").is_some() {
            let id =
                id_of(&value).ok_or_else(|| malformed("the message has no id").in_field("ID"))?;
            let said = |name: &str| text(&value, name).map(str::to_owned);
            let time = said("Timestamp").unwrap_or_default();
            let message = self.message(id, &time, said("Contents"), text(&value, "Attachments"))?;
            made.add("messages", message);
        } else if let (Some(id), true) = (text(&value, "id"), value.get("type").is_some()) {
            self.names = true;
            let guild = value.get("guild").and_then(|guild| text(guild, "name"));
            if let Some(name) = text(&value, "name") {
                let name =
                    guild.map_or_else(|| name.to_owned(), |guild| format!("{name} in {guild}"));
                self.companions.learn(id, &name);
            }
        } else if let Some(names) = value.as_object().filter(|members| {
            members
                .values()
                .all(|name| name.is_string() || name.is_null())
        }) {
            self.names = true;
            for (id, name) in names {
                if let Some(name) = name.as_str() {
                    self.companions.learn(id, name);
                }
            }
        } else {
            return Err(malformed("it is no message, no channel and no account"));
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.names.then(names_only)
    }
}
