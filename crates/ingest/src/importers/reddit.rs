//! What Reddit hands out: a table for each kind of thing.

use super::named_rows::{NamedRow, has_columns, names_all};
use super::pieces::{Converter, Cut, Made, malformed};
use super::social::{self, Like, Message, Person, Post};
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::rejection::Rejection;
use crate::shape::Shape;
use crate::table;

const SHAPE: Shape = social::shape("reddit", "Reddit");

pub(crate) const EXPORT: Known = Known {
    name: "reddit",
    title: "what Reddit hands out (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "reddit.com/settings/data-request; the link comes as a message",
    contents: "posts, comments, messages, chats, votes, what was saved and who is followed",
    recognise,
    importer: |input, acceptor, _| {
        let stem = input.stem().to_owned();
        let is_header =
            |cells: &[String]| TABLES.iter().any(|(columns, _)| names_all(cells, columns));
        Cut::Named(is_header).importer(input.into_reader(), acceptor, Reddit { stem })
    },
};

type TakeRow = fn(&NamedRow, &str, &mut Made) -> Result<(), Rejection>;

/// The columns of the tables that are read, the longest lists first.
const TABLES: [(&[&str], TakeRow); 7] = [
    (
        &["id", "permalink", "subreddit", "link", "parent", "body"],
        comment,
    ),
    (&["id", "permalink", "subreddit", "title", "body"], post),
    (
        &["id", "permalink", "from", "to", "subject", "body"],
        message,
    ),
    (
        &[
            "message_id",
            "created_at",
            "username",
            "message",
            "channel_url",
        ],
        chat,
    ),
    (&["id", "permalink", "direction"], like),
    (&["id", "permalink"], like),
    (&["username", "note"], friend),
];

/// Whether these are the columns of a table. Of two or three there may be none beside them: other tables have them too.
fn has_table(table: &[u8], columns: &[&str]) -> bool {
    let header = table.split(|byte| *byte == b'\n').next();
    match columns {
        [_, _] | [_, _, _] => {
            header.is_some_and(|header| header.trim_ascii() == columns.join(",").as_bytes())
        }
        _ => has_columns(table, columns),
    }
}

fn is_lone(columns: &[&str], file: &Candidate<'_>) -> bool {
    // A table of two columns that many have is one of Reddit's only where its rows lead there.
    columns.len() > 2
        || (columns.contains(&"permalink")
            && (String::from_utf8_lossy(file.head).contains("reddit.com/")
                || file.file_name().starts_with("saved_")))
        || (columns.contains(&"username") && file.file_name() == "friends.csv")
}

/// What tables begin with that are left and have names that anybody may give.
const LEFT_WITH: [&[u8]; 3] = [
    b"statistic,value",
    b"announcement_id,",
    b"post_id,user_selection",
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let begins = ["id,permalink", "message_id,", "username,note"];
    if !begins
        .iter()
        .any(|begin| file.head.starts_with(begin.as_bytes()))
    {
        return match file.file_name() {
            "subscribed_subreddits.csv"
            | "ip_logs.csv"
            | "user_preferences.csv"
            | "account_gender.csv"
            | "checkfile.csv"
            | "linked_identities.csv" => {
                Verdict::Leaves("tables of Reddit that hold no posts or messages")
            }
            // Anybody may call a table so.
            "statistics.csv" | "announcements.csv" | "poll_votes.csv"
                if LEFT_WITH.iter().any(|begin| file.head.starts_with(begin)) =>
            {
                Verdict::Leaves("tables of Reddit that hold no posts or messages")
            }
            "saved_posts.csv" | "post_votes.csv" => {
                Verdict::Misses("it does not begin with the columns that Reddit writes")
            }
            _ => Verdict::Unlike,
        };
    }
    let mut tables = TABLES.iter();
    let known = tables.find(|(columns, _)| has_table(file.head, columns));
    match known {
        Some((columns, _)) if is_lone(columns, file) => Verdict::Takes,
        None if has_columns(file.head, &["id", "permalink", "date"]) => {
            Verdict::Leaves("tables of Reddit that hold no posts or messages")
        }
        _ => Verdict::Unlike,
    }
}

