//! The archive of Mastodon and its relatives: the outbox as `ActivityPub` has it, and lists beside it.

use serde_json::Value;
use std::io::BufRead as _;

use super::html;
use super::json_members::{list, moment, text};
use super::named_rows::NamedRow;
use super::outline::first_members;
use super::pieces::{Converter, Cut, Made, malformed, names_only, parse_json};
use super::social::{self, Like, Person, Post};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::rejection::Rejection;
use crate::shape::Shape;

const SHAPE: Shape = social::shape("mastodon", "Mastodon");

pub(crate) const EXPORT: Known = Known {
    name: "mastodon",
    title: "a Mastodon archive (tar.gz or zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "Mastodon: Preferences > Import and export > Data export > Request your archive; the lists of who is followed are beside it",
    contents: "posts and boosts, likes, bookmarks and who is followed; pictures are named, not kept",
    recognise,
    importer: |input, acceptor, _| {
        let is_named = input.stem() == "bookmarks";
        let mut reader = input.into_reader();
        // What cannot be read is told when it is read.
        let head = reader.fill_buf().unwrap_or_default();
        let table = followed(head);
        let is_said = first_members(head, "id").1.as_deref() == Some("bookmarks.json");
        let kind = if is_named || is_said {
            "bookmark"
        } else {
            "like"
        };
        let cut = match table {
            Some(_) => Cut::Rows,
            None => Cut::Members(&["orderedItems"]),
        };
        let converter = Mastodon {
            kind: table.unwrap_or(kind),
            is_table: table.is_some(),
        };
        cut.importer(reader, acceptor, converter)
    },
};

/// What the tables of accounts that are followed, follow or are muted begin with.
const TABLE: &[u8] = b"Account address";
/// Lists without a header, of which nothing is read, and what a row of theirs holds.
const LEFT: [(&str, u8); 4] = [
    ("blocked_accounts.csv", b'@'),
    ("blocked_domains.csv", b'.'),
    ("domain_blocks.csv", b'.'),
    ("lists.csv", b'@'),
];
/// For whom posts are that everybody may read.
const PUBLIC: &str = "https://www.w3.org/ns/activitystreams#Public";

fn recognise(file: &Candidate<'_>) -> Verdict {
    if file.head.starts_with(TABLE) {
        return (followed(file.head).is_some()).into();
    }
    let line = file
        .head
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if LEFT
        .iter()
        .any(|(name, sign)| *name == file.file_name() && line.contains(sign))
    {
        return Verdict::Leaves("lists of Mastodon that hold no posts, and nobody who is followed");
    }
    let (members, kind) = first_members(file.head, "type");
    let has = |name: &str| members.iter().any(|member| member == name);
    let is_activity = has("@context");
    match kind.as_deref() {
        Some("OrderedCollection") if is_activity && has("orderedItems") => Verdict::Takes,
        Some("OrderedCollection") if is_activity => {
            Verdict::Misses("the list 'orderedItems' is missing")
        }
        Some("Person") if is_activity && has("outbox") => {
            Verdict::Leaves("parts of a Mastodon archive that hold no posts")
        }
        _ => Verdict::Unlike,
    }
}

/// What the accounts of a table are: the columns beside them tell.
fn followed(table: &[u8]) -> Option<&'static str> {
    let header = table
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let header = String::from_utf8_lossy(header.trim_ascii());
    let mut columns = header.split(',');
    if columns.next() != Some("Account address") {
        return None;
    }
    match columns.next() {
        None => Some("follower"),
        Some("Show boosts") => Some("following"),
        Some("Hide notifications") => Some("muted"),
        Some(_) => None,
    }
}

struct Mastodon {
    /// What a list of addresses is of, or a table of accounts.
    kind: &'static str,
    is_table: bool,
}

/// `https://example.social/users/ida` is `ida@example.social`.
fn account(url: &str) -> String {
    let mut parts = url.trim_end_matches('/').rsplit('/');
    let name = parts.next().unwrap_or(url).trim_start_matches('@');
    let host = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next());
    format!("{name}@{}", host.unwrap_or_default())
}

