//! Kindle's `My Clippings.txt`: highlights, notes and bookmarks, one below the other.

use jiff::civil::DateTime;
use serde_json::json;

use super::id;
use crate::exports::{Candidate, Declared, Known, Verdict};
use crate::importers::json_members::some_text;
use crate::importers::pieces::{Converter, Cut, Made, malformed, read_text};
use crate::rejection::Rejection;
use crate::shape::{self, Shape, Stream};

const LINE: &str = "==========";
/// What a note is called, in the languages of the device.
const NOTES: [&str; 6] = ["note", "notiz", "nota", "notitie", "メモ", "笔记"];

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
        let behind = |word: &str| {
            let mut found = parts.iter().filter_map(|part| {
                let at = part.to_lowercase().find(word)?;
                part.get(at + word.len()..)
            });
            found.next().and_then(|rest| rest.split_whitespace().next())
        };
        let added = parts.last().copied().unwrap_or_default();
        let noted_at = moment(added);
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
        made.add(
            "clippings",
            json!({
                "id": id(noted_at.as_deref().unwrap_or_default(), &what),
                "book": title,
                "author": author,
                "kind": if is_note { "note" } else { "highlight" },
                "page": behind("page ").or_else(|| behind("seite ")),
                "location": behind("location ").or_else(|| behind("position ")),
                "noted_at": noted_at,
                "text": words,
            }),
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

/// `Added on Tuesday, March 5, 2024 10:00:00 AM`, the time of the device, which counts as UTC.
fn moment(text: &str) -> Option<String> {
    let (_, time) = text.split_once(", ")?;
    let forms = [
        "%B %d, %Y %I:%M:%S %p",
        "%d %B %Y %H:%M:%S",
        "%B %d, %Y, %I:%M %p",
    ];
    let time = forms
        .iter()
        .find_map(|form| DateTime::strptime(form, time).ok())?;
    Some(time.to_string())
}
