//! Histories that are SQLite databases.

use std::collections::{HashMap, VecDeque};
use std::io;

use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use super::bookmarks::Bookmark;
use super::visits::Visit;
use crate::accept::Acceptor;
use crate::database_copy::{DatabaseCopy, damaged};
use crate::error::InputError;
use crate::exports::Companions;
use crate::importer::{Importer, Item};
use crate::importers::json_members::some_list;

type Reader = Box<dyn io::BufRead>;

/// Rows that are read at once.
const PAGE: i64 = 1_000;
/// Folders inside folders.
const MAX_DEPTH: usize = 32;

/// Microseconds between 1601, from which Chrome counts, and 1970.
const CHROME_EPOCH: i64 = 11_644_473_600_000_000;
/// Seconds between 1970 and 2001, from which Safari counts.
const SAFARI_EPOCH: f64 = 978_307_200.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chrome,
    Firefox,
    Safari,
}

impl Kind {
    /// The tables of visits and of pages, by which a browser is known.
    const ALL: [(Self, [&'static str; 2]); 3] = [
        (Self::Chrome, ["visits", "urls"]),
        (Self::Firefox, ["moz_historyvisits", "moz_places"]),
        (Self::Safari, ["history_visits", "history_items"]),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Chrome => "Chrome",
            Self::Firefox => "Firefox",
            Self::Safari => "Safari",
        }
    }

    fn visits(self) -> &'static str {
        match self {
            Self::Chrome => {
                "SELECT v.id, v.visit_time, u.url, u.title, v.transition & 255 FROM visits v JOIN urls u ON u.id = v.url \
                 WHERE v.id > ?1 ORDER BY v.id LIMIT ?2"
            }
            Self::Firefox => {
                "SELECT v.id, v.visit_date, p.url, p.title, v.visit_type FROM moz_historyvisits v JOIN moz_places p ON p.id = v.place_id \
                 WHERE v.id > ?1 ORDER BY v.id LIMIT ?2"
            }
            Self::Safari => {
                "SELECT v.id, v.visit_time, i.url, v.title, NULL FROM history_visits v JOIN history_items i ON i.id = v.history_item \
                 WHERE v.id > ?1 ORDER BY v.id LIMIT ?2"
            }
        }
    }

    /// When a visit took place, in microseconds since 1970.
    fn micros(self, row: &Row<'_>) -> rusqlite::Result<i64> {
        if self == Self::Safari {
            let seconds: Option<f64> = row.get(1)?;
            let seconds = seconds.unwrap_or_default() + SAFARI_EPOCH;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a time that does not fit is none, and is told as such"
            )]
            return Ok((seconds * 1e6).round() as i64);
        }
        let micros: Option<i64> = row.get(1)?;
        let epoch = if self == Self::Chrome {
            CHROME_EPOCH
        } else {
            0
        };
        Ok(micros.unwrap_or_default().saturating_sub(epoch))
    }

    fn transition(self, number: Option<i64>) -> Option<&'static str> {
        Some(match (self, number?) {
            (Self::Chrome, 0) | (Self::Firefox, 1) => "link",
            (Self::Chrome, 1) | (Self::Firefox, 2) => "typed",
            (Self::Chrome, 2) | (Self::Firefox, 3) => "bookmark",
            (Self::Chrome, 3 | 4) | (Self::Firefox, 4 | 8) => "frame",
            (Self::Chrome, 5 | 9 | 10) => "search",
            (Self::Chrome, 7) => "form",
            (Self::Chrome, 8) | (Self::Firefox, 9) => "reload",
            (Self::Firefox, 5 | 6) => "redirect",
            (Self::Firefox, 7) => "download",
            _ => return None,
        })
    }
}

/// A database that is open, and how far it was read.
struct Open {
    kind: Kind,
    copy: DatabaseCopy,
    /// The last visit that was read; none are left once it is nothing.
    after: Option<i64>,
}

pub(super) struct DatabaseImporter<'a> {
    source: Option<Reader>,
    path: String,
    acceptor: &'a Acceptor<'a>,
    companions: &'a Companions,
    open: Option<Open>,
    ready: VecDeque<Item>,
    count: u64,
}

impl<'a> DatabaseImporter<'a> {
    pub(super) fn new(
        source: Reader,
        path: String,
        acceptor: &'a Acceptor<'a>,
        companions: &'a Companions,
    ) -> Self {
        Self {
            source: Some(source),
            path,
            acceptor,
            companions,
            open: None,
            ready: VecDeque::new(),
            count: 0,
        }
    }

    fn begin(&mut self, source: Reader) -> Result<(), InputError> {
        let log = self.companions.file(&format!("{}-wal", self.path));
        let copy = DatabaseCopy::open(source, log)?;
        let connection = &copy.connection;
        let kind = Kind::ALL
            .into_iter()
            .find(|(_, tables)| tables.iter().all(|table| is_table(connection, table)));
        let Some((kind, _)) = kind else {
            let message = "the database holds no history that is known".to_owned();
            return Err(InputError::UnknownFormat(message));
        };
        if kind == Kind::Firefox {
            for bookmark in firefox_bookmarks(connection).map_err(|error| damaged(&error))? {
                self.add("bookmarks", &bookmark);
            }
        }
        self.open = Some(Open {
            kind,
            copy,
            after: Some(i64::MIN),
        });
        Ok(())
    }

