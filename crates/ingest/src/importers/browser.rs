//! Histories and bookmarks of browsers, as they lie in a profile (Chrome and its relatives, Firefox, Safari), as Google Takeout hands
//! them out, and as every browser exports bookmarks.

mod bookmarks;
mod database;
mod property_list;
mod visits;

use self::bookmarks::Bookmarks;
use self::database::DatabaseImporter;
use self::visits::Exported;
use super::outline::first_members;
use super::pieces::Cut;
use crate::database_copy::{LogKeeper, is_database, is_log};
use crate::exports::{Candidate, Declared, Known, MakeImporter, Verdict};
use crate::shape::{self, Shape, Stream};
use std::io::BufRead as _;

pub(crate) const EXPORT: Known = Known {
    name: "browser",
    title: "a browser's history and bookmarks",
    declaration: Declared::Shape(SHAPE),
    origin: "The folder of the profile: Chrome, Edge, Brave and others ('Profile Path' in chrome://version), Firefox ('Profile Folder' in about:support), Safari (~/Library/Safari, or File > Export Browsing Data to File). Google Takeout: Chrome. Any browser: Export bookmarks (HTML)",
    contents: "visits and bookmarks; no cookies, no passwords, nothing typed into forms",
    recognise,
    importer: IMPORTER,
};

const SHAPE: Shape = Shape {
    key: "browser",
    name: "Browser",
    streams: &[
        Stream {
            name: "visits",
            label: "Visits",
            about: "Pages that were visited, one record per visit.",
            time: Some("visited_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("url").role("url").searched(),
                shape::text("site").searched().grouped(),
                shape::time("visited_at"),
                shape::text("kind")
                    .grouped()
                    .about("How the page was come to: link, typed, bookmark, reload and so on."),
                shape::text("browser").grouped(),
            ],
            children: &[],
        },
        Stream {
            name: "bookmarks",
            label: "Bookmarks",
            about: "Bookmarks, and what was put on a list to be read.",
            time: Some("added_at"),
            fields: &[
                shape::text("id"),
                shape::text("title").role("title").searched(),
                shape::text("url").role("url").searched(),
                shape::text("site").searched().grouped(),
                shape::text("folder").searched().grouped(),
                shape::texts("tags").searched(),
                shape::time("added_at"),
            ],
            children: &[],
        },
    ],
};

/// Databases of histories, and words that stand in the description of one, if that is within what is looked at.
const HISTORIES: [(&str, &str); 3] = [
    ("History", "CREATE TABLE visits(id INTEGER PRIMARY KEY"),
    ("places.sqlite", "CREATE TABLE moz_places"),
    ("History.db", "CREATE TABLE history_visits"),
];
/// Whether a file is called as browsers, and mail programs made like them, call their history.
pub(crate) fn is_called_history(name: &str) -> bool {
    HISTORIES.iter().any(|(called, _)| *called == name)
}

/// Other files of a profile.
const PRIVATE: [&str; 31] = [
    "Preferences",
    "Secure Preferences",
    "Local State",
    "TransportSecurity",
    "Network Persistent State",
    "Reporting and NEL",
    "SCT Auditing Pending Reports",
    "logins.json",
    "cert9.db",
    "Cookies",
    "Login Data",
    "Login Data For Account",
    "Web Data",
    "Favicons",
    "Top Sites",
    "Shortcuts",
    "Network Action Predictor",
    "Affiliation Database",
    "QuotaManager",
    "Trust Tokens",
    "Extension Cookies",
    "cookies.sqlite",
    "favicons.sqlite",
    "formhistory.sqlite",
    "permissions.sqlite",
    "content-prefs.sqlite",
    "storage.sqlite",
    "webappsstore.sqlite",
    "protections.sqlite",
    "credentialstate.sqlite",
    "key4.db",
];
/// What stands in the description of databases that are none of a history: the first one is in every database of Chrome and its relatives.
const PRIVATE_TABLES: [&str; 7] = [
    "CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR)",
    "CREATE TABLE cookies(creation_utc",
    "CREATE TABLE cookies (creation_utc",
    "CREATE TABLE logins (origin_url",
    "CREATE TABLE autofill (name",
    "CREATE TABLE moz_",
    "CREATE TABLE nssP",
];
const PRIVATE_LEFT: &str = "data of a browser that is no history, such as cookies and passwords";

