//! Kindle's `My Clippings.txt`: highlights, notes and bookmarks, one below the other.

use serde_json::json;

use super::id;
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::some_text;
use crate::importers::pieces::{Converter, Cut, Kept, Made, malformed, read_text};
use crate::importers::written_dates::written;
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

const LINE: &str = "==========";
/// What a note is called, in the languages of the device.
const NOTES: [&str; 6] = ["note", "notiz", "nota", "notitie", "メモ", "笔记"];
/// What stands before the number of a page, and before those of a location.
const PAGES: [&str; 7] = [
    "page ", "seite ", "página ", "pagina ", "第 ", "side ", "sidan ",
];
const LOCATIONS: [&str; 11] = [
    "location ",
    "position ",
    "emplacement ",
    "posición ",
    "posizione ",
    "posição ",
    "positie ",
    "locatie ",
    "位置no. ",
    "位置 #",
    "#",
];
/// What stands behind the number of a page.
const PAGE_BEHIND: &str = "ページ";

pub(crate) const EXPORT: Known = Known {
    name: "kindle",
    title: "Kindle clippings (My Clippings.txt)",
    declaration: Declared::Shape(SHAPE),
    origin: "connect the Kindle to a computer: the file documents/My Clippings.txt",
    contents: "highlights and notes; bookmarks are left",
    recognise,
    importer: |input, acceptor, _| {
        let converter = Clippings { unread_times: 0 };
        Cut::Marked(LINE).importer(input.into_reader(), acceptor, converter)
    },
};

const SHAPE: Shape = Shape {
    key: "kindle",
    name: "Kindle",
    streams: &[Stream {
        name: "clippings",
        label: "Clippings",
        about: "What was marked and noted in books.",
        time: Some("noted_at"),
        fields: &[
            shape::text("id"),
            shape::text("book").role("title").searched().grouped(),
            shape::text("author").role("author").searched().grouped(),
            shape::text("kind").grouped().about("highlight or note."),
            shape::text("page"),
            shape::text("location"),
            shape::time("noted_at"),
            shape::text("text").role("body").searched(),
        ],
        children: &[],
    }],
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let head = read_text(file.head);
    let mut lines = head.lines();
    let about = lines.nth(1).unwrap_or_default();
    let is_clipping = about.starts_with("- ") && about.contains('|');
    match file.file_name() {
        _ if is_clipping && head.contains(LINE) => Verdict::Takes,
        "My Clippings.txt" => Verdict::Misses("its second line does not say what was clipped"),
        _ => Verdict::Unlike,
    }
}

struct Clippings {
    unread_times: usize,
}

impl Converter for Clippings {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        let text = read_text(piece);
        let text = text.trim_start_matches(LINE);
        let text = text.trim_start_matches(['\u{feff}', '\r', '\n']);
        if text.trim().is_empty() {
            return Ok(());
        }
        let mut lines = text.lines();
        let book = lines
            .next()
            .unwrap_or_default()
            .trim()
            .trim_start_matches('\u{feff}');
        let Some(about) = lines.next().and_then(|line| line.trim().strip_prefix("- ")) else {
            return Err(malformed("the clipping does not say what it is"));
        };
        let words = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
        let parts: Vec<&str> = about.split('|').map(str::trim).collect();
        let first = parts.first().copied().unwrap_or_default();
        let is_note = NOTES.iter().any(|word| first.to_lowercase().contains(word));
        let Some(words) = some_text(words) else {
            // A bookmark.
            return Ok(());
        };
        let (added, places) = parts.split_last().unwrap_or((&"", &[]));
        let places = places.join(" | ").to_lowercase();
        let page = number_behind(&places, &PAGES).or_else(|| {
            let (before, _) = places.split_once(PAGE_BEHIND)?;
            before.split(' ').next_back()
        });
        let noted_at = written(added).map(|time| time.to_string());
        self.unread_times += usize::from(noted_at.is_none());
        let (title, author) = match book
            .strip_suffix(')')
            .and_then(|book| book.rsplit_once(" ("))
        {
            Some((title, author)) => (title, Some(author)),
            None => (book, None),
        };
        let what = format!(
            "{book}\n{}\n{words}",
            parts
                .get(..parts.len().saturating_sub(1))
                .unwrap_or_default()
                .join("|")
        );
        // Earlier releases could read English times only.
        let kept = Kept::Key(id("", &what), &["book", "text"]);
        made.add_keeping(
            "clippings",
            json!({
                "id": id(noted_at.as_deref().unwrap_or_default(), &what),
                "book": title,
                "author": author,
                "kind": if is_note { "note" } else { "highlight" },
                "page": page,
                "location": number_behind(&places, &LOCATIONS),
                "noted_at": noted_at,
                "text": words,
            }),
            kept,
        );
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let unread = self.unread_times;
        (unread > 0).then(|| {
            format!("{unread} clippings have no time, for it is written in a language that is not read here")
        })
    }
}

/// The number, or the first and the last one, behind one of these words.
fn number_behind<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    words.iter().find_map(|word| {
        let (_, rest) = text.split_once(word)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let number = rest.get(..end.unwrap_or(rest.len()))?;
        (!number.is_empty()).then_some(number)
    })
}