    fn add(&mut self, stream: &str, record: &Value) {
        self.count += 1;
        let outcome = self.acceptor.record(stream, record);
        let bytes = record.to_string().len();
        self.ready.push_back(Item::new(self.count, bytes, outcome));
    }

    /// Reads the next visits. Says no at the end.
    fn advance(&mut self) -> Result<bool, InputError> {
        if let Some(source) = self.source.take() {
            self.begin(source)?;
            return Ok(true);
        }
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        let Some(after) = open.after.take() else {
            return Ok(false);
        };
        let kind = open.kind;
        let (records, last) =
            page(&open.copy.connection, kind, after).map_err(|error| damaged(&error))?;
        open.after = last;
        for record in records {
            self.add("visits", &record);
        }
        Ok(true)
    }
}

/// Visits behind one, and the last of them.
fn page(
    connection: &Connection,
    kind: Kind,
    after: i64,
) -> rusqlite::Result<(Vec<Value>, Option<i64>)> {
    let mut statement = connection.prepare_cached(kind.visits())?;
    let mut rows = statement.query((after, PAGE))?;
    let (mut records, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        last = Some(row.get(0)?);
        if let Some(record) = visit(row, kind)? {
            records.push(record);
        }
    }
    Ok((records, last))
}

fn visit(row: &Row<'_>, kind: Kind) -> rusqlite::Result<Option<Value>> {
    let url: Option<String> = row.get(2)?;
    let title: Option<String> = row.get(3)?;
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let visit = Visit {
        url: &url,
        title: title.as_deref(),
        micros: kind.micros(row)?,
        kind: kind.transition(row.get(4)?),
        browser: kind.name(),
    };
    Ok(Some(visit.record()))
}

/// Whether there is a table of that name, and not a view, which could be anything.
fn is_table(connection: &Connection, name: &str) -> bool {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND sql LIKE 'CREATE TABLE%'";
    connection.query_row(sql, [name], |_| Ok(())).is_ok()
}

/// A folder of bookmarks: the one it stands in, its name, and what Firefox calls it.
struct Folder {
    parent: i64,
    name: String,
    guid: String,
}

fn firefox_folders(connection: &Connection) -> rusqlite::Result<HashMap<i64, Folder>> {
    let mut folders = HashMap::new();
    let mut statement =
        connection.prepare("SELECT id, parent, title, guid FROM moz_bookmarks WHERE type = 2")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let folder = Folder {
            parent: row.get::<_, Option<i64>>(1)?.unwrap_or_default(),
            name: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            guid: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        };
        folders.insert(row.get(0)?, folder);
    }
    Ok(folders)
}

fn firefox_bookmarks(connection: &Connection) -> rusqlite::Result<Vec<Value>> {
    const TAGS: &str = "tags________";
    if !is_table(connection, "moz_bookmarks") {
        return Ok(Vec::new());
    }
    let folders = firefox_folders(connection)?;
    let mut tags: HashMap<String, Vec<String>> = HashMap::new();
    let mut found = Vec::new();
    let mut statement = connection.prepare(
        "SELECT b.guid, p.url, coalesce(b.title, p.title), b.dateAdded, b.parent FROM moz_bookmarks b JOIN moz_places p ON p.id = b.fk \
         WHERE b.type = 1 AND p.url IS NOT NULL ORDER BY b.id",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let url: String = row.get(1)?;
        let (mut path, mut is_tag) = (Vec::new(), false);
        let mut at: i64 = row.get(4)?;
        while let Some(folder) = folders.get(&at).filter(|_| path.len() < MAX_DEPTH) {
            is_tag |= folder.guid == TAGS;
            path.push(folder.name.as_str());
            at = folder.parent;
        }
        // A tag is a folder in which the page stands once more.
        if is_tag {
            let tag = path.first().copied().unwrap_or_default();
            tags.entry(url).or_default().push(tag.to_owned());
            continue;
        }
        path.retain(|name| !name.is_empty());
        path.reverse();
        let (title, added): (Option<String>, Option<i64>) = (row.get(2)?, row.get(3)?);
        let bookmark = Bookmark {
            id: row.get(0)?,
            url: &url,
            title: title.as_deref(),
            folder: path.join("/"),
            added_at: added.and_then(super::visits::moment),
        };
        found.push((bookmark.record(), url));
    }
    let tagged = found.into_iter().map(|(mut record, url)| {
        let tags = tags.get(&url).cloned().and_then(some_list);
        if let (Some(members), Some(tags)) = (record.as_object_mut(), tags) {
            members.insert("tags".to_owned(), json!(tags));
        }
        record
    });
    Ok(tagged.collect())
}

impl Importer for DatabaseImporter<'_> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}
