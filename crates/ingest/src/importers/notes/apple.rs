//! Apple Notes, as Apple hands them out: a folder per note with its text, and a table that says when each was made and changed.

use serde_json::json;

use super::shape;
use crate::exports::{Candidate, Companions, Declared, Known, Verdict};
use crate::importers::json_members::{first_words, some_list, some_text, text};
use crate::importers::pieces::{Converter, Cut, Made, names_only, parse_json, read_text};
use crate::readable_key::readable_key;
use crate::rejection::Rejection;

const TABLE: &str = "Notes Details.csv";

pub(crate) const EXPORT: Known = Known {
    name: "apple-notes",
    title: "notes of Apple (iCloud Notes)",
    declaration: Declared::Shape(shape("apple-notes", "Apple Notes")),
    origin: "privacy.apple.com: Request a copy of your data > iCloud Notes; the archive. Notes exported one by one are Markdown",
    contents: "notes with their folders; files are not kept, and locked notes are not handed out",
    recognise,
    importer: |input, acceptor, companions| {
        let is_table = input.path().ends_with(TABLE);
        let converter = Notes {
            path: input.inside().to_owned(),
            is_table,
            companions,
        };
        let cut = if is_table { Cut::Rows } else { Cut::Whole };
        cut.importer(input.into_reader(), acceptor, converter)
    },
};

fn recognise(file: &Candidate<'_>) -> Verdict {
    let parts: Vec<&str> = file.path.split('/').collect();
    let is_inside = parts.contains(&"iCloud Notes");
    let (folder, name) = match parts.as_slice() {
        [.., folder, name] => (*folder, *name),
        _ => return Verdict::Unlike,
    };
    match name.rsplit_once('.') {
        _ if name == TABLE && file.head.starts_with(b"Title") => Verdict::Before(0),
        _ if !is_inside => Verdict::Unlike,
        // Long titles are cut in the name of the folder.
        Some((stem, "txt")) if stem.starts_with(folder) || folder.starts_with(stem) => {
            Verdict::Takes
        }
        _ if parts.contains(&"Recently Deleted") => {
            Verdict::Leaves("files of notes that were deleted")
        }
        _ => Verdict::Leaves("files that are attached to notes of Apple"),
    }
}

struct Notes<'a> {
    path: String,
    is_table: bool,
    companions: &'a Companions,
}

impl Converter for Notes<'_> {
    fn convert(&mut self, piece: &[u8], made: &mut Made) -> Result<(), Rejection> {
        if self.is_table {
            self.learn(piece)?;
            return Ok(());
        }
        let words = read_text(piece);
        // The place of a file that is attached.
        let words = words.replace('\u{fffc}', "");
        let folders: Vec<&str> = self.path.split('/').collect();
        let name = folders.iter().nth_back(1).copied().unwrap_or_default();
        let inside = folders.iter().skip_while(|part| **part != "iCloud Notes");
        let inside: Vec<&str> = inside.skip(1).copied().collect();
        let folder = inside.split_last_chunk::<2>().map(|(before, _)| before);
        let folder = folder.unwrap_or_default().join("/");
        let title = some_text(first_words(&words)).unwrap_or_else(|| name.to_owned());
        let known = |what: &str| {
            let of_name = self.companions.name(&format!("{what} {name}"));
            of_name.or_else(|| self.companions.name(&format!("{what} {title}")))
        };
        made.add(
            "notes",
            json!({
                "id": readable_key(&inside.join("/")),
                "title": title,
                "folder": some_text(folder),
                "created_at": known("created"),
                "updated_at": known("updated"),
                "tags": some_list(tags(&words)),
                "text": some_text(words),
                "is_deleted": known("deleted").map(|deleted| deleted == "Yes"),
            }),
        );
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.is_table.then(names_only)
    }
}

impl Notes<'_> {
    /// Remembers what a row of the table says of a note.
    fn learn(&self, row: &[u8]) -> Result<(), Rejection> {
        let row = parse_json(row)?;
        let Some(title) = text(&row, "Title") else {
            return Ok(());
        };
        for (what, column) in [("created", "Created On"), ("updated", "Modified On")] {
            if let Some(time) = text(&row, column).and_then(moment) {
                self.companions.learn(&format!("{what} {title}"), &time);
            }
        }
        if let Some(deleted) = text(&row, "Deleted") {
            self.companions.learn(&format!("deleted {title}"), deleted);
        }
        Ok(())
    }
}

fn tags(words: &str) -> Vec<String> {
    let tags = words.split_whitespace().filter_map(|word| {
        let tag = word.strip_prefix('#')?;
        let tag = tag.trim_end_matches(|c: char| !c.is_alphanumeric());
        tag.starts_with(char::is_alphabetic).then(|| tag.to_owned())
    });
    let mut tags: Vec<String> = tags.collect();
    tags.sort();
    tags.dedup();
    tags
}

/// `03-05-2024 10:00:00`, which counts as UTC: the table does not say of which zone it is.
fn moment(text: &str) -> Option<String> {
    let forms = ["%m-%d-%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"];
    let mut times = forms.iter().filter_map(|form| {
        let time = jiff::civil::DateTime::strptime(form, text.trim()).ok()?;
        Some(time.to_string())
    });
    times.next()
}