/// `2024-03-05 10:00:00 UTC`.
fn moment(row: &NamedRow, column: &str) -> Result<Option<String>, Rejection> {
    row.time(column, |text| {
        let moment = table::iso(text.trim_end_matches(" UTC")).filter(|moment| moment.has_time)?;
        Some(format!("{}Z", moment.text))
    })
}

fn post(row: &NamedRow, _: &str, made: &mut Made) -> Result<(), Rejection> {
    let link = row
        .get("url")
        .filter(|url| Some(url) != row.get("permalink").as_ref());
    let post = Post {
        id: row.get("id").unwrap_or_default(),
        kind: "post",
        title: row.get("title"),
        text: row.get("body"),
        community: row.get("subreddit"),
        created_at: moment(row, "date")?,
        url: row.get("permalink"),
        links: link.into_iter().collect(),
        ..Post::default()
    };
    made.add("posts", post.record());
    Ok(())
}

fn comment(row: &NamedRow, _: &str, made: &mut Made) -> Result<(), Rejection> {
    let post = Post {
        id: row.get("id").unwrap_or_default(),
        kind: "comment",
        text: row.get("body"),
        community: row.get("subreddit"),
        created_at: moment(row, "date")?,
        // Without a parent it answers the post itself.
        in_reply_to: row.get("parent").or_else(|| row.get("link")),
        url: row.get("permalink"),
        ..Post::default()
    };
    made.add("posts", post.record());
    Ok(())
}

fn message(row: &NamedRow, _: &str, made: &mut Made) -> Result<(), Rejection> {
    let id = row.get("id").unwrap_or_default();
    let message = Message {
        conversation_id: row.get("thread_id").unwrap_or_else(|| id.clone()),
        id,
        conversation: row.get("subject"),
        participants: [row.get("from"), row.get("to")]
            .into_iter()
            .flatten()
            .collect(),
        author: row.get("from"),
        sent_at: moment(row, "date")?,
        subject: row.get("subject"),
        text: row.get("body"),
        ..Message::default()
    };
    made.add("messages", message.record());
    Ok(())
}

fn chat(row: &NamedRow, _: &str, made: &mut Made) -> Result<(), Rejection> {
    let channel = row.get("channel_url").unwrap_or_default();
    let message = Message {
        id: row.get("message_id").unwrap_or_default(),
        conversation: row.get("channel_name").or_else(|| row.get("subreddit")),
        conversation_id: channel,
        author: row.get("username"),
        sent_at: moment(row, "created_at")?,
        text: row.get("message"),
        ..Message::default()
    };
    made.add("messages", message.record());
    Ok(())
}

/// A vote, or something that was saved: the name of the file tells.
#[expect(clippy::unnecessary_wraps, reason = "rows of other tables have times")]
fn like(row: &NamedRow, stem: &str, made: &mut Made) -> Result<(), Rejection> {
    let id = row.get("id").unwrap_or_default();
    let direction = row.get("direction");
    let kind = match direction.as_deref() {
        Some("none" | "0") => return Ok(()),
        Some(direction) => format!("{direction}vote"),
        None if stem.starts_with("hidden") => "hidden".to_owned(),
        None => "saved".to_owned(),
    };
    let like = Like {
        id: format!("{kind}-{id}"),
        kind,
        url: row.get("permalink"),
        ..Like::default()
    };
    made.add("likes", like.record());
    Ok(())
}

/// Somebody who is followed.
#[expect(clippy::unnecessary_wraps, reason = "rows of other tables have times")]
fn friend(row: &NamedRow, _: &str, made: &mut Made) -> Result<(), Rejection> {
    let name = row.get("username").unwrap_or_default();
    let person = Person {
        url: Some(format!("https://www.reddit.com/user/{name}/")),
        id: name.clone(),
        name: Some(name),
        kind: "following",
        ..Person::default()
    };
    made.add("people", person.record());
    Ok(())
}

struct Reddit {
    stem: String,
}

impl Converter for Reddit {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = NamedRow::read(piece)?;
        let is_of = |columns: &[&str]| {
            row.has(columns) && (columns.len() > 3 || row.width() == columns.len())
        };
        let table = TABLES.iter().find(|(columns, _)| is_of(columns));
        let (_, take) = table.ok_or_else(|| malformed("it is no table of Reddit"))?;
        take(&row, &self.stem, made)
    }
}
