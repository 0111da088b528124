//! What Discord hands out: a folder for each channel with the owner's messages in it, and lists that name the channels and the owner.

use serde_json::Value;

use super::json_members::{list, text};
use super::named_rows::{NamedRow, has_columns, names_all};
use super::outline::first_members;
use super::pieces::{Converter, Cut, Made, begins_with, malformed, names_only, parse_json};
use super::social::{self, Message, Person};
use crate::exports::{Candidate, Companions, Declared, Known, Verdict, has_ending};
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
        let is_header = |cells: &[String]| names_all(cells, &COLUMNS);
        let cut = if is_table {
            Cut::Named(is_header)
        } else {
            Cut::Elements
        };
        let converter = Discord {
            is_table,
            ..converter
        };
        cut.importer(reader, acceptor, converter)
    },
};

const OWNER: &str = "owner";
/// What the table of messages begins with.
const TABLE: &[u8] = b"ID,Timestamp,";
const COLUMNS: [&str; 4] = ["ID", "Timestamp", "Contents", "Attachments"];

/// All that is said of a channel that is gone.
const CHANNEL: [&str; 3] = ["id", "type", "name"];

fn recognise(file: &Candidate<'_>) -> Verdict {
    if file.head.starts_with(TABLE) {
        return has_columns(file.head, &COLUMNS).into();
    }
    let (members, id) = first_members(file.head, "id");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_list = file.head.trim_ascii_start().starts_with(b"[");
    let is_of_channel = |name: &String| CHANNEL.contains(&name.as_str());
    let is_channel = id.is_some_and(|id| is_snowflake(&id))
        && has("type")
        && (has("recipients") || has("guild") || members.iter().all(is_of_channel));
    match file.file_name() {
        _ if is_list && COLUMNS.iter().all(|name| has(name)) => Verdict::Takes,
        // Where the first message is broken, the folder tells.
        "messages.json" if is_list && has("ID") && channel_of(file.path).is_some() => {
            Verdict::Takes
        }
        _ if has("id") && has("username") && has("relationships") => Verdict::Before(0),
        "channel.json" if has("id") && has("type") => Verdict::Before(1),
        _ if is_channel => Verdict::Before(1),
        // The names of channels and those of servers are written alike.
        name if !is_list
            && is_index(&members)
            && (name == "index.json" || names_first(file.head, &members)) =>
        {
            Verdict::Before(1)
        }
        name if is_left(file, name) || (is_list && has("user_id") && has("action_type")) => {
            Verdict::Leaves("parts of a Discord package that hold no messages")
        }
        "messages.json" if is_list && has("ID") => Verdict::Misses(
            "its messages have no 'Timestamp' and 'Contents' as those of Discord do",
        ),
        _ => Verdict::Unlike,
    }
}

/// Whether all names are numbers, as those of channels are.
fn is_index(members: &[String]) -> bool {
    !members.is_empty() && members.iter().all(|name| is_snowflake(name))
}

/// Whether a name stands behind the first of them.
fn names_first(head: &[u8], members: &[String]) -> bool {
    let first = members.first().map(String::as_str);
    first_members(head, first.unwrap_or_default()).1.is_some()
}

/// Ids of Discord are numbers of some length.
fn is_snowflake(id: &str) -> bool {
    (15..=20).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// The channel that the folder of a file is of, which is called `c` and its number; without the `c` in older packages.
fn channel_of(path: &str) -> Option<&str> {
    let folder = path.rsplit('/').nth(1)?;
    let id = folder.strip_prefix('c').unwrap_or(folder);
    is_number(id).then_some(id)
}

/// Whether it is a part of the package that is of no use here: all that stands in its other folders, and the words at its front. Archives
/// are renamed, and folders are called in the language of the account but for those of servers, which have numbers.
fn is_left(file: &Candidate<'_>, name: &str) -> bool {
    let path = file.path.to_ascii_lowercase();
    let is_of_package = |part: &str| matches!(part, "package" | "package.zip");
    let inside = path
        .split('/')
        .skip_while(|part| !is_of_package(part))
        .nth(1);
    let is_event = name.starts_with("events-") && contains(file.head, "\"event_type\"");
    let is_json = has_ending(name, "json");
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    let is_of_server = is_snowflake(folder) && contains(file.head, folder);
    let is_words = name.eq_ignore_ascii_case("readme.txt")
        && (contains(file.head, "Discord Data Package")
            || (inside == Some("readme.txt") && contains(file.head, "Discord")));
    is_event
        || is_words
        || (is_json && (is_of_server || folder == "support_tickets"))
        || match inside.unwrap_or_default() {
            "account" | "activities" | "activity" | "ads" | "programs" | "servers" => is_json,
            _ => false,
        }
}

fn contains(head: &[u8], text: &str) -> bool {
    memchr::memmem::find(head, text.as_bytes()).is_some()
}

struct Discord<'a> {
    /// The channel that the folder of the file is of, if it is of one.
    channel: Option<String>,
    /// Whether the file is a table.
    is_table: bool,
    companions: &'a Companions,
}

