//! The archive of `LinkedIn`: a table for each kind of thing, known by its columns.

use super::html;
use super::named_rows::{NamedRow, has_columns, names_all};
use super::pieces::{Converter, Cut, Made, malformed, names_only};
use super::social::{self, Like, Message, Person, Post};
use crate::exports::{Candidate, Claims, Declared, Known, Verdict};
use crate::readable_key::short_hash;
use crate::rejection::Rejection;
use crate::shape::Shape;
use crate::table;

const SHAPE: Shape = social::shape("linkedin", "LinkedIn");

pub(crate) const EXPORT: Known = Known {
    name: "linkedin",
    title: "a LinkedIn archive (zip)",
    declaration: Declared::Shape(SHAPE),
    origin: "LinkedIn: Settings > Data privacy > Get a copy of your data",
    contents: "messages, connections, posts, comments and reactions",
    recognise,
    importer: |input, acceptor, companions| {
        let claims = companions.claims.clone();
        let is_header =
            |cells: &[String]| TABLES.iter().any(|(columns, _)| names_all(cells, columns));
        let converter = LinkedIn {
            claims,
            nameless: 0,
        };
        Cut::Named(is_header).importer(input.into_reader(), acceptor, converter)
    },
};

type TakeRow = fn(&NamedRow, &Claims, &mut Made) -> Result<(), Rejection>;

/// The columns of the tables that are read, and how their rows are.
const TABLES: [(&[&str], TakeRow); 5] = [
    (&["CONVERSATION ID", "FROM", "DATE", "CONTENT"], message),
    (&["First Name", "Last Name", "Connected On"], connection),
    (&["Date", "ShareLink", "ShareCommentary"], share),
    (&["Date", "Link", "Message"], comment),
    (&["Date", "Type", "Link"], reaction),
];

/// Files of the archive that hold none of these.
const LEFT: [&str; 14] = [
    "Ad_Targeting.csv",
    "Company Follows.csv",
    "ImportedContacts.csv",
    "InstantReposts.csv",
    "Member_Follows.csv",
    "Receipts_v2.csv",
    "Saved_Items.csv",
    "Email Addresses.csv",
    "Endorsement_Received_Info.csv",
    "Job Applications.csv",
    "PhoneNumbers.csv",
    "Profile Summary.csv",
    "Recommendations_Received.csv",
    "Rich_Media.csv",
];

/// The same with names that anybody may give a table, and what those of the archive begin with.
const LEFT_WITH: [(&str, &str); 10] = [
    ("Education.csv", "School Name,"),
    ("Invitations.csv", "From,To,Sent At"),
    ("Learning.csv", "Content Title,"),
    ("Positions.csv", "Company Name,Title"),
    ("Profile.csv", "First Name,Last Name,"),
    ("Registration.csv", "Registered At,"),
    ("SearchQueries.csv", "Time,Search Query"),
    ("Skills.csv", "Name\n"),
    ("Skills.csv", "Name\r"),
    ("Votes.csv", "Date,Link,OptionText"),
];

fn recognise(file: &Candidate<'_>) -> Verdict {
    let name = file.file_name();
    let of_column = |(called, begins): &(&str, &str)| {
        *called == name && file.head.starts_with(begins.as_bytes())
    };
    if LEFT.contains(&name) || LEFT_WITH.iter().any(of_column) {
        return Verdict::Leaves("tables of LinkedIn that hold no messages, posts or people");
    }
    // Names of columns stand in the first lines; nothing else is looked at as a table.
    if !file.head.contains(&b',')
        || file
            .head
            .first()
            .is_some_and(|first| b"{[<".contains(first))
    {
        return Verdict::Unlike;
    }
    // Many tables have a date and a link; LinkedIn's have them first.
    let is_begin = |columns: &[&str]| file.head.starts_with(columns.join(",").as_bytes());
    let is_table = |columns: &[&str]| match columns.first() {
        Some(&"Date") => is_begin(columns),
        _ => has_columns(file.head, columns),
    };
    if TABLES.iter().any(|(columns, _)| is_table(columns)) {
        return Verdict::Takes;
    }
    match name {
        "Connections.csv" | "Shares.csv" => {
            Verdict::Misses("it has none of the columns that LinkedIn writes")
        }
        _ => Verdict::Unlike,
    }
}

/// `2024-03-05 10:00:00 UTC`, `2024-03-05 10:00:00` and `05 Mar 2024`.
fn moment(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(" UTC");
    if let Ok(date) = jiff::civil::Date::strptime("%d %b %Y", text) {
        return Some(format!("{date}T00:00:00Z"));
    }
    Some(format!(
        "{}Z",
        table::iso(text).filter(|moment| moment.has_time)?.text
    ))
}

fn at(row: &NamedRow, column: &str) -> Result<Option<String>, Rejection> {
    row.time(column, moment)
}