fn visibility(activity: &Value) -> &'static str {
    let has = |member: &str, wanted: &dyn Fn(&str) -> bool| {
        list(activity, member)
            .iter()
            .filter_map(Value::as_str)
            .any(wanted)
    };
    let is_public = |to: &str| to == PUBLIC;
    let is_followers = |to: &str| to.ends_with("/followers");
    if has("to", &is_public) {
        "public"
    } else if has("cc", &is_public) {
        "unlisted"
    } else if has("to", &is_followers) {
        "followers"
    } else {
        "direct"
    }
}

impl Mastodon {
    fn note(activity: &Value, note: &Value, made: &mut Made) -> Result<(), Rejection> {
        let id = text(note, "id").ok_or_else(|| malformed("the post has no id"))?;
        let number = id.rsplit('/').next().unwrap_or(id);
        let mut content = text(note, "content").map(html::to_text).unwrap_or_default();
        // What a poll lets choose.
        for option in ["oneOf", "anyOf"].iter().flat_map(|name| list(note, name)) {
            content.push_str("\n- ");
            content.push_str(text(option, "name").unwrap_or_default());
        }
        let answered = text(note, "inReplyTo");
        let files = list(note, "attachment").iter();
        let files = files.filter_map(|file| text(file, "name").or_else(|| text(file, "url")));
        let tags = list(note, "tag").iter();
        let tags = tags.filter(|tag| text(tag, "type") == Some("Hashtag"));
        let tags = tags.filter_map(|tag| text(tag, "name"));
        let author = text(note, "attributedTo").or_else(|| text(activity, "actor"));
        let post = Post {
            id: number.to_owned(),
            kind: if answered.is_some() { "reply" } else { "post" },
            title: text(note, "summary").map(str::to_owned),
            text: Some(content),
            author: author.map(account),
            created_at: moment(note, "published").or_else(|| moment(activity, "published")),
            in_reply_to: answered.map(str::to_owned),
            url: text(note, "url").map(str::to_owned),
            files: files.map(str::to_owned).collect(),
            tags: tags
                .map(|tag| tag.trim_start_matches('#').to_owned())
                .collect(),
            visibility: Some(visibility(activity).to_owned()),
            ..Post::default()
        };
        made.add("posts", post.record());
        Ok(())
    }
}

impl Converter for Mastodon {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        if self.is_table {
            let address = NamedRow::read(piece)?.get("Account address");
            let person = Person {
                id: address.clone().unwrap_or_default(),
                name: address,
                kind: self.kind,
                ..Person::default()
            };
            made.add("people", person.record());
            return Ok(());
        }
        let value = parse_json(piece)?;
        if let Some(url) = value.as_str() {
            let like = Like {
                id: format!("{}-{url}", self.kind),
                kind: self.kind.to_owned(),
                url: Some(url.to_owned()),
                ..Like::default()
            };
            made.add("likes", like.record());
            return Ok(());
        }
        let object = value.get("object").unwrap_or(&Value::Null);
        match (text(&value, "type"), object) {
            (Some("Announce"), Value::String(url)) => {
                let id = text(&value, "id")
                    .unwrap_or(url)
                    .trim_end_matches("/activity");
                let post = Post {
                    id: id.rsplit('/').next().unwrap_or(id).to_owned(),
                    kind: "repost",
                    author: text(&value, "actor").map(account),
                    created_at: moment(&value, "published"),
                    links: vec![url.clone()],
                    visibility: Some(visibility(&value).to_owned()),
                    ..Post::default()
                };
                made.add("posts", post.record());
                Ok(())
            }
            (Some("Create"), note @ Value::Object(_)) => Self::note(&value, note, made),
            (kind, _) => Err(malformed(format!(
                "an activity '{}' is not known",
                kind.unwrap_or_default()
            ))),
        }
    }

    fn note(&self) -> Option<String> {
        // Lists are empty in many archives.
        Some(names_only())
    }
}