impl<'a> Discord<'a> {
    fn new(input: &Input, companions: &'a Companions) -> Self {
        Self {
            channel: channel_of(input.path()).map(str::to_owned),
            is_table: false,
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
        let channel = self.channel.as_deref();
        let message = Message {
            id,
            conversation_id: channel.unwrap_or_default().to_owned(),
            conversation: channel.and_then(|channel| self.companions.name(channel)),
            participants: channel.map_or_else(Vec::new, |channel| self.people_of(channel)),
            author: self.companions.name(OWNER),
            sent_at: Some(format!("{}Z", moment.text)),
            text: contents.map(|contents| self.plain(&contents)),
            files: files
                .unwrap_or_default()
                .split_whitespace()
                .map(last_part)
                .collect(),
            ..Message::default()
        };
        Ok(message.record())
    }

    /// The people of a conversation of a few, as far as the package names them.
    fn people_of(&self, channel: &str) -> Vec<String> {
        let ids = self.companions.name(&format!("{channel} people"));
        let ids = ids.unwrap_or_default();
        ids.split_whitespace().map(|id| self.name_of(id)).collect()
    }

    fn name_of(&self, id: &str) -> String {
        self.companions
            .name(&format!("@{id}"))
            .unwrap_or_else(|| id.to_owned())
    }

    fn channel(&self, id: &str, value: &Value) {
        let guild = value.get("guild").and_then(|guild| text(guild, "name"));
        if let Some(name) = text(value, "name") {
            let name = guild.map_or_else(|| name.to_owned(), |guild| format!("{name} in {guild}"));
            self.companions.learn(id, &name);
        }
        let people = list(value, "recipients").iter().filter_map(Value::as_str);
        let people = people.collect::<Vec<_>>().join(" ");
        if !people.is_empty() {
            self.companions.learn(&format!("{id} people"), &people);
        }
    }

    /// Marks of people, channels and pictures become what the app shows.
    fn plain(&self, contents: &str) -> String {
        let mut plain = String::new();
        let mut rest = contents;
        while let Some((before, after)) = rest.split_once('<') {
            plain.push_str(before);
            let shown = after
                .split_once('>')
                .and_then(|(mark, behind)| Some((self.shown(mark)?, behind)));
            let (shown, behind) = shown.unwrap_or_else(|| ("<".to_owned(), after));
            plain.push_str(&shown);
            rest = behind;
        }
        plain + rest
    }

    fn shown(&self, mark: &str) -> Option<String> {
        if let Some(id) = mark.strip_prefix('@') {
            let id = id.trim_start_matches('!');
            return is_number(id).then(|| format!("@{}", self.name_of(id)));
        }
        if let Some(id) = mark.strip_prefix('#') {
            let name = self.companions.name(id);
            return is_number(id).then(|| format!("#{}", name.as_deref().unwrap_or(id)));
        }
        let (name, id) = mark
            .trim_start_matches('a')
            .strip_prefix(':')?
            .split_once(':')?;
        is_number(id).then(|| format!(":{name}:"))
    }

    fn owner(&self, value: &Value, made: &mut Made) {
        let name = text(value, "global_name").or_else(|| text(value, "username"));
        self.companions.learn(OWNER, name.unwrap_or_default());
        if let (Some(id), Some(name)) = (text(value, "id"), name) {
            self.companions.learn(&format!("@{id}"), name);
        }
        for one in list(value, "relationships") {
            let user = one.get("user").unwrap_or(&Value::Null);
            let Some(id) = text(one, "id") else {
                continue;
            };
            let name = text(user, "global_name").or_else(|| text(user, "username"));
            if let Some(name) = name {
                self.companions.learn(&format!("@{id}"), name);
            }
            // Others are blocked, or were asked.
            let is_friend = one
                .get("type")
                .is_some_and(|kind| *kind == 1 || *kind == "FRIEND");
            if is_friend {
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

fn is_number(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
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
        if self.is_table {
            let row = NamedRow::read(piece)?;
            let said = |column: &str| row.get(column);
            let (id, time) = (said("ID"), said("Timestamp"));
            let message = self.message(
                id.unwrap_or_default(),
                &time.unwrap_or_default(),
                said("Contents"),
                said("Attachments").as_deref(),
            )?;
            made.add("messages", message);
            return Ok(());
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
            self.channel(id, &value);
        } else if let Some(names) = value.as_object().filter(|members| {
            members
                .values()
                .all(|name| name.is_string() || name.is_null())
        }) {
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
        // Files that name channels are no records, and channels without messages are empty.
        Some(names_only())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_parts_of_a_package_are_known_and_left() {
        for (path, head, expected) in [
            ("package.zip/README.txt", "Thanks for using Discord", true),
            ("x/package/Servers/9/audit-log.json", "{}", true),
            (
                "package/activity/analytics/events-2024-00000-of-00001.json",
                "{\"event_type\":\"x\"}",
                true,
            ),
            ("account/user_data_exports/x.json", "{}", false),
            ("package/notes.json", "{}", false),
            ("README.txt", "Thanks for using Discord", false),
            // Renamed, and in another language.
            (
                "discord-2024.zip/README.txt",
                "Welcome to your Discord Data Package!",
                true,
            ),
            (
                "old.zip/Server/112233445566778899/guild.json",
                "{\"id\":\"112233445566778899\",\"name\":\"x\"}",
                true,
            ),
            (
                "old.zip/Server/112233445566778899/audit-log.json",
                "[{\"id\":\"1\",\"user_id\":\"2\",\"action_type\":1}]",
                true,
            ),
            ("old.zip/112233445566778899/notes.json", "{}", false),
        ] {
            let head = head.as_bytes();
            let is_left = matches!(recognise(&Candidate { head, path }), Verdict::Leaves(_));
            assert_eq!(is_left, expected, "{path}");
        }
    }

    #[test]
    fn a_message_is_of_the_channel_whose_folder_it_stands_in() {
        for (path, channel) in [
            (
                "x/messages/c112233445566778899/messages.json",
                Some("112233445566778899"),
            ),
            (
                "x/messages/112233445566778899/messages.csv",
                Some("112233445566778899"),
            ),
            // A single file among downloads must not make the folder a conversation.
            ("downloads/messages.json", None),
            ("messages.json", None),
        ] {
            assert_eq!(channel_of(path), channel, "{path}");
        }
        // Its other messages were taken for a table, where the first one had no text.
        let head = b"[{\"ID\": \"x\", \"Timestamp\": 5}]".as_slice();
        for (path, takes) in [("c1/messages.json", true), ("messages.json", false)] {
            let verdict = recognise(&Candidate { head, path });
            assert_eq!(verdict == Verdict::Takes, takes, "{path}");
        }
    }

    #[test]
    fn lists_of_channels_are_known_by_their_numbers() {
        for (head, known) in [
            ("{\"112233445566778899\": \"general\"}", true),
            ("{\"112233445566778899\": {\"name\": \"x\"}}", false),
            ("{\"112\": \"general\"}", false),
            (
                "{\"id\": \"112233445566778899\", \"type\": \"DM\", \"recipients\": []}",
                true,
            ),
            ("{\"id\": \"112233445566778899\", \"type\": 0}", true),
            (
                "{\"id\": \"112233445566778899\", \"type\": 0, \"price\": 1}",
                false,
            ),
            (
                "{\"id\": \"a\", \"type\": \"DM\", \"recipients\": []}",
                false,
            ),
        ] {
            let file = Candidate {
                head: head.as_bytes(),
                path: "x",
            };
            assert_eq!(recognise(&file) == Verdict::Before(1), known, "{head}");
        }
    }
}