fn message(row: &NamedRow, claims: &Claims, made: &mut Made) -> Result<(), Rejection> {
    let conversation = row.get("CONVERSATION ID").unwrap_or_default();
    let from = row.get("FROM");
    let sent_at = at(row, "DATE")?.ok_or_else(|| malformed("a message has no time in 'DATE'"))?;
    let content = row.get("CONTENT");
    let telling = format!("{conversation}\n{from:?}\n{content:?}");
    let key = format!("{}-{}", sent_at.replace(':', ""), short_hash(&telling));
    let files: Vec<String> = row.get("ATTACHMENTS").into_iter().collect();
    // Who sends the same words twice in a second does so with a file.
    let mut id = key.clone();
    for number in 2..=MOST_EQUAL {
        if claims.take(&id, &files) {
            break;
        }
        id = format!("{key}-{number}");
    }
    let title = row.get("CONVERSATION TITLE");
    let to = row.get("TO");
    let others = to.iter().flat_map(|to| to.split(','));
    let participants = from.iter().map(String::as_str).chain(others);
    let participants = participants.map(|name| name.trim().to_owned());
    let one = Message {
        id,
        conversation_id: conversation,
        participants: participants.collect(),
        conversation: title.or_else(|| match (&from, to) {
            (Some(from), Some(to)) => Some(format!("{from}, {to}")),
            (from, to) => from.clone().or(to),
        }),
        author: from,
        sent_at: Some(sent_at),
        subject: row.get("SUBJECT"),
        text: content.map(|content| html::typed_to_text(&content).into_owned()),
        files,
        ..Message::default()
    };
    made.add("messages", one.record());
    Ok(())
}

fn connection(row: &NamedRow, claims: &Claims, made: &mut Made) -> Result<(), Rejection> {
    let names = [row.get("First Name"), row.get("Last Name")];
    let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let url = row.get("URL");
    let id = url
        .as_deref()
        .and_then(|url| url.trim_end_matches('/').rsplit('/').next());
    // Those who closed their account have neither.
    if name.is_empty() && url.is_none() {
        return Ok(());
    }
    let since = at(row, "Connected On")?;
    // Without an address there is only the name, which several may have.
    let id = match id {
        Some(id) => id.to_owned(),
        None if claims.take(&format!("contact-{name}"), &since) => name.clone(),
        None => format!(
            "{name}#{}",
            short_hash(since.as_deref().unwrap_or_default())
        ),
    };
    let person = Person {
        id,
        name: Some(name),
        kind: "contact",
        email: row.get("Email Address"),
        company: row.get("Company"),
        position: row.get("Position"),
        since,
        url,
    };
    made.add("people", person.record());
    Ok(())
}

fn share(row: &NamedRow, _: &Claims, made: &mut Made) -> Result<(), Rejection> {
    let links = [row.get("SharedUrl"), row.get("MediaUrl")];
    let url = row.get("ShareLink");
    // Every line of what was written is quoted once more.
    let said = row
        .get("ShareCommentary")
        .map(|said| said.replace("\"\r\n\"", "\n").replace("\"\n\"", "\n"));
    let post = Post {
        id: short_hash(&format!("{url:?}\n{:?}", row.get("Date"))),
        kind: "post",
        text: said,
        created_at: at(row, "Date")?,
        url,
        links: links.into_iter().flatten().collect(),
        visibility: row.get("Visibility"),
        ..Post::default()
    };
    made.add("posts", post.record());
    Ok(())
}

fn comment(row: &NamedRow, _: &Claims, made: &mut Made) -> Result<(), Rejection> {
    let url = row.get("Link");
    let post = Post {
        id: short_hash(&format!("{url:?}\n{:?}", row.get("Date"))),
        kind: "comment",
        text: row.get("Message"),
        created_at: at(row, "Date")?,
        in_reply_to: url.clone(),
        url,
        ..Post::default()
    };
    made.add("posts", post.record());
    Ok(())
}

fn reaction(row: &NamedRow, _: &Claims, made: &mut Made) -> Result<(), Rejection> {
    let url = row.get("Link");
    let like = Like {
        id: short_hash(&format!("{url:?}\n{:?}", row.get("Date"))),
        kind: row.get("Type").unwrap_or_default().to_ascii_lowercase(),
        created_at: at(row, "Date")?,
        url,
        ..Like::default()
    };
    made.add("likes", like.record());
    Ok(())
}

/// Messages of one second, person and text that are told apart.
const MOST_EQUAL: usize = 100;

struct LinkedIn {
    claims: Claims,
    /// People of whom nothing but a day is told.
    nameless: u64,
}

impl Converter for LinkedIn {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let row = NamedRow::read(piece)?;
        let table = TABLES.iter().find(|(columns, _)| row.has(columns));
        let (_, take) = table.ok_or_else(|| malformed("it is no table of LinkedIn"))?;
        take(&row, &self.claims, made)?;
        self.nameless += u64::from(made.is_empty());
        Ok(())
    }

    fn note(&self) -> Option<String> {
        if self.nameless == 0 {
            // Tables are empty in many archives.
            return Some(names_only());
        }
        let people = self.nameless;
        Some(format!(
            "connections without name and address, as of closed accounts, are left out: {people}"
        ))
    }
}