fn recognise(file: &Candidate<'_>) -> Verdict {
    let (name, head) = (file.file_name(), file.head);
    if is_database(head) {
        let text = String::from_utf8_lossy(head);
        let is_history = HISTORIES
            .iter()
            .any(|(called, words)| name == *called || text.contains(words));
        if is_history {
            return Verdict::Takes;
        }
        let is_private = PRIVATE.contains(&name)
            || is_in_profile(file.path)
            || PRIVATE_TABLES.iter().any(|words| text.contains(words));
        return if is_private {
            Verdict::Leaves(PRIVATE_LEFT)
        } else {
            Verdict::Unlike
        };
    }
    if is_log(head) {
        let of = name.strip_suffix("-wal").unwrap_or_default();
        let is_history = is_called_history(of);
        // The database is read together with it.
        return if is_history {
            Verdict::Before(0)
        } else {
            Verdict::Unlike
        };
    }
    let (members, kind) = first_members(head, "type");
    let has = |name: &str| members.iter().any(|member| member == name);
    if kind.as_deref() == Some(bookmarks::FIREFOX_FOLDER) && has("guid") {
        return Verdict::Takes;
    }
    if (has("roots") && (has("checksum") || has("version"))) || has("Browser History") {
        return Verdict::Takes;
    }
    if bookmarks::is_html(head) || bookmarks::is_property_list(head, name) || is_of_safari(&members)
    {
        return Verdict::Takes;
    }
    if lists_secrets(head, &members) {
        return Verdict::Leaves(PRIVATE_LEFT);
    }
    if PRIVATE.contains(&name) && head.trim_ascii_start().starts_with(b"{") {
        return Verdict::Leaves(PRIVATE_LEFT);
    }
    if is_called_history(name) {
        return Verdict::Misses("it is no SQLite database");
    }
    Verdict::Unlike
}

/// Whether a file stands in a folder that Firefox or Safari keeps for itself.
fn is_in_profile(path: &str) -> bool {
    let folder = path.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    folder == "Safari" || folder.ends_with(".default") || folder.contains(".default-")
}

/// Whether a file is a table of passwords, as every browser exports them, Safari's list of payment cards, or what a password manager exports.
fn lists_secrets(head: &[u8], members: &[String]) -> bool {
    let header = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let header = String::from_utf8_lossy(header).to_lowercase();
    let columns = header.split([',', ';', '\t']);
    let columns: Vec<&str> = columns
        .map(|name| name.trim_matches(['"', ' ', '\r']))
        .collect();
    let has = |end: &str| columns.iter().any(|name| name.ends_with(end));
    let has_member = |name: &str| members.iter().any(|member| member == name);
    let is_vault = || ["items", "vaults", "salt"].into_iter().any(has_member);
    has("password")
        && ["username", "user name", "login", "login name"]
            .into_iter()
            .any(has)
        || has_member("payment_cards")
        || has_member("encrypted") && is_vault()
}

/// The members of the history that Safari exports.
fn is_of_safari(members: &[String]) -> bool {
    matches!(members, [first, second, ..] if first == "metadata" && second == "history")
}

const IMPORTER: MakeImporter = |input, acceptor, companions| {
    let path = input.path().to_owned();
    let mut reader = input.into_reader();
    // What cannot be read is told when it is read.
    let head = reader.fill_buf().unwrap_or_default();
    let head = head
        .get(..head.len().min(16 * 1024))
        .unwrap_or_default()
        .to_vec();
    if is_database(&head) {
        return Box::new(DatabaseImporter::new(reader, path, acceptor, companions));
    }
    if is_log(&head) {
        return Box::new(LogKeeper::new(reader, path, companions));
    }
    let (members, _) = first_members(&head, "");
    if members.iter().any(|member| member == "Browser History") {
        let visits = Exported("Chrome (Takeout)");
        return Cut::Members(&["Browser History"]).importer(reader, acceptor, visits);
    }
    if is_of_safari(&members) {
        return Cut::Members(&["history"]).importer(reader, acceptor, Exported("Safari"));
    }
    Cut::Whole.importer(reader, acceptor, Bookmarks)
};
