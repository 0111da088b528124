//! Bookmarks: the JSON of Chrome and of Firefox, the property list of Safari, and the HTML that every browser exports.

use serde_json::{Value, json};

use super::property_list;
use super::visits::{moment, site};
use crate::importers::json_members::{list, some_list, some_text, text};
use crate::importers::markup::{Markup, attribute};
use crate::importers::pieces::{Converter, Made, malformed, parse_json, read_text};
use crate::readable_key::{readable_key, short_hash};
use crate::rejection::Rejection;

/// Folders inside folders.
const MAX_DEPTH: usize = 32;
/// Microseconds between 1601, from which Chrome counts, and 1970.
const CHROME_EPOCH: i64 = 11_644_473_600_000_000;

/// What Firefox calls a folder, and so the whole of a backup.
pub(super) const FIREFOX_FOLDER: &str = "text/x-moz-place-container";

pub(super) fn is_html(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let begins = b"<!DOCTYPE NETSCAPE-Bookmark-file-1";
    head.get(..begins.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(begins))
}

/// Whether it is the list of Safari: its beginning tells no more than that it is some property list.
pub(super) fn is_property_list(head: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(head);
    head.starts_with(property_list::BEGINS)
        && (name == "Bookmarks.plist" || text.contains("WebBookmarkType"))
}

pub(super) struct Bookmark<'b> {
    pub(super) id: Option<String>,
    pub(super) url: &'b str,
    pub(super) title: Option<&'b str>,
    pub(super) folder: String,
    pub(super) added_at: Option<String>,
}

impl Bookmark<'_> {
    pub(super) fn record(&self) -> Value {
        let id = self.id.clone().unwrap_or_else(|| {
            let name = site(self.url).unwrap_or_default();
            format!(
                "{name}-{}",
                short_hash(&format!("{}\n{}", self.folder, self.url))
            )
        });
        let mut record = json!({
            "id": readable_key(&id),
            "title": self.title,
            "url": self.url,
            "site": site(self.url),
            "folder": some_text(self.folder.clone()),
            "added_at": self.added_at,
        });
        if let Some(members) = record.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        record
    }
}

pub(super) struct Bookmarks;

impl Converter for Bookmarks {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        if is_html(piece) {
            html_bookmarks(&read_text(piece), made);
        } else if piece.starts_with(property_list::BEGINS) {
            let list = property_list::read(piece);
            let list = list.ok_or_else(|| malformed("the property list is damaged"))?;
            safari(&list, "", made, 0);
        } else {
            let value = parse_json(piece)?;
            if text(&value, "type") == Some(FIREFOX_FOLDER) {
                firefox(&value, "", made, 0);
                return Ok(());
            }
            let roots = value.get("roots").and_then(Value::as_object);
            let roots = roots.ok_or_else(|| malformed("it holds no bookmarks"))?;
            for root in roots.values() {
                chrome(root, "", made, 0);
            }
        }
        Ok(())
    }
}

fn inside(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

fn chrome(node: &Value, folder: &str, made: &mut Made, depth: usize) {
    let name = text(node, "name").unwrap_or_default();
    if let Some(url) = text(node, "url") {
        let added = text(node, "date_added").and_then(|digits| digits.parse::<i64>().ok());
        let bookmark = Bookmark {
            id: text(node, "guid").map(str::to_owned),
            url,
            title: Some(name),
            folder: folder.to_owned(),
            added_at: added.and_then(|micros| moment(micros.checked_sub(CHROME_EPOCH)?)),
        };
        return made.add("bookmarks", bookmark.record());
    }
    if depth < MAX_DEPTH {
        let folder = inside(folder, name);
        for child in list(node, "children") {
            chrome(child, &folder, made, depth + 1);
        }
    }
}

fn firefox(node: &Value, folder: &str, made: &mut Made, depth: usize) {
    let title = text(node, "title");
    if let Some(url) = text(node, "uri") {
        let bookmark = Bookmark {
            id: text(node, "guid").map(str::to_owned),
            url,
            title,
            folder: folder.to_owned(),
            added_at: node
                .get("dateAdded")
                .and_then(Value::as_i64)
                .and_then(moment),
        };
        let mut record = bookmark.record();
        let tags = text(node, "tags").unwrap_or_default().split(',');
        let tags = tags.map(|tag| tag.trim().to_owned());
        let tags = some_list(tags.filter(|tag| !tag.is_empty()).collect());
        if let (Some(members), Some(tags)) = (record.as_object_mut(), tags) {
            members.insert("tags".to_owned(), tags.into());
        }
        return made.add("bookmarks", record);
    }
    // Queries and what is offered while one types are no bookmarks.
    if depth < MAX_DEPTH && text(node, "root") != Some("tagsFolder") {
        let folder = inside(folder, title.unwrap_or_default());
        for child in list(node, "children") {
            firefox(child, &folder, made, depth + 1);
        }
    }
}

fn safari(node: &Value, folder: &str, made: &mut Made, depth: usize) {
    let titles = node.get("URIDictionary").unwrap_or(&Value::Null);
    if let Some(url) = text(node, "URLString") {
        let read_later = node.get("ReadingList").unwrap_or(&Value::Null);
        let bookmark = Bookmark {
            id: text(node, "WebBookmarkUUID").map(str::to_owned),
            url,
            title: text(titles, "title"),
            folder: folder.to_owned(),
            added_at: text(read_later, "DateAdded").map(str::to_owned),
        };
        return made.add("bookmarks", bookmark.record());
    }
    if depth < MAX_DEPTH {
        let name = match text(node, "Title").unwrap_or_default() {
            "BookmarksBar" => "Favourites",
            "BookmarksMenu" => "Menu",
            "com.apple.ReadingList" => "Reading list",
            name => name,
        };
        let folder = inside(folder, name);
        for child in list(node, "Children") {
            safari(child, &folder, made, depth + 1);
        }
    }
}

/// `<DT><H3>Folder</H3><DL><p><DT><A HREF="…" ADD_DATE="…">Title</A></DL>`; nothing but the lists is closed.
fn html_bookmarks(text: &str, made: &mut Made) {
    let (mut folders, mut named) = (Vec::<String>::new(), String::new());
    for tag in Markup::new(text) {
        match (tag.name.to_ascii_uppercase().as_str(), tag.is_end) {
            ("H3", false) => named = tag.text,
            ("DL", false) if folders.len() < MAX_DEPTH => folders.push(std::mem::take(&mut named)),
            ("DL", true) => drop(folders.pop()),
            ("A", false) => {
                let Some(url) = attribute(tag.attributes, "HREF") else {
                    continue;
                };
                let path: Vec<&str> = folders
                    .iter()
                    .map(String::as_str)
                    .filter(|name| !name.is_empty())
                    .collect();
                let added = attribute(tag.attributes, "ADD_DATE");
                let seconds = added.and_then(|digits| digits.parse::<i64>().ok());
                let bookmark = Bookmark {
                    id: None,
                    url: &url,
                    title: Some(tag.text.as_str()).filter(|title| !title.is_empty()),
                    folder: path.join("/"),
                    added_at: seconds.and_then(|seconds| moment(seconds.checked_mul(1_000_000)?)),
                };
                made.add("bookmarks", bookmark.record());
            }
            _ => {}
        }
    }
}
